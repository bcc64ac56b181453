// SPDX-License-Identifier: Apache-2.0
#include "monitor/graph_definition.h"

#include <map>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "monitor/event_decoder.h"
#include "testing.h"

namespace tutti::testing::graph_definition_test {

using impl::graph::Dims;
using impl::graph::GraphBuilder;
using impl::graph::ValueId;
using impl::tensor::DType;

struct DecodedNode {
  std::string op;
  std::vector<std::string> inputs;
  std::vector<std::vector<int64_t>> shapes;
  std::map<std::string, Fields> attributes;
};

static DecodedNode decode_node(const Fields &fields) {
  DecodedNode node{field_of(fields, 2), {}, {}, {}};
  for (const auto &[number, value] : fields) {
    if (number == 3) node.inputs.push_back(value);
    if (number != 5) continue;
    const Fields entry = decode_message(value);
    node.attributes[field_of(entry, 1)] = decode_message(field_of(entry, 2));
  }
  for (const auto &[number, shape] : decode_message(field_of(node.attributes.at("_output_shapes"), 1))) {
    assert_int_equal(number, 7);
    std::vector<int64_t> dims;
    for (const auto &[field, dim] : decode_message(shape))
      dims.push_back(integer_of(decode_message(dim), 1));
    node.shapes.push_back(dims);
  }
  return node;
}

static std::map<std::string, DecodedNode> decode(const impl::graph::Graph &graph) {
  std::map<std::string, DecodedNode> nodes;
  for (const auto &[number, value] : decode_message(impl::monitor::graph_definition(graph))) {
    if (number != 1) continue;
    const Fields fields = decode_message(value);
    assert_true(nodes.emplace(field_of(fields, 1), decode_node(fields)).second);
  }
  return nodes;
}

static void test_nodes(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, Dims{GraphBuilder::batch(), 4});
  const ValueId w = b.input("w", DType::f32, Dims{4, 3});
  const ValueId y = b.op("matmul", std::initializer_list<ValueId>{x, w}, {{"transpose_b", false}});
  const ValueId top = b.op("reduce_sum", std::initializer_list<ValueId>{y}, {{"axes", std::vector<int64_t>{1}}});
  b.set_result("top", b.add(top, top));
  const impl::graph::Graph graph = assert_ok_value(b.finish_graph());
  const auto nodes = decode(graph);
  assert_int_equal(nodes.size(), graph.body().nodes.size());
  std::map<std::string, std::string> by_op;
  for (const auto &[name, node] : nodes) {
    by_op[node.op] = name;
    for (const std::string &input : node.inputs)
      assert_true(nodes.contains(input));
  }
  const DecodedNode &product = nodes.at(by_op.at("matmul"));
  assert_int_equal(product.inputs.size(), 2);
  assert_true((product.inputs == std::vector<std::string>{"x", "w"}));
  assert_string_equal(nodes.at("x").op.c_str(), "input");
  assert_true((nodes.at(product.inputs[0]).shapes == std::vector<std::vector<int64_t>>{{-1, 4}}));
  assert_true((nodes.at(product.inputs[1]).shapes == std::vector<std::vector<int64_t>>{{4, 3}}));
  assert_true((product.shapes == std::vector<std::vector<int64_t>>{{-1, 3}}));
  assert_int_equal(integer_of(product.attributes.at("dtype"), 6), 1);
  const DecodedNode &sum = nodes.at(by_op.at("add"));
  assert_true(sum.inputs.size() == 2 && sum.inputs[0] == sum.inputs[1]);
  assert_true((sum.shapes == std::vector<std::vector<int64_t>>{{-1}}));
}

// Names are each node's own, whatever the model calls its inputs.
static void test_names(void **) {
  GraphBuilder b;
  const ValueId x = b.input("matmul", DType::f32, Dims{GraphBuilder::batch(), 4});
  const ValueId w = b.input("b d/ü", DType::f32, Dims{4, 4});
  b.set_result("y", b.op("matmul", std::initializer_list<ValueId>{x, w}));
  const impl::graph::Graph graph = assert_ok_value(b.finish_graph());
  const auto nodes = decode(graph);
  assert_int_equal(nodes.size(), 3);
  assert_string_equal(nodes.at("matmul").op.c_str(), "input");
  for (const auto &[name, node] : nodes)
    if (node.op == "matmul") assert_true((node.inputs == std::vector<std::string>{"matmul", "b d/ü"}));
}

static const CMUnitTest tests[] = {cmocka_unit_test(test_nodes), cmocka_unit_test(test_names)};
TEST_MAIN(tests)

}  // namespace tutti::testing::graph_definition_test

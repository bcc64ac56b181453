// SPDX-License-Identifier: Apache-2.0
// Embeddings: one gather of the table whatever the attributes, initial values, and ids of any integer dtype.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "graph/autodiff.h"
#include "graph/initializer.h"
#include "nn_testing.h"
#include "testing.h"

namespace embedding_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

int64_t count_ops(const GraphBuilder &b, std::string_view op) {
  const auto &nodes = b.region().nodes;
  return std::count_if(nodes.begin(), nodes.end(), [&](graph::NodeId id) { return b.graph().node(id).op == op; });
}

/// The node that makes a value.
const graph::Node &maker(const GraphBuilder &b, ValueId value) {
  for (const graph::NodeId id : b.region().nodes) {
    const graph::Node &node = b.graph().node(id);
    if (std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end()) return node;
  }
  fail_msg("nothing makes value %d", int(value));
  return b.graph().node(0);
}

/// Whatever the attributes, the table is read by one gather of its rows, and its gradient is the gradient of that.
void test_one_gather_of_the_table(void **) {
  for (const bool is_bag : {false, true}) {
    for (const int64_t padding : {-1, 1}) {
      Bench bench;
      const ValueId ids = bench.input("ids", {0, 1, 2, 3, 1, 1}, {3}, DType::i32);
      const ValueId y = bench.expand(is_bag ? "layer_embedding_bag" : "layer_embedding", {ids},
                                     {{"count", int64_t{4}}, {"width", int64_t{2}}, {"padding_id", padding}});
      assert_string_equal(bench.error().c_str(), "");
      assert_string_equal(bench.shape(y).c_str(), is_bag ? "[batch, 2]" : "[batch, 3, 2]");
      assert_int_equal(count_ops(bench.builder, "gather"), 1);
      const ValueId table = bench.variable(is_bag ? "embedding_bag/table" : "embedding/table")->value;
      const auto gradient = graph::gradients_or_zeros(bench.builder, std::vector{y}, {}, std::vector{table});
      assert_true(gradient.ok());
      assert_int_equal(count_ops(bench.builder, "gather_gradient"), 1);
      assert_string_equal(maker(bench.builder, gradient->front()).op.c_str(), "gather_gradient");
    }
  }
}

void test_initial_values(void **) {
  Bench bench;
  const ValueId ids = bench.input("ids", {0, 1}, {1}, DType::i64);
  bench.expand("layer_embedding", {ids}, {{"count", int64_t{4}}, {"width", int64_t{2}}});
  bench.expand("layer_embedding", {ids}, {{"count", int64_t{4}}, {"width", int64_t{2}}, {"padding_id", int64_t{0}}});
  const graph::InitializerSpec &first = bench.variable("embedding/table")->initializer;
  assert_string_equal(first.name.c_str(), "uniform");
  assert_true(first.attributes.find(graph::kZeroRow) == first.attributes.end());
  const graph::InitializerSpec &second = bench.variable("embedding_1/table")->initializer;
  assert_int_equal(std::get<int64_t>(second.attributes.at(std::string(graph::kZeroRow))), 0);
}

void test_ids_of_any_integers(void **) {
  for (const DType dtype : {DType::i32, DType::i64, DType::u8, DType::i16}) {
    Bench bench;
    const ValueId y = bench.expand("layer_embedding", {bench.input("ids", {2, 0}, {}, dtype)},
                                   {{"count", int64_t{3}}, {"width", int64_t{2}}});
    assert_string_equal(bench.shape(y).c_str(), "[batch, 2]");
    assert_numbers(assert_ok_value(bench.evaluate(y, {{"embedding/table", {1, 2, 3, 4, 5, 6}}})), {5, 6, 1, 2});
  }
}

/// What stands behind the end of a bag counts for nothing, ids and weights; and a bag may be empty.
void test_behind_the_end_of_bags(void **) {
  const Numbers table = {1, 2, 3, 4, 5, 6}, ids = {2, 1, -7, 0, 9, 9, 9, 9, 9}, lengths = {2, 1, 0};
  const Numbers weights = {1, 3, NAN, 2, NAN, INFINITY, NAN, NAN, NAN};
  const std::vector<std::pair<std::string, Numbers>> expected = {{"sum", {14, 18, 2, 4, 0, 0}},
                                                                 {"mean", {3.5, 4.5, 1, 2, 0, 0}}};
  for (const auto &[combiner, numbers] : expected) {
    Bench bench;
    const ValueId y = bench.expand("layer_embedding_bag",
                                   {bench.input("ids", ids, {3}, DType::i64), bench.input("weights", weights, {3}),
                                    bench.input("lengths", lengths, {}, DType::i32)},
                                   {{"count", int64_t{3}}, {"width", int64_t{2}}, {"combiner", combiner}});
    assert_numbers(assert_ok_value(bench.evaluate(y, {{"embedding_bag/table", table}})), numbers);
  }
  for (const std::string combiner : {"sum", "mean", "max"}) {
    Bench bench;
    const ValueId x = bench.input("x", {1, 1}, {});
    const ValueId none =
        bench.builder.broadcast_to(bench.builder.constant(0, DType::i32), {GraphBuilder::batch(), graph::Dim(0)});
    const ValueId y = bench.expand("layer_embedding_bag", {none},
                                   {{"count", int64_t{3}}, {"width", int64_t{1}}, {"combiner", combiner}});
    const ValueId column = bench.builder.reshape(x, {GraphBuilder::batch(), graph::Dim(1)});
    assert_numbers(assert_ok_value(bench.evaluate(bench.builder.add(y, column), {{"embedding_bag/table", {1, 2, 3}}})),
                   {1, 1});
  }
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_one_gather_of_the_table),
    cmocka_unit_test(test_initial_values),
    cmocka_unit_test(test_ids_of_any_integers),
    cmocka_unit_test(test_behind_the_end_of_bags),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace embedding_test

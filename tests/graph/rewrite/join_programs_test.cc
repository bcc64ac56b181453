// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/builder.h"
#include "graph/rewrite/rewrites.h"
#include "testing.h"

namespace join_programs_test {

namespace {

using namespace tutti::impl::graph;
using tutti::impl::tensor::DType;

constexpr std::string_view kPassing[] = {"gradient/"};

Graph finished(GraphBuilder &b) { return assert_ok_value(b.finish_graph()); }

const std::string &entry_of(const Node &node) { return std::get<std::string>(node.attributes.find("entry")->second); }

/// Position in the top region of a node; -1 when it is not there.
int64_t position(const Graph &graph, std::string_view op, std::string_view entry = "") {
  const auto &nodes = graph.body().nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node &node = graph.node(nodes[i]);
    if (node.op == op && (entry.empty() || entry_of(node) == entry)) return static_cast<int64_t>(i);
  }
  return -1;
}

/// Forward through a, then b; back through b, then a.
Graph make_first() {
  GraphBuilder g;
  const ValueId x = g.input("x", DType::f32, {3});
  const ValueId a = g.state_read("weight/a", DType::f32, {3}), b = g.state_read("weight/b", DType::f32, {3});
  const ValueId y = g.unary("tanh", g.mul(x, a));
  g.state_write(g.reduce_sum(g.unary("sin", g.mul(y, b))), "report/loss");
  g.state_write(g.unary("exp", y), "gradient/b");
  const ValueId dy = g.unary("cos", b);  // still reads b
  g.state_write(g.unary("neg", dy), "gradient/a");
  return finished(g);
}

Graph make_second(Dims dims) {
  GraphBuilder g;
  const ValueId ok = g.unary("all_finite", g.state_read("report/loss", DType::f32, {}));
  for (const char *name : {"a", "b"}) {
    const std::string weight = std::string("weight/") + name;
    const ValueId rate = g.constant(0.5, DType::f32);
    const ValueId old_value = g.state_read(weight, DType::f32, dims);
    const ValueId gradient = g.state_read(std::string("gradient/") + name, DType::f32, dims);
    g.state_write(g.op("sgd_update", {old_value, gradient, rate, ok}), weight);
  }
  return finished(g);
}

void gradients_pass_as_values(void **) {
  const Graph joined = assert_ok_value(rewrite::join_programs(make_first(), make_second({3}), kPassing));
  assert_int_equal(position(joined, "state_write", "gradient/a"), -1);
  assert_int_equal(position(joined, "state_read", "gradient/a"), -1);
  assert_true(position(joined, "state_write", "report/loss") >= 0);
  // The second reads what the first computed, not what lay there before.
  assert_int_equal(position(joined, "state_read", "report/loss"), -1);
  assert_int_equal(std::count_if(joined.nodes().begin(), joined.nodes().end(),
                                 [](const Node &node) { return node.op == "state_read"; }),
                   2);
}

void updates_come_early_but_behind_readers(void **) {
  const Graph joined = assert_ok_value(rewrite::join_programs(make_first(), make_second({3}), kPassing));
  const int64_t of_b = position(joined, "state_write", "weight/b"), of_a = position(joined, "state_write", "weight/a");
  assert_true(of_b > position(joined, "exp"));
  assert_true(of_b > position(joined, "cos"));
  assert_true(of_a > position(joined, "neg"));
  assert_true(of_b > 0 && of_a > 0);
  // What checks the loss does not wait for the way back.
  assert_true(position(joined, "all_finite") < position(joined, "exp"));
}

void what_does_not_fit_is_refused(void **) {
  assert_error_contains(rewrite::join_programs(make_first(), make_second({4}), kPassing).status(),
                        "state entry 'gradient/a' is written as f32[3] and read as f32[4]");
  GraphBuilder twice;
  const ValueId x = twice.input("x", DType::f32, {3});
  twice.state_write(x, "gradient/a");
  twice.state_write(twice.neg(x), "gradient/a");
  assert_error_contains(rewrite::join_programs(finished(twice), make_second({3}), kPassing).status(),
                        "state entry 'gradient/a' is written twice");
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(gradients_pass_as_values),
      cmocka_unit_test(updates_come_early_but_behind_readers),
      cmocka_unit_test(what_does_not_fit_is_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace join_programs_test

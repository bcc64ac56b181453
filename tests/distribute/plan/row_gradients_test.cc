// SPDX-License-Identifier: Apache-2.0
//
// Which variables a step updates by the rows that it looks up, and what passes between its graphs then. That the
// weights are right is tested through the C interface (tests/capi/golden_tables_test.cc, table_test.c).
#include "distribute/plan/row_gradients.h"

#include <functional>
#include <set>
#include <string>

#include "distribute/plan/step_graphs.h"
#include "nn/registry.h"
#include "testing.h"

namespace tutti::testing::row_gradients_test {
namespace {

namespace graph = impl::graph;
using graph::Dim;
using graph::GraphBuilder;
using graph::ValueId;
using impl::distribute::make_train_graphs;
using impl::distribute::StepGraphOptions;
using impl::distribute::TrainGraphs;
using impl::tensor::DType;

/// What a loss is made of, from the table.
using Use = std::function<ValueId(GraphBuilder &b, ValueId table)>;

ValueId looked_up(GraphBuilder &b, ValueId table) {
  return b.op("gather", {table, b.input("ids", DType::i32, {GraphBuilder::batch(), Dim(3)})});
}

graph::Model model_of(const std::string &optimizer, const graph::Attributes &attributes, const Use &use = looked_up) {
  GraphBuilder b;
  const ValueId table = b.variable("table", DType::f32, {20, 4});
  b.set_loss(b.reduce_mean(b.unary("square", use(b, table))));
  impl::nn::expand(b, "optimizer_" + optimizer, 1, {b.constant(0.1, DType::f32)}, attributes, {.training = true});
  return assert_ok_value(b.finish());
}

std::multiset<std::string> ops_of(const graph::SealedGraph &graph) {
  std::multiset<std::string> ops;
  if (graph == nullptr) return ops;
  for (const graph::NodeId id : graph->body().nodes)
    ops.insert(graph->node(id).op);
  return ops;
}

/// Does one program of a step update rows, and make no gradient of all of them?
bool updates_rows(const graph::Model &model, const StepGraphOptions &options = {}) {
  const TrainGraphs graphs = assert_ok_value(make_train_graphs(model, options));
  const bool merges =
      ops_of(graphs.accumulate_write).contains("sum_rows") || ops_of(graphs.finish).contains("sum_rows");
  const bool has_all = ops_of(graphs.accumulate_write).contains("gather_gradient");
  assert_true(merges != has_all);
  return merges;
}

const graph::Attributes lazy{{"lazy", true}};

void optimizers_that_change_nothing_without_a_gradient(void **) {
  assert_true(updates_rows(model_of("sgd", {})));
  assert_true(updates_rows(model_of("adagrad", {})));
  assert_false(updates_rows(model_of("sgd", {{"momentum", 0.5}})));
  assert_false(updates_rows(model_of("sgd", {{"weight_decay", 0.5}})));
  assert_false(updates_rows(model_of("adagrad", {{"weight_decay", 0.5}})));
  for (const char *const optimizer : {"adam", "adamw", "adadelta", "rmsprop", "adamax", "nadam", "lion", "ftrl"})
    assert_false(updates_rows(model_of(optimizer, {})));
}

void lazy_optimizers(void **) {
  for (const char *const optimizer :
       {"sgd", "adagrad", "adam", "adamw", "adadelta", "rmsprop", "adamax", "nadam", "lion", "ftrl"})
    assert_true(updates_rows(model_of(optimizer, lazy)));
  assert_true(updates_rows(model_of("sgd", {{"momentum", 0.5}, {"weight_decay", 0.5}, {"lazy", true}})));
  assert_false(updates_rows(model_of("adam", {{"average_decay", 0.5}, {"lazy", true}})));
}

void uses_of_a_table(void **) {
  const auto is_by_rows = [](const Use &use) { return updates_rows(model_of("adam", lazy, use)); };
  assert_true(is_by_rows([](GraphBuilder &b, ValueId table) {
    const ValueId one = b.op("gather", {table, b.input("id", DType::i64, {GraphBuilder::batch()})});
    return b.add(b.reduce_sum(looked_up(b, table), {1}), one);
  }));
  // The whole table, columns of it, and rows that are no example's.
  assert_false(is_by_rows(
      [](GraphBuilder &b, ValueId table) { return b.add(b.reduce_sum(looked_up(b, table)), b.reduce_sum(table)); }));
  assert_false(is_by_rows([](GraphBuilder &b, ValueId table) {
    const ValueId columns = b.input("column", DType::i32, {GraphBuilder::batch()});
    return b.transpose(b.op("gather", {table, columns}, {{"axis", int64_t{1}}}), {1, 0});
  }));
  assert_false(is_by_rows([](GraphBuilder &b, ValueId table) {
    const ValueId positions = b.op("iota", {}, {{"dims", graph::Dims{Dim(3)}}, {"axis", int64_t{0}}});
    return b.add(looked_up(b, table), b.op("gather", {table, positions}));
  }));
}

void what_passes_between_programs(void **) {
  const graph::Model model = model_of("adam", lazy);
  // One program: nothing.
  TrainGraphs graphs = assert_ok_value(make_train_graphs(model, {}));
  assert_null(graphs.finish.get());
  assert_true(graphs.factors.empty());
  // Two, since norms come before updates: indices and rows of their gradients; no state for the gradient.
  StepGraphOptions clipped;
  clipped.clip_norm = 1;
  graphs = assert_ok_value(make_train_graphs(model, clipped));
  assert_int_equal(graphs.factors.size(), 2);
  assert_string_equal(graphs.factors[0].name.c_str(), "rows/table/0/indices");
  assert_true(graphs.factors[0].is_index && graphs.factors[0].is_of_lookups && !graphs.factors[1].is_index);
  assert_int_equal(graphs.finish->inputs().size(), 2);
  for (const auto &spec : graphs.state)
    assert_true(spec.name.rfind("gradient/", 0) != 0);
  assert_true(updates_rows(model, clipped));
}

void what_is_refused(void **) {
  const graph::Model model = model_of("adam", lazy), plain = model_of("sgd", {});
  StepGraphOptions options;
  options.keep_gradients = true;
  assert_error_contains(
      make_train_graphs(model, options),
      "the optimizer is lazy, but rows of variable 'table' cannot be updated alone: gradients are to be read");
  assert_false(updates_rows(plain, options));
}

}  // namespace
static const struct CMUnitTest tests[] = {
    cmocka_unit_test(optimizers_that_change_nothing_without_a_gradient),
    cmocka_unit_test(lazy_optimizers),
    cmocka_unit_test(uses_of_a_table),
    cmocka_unit_test(what_passes_between_programs),
    cmocka_unit_test(what_is_refused),
};
TEST_MAIN(tests)
}  // namespace tutti::testing::row_gradients_test

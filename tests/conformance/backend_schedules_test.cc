// SPDX-License-Identifier: Apache-2.0
//
// Learning rates at the corners of schedules, near the first step and beyond 2^24, against those of PyTorch, Keras and
// TensorFlow: golden/schedule_entries.json, written by golden/make_schedule_golden.py.
//
// usage: backend_schedules_test BACKEND DIRECTORY
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "bound_graph.h"
#include "entry_cases.h"
#include "instruction_sets.h"
#include "testing.h"

namespace backend_schedules_test {

using namespace tutti::impl;
using conformance::GoldenCase;
using conformance::GoldenRate;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::Tensor;

namespace {

conformance::EntryCases entries;

ValueId expand(GraphBuilder &builder, const std::string &op, const graph::Attributes &attributes,
               const std::vector<GoldenRate> &rates) {
  std::vector<ValueId> inputs;
  for (const GoldenRate &rate : rates)
    inputs.push_back(expand(builder, rate.op, rate.attributes, rate.rates));
  return nn::expand(builder, op, 1, inputs, attributes, {.training = true});
}

/// One graph of all cases: a compiler behind a backend takes its time for each graph.
GraphBuilder::Values build_all(GraphBuilder &builder, const GraphBuilder::Values &) {
  GraphBuilder::Values results;
  for (const GoldenCase &golden : entries.cases)
    results.push_back(expand(builder, golden.op, golden.attributes, golden.rates));
  return results;
}

/// How many cases are wrong at this step, of those that have it.
int count_wrong(int64_t step, const std::vector<Tensor> &rates, const char *instructions, int &compared) {
  int wrong = 0;
  for (size_t i = 0; i < entries.cases.size(); ++i) {
    const GoldenCase &golden = entries.cases[i];
    for (int64_t k = 0; k < golden.inputs[0].elements(); ++k) {
      if (golden.inputs[0].data_as<int64_t>()[k] != step) continue;
      ++compared;
      const double expected = golden.outputs[0].data_as<double>()[k], got = rates[i].data_as<float>()[0];
      if (std::abs(got - expected) <= golden.absolute + golden.relative * std::abs(expected)) continue;
      ++wrong;
      print_error("schedule_entries.json line %zu (%s), step %lld, %s: %.9g, expected %.9g\n", i + 2, golden.op.c_str(),
                  static_cast<long long>(step), instructions, got, expected);
    }
  }
  return wrong;
}

void test_rates(void **) {
  std::set<int64_t> steps;
  for (const GoldenCase &golden : entries.cases)
    for (int64_t k = 0; k < golden.inputs[0].elements(); ++k)
      steps.insert(golden.inputs[0].data_as<int64_t>()[k]);
  const graph::Graph graph = assert_ok_value(conformance::build_graph({}, build_all));
  int wrong = 0;
  conformance::on_instruction_sets([&](const char *instructions) {
    const auto bound = assert_ok_value(conformance::BoundGraph::make(entries.tested->device, graph));
    int compared = 0;
    for (const int64_t step : steps) {
      backend::RunScalars scalars;
      scalars.set(backend::RunScalar::step, step);
      wrong += count_wrong(step, assert_ok_value(bound->run({}, scalars)), instructions, compared);
    }
    assert_true(compared > 1000);
  });
  assert_int_equal(wrong, 0);
}

/// No schedule and no attribute is left out.
void test_every_schedule_has_rates(void **) {
  conformance::assert_every_entry_has_cases(
      entries, [](const nn::Definition &definition) { return definition.name.starts_with("schedule_"); });
}

}  // namespace

static int run_all(int argc, char **argv) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_rates),
      cmocka_unit_test(test_every_schedule_has_rates),
  };
  return conformance::run_entry_tests(argc, argv, "schedule_entries.json", entries, "schedules", tests);
}
TEST_SOURCE(run_all)

}  // namespace backend_schedules_test

// SPDX-License-Identifier: Apache-2.0
//
// Metrics against those of scikit-learn and Keras: golden/metric_entries.json, written by golden/make_metric_golden.py.
// A metric is a graph of many ops, most of them of f64.
//
// usage: backend_metrics_test BACKEND DIRECTORY
#include <span>
#include <string>
#include <vector>

#include "entry_cases.h"
#include "testing.h"

namespace backend_metrics_test {

using namespace tutti::impl;
using conformance::GoldenCase;
using graph::GraphBuilder;
using tensor::Tensor;

namespace {

conformance::EntryCases entries;

GraphBuilder::Values build(GraphBuilder &builder, const GoldenCase &golden, const GraphBuilder::Values &inputs) {
  graph::Attributes attributes = golden.attributes;
  attributes["name"] = "m" + std::to_string(builder.model().metrics.size());
  const graph::ValueId metric = nn::expand(builder, golden.op, 1, inputs, attributes, {.training = false});
  return {metric == graph::kNoValue ? metric : builder.cast(metric, tensor::DType::f64)};
}

/// How many of some cases, the first of which is in line `line`, are wrong.
int count_wrong(std::span<const GoldenCase> some, size_t line, backend::Level level, const char *instructions) {
  const std::vector<Tensor> results = assert_ok_value(conformance::run_together(entries, some, level, build));
  int wrong = 0;
  for (size_t i = 0; i < some.size(); ++i) {
    const base::Status status =
        tensor::compare_close(results[i], some[i].outputs[0], some[i].relative, some[i].absolute);
    if (status.ok()) continue;
    ++wrong;
    print_error("metric_entries.json line %zu (%s), %s: %s\n", line + i, some[i].op.c_str(), instructions,
                status.to_string().c_str());
  }
  return wrong;
}

void test_values(void **) {
  const int wrong = conformance::count_wrong_cases(entries, 32, count_wrong);
  assert_true(entries.cases.size() > 200);
  assert_int_equal(wrong, 0);
}

/// No metric and none of its attributes is left out.
void test_every_metric_has_numbers(void **) {
  conformance::assert_every_entry_has_cases(
      entries, [](const nn::Definition &definition) { return definition.name.starts_with("metric_"); });
}

}  // namespace

static int run_all(int argc, char **argv) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_every_metric_has_numbers),
  };
  return conformance::run_entry_tests(argc, argv, "metric_entries.json", entries, "metrics", tests);
}
TEST_SOURCE(run_all)

}  // namespace backend_metrics_test

// SPDX-License-Identifier: Apache-2.0
//
// Metrics against those of scikit-learn and Keras: golden/metric_entries.json, written by golden/make_metric_golden.py.
// A metric is a graph of many ops, most of them of f64.
//
// usage: backend_metrics_test BACKEND DIRECTORY
#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend_under_test.h"
#include "golden_case.h"
#include "instruction_sets.h"
#include "nn/registry.h"
#include "testing.h"

namespace backend_metrics_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::GoldenCase;
using graph::GraphBuilder;
using tensor::Tensor;

namespace {

BackendUnderTest *tested = nullptr;
std::vector<GoldenCase> cases;

/// One graph of several cases: a compiler behind a backend takes its time for each graph.
std::vector<Tensor> run_together(std::span<const GoldenCase> some, backend::Level level) {
  std::vector<Tensor> inputs;
  for (const GoldenCase &golden : some)
    inputs.insert(inputs.end(), golden.inputs.begin(), golden.inputs.end());
  const auto build_all = [&](GraphBuilder &builder, const GraphBuilder::Values &values) {
    GraphBuilder::Values results;
    auto first = values.begin();
    for (const GoldenCase &golden : some) {
      const auto last = first + static_cast<std::ptrdiff_t>(golden.inputs.size());
      graph::Attributes attributes = golden.attributes;
      attributes["name"] = "m" + std::to_string(results.size());
      const graph::ValueId metric = nn::expand(builder, golden.op, 1, {first, last}, attributes, {.training = false});
      results.push_back(metric == graph::kNoValue ? metric : builder.cast(metric, tensor::DType::f64));
      first = last;
    }
    return results;
  };
  return assert_ok_value(conformance::run_graph(tested->device, inputs, build_all, {}, {.level = level}));
}

/// How many of some cases, the first of which is in line `line`, are wrong.
int count_wrong(std::span<const GoldenCase> some, size_t line, backend::Level level, const char *instructions) {
  const std::vector<Tensor> results = run_together(some, level);
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
  constexpr size_t kTogether = 32;
  int wrong = 0;
  conformance::on_instruction_sets([&](const char *instructions) {
    for (size_t i = 0; i < cases.size(); i += kTogether) {
      const size_t count = std::min(kTogether, cases.size() - i);
      const backend::Level level = i / kTogether % 2 == 0 ? backend::Level::fast : backend::Level::repeatable;
      wrong += count_wrong(std::span(cases).subspan(i, count), i + 2, level, instructions);
    }
  });
  assert_true(cases.size() > 200);
  assert_int_equal(wrong, 0);
}

/// No metric and none of its attributes is left out.
void test_every_metric_has_numbers(void **) {
  for (const nn::Definition &definition : nn::all_definitions()) {
    if (!definition.name.starts_with("metric_")) continue;
    std::set<std::string, std::less<>> given = {"name"};
    bool is_there = false;
    for (const GoldenCase &golden : cases) {
      if (golden.op != definition.name) continue;
      is_there = true;
      for (const auto &[name, value] : golden.attributes)
        given.insert(name);
    }
    if (!is_there) fail_msg("%s has no cases", definition.name.data());
    for (const graph::AttributeDefinition &attribute : definition.attributes) {
      if (!given.contains(attribute.name))
        fail_msg("no case of %s gives %s", definition.name.data(), attribute.name.data());
    }
  }
}

}  // namespace

static int run_all(int argc, char **argv) {
  if (argc != 3) return 2;
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  auto read = conformance::read_golden(std::string(argv[2]) + "/metric_entries.json");
  if (!read.ok()) {
    print_error("%s\n", read.status().to_string().c_str());
    return 1;
  }
  cases = read.take();
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_every_metric_has_numbers),
  };
  return cmocka_run_group_tests_name("metrics", tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace backend_metrics_test

// SPDX-License-Identifier: Apache-2.0
#include "entry_cases.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/text.h"
#include "graph/autodiff.h"
#include "instruction_sets.h"

namespace tutti::impl::conformance {

using graph::GraphBuilder;
using graph::ValueId;
using tensor::Tensor;

namespace {

base::Status compare(const Tensor &result, const Tensor &expected, const GoldenCase &golden) {
  if (!(result.shape() == expected.shape()) || result.dtype() != expected.dtype())
    return base::internal_error("is ", result.describe(), ", expected ", expected.describe());
  return tensor::compare_close(result, expected, golden.relative, golden.absolute);
}

size_t result_count(const GoldenCase &golden) { return golden.outputs.size() + golden.gradients.size(); }

/// `results`: those of the case, and its gradients.
base::Status check_results(const GoldenCase &golden, std::span<const Tensor> results) {
  for (size_t i = 0; i < golden.outputs.size(); ++i) {
    const base::Status status = compare(results[i], golden.outputs[i], golden);
    if (!status.ok()) return status.wrap(base::concat("result ", i));
  }
  for (size_t i = 0; i < golden.gradients.size(); ++i) {
    const base::Status status = compare(results[golden.outputs.size() + i], golden.gradients[i], golden);
    if (!status.ok()) return status.wrap(base::concat("gradient of input ", golden.differentiated[i]));
  }
  return base::Status();
}

}  // namespace

GraphBuilder::Values with_gradients(GraphBuilder &builder, const GoldenCase &golden, const GraphBuilder::Values &inputs,
                                    GraphBuilder::Values results) {
  if (!builder.ok() || golden.differentiated.empty()) return results;
  GraphBuilder::Values targets, seeds, wanted;
  for (const ValueId result : results) {
    if (tensor::is_floating(builder.dtype(result))) targets.push_back(result);
  }
  for (const Tensor &upstream : golden.upstreams)
    seeds.push_back(builder.constant(upstream));
  for (const int64_t input : golden.differentiated)
    wanted.push_back(inputs.at(static_cast<size_t>(input)));
  const auto gradients = graph::gradients_or_zeros(builder, targets, seeds, wanted);
  if (!gradients.ok()) builder.fail(gradients.status());
  if (gradients.ok()) results.insert(results.end(), gradients->begin(), gradients->end());
  return results;
}

int count_wrong_results(const EntryCases &entries, const char *file, std::span<const GoldenCase> some, size_t line,
                        backend::Level level, const char *instructions, const BuildCase &build) {
  const auto ran = run_together(entries, some, level, build);
  if (!ran.ok()) {
    print_error("%s from line %zu on, %s: %s\n", file, line, instructions, ran.status().to_string().c_str());
    return static_cast<int>(some.size());
  }
  int wrong = 0;
  size_t at = 0;
  for (const GoldenCase &golden : some) {
    assert_true(at + result_count(golden) <= ran->size());
    const base::Status status = check_results(golden, std::span(*ran).subspan(at, result_count(golden)));
    if (!status.ok()) {
      ++wrong;
      print_error("%s line %zu (%s), %s: %s\n", file, line, golden.op.c_str(), instructions,
                  status.to_string().c_str());
    }
    at += result_count(golden);
    ++line;
  }
  return wrong;
}

int run_entry_tests(int argc, char **argv, std::string_view file, EntryCases &entries, const char *name,
                    std::span<const CMUnitTest> tests) {
  if (argc != 3) return 2;
  auto opened = open_backend_under_test(argc, argv);
  if (!opened.ok()) return exit_without_backend(opened.status());
  auto read = read_golden(base::concat(argv[2], "/", file));
  if (!read.ok()) {
    print_error("%s\n", read.status().to_string().c_str());
    return 1;
  }
  entries.tested = &*opened;
  entries.cases = read.take();
  return _cmocka_run_group_tests(name, tests.data(), tests.size(), nullptr, nullptr);
}

base::Result<std::vector<tensor::Tensor>> run_together(const EntryCases &entries, std::span<const GoldenCase> some,
                                                       backend::Level level, const BuildCase &build) {
  std::vector<tensor::Tensor> inputs;
  for (const GoldenCase &golden : some)
    inputs.insert(inputs.end(), golden.inputs.begin(), golden.inputs.end());
  const auto build_all = [&](graph::GraphBuilder &builder, const graph::GraphBuilder::Values &values) {
    graph::GraphBuilder::Values results;
    auto first = values.begin();
    for (const GoldenCase &golden : some) {
      const auto last = first + static_cast<std::ptrdiff_t>(golden.inputs.size());
      const graph::GraphBuilder::Values own = build(builder, golden, {first, last});
      results.insert(results.end(), own.begin(), own.end());
      first = last;
    }
    return results;
  };
  return run_graph(entries.tested->device, inputs, build_all, {}, {.level = level});
}

int count_wrong_cases(const EntryCases &entries, size_t together, const CountWrong &count_wrong) {
  int wrong = 0;
  on_instruction_sets([&](const char *instructions) {
    for (size_t i = 0; i < entries.cases.size(); i += together) {
      const size_t count = std::min(together, entries.cases.size() - i);
      const backend::Level level = i / together % 2 == 0 ? backend::Level::fast : backend::Level::repeatable;
      wrong += count_wrong(std::span(entries.cases).subspan(i, count), i + 2, level, instructions);
    }
  });
  return wrong;
}

void assert_every_entry_has_cases(const EntryCases &entries,
                                  const std::function<bool(const nn::Definition &)> &belongs) {
  for (const nn::Definition &definition : nn::all_definitions()) {
    if (!belongs(definition)) continue;
    // What shows in training alone has tests of its own (tests/capi/golden_blocks_test.cc).
    std::set<std::string, std::less<>> given = {"name", "kernel_constraint", "kernel_normalization"};
    bool is_there = false;
    for (const GoldenCase &golden : entries.cases) {
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

}  // namespace tutti::impl::conformance

// SPDX-License-Identifier: Apache-2.0
//
// Losses and their gradients against those of PyTorch and Keras: golden/loss_entries.json, written by
// golden/make_loss_golden.py. A loss is a graph of many ops, which backends fuse as they like.
//
// usage: backend_losses_test BACKEND DIRECTORY
#include <span>
#include <string>
#include <vector>

#include "entry_cases.h"
#include "graph/autodiff.h"
#include "testing.h"

namespace backend_losses_test {

using namespace tutti::impl;
using conformance::GoldenCase;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::Tensor;

namespace {

conformance::EntryCases entries;

/// The loss, and the gradients of its sum for the first inputs.
GraphBuilder::Values build(GraphBuilder &builder, const GoldenCase &golden, const GraphBuilder::Values &inputs) {
  const ValueId loss = nn::expand(builder, golden.op, 1, inputs, golden.attributes, {.training = true});
  GraphBuilder::Values results = {loss};
  if (loss == graph::kNoValue) return results;
  const auto gradients =
      graph::gradients_or_zeros(builder, std::span(&loss, 1), {}, std::span(inputs.data(), golden.gradients.size()));
  if (!gradients.ok()) builder.fail(gradients.status());
  if (gradients.ok()) results.insert(results.end(), gradients->begin(), gradients->end());
  return results;
}

base::Status compare(const Tensor &result, const Tensor &expected, const GoldenCase &golden) {
  if (!(result.shape() == expected.shape()) || result.dtype() != expected.dtype())
    return base::internal_error("is ", result.describe(), ", expected ", expected.describe());
  return tensor::compare_close(result, expected, golden.relative, golden.absolute);
}

/// `results`: the loss and its gradients.
base::Status check_case(const GoldenCase &golden, std::span<const Tensor> results) {
  TUTTI_TRY(compare(results[0], golden.outputs[0], golden));
  for (size_t i = 0; i < golden.gradients.size(); ++i) {
    const base::Status status = compare(results[i + 1], golden.gradients[i], golden);
    if (!status.ok()) return status.wrap(base::concat("gradient of input ", i));
  }
  return base::Status();
}

/// How many of some cases, the first of which is in line `line`, are wrong.
int count_wrong(std::span<const GoldenCase> some, size_t line, backend::Level level, const char *instructions) {
  const std::vector<Tensor> results = assert_ok_value(conformance::run_together(entries, some, level, build));
  int wrong = 0;
  size_t at = 0;
  for (const GoldenCase &golden : some) {
    const size_t count = 1 + golden.gradients.size();
    assert_true(at + count <= results.size());
    const base::Status status = check_case(golden, std::span(results).subspan(at, count));
    if (!status.ok()) {
      ++wrong;
      print_error("loss_entries.json line %zu (%s), %s: %s\n", line, golden.op.c_str(), instructions,
                  status.to_string().c_str());
    }
    at += count;
    ++line;
  }
  return wrong;
}

void test_values_and_gradients(void **) {
  const int wrong = conformance::count_wrong_cases(entries, 16, count_wrong);
  assert_true(entries.cases.size() > 200);
  assert_int_equal(wrong, 0);
}

/// No loss is left out; the penalty is no loss of examples.
void test_every_loss_has_numbers(void **) {
  conformance::assert_every_entry_has_cases(entries, [](const nn::Definition &definition) {
    return definition.name.starts_with("loss_") && definition.name != "loss_l2_penalty";
  });
}

}  // namespace

static int run_all(int argc, char **argv) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_values_and_gradients),
      cmocka_unit_test(test_every_loss_has_numbers),
  };
  return conformance::run_entry_tests(argc, argv, "loss_entries.json", entries, "losses", tests);
}
TEST_SOURCE(run_all)

}  // namespace backend_losses_test

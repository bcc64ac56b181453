// SPDX-License-Identifier: Apache-2.0
//
// Every entry of the registries in training: on 2 and 3 replicas, whose shares of a batch are uneven, and in
// micro-batches losses, weights, running statistics and metrics are those of one device and whole batches. In double.
#include "entries/entry_training.h"
#include "graph/op_registry.h"
#include "testing.h"

namespace tutti::testing::entry_equality_test {

using entries::EntryCase;
using entries::EntryRun;

namespace {

bool is_differentiable(const EntryCase &one) {
  const impl::graph::OpDefinition *const op = impl::graph::find_op(one.entry);
  return !one.is_flat && (op == nullptr || op->differentiability == impl::graph::Differentiability::differentiable);
}

/// What of the case training leaves as it was, or why that is not known; empty where it is nothing.
std::string untrained_variable(const EntryCase &one, const Trained &trained) {
  EntryRun none;
  none.steps = 0;
  const Result<Trained> before = entries::train(one, none);
  if (!before.ok()) return before.status().to_string();
  for (const std::string &name : entries::trained_through(one)) {
    if (trained.variables.at(name) == before->variables.at(name)) return name + " is not trained";
  }
  return "";
}

std::string wrong_on_replicas(const EntryCase &one) {
  EntryRun run;
  const Result<Trained> alone = entries::train(one, run);
  if (!alone.ok()) return "one device: " + alone.status().to_string();
  const std::string untrained = is_differentiable(one) ? untrained_variable(one, *alone) : "";
  if (!untrained.empty()) return untrained;
  for (const int32_t replicas : {2, 3}) {
    run.replicas = replicas;
    const Result<Trained> many = entries::train(one, run);
    const std::string where = std::to_string(replicas) + " replicas: ";
    if (!one.in_pieces.empty()) {
      const std::string wrong = entries::wrong_with_error(many, one.in_pieces);
      if (!wrong.empty()) return where + wrong;
      continue;
    }
    if (!many.ok()) return where + many.status().to_string();
    const std::string wrong = entries::difference(*many, *alone, one.limit);
    if (!wrong.empty()) return where + wrong;
  }
  return "";
}

void test_replicas(void **) { entries::check_all(entries::chosen_cases(), wrong_on_replicas); }

/// Two batches of 4 rows are a step.
EntryRun micro_batches(int32_t replicas) {
  EntryRun run;
  run.batch = 4;
  run.options.accumulation = 2;
  run.replicas = replicas;
  return run;
}

/// Of what is computed for each micro-batch: the same on replicas, and not what a whole batch gives.
std::string wrong_by_micro_batch(const EntryCase &one, const Trained &whole) {
  const Result<Trained> alone = entries::train(one, micro_batches(1)), many = entries::train(one, micro_batches(3));
  if (!alone.ok()) return alone.status().to_string();
  if (!many.ok()) return "3 replicas: " + many.status().to_string();
  if (entries::difference(*alone, whole, one.limit).empty()) return "is the same as of whole batches";
  return entries::difference(*many, *alone, one.limit);
}

/// In place of batches of 8 rows; the last step has 3.
std::string wrong_in_micro_batches(const EntryCase &one) {
  EntryRun run;
  run.batch = 8;
  const Result<Trained> whole = entries::train(one, run);
  if (!whole.ok()) return "whole batches: " + whole.status().to_string();
  if (one.is_by_micro_batch) return wrong_by_micro_batch(one, *whole);
  const std::string &error = one.in_pieces.empty() ? one.in_micro_batches : one.in_pieces;
  for (const int32_t replicas : {1, 3}) {
    const Result<Trained> parts = entries::train(one, micro_batches(replicas));
    std::string wrong;
    if (!error.empty()) {
      wrong = entries::wrong_with_error(parts, error);
    } else {
      wrong = parts.ok() ? entries::difference(*parts, *whole, one.limit) : parts.status().to_string();
    }
    if (!wrong.empty()) return std::to_string(replicas) + " replicas: " + wrong;
  }
  return "";
}

void test_micro_batches(void **) { entries::check_all(entries::chosen_cases(), wrong_in_micro_batches); }

const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_replicas),
    cmocka_unit_test(test_micro_batches),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace tutti::testing::entry_equality_test

// SPDX-License-Identifier: Apache-2.0
//
// A training of the model of a case on the backend under test (distribute/training_case.h), and what it leaves.
#ifndef TUTTI_TESTS_ENTRIES_ENTRY_TRAINING_H_
#define TUTTI_TESTS_ENTRIES_ENTRY_TRAINING_H_

#include <functional>
#include <string>

#include "distribute/training_case.h"
#include "entries/entry_case.h"

namespace tutti::testing::entries {

/// Steps over all rows, once, or the first of them.
struct EntryRun {
  DType dtype = DType::f64;
  int32_t replicas = 1;
  int64_t rows = 19, batch = 7, steps = -1;
  TrainerOptions options = {};
};

/// Losses of the steps, variables after the last one, and what is reported of it under "report/<metric>".
Result<Trained> train(const EntryCase &one, const EntryRun &run);

/// What differs by more than `limit` times the largest number of its variable, or times 0.001 where that is less; empty
/// where nothing does.
std::string difference(const Trained &got, const Trained &expected, double limit);
/// The same of bits.
std::string other_bits(const Trained &got, const Trained &expected);

/// What is wrong with an outcome that must be an error which says `needle`; empty where nothing is.
std::string wrong_with_error(const Result<Trained> &outcome, const std::string &needle);

/// Fails the test unless `wrong_with` gives an empty text for every case; prints each that is not. The environment
/// variable TUTTI_TEST_ENTRY leaves those out whose name does not contain it.
void check_all(const std::vector<EntryCase> &cases, const std::function<std::string(const EntryCase &)> &wrong_with);

}  // namespace tutti::testing::entries

#endif  // TUTTI_TESTS_ENTRIES_ENTRY_TRAINING_H_

// SPDX-License-Identifier: Apache-2.0
//
// Every entry of the registries at level invariant: the same bits on 1, 2, 3 and 4 replicas.
#include "entries/entry_training.h"
#include "testing.h"

namespace tutti::testing::entry_invariant_test {

using entries::EntryCase;
using entries::EntryRun;

namespace {

/// A multiple of all numbers of replicas: of a batch of 7 rows some logical replicas have none.
constexpr int32_t kLogicalReplicas = 12;

std::string wrong_at_level_invariant(const EntryCase &one) {
  EntryRun run;
  run.dtype = DType::f32;
  run.options.level = impl::backend::Level::invariant;
  run.options.logical_replicas = kLogicalReplicas;
  const Result<Trained> alone = entries::train(one, run);
  if (!one.in_pieces.empty()) return entries::wrong_with_error(alone, one.in_pieces);
  if (!alone.ok()) return "one device: " + alone.status().to_string();
  for (const int32_t replicas : {2, 3, 4}) {
    run.replicas = replicas;
    const Result<Trained> many = entries::train(one, run);
    const std::string wrong = many.ok() ? entries::other_bits(*many, *alone) : many.status().to_string();
    if (!wrong.empty()) return std::to_string(replicas) + " replicas: " + wrong;
  }
  return "";
}

void test_level_invariant(void **) { entries::check_all(entries::chosen_cases(), wrong_at_level_invariant); }

const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_level_invariant),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace tutti::testing::entry_invariant_test

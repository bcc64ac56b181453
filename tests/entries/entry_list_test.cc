// SPDX-License-Identifier: Apache-2.0
//
// No entry of the registries is left out of the suites of entries: each has a case, or cannot be in a model of theirs.
#include <algorithm>
#include <set>

#include "entries/entry_case.h"
#include "graph/op_registry.h"
#include "nn/registry.h"
#include "testing.h"

namespace tutti::testing::entry_list_test {

namespace {

std::set<std::string, std::less<>> entries_with_cases() {
  std::set<std::string, std::less<>> names;
  for (const entries::EntryCase &one : entries::all_cases())
    names.insert(one.entry);
  return names;
}

void test_entries_of_nn(void **) {
  const auto names = entries_with_cases();
  int missing = 0;
  for (const impl::nn::Definition &definition : impl::nn::all_definitions()) {
    if (names.contains(definition.name)) continue;
    print_error("%s has no case in tests/entries/*_cases.cc\n", std::string(definition.name).c_str());
    ++missing;
  }
  assert_int_equal(missing, 0);
}

/// Ops that users have and that backends compile; those with regions have tests of their own.
void test_ops(void **) {
  const auto names = entries_with_cases();
  int missing = 0;
  for (const impl::graph::OpDefinition &op : impl::graph::all_ops()) {
    if (!op.is_public || !op.program || !op.regions.empty() || names.contains(op.name)) continue;
    print_error("%s has no case in tests/entries/op_cases.cc\n", std::string(op.name).c_str());
    ++missing;
  }
  assert_int_equal(missing, 0);
}

/// The name is what a message says, and what chooses a case.
void test_names_are_unique(void **) {
  std::set<std::string> names;
  for (const entries::EntryCase &one : entries::all_cases()) {
    if (!names.insert(one.name()).second) fail_msg("%s is there twice", one.name().c_str());
  }
}

const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_entries_of_nn),
    cmocka_unit_test(test_ops),
    cmocka_unit_test(test_names_are_unique),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace tutti::testing::entry_list_test

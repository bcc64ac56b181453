// SPDX-License-Identifier: Apache-2.0
#include "backend/state_table.h"

#include "testing.h"

using namespace tutti::impl;
using backend::StateEntry;
using backend::StateTable;

namespace {

StateEntry entry(const char *name) {
  return {.name = name, .arena = 0, .offset = 64, .dtype = tensor::DType::f32, .dims = {2, 3}, .storage_bytes = 32};
}

void text_brings_everything_back(void **) {
  StateTable table;
  table.add_arena("weights");
  assert_int_equal(table.add_arena("slots"), 1);
  assert_int_equal(table.add_arena("weights"), 0);
  assert_ok(table.add(entry("a")));
  StateEntry second = entry("b/c");
  second.arena = 1;
  second.dtype = tensor::DType::f64;
  second.layout = "blocked16";
  second.slice_offset = 1;
  second.slice_length = 2;
  assert_ok(table.add(second));
  const StateTable read = assert_ok_value(StateTable::from_text(table.to_text()));
  assert_string_equal(read.to_text().c_str(), table.to_text().c_str());
  assert_int_equal(read.arenas().size(), 2);
  const StateEntry *found = read.find("b/c");
  assert_non_null(found);
  assert_int_equal(found->arena, 1);
  assert_string_equal(found->layout.c_str(), "blocked16");
  assert_int_equal(found->slice_offset, 1);
  assert_int_equal(found->flat_length(), 2);
  assert_int_equal(found->storage_elements(), 4);
  assert_int_equal(read.find("a")->flat_length(), 8);
  assert_null(read.find("none"));
  assert_int_equal(read.index_of("b/c"), 1);
}

void entries_are_checked(void **) {
  StateTable table;
  table.add_arena("weights");
  assert_ok(table.add(entry("a")));
  assert_error_contains(table.add(entry("a")), "twice");
  StateEntry wrong = entry("b");
  wrong.arena = 1;
  assert_error_contains(table.add(wrong), "arena 1 of 1");
  wrong = entry("b");
  wrong.offset = 2;
  assert_error_contains(table.add(wrong), "offset 2");
  wrong = entry("b");
  wrong.slice_offset = 5;
  wrong.slice_length = 4;
  assert_error_contains(table.add(wrong), "slice of 4");
}

void bad_text_is_refused(void **) {
  assert_error_contains(StateTable::from_text("{"), "");
  assert_error_contains(StateTable::from_text("{\"arenas\": [\"w\"]}"), "entries");
  assert_error_contains(StateTable::from_text("{\"arenas\": [], \"entries\": [{\"name\": \"a\"}]}"), "arena");
}

void large_entries_lie_in_colours(void **) {
  for (const int64_t end : {0, 1, 64, 4095, 4096, 1000000}) {
    assert_int_equal(backend::place_entry(end, 100, 2), (end + 63) / 64 * 64);
    int64_t in_page[3];
    for (int32_t colour = 0; colour < 3; ++colour) {
      const int64_t offset = backend::place_entry(end, 1 << 20, colour);
      assert_true(offset >= end && offset < end + 64 + 4096);
      assert_int_equal(offset % 64, 0);
      in_page[colour] = offset % 4096;
    }
    // Wherever the arena ends, so that a weight and its slots, each in an arena of its own, always differ.
    assert_int_equal(in_page[0], 0);
    assert_int_equal(in_page[1], 9 * 64);
    assert_int_equal(in_page[2], 18 * 64);
  }
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(text_brings_everything_back),
    cmocka_unit_test(entries_are_checked),
    cmocka_unit_test(bad_text_is_refused),
    cmocka_unit_test(large_entries_lie_in_colours),
};

}  // namespace

TEST_MAIN(kTests)

// SPDX-License-Identifier: Apache-2.0
//
// The source arrow in the conformance suite, and columns whose values lie elsewhere: in dictionaries, behind views. The
// other columns are those of tests/capi/arrow_test.c.
#include "data/format/arrow.h"

#include <cstring>
#include <utility>

#include "arrow_columns.h"
#include "conformance/dataset_conformance.h"
#include "data/pipeline/sources.h"
#include "sample_data.h"

namespace arrow_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::Pipeline;
using tensor::Tensor;

namespace {

// A table with a list, a number and a text in each of 11 rows, in record batches of so many rows.
Pipeline table(int64_t batch_rows) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < 11; ++i)
    texts.emplace_back(i % 4, 'x');
  const Tensor text = assert_ok_value(tensor::make_bytes_tensor({11}, texts));
  const auto rows = assert_ok_value(data::from_slices({{"x", numbered(11, 3)}, {"y", counted(11)}, {"text", text}}));
  ArrowArrayStream stream;
  assert_ok(data::write_arrow(rows, {}, batch_rows, &stream));
  Pipeline pipeline(data::SourceServices{nullptr, data::ArrowStream::take(&stream)});
  const std::vector<std::string> labels{"y"};
  return std::move(pipeline.apply("arrow", {{"labels", labels}}));
}

Pipeline numbers(int64_t batch_rows) {
  ArrowArrayStream stream;
  assert_ok(data::write_arrow(assert_ok_value(sample(11).build()), {}, batch_rows, &stream));
  Pipeline pipeline(data::SourceServices{nullptr, data::ArrowStream::take(&stream)});
  return std::move(pipeline.apply("arrow"));
}

DatasetCase of(std::string name, std::function<Pipeline()> make) {
  return {std::move(name), [make] { return DatasetInstance{make().build()}; }};
}

void streams_conform(void **) {
  const std::vector<DatasetCase> cases = {
      of("arrow, one batch", [] { return table(20); }),
      of("arrow, several batches", [] { return table(3); }),
      of("arrow, shuffle, repeat", [] { return std::move(table(4).shuffle(5).repeat(2)); }),
      of("arrow, batch, prefetch", [] { return std::move(numbers(4).batch(3).prefetch(2)); }),
      of("arrow, shuffle all, batch", [] { return std::move(numbers(1).shuffle(11).batch(4).repeat(3)); }),
  };
  for (const DatasetCase &one : cases) {
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
}

// Batches of the table and the table cut again are the same rows.
void cuts_do_not_matter(void **) {
  const DatasetCase whole = of("arrow, whole", [] { return table(20); });
  DatasetWalk walk = open_walk(whole, context_of(whole));
  const auto expected = take(whole, *walk.iterator, 20);
  for (int64_t rows = 1; rows < 12; ++rows) {
    const DatasetCase cut = of("arrow, cut", [rows] { return table(rows); });
    DatasetWalk other = open_walk(cut, context_of(cut));
    check_equal(cut, expected, take(cut, *other.iterator, 20), "cut");
  }
}

// ---- layouts ----

void dictionaries_are_looked_up(void **) {
  const int32_t offsets[] = {0, 3, 6, 6, 10};
  Column names("u", 3, {nullptr, offsets, "notredblue"});
  names.array.offset = 1;  // red, "", blue
  // Under a null may stand anything.
  const int8_t indices[] = {9, 2, 0, 99, 1, 2};
  const uint8_t validity[] = {0b110110};
  Column colors("c", 5, {validity, indices});
  colors.of(names).array.offset = 1;
  const std::vector<std::string> expected{"blue", "red", "gray", "", "blue"};
  assert_true(texts_in(assert_ok_value(read_column(colors, 5, "x = gray"))) == expected);
  assert_error_contains(read_column(colors, 5), "column 'x', row 2: the value is null");

  const float numbers[] = {0.5F, -1, 8};
  Column values("f", 3, {nullptr, numbers});
  const uint16_t places[] = {2, 0, 1, 2};
  Column column("S", 4, {nullptr, places});
  const Tensor found = assert_ok_value(read_column(column.of(values), 4));
  assert_true(tensor::identical(found, Tensor::from_values<float>({4}, {8, 0.5F, -1, 8}).value()));
  Column pairs("+w:2", 2, {nullptr});
  const Tensor paired = assert_ok_value(read_column(pairs.list_of(column), 2));
  assert_true(tensor::identical(paired, Tensor::from_values<float>({2, 2}, {8, 0.5F, -1, 8}).value()));

  // A null in the dictionary is one wherever it is used.
  const uint8_t without_second[] = {0b101};
  Column gaps("f", 3, {without_second, numbers});
  column.of(gaps);
  assert_error_contains(read_column(column, 4), "column 'x', row 2: the value is null");
  const Tensor filled = assert_ok_value(read_column(column, 4, "x = 7"));
  assert_true(tensor::identical(filled, Tensor::from_values<float>({4}, {8, 0.5F, 7, 8}).value()));
}

void damaged_dictionaries_are_refused(void **) {
  const float numbers[] = {0.5F, -1, 8};
  Column values("f", 3, {nullptr, numbers});
  const int64_t indices[] = {0, 3, -1};
  Column column("l", 2, {nullptr, indices});
  assert_error_contains(read_column(column.of(values), 2), "value 1 is number 3 of a dictionary of 3 values");
  column.array.offset = 1;
  column.array.length = 2;
  assert_error_contains(read_column(column, 2), "value 0 is number 3 of");
  column.array.offset = 2;
  column.array.length = 1;
  assert_error_contains(read_column(column, 1), "value 0 is number -1 of");
  column.array.dictionary = nullptr;
  assert_error_contains(read_column(column, 1), "the batch has no dictionary");
  Column by_float("f", 3, {nullptr, numbers});
  assert_error_contains(read_column(by_float.of(values), 3),
                        "expected integers as indices of a dictionary, format 'f'");
  Column list("+w:3", 1, {nullptr});
  list.list_of(values);
  assert_error_contains(read_column(column.of(list), 1), "expected a dictionary of numbers or texts");
}

// A view as the format has it.
struct View {
  int32_t length;
  union {
    char text[12];
    struct {
      char prefix[4];
      int32_t buffer, offset;
    } place;
  };
};
View inlined(std::string_view text) {
  View view{static_cast<int32_t>(text.size()), {}};
  std::memcpy(view.text, text.data(), text.size());
  return view;
}
View placed(int32_t length, int32_t buffer, int32_t offset) {
  View view{length, {}};
  view.place = {{}, buffer, offset};
  return view;
}

void texts_are_found_by_views(void **) {
  static_assert(sizeof(View) == 16);
  const char first[] = "the first long text, the second long text", second[] = "and a third long text";
  const int64_t sizes[] = {sizeof(first) - 1, sizeof(second) - 1};
  View views[] = {inlined("left out"), inlined(""),      inlined("twelve bytes"), placed(19, 0, 0),
                  placed(20, 0, 21),   placed(-7, 9, 9), placed(21, 1, 0)};
  const uint8_t validity[] = {0b1011111};
  Column column("vu", 6, {validity, views, first, second, sizes});
  column.array.offset = 1;
  const std::vector<std::string> expected{"",     "twelve bytes",         "the first long text", "the second long text",
                                          "none", "and a third long text"};
  assert_true(texts_in(assert_ok_value(read_column(column, 6, "x = none"))) == expected);
  column.schema.format = "vz";
  assert_true(texts_in(assert_ok_value(read_column(column, 6, "x = none"))) == expected);
  column.buffers[0] = nullptr;
  assert_error_contains(read_column(column, 6), "a text has -7 bytes");
  views[5] = placed(22, 1, 0);
  assert_error_contains(read_column(column, 6), "extends beyond the end of its buffer of 21 bytes");
  views[5] = placed(20, 1, -1);
  assert_error_contains(read_column(column, 6), "extends beyond the end of its buffer of 21 bytes");
  views[5] = placed(20, 2, 0);
  assert_error_contains(read_column(column, 6), "a text is in buffer 2 of 2");
  column.buffers[4] = nullptr;
  assert_error_contains(read_column(column, 6), "the buffer of the sizes of its buffers is NULL");
  Column few("vu", 1, {nullptr, views});
  assert_error_contains(read_column(few, 1), "expected 3 buffers, got 2");
  Column short_ones("vu", 2, {nullptr, views + 1, nullptr});
  assert_int_equal(texts_in(assert_ok_value(read_column(short_ones, 2))).size(), 2);
  // Views are what a dictionary's values may be, too.
  const uint8_t indices[] = {1, 0};
  Column both("C", 2, {nullptr, indices});
  assert_string_equal(texts_in(assert_ok_value(read_column(both.of(short_ones), 2)))[0].c_str(), "twelve bytes");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(streams_conform),
    cmocka_unit_test(cuts_do_not_matter),
    cmocka_unit_test(dictionaries_are_looked_up),
    cmocka_unit_test(damaged_dictionaries_are_refused),
    cmocka_unit_test(texts_are_found_by_views),
};
TEST_MAIN(tests)

}  // namespace arrow_test

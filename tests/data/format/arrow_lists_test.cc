// SPDX-License-Identifier: Apache-2.0
//
// Arrow lists of differing length: in, in every way they say which items they have, out, and through the conformance
// suite.
#include <cerrno>
#include <cstring>

#include "arrow_columns.h"
#include "conformance/dataset_conformance.h"
#include "data/pipeline/fingerprint.h"
#include "data/pipeline/sources.h"
#include "sample_data.h"

namespace arrow_lists_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Pipeline;
using tensor::Tensor;

namespace {

using Lists = std::vector<std::vector<float>>;

// The rows of a column of floats, flattened.
Lists lists_of(const data::ArrowValues &values) {
  Lists lists;
  for (const data::RowRange &range : *values.ranges) {
    const Tensor row = assert_ok_value(values.values.slice_rows(range.begin, range.begin + range.count));
    lists.emplace_back(row.data_as<float>(), row.data_as<float>() + row.elements());
  }
  return lists;
}

Lists read_lists(Column &column, int64_t rows, const std::string &name = "x") {
  return lists_of(assert_ok_value(read_table(column, rows, name)).batches[0][0]);
}

std::string refusal(Column &column, int64_t rows, const std::string &name = "x") {
  const auto table = read_table(column, rows, name);
  return table.ok() ? "read" : table.status().to_string();
}

constexpr float kItems[] = {-1, 0, 1, 2, 3, 4, 5, 6, 7};

// ---- in ----

void lists_say_where_their_items_lie(void **) {
  // An offset of the column, one of its items, and items that no list has.
  Column items("f", 8, {nullptr, kItems});
  items.array.offset = 1;
  const int32_t offsets[] = {0, 2, 2, 5, 6};
  const int64_t large_offsets[] = {0, 2, 2, 5, 6};
  const int32_t starts[] = {0, 8, 2, 5}, lengths[] = {2, 0, 3, 1};
  const int64_t large_starts[] = {0, 8, 2, 5}, large_lengths[] = {2, 0, 3, 1};
  const Lists expected{{}, {2, 3, 4}, {5}};
  for (Column column :
       {Column("+l", 3, {nullptr, offsets}), Column("+L", 3, {nullptr, large_offsets}),
        Column("+vl", 3, {nullptr, starts, lengths}), Column("+vL", 3, {nullptr, large_starts, large_lengths})}) {
    column.array.buffers = column.buffers.data();
    column.list_of(items).array.offset = 1;
    const data::ArrowTable table = assert_ok_value(read_table(column, 3, "x"));
    assert_string_equal(table.columns[0].to_string().c_str(), "x: f32[unknown]");
    assert_true(lists_of(table.batches[0][0]) == expected);
    // Only what a list has, where the producer has it.
    assert_ptr_equal(table.batches[0][0].values.data(), kItems + 3);
    assert_int_equal(table.batches[0][0].values.rows(), 4);
  }
  // Views in any order, more than once.
  const int32_t anywhere[] = {5, 0, 5, 1}, counts[] = {3, 1, 0, 7};
  Column views("+vl", 4, {nullptr, anywhere, counts});
  assert_true(read_lists(views.list_of(items), 4) == (Lists{{5, 6, 7}, {0}, {}, {1, 2, 3, 4, 5, 6, 7}}));
  // None at all, with or without buffers.
  Column none("+l", 0, {nullptr, nullptr});
  assert_true(read_lists(none.list_of(items), 0).empty());
  const int32_t same[] = {3, 3, 3};
  Column empty("+l", 2, {nullptr, same});
  assert_true(read_lists(empty.list_of(items), 2) == (Lists{{}, {}}));
}

void items_are_of_any_layout(void **) {
  const int32_t offsets[] = {1, 2, 2, 4};
  Column pairs("+w:2", 4, {nullptr}), numbers("f", 8, {nullptr, kItems}), lists("+l", 3, {nullptr, offsets});
  lists.list_of(pairs.list_of(numbers));
  const data::ArrowTable table = assert_ok_value(read_table(lists, 3, "x"));
  assert_string_equal(table.columns[0].to_string().c_str(), "x: f32[unknown, 2]");
  assert_true(lists_of(table.batches[0][0]) == (Lists{{1, 2}, {}, {3, 4, 5, 6}}));

  const int32_t text_offsets[] = {0, 1, 3, 3, 6};
  Column texts("u", 4, {nullptr, text_offsets, "abbccc"});
  const data::ArrowTable words = assert_ok_value(read_table(lists.list_of(texts), 3, "x"));
  assert_true(texts_in(words.batches[0][0].values) == (std::vector<std::string>{"bb", "", "ccc"}));
  const uint8_t indices[] = {7, 3, 0, 1};
  Column codes("C", 4, {nullptr, indices});
  const data::ArrowTable looked_up = assert_ok_value(read_table(lists.list_of(codes.of(texts)), 3, "x"));
  assert_true(texts_in(looked_up.batches[0][0].values) == (std::vector<std::string>{"ccc", "a", "bb"}));
  const uint8_t bits[] = {0b1010};
  Column truths("b", 4, {nullptr, bits});
  const data::ArrowTable flags = assert_ok_value(read_table(lists.list_of(truths), 3, "x"));
  assert_true(
      tensor::identical(flags.batches[0][0].values, Tensor::from_values<bool>({3}, {true, false, true}).value()));
}

void nulls_are_filled_or_refused(void **) {
  const int32_t offsets[] = {0, 2, 4, 4, 7};
  const uint8_t second_missing[] = {0b1101}, fifth_missing[] = {0b11101111};
  Column items("f", 8, {nullptr, kItems}), column("+l", 4, {second_missing, offsets});
  column.list_of(items);
  assert_non_null(std::strstr(refusal(column, 4).c_str(), "Arrow column 'x', row 1: the value is null"));
  assert_true(read_lists(column, 4, "x = 9") == (Lists{{-1, 0}, {}, {}, {3, 4, 5}}));
  // Under a null may stand anything.
  const int32_t odd[] = {0, 2, -7, 4, 7};
  column.buffers[1] = odd;
  assert_non_null(std::strstr(refusal(column, 4, "x = 9").c_str(), "list 2 has -1 items from item -7 on, of 8"));
  const uint8_t two_missing[] = {0b1001};
  column.buffers[0] = two_missing;
  assert_true(read_lists(column, 4, "x = 9") == (Lists{{-1, 0}, {}, {}, {3, 4, 5}}));

  column.buffers = {nullptr, offsets};
  items.buffers[0] = fifth_missing;
  assert_non_null(std::strstr(refusal(column, 4).c_str(), "Arrow column 'x', row 3: the value is null"));
  assert_true(read_lists(column, 4, "x = 9") == (Lists{{-1, 0}, {1, 2}, {}, {9, 4, 5}}));
  // Of a null that no list has nobody hears.
  const int32_t starts[] = {5, 0, 6}, counts[] = {3, 4, 1};
  Column views("+vl", 3, {nullptr, starts, counts});
  assert_true(read_lists(views.list_of(items), 3) == (Lists{{4, 5, 6}, {-1, 0, 1, 2}, {5}}));
  const uint8_t seventh_missing[] = {0b10111111};
  items.buffers[0] = seventh_missing;
  assert_non_null(std::strstr(refusal(views, 3).c_str(), "Arrow column 'x', row 0: the value is null"));
  const int32_t text_offsets[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  Column texts("u", 8, {fifth_missing, text_offsets, "abcdefgh"});
  const data::ArrowTable table = assert_ok_value(read_table(views.list_of(texts), 3, "x"));
  assert_true(texts_in(table.batches[0][0].values) ==
              (std::vector<std::string>{"a", "b", "c", "d", "", "f", "g", "h"}));
}

void damaged_lists_are_refused(void **) {
  Column items("f", 8, {nullptr, kItems});
  const auto check = [&](const char *format, std::vector<const void *> buffers, const char *what) {
    Column column(format, 2, std::move(buffers));
    column.list_of(items);
    assert_non_null(std::strstr(refusal(column, 2).c_str(), what));
  };
  constexpr int64_t kMost = INT64_MAX;
  const int32_t falling[] = {0, 5, 4}, beyond[] = {0, 2, 9}, before[] = {-1, 2, 3}, after[] = {9, 9, 9};
  check("+l", {nullptr, falling}, "column 'x', batch at row 0: list 1 has -1 items from item 5 on, of 8");
  check("+l", {nullptr, beyond}, "list 1 has 7 items from item 2 on, of 8");
  check("+l", {nullptr, before}, "list 0 has -1 items from item -1 on, of 8");
  check("+l", {nullptr, after}, "list 0 has 0 items from item 9 on, of 8");
  const int64_t largest[] = {0, kMost, kMost}, smallest[] = {INT64_MIN, kMost, 1};
  check("+L", {nullptr, largest}, "list 0 has 9223372036854775807 items from item 0 on, of 8");
  check("+L", {nullptr, smallest}, "list 0 has -1 items");
  const int32_t counts[] = {0, 4};
  check("+vl", {nullptr, falling, counts}, "list 1 has 4 items from item 5 on, of 8");
  check("+vl", {nullptr, beyond, before}, "list 0 has -1 items from item 0 on, of 8");
  check("+vL", {nullptr, largest, largest}, "list 1 has 9223372036854775807 items from item 9223372036854775807 on");
  check("+l", {nullptr, nullptr}, "the buffer of its values is NULL");
  check("+vl", {nullptr, falling, nullptr}, "the buffer of the lengths of its lists is NULL");
  check("+l", {nullptr, falling, falling}, "expected 2 buffers, got 3");
  check("+vl", {nullptr, falling}, "expected 3 buffers, got 2");

  const int32_t offsets[] = {0, 1, 2};
  Column inner("+l", 2, {nullptr, offsets}), outer("+l", 1, {nullptr, offsets}), fixed("+w:2", 1, {nullptr});
  inner.list_of(items);
  assert_non_null(
      std::strstr(refusal(outer.list_of(inner), 1).c_str(),
                  "UNIMPLEMENTED: Arrow column 'x': lists of differing length in lists; expected fixed-size "
                  "lists as items, format '+l'"));
  assert_non_null(std::strstr(refusal(fixed.list_of(inner), 1).c_str(), "lists of differing length in lists"));
  Column codes("c", 1, {nullptr, offsets});
  assert_non_null(std::strstr(refusal(codes.of(inner), 1).c_str(), "expected a dictionary of numbers or texts"));
  inner.array.n_children = 0;
  assert_non_null(std::strstr(refusal(inner, 2).c_str(), "batch at row 0: the list has no child"));
  inner.schema.n_children = 0;
  assert_non_null(std::strstr(refusal(inner, 2).c_str(), "column 'x': the list has no child"));
}

// ---- out and in again ----

// Numbers, pairs and texts in lists of 0 to 4 items, and a number beside them.
DatasetRef ragged(int64_t rows) {
  auto ranges = std::make_shared<data::RowRanges>();
  std::vector<std::string> texts;
  int64_t items = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t count = (3 * i + 1) % 5;
    ranges->push_back({items, count});
    items += count;
  }
  for (int64_t i = 0; i < items; ++i)
    texts.emplace_back(static_cast<size_t>(i % 4), static_cast<char>('a' + i % 26));
  const Tensor numbers = assert_ok_value(numbered(items, 1).reshape({items}));
  const Tensor words = assert_ok_value(tensor::make_bytes_tensor({items}, texts));
  return assert_ok_value(data::from_slices({{"numbers", numbers, data::Role::feature, ranges},
                                            {"y", counted(rows), data::Role::label},
                                            {"pairs", numbered(items, 2), data::Role::feature, ranges},
                                            {"words", words, data::Role::feature, ranges}}));
}

Pipeline streamed(const DatasetRef &dataset, int64_t batch_rows) {
  ArrowArrayStream stream;
  assert_ok(data::write_arrow(dataset, {}, batch_rows, &stream));
  Pipeline pipeline(data::SourceServices{nullptr, data::ArrowStream::take(&stream)});
  const std::vector<std::string> labels{"y"};
  return std::move(pipeline.apply("arrow", {{"labels", labels}}));
}

DatasetCase of(std::string name, std::function<Pipeline()> make) {
  return {std::move(name), [make] { return DatasetInstance{make().build()}; }};
}

void streams_of_lists_conform(void **) {
  const std::vector<DatasetCase> cases = {
      of("lists, one batch", [] { return streamed(ragged(11), 20); }),
      of("lists, several batches", [] { return streamed(ragged(11), 3); }),
      of("lists, shuffle, repeat", [] { return std::move(streamed(ragged(9), 4).shuffle(5).repeat(2)); }),
      of("lists, shuffle all, padded",
         [] {
           return std::move(
               streamed(ragged(11), 4).shuffle(11).apply("padded_batch", {{"batch_size", int64_t{3}}}).prefetch(2));
         }),
      of("lists, only those of one length",
         [] {
           const std::vector<std::string> chosen{"y"};
           return std::move(streamed(ragged(11), 4).apply("select", {{"features", chosen}}).batch(3));
         }),
      of("lists, cache", [] { return std::move(streamed(ragged(5), 2).apply("cache").repeat(2)); }),
  };
  for (const DatasetCase &one : cases) {
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
}

void lists_come_back_as_they_went(void **) {
  const DatasetCase before = of("before", [] { return Pipeline(ragged(11)); });
  const DatasetWalk walk = open_walk(before, context_of(before));
  const auto expected = take(before, *walk.iterator, 20);
  for (int64_t rows = 1; rows < 13; ++rows) {
    const DatasetCase after = of("after", [rows] { return streamed(ragged(11), rows); });
    const DatasetWalk other = open_walk(after, context_of(after));
    check_equal(after, expected, take(after, *other.iterator, 20), "stream");
    assert_true((*other.instance.dataset)->spec() == (*walk.instance.dataset)->spec());
  }
  // Nothing but a schema.
  assert_true(assert_ok_value(streamed(ragged(0), 3).build())->spec() == (*walk.instance.dataset)->spec());
}

// Batches are lists of one length each, dimensions behind one another lists in lists.
void batches_become_lists(void **) {
  Pipeline padded(ragged(5));
  const DatasetRef dataset =
      assert_ok_value(padded.apply("padded_batch", {{"batch_size", int64_t{3}}, {"padding", std::vector<double>(4)}})
                          .apply("select", {{"features", std::vector<std::string>{"pairs"}}})
                          .build());
  ArrowArrayStream stream;
  ArrowSchema schema;
  ArrowArray array;
  assert_ok(data::write_arrow(dataset, {}, 0, &stream));
  assert_int_equal(stream.get_schema(&stream, &schema), 0);
  assert_string_equal(schema.children[0]->format, "+L");
  assert_string_equal(schema.children[0]->children[0]->format, "+w:2");
  assert_string_equal(schema.children[0]->children[0]->children[0]->format, "f");
  for (const int64_t rows : {3, 2}) {
    const int64_t longest = rows == 3 ? 4 : 3;
    assert_int_equal(stream.get_next(&stream, &array), 0);
    const ArrowArray &lists = *array.children[0];
    assert_int_equal(lists.length, rows);
    assert_int_equal(lists.n_buffers, 2);
    for (int64_t i = 0; i <= rows; ++i)
      assert_int_equal(static_cast<const int64_t *>(lists.buffers[1])[i], longest * i);
    assert_int_equal(lists.children[0]->length, longest * rows);
    assert_int_equal(lists.children[0]->children[0]->length, 2 * longest * rows);
    array.release(&array);
  }
  schema.release(&schema);
  stream.release(&stream);
}

DatasetRef images() {
  const data::ElementSpec spec{
      {{"image", data::Role::feature, tensor::DType::u8, {data::unknown_dim(), 2, data::unknown_dim()}}}};
  return data::from_generator(
             spec,
             [](int64_t, int64_t index, data::Element &element) -> base::Result<bool> {
               if (index == 3) return false;
               TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(std::vector<int64_t>{index, 2, 3 - index}));
               TUTTI_ASSIGN(Tensor image, Tensor::zeros(tensor::DType::u8, shape));
               element.components.push_back(std::move(image));
               return true;
             })
      .value();
}

void several_dimensions_differ(void **) {
  ArrowArrayStream stream;
  ArrowSchema schema;
  ArrowArray array;
  assert_ok(data::write_arrow(images(), {}, 10, &stream));
  assert_int_equal(stream.get_schema(&stream, &schema), 0);
  const ArrowSchema *format = schema.children[0];
  for (const char *const expected : {"+L", "+w:2", "+L"}) {
    assert_string_equal(format->format, expected);
    format = format->children[0];
  }
  assert_int_equal(stream.get_next(&stream, &array), 0);
  const ArrowArray &outer = *array.children[0], &inner = *outer.children[0]->children[0];
  const auto offsets = [](const ArrowArray &lists) {
    const auto *const begin = static_cast<const int64_t *>(lists.buffers[1]);
    return std::vector<int64_t>(begin, begin + lists.length + 1);
  };
  // [0, 2, 3], [1, 2, 2] and [2, 2, 1].
  assert_true(offsets(outer) == (std::vector<int64_t>{0, 0, 1, 3}));
  assert_int_equal(outer.children[0]->length, 3);
  assert_true(offsets(inner) == (std::vector<int64_t>{0, 2, 4, 5, 6, 7, 8}));
  assert_int_equal(inner.children[0]->length, 8);
  array.release(&array);
  schema.release(&schema);
  stream.release(&stream);
}

// An element that fails takes its record batch along, as it does with a batch; a walk interrupted goes on.
void failures_and_interrupts_come_through(void **) {
  data::TransformArguments arguments;
  auto calls = std::make_shared<int64_t>(0);
  auto token = base::CancelToken::create();
  arguments.map = [calls, token](const data::Element &input, data::Element &output) -> base::Status {
    if (++*calls == 5) token->set_deadline(base::Deadline::after_ms(0));
    TUTTI_ASSIGN(const int32_t y, input.components[1].scalar_value<int32_t>());
    if (y == 1) return base::invalid_argument("not this one");
    output = input;
    return base::Status();
  };
  data::IteratorContext context;
  context.cancel = token;
  ArrowArrayStream stream;
  ArrowArray array;
  const DatasetRef mapped =
      assert_ok_value(Pipeline(ragged(7)).apply("map_callback", {{"parallelism", int64_t{1}}}, arguments).build());
  assert_error_contains(data::write_arrow(mapped, context, 0, &stream), "batch_rows: expected at least 1, got 0");
  assert_ok(data::write_arrow(mapped, context, 3, &stream));
  assert_int_equal(stream.get_next(&stream, &array), EINVAL);
  assert_non_null(std::strstr(stream.get_last_error(&stream), "not this one"));
  assert_int_equal(stream.get_next(&stream, &array), ETIMEDOUT);
  token->set_deadline(base::Deadline::never());
  for (const int64_t rows : {3, 1}) {
    assert_int_equal(stream.get_next(&stream, &array), 0);
    assert_int_equal(array.length, rows);
    const ArrowArray &label = *array.children[1];
    assert_int_equal(static_cast<const int32_t *>(label.buffers[1])[0], rows == 3 ? 3 : 6);
    array.release(&array);
  }
  assert_int_equal(stream.get_next(&stream, &array), 0);
  assert_null(array.release);
  stream.release(&stream);
}

// ---- slices with ranges ----

void ranges_lie_in_their_tensor(void **) {
  const auto slices = [](data::RowRanges ranges) {
    auto shared = std::make_shared<const data::RowRanges>(std::move(ranges));
    return data::from_slices({{"x", numbered(4, 2), data::Role::feature, shared}, {"y", counted(2)}});
  };
  assert_ok(slices({{0, 4}, {4, 0}}));
  assert_error_contains(slices({{0, 4}, {4, 1}}),
                        "component 'x', element 1: 1 rows from row 4 are not within the 4 rows");
  assert_error_contains(slices({{-1, 1}, {0, 1}}), "element 0: 1 rows from row -1");
  assert_error_contains(slices({{0, -1}, {0, 1}}), "element 0: -1 rows");
  assert_error_contains(slices({{5, 0}, {0, 1}}), "element 0: 0 rows from row 5");
  assert_error_contains(slices({{0, 1}}), "component 'x' has 1 rows but component 'y' has 2");
  const auto hash = [&](data::RowRanges ranges) {
    return assert_ok_value(data::fingerprint_of(*assert_ok_value(slices(std::move(ranges))), {})).value();
  };
  assert_true(hash({{0, 4}, {4, 0}}) == hash({{0, 4}, {4, 0}}));
  assert_false(hash({{0, 4}, {4, 0}}) == hash({{0, 3}, {3, 1}}));
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lists_say_where_their_items_lie),
    cmocka_unit_test(items_are_of_any_layout),
    cmocka_unit_test(nulls_are_filled_or_refused),
    cmocka_unit_test(damaged_lists_are_refused),
    cmocka_unit_test(streams_of_lists_conform),
    cmocka_unit_test(lists_come_back_as_they_went),
    cmocka_unit_test(batches_become_lists),
    cmocka_unit_test(several_dimensions_differ),
    cmocka_unit_test(failures_and_interrupts_come_through),
    cmocka_unit_test(ranges_lie_in_their_tensor),
};
TEST_MAIN(tests)

}  // namespace arrow_lists_test

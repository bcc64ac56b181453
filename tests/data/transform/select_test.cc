// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/transform/select.cc.
#include <algorithm>

#include "data/dataset/stage.h"
#include "sample_data.h"
#include "sample_files.h"
#include "tensor/bytes_tensor.h"
#include "testing.h"

namespace select_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using tensor::Tensor;

namespace {

using Names = std::vector<std::string>;

graph::Attributes named(Names features, Names labels = {}, Names weights = {}) {
  return {{"features", std::move(features)}, {"labels", std::move(labels)}, {"weights", std::move(weights)}};
}

// "a" f32 [3], "big" f32 [columns], "b" i32 [], "c" i64 []; all of which tell their row.
Pipeline wide(int64_t rows, int64_t columns = 2) {
  std::vector<int64_t> numbers;
  for (int64_t row = 0; row < rows; ++row)
    numbers.push_back(1000 + row);
  return Pipeline(data::from_slices({{"a", numbered(rows, 3)},
                                     {"big", numbered(rows, columns)},
                                     {"b", counted(rows)},
                                     {"c", Tensor::from_values<int64_t>({rows}, numbers).value()}}));
}

void components_get_order_names_and_roles(void **) {
  for (const bool is_indexed : {true, false}) {
    Pipeline source = is_indexed ? wide(5) : forward_only(wide(5));
    source.apply("select", named({"c", " first=a"}, {"label = b"}, {"c2 = c"}));
    const DatasetRef dataset = assert_ok_value(source.build());
    assert_string_equal(dataset->spec().to_string().c_str(),
                        "(c: i64[], first: f32[3], label: i32[] label, c2: i64[] weight)");
    assert_int_equal(dataset->cardinality().value(), is_indexed ? 5 : data::Cardinality::kUnknown);
    assert_true((values_of<int64_t>(dataset, "c") == std::vector<int64_t>{1000, 1001, 1002, 1003, 1004}));
    assert_true((values_of<int64_t>(dataset, "c2") == std::vector<int64_t>{1000, 1001, 1002, 1003, 1004}));
    assert_true((values_of<int32_t>(dataset, "label") == std::vector<int32_t>{0, 1, 2, 3, 4}));
    assert_true(values_of<float>(dataset, "first") == values_of<float>(wide(5).build().value(), "a"));
  }
}

// One component of a dataset before and behind its batches.
template <typename T>
void check_batched(Pipeline pipeline, const char *name) {
  const DatasetRef single = assert_ok_value(pipeline.build());
  const DatasetRef batched = assert_ok_value(pipeline.batch(7).build());
  const std::vector<T> expected = values_of<T>(single, name);
  assert_false(expected.empty());
  assert_true(values_of<T>(batched, name) == expected);
}

// Rows that nobody wants take the place of others many times over.
void rows_go_straight_into_batches(void **) {
  constexpr int64_t kRows = 150, kLarge = 40000;
  for (const bool is_indexed : {true, false}) {
    for (const int64_t columns : {int64_t{2}, kLarge}) {
      Pipeline source = is_indexed ? wide(kRows, columns) : forward_only(wide(kRows, columns));
      source.apply("select", named({"b", "twice = b", "a"}, {"c"}));
      check_batched<int32_t>(source, "b");
      check_batched<int32_t>(source, "twice");
      check_batched<float>(source, "a");
      const DatasetRef all = assert_ok_value(source.batch(kRows).build());
      assert_true(values_of<int64_t>(all, "c") == values_of<int64_t>(wide(kRows).build().value(), "c"));
    }
  }
  // An access that always gives everything: that of a cache.
  Pipeline cached = wide(kRows, kLarge).apply("cache").apply("select", named({"b", "twice = b"})).shuffle(kRows);
  const DatasetRef batches = assert_ok_value(cached.batch(100).build());
  const std::vector<int32_t> once = values_of<int32_t>(batches, "b");
  assert_int_equal(once.size(), kRows);
  assert_true(once == values_of<int32_t>(batches, "twice"));
  assert_true(once == values_of<int32_t>(cached.build().value(), "b"));
}

void batches_are_selected_from(void **) {
  const DatasetRef dataset = assert_ok_value(wide(7).batch(3, true).apply("select", named({"b"}, {"a"})).build());
  assert_string_equal(dataset->spec().to_string().c_str(), "(b: i32[batch], a: f32[batch, 3] label)");
  assert_int_equal(dataset->spec().batch_size, 3);
  assert_true(dataset->spec().exact_batches);
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_int_equal(element.rows(), 3);
  assert_int_equal(element.lineage.index, 0);
  assert_true(assert_ok_value(iterator->next(element)));
  assert_int_equal(element.lineage.index, 3);
}

// Components of unknown shape may be left out: what is left is batched.
void what_has_no_shape_is_left_out(void **) {
  data::TransformArguments stretch;
  stretch.map = [](const Element &input, Element &output) -> base::Status {
    TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
    output.components.push_back(Tensor::zeros(tensor::DType::i64, {value, 2}).value());
    output.components.push_back(input.components[0]);
    return base::Status();
  };
  stretch.output_spec =
      data::ElementSpec{{{"points", data::Role::feature, tensor::DType::i64, {data::unknown_dim(), 2}},
                         {"n", data::Role::feature, tensor::DType::i64, {}}}};
  Pipeline pipeline = range(6).apply("map_callback", {}, stretch);
  {
    auto iterator = assert_ok_value(assert_ok_value(Pipeline(pipeline).batch(4).build())->make_iterator({}));
    Element element;
    assert_error_contains(iterator->next(element), "points");
  }
  const std::vector<int64_t> expected{0, 1, 2, 3, 4, 5};
  const DatasetRef forward = assert_ok_value(Pipeline(pipeline).apply("select", named({"n"})).batch(4).build());
  assert_true(values_of<int64_t>(forward, "n") == expected);
  const DatasetRef cached =
      assert_ok_value(pipeline.apply("cache").apply("select", named({"n"})).shuffle(6).batch(4).build());
  std::vector<int64_t> shuffled = values_of<int64_t>(cached, "n");
  std::sort(shuffled.begin(), shuffled.end());
  assert_true(shuffled == expected);
}

// Through transforms that change the order alone, rows are still found in the memory of the source.
void rows_stay_where_they_are(void **) {
  const Tensor x = numbered(10, 3);
  Pipeline pipeline(data::from_slices({{"x", x}, {"y", counted(10), data::Role::label}}));
  pipeline.apply("skip", {{"count", int64_t{2}}}).apply("select", named({"first = x", "second = x"}));
  const DatasetRef dataset = assert_ok_value(pipeline.apply("take", {{"count", int64_t{5}}}).build());
  const auto access = assert_ok_value(dataset->random_access({}, data::Dataset::Access::in_order));
  assert_true(access != nullptr);
  assert_int_equal(access->size(), 5);
  assert_true(access->lies_in_memory());
  int64_t positions[] = {4, 0};
  const std::byte *rows[4] = {};
  access->locate(positions, rows);
  const auto row = [&](int64_t number) { return x.data_as<std::byte>() + number * 12; };
  assert_ptr_equal(rows[0], row(6));
  assert_ptr_equal(rows[1], row(6));
  assert_ptr_equal(rows[2], row(2));
  assert_int_equal(positions[0], 6);
  Element element;
  assert_ok(access->element(1, element));
  assert_int_equal(element.components.size(), 2);
  assert_ptr_equal(element.components[0].data(), row(3));
}

// A batch of rows that lie side by side is a view of them.
void batches_are_views(void **) {
  const Tensor x = numbered(64, 16);
  Pipeline pipeline(data::from_slices({{"y", counted(64)}, {"x", x}}));
  const DatasetRef batches = assert_ok_value(pipeline.apply("select", named({"x"})).batch(32).build());
  auto iterator = assert_ok_value(batches->make_iterator({}));
  Element batch;
  assert_true(assert_ok_value(iterator->next(batch)));
  assert_int_equal(batch.components.size(), 1);
  assert_ptr_equal(batch.components[0].data(), x.data());
}

void texts_still_come_side_by_side(void **) {
  TemporaryDirectory folder;
  write_bytes(folder / "a.txt", "one\ntwo\nthree\n");
  Pipeline lines;
  lines.apply("text_lines", {{"paths", Names{folder / "a.txt"}}}).apply("select", named({"line = text"}));
  const DatasetRef dataset = assert_ok_value(lines.build());
  data::IteratorContext context;
  context.cancel = base::CancelToken::create();
  assert_true(assert_ok_value(dataset->open(context))->gives_texts());
  const DatasetRef batches = assert_ok_value(lines.batch(3).build());
  auto iterator = assert_ok_value(batches->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_string_equal(std::string(tensor::bytes_at(element.components[0], 2)).c_str(), "three");
}

void wrong_names_are_explained(void **) {
  assert_error_contains(wide(3).apply("select", named({"x"})).build(), "'x'");
  assert_error_contains(wide(3).apply("select", named({"x"})).build(), "big");
  assert_error_contains(wide(3).apply("select", named({"new = x"})).build(), "'x'");
  assert_error_contains(wide(3).apply("select", named({"a"}, {"a"})).build(), "component 'a' is named twice");
  assert_error_contains(wide(3).apply("select", named({"a", "a = b"})).build(), "component 'a' is named twice");
  assert_error_contains(wide(3).apply("select", named({"= b"})).build(), "name");
  assert_error_contains(wide(3).apply("select").build(), "at least one of (a: f32[3], big: f32[2]");
  // A name may have an equals sign itself.
  Pipeline odd(data::from_slices({{"a=b", counted(3)}, {"b", counted(3)}}));
  assert_string_equal(assert_ok_value(odd.apply("select", named({"a=b"})).build())->spec().to_string().c_str(),
                      "(a=b: i32[])");
  // What changes nothing is no transform.
  assert_string_equal(assert_ok_value(sample().apply("select", named({"x"}, {"y"})).build())->kind().c_str(), "slices");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(components_get_order_names_and_roles),
    cmocka_unit_test(rows_go_straight_into_batches),
    cmocka_unit_test(batches_are_selected_from),
    cmocka_unit_test(what_has_no_shape_is_left_out),
    cmocka_unit_test(rows_stay_where_they_are),
    cmocka_unit_test(batches_are_views),
    cmocka_unit_test(texts_still_come_side_by_side),
    cmocka_unit_test(wrong_names_are_explained),
};
TEST_MAIN(tests)

}  // namespace select_test

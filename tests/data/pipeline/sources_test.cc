// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/source/: slices, tensors, range.
#include "data/pipeline/sources.h"

#include "sample_data.h"
#include "testing.h"

namespace sources_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Element;
using tensor::Tensor;

namespace {

void slices_of_different_lengths_name_both(void **) {
  assert_error_contains(data::from_slices({{"x", numbered(10, 2)}, {"y", counted(9)}}),
                        "component 'x' has 10 rows but component 'y' has 9");
  assert_error_contains(data::from_slices({}), "expected at least one tensor");
  assert_error_contains(data::from_slices({{"x", Tensor()}}), "component 'x' has no tensor");
  assert_error_contains(data::from_slices({{"x", Tensor::scalar(1.0f).value()}}), "component 'x' is a scalar");
  assert_error_contains(data::from_slices({{"x", counted(2)}, {"x", counted(2)}}), "two components are called 'x'");
  assert_error_contains(data::from_slices({{"", counted(2)}}), "component 0 has no name");
}

void slices_are_views_of_borrowed_memory(void **) {
  alignas(64) static float memory[64 * 16];
  for (int i = 0; i < 64 * 16; ++i)
    memory[i] = static_cast<float>(i);
  int releases = 0;
  {
    auto buffer = tensor::Buffer::borrow(
        memory, sizeof(memory), [&] { ++releases; }, tensor::Buffer::Access::read_only);
    DatasetRef dataset = assert_ok_value(
        data::from_slices({{"x", Tensor::from_buffer(tensor::DType::f32, {64, 16}, std::move(buffer)).value()}}));
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    Element element;
    assert_true(assert_ok_value(iterator->next(element)));
    assert_true(assert_ok_value(iterator->next(element)));
    assert_ptr_equal(element.components[0].data(), memory + 16);
    assert_string_equal(element.components[0].describe().c_str(), "f32 [16]");
    // A batch of neighbours is a view too.
    const DatasetRef batched = assert_ok_value(data::Pipeline(dataset).batch(32).build());
    auto batches = assert_ok_value(batched->make_iterator({}));
    assert_true(assert_ok_value(batches->next(element)));
    assert_ptr_equal(element.components[0].data(), memory);
    assert_true(assert_ok_value(batches->next(element)));
    assert_ptr_equal(element.components[0].data(), memory + 32 * 16);
    assert_false(assert_ok_value(batches->next(element)));
    // An element keeps the memory after everything else is gone.
    assert_true(assert_ok_value(iterator->next(element)));
    iterator.reset();
    batches.reset();
    dataset.reset();
    assert_int_equal(releases, 0);
    assert_true(element.components[0].data_as<float>()[0] == 32.0f);
  }
  assert_int_equal(releases, 1);
}

void a_failed_source_releases_what_it_was_given(void **) {
  static float memory[4];
  int releases = 0;
  std::vector<data::NamedTensor> tensors{{"y", counted(3)}, {"x", Tensor()}};
  auto buffer = tensor::Buffer::borrow(memory, sizeof(memory), [&] { ++releases; });
  tensors[1].tensor = Tensor::from_buffer(tensor::DType::f32, {4}, std::move(buffer)).value();
  assert_false(data::from_slices(std::move(tensors)).ok());
  assert_int_equal(releases, 1);
}

void tensors_are_one_element(void **) {
  const DatasetRef dataset =
      assert_ok_value(data::from_tensors({{"x", numbered(2, 3)}, {"y", counted(5), data::Role::label}}));
  assert_string_equal(dataset->spec().to_string().c_str(), "(x: f32[2, 3], y: i32[5] label)");
  assert_int_equal(dataset->cardinality().value(), 1);
}

void ranges_count(void **) {
  const auto values = [](int64_t start, int64_t stop, int64_t step) {
    return values_of<int64_t>(data::from_range(start, stop, step).value(), "value");
  };
  assert_true((values(2, 9, 3) == std::vector<int64_t>{2, 5, 8}));
  assert_true((values(2, 8, 3) == std::vector<int64_t>{2, 5}));
  assert_true((values(5, 1, -2) == std::vector<int64_t>{5, 3}));
  assert_true(values(5, 1, 1).empty());
  assert_true((values(INT64_MIN, INT64_MAX, INT64_MAX) == std::vector<int64_t>{INT64_MIN, -1, INT64_MAX - 1}));
  assert_true((values(INT64_MAX, INT64_MIN, INT64_MIN) == std::vector<int64_t>{INT64_MAX, -1}));
  assert_error_contains(data::from_range(0, 5, 0), "expected a step other than 0");
  assert_error_contains(data::from_range(INT64_MIN, INT64_MAX), "too many elements");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(slices_of_different_lengths_name_both),
    cmocka_unit_test(slices_are_views_of_borrowed_memory),
    cmocka_unit_test(a_failed_source_releases_what_it_was_given),
    cmocka_unit_test(tensors_are_one_element),
    cmocka_unit_test(ranges_count),
};
TEST_MAIN(tests)

}  // namespace sources_test

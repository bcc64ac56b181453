// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/transform/batch.cc and unbatch.cc.
#include <set>

#include "sample_data.h"
#include "tensor/bytes_tensor.h"
#include "testing.h"

namespace batch_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using tensor::Tensor;

namespace {

std::vector<int64_t> sizes(const DatasetRef &dataset) {
  std::vector<int64_t> rows;
  auto iterator = dataset->make_iterator({}).value();
  for (Element element; iterator->next(element).value();)
    rows.push_back(element.rows());
  return rows;
}

void rows_are_counted_globally(void **) {
  assert_true((sizes(sample(10).batch(4).build().value()) == std::vector<int64_t>{4, 4, 2}));
  assert_true((sizes(sample(10).shuffle(3).batch(4, true).build().value()) == std::vector<int64_t>{4, 4}));
  assert_true((sizes(sample(3).repeat(2).batch(4).build().value()) == std::vector<int64_t>{4, 2}));
  assert_true((sizes(sample(3).batch(4, true).build().value()).empty()));
}

void ragged_elements_name_component_and_shapes(void **) {
  data::TransformArguments stretch;
  stretch.map = [](const Element &input, Element &output) -> base::Status {
    TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
    output.components.push_back(Tensor::zeros(tensor::DType::i64, {value == 3 ? 5 : 2, 2}).value());
    return base::Status();
  };
  const graph::Dims dims{data::unknown_dim(), 2};
  stretch.output_spec = data::ElementSpec{{{"points", data::Role::feature, tensor::DType::i64, dims}}};
  const DatasetRef dataset = assert_ok_value(range(6).apply("map_callback", {}, stretch).batch(2).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_error_contains(iterator->next(element),
                        "batch: component 'points' has shape [2, 2] in row 0 and [5, 2] in row 1");
  // The batch behind it is the one that it would have been.
  assert_true(assert_ok_value(iterator->next(element)));
  assert_int_equal(element.lineage.index, 4);
  assert_false(assert_ok_value(iterator->next(element)));
}

void buffers_come_back(void **) {
  const DatasetRef dataset = assert_ok_value(sample(1000, 10).shuffle(1000).batch(10).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  std::set<const void *> addresses;
  for (Element element; assert_ok_value(iterator->next(element));) {
    addresses.insert(element.components[0].data());
    element.components.clear();
  }
  assert_int_equal(addresses.size(), 1);
  // A batch that somebody keeps is not written to again.
  auto other = assert_ok_value(dataset->make_iterator({}));
  Element kept;
  assert_true(assert_ok_value(other->next(kept)));
  const Tensor copy = assert_ok_value(kept.components[0].clone());
  for (Element element; assert_ok_value(other->next(element));) {
    assert_ptr_not_equal(element.components[0].data(), kept.components[0].data());
  }
  assert_true(tensor::identical(copy, kept.components[0]));
}

void bytes_are_joined(void **) {
  const Tensor texts = tensor::make_bytes_tensor({3}, {"one", "", "three"}).value();
  const DatasetRef dataset =
      assert_ok_value(Pipeline(data::from_slices({{"text", texts}})).shuffle(3).batch(3).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_string_equal(element.components[0].describe().c_str(), "bytes [3]");
  assert_int_equal(tensor::bytes_total(element.components[0]), 8);
}

void impossible_batches_are_refused(void **) {
  data::TransformArguments none;
  none.filter = [](const Element &, bool &) { return base::Status(); };
  assert_error_contains(sample(10, 1 << 20).apply("filter_callback", {}, none).batch(INT64_MAX / 4).build(),
                        "a batch of component 'x'");
  const Tensor deep = Tensor::zeros(tensor::DType::u8, {1, 1, 1, 1, 1, 1, 1, 1}).value();
  assert_error_contains(Pipeline(data::from_tensors({{"x", deep}})).batch(2).build(), "already has the highest rank 8");
  assert_error_contains(range(3).apply("unbatch").build(), "component 'value' is a scalar");
  const DatasetRef uneven =
      assert_ok_value(Pipeline(data::from_tensors({{"x", counted(2)}, {"y", counted(3)}})).apply("unbatch").build());
  auto iterator = assert_ok_value(uneven->make_iterator({}));
  Element element;
  assert_error_contains(iterator->next(element), "unbatch: components of i32 [2] and i32 [3]");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_are_counted_globally),
    cmocka_unit_test(ragged_elements_name_component_and_shapes),
    cmocka_unit_test(buffers_come_back),
    cmocka_unit_test(bytes_are_joined),
    cmocka_unit_test(impossible_batches_are_refused),
};
TEST_MAIN(tests)

}  // namespace batch_test

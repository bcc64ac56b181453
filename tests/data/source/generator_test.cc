// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/source/generator.cc.
#include "conformance/dataset_conformance.h"
#include "sample_data.h"

namespace generator_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Result;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using tensor::Tensor;

namespace {

// "value": 100 * epoch + index; element 5 fails where it is told so.
Pipeline generated(int64_t count, bool fails = false) {
  return Pipeline(data::from_generator(data::ElementSpec{{{"value", data::Role::feature, tensor::DType::i64, {}}}},
                                       [=](int64_t epoch, int64_t index, Element &element) -> Result<bool> {
                                         if (index >= count) return false;
                                         if (fails && index == 5) return base::data_loss("line 5 is torn");
                                         TUTTI_ASSIGN(Tensor value, Tensor::scalar(100 * epoch + index));
                                         element.components.push_back(std::move(value));
                                         return true;
                                       }));
}

DatasetCase of(std::string name, std::function<Pipeline()> make, bool fails = false) {
  return {std::move(name), [make] { return DatasetInstance{make().build()}; }, 64, nullptr, fails};
}

void generators_conform(void **) {
  const DatasetCase cases[] = {
      of("generator", [] { return generated(10); }),
      of("generator of nothing", [] { return generated(0); }),
      of("generator, batch, repeat, prefetch", [] { return std::move(generated(10).batch(3).repeat(2).prefetch(2)); }),
      of("generator, shuffle", [] { return std::move(generated(40).shuffle(8)); }),
      of("generator, cache, repeat", [] { return std::move(generated(6).apply("cache").repeat(2)); }),
      of(
          "generator failing", [] { return generated(10, true); }, true),
      of(
          "generator failing, batch", [] { return std::move(generated(10, true).batch(4)); }, true),
  };
  for (const DatasetCase &one : cases) {
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
}

void passes_and_places_are_told(void **) {
  assert_true((values_of<int64_t>(assert_ok_value(generated(3).repeat(2).build()), "value") ==
               std::vector<int64_t>{0, 1, 2, 100, 101, 102}));
  auto iterator = assert_ok_value(assert_ok_value(generated(7, true).build())->make_iterator({}));
  Element element;
  for (int64_t i = 0; i < 5; ++i)
    assert_true(assert_ok_value(iterator->next(element)));
  assert_error_contains(iterator->next(element), "generator: the function failed for element 5 of epoch 0");
  assert_true(assert_ok_value(iterator->next(element)));  // behind it
  assert_int_equal(element.lineage.index, 6);
  assert_false(assert_ok_value(iterator->next(element)));
}

void what_does_not_fit_is_refused(void **) {
  const data::ElementSpec spec{{{"value", data::Role::feature, tensor::DType::i32, {}}}};
  const DatasetRef wrong = assert_ok_value(data::from_generator(spec, [](int64_t, int64_t, Element &element) {
    element.components.push_back(Tensor::scalar(int64_t{1}).value());
    return Result<bool>(true);
  }));
  auto iterator = assert_ok_value(wrong->make_iterator({}));
  Element element;
  assert_error_contains(iterator->next(element),
                        "generator: the result of the function: component 'value': expected i32[], got i64 []");
  assert_error_contains(data::from_generator(spec, nullptr), "expected a function");
  assert_error_contains(data::from_generator({}, nullptr), "at least one component");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(generators_conform),
    cmocka_unit_test(passes_and_places_are_told),
    cmocka_unit_test(what_does_not_fit_is_refused),
};
TEST_MAIN(tests)

}  // namespace generator_test

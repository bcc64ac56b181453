// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/pipeline/class_column.cc and lib/data/transform/class_weights.cc.
#include "data/pipeline/class_column.h"

#include <algorithm>

#include "data/dataset/stage.h"
#include "sample_data.h"
#include "tensor/bytes_tensor.h"
#include "testing.h"

namespace class_weights_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using tensor::Tensor;

namespace {

using Counts = std::vector<int64_t>;

// Of 50 rows two are of class 2, eight of class 1, forty of class 0; class 3 never comes.
const Counts kCounts{40, 8, 2, 0};
int32_t class_of(int64_t row) { return row % 25 == 0 ? 2 : row % 6 == 1 ? 1 : 0; }

// What scikit-learn calls "balanced": examples / (classes * examples of the class).
const float kWeights[] = {50.0F / (3 * 40), 50.0F / (3 * 8), 50.0F / (3 * 2)};

template <typename T>
Tensor labels(int64_t rows) {
  std::vector<T> values;
  for (int64_t row = 0; row < rows; ++row)
    values.push_back(static_cast<T>(class_of(row)));
  return Tensor::from_values<T>({rows}, values).value();
}

// "x" f32 [columns], which tells the row, and the label "y".
template <typename T = int32_t>
Pipeline examples(int64_t columns = 3) {
  return Pipeline(data::from_slices({{"x", numbered(50, columns)}, {"y", labels<T>(50), data::Role::label}}));
}

graph::Attributes weighing(Counts counts = kCounts, const char *component = "y") {
  return {{"component", std::string(component)}, {"counts", std::move(counts)}};
}

Pipeline weighed(Pipeline pipeline) { return std::move(pipeline.apply("class_weights", weighing())); }

// Each weight belongs to the row that x tells.
void check_weights(const DatasetRef &dataset, int64_t columns = 3) {
  const std::vector<float> x = values_of<float>(dataset, "x"), weights = values_of<float>(dataset, "weight");
  assert_int_equal(weights.size(), 50);
  double all = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto row = static_cast<int64_t>(x[i * static_cast<size_t>(columns)] / 100);
    assert_true(weights[i] == kWeights[class_of(row)]);
    all += static_cast<double>(weights[i]);
  }
  assert_true(all > 49.9999 && all < 50.0001);
}

void every_row_has_the_weight_of_its_class(void **) {
  for (const bool is_indexed : {true, false}) {
    const auto source = [&] { return is_indexed ? examples() : forward_only(examples()); };
    const DatasetRef single = assert_ok_value(weighed(source()).build());
    assert_string_equal(single->spec().to_string().c_str(), "(x: f32[3], y: i32[] label, weight: f32[] weight)");
    check_weights(single);
    check_weights(assert_ok_value(weighed(source()).batch(7).build()));
    check_weights(assert_ok_value(weighed(source()).shuffle(20).batch(7).build()));
    check_weights(assert_ok_value(weighed(source()).apply("cache").shuffle(50).batch(7).build()));
    const DatasetRef batches = assert_ok_value(weighed(std::move(source().batch(7))).build());
    assert_string_equal(batches->spec().to_string().c_str(),
                        "(x: f32[batch, 3], y: i32[batch] label, weight: f32[batch] weight)");
    check_weights(batches);
  }
  check_weights(assert_ok_value(weighed(std::move(examples().batch(7).apply("cache"))).build()));
}

template <typename T>
void check_type() {
  check_weights(assert_ok_value(weighed(examples<T>()).build()));
  check_weights(assert_ok_value(weighed(std::move(examples<T>().batch(8))).build()));
  Counts counts(4, -1);
  assert_int_equal(
      assert_ok_value(data::count_classes(*assert_ok_value(examples<T>().batch(8).build()), "y", counts, {})), 3);
  assert_true(counts == kCounts);
}

void labels_may_be_of_any_integer_type(void **) {
  check_type<int8_t>();
  check_type<int16_t>();
  check_type<int32_t>();
  check_type<int64_t>();
  check_type<uint8_t>();
  check_type<uint16_t>();
  check_type<uint32_t>();
  check_type<uint64_t>();
}

// A label [1] is one number too, as many file formats give it.
void labels_may_have_an_axis_of_one(void **) {
  const Tensor column = labels<int32_t>(50).reshape({50, 1}).value();
  Pipeline pipeline(data::from_slices({{"x", numbered(50, 3)}, {"y", column, data::Role::label}}));
  check_weights(assert_ok_value(weighed(pipeline).batch(7).build()));
  Counts counts(4);
  assert_ok(data::count_classes(*assert_ok_value(pipeline.build()), "y", counts, {}));
  check_weights(assert_ok_value(weighed(std::move(pipeline.batch(7))).build()));
  assert_true(counts == kCounts);
}

// What lies together in memory is still not copied.
void batches_are_views_still(void **) {
  const Tensor x = numbered(50, 16);
  Pipeline pipeline(data::from_slices({{"x", x}, {"y", labels<int32_t>(50), data::Role::label}}));
  const DatasetRef batches = assert_ok_value(weighed(pipeline).batch(16).build());
  check_weights(batches, 16);
  auto iterator = assert_ok_value(batches->make_iterator({}));
  Element batch;
  assert_true(assert_ok_value(iterator->next(batch)));
  assert_ptr_equal(batch.components[0].data(), x.data());
}

// The first error of a walk, and the elements that came before it.
std::pair<std::string, int64_t> first_error(const DatasetRef &dataset) {
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  for (int64_t before = 0; before < 1000; ++before) {
    const auto more = iterator->next(element);
    if (!more.ok()) return {more.status().to_string(), before};
    if (!*more) break;
  }
  return {"none", -1};
}

void labels_that_are_no_classes_are_named(void **) {
  const Counts ten(10, 1);
  const auto apply = [&](Pipeline pipeline) { return std::move(pipeline.apply("class_weights", weighing(ten))); };
  const char *const wanted = "component 'y': element 10 is of class 10; expected a class from 0 to 9";
  for (const bool is_indexed : {true, false}) {
    const auto source = [&] { return is_indexed ? sample(13) : forward_only(sample(13)); };
    const auto [single, before] = first_error(assert_ok_value(apply(source()).build()));
    assert_contains(single.c_str(), wanted);
    assert_contains(single.c_str(), "[element=10, epoch=0, stage=class_weights]");
    assert_int_equal(before, 10);
    const auto [batched, batches] = first_error(assert_ok_value(apply(std::move(source().batch(4))).build()));
    assert_contains(batched.c_str(),
                    "component 'y': element 10 (row 2 of its batch) is of class 10; expected a class from 0 to 9");
    assert_int_equal(batches, 2);
  }
  // Rows that are copied together: found by position, or one of those read.
  const auto [gathered, rest] =
      first_error(assert_ok_value(apply(std::move(sample(13).shuffle(13))).batch(13).build()));
  assert_contains(gathered.c_str(), "is of class 1");
  assert_contains(gathered.c_str(), "component 'y': element 1");
  const std::string rows = first_error(assert_ok_value(apply(forward_only(sample(13))).batch(12).build())).first;
  assert_contains(rows.c_str(), "component 'y': one of the 12 elements up to element 11 is of class 10; expected");
  assert_contains(rows.c_str(), "[element=11, epoch=0, elements=12, stage=class_weights]");
  // An error costs one element, and the walk goes on.
  auto iterator = assert_ok_value(assert_ok_value(apply(forward_only(sample(13))).build())->make_iterator({}));
  int64_t good = 0, bad = 0;
  for (Element element;;) {
    const auto more = iterator->next(element);
    if (more.ok() && !*more) break;
    ++(more.ok() ? good : bad);
  }
  assert_int_equal(good, 10);
  assert_int_equal(bad, 3);
}

void odd_labels_are_refused(void **) {
  const auto error_of = [](Tensor label, Counts counts) {
    Pipeline pipeline(data::from_slices({{"y", std::move(label)}}));
    return first_error(assert_ok_value(pipeline.apply("class_weights", weighing(std::move(counts))).build())).first;
  };
  const auto of = [](auto value) { return Tensor::from_values<decltype(value)>({1}, {value}).value(); };
  assert_contains(error_of(of(int8_t{-1}), Counts(300, 1)).c_str(), "is of class -1; expected a class from 0 to 299");
  assert_contains(error_of(of(INT64_MIN), {1}).c_str(), "is of class -9223372036854775808; expected");
  assert_contains(error_of(of(UINT64_MAX), {1}).c_str(), "is of class 18446744073709551615; expected");
  assert_contains(error_of(of(int32_t{1}), {3, 0}).c_str(), "element 0 is of class 1, whose count is 0");
}

void what_makes_no_weights_is_explained(void **) {
  const auto build = [](Pipeline pipeline, graph::Attributes attributes) {
    return pipeline.apply("class_weights", std::move(attributes)).build();
  };
  assert_error_contains(build(examples(), weighing(kCounts, "z")), "there is no component 'z'");
  assert_error_contains(build(examples(), weighing({0, 0})), "counts: expected a number above 0");
  assert_error_contains(build(examples(), weighing({})), "counts: expected a number above 0");
  assert_error_contains(build(examples(), weighing({-1})), "counts");
  assert_error_contains(build(examples(), {{"component", std::string("y")}}), "counts");
  graph::Attributes taken = weighing();
  taken.emplace("name", std::string("x"));
  assert_error_contains(build(examples(), taken), "two components are called 'x'");
  // One-hot labels, of any type, and what is no number at all.
  const char *const advice = "convert one-hot labels by a map with argmax";
  assert_error_contains(build(examples(), weighing(kCounts, "x")), advice);
  assert_error_contains(build(std::move(examples().batch(4)), weighing(kCounts, "x")),
                        "component 'x': expected a single integer for each row, the number of its class, got x: f32");
  const Tensor words = assert_ok_value(tensor::make_bytes_tensor({1}, std::vector<std::string>{"cat"}));
  assert_error_contains(build(Pipeline(data::from_slices({{"y", words}})), weighing()), "got y: bytes[]");
}

base::Result<int64_t> count(const DatasetRef &dataset, Counts &counts, data::IteratorContext context = {}) {
  return data::count_classes(*dataset, "y", counts, context);
}

void classes_are_counted(void **) {
  for (const bool is_indexed : {true, false}) {
    const auto source = [&] { return is_indexed ? examples() : forward_only(examples()); };
    for (Pipeline pipeline : {source(), source().batch(7), source().shuffle(20).batch(1), source().batch(100)}) {
      const DatasetRef dataset = assert_ok_value(pipeline.build());
      Counts counts(4, 99), none;
      assert_int_equal(assert_ok_value(count(dataset, counts)), 3);
      assert_true(counts == kCounts);
      assert_int_equal(assert_ok_value(count(dataset, none)), 3);
    }
  }
  Counts counts(4, 99), none;
  const DatasetRef empty = assert_ok_value(sample(0).build());
  assert_int_equal(assert_ok_value(count(empty, counts)), 0);
  assert_true(counts == Counts(4, 0));
  assert_int_equal(assert_ok_value(count(empty, none)), 0);
}

void labels_that_cannot_be_counted_are_named(void **) {
  Counts ten(10), none;
  for (const bool is_indexed : {true, false}) {
    const auto source = [&] { return is_indexed ? sample(13) : forward_only(sample(13)); };
    const base::Status single = count(assert_ok_value(source().build()), ten).status();
    assert_true(single.code() == base::Code::out_of_range);
    assert_contains(single.to_string().c_str(),
                    "component 'y': element 10 is of class 10; expected a class from 0 to 9 [element=10, epoch=0");
    const base::Status batched = count(assert_ok_value(source().batch(4).build()), ten).status();
    assert_contains(batched.to_string().c_str(), "element 10 (row 2 of its batch) is of class 10; expected");
  }
  const Tensor rubbish = Tensor::from_values<int64_t>({2}, {5, int64_t{1} << 40}).value();
  const DatasetRef much = assert_ok_value(Pipeline(data::from_slices({{"y", rubbish}})).build());
  assert_error_contains(count(much, none), "element 1 is of class 1099511627776; expected a class from 0 to 16777215");
  assert_error_contains(count(assert_ok_value(examples().repeat().build()), ten), "no end; count its classes before");
  assert_error_contains(data::count_classes(*assert_ok_value(examples().build()), "x", ten, {}), "one-hot");
  assert_error_contains(data::count_classes(*assert_ok_value(examples().build()), "z", ten, {}), "no component 'z'");
}

// A feed that gives nothing: the call ends when its time is up, or when it is cancelled.
void counting_can_be_ended(void **) {
  const auto feed = assert_ok_value(data::Feed::create({{{"y", data::Role::label, tensor::DType::i32, {}}}}, 4));
  Counts counts(4);
  data::IteratorContext context;
  context.cancel = base::CancelToken::create(base::Deadline::after_ms(5));
  assert_true(count(feed->dataset(), counts, context).status().code() == base::Code::deadline_exceeded);
  context.cancel = base::CancelToken::create();
  context.cancel->cancel();
  assert_true(count(assert_ok_value(examples().build()), counts, context).status().code() == base::Code::cancelled);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_row_has_the_weight_of_its_class),   cmocka_unit_test(labels_may_be_of_any_integer_type),
    cmocka_unit_test(labels_may_have_an_axis_of_one),          cmocka_unit_test(batches_are_views_still),
    cmocka_unit_test(labels_that_are_no_classes_are_named),    cmocka_unit_test(odd_labels_are_refused),
    cmocka_unit_test(what_makes_no_weights_is_explained),      cmocka_unit_test(classes_are_counted),
    cmocka_unit_test(labels_that_cannot_be_counted_are_named), cmocka_unit_test(counting_can_be_ended),
};
TEST_MAIN(tests)

}  // namespace class_weights_test

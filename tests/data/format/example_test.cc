// SPDX-License-Identifier: Apache-2.0
//
// tf.train.Example against what TensorFlow wrote (golden/make_golden.py).
#include "data/format/example.h"
#include "data/format/encode_example.h"

#include <cmath>
#include <limits>

#include "data/format/record.h"
#include "sample_files.h"

namespace example_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::ExampleParser;
using tensor::DType;
using tensor::Tensor;

namespace {

using Strings = std::vector<std::string>;

const std::string kExamples = GOLDEN_FOLDER "/examples.tfrecord";

data::Pipeline examples(const Strings &features, graph::Attributes more = {}) {
  more.insert_or_assign("features", features);
  return std::move(begin_with("tfrecord", {{"paths", Strings{kExamples}}}).apply("parse_example", more));
}

template <typename T>
void expect(const Tensor &tensor, const std::vector<T> &expected) {
  const auto values = assert_ok_value(tensor.values<T>());
  if (std::vector<T>(values.begin(), values.end()) != expected) fail_msg("got %s", tensor.to_string().c_str());
}

void features_of_every_kind_are_read(void **) {
  const auto dataset = assert_ok_value(
      examples({"box: f32[2, 2]", "label: i64", "words: bytes[?]", "ids: i64[?]", "name: bytes", "points: f64[?, 3]"},
               {{"labels", Strings{"label"}}})
          .build());
  assert_string_equal(dataset->spec().to_string().c_str(),
                      "(box: f32[2, 2], label: i64[] label, words: bytes[unknown], ids: i64[unknown], name: bytes[], "
                      "points: f64[unknown, 3])");
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  data::Element one, two, three, none;
  assert_true(assert_ok_value(iterator->next(one)));
  assert_true(assert_ok_value(iterator->next(two)));
  assert_true(assert_ok_value(iterator->next(three)));
  assert_false(assert_ok_value(iterator->next(none)));
  for (const data::Element *element : {&one, &two, &three})
    assert_ok(data::check_element(*element, dataset->spec(), "example"));
  const float infinity = std::numeric_limits<float>::infinity();
  expect<float>(one.components[0], {0.5f, -1.5f, 2.0f, 1e30f});
  expect<float>(three.components[0], {infinity, -infinity, 0.0f, -0.0f});
  assert_true(std::signbit(three.components[0].data_as<float>()[3]));
  expect<int64_t>(one.components[1], {3});
  expect<int64_t>(two.components[1], {-4});
  assert_string_equal(one.components[2].to_string().c_str(),
                      tensor::make_bytes_tensor({3}, {"a", "", "ccc"}).value().to_string().c_str());
  assert_int_equal(two.components[2].elements(), 0);    // a list of nothing
  assert_int_equal(three.components[2].elements(), 0);  // no list
  expect<int64_t>(one.components[3], {1, -1, INT64_MAX, INT64_MIN});
  expect<int64_t>(two.components[3], {});
  assert_int_equal(tensor::bytes_at(two.components[4], 0).size(), 256);
  assert_true(tensor::bytes_at(three.components[4], 0).empty());
  expect<double>(one.components[5], {1, 2, 3, 4, 5, 6});
  assert_true(one.components[5].shape() == (tensor::Shape{2, 3}));
  assert_true(two.components[5].shape() == (tensor::Shape{0, 3}));
}

void types_and_defaults_convert(void **) {
  const auto dataset = assert_ok_value(
      examples({"label: i8", "points: f16[3] = 7", "missing: i32[2] = -5", "gone: bytes = none"}).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  data::Element element;
  assert_error_contains(iterator->next(element), "feature 'points': expected f16[3], got 6 values");
  assert_true(assert_ok_value(iterator->next(element)));
  expect<int8_t>(element.components[0], {-4});
  assert_true(static_cast<float>(element.components[1].data_as<tensor::Half>()[2]) == 7.0f);
  expect<int32_t>(element.components[2], {-5, -5});
  assert_true(tensor::bytes_at(element.components[3], 0) == "none");
  assert_true(assert_ok_value(iterator->next(element)));
  assert_true(static_cast<float>(element.components[1].data_as<tensor::Half>()[2]) == 9.0f);
}

// The batch's rows are filled without tensors in between; the bytes must be the same.
void rows_are_the_elements(void **) {
  const Strings features{"label: i64", "box: f32[4]", "missing: i32[2] = -5"};
  const auto whole = assert_ok_value(examples(features).batch(3).build());
  const auto single = assert_ok_value(examples(features).build());
  auto batches = assert_ok_value(whole->make_iterator({})), elements = assert_ok_value(single->make_iterator({}));
  data::Element batch, element;
  assert_true(assert_ok_value(batches->next(batch)));
  for (int64_t row = 0; row < 3; ++row) {
    assert_true(assert_ok_value(elements->next(element)));
    for (size_t i = 0; i < features.size(); ++i)
      assert_true(tensor::identical(assert_ok_value(batch.components[i].row(row)), element.components[i]));
  }
}

void mistakes_name_the_feature(void **) {
  const auto first_error = [](const Strings &features) {
    const auto dataset = assert_ok_value(examples(features).build());
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    data::Element element;
    return iterator->next(element).status();
  };
  assert_error_contains(first_error({"lable: i64"}),
                        "feature 'lable': expected i64[], got nothing, and it has no default");
  assert_error_contains(first_error({"label: f32"}), "feature 'label': expected f32[], got a int64_list");
  assert_error_contains(first_error({"box: i64[4]"}), "feature 'box': expected i64[4], got a float_list");
  assert_error_contains(first_error({"ids: i32[4]"}), "the value 9223372036854775807, which does not fit");
  assert_error_contains(first_error({"words: bytes[2]"}), "expected bytes[2], got 3 values");
  assert_error_contains(first_error({"ids: i64[?, 3]"}), "expected i64[unknown, 3], got 4 values");
  assert_error_contains(first_error({"box: f32[3]"}), ("[element=0, epoch=0, file=" + kExamples).c_str());
  const auto build = [](const Strings &features, graph::Attributes more = {}) {
    return examples(features, more).build();
  };
  assert_error_contains(build({"label"}), "field 'label': missing ':'; expected NAME: TYPE[DIMENSIONS] = DEFAULT");
  assert_error_contains(build({"label: i65"}), "field 'label: i65'");
  assert_error_contains(build({"box: f32[4, ?]"}), "bad dimension '?'");
  assert_error_contains(build({"box: f32[-1]"}), "bad dimension '-1'");
  assert_error_contains(build({"label: i8 = 300"}), "the default is not a valid i8");
  assert_error_contains(build({"x: f32[4194305] = 0"}), "a default is for at most 4194304 elements");
  assert_error_contains(build({"x: bytes[999999999999] = a"}), "a default is for at most 4194304 elements");
  assert_error_contains(build({"ids: i64[?] = 3"}), "cannot have a default other than the empty one");
  assert_error_contains(build({"a: i64", "a: f32"}), "two components are called 'a'");
  assert_error_contains(build({"label: i64"}, {{"labels", Strings{"lable"}}}), "did you mean 'label'?");
  assert_error_contains(build({"label: i64"}, {{"input", std::string("recrd")}}), "recrd");
  assert_error_contains(
      begin_with("range", {{"stop", int64_t{3}}}).apply("parse_example", {{"features", Strings{"a: i64"}}}).build(),
      "there is no component of dtype bytes");
  assert_error_contains(begin_with("tfrecord", {{"paths", Strings{kExamples}}})
                            .batch(2)
                            .apply("parse_example", {{"features", Strings{"a: i64"}}})
                            .build(),
                        "it must come before batch");
}

// What we write from what we read is, byte by byte, what TensorFlow wrote.
void examples_are_written_as_tensorflow_does(void **) {
  const auto records = texts_of(assert_ok_value(begin_with("tfrecord", {{"paths", Strings{kExamples}}}).build()));
  const auto vector = [](auto values) {
    return Tensor::from_values({static_cast<int64_t>(values.size())},
                               std::span<const typename decltype(values)::value_type>(values))
        .value();
  };
  const Tensor points = Tensor::from_values<float>({2, 3}, {1, 2, 3, 4, 5, 6}).value();
  std::map<std::string, Tensor> features{{"label", vector(std::vector<int32_t>{3})},
                                         {"box", vector(std::vector<double>{0.5, -1.5, 2.0, 1e30f})},
                                         {"name", tensor::make_bytes_tensor({}, {"first"}).value()},
                                         {"words", tensor::make_bytes_tensor({3}, {"a", "", "ccc"}).value()},
                                         {"ids", vector(std::vector<int64_t>{1, -1, INT64_MAX, INT64_MIN})},
                                         {"points", points}};
  assert_true(assert_ok_value(data::encode_example(features)) == records[0]);
  features["label"] = vector(std::vector<int16_t>{-4});
  features["box"] = vector(std::vector<float>{1, 2, 3, 4});
  features["words"] = tensor::make_bytes_tensor({0}, {}).value();
  features["ids"] = vector(std::vector<int64_t>{});
  std::string all_bytes;
  for (int i = 0; i < 256; ++i)
    all_bytes.push_back(static_cast<char>(i));
  features["name"] = tensor::make_bytes_tensor({}, {all_bytes}).value();
  features.erase("points");
  assert_true(assert_ok_value(data::encode_example(features)) == records[1]);
  assert_error_contains(data::encode_example({{"big", vector(std::vector<uint64_t>{UINT64_MAX})}}),
                        "the value 18446744073709551615 does not fit an int64 list");
}

// Unpacked lists, equal names, unknown fields.
void other_writers_are_understood(void **) {
  const auto message = [](char tag, const std::string &text) {
    return std::string{static_cast<char>(tag << 3 | 2), static_cast<char>(text.size())} + text;
  };
  const auto entry = [&](const std::string &key, const std::string &feature) {
    return message(1, message(1, key) + message(2, feature));
  };
  const std::string unpacked("\x08\x05\x08\x06\x0a\x01\x07", 7);  // 5, 6, then packed 7
  const std::string floats("\x0d\0\0\x80\x3f\x0d\0\0\0\x40", 10);
  const std::string example =
      message(7, "unknown") + message(1, entry("a", message(3, std::string("\x08\x01", 2))) +
                                             entry("a", message(3, unpacked)) + entry("b", message(2, floats)));
  const ExampleParser parser = assert_ok_value(ExampleParser::create({"a: i64[3]", "b: f32[2]"}));
  std::vector<Tensor> tensors(2);
  assert_ok(parser.parse(example, tensors));
  expect<int64_t>(tensors[0], {5, 6, 7});
  expect<float>(tensors[1], {1, 2});
  for (size_t size = 1; size < example.size(); ++size) {
    const base::Status status = parser.parse(example.substr(0, size), tensors);
    if (size != 9) assert_error_contains(status, "corrupt Example");
  }
}

// Numbers may be one text, as they lie in memory; the same into rows of a batch as into tensors of their own.
void numbers_are_read_from_one_text(void **) {
  const std::string pixels("\0\x01\xfe\xff\x7f\x80", 6);
  const std::string floats("\0\0\x80\x3f\0\0\0\xc0", 8);  // 1, -2
  const std::string example = assert_ok_value(
      data::encode_example({{"pixels", tensor::make_bytes_tensor({}, {pixels}).value()},
                            {"floats", tensor::make_bytes_tensor({1}, {floats}).value()},
                            {"two", tensor::make_bytes_tensor({2}, {pixels, pixels}).value()},
                            {"list", Tensor::from_values<uint8_t>({2, 3}, {0, 1, 254, 255, 127, 128}).value()},
                            {"none", tensor::make_bytes_tensor({}, {""}).value()}}));
  const auto parse = [&](const Strings &features, std::vector<Tensor> &tensors) {
    tensors.resize(features.size());
    return assert_ok_value(ExampleParser::create(features)).parse(example, tensors);
  };
  std::vector<Tensor> tensors;
  assert_ok(parse({"pixels: u8[2, 3]", "list: u8[2, 3]", "floats: f32[2]", "none: u8[?, 4]"}, tensors));
  expect<uint8_t>(tensors[0], {0, 1, 254, 255, 127, 128});
  assert_true(tensor::identical(tensors[0], tensors[1]));
  expect<float>(tensors[2], {1, -2});
  assert_true(tensors[3].shape() == (tensor::Shape{0, 4}));
  assert_ok(parse({"pixels: i16[?]"}, tensors));
  expect<int16_t>(tensors[0], {0x0100, -2, -32641});
  const ExampleParser parser = assert_ok_value(ExampleParser::create({"pixels: u8[2, 3]"}));
  uint8_t rows[12] = {};
  const data::RowTarget target{reinterpret_cast<std::byte *>(rows), 6};
  assert_ok(parser.parse_row(example, {&target, 1}, 1));
  assert_memory_equal(rows + 6, pixels.data(), 6);
  assert_true(std::all_of(rows, rows + 6, [](uint8_t value) { return value == 0; }));
  assert_error_contains(parse({"pixels: u8[5]"}, tensors), "feature 'pixels': expected u8[5], got 6 values");
  assert_error_contains(parse({"pixels: f32[?]"}, tensors),
                        "got a text of 6 bytes, which is not a whole number of values");
  assert_error_contains(parse({"two: u8[12]"}, tensors),
                        "got a bytes_list of 2 texts instead of one text with all values");
  // A text that stands where one number is expected is a mistake, and so are truth values of any bits.
  assert_error_contains(parse({"pixels: u8"}, tensors), "expected u8[], got a bytes_list");
  assert_error_contains(parse({"pixels: bool[6]"}, tensors), "expected boolean[6], got a bytes_list");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(features_of_every_kind_are_read),
    cmocka_unit_test(types_and_defaults_convert),
    cmocka_unit_test(rows_are_the_elements),
    cmocka_unit_test(mistakes_name_the_feature),
    cmocka_unit_test(examples_are_written_as_tensorflow_does),
    cmocka_unit_test(other_writers_are_understood),
    cmocka_unit_test(numbers_are_read_from_one_text),
};
TEST_MAIN(tests)

}  // namespace example_test

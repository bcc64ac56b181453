// SPDX-License-Identifier: Apache-2.0
//
// tf.train.SequenceExample against what TensorFlow reads in files that it wrote (golden/make_golden.py).
#include "data/format/sequence_example.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/json.h"
#include "data/format/encode_example.h"
#include "sample_files.h"

namespace sequence_example_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::SequenceExampleParser;
using tensor::DType;
using tensor::Tensor;

namespace {

using Strings = std::vector<std::string>;

const std::string kExamples = GOLDEN_FOLDER "/sequence_examples.tfrecord";
const Strings kContext{"id: i64", "speaker: bytes = nobody"};
const Strings kSequences{"frames: f32[2]",    "label: i64",     "word: bytes",
                         "letters: bytes[?]", "tokens: i64[?]", "points: f32[?]"};

data::Pipeline sequences(const Strings &lists, const Strings &context = {}, graph::Attributes more = {}) {
  more.insert_or_assign("sequences", lists);
  more.insert_or_assign("context", context);
  return std::move(begin_with("tfrecord", {{"paths", Strings{kExamples}}}).apply("parse_sequence_example", more));
}

std::vector<data::Element> elements_of(const data::DatasetRef &dataset) {
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  std::vector<data::Element> elements;
  for (data::Element element; assert_ok_value(iterator->next(element));) {
    assert_ok(data::check_element(element, dataset->spec(), "sequence example"));
    elements.push_back(element);
  }
  return elements;
}

base::Status first_error(const Strings &lists, const Strings &context = {}) {
  const auto dataset = assert_ok_value(sequences(lists, context).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  data::Element element;
  for (int i = 0; i < 4; ++i) {
    const auto more = iterator->next(element);
    if (!more.ok()) return more.status();
  }
  return base::Status();
}

std::string digits(std::string_view text) {
  std::string all;
  for (const char byte : text) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    all += two;
  }
  return all;
}

// One value of a tensor against the text that the script wrote for it.
void check_value(const Tensor &tensor, int64_t index, const std::string &expected) {
  if (tensor.dtype() == DType::bytes) {
    assert_string_equal(digits(tensor::bytes_at(tensor, index)).c_str(), expected.c_str());
  } else if (tensor.dtype() == DType::f32) {
    const float value = std::strtof(expected.c_str(), nullptr);
    assert_memory_equal(tensor.data_as<float>() + index, &value, sizeof(value));
  } else {
    assert_string_equal(std::to_string(tensor.data_as<int64_t>()[index]).c_str(), expected.c_str());
  }
}

void check_tensor(const Tensor &tensor, const base::JsonReader &expected) {
  const std::vector<int64_t> shape = assert_ok_value(expected.get_integers("shape"));
  const Strings values = assert_ok_value(expected.get_strings("values"));
  assert_true(std::ranges::equal(tensor.shape().extents(), shape));
  assert_int_equal(tensor.elements(), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    check_value(tensor, static_cast<int64_t>(i), values[i]);
}

void what_tensorflow_reads_is_read(void **) {
  const auto dataset = assert_ok_value(sequences(kSequences, kContext).build());
  assert_string_equal(dataset->spec().to_string().c_str(),
                      "(id: i64[], speaker: bytes[], frames: f32[unknown, 2], label: i64[unknown], word: "
                      "bytes[unknown], letters: bytes[unknown, unknown], letters_lengths: i64[unknown], tokens: "
                      "i64[unknown, unknown], tokens_lengths: i64[unknown], points: f32[unknown, unknown], "
                      "points_lengths: i64[unknown])");
  const std::string text = assert_ok_value(base::read_file(GOLDEN_FOLDER "/sequence_examples.json"));
  const base::Json json = assert_ok_value(base::Json::parse(text));
  const auto golden = assert_ok_value(base::JsonReader(json, "golden").elements());
  const std::vector<data::Element> elements = elements_of(dataset);
  assert_int_equal(elements.size(), golden.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    for (size_t c = 0; c < dataset->spec().components.size(); ++c)
      check_tensor(elements[i].components[c], assert_ok_value(golden[i].get(dataset->spec().components[c].name)));
  }
}

// What was read of TensorFlow's records, written again: the same bytes.
void what_is_written_is_what_tensorflow_writes(void **) {
  const auto dataset = assert_ok_value(sequences(kSequences, kContext).build());
  const Strings records = texts_of(assert_ok_value(begin_with("tfrecord", {{"paths", Strings{kExamples}}}).build()));
  const std::vector<data::Element> elements = elements_of(dataset);
  assert_int_equal(elements.size(), records.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto component = [&](const std::string &name) {
      const std::vector<data::ComponentSpec> &specs = dataset->spec().components;
      const auto found = std::ranges::find(specs, name, &data::ComponentSpec::name);
      return elements[i].components[static_cast<size_t>(found - specs.begin())];
    };
    // What the script left out of the second and third.
    std::map<std::string, Tensor> context{{"id", component("id")}};
    if (i != 1) context["speaker"] = component("speaker");
    std::map<std::string, data::FeatureList> lists;
    for (const char *name : {"frames", "label", "word"})
      lists[name] = {component(name)};
    for (const char *name : {"letters", "tokens", "points"}) {
      if (i < 2) lists[name] = {component(name), component(base::concat(name, "_lengths"))};
    }
    assert_true(assert_ok_value(data::encode_sequence_example(context, lists)) == records[i]);
  }
}

void lists_that_do_not_fit_are_refused(void **) {
  const Tensor two_by_three = Tensor::zeros(DType::i32, {2, 3}).value();
  const auto encoded = [](const Tensor &values, const Tensor &lengths) {
    return data::encode_sequence_example({}, {{"x", {values, lengths}}});
  };
  const auto lengths = [](std::vector<int64_t> values) {
    return Tensor::from_values<int64_t>({static_cast<int64_t>(values.size())}, values).value();
  };
  assert_ok(encoded(two_by_three, lengths({0, 3})).status());
  assert_error_contains(encoded({}, {}), "it has no tensor");
  assert_error_contains(encoded({}, {}), "feature list 'x' cannot be written");
  assert_error_contains(encoded(Tensor::scalar(1).value(), {}), "expected a tensor with steps in front");
  assert_error_contains(encoded(lengths({1}), lengths({1})), "expected steps with rows of their own");
  assert_error_contains(encoded(two_by_three, lengths({1})), "expected a length for each of 2 steps");
  assert_error_contains(encoded(two_by_three, lengths({1, -1})), "expected lengths from 0 to 3, got -1 for step 1");
  assert_error_contains(encoded(two_by_three, lengths({4, 1})), "expected lengths from 0 to 3, got 4 for step 0");
  const Tensor floats = Tensor::zeros(DType::f32, {2}).value();
  assert_error_contains(encoded(two_by_three, floats), "expected lengths that are integers");
  assert_error_contains(data::encode_sequence_example({{"c", {}}}, {}), "feature 'c' has no tensor");
  const Tensor big = Tensor::from_values<uint64_t>({1}, std::vector<uint64_t>{UINT64_MAX}).value();
  assert_error_contains(encoded(big, {}), "does not fit an int64 list");
}

template <typename T>
void expect(const Tensor &tensor, const tensor::Shape &shape, const std::vector<T> &expected) {
  const auto values = assert_ok_value(tensor.values<T>());
  if (!(tensor.shape() == shape) || !std::ranges::equal(values, expected))
    fail_msg("got %s", tensor.to_string().c_str());
}

void rows_types_and_batches(void **) {
  const auto dataset = assert_ok_value(
      sequences({"points: f64[?, 2]", "tokens: i32[?]", "frames: f16[2]"}, {}, {{"labels", Strings{"frames"}}})
          .apply("take", {{"count", int64_t{2}}})
          .build());
  assert_contains(dataset->spec().to_string().c_str(), "frames: f16[unknown, 2] label");
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  data::Element element;
  assert_error_contains(iterator->next(element), "the value 1099511627776, which does not fit");
  const auto good = assert_ok_value(sequences({"points: f64[?, 2]", "tokens: i64[?]", "frames: f16[2]"}).build());
  const std::vector<data::Element> elements = elements_of(good);
  expect<double>(elements[0].components[0], {3, 2, 2}, {1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0});
  expect<int64_t>(elements[0].components[1], {3}, {2, 0, 1});
  expect<double>(elements[2].components[0], {0, 0, 2}, {});
  assert_true(static_cast<float>(elements[0].components[4].data_as<tensor::Half>()[1]) == -1.5f);
  auto batches = assert_ok_value(
      assert_ok_value(sequences({"tokens: i64[?]"}).apply("padded_batch", {{"batch_size", int64_t{3}}}).build())
          ->make_iterator({}));
  assert_true(assert_ok_value(batches->next(element)));
  assert_true(element.components[0].shape() == (tensor::Shape{3, 3, 3}));
  assert_true(element.components[1].shape() == (tensor::Shape{3, 3}));
}

// Protocol buffers by hand: messages of less than 128 bytes.
std::string message(char tag, const std::string &text) {
  return std::string{static_cast<char>(tag << 3 | 2), static_cast<char>(text.size())} + text;
}
std::string entry(const std::string &key, const std::string &value) {
  return message(1, message(1, key) + message(2, value));
}
std::string integers(const std::string &varints) { return message(3, message(1, varints)); }
std::string steps(const Strings &features) {
  std::string list;
  for (const std::string &feature : features)
    list += message(1, feature);
  return list;
}

base::Result<std::vector<Tensor>> parse(const std::string &example, const Strings &lists) {
  const SequenceExampleParser parser = assert_ok_value(SequenceExampleParser::create({}, lists));
  std::vector<Tensor> tensors(parser.components().size());
  TUTTI_TRY(parser.parse(example, tensors));
  return tensors;
}

// Pixels as they lie in memory: one text for each step.
void numbers_of_steps_are_read_from_texts(void **) {
  const Tensor frames = tensor::make_bytes_tensor({2}, {"abcd", "efgh"}).value();
  const Tensor rows = tensor::make_bytes_tensor({2}, {"ab", "cdef"}).value();
  const std::string example =
      assert_ok_value(data::encode_sequence_example({}, {{"frames", {frames}}, {"rows", {rows}}}));
  const std::vector<Tensor> tensors = assert_ok_value(parse(example, {"frames: u8[2, 2]", "rows: u8[?, 2]"}));
  expect<uint8_t>(tensors[0], {2, 2, 2}, {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'});
  expect<uint8_t>(tensors[1], {2, 2, 2}, {'a', 'b', 0, 0, 'c', 'd', 'e', 'f'});
  expect<int64_t>(tensors[2], {2}, {1, 2});
  assert_error_contains(parse(example, {"rows: u8[2]"}).status(), "step 1 of feature list 'rows' cannot be read");
  assert_error_contains(parse(example, {"frames: f64[?]"}).status(),
                        "a text of 4 bytes, which is not a whole number of values");
}

void steps_and_lists_that_are_missing(void **) {
  const std::string example = message(2, entry("a", steps({integers("\x05"), "", integers("\x07")})));
  expect<int8_t>(assert_ok_value(parse(example, {"a: i8 = -3"}))[0], {3}, {5, -3, 7});
  expect<int8_t>(assert_ok_value(parse(example, {"b: i8[2] = -3"}))[0], {0, 2}, {});
  const auto ragged = assert_ok_value(parse(example, {"a: i64[?]", "b: i64[?]"}));
  expect<int64_t>(ragged[0], {3, 1}, {5, 0, 7});
  expect<int64_t>(ragged[1], {3}, {1, 0, 1});
  expect<int64_t>(ragged[2], {0, 0}, {});
  expect<int64_t>(ragged[3], {0}, {});
  assert_error_contains(parse(example, {"b: i64"}), "feature 'b': expected i64[], got no feature list of this name");
  const auto missing = parse(example, {"a: i64"});
  assert_error_contains(missing, "step 1 of feature list 'a' cannot be read");
  assert_error_contains(missing, "feature 'a': expected i64[], got nothing, and it has no default");
  // The texts of a default, and lists that are there without a step.
  const std::string texts = message(2, entry("t", steps({message(1, message(1, "x")), ""})) + entry("e", ""));
  const auto filled = assert_ok_value(parse(texts, {"t: bytes = none", "e: bytes"}));
  assert_true(tensor::bytes_at(filled[0], 0) == "x" && tensor::bytes_at(filled[0], 1) == "none");
  assert_int_equal(filled[1].elements(), 0);
}

void other_writers_are_understood(void **) {
  const std::string last = entry("a", steps({integers("\x01"), integers(std::string("\x02\x03", 2))}));
  const std::string example =
      message(7, "unknown") + message(2, entry("a", steps({integers("\x09")}))) + message(2, entry("b", "") + last);
  expect<int64_t>(assert_ok_value(parse(example, {"a: i64[?]"}))[0], {2, 2}, {1, 0, 2, 3});
  for (size_t size = 0; size < example.size(); ++size) {
    const auto cut = parse(example.substr(0, size), {"a: i64[?]"});
    if (!cut.ok()) assert_error_contains(cut, "DATA_LOSS: corrupt SequenceExample");
  }
}

void mistakes_name_list_step_element_and_file(void **) {
  const base::Status kind = first_error({"word: f32"});
  assert_error_contains(kind, "step 0 of feature list 'word' cannot be read");
  assert_error_contains(kind, "feature 'word': expected f32[], got a bytes_list");
  assert_error_contains(kind, "element=0");
  assert_error_contains(kind, ("file=" + kExamples).c_str());
  assert_error_contains(first_error({"points: f32[4]"}), "step 1 of feature list 'points'");
  assert_error_contains(first_error({"points: f32[?, 3]"}), "expected f32[unknown, 3], got 4 values");
  assert_error_contains(first_error({"frames: f32[2]", "letters: bytes = x"}), "step 0 of feature list 'letters'");
  assert_error_contains(first_error({"frames: f32[2]"}, {"di: i64"}), "feature 'di': expected i64[], got nothing");
  assert_error_contains(first_error({"tokens: i32[?]"}), "the value 1099511627776, which does not fit");
  assert_error_contains(sequences({"a: i64[?]", "a_lengths: i64"}).build(), "two components are called 'a_lengths'");
  assert_error_contains(sequences({"a: i64", "a: i64"}).build(), "two components are called 'a'");
  assert_error_contains(sequences({"a: i65"}).build(), "field 'a: i65'");
  assert_error_contains(sequences({"a: i64[2, ?]"}).build(), "bad dimension '?'");
}

// Few bytes may not ask for much memory.
void filling_is_bounded(void **) {
  std::string list(size_t{2} * 400000, '\0');  // as many steps without values
  for (size_t i = 0; i < list.size(); i += 2)
    list[i] = 1 << 3 | 2;
  const auto varint = [](size_t value) {
    std::string bytes;
    for (; value >= 128; value >>= 7)
      bytes.push_back(static_cast<char>(value | 128));
    return bytes + static_cast<char>(value);
  };
  const auto large = [&](char tag, const std::string &text) {
    return std::string{static_cast<char>(tag << 3 | 2)} + varint(text.size()) + text;
  };
  const std::string one = large(1, large(3, large(1, std::string(100000, '\x01'))));
  const std::string example = large(2, large(1, message(1, "a") + large(2, list + one)));
  const auto got = parse(example, {"a: i64[?]"});
  assert_error_contains(got, "RESOURCE_EXHAUSTED: feature list 'a': i64[400001, 100000] is too large for an example");
  assert_error_contains(parse(example, {"a: f32[1000, 1000] = 0"}), "step 400000 of feature list 'a'");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_tensorflow_reads_is_read),
    cmocka_unit_test(what_is_written_is_what_tensorflow_writes),
    cmocka_unit_test(lists_that_do_not_fit_are_refused),
    cmocka_unit_test(rows_types_and_batches),
    cmocka_unit_test(numbers_of_steps_are_read_from_texts),
    cmocka_unit_test(steps_and_lists_that_are_missing),
    cmocka_unit_test(other_writers_are_understood),
    cmocka_unit_test(mistakes_name_list_step_element_and_file),
    cmocka_unit_test(filling_is_bounded),
};
TEST_MAIN(tests)

}  // namespace sequence_example_test

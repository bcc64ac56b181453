// SPDX-License-Identifier: Apache-2.0
//
// Ops on dtype bytes: examples worked out by hand, misuse, and a text pipeline.
#include <cmath>
#include <cstdint>
#include <fstream>

#include "base/temporary_directory.h"
#include "conformance/dataset_conformance.h"
#include "interpreting_runner.h"
#include "routine_runs.h"
#include "sample_data.h"

namespace text_ops_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Pipeline;
using graph::Attributes;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;
using Texts = std::vector<std::string>;
using Ints = std::vector<int64_t>;

namespace {

Tensor scalar_text(const std::string &text) {
  const std::string_view view = text;
  return tensor::make_bytes_tensor({}, std::span<const std::string_view>(&view, 1)).value();
}

Texts texts_in(const Tensor &tensor) {
  Texts texts;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    texts.emplace_back(tensor::bytes_at(tensor, i));
  return texts;
}

Texts text_op(const std::string &op, const Attributes &attributes, const std::string &text) {
  return texts_in(assert_ok_value(run_routine_op(op, attributes, {scalar_text(text)})));
}

template <typename T>
std::vector<T> number_op(const std::string &op, const Attributes &attributes, const Texts &texts) {
  const Tensor y = assert_ok_value(run_routine_op(op, attributes, {text_tensor(texts)}));
  const auto values = assert_ok_value(y.values<T>());
  return {values.begin(), values.end()};
}

const std::string kCharacters = "characters";

void lengths_and_parts_count_bytes_or_characters(void **) {
  const Texts texts{"", "abc", "h\u00e9llo", "\u65e5\u672c", "a\xff\xe2\x82z", "\xed\xa0\x80", "\xf0\x9f\x98\x80"};
  assert_true(number_op<int64_t>("bytes_length", {}, texts) == (Ints{0, 3, 6, 6, 5, 3, 4}));
  assert_true(number_op<int64_t>("bytes_length", {{"unit", kCharacters}}, texts) == (Ints{0, 3, 5, 2, 5, 3, 1}));

  const auto part = [](int64_t start, int64_t length, const std::string &text, bool characters = false) {
    Attributes attributes{{"start", start}, {"length", length}};
    if (characters) attributes.emplace("unit", kCharacters);
    return text_op("bytes_substring", attributes, text)[0];
  };
  assert_string_equal(part(1, 2, "abcdef").c_str(), "bc");
  assert_string_equal(part(-2, -1, "abcdef").c_str(), "ef");
  assert_string_equal(part(-9, 3, "abcdef").c_str(), "abc");
  assert_string_equal(part(4, 100, "abcdef").c_str(), "ef");
  assert_string_equal(part(100, 1, "abcdef").c_str(), "");
  assert_string_equal(part(1, 2, "h\u00e9llo", true).c_str(), "\u00e9l");
  assert_string_equal(part(-1, -1, "\u65e5\u672c", true).c_str(), "\u672c");
}

void texts_are_split_and_joined(void **) {
  assert_true(text_op("bytes_split", {}, "  the quick\tbrown\nfox ") == (Texts{"the", "quick", "brown", "fox"}));
  assert_true(text_op("bytes_split", {}, " ").empty());
  assert_true(text_op("bytes_split", {{"separator", std::string(",")}}, "a,,b,") == (Texts{"a", "", "b", ""}));
  assert_true(text_op("bytes_split", {{"separator", std::string(",")}}, "") == (Texts{""}));
  assert_true(text_op("bytes_split", {{"separator", std::string(",")}, {"skip_empty", true}}, "a,,b,") ==
              (Texts{"a", "b"}));
  assert_true(text_op("bytes_split", {{"separator", std::string("::")}}, "a::b:c") == (Texts{"a", "b:c"}));
  assert_true(text_op("bytes_split", {{"count", int64_t{3}}}, "a b") == (Texts{"a", "b", ""}));
  assert_true(text_op("bytes_split", {{"count", int64_t{1}}}, "a b") == (Texts{"a"}));

  const std::string text = "Don't PANIC, it's 3.14!";
  const auto tokens = [&](const char *punctuation, bool lower) {
    return text_op("bytes_tokenize", {{"punctuation", std::string(punctuation)}, {"lower_case", lower}}, text);
  };
  assert_true(tokens("keep", true) == (Texts{"don't", "panic,", "it's", "3.14!"}));
  assert_true(tokens("drop", false) == (Texts{"Don", "t", "PANIC", "it", "s", "3", "14"}));
  assert_true(tokens("split", true) == (Texts{"don", "'", "t", "panic", ",", "it", "'", "s", "3", ".", "14", "!"}));
  assert_true(text_op("bytes_lower", {}, "\u00c4B C") == (Texts{"\u00c4b c"}));

  const Tensor words = tensor::make_bytes_tensor({2, 3}, Texts{"a", "b", "", "d", "e", "f"}).value();
  const Tensor joined = assert_ok_value(run_routine_op("bytes_join", {{"separator", std::string("-")}}, {words}));
  assert_true(joined.shape() == tensor::Shape{2});
  assert_true(texts_in(joined) == (Texts{"a-b-", "d-e-f"}));
  assert_true(texts_in(assert_ok_value(run_routine_op("bytes_join", {}, {text_tensor({})}))) == (Texts{""}));
  assert_error_contains(run_routine_op("bytes_split", {}, {text_tensor({"a", "b c"})}),
                        "text 1 has 2 parts, text 0 has 1; set count");
}

void numbers_are_read_whole(void **) {
  assert_true(number_op<int64_t>("bytes_to_number", {{"dtype", DType::i64}},
                                 {"0", " -17 ", "+5", "9223372036854775807"}) == (Ints{0, -17, 5, INT64_MAX}));
  assert_true(number_op<int32_t>("bytes_to_number", {{"dtype", DType::i32}}, {"-2147483648"}) ==
              (std::vector<int32_t>{INT32_MIN}));
  assert_true(number_op<float>("bytes_to_number", {}, {"1.5e3", "-.25", "+7", "0x1p4", "-0x1.8p1", "\t2\n"}) ==
              (std::vector<float>{1500, -0.25, 7, 16, -3, 2}));
  assert_true(number_op<double>("bytes_to_number", {{"dtype", DType::f64}}, {"0.1", "-inf"}) ==
              (std::vector<double>{0.1, -INFINITY}));
  assert_true(std::isnan(number_op<float>("bytes_to_number", {}, {"nan"})[0]));
  for (const char *bad : {"", " ", "1 2", "1x", "--1", "+-1", "0x", "1,5", "."}) {
    assert_error_contains(run_routine_op("bytes_to_number", {}, {text_tensor({bad})}), "is not a number of dtype f32");
  }
  for (const char *bad : {"1.0", "+-1", "-+1", "", "0x10", "-"}) {
    assert_error_contains(run_routine_op("bytes_to_number", {{"dtype", DType::i64}}, {text_tensor({bad})}),
                          "is not a number of dtype i64");
  }
  assert_error_contains(run_routine_op("bytes_to_number", {{"dtype", DType::i32}}, {text_tensor({"2147483648"})}),
                        "the text '2147483648' does not fit i32");

  const std::string pair("\x01\x00\x02\x01", 4);
  const Tensor values =
      assert_ok_value(run_routine_op("bytes_to_values", {{"dtype", DType::u16}}, {text_tensor({pair})}));
  assert_true(values.shape() == (tensor::Shape{1, 2}));
  assert_int_equal(values.data_as<uint16_t>()[1], 258);
  const Tensor reversed = assert_ok_value(run_routine_op(
      "bytes_to_values", {{"dtype", DType::u16}, {"byte_order", std::string("big")}}, {text_tensor({pair, pair})}));
  assert_true(reversed.shape() == (tensor::Shape{2, 2}));
  for (const int64_t i : {0, 1}) {
    assert_int_equal(reversed.data_as<uint16_t>()[2 * i], 256);
    assert_int_equal(reversed.data_as<uint16_t>()[2 * i + 1], 513);
  }
  assert_error_contains(run_routine_op("bytes_to_values", {{"dtype", DType::f64}}, {text_tensor({pair})}),
                        "has 4 bytes, which is not a multiple of 8");
  assert_error_contains(run_routine_op("bytes_to_values", {{"count", int64_t{3}}}, {text_tensor({pair})}),
                        "has 4 bytes, expected 3");
}

void hashes_stay_what_they_are(void **) {
  // By a few lines of Python from the definition.
  const Texts texts{"", "a", "hello", "\u00e9"};
  assert_true(number_op<int64_t>("bytes_hash_bucket", {{"buckets", int64_t{1000}}}, texts) ==
              (Ints{483, 429, 618, 592}));
  assert_true(number_op<int64_t>("bytes_hash_bucket", {{"buckets", INT64_MAX}, {"salt", int64_t{-3}}}, texts) ==
              (Ints{4400333670583127535, 1492558700651955804, 2665952330840625346, 4987045319661433551}));
}

void vocabularies_are_lists_or_files(void **) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/words.txt";
  std::ofstream(path, std::ios::binary) << "the\r\ncat\n\nsat\ncat\nend";
  const Texts asked{"cat", "sat", "", "dog", "end"};
  const auto with_constant = [&](const Attributes &attributes) {
    return run_routine(
        [&](GraphBuilder &b, const auto &x) {
          return b.op("lookup", {x[0], b.constant(text_tensor({"the", "cat", "", "sat", "cat", "end"}))}, attributes);
        },
        {text_tensor(asked)});
  };
  for (const bool is_file : {false, true}) {
    Attributes attributes;
    if (is_file) attributes.emplace("path", path);
    const auto look_up = [&] {
      return is_file ? run_routine_op("lookup", attributes, {text_tensor(asked)}) : with_constant(attributes);
    };
    const auto values_of_lookup = [&] {
      const Tensor y = assert_ok_value(look_up());
      return Ints(y.data_as<int64_t>(), y.data_as<int64_t>() + y.elements());
    };
    assert_true(values_of_lookup() == (Ints{1, 3, 2, -1, 5}));
    attributes.emplace("missing", int64_t{77});
    assert_true(values_of_lookup() == (Ints{1, 3, 2, 77, 5}));
    attributes.emplace("hash_buckets", int64_t{10});
    const int64_t bucket = number_op<int64_t>("bytes_hash_bucket", {{"buckets", int64_t{10}}}, {"dog"})[0];
    assert_true(values_of_lookup() == (Ints{1, 3, 2, 6 + bucket, 5}));
  }
  std::ofstream(path, std::ios::binary) << "\xef\xbb\xbfthe\r\ncat\r\n";
  assert_true(number_op<int64_t>("lookup", {{"path", path}}, {"the", "cat", "x"}) == (Ints{0, 1, -1}));
  // Lines that end in CR alone would be one text.
  for (const char *lines : {"the\rcat\rsat", "the\ncat\rsat\n"}) {
    std::ofstream(path, std::ios::binary) << lines;
    assert_error_contains(run_routine_op("lookup", {{"path", path}}, {text_tensor(asked)}),
                          lines[3] == '\r' ? "':1: a carriage return is not followed" : "':2: a carriage return");
  }
  std::ofstream(path, std::ios::binary) << "the\r\ncat\r";
  assert_true(number_op<int64_t>("lookup", {{"path", path}}, {"the", "cat", "x"}) == (Ints{0, 1, -1}));
  assert_error_contains(run_routine_op("lookup", {{"path", directory.path() + "/none"}}, {text_tensor(asked)}),
                        "node 'lookup' (lookup): cannot be run");
}

void texts_are_compared(void **) {
  const Tensor words = text_tensor({"cat", "dog", "cat"});
  const Tensor same = assert_ok_value(run_routine_op("equal", {}, {words, scalar_text("cat")}));
  assert_true(same.data_as<bool>()[0] && !same.data_as<bool>()[1] && same.data_as<bool>()[2]);
  const Tensor other = assert_ok_value(run_routine_op("not_equal", {}, {words, text_tensor({"cat", "cat", "cat"})}));
  assert_true(!other.data_as<bool>()[0] && other.data_as<bool>()[1] && !other.data_as<bool>()[2]);
  assert_error_contains(run_routine_op("concat", {}, {words, words}), "does not take values of dtype bytes");
  // Views cost nothing and are given out as copies.
  const Tensor shaped = assert_ok_value(run_routine_op("reshape", {{"dims", graph::Dims{3, 1}}}, {words}));
  assert_true(texts_in(shaped) == (Texts{"cat", "dog", "cat"}));
}

// ---- in pipelines ----

Pipeline lines() {
  return Pipeline(data::from_slices(
      {{"line", text_tensor({"The cat sat.", "a dog", "Cat, cat!", "", "The END", "sat sat sat sat sat"})},
       {"y", counted(6), data::Role::label}}));
}

Pipeline with_graph(Pipeline pipeline, const char *transform, GraphBuilder &b, int64_t parallelism = 0) {
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
  Attributes attributes;
  if (std::string(transform) == "map") attributes.emplace("parallelism", parallelism);
  return std::move(pipeline.apply(transform, std::move(attributes), std::move(arguments)));
}

Pipeline tokens(Pipeline pipeline, int64_t count, bool has_rows = true) {
  GraphBuilder b;
  const auto line = b.input("line", DType::bytes, has_rows ? graph::Dims{GraphBuilder::batch()} : graph::Dims{});
  b.set_result("line", b.op("bytes_tokenize", {line}, {{"count", count}}));
  return with_graph(std::move(pipeline), "map", b);
}

Pipeline indices(Pipeline pipeline) {
  GraphBuilder b;
  const auto line = b.input("line", DType::bytes, {GraphBuilder::batch()});
  const auto words = b.op("bytes_tokenize", {line}, {{"count", int64_t{4}}});
  const auto found =
      b.op("lookup", {words, b.constant(text_tensor({"", "the", "cat", "sat"}))}, {{"hash_buckets", int64_t{5}}});
  b.set_result("line", found);
  // A program beside the kernels.
  b.set_result("known", b.reduce_sum(b.cast(b.op("less", {found, b.constant(4, DType::i64)}), DType::f32), {1}));
  return with_graph(std::move(pipeline), "map", b);
}

Pipeline cats(Pipeline pipeline) {
  GraphBuilder b;
  const auto line = b.input("line", DType::bytes, {GraphBuilder::batch()});
  const auto length = b.op("bytes_length", {line});
  b.set_result("keep", b.op("less", {length, b.constant(12, DType::i64)}));
  return with_graph(std::move(pipeline), "filter", b);
}

void text_pipelines_conform(void **) {
  const auto of = [](std::string name, std::function<Pipeline()> make) {
    return DatasetCase{std::move(name), [make] { return DatasetInstance{make().build()}; }, 64,
                       std::make_shared<InterpretingRunner>()};
  };
  const DatasetCase cases[] = {
      of("tokens", [] { return tokens(lines(), 0); }),
      of("tokens of elements", [] { return tokens(lines(), 0, false); }),
      of("tokens, batch", [] { return std::move(tokens(lines(), 4).batch(4)); }),
      of("batch, tokens", [] { return tokens(lines().batch(4), 4); }),
      of("tokens, forward only", [] { return tokens(forward_only(lines()), 3); }),
      of("indices, batch", [] { return std::move(indices(lines()).shuffle(4).batch(4).repeat(2)); }),
      of("indices, forward only, batch", [] { return std::move(indices(forward_only(lines())).batch(4)); }),
      of("batch, indices", [] { return indices(lines().batch(4)); }),
      of("filter", [] { return std::move(cats(lines()).batch(2)); }),
  };
  for (const DatasetCase &one : cases) {
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
}

// Words of lines, as many as there are, and the numbers they mean, one of which is none.
Pipeline numbers(int64_t parallelism) {
  Texts all;
  for (int i = 0; i < 60; ++i) {
    std::string line = std::to_string(i);
    for (int word = 0; word < i % 5; ++word)
      line += " " + std::to_string(i * word);
    all.push_back(i == 31 ? "1 and 2" : line);
  }
  GraphBuilder b;
  const auto words = b.op("bytes_split", {b.input("line", DType::bytes, graph::Dims{})}, {});
  b.set_result("number", b.op("bytes_to_number", {words}, {{"dtype", DType::i64}}));
  Pipeline lines(data::from_slices({{"line", text_tensor(all)}, {"y", counted(60), data::Role::label}}));
  return with_graph(std::move(lines), "map", b, parallelism);
}

// Whatever runs beside it, an element is the same, in its place; and so is an error.
void results_of_unknown_shape_are_made_in_parallel(void **) {
  std::vector<std::string> expected;
  base::Json state;
  for (int64_t parallelism = 1; parallelism <= 8; ++parallelism) {
    DatasetCase one{base::concat("numbers, ", parallelism),
                    [=] { return DatasetInstance{numbers(parallelism).build()}; }, 100,
                    std::make_shared<InterpretingRunner>(), true};
    DatasetWalk walk = open_walk(one, context_of(one));
    std::vector<std::string> got = take(one, *walk.iterator, 30);
    const base::Json here = walk.iterator->save();
    if (parallelism == 1) state = here;
    // The state of one walk fits another with more threads.
    assert_string_equal(here.dump().c_str(), state.dump().c_str());
    DatasetWalk resumed = open_walk(one, context_of(one), &state);
    const std::vector<std::string> rest = take(one, *resumed.iterator, 100);
    assert_true(rest == take(one, *walk.iterator, 100));
    got.insert(got.end(), rest.begin(), rest.end());
    if (parallelism == 1) expected = got;
    assert_true(got == expected);
    assert_int_equal(got.size(), 61);
    assert_contains(got[31].c_str(), "[element=31, epoch=0, stage=map]");
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  auto iterator = assert_ok_value(assert_ok_value(numbers(4).build())->make_iterator(context));
  data::Element element;
  for (int64_t i = 0; i < 60; ++i) {
    const auto more = iterator->next(element);
    if (i == 31) {
      assert_error_contains(more.status(), "element 31 of epoch 0");
      continue;
    }
    assert_true(assert_ok_value(more));
    const auto values = assert_ok_value(element.components[1].values<int64_t>());
    assert_int_equal(values.size(), 1 + i % 5);
    for (size_t word = 1; word < values.size(); ++word)
      assert_int_equal(values[word], i * static_cast<int64_t>(word - 1));
  }
}

void batches_before_and_after_agree(void **) {
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  const DatasetRef before = assert_ok_value(indices(lines()).batch(6).build());
  const DatasetRef after = assert_ok_value(indices(lines().batch(6)).build());
  assert_string_equal(before->spec().to_string().c_str(),
                      "(line: i64[batch, 4], y: i32[batch] label, known: f32[batch])");
  assert_string_equal(after->spec().to_string().c_str(), before->spec().to_string().c_str());
  const Ints expected = values_of<int64_t>(before, "line", context);
  assert_true(expected == values_of<int64_t>(after, "line", context));
  assert_true(Ints(expected.begin(), expected.begin() + 3) == (Ints{1, 2, 3}));
  assert_true(values_of<float>(before, "known", context) == (std::vector<float>{3, 2, 2, 4, 3, 4}));
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lengths_and_parts_count_bytes_or_characters),
    cmocka_unit_test(texts_are_split_and_joined),
    cmocka_unit_test(numbers_are_read_whole),
    cmocka_unit_test(hashes_stay_what_they_are),
    cmocka_unit_test(vocabularies_are_lists_or_files),
    cmocka_unit_test(texts_are_compared),
    cmocka_unit_test(text_pipelines_conform),
    cmocka_unit_test(results_of_unknown_shape_are_made_in_parallel),
    cmocka_unit_test(batches_before_and_after_agree),
};
TEST_MAIN(tests)

}  // namespace text_ops_test

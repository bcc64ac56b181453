// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/text_counts.h"

#include <algorithm>
#include <map>

#include "data/dataset/stage.h"
#include "interpreting_runner.h"
#include "routine_runs.h"
#include "sample_data.h"

namespace text_counts_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Code;
using data::DatasetRef;
using data::Pipeline;
using data::TextCountLimits;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;
using Texts = std::vector<std::string>;
using Counted = std::vector<std::pair<std::string, int64_t>>;

namespace {

data::IteratorContext context(int32_t threads = 0) {
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  context.threads = threads;
  return context;
}

base::Result<data::TextCounts> count(Pipeline pipeline, TextCountLimits limits = {}, int32_t threads = 0) {
  TUTTI_ASSIGN(const DatasetRef dataset, pipeline.build());
  return data::count_texts(*dataset, "text", limits, context(threads));
}

Counted counted_texts(Pipeline pipeline, TextCountLimits limits = {}, int32_t threads = 0) {
  const data::TextCounts found = assert_ok_value(count(std::move(pipeline), limits, threads));
  assert_true(found.texts.shape() == found.counts.shape() && found.texts.shape().rank() == 1);
  Counted counted;
  for (int64_t i = 0; i < found.texts.elements(); ++i)
    counted.emplace_back(tensor::bytes_at(found.texts, i), found.counts.data_as<int64_t>()[i]);
  return counted;
}

Pipeline texts(const Texts &all) { return Pipeline(data::from_slices({{"text", text_tensor(all)}})); }

// Words of each line, as many as there are, or `count` of them, filled up with "".
Pipeline words(Pipeline pipeline, int64_t count = 0, bool has_rows = false, int64_t parallelism = 0) {
  GraphBuilder b;
  const auto line = b.input("text", DType::bytes, has_rows ? graph::Dims{GraphBuilder::batch()} : graph::Dims{});
  b.set_result("text", b.op("bytes_tokenize", {line}, {{"count", count}}));
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
  return std::move(pipeline.apply("map", {{"parallelism", parallelism}}, std::move(arguments)));
}

const Texts kLines{"The cat sat.", "a dog", "Cat, cat!", "", "The END", "sat sat"};
const Counted kWords{{"cat", 3}, {"sat", 3}, {"the", 2}, {"!", 1},  {",", 1},
                     {".", 1},   {"a", 1},   {"dog", 1}, {"end", 1}};

void the_most_frequent_goes_first(void **) {
  assert_true(counted_texts(words(texts(kLines))) == kWords);
  // Bytes compare as unsigned; a zero and what is no UTF-8 are bytes like others.
  const std::string zero("a\0b", 3);
  const Counted odd{{"", 2}, {"a", 1}, {zero, 1}, {"z", 1}, {"\xc3\xa9", 1}, {"\xff", 1}};
  assert_true(counted_texts(texts({"\xff", "", "z", "\xc3\xa9", zero, "a", ""})) == odd);
  assert_true(counted_texts(texts({"", "y"}).apply("take", {{"count", int64_t{0}}})).empty());
}

void any_shape_is_counted(void **) {
  Counted filled = kWords;
  filled.insert(filled.begin(), {"", 16});
  assert_true(counted_texts(words(texts(kLines), 5)) == filled);
  assert_true(counted_texts(words(texts(kLines), 5).batch(4)) == filled);
  assert_true(counted_texts(words(texts(kLines).batch(4), 5, true)) == filled);
  assert_true(counted_texts(words(texts(kLines), 5).apply("window", {{"size", int64_t{3}}})) == filled);
}

void what_is_rare_or_too_much_is_left_out(void **) {
  const auto first = [](size_t size) { return Counted(kWords.begin(), kWords.begin() + static_cast<ptrdiff_t>(size)); };
  for (size_t most = 1; most < 12; ++most) {
    const TextCountLimits limits{.most_texts = static_cast<int64_t>(most)};
    assert_true(counted_texts(words(texts(kLines)), limits) == first(std::min(most, kWords.size())));
  }
  assert_true(counted_texts(words(texts(kLines)), {.least_count = 0}) == kWords);
  assert_true(counted_texts(words(texts(kLines)), {.least_count = 2}) == first(3));
  assert_true(counted_texts(words(texts(kLines)), {.most_texts = 2, .least_count = 2}) == first(2));
  assert_true(counted_texts(words(texts(kLines)), {.least_count = 4}).empty());
}

// Zipf's law: text i comes about 3000 / i times, in lines of varying length.
void neither_order_nor_threads_make_a_difference(void **) {
  Texts all, lines;
  std::map<std::string, int64_t> expected_counts;
  for (int64_t i = 1; i <= 700; ++i) {
    const std::string text = "w" + std::to_string(i * 7919 % 701);
    for (int64_t times = 0; times < 3000 / i; ++times)
      all.push_back(text);
    expected_counts[text] = 3000 / i;
  }
  Counted expected(expected_counts.begin(), expected_counts.end());
  std::stable_sort(expected.begin(), expected.end(), [](auto &a, auto &b) { return a.second > b.second; });
  for (size_t i = 0, step = 1; i < all.size(); i += step, step = step % 9 + 1) {
    std::string line;
    for (size_t word = i; word < std::min(i + step, all.size()); ++word)
      line += all[word] + " ";
    lines.push_back(line);
  }
  for (const int64_t threads : {1, 2, 4}) {
    assert_true(counted_texts(words(texts(lines), 0, false, threads), {}, static_cast<int32_t>(threads)) == expected);
    assert_true(counted_texts(words(texts(lines).shuffle(5000), 0, false, threads), {.most_texts = 400}) ==
                Counted(expected.begin(), expected.begin() + 400));
  }
}

void memory_is_bounded(void **) {
  Texts all;
  for (int i = 0; i < 100; ++i)
    all.push_back("text " + std::to_string(10 + i % 50));  // 50 different ones, each 7 bytes and 64
  assert_int_equal(counted_texts(texts(all), {.memory_bytes = 50 * 71}).size(), 50);
  const base::Status status = count(texts(all), {.most_texts = 3, .memory_bytes = 50 * 71 - 1}).status();
  assert_true(status.code() == Code::resource_exhausted);
  assert_contains(
      status.to_string().c_str(),
      "count_texts: component 'text': the different texts need more than 3549 bytes (memory_bytes; each needs its "
      "length and 64): there are 49 of them before element 49, which has more [element=49, "
      "epoch=0");
  // One that is long, of a batch.
  const base::Status batched =
      count(texts({"a", "b", std::string(1000, 'x'), "c"}).batch(2), {.memory_bytes = 1000}).status();
  assert_contains(batched.to_string().c_str(), "there are 2 of them before element 2, which has more");
}

void what_cannot_be_counted_is_named(void **) {
  const DatasetRef numbers = assert_ok_value(sample(3).build());
  const base::Status wrong = data::count_texts(*numbers, "y", {}, {}).status();
  assert_true(wrong.code() == Code::invalid_argument);
  assert_contains(wrong.to_string().c_str(),
                  "component 'y': expected texts, which are of dtype bytes, got y: i32[] label");
  assert_error_contains(data::count_texts(*numbers, "z", {}, {}), "no component 'z'");
  assert_error_contains(count(texts(kLines).repeat()), "the dataset has no end; count its texts before repeat");
  // The walk's own errors end the count and say where.
  const auto fail = [](const data::Element &element, bool &keep) {
    keep = true;
    return element.lineage.index == 4 ? base::data_loss("rubbish") : base::Status();
  };
  data::TransformArguments arguments;
  arguments.filter = fail;
  const base::Status failed = count(texts(kLines).apply("filter_callback", {}, std::move(arguments))).status();
  assert_true(failed.code() == Code::data_loss);
  assert_contains(failed.to_string().c_str(), "[element=4, epoch=0, stage=filter_callback]");
}

// A feed that gives nothing: the call ends when its time is up, or when it is cancelled.
void counting_can_be_ended(void **) {
  const auto feed = assert_ok_value(data::Feed::create({{{"text", data::Role::feature, DType::bytes, {}}}}, 4));
  data::IteratorContext ended = context();
  ended.cancel = base::CancelToken::create(base::Deadline::after_ms(5));
  assert_true(data::count_texts(*feed->dataset(), "text", {}, ended).code() == Code::deadline_exceeded);
  ended.cancel = base::CancelToken::create();
  ended.cancel->cancel();
  const DatasetRef dataset = assert_ok_value(texts(kLines).build());
  assert_true(data::count_texts(*dataset, "text", {}, ended).code() == Code::cancelled);
}

// The tensor as it is becomes the constant of lookup.
void the_texts_are_a_vocabulary(void **) {
  for (const int64_t most : {0, 2}) {
    const data::TextCounts found = assert_ok_value(count(words(texts(kLines)), {.most_texts = most}));
    const auto build = [&](GraphBuilder &b, const GraphBuilder::Values &x) {
      return b.op("lookup", {x[0], b.constant(found.texts)}, {});
    };
    const Tensor indices = assert_ok_value(run_routine(build, {text_tensor({"sat", "the", "cat", "mouse"})}));
    const std::vector<int64_t> got(indices.data_as<int64_t>(), indices.data_as<int64_t>() + 4);
    assert_true(got == (std::vector<int64_t>{1, most == 0 ? 2 : -1, 0, -1}));
  }
  const data::TextCounts none = assert_ok_value(count(words(texts(kLines)), {.least_count = 9}));
  const auto build = [&](GraphBuilder &b, const GraphBuilder::Values &x) {
    return b.op("lookup", {x[0], b.constant(none.texts)}, {});
  };
  assert_int_equal(assert_ok_value(run_routine(build, {text_tensor({"sat"})})).data_as<int64_t>()[0], -1);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_most_frequent_goes_first),
    cmocka_unit_test(any_shape_is_counted),
    cmocka_unit_test(what_is_rare_or_too_much_is_left_out),
    cmocka_unit_test(neither_order_nor_threads_make_a_difference),
    cmocka_unit_test(memory_is_bounded),
    cmocka_unit_test(what_cannot_be_counted_is_named),
    cmocka_unit_test(counting_can_be_ended),
    cmocka_unit_test(the_texts_are_a_vocabulary),
};
TEST_MAIN(tests)

}  // namespace text_counts_test

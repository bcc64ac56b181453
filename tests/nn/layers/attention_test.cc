// SPDX-License-Identifier: Apache-2.0
// Multi-head attention: variables, shapes, and numbers beside plain loops.
#include <algorithm>
#include <cmath>

#include "nn_testing.h"
#include "testing.h"

namespace attention_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

Numbers made_up(size_t count, double phase) {
  Numbers numbers(count);
  for (size_t i = 0; i < count; ++i)
    numbers[i] = std::sin(1.7 * static_cast<double>(i) + phase);
  return numbers;
}

struct Layer {
  size_t rows, length, memory_length, heads, key_heads, size, channels, units;
  bool causal = false;
  std::vector<size_t> lengths = {};  // none = all
};

/// [positions, channels] times a kernel, plus a bias if there is one; columns [first, first + count).
Numbers columns(const Numbers &x, const Numbers &kernel, const Numbers &bias, size_t channels, size_t first,
                size_t count) {
  const size_t width = kernel.size() / channels, positions = x.size() / channels;
  Numbers y(positions * count);
  for (size_t p = 0; p < positions; ++p) {
    for (size_t u = 0; u < count; ++u) {
      double sum = bias.empty() ? 0 : bias[first + u];
      for (size_t c = 0; c < channels; ++c)
        sum += x[p * channels + c] * kernel[c * width + first + u];
      y[p * count + u] = sum;
    }
  }
  return y;
}

/// softmax(q · kᵀ / sqrt(size)) · v for each row and head.
Numbers attend(const Layer &l, const Numbers &q, const Numbers &k, const Numbers &v) {
  const size_t width = l.heads * l.size, key_width = l.key_heads * l.size;
  Numbers y(q.size(), 0);
  for (size_t row = 0; row < l.rows; ++row) {
    for (size_t head = 0; head < l.heads; ++head) {
      const size_t key_head = head / (l.heads / l.key_heads);
      for (size_t i = 0; i < l.length; ++i) {
        size_t seen = l.lengths.empty() ? l.memory_length : l.lengths[row];
        if (l.causal) seen = std::min(seen, i + 1 + l.memory_length - l.length);
        Numbers weights(seen);
        double total = 0;
        for (size_t j = 0; j < seen; ++j) {
          double score = 0;
          for (size_t c = 0; c < l.size; ++c)
            score += q[(row * l.length + i) * width + head * l.size + c] *
                     k[(row * l.memory_length + j) * key_width + key_head * l.size + c];
          total += weights[j] = std::exp(score / std::sqrt(static_cast<double>(l.size)));
        }
        for (size_t j = 0; j < seen; ++j) {
          for (size_t c = 0; c < l.size; ++c)
            y[(row * l.length + i) * width + head * l.size + c] +=
                weights[j] / total * v[(row * l.memory_length + j) * key_width + key_head * l.size + c];
        }
      }
    }
  }
  return y;
}

void test_variables_and_defaults(void **) {
  Bench bench;
  const ValueId y =
      bench.expand("layer_multi_head_attention", {bench.input("x", Numbers(48, 1), {4, 6})}, {{"heads", int64_t{2}}});
  assert_string_equal(bench.error().c_str(), "");
  assert_string_equal(bench.shape(y).c_str(), "[batch, 4, 6]");
  assert_int_equal(bench.builder.model().variables.size(), 4);
  const auto dims = [&](const char *name) {
    const graph::VariableSpec *const found = bench.variable(std::string("multi_head_attention/") + name);
    if (found == nullptr) fail_msg("no variable %s", name);
    return found->dims;
  };
  assert_true(dims("input_kernel") == (std::vector<int64_t>{6, 18}));
  assert_true(dims("input_bias") == (std::vector<int64_t>{18}));
  assert_true(dims("output_kernel") == (std::vector<int64_t>{6, 6}));
  assert_true(dims("output_bias") == (std::vector<int64_t>{6}));
  assert_string_equal(bench.variable("multi_head_attention/input_kernel")->initializer.name.c_str(), "glorot_uniform");
  assert_string_equal(bench.variable("multi_head_attention/input_kernel")->creator.c_str(), "multi_head_attention");
}

void check_self_attention(const Layer &l) {
  const size_t of_queries = l.heads * l.size, of_keys = l.key_heads * l.size, all = of_queries + 2 * of_keys;
  const Numbers x = made_up(l.rows * l.length * l.channels, 0), kernel = made_up(l.channels * all, 1),
                bias = made_up(all, 2), output = made_up(of_queries * l.units, 3), output_bias = made_up(l.units, 4);
  Bench bench;
  std::vector<ValueId> inputs{bench.input("x", x, {static_cast<int64_t>(l.length), static_cast<int64_t>(l.channels)}),
                              graph::kNoValue};
  Numbers lengths(l.lengths.begin(), l.lengths.end());
  if (!lengths.empty()) inputs.push_back(bench.input("lengths", lengths, {}, DType::i64));
  const ValueId y = bench.expand("layer_multi_head_attention", inputs,
                                 {{"heads", static_cast<int64_t>(l.heads)},
                                  {"key_heads", static_cast<int64_t>(l.key_heads)},
                                  {"head_channels", static_cast<int64_t>(l.size)},
                                  {"channels", static_cast<int64_t>(l.units)},
                                  {"causal", l.causal}});
  assert_string_equal(bench.error().c_str(), "");
  const Numbers results = assert_ok_value(bench.evaluate(y, {{"multi_head_attention/input_kernel", kernel},
                                                             {"multi_head_attention/input_bias", bias},
                                                             {"multi_head_attention/output_kernel", output},
                                                             {"multi_head_attention/output_bias", output_bias}}));
  const auto part = [&](size_t first, size_t count) { return columns(x, kernel, bias, l.channels, first, count); };
  const Numbers seen = attend(l, part(0, of_queries), part(of_queries, of_keys), part(of_queries + of_keys, of_keys));
  assert_numbers(results, columns(seen, output, output_bias, of_queries, 0, l.units));
}

void test_self_attention(void **) {
  check_self_attention(
      {.rows = 2, .length = 5, .memory_length = 5, .heads = 3, .key_heads = 3, .size = 2, .channels = 6, .units = 6});
  check_self_attention({.rows = 1,
                        .length = 4,
                        .memory_length = 4,
                        .heads = 4,
                        .key_heads = 2,
                        .size = 3,
                        .channels = 5,
                        .units = 7,
                        .causal = true});
  check_self_attention({.rows = 3,
                        .length = 4,
                        .memory_length = 4,
                        .heads = 2,
                        .key_heads = 1,
                        .size = 2,
                        .channels = 4,
                        .units = 3,
                        .lengths = {4, 1, 3}});
}

void test_attention_to_a_memory(void **) {
  const Layer l{.rows = 2,
                .length = 3,
                .memory_length = 5,
                .heads = 2,
                .key_heads = 1,
                .size = 3,
                .channels = 6,
                .units = 6,
                .causal = true};
  const Numbers x = made_up(2 * 3 * 6, 0), memory = made_up(2 * 5 * 4, 1), query = made_up(36, 2),
                keys = made_up(4 * 6, 3), output = made_up(36, 4);
  Bench bench;
  const ValueId y =
      bench.expand("layer_multi_head_attention", {bench.input("x", x, {3, 6}), bench.input("memory", memory, {5, 4})},
                   {{"heads", int64_t{2}}, {"key_heads", int64_t{1}}, {"causal", true}, {"use_bias", false}});
  assert_string_equal(bench.error().c_str(), "");
  assert_int_equal(bench.builder.model().variables.size(), 3);
  const Numbers results = assert_ok_value(bench.evaluate(y, {{"multi_head_attention/query_kernel", query},
                                                             {"multi_head_attention/memory_kernel", keys},
                                                             {"multi_head_attention/output_kernel", output}}));
  const Numbers seen =
      attend(l, columns(x, query, {}, 6, 0, 6), columns(memory, keys, {}, 4, 0, 3), columns(memory, keys, {}, 4, 3, 3));
  assert_numbers(results, columns(seen, output, {}, 6, 0, 6));
}

/// Nodes of an op in a layer that forgets.
int64_t count_of(const char *op, double dropout, bool training) {
  Bench bench;
  const ValueId y = bench.expand("layer_multi_head_attention", {bench.input("x", Numbers(48, 1), {4, 6})},
                                 {{"heads", int64_t{2}}, {"dropout", dropout}}, training);
  assert_string_equal(bench.error().c_str(), "");
  bench.builder.set_result("y", y);
  const graph::Graph graph = assert_ok_value(bench.builder.finish_graph());
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [op](const auto &node) { return node.op == op; });
}

void test_it_forgets_while_it_learns(void **) {
  assert_int_equal(count_of("dropout_attention", 0.2, true), 1);
  assert_int_equal(count_of("attention", 0.2, true), 0);
  assert_int_equal(count_of("attention", 0.2, false), 1);
  assert_int_equal(count_of("attention", 0.0, true), 1);
}

void expect_error(const std::vector<int64_t> &rest, const Attributes &attributes, const char *expected) {
  Bench bench;
  bench.expand("layer_multi_head_attention", {bench.input("x", {}, rest)}, attributes);
  assert_contains(bench.error().c_str(), expected);
}

void test_mistakes(void **) {
  expect_error({6}, {{"heads", int64_t{2}}}, "layer_multi_head_attention: expected x of rank 3");
  expect_error({3, 6}, {{"heads", int64_t{4}}}, "6 channels cannot be divided among 4 heads");
  expect_error({3, 6}, {{"heads", int64_t{3}}, {"key_heads", int64_t{2}}}, "'key_heads' is 2, which does not divide 3");
  expect_error({3, 6}, {{"heads", int64_t{0}}}, "heads");
  expect_error({3, 6}, {{"heads", int64_t{2}}, {"dropout", 1.0}}, "attribute 'dropout' must be below 1");
  Bench bench;
  bench.expand("layer_multi_head_attention", {bench.input("x", {}, {3, 6}), bench.input("memory", {}, {6})},
               {{"heads", int64_t{2}}});
  assert_contains(bench.error().c_str(), "expected a memory of rank 3");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_variables_and_defaults),
    cmocka_unit_test(test_self_attention),
    cmocka_unit_test(test_attention_to_a_memory),
    cmocka_unit_test(test_it_forgets_while_it_learns),
    cmocka_unit_test(test_mistakes),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace attention_test

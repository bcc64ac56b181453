// SPDX-License-Identifier: Apache-2.0
//
// dropout and the random leaves: each element's number is a function of (seed, key, batch counter, iteration of a scan,
// row, element), as backend/random_elements.h has it.
#include <cmath>
#include <numbers>

#include "backend/pjrt/emit/op_emitters.h"
#include "backend/pjrt/emit/random_words.h"
#include "backend/pjrt/emit/special_functions.h"
#include "backend/random_elements.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;
using tensor::DType;

namespace {

/// The numbers of each row, u32[rows, 4 · blocks], of which the first elements_per_row() are the elements'.
Value words_of_rows(NodeEmitter &node, const RandomRows &rows) {
  const int64_t blocks = (rows.elements_per_row() + 3) / 4;
  return random_words(node.text(), random_key(node, rows.stream), global_rows(node, rows.rows, rows.has_batch), blocks);
}

/// [rows, 4 · blocks] put where the elements are in the op's result.
Value placed(NodeEmitter &node, const RandomRows &rows, const Value &numbers) {
  ProgramText &text = node.text();
  const Value used = text.slice_axis(numbers, 1, 0, rows.elements_per_row());
  const Value apart = text.reshape(used, {rows.rows, rows.outer, rows.factor, rows.inner});
  return text.reshape(text.transpose(apart, {1, 0, 2, 3}), node.output(0).dims);
}

/// The upper 24 bits of a word: uniform_float() times 2^24.
Value upper_bits(ProgramText &text, const Value &words) {
  return text.binary("shift_right_logical", words, text.like(words, 8));
}

/// Words 2i and 2i + 1 of each row: the normals that base::normal_pair makes of them, in their places.
Value normals(ProgramText &text, const Value &words) {
  const Dims pairs = {words.dims[0], words.dims[1] / 2, 2};
  const Value numbers = text.convert(text.reshape(words, pairs), DType::f64);
  const Value a = text.slice_axis(numbers, 2, 0, 1), b = text.slice_axis(numbers, 2, 1, 2);
  const Value uniform = text.mul(text.add(a, 1), 0x1.0p-32);
  const Value radius = text.unary("sqrt", text.mul(text.unary("log", uniform), -2));
  const Value angle = text.mul(text.mul(b, 0x1.0p-32), 2 * std::numbers::pi);
  const Value first = text.mul(radius, text.unary("cosine", angle));
  const Value second = text.mul(radius, text.unary("sine", angle));
  return text.reshape(text.concat_parts({first, second}, 2), words.dims);
}

Value truncated_normals(ProgramText &text, const Value &words) {
  constexpr double kBound = 2.0;
  const double below = 0.5 * std::erfc(kBound / std::numbers::sqrt2);
  const Value uniform = text.mul(text.add(text.convert(words, DType::f64), 0.5), 0x1.0p-32);
  const Value z = normal_quantile(text, text.add(text.mul(uniform, 1 - 2 * below), below));
  return text.binary("maximum", text.binary("minimum", z, text.like(z, kBound)), text.like(z, -kBound));
}

template <typename Attributes>
Status emit_normal(NodeEmitter &node, Value (*make)(ProgramText &text, const Value &words)) {
  TUTTI_ASSIGN(const Attributes attributes, Attributes::from(node.node()));
  ProgramText &text = node.text();
  const RandomRows rows = RandomRows::of(node.lowered(), node.node(), attributes.key);
  const Value z = make(text, words_of_rows(node, rows));
  node.set_output(0, placed(node, rows, text.add(text.mul(z, attributes.stddev), attributes.mean)));
  return Status();
}

}  // namespace

Status emit_dropout(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::DropoutAttributes::from(node.node()));
  ProgramText &text = node.text();
  const RandomRows rows = RandomRows::of(node.lowered(), node.node(), attributes.key);
  const Value bits = upper_bits(text, placed(node, rows, words_of_rows(node, rows)));
  const Value is_kept = text.compare("GE", bits, std::ceil(attributes.rate * 0x1.0p24));
  const Value x = node.wide_input(0);
  const Value kept = text.div(x, text.like(x, 1 - attributes.rate));
  node.set_output(0, text.select(is_kept, kept, text.like(x, 0)));
  return Status();
}

Status emit_random_uniform(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::RandomUniformAttributes::from(node.node()));
  ProgramText &text = node.text();
  const double low = attributes.low, high = attributes.high;
  const RandomRows rows = RandomRows::of(node.lowered(), node.node(), attributes.key);
  const Value bits = text.convert(upper_bits(text, placed(node, rows, words_of_rows(node, rows))), DType::f64);
  const Value exact = text.add(text.mul(text.mul(bits, 0x1.0p-24), high - low), low);
  const Value rounded = text.convert(exact, DType::f32);
  if (low >= high) {
    node.set_output(0, rounded);
    return Status();
  }
  // Rounding never reaches high.
  const float below = std::nextafter(static_cast<float>(high), static_cast<float>(low));
  const Value is_inside = text.compare("LT", rounded, static_cast<float>(high));
  node.set_output(0, text.select(is_inside, rounded, text.like(rounded, below)));
  return Status();
}

Status emit_random_normal(NodeEmitter &node) { return emit_normal<graph::ops::RandomNormalAttributes>(node, normals); }

Status emit_random_truncated_normal(NodeEmitter &node) {
  return emit_normal<graph::ops::RandomTruncatedNormalAttributes>(node, truncated_normals);
}

}  // namespace tutti::impl::backend::pjrt

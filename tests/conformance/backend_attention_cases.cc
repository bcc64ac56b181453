// SPDX-License-Identifier: Apache-2.0
//
// Cases of attention and its gradient.
#include "backend_cases.h"

namespace tutti::impl::conformance {

using graph::Attributes;
using graph::GraphBuilder;
using Values = GraphBuilder::Values;

namespace {

struct Sizes {
  int64_t rows, length, heads, channels, key_length, key_heads;

  ShapeDims queries() const { return {rows, length, heads, channels}; }
  ShapeDims keys() const { return {rows, key_length, key_heads, channels}; }
};

/// Attention, then its gradient with what attention gave. Inputs: dy (of the gradient), q, k, v, perhaps lengths.
void add_attention(std::vector<OpCase> &cases, DType dtype, const Sizes &sizes, bool has_lengths,
                   const Attributes &attributes, const std::string &op = "attention") {
  const Operand q{dtype, sizes.queries()}, k{dtype, sizes.keys()};
  std::vector<Operand> inputs{q, k, k};
  // Some count too few, some too many.
  if (has_lengths) inputs.push_back(whole(DType::i32, {sizes.rows}, -1, static_cast<double>(sizes.key_length) + 2));
  cases.push_back({op, inputs, attributes});
  OpCase backward{op + "_gradient", inputs, attributes};
  backward.inputs.insert(backward.inputs.begin(), q);
  backward.build = [attributes, op](GraphBuilder &b, const Values &v) -> Values {
    const Values made = b.op_n(op, Values(v.begin() + 1, v.end()), attributes, 2);
    Values all{v[0], v[1], v[2], v[3], made[0], made[1]};
    all.insert(all.end(), v.begin() + 4, v.end());
    return b.op_n(op + "_gradient", all, attributes, 3);
  };
  // The products of a few hundred numbers, of which the largest are about 10.
  backward.relative = dtype == DType::bf16 ? 3e-2 : dtype == DType::f16 ? 4e-3 : 0;
  backward.absolute = dtype == DType::bf16 ? 5e-2 : dtype == DType::f16 ? 1e-2 : 0;
  // One key has all of the attention, whatever it is: what moves it is a difference of equal numbers.
  if (sizes.key_length == 1 && dtype == DType::f32) backward.absolute = 1e-6;
  cases.push_back(backward);
}

}  // namespace

std::vector<OpCase> attention_cases() {
  const Sizes kSmall[] = {
      {2, 5, 4, 8, 5, 4},   {1, 1, 1, 1, 1, 1},    {3, 7, 6, 16, 9, 2},  {0, 3, 2, 4, 3, 2},
      {2, 3, 2, 8, 0, 2},   {1, 33, 2, 24, 65, 1}, {2, 40, 3, 5, 17, 3},  // more queries than keys
      {2, 1, 4, 32, 100, 2}                                               // one more position
  };
  const Sizes kLarge[] = {{1, 130, 2, 64, 130, 2}, {1, 140, 1, 128, 270, 1}};
  std::vector<OpCase> cases;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const Sizes &sizes : kSmall) {
      for (const bool causal : {false, true}) {
        for (const bool has_lengths : {false, true})
          add_attention(cases, dtype, sizes, has_lengths, {{"causal", causal}});
      }
      add_attention(cases, dtype, sizes, false, {{"scale", 0.03}});
      const Attributes dropping{{"rate", 0.3}, {"key", int64_t{77}}, {"causal", sizes.heads > 2}};
      add_attention(cases, dtype, sizes, sizes.rows > 1, dropping, "dropout_attention");
    }
    if (dtype == DType::f64 || dtype == DType::f16) continue;
    for (const Sizes &sizes : kLarge) {
      for (const bool causal : {false, true})
        add_attention(cases, dtype, sizes, causal, {{"causal", causal}});
      add_attention(cases, dtype, sizes, false, {{"rate", 0.1}, {"key", int64_t{3}}}, "dropout_attention");
    }
  }
  return cases;
}

}  // namespace tutti::impl::conformance

// SPDX-License-Identifier: Apache-2.0
//
// What mixed precision does with each op: the one list that mix_precision() goes by.
#ifndef TUTTI_GRAPH_REWRITE_PRECISION_RULES_H_
#define TUTTI_GRAPH_REWRITE_PRECISION_RULES_H_

#include <cstdint>
#include <string_view>

namespace tutti::impl::graph::rewrite {

enum class PrecisionRole {
  product,      ///< always in 16 bits: factors are rounded, so is the result; sums are f32
  carry,        ///< in 16 bits when what it reads is in 16 bits already and what reads it takes that
  elementwise,  ///< computed in f32; what it reads and what it leaves in memory may have 16 bits
  reduce,       ///< computed in f32 of what may have 16 bits in memory; results are f32
  loss,         ///< f32, and so is what leads to it
  keep,         ///< f32
};

/// How large results are beside what they are made of. It matters where 16 bits are f16, whose largest number is 65504:
/// what grows, and what is made of that, is then stored as f32 (bf16 has the exponents of f32).
enum class PrecisionRange {
  kept,     ///< by a small factor at most, but for gradients, where infinities are looked for
  grown,    ///< sums of many, squares, powers, quotients
  bounded,  ///< whatever they are made of
};

struct PrecisionRule {
  PrecisionRole role = PrecisionRole::keep;
  /// Bit i: input i, output i, may have 16 bits. Of all other roles than product and carry, f32 is what the op itself
  /// sees.
  uint32_t inputs = 0, outputs = 0;
  PrecisionRange range = PrecisionRange::kept;
};

/// `keep` for what is not in the list.
PrecisionRule precision_rule(std::string_view op);
/// Length of the list.
int64_t precision_rule_count();

}  // namespace tutti::impl::graph::rewrite

#endif  // TUTTI_GRAPH_REWRITE_PRECISION_RULES_H_

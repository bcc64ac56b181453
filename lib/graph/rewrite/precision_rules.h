// SPDX-License-Identifier: Apache-2.0
//
// What mixed precision does with each op: the one list that mix_precision() goes by.
#ifndef TUTTI_GRAPH_REWRITE_PRECISION_RULES_H_
#define TUTTI_GRAPH_REWRITE_PRECISION_RULES_H_

#include <cstdint>
#include <string_view>

namespace tutti::impl::graph::rewrite {

enum class PrecisionRole {
  product,      ///< always in bf16: factors are rounded, so is the result; sums are f32
  carry,        ///< in bf16 when what it reads is in bf16 already and what reads it takes that
  elementwise,  ///< computed in f32; what it reads and what it leaves in memory may be bf16
  reduce,       ///< computed in f32 of what may be bf16 in memory; results are f32
  loss,         ///< f32, and so is what leads to it
  keep,         ///< f32
};

struct PrecisionRule {
  PrecisionRole role = PrecisionRole::keep;
  /// Bit i: input i, output i, may be bf16. Of all other roles than product and carry, f32 is what the op itself sees.
  uint32_t inputs = 0, outputs = 0;
};

/// `keep` for what is not in the list.
PrecisionRule precision_rule(std::string_view op);
/// Length of the list.
int64_t precision_rule_count();

}  // namespace tutti::impl::graph::rewrite

#endif  // TUTTI_GRAPH_REWRITE_PRECISION_RULES_H_

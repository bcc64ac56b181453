// SPDX-License-Identifier: Apache-2.0
//
// Integers of a tensor that a limit is set to (class labels, indices of a gather), and the error about one of them,
// which all backends of this tree give alike: the value as its dtype has it, and where it stands in the batch of all
// replicas, not in the share of one.
//
//   labels [batch]               label 10 in row 5 is outside [0, 10)
//   indices [batch, positions]   index 7 in row 5, element 2 is outside [0, 4)
//   without the batch            label 10 in row 5, index 7 at position 11: of all elements
//
// Immutable; made when a node is compiled.
#ifndef TUTTI_BACKEND_BOUNDED_INTEGERS_H_
#define TUTTI_BACKEND_BOUNDED_INTEGERS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "backend/batch_rows.h"
#include "backend/lowered_graph.h"
#include "base/status.h"

namespace tutti::impl::backend {

class BoundedIntegers {
 public:
  /// Input `input` of the node, whose elements have to lie in [0, limit). `noun`: "label", "index"; a literal.
  static BoundedIntegers of(const LoweredGraph &lowered, const graph::Node &node, size_t input, int64_t limit,
                            std::string_view noun);

  /// INVALID_ARGUMENT for element `position` of the input. `value`: as load<int64_t> gives it, so that u64 may be
  /// negative. `row_offset`: the run scalar.
  base::Status error(int64_t position, int64_t value, int64_t row_offset) const;

 private:
  std::string place(int64_t position, int64_t row_offset) const;

  std::string node_;
  std::string_view noun_;
  tensor::DType dtype_ = tensor::DType::i64;
  int64_t limit_ = 0;
  BatchRows rows_;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_BOUNDED_INTEGERS_H_

// SPDX-License-Identifier: Apache-2.0
//
// Orders of elements along an axis, from top_k.
#ifndef TUTTI_NN_FUNCTIONS_SORTING_H_
#define TUTTI_NN_FUNCTIONS_SORTING_H_

#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {

struct Sorted {
  ValueId values = kNoValue;
  ValueId indices = kNoValue;  ///< of i64
};

/// The last axis, of `length` >= 1, in ascending order; equal elements stay in their order and NaNs come last.
Sorted sorted_ascending(GraphBuilder &b, ValueId x, int64_t length);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_FUNCTIONS_SORTING_H_

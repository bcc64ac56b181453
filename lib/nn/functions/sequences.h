// SPDX-License-Identifier: Apache-2.0
//
// Sequences [rows, length, channels] as images of height 1, and back.
#ifndef TUTTI_NN_FUNCTIONS_SEQUENCES_H_
#define TUTTI_NN_FUNCTIONS_SEQUENCES_H_

#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {

/// An error for another rank.
ValueId as_image(Expansion &e, ValueId x);
ValueId as_sequence(GraphBuilder &b, ValueId y);
/// A kernel [size, ., .] as [1, size, ., .]; an error for another rank, which says what was expected.
ValueId as_flat_kernel(Expansion &e, ValueId kernel, std::string_view expected);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_FUNCTIONS_SEQUENCES_H_

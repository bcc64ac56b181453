// SPDX-License-Identifier: Apache-2.0
//
// How the matrices of a batched product follow each other.
#ifndef TUTTI_BACKEND_CUDA_BATCH_STRIDES_H_
#define TUTTI_BACKEND_CUDA_BATCH_STRIDES_H_

#include <array>
#include <cstdint>
#include <vector>

namespace tutti::impl::backend::cuda {

/// An axis of a batch: so many matrices, and elements from one to the next in a, b and y; 0 where an operand has one
/// matrix for all.
struct BatchAxis {
  int64_t count = 1;
  std::array<int64_t, 3> steps{};
};

/// The axes of a batch, outermost first: without those of one matrix, neighbours merged where all operands walk on
/// evenly. The dims are those of whole arrays, the last two of the matrices; the batch dims of a and b broadcast to y's.
std::vector<BatchAxis> batch_axes(const std::vector<int64_t> &a, const std::vector<int64_t> &b,
                                  const std::vector<int64_t> &y);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_BATCH_STRIDES_H_

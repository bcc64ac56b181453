// SPDX-License-Identifier: Apache-2.0
//
// Sums beside products: the gradient of a bias adds up the rows of what the gradient of the weights multiplies by.
// Where a library can do both in one call, the later of the two nodes is computed at the turn of the earlier, or the
// other way round.
#ifndef TUTTI_BACKEND_GPU_PRODUCT_SUMS_H_
#define TUTTI_BACKEND_GPU_PRODUCT_SUMS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/gpu/kernel.h"
#include "backend/lowered_graph.h"

namespace tutti::impl::backend::gpu {

/// A reduce_sum over all axes but the last of what is a factor of a product.
struct ProductSum {
  int32_t product = -1, sum = -1;  ///< steps
  int32_t factor = 0;              ///< an input of the product
  int32_t turn = -1;               ///< one of the two: when both are computed

  int32_t other() const { return turn == product ? sum : product; }
};

/// Each step is in one of them at most. `is_alone(step)`: its kernel computes nothing else, at its own turn.
std::vector<ProductSum> find_product_sums(const LoweredGraph &lowered,
                                          const std::function<bool(int32_t step)> &is_alone);

/// The call of both: inputs are the product's; outputs its result and the sum. No kernel where the library cannot.
base::Result<KernelCall> make_sum_call(const LoweredGraph &lowered, const ProductSum &sum, Library &library,
                                       AlgorithmTrials &trials, std::vector<FaultText> &fault_texts,
                                       int64_t *scratch_bytes);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_PRODUCT_SUMS_H_

// SPDX-License-Identifier: Apache-2.0
//
// Sums beside products: the gradient of a bias adds up the rows of what the gradient of the weights multiplies by.
// Where a library can do both in one call, the later of the two nodes is computed at the turn of the earlier, or the
// other way round. In mixed precision the sums are f32 and the product is of 16 bits; where all that reads it is a cast
// to f32, that is what the call stores.
#ifndef TUTTI_BACKEND_GPU_FUSION_PRODUCT_SUMS_H_
#define TUTTI_BACKEND_GPU_FUSION_PRODUCT_SUMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/kernel/kernel.h"
#include "backend/lowered_graph.h"

namespace tutti::impl::backend::gpu {

/// A reduce_sum over all axes but the last of what is a factor of a product.
struct ProductSum {
  int32_t product = -1, sum = -1;  ///< steps
  int32_t factor = 0;              ///< an input of the product
  int32_t turn = -1;               ///< one of the two: when both are computed
  int32_t cast = -1;               ///< the step whose result is stored in place of the product's, or -1

  /// What makes the product's result.
  int32_t result() const { return cast < 0 ? product : cast; }
  /// Steps whose results are stored at the turn of another.
  std::vector<int32_t> other_steps() const;
};

/// Products and what is computed with them: no more than a cast.
using WidenedProducts = std::map<int32_t, ProductEpilogue>;
/// Of these tails, those that are one cast to f32.
WidenedProducts find_widened_products(const LoweredGraph &lowered, const std::vector<ProductEpilogue> &tails);

/// Each step is in one of them at most. `is_alone(step)`: its kernel computes nothing else, at its own turn; of a
/// product in `widened`: nothing but that and the cast.
std::vector<ProductSum> find_product_sums(const LoweredGraph &lowered,
                                          const std::function<bool(int32_t step)> &is_alone,
                                          const WidenedProducts &widened = {});

/// The call of both: inputs are the product's; outputs its result, or that of its tail, and the sum. No kernel where
/// the library cannot. `tail`: that of a sum with a cast, else null.
base::Result<KernelCall> make_sum_call(const LoweredGraph &lowered, const ProductSum &sum, const ProductEpilogue *tail,
                                       Library &library, AlgorithmTrials &trials, std::vector<BoundedIntegers> &faults,
                                       int64_t *scratch_bytes);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_PRODUCT_SUMS_H_

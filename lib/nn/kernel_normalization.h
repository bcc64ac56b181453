// SPDX-License-Identifier: Apache-2.0
//
// What a layer uses in place of a kernel: the attribute kernel_normalization of layers. Seen as a matrix, a kernel has
// as many columns as its last axis, the units, and as many rows as there are inputs of a unit.
//
//   weight_norm     w = scale * v / |v| for each unit, with v the variable kernel
//   spectral_norm   w = v / s with s = u v w the largest singular value; u and w follow by one round of power iteration
//                   in each training step, from which no gradient flows
#ifndef TUTTI_NN_KERNEL_NORMALIZATION_H_
#define TUTTI_NN_KERNEL_NORMALIZATION_H_

#include <string_view>

#include "nn/expansion.h"

namespace tutti::impl::nn {

/// `kernel` is the value of the variable `name` in the present scope. Further variables are called after it.
ValueId normalized_kernel(Expansion &e, std::string_view name, ValueId kernel);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_KERNEL_NORMALIZATION_H_

// SPDX-License-Identifier: Apache-2.0
//
// Reductions of elementwise trees in one kernel, which never stores what the tree gives: sums over rows of a product,
// means of squares. The bits are those of the two kernels that the interpreter needs: the same layout, the same order,
// every element rounded to the dtype that it would be stored in.
#ifndef TUTTI_BACKEND_GPU_KERNELS_REDUCED_TREES_H_
#define TUTTI_BACKEND_GPU_KERNELS_REDUCED_TREES_H_

#include <cstdint>
#include <span>

#include "backend/gpu/device/device_reduce.h"
#include "backend/gpu/kernel/kernel.h"

namespace tutti::impl::backend::gpu {

/// The shape of a reduce_sum, _mean, _max, _min or _prod node.
base::Result<ReduceWork> reduce_work_of(const LoweredGraph &lowered, const graph::Node &node);

/// The call of a tree (elementwise_trees.h) whose root is a reduction. Where there is no kernel after all, the tree is
/// interpreted into scratch memory and reduced from there: `scratch_bytes` has room for that.
base::Result<KernelCall> make_reduced_tree_call(const LoweredGraph &lowered, std::span<const int32_t> steps,
                                                KernelBatch &batch, int64_t *scratch_bytes);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_KERNELS_REDUCED_TREES_H_

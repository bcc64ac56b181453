// SPDX-License-Identifier: Apache-2.0
//
// Kernels of elementwise nodes: one node, or a tree of them that is computed in one launch; and copies and sums that
// the executor itself needs.
#ifndef TUTTI_BACKEND_GPU_KERNELS_ELEMENTWISE_H_
#define TUTTI_BACKEND_GPU_KERNELS_ELEMENTWISE_H_

#include <cstdint>
#include <span>

#include "backend/gpu/device/element_program.h"
#include "backend/gpu/kernel/kernel.h"

namespace tutti::impl::backend::gpu {

/// The call of a tree of nodes that fuse(); its kernel may become one of the batch.
base::Result<KernelCall> make_tree_call(const LoweredGraph &lowered, std::span<const int32_t> steps,
                                        KernelBatch *batch);

/// A program's inputs are those of a frame, in order.
ElementPlaces place_program(const ElementProgram &program, const Frame &frame, void *output);

/// Output 0 becomes input 0, byte by byte; they may be the same memory.
Kernel copy_kernel(int64_t bytes);

/// Output 0 becomes input 0 + input 1; they may be the same memory.
Kernel accumulate_kernel(tensor::DType dtype, int64_t elements);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_KERNELS_ELEMENTWISE_H_

// SPDX-License-Identifier: Apache-2.0
//
// Elementwise nodes as programs of device_elementwise.h: one node, or a tree of them that is computed in one launch;
// and copies and sums that the executor itself needs.
#ifndef TUTTI_BACKEND_GPU_ELEMENTWISE_H_
#define TUTTI_BACKEND_GPU_ELEMENTWISE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "backend/gpu/kernel.h"

namespace tutti::impl::backend::gpu {

/// Is one element of the op's result made of one of each operand?
bool is_elementwise(std::string_view op);

/// May the node be part of a tree: does float arithmetic give what it gives alone?
bool fuses(const LoweredGraph &lowered, const graph::Node &node);

/// May the result lie on top of an input that dies with it?
bool may_overwrite(const LoweredGraph &lowered, const graph::Node &node, int32_t input);

/// How many different values from outside a tree reads, and how many instructions it takes; `steps` in order, the root
/// last. False where a program cannot hold them.
bool fits_program(const LoweredGraph &lowered, std::span<const int32_t> steps);

/// The call of a tree of nodes that fuse().
base::Result<KernelCall> make_tree_call(const LoweredGraph &lowered, std::span<const int32_t> steps);

/// Output 0 becomes input 0, byte by byte; they may be the same memory.
Kernel copy_kernel(int64_t bytes);

/// Output 0 becomes input 0 + input 1; they may be the same memory.
Kernel accumulate_kernel(tensor::DType dtype, int64_t elements);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_ELEMENTWISE_H_

// SPDX-License-Identifier: Apache-2.0
//
// Elementwise nodes as programs (element_program.h): one node, or a tree of them. Host code that knows no device.
#ifndef TUTTI_BACKEND_GPU_KERNEL_PROGRAM_MAKER_H_
#define TUTTI_BACKEND_GPU_KERNEL_PROGRAM_MAKER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backend/gpu/device/element_program.h"
#include "backend/lowered_graph.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// Is one element of the op's result made of one of each operand?
bool is_elementwise(std::string_view op);
/// Of an elementwise op.
bool takes_integers(std::string_view op);

/// What the node does with its operands, by its op and attributes; operands are not set.
base::Result<ElementInstruction> element_instruction(const graph::Node &node);

/// May the node be part of a tree: does float arithmetic give what it gives alone?
bool fuses(const LoweredGraph &lowered, const graph::Node &node);

/// May the result lie on top of an input that dies with it?
bool may_overwrite(const LoweredGraph &lowered, const graph::Node &node, int32_t input);

/// The type that elements of the dtype are computed in.
Arithmetic arithmetic_of(tensor::DType dtype);

/// Is it computed with in float, and held there exactly?
bool is_float_like(tensor::DType dtype);

/// What makes of a float what it would be if it were stored; none where that changes nothing.
std::optional<ElementOp> rounding_to(tensor::DType dtype);

/// What becomes of a program's result.
enum class ProgramResult : int32_t {
  stored,    ///< rounded to its dtype then
  consumed,  ///< computed with on the spot, in float: the program rounds it as if it were stored
};

struct TreeProgram {
  ElementProgram program;
  std::vector<graph::ValueId> inputs;  ///< each once
};

/// The program of nodes in order, the root last; more than one must fuse(). UNIMPLEMENTED where a program cannot hold
/// them: too many operands, instructions or axes.
base::Result<TreeProgram> make_program(const LoweredGraph &lowered, std::vector<const graph::Node *> nodes,
                                       ProgramResult result = ProgramResult::stored);
base::Result<TreeProgram> make_tree_program(const LoweredGraph &lowered, std::span<const int32_t> steps,
                                            ProgramResult result = ProgramResult::stored);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_KERNEL_PROGRAM_MAKER_H_

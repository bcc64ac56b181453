// SPDX-License-Identifier: Apache-2.0
//
// The text of a kernel that does one elementwise program and nothing else: CUDA C++ for a compiler at run time. Equal
// programs have equal texts: what differs from node to node (ids, names, the number of elements where nothing depends
// on it) is not in it.
//
//   const std::optional<KernelText> kernel = program_text(program);    // device_elementwise.h would interpret it
//
// A text bears the same bits as the interpreter: each instruction is apply<op>() of arithmetic-inl.h, and compilers
// must not contract a product and a sum of two instructions into one.
//
// A thread takes KernelText::width neighbours, 16 bytes of the widest dense operand, in one access each. Of what is
// broadcast, a single element is read once per thread; rows that are a multiple of the width are read as packs, or as
// one element where they are constant; anything else element by element, its position by divisions by constants.
#ifndef TUTTI_BACKEND_GPU_GENERATED_PROGRAM_TEXT_H_
#define TUTTI_BACKEND_GPU_GENERATED_PROGRAM_TEXT_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "backend/gpu/device/element_program.h"
#include "backend/gpu/generated/kernel_text.h"

namespace tutti::impl::backend::gpu {

/// What is done with a program's elements where they are not stored (reduced_trees.h).
struct ReductionText {
  const char *op;  ///< "Sum", "Max", "Min": reduce_work-inl.h
  bool is_lines;   ///< run_lines, else run_columns of reduction_body-inl.h
  tensor::DType result;
  int32_t width;  ///< elements that a thread takes together; divides what lies side by side
};

/// None where a number of the program cannot be written down (it is not finite). A reduction does the first pass: it
/// leaves the result, or partial results.
std::optional<KernelText> program_text(const ElementProgram &program, const ReductionText *reduction = nullptr);

/// The same for several calls of any number of elements; of strided operands all are alike (GeneratedOperands::rows).
std::optional<KernelText> joined_program_text(const ElementProgram &program);

/// What stands before the texts of kernels, and after them.
std::string_view text_prologue();
std::string_view text_epilogue();

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_PROGRAM_TEXT_H_

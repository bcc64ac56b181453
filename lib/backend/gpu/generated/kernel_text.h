// SPDX-License-Identifier: Apache-2.0
//
// The words of kernels that are written and compiled at run time: what program_text.h and fused_text.h share.
#ifndef TUTTI_BACKEND_GPU_GENERATED_KERNEL_TEXT_H_
#define TUTTI_BACKEND_GPU_GENERATED_KERNEL_TEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "backend/gpu/device/element_program.h"

namespace tutti::impl::backend::gpu {

/// One function `extern "C" __global__ void <name>(const GeneratedOperands operands)` of a grid of any number of blocks
/// along x; the name is made of the text, so that the texts of several kernels stand side by side.
struct KernelText {
  std::string name, text;
  int32_t width = 1;  ///< elements that a thread takes at a time
};

/// Stands for the name until the text is whole.
inline constexpr std::string_view kName = "@NAME@";

/// The text with its name, which is made of it.
KernelText named(const std::string &text);

const char *type_text(Arithmetic arithmetic);
/// What an array of the dtype consists of.
const char *word_text(tensor::DType dtype);
const char *dtype_text(tensor::DType dtype);
/// What an instruction makes of registers, which `register_text` names.
std::string instruction_text(const ElementInstruction &instruction,
                             const std::function<std::string(int32_t)> &register_text);
/// As the type C, which the text has to name; finite.
std::string number_text(double number);
/// Are all numbers of the instructions finite, so that they can be written down?
bool can_be_written(const ElementInstruction *instructions, int32_t count);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_KERNEL_TEXT_H_

// SPDX-License-Identifier: Apache-2.0
//
// Multi-output fusion as data: elementwise work over rows and columns that stores several results. An operand may be
// some columns of something wider, whose rows lie apart; so may the place of a result. device_fused.h runs it as it is,
// fused_text.h makes a kernel of it.
#ifndef TUTTI_BACKEND_GPU_DEVICE_FUSED_PROGRAM_H_
#define TUTTI_BACKEND_GPU_DEVICE_FUSED_PROGRAM_H_

#include <cstdint>

#include "backend/gpu/device/element_program.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// Where element (row, column) lies: offset + row * row_stride + column * column_stride, in elements.
struct FusedOperand {
  tensor::DType dtype;
  int32_t source;  ///< of an output: the register that is stored
  int64_t row_stride, column_stride, offset;
};

/// Registers are floats: the inputs, then the results of the instructions.
struct FusedProgram {
  static constexpr int32_t kInputs = 20, kInstructions = 48, kOutputs = 12;

  int64_t rows, columns;
  int32_t input_count, instruction_count, output_count;
  FusedOperand inputs[kInputs];
  FusedOperand outputs[kOutputs];
  ElementInstruction instructions[kInstructions];
};

/// What one call of a program works on.
struct FusedPlaces {
  const void *inputs[FusedProgram::kInputs];
  void *outputs[FusedProgram::kOutputs];
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_FUSED_PROGRAM_H_

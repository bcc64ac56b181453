// SPDX-License-Identifier: Apache-2.0
//
// Elementwise work on a device: a short program of instructions that every thread runs for its elements, with registers
// in shared memory. One launch computes one op, or a chain of them.
#ifndef TUTTI_BACKEND_GPU_DEVICE_ELEMENTWISE_H_
#define TUTTI_BACKEND_GPU_DEVICE_ELEMENTWISE_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// What an instruction does with its operands a, b, c and its number n.
enum class ElementOp : int32_t {
  // one operand
  identity,
  neg,
  abs,
  sign,
  exp,
  log,
  log1p,
  expm1,
  sqrt,
  rsqrt,
  square,
  reciprocal,
  sin,
  cos,
  tanh,
  sigmoid,
  relu,
  gelu,
  gelu_tanh,
  silu,
  softplus,
  elu,         ///< alpha n
  leaky_relu,  ///< slope n
  floor,
  ceil,
  round,  ///< to even
  erf,
  logical_not,
  is_finite,
  // two
  add,
  sub,
  mul,
  div,
  pow,
  maximum,
  minimum,
  mod,
  floor_divide,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  relu_gradient,
  sigmoid_gradient,
  tanh_gradient,
  gelu_gradient,
  gelu_tanh_gradient,
  sigmoid_cross_entropy,
  // three
  select,  ///< a != 0 ? b : c
};

/// The type that registers have.
enum class Arithmetic : int32_t { f32, f64, i64, u64 };

struct ElementInstruction {
  ElementOp op;
  int32_t a, b, c;  ///< registers: the inputs, then the results of the instructions before
  double number;
};

/// An array as the program reads or writes it: dense, or through strides.
struct ElementOperand {
  void *data;
  tensor::DType dtype;
  int32_t slot;      ///< register that is stored; of outputs only
  int32_t is_dense;  ///< element i of the result's order is element i of the array
  int64_t strides[6];
};

struct ElementProgram {
  static constexpr int32_t kInputs = 8, kOutputs = 4, kInstructions = 24, kAxes = 6;

  int64_t elements;
  Arithmetic arithmetic;
  int32_t rank;
  int64_t dims[kAxes];  ///< of the result, axes merged where all operands allow
  int32_t input_count, output_count, instruction_count;
  ElementOperand inputs[kInputs];
  ElementOperand outputs[kOutputs];
  ElementInstruction instructions[kInstructions];
};

gpuError_t launch_elements(const ElementProgram &program, gpuStream_t stream);

/// to[i] = from[i] for bytes that may be the same memory, but not overlap otherwise.
gpuError_t launch_copy(void *to, const void *from, int64_t bytes, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_ELEMENTWISE_H_

// SPDX-License-Identifier: Apache-2.0
//
// Elementwise work as data: a short program of instructions over registers. One program is one op, or a tree of them.
// device_elementwise.h runs it as it is; program_text.h makes a kernel of it.
#ifndef TUTTI_BACKEND_GPU_DEVICE_ELEMENT_PROGRAM_H_
#define TUTTI_BACKEND_GPU_DEVICE_ELEMENT_PROGRAM_H_

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

// Every op, in the order of the enumeration: of one operand a, of two, of three. elu and leaky_relu take the number of
// the instruction; round is to even; select is a != 0 ? b : c; to_f16 and to_bf16 round to those types.
// clang-format off
#define TUTTI_UNARY_ELEMENT_OPS(X)                                                                                     \
  X(identity) X(neg) X(abs) X(sign) X(exp) X(log) X(log1p) X(expm1) X(sqrt) X(rsqrt) X(square) X(reciprocal) X(sin)    \
  X(cos) X(tangent) X(arc_tangent) X(arc_sine) X(arc_cosine) X(tanh) X(sigmoid) X(relu) X(gelu) X(gelu_tanh) X(silu)   \
  X(softplus) X(elu) X(leaky_relu) X(floor) X(ceil) X(round) X(erf) X(logical_not) X(is_finite) X(to_boolean)          \
  X(to_f16) X(to_bf16)
#define TUTTI_BINARY_ELEMENT_OPS(X)                                                                                    \
  X(add) X(sub) X(mul) X(div) X(pow) X(maximum) X(minimum) X(mod) X(floor_divide) X(equal) X(not_equal) X(less)        \
  X(less_equal) X(greater) X(greater_equal) X(logical_and) X(logical_or) X(logical_xor) X(relu_gradient)               \
  X(sigmoid_gradient) X(tanh_gradient) X(gelu_gradient) X(gelu_tanh_gradient) X(sigmoid_cross_entropy)                 \
  X(arc_tangent2)
#define TUTTI_ELEMENT_OPS(X) TUTTI_UNARY_ELEMENT_OPS(X) TUTTI_BINARY_ELEMENT_OPS(X) X(select)
// clang-format on

/// What an instruction does with its operands a, b, c and its number.
enum class ElementOp : int32_t {
#define TUTTI_ELEMENT_OP_NAME(name) name,
  TUTTI_ELEMENT_OPS(TUTTI_ELEMENT_OP_NAME)
#undef TUTTI_ELEMENT_OP_NAME
};

/// The type that registers have.
enum class Arithmetic : int32_t { f32, f64, i64, u64 };

struct ElementInstruction {
  ElementOp op;
  int32_t a, b, c;  ///< registers: the inputs, then the results of the instructions before
  double number;
};

enum class ElementAccess : int32_t {
  dense,    ///< element i of the result's order is element i of the array
  scalar,   ///< element 0 for all
  strided,  ///< by the strides along the result's axes
};

/// An array as the program reads or writes it.
struct ElementOperand {
  static constexpr int32_t kAxes = 6;

  tensor::DType dtype;
  ElementAccess access;
  int64_t strides[kAxes];
};

/// The result of the last instruction is stored.
struct ElementProgram {
  static constexpr int32_t kInputs = 12, kInstructions = 24;

  int64_t elements;
  Arithmetic arithmetic;
  int32_t rank;
  int64_t dims[ElementOperand::kAxes];  ///< of the result, axes merged where all operands allow; used where strided
  int32_t input_count, instruction_count;
  ElementOperand inputs[kInputs];
  ElementOperand output;  ///< dense
  ElementInstruction instructions[kInstructions];
};

/// What one call of a program works on.
struct ElementPlaces {
  static constexpr uint32_t kOutputBit = 1u << ElementProgram::kInputs;

  int64_t elements;
  const void *inputs[ElementProgram::kInputs];
  void *output;
  uint32_t aligned;     ///< to 16: bit i for input i, kOutputBit
  int64_t first_chunk;  ///< as a row among others (rows.h)
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_ELEMENT_PROGRAM_H_

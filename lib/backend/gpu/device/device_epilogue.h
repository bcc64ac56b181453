// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the results of a product before they are stored: a chain of ops, each of the value so far and at most
// one operand, in float.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_EPILOGUE_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_EPILOGUE_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device_elementwise.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

enum class EpilogueAccess : int32_t {
  dense,   ///< lies as the results do
  column,  ///< one element for each column: of a matrix, or each channel of an image
  scalar,  ///< one for all
};

struct EpilogueOperand {
  const void *data;
  tensor::DType dtype;  ///< f32, f16 or bf16
  EpilogueAccess access;
  int32_t is_wide;  ///< may four neighbours be read together?
};

struct EpilogueStep {
  ElementOp op;         ///< of those that has_epilogue() knows
  int32_t operand;      ///< -1: none
  int32_t is_reversed;  ///< op(operand, value) in place of op(value, operand)
  float number;
};

struct Epilogue {
  static constexpr int32_t kOperands = 4, kSteps = 8;

  int32_t step_count;
  tensor::DType dtype;  ///< of what is stored
  EpilogueStep steps[kSteps];
  EpilogueOperand operands[kOperands];
};

/// In place of an epilogue where there is none: costs nothing.
struct NoEpilogue {};

// clang-format off
#define TUTTI_EPILOGUE_OPS(X)                                                                                          \
  X(identity) X(neg) X(abs) X(square) X(exp) X(tanh) X(sigmoid) X(relu) X(gelu) X(gelu_tanh) X(silu) X(softplus)      \
  X(elu) X(leaky_relu) X(to_f16) X(to_bf16) X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(relu_gradient)        \
  X(sigmoid_gradient) X(tanh_gradient) X(gelu_gradient) X(gelu_tanh_gradient)
// clang-format on

constexpr bool has_epilogue(ElementOp op) {
  switch (op) {
#define TUTTI_EPILOGUE_OP(name) case ElementOp::name:
    TUTTI_EPILOGUE_OPS(TUTTI_EPILOGUE_OP)
#undef TUTTI_EPILOGUE_OP
    return true;
    default:
      return false;
  }
}

/// What nearly always follows a normalisation, or makes the gradient that its own begins with: kernels have it without
/// calls.
#define TUTTI_USUAL_OPS(X) X(add) X(mul) X(relu) X(relu_gradient) X(to_f16) X(to_bf16)

constexpr bool is_usual(const EpilogueStep &step) {
  switch (step.op) {
#define TUTTI_USUAL_OP(name) case ElementOp::name:
    TUTTI_USUAL_OPS(TUTTI_USUAL_OP)
#undef TUTTI_USUAL_OP
    return step.op != ElementOp::relu_gradient || step.is_reversed == 0;
    default:
      return false;
  }
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_EPILOGUE_H_

// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cudnn_epilogue.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace tutti::impl::backend::cuda {

using gpu::ElementOp;
using Kind = CudnnEpilogueValue::Kind;

namespace {

class TailReader {
 public:
  explicit TailReader(tensor::DType result) { tail_.result = result; }

  void add_bias(const CudnnEpilogueOperand &bias) {
    value_ = add(CUDNN_POINTWISE_ADD, value_, operand(bias));
    ++tail_.kernels_apart;
  }

  bool add_epilogue(const gpu::Epilogue &epilogue, int32_t first) {
    for (int32_t i = 0; i < epilogue.step_count; ++i) {
      const gpu::EpilogueStep &step = epilogue.steps[i];
      CudnnEpilogueValue other;
      if (step.operand >= 0) {
        const gpu::EpilogueOperand &read = epilogue.operands[step.operand];
        other = operand({read.dtype, read.access, first + step.operand});
      }
      if (!(step.is_reversed != 0 ? add_step(step, other, value_) : add_step(step, value_, other))) return false;
    }
    ++tail_.kernels_apart;
    return true;
  }

  CudnnEpilogue take() {
    // An epilogue of casts alone: what is stored is the result of an operation.
    if (value_.kind != Kind::operation) value_ = add(CUDNN_POINTWISE_IDENTITY, value_);
    return std::move(tail_);
  }

 private:
  CudnnEpilogueValue operand(const CudnnEpilogueOperand &wanted) {
    auto &operands = tail_.operands;
    const auto known = std::find_if(operands.begin(), operands.end(),
                                    [&](const CudnnEpilogueOperand &one) { return one.input == wanted.input; });
    const auto index = static_cast<int32_t>(known - operands.begin());
    if (known == operands.end()) operands.push_back(wanted);
    return {Kind::operand, index};
  }

  CudnnEpilogueValue constant(float number) {
    auto &constants = tail_.constants;
    const auto known = std::find(constants.begin(), constants.end(), number);
    const auto index = static_cast<int32_t>(known - constants.begin());
    if (known == constants.end()) constants.push_back(number);
    return {Kind::constant, index};
  }

  CudnnEpilogueValue add(cudnnPointwiseMode_t mode, CudnnEpilogueValue x, CudnnEpilogueValue b = {},
                         CudnnEpilogueValue t = {}) {
    tail_.operations.push_back({mode, x, b, t});
    return {Kind::operation, static_cast<int32_t>(tail_.operations.size()) - 1};
  }
  CudnnEpilogueValue select(CudnnEpilogueValue condition, CudnnEpilogueValue if_true, CudnnEpilogueValue if_false) {
    return add(CUDNN_POINTWISE_BINARY_SELECT, if_true, if_false, condition);
  }
  /// What cuDNN makes of x, or x if that is a NaN.
  CudnnEpilogueValue of_number(CudnnEpilogueValue x, CudnnEpilogueValue made) {
    return select(add(CUDNN_POINTWISE_CMP_EQ, x, x), made, x);
  }

  bool add_step(const gpu::EpilogueStep &step, CudnnEpilogueValue a, CudnnEpilogueValue b) {
    // What is not stored need not be rounded.
    if (step.op == ElementOp::identity || step.op == ElementOp::to_f16 || step.op == ElementOp::to_bf16) return true;
    return add_exact(step, a, b) || add_approximate(step.op, a, b);
  }

  /// What is one rounding, or a few that are known.
  bool add_exact(const gpu::EpilogueStep &step, CudnnEpilogueValue a, CudnnEpilogueValue b) {
    switch (step.op) {
      case ElementOp::neg:
        value_ = add(CUDNN_POINTWISE_NEG, a);
        return true;
      case ElementOp::abs:
        value_ = add(CUDNN_POINTWISE_ABS, a);
        return true;
      case ElementOp::square:
        value_ = add(CUDNN_POINTWISE_MUL, a, a);
        return true;
      case ElementOp::add:
        value_ = add(CUDNN_POINTWISE_ADD, a, b);
        return true;
      case ElementOp::sub:
        value_ = add(CUDNN_POINTWISE_SUB, a, b);
        return true;
      case ElementOp::mul:
        value_ = add(CUDNN_POINTWISE_MUL, a, b);
        return true;
      case ElementOp::relu:
        value_ = select(add(CUDNN_POINTWISE_CMP_LT, a, constant(0)), constant(0), a);
        return true;
      case ElementOp::leaky_relu:
        value_ =
            select(add(CUDNN_POINTWISE_CMP_LT, a, constant(0)), add(CUDNN_POINTWISE_MUL, a, constant(step.number)), a);
        return true;
      case ElementOp::relu_gradient:
        value_ = select(add(CUDNN_POINTWISE_CMP_GT, b, constant(0)), a, constant(0));
        return true;
      case ElementOp::maximum:
        value_ = extreme(CUDNN_POINTWISE_CMP_GE, a, b);
        return true;
      case ElementOp::minimum:
        value_ = extreme(CUDNN_POINTWISE_CMP_LE, a, b);
        return true;
      case ElementOp::tanh_gradient:  // a (1 - b b)
        value_ = add(CUDNN_POINTWISE_MUL, a, add(CUDNN_POINTWISE_SUB, constant(1), add(CUDNN_POINTWISE_MUL, b, b)));
        return true;
      case ElementOp::sigmoid_gradient:  // a b (1 - b)
        value_ = add(CUDNN_POINTWISE_MUL, add(CUDNN_POINTWISE_MUL, a, b), add(CUDNN_POINTWISE_SUB, constant(1), b));
        return true;
      default:
        return false;
    }
  }

  /// The first of a and b that is a NaN, else the one that wins.
  CudnnEpilogueValue extreme(cudnnPointwiseMode_t wins, CudnnEpilogueValue a, CudnnEpilogueValue b) {
    return select(add(wins, a, b), a, select(add(CUDNN_POINTWISE_CMP_EQ, a, a), b, a));
  }

  /// How exact these are is not documented: for results of 16 bits. Not softplus, which may overflow, and not elu,
  /// which may lose what is close to zero.
  bool add_approximate(ElementOp op, CudnnEpilogueValue a, CudnnEpilogueValue b) {
    if (tail_.result != tensor::DType::f16 && tail_.result != tensor::DType::bf16) return false;
    switch (op) {
      case ElementOp::div:
        value_ = add(CUDNN_POINTWISE_DIV, a, b);
        return true;
      case ElementOp::exp:
        value_ = of_number(a, add(CUDNN_POINTWISE_EXP, a));
        return true;
      case ElementOp::tanh:
        value_ = of_number(a, add(CUDNN_POINTWISE_TANH_FWD, a));
        return true;
      case ElementOp::sigmoid:
        value_ = of_number(a, add(CUDNN_POINTWISE_SIGMOID_FWD, a));
        return true;
      case ElementOp::silu:
        value_ = add(CUDNN_POINTWISE_MUL, a, add(CUDNN_POINTWISE_SIGMOID_FWD, a));
        return true;
      case ElementOp::gelu:
        value_ = of_number(a, add(CUDNN_POINTWISE_GELU_FWD, a));
        return true;
      case ElementOp::gelu_tanh:
        value_ = of_number(a, add(CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, a));
        return true;
      case ElementOp::gelu_gradient:
        value_ = of_number(b, add(CUDNN_POINTWISE_GELU_BWD, a, b));
        return true;
      case ElementOp::gelu_tanh_gradient:
        value_ = of_number(b, add(CUDNN_POINTWISE_GELU_APPROX_TANH_BWD, a, b));
        return true;
      default:
        return false;
    }
  }

  CudnnEpilogue tail_;
  CudnnEpilogueValue value_{Kind::convolution, 0};  // made so far
};

std::string epilogue_text(CudnnEpilogueValue value) {
  return base::concat("-cokr"[static_cast<size_t>(value.kind)], value.index);
}

}  // namespace

std::string CudnnEpilogue::describe() const {
  if (is_empty()) return "";
  static constexpr const char *kAccesses[] = {"dense", "column", "scalar"};
  std::string text = " then";
  for (const CudnnEpilogueOperation &operation : operations)
    text += base::concat(" ", static_cast<int>(operation.mode), "(", epilogue_text(operation.x),
                         epilogue_text(operation.b), epilogue_text(operation.t), ")");
  for (const CudnnEpilogueOperand &operand : operands)
    text += base::concat(" ", name(operand.dtype), " ", kAccesses[static_cast<size_t>(operand.access)]);
  for (const float number : constants)
    text += base::concat(" ", number);
  return base::concat(text, " to ", name(result));
}

std::optional<CudnnEpilogue> read_epilogue(tensor::DType result, const std::optional<CudnnEpilogueOperand> &bias,
                                           const gpu::Epilogue *epilogue, int32_t first) {
  if (!bias && epilogue == nullptr) return CudnnEpilogue{result, {}, {}, {}, 0};
  TailReader reader(result);
  if (bias) reader.add_bias(*bias);
  if (epilogue != nullptr && !reader.add_epilogue(*epilogue, first)) return std::nullopt;
  return reader.take();
}

}  // namespace tutti::impl::backend::cuda

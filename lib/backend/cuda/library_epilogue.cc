// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/library_epilogue.h"

#include "backend/gpu/device/device_elementwise.h"
#include "backend/gpu/fusion/product_epilogues.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using gpu::ElementOp;
using gpu::EpilogueAccess;

namespace {

/// What cuBLASLt asks of the distance of lines of the operand of gelu.
constexpr int64_t kAuxiliaryLine = 8;

/// cuBLASLt takes the device's own tanh, which is off by 2^-11 (seen: 1.2e-4 of gelu in f32).
bool is_exact_enough(const ProductShape &shape) {
  return tensor::size_bytes(shape.result_dtype()) == 2 || shape.allows_rounding;
}

/// For bf16 it takes one of as many digits, and slopes are off by a hundredth where they cancel.
bool is_slope_exact_enough(const ProductShape &shape) {
  return is_exact_enough(shape) && shape.result_dtype() != tensor::DType::bf16;
}

/// Can the operand of gelu lie as the results do?
bool fits_auxiliary(const ProductShape &shape) { return shape.batches == 1 && shape.n % kAuxiliaryLine == 0; }

}  // namespace

void LibraryEpilogue::add_bias(const gpu::KernelRequest &request, ProductShape &shape) {
  shape.has_bias = true;
  bias_ = 2;
  bias_dtype_ = request.input(2).dtype;
  result_ = shape.result_dtype();
  columns_ = shape.n;
}

/// Whether the value that the epilogue keeps can be stored as gelu's operand.
bool LibraryEpilogue::keep_operand(const gpu::KernelRequest &request, ProductShape &shape) {
  const LoweredValue &kept = request.lowered.value(request.lowered.step(request.tail->kept).outputs[0]);
  if (!fits_auxiliary(shape) || kept.dtype != result_) return false;
  shape.keeps_gelu_operand = true;
  kept_ = static_cast<int32_t>(request.node.outputs.size());
  return true;
}

bool LibraryEpilogue::read(const gpu::KernelRequest &request, ProductShape &shape) {
  if (request.tail == nullptr) return true;
  const gpu::Epilogue &epilogue = request.tail->epilogue;
  const auto first = static_cast<int32_t>(request.input_count());
  const bool keeps = request.tail->keeps();
  shape.result = result_ = epilogue.dtype;
  columns_ = shape.n;
  for (int32_t i = 0; i < epilogue.step_count; ++i) {
    const gpu::EpilogueStep &step = epilogue.steps[i];
    // What is not stored need not be rounded.
    if (step.op == ElementOp::to_f16 || step.op == ElementOp::to_bf16) continue;
    if (shape.has_gelu || shape.has_relu || shape.has_gelu_gradient) return false;
    const bool is_behind_kept = keeps && i >= request.tail->kept_after;
    if (step.op == ElementOp::relu && !keeps) {
      shape.has_relu = true;
      continue;
    }
    if (step.op == ElementOp::gelu_tanh && is_exact_enough(shape) &&
        (!keeps || (is_behind_kept && keep_operand(request, shape)))) {
      shape.has_gelu = true;
      continue;
    }
    if (step.operand < 0 || is_behind_kept) return false;
    const gpu::EpilogueOperand &operand = epilogue.operands[step.operand];
    if (step.op == ElementOp::gelu_tanh_gradient) {
      const bool is_alone =
          !shape.has_bias && !shape.has_addend && fits_auxiliary(shape) && is_slope_exact_enough(shape);
      if (!is_alone || step.is_reversed != 0 || operand.access != EpilogueAccess::dense || operand.dtype != result_)
        return false;
      shape.has_gelu_gradient = true;
      gelu_operand_ = first + step.operand;
      continue;
    }
    if (step.op != ElementOp::add) return false;
    if (operand.access == EpilogueAccess::column && !shape.has_bias) {
      shape.has_bias = true;
      bias_ = first + step.operand;
      bias_dtype_ = operand.dtype;
    } else if (operand.access == EpilogueAccess::dense && operand.dtype == result_ && !shape.has_addend) {
      shape.has_addend = true;
      addend_ = first + step.operand;
    } else {
      return false;
    }
  }
  return !keeps || kept_ >= 0;
}

void LibraryEpilogue::reserve(gpu::KernelRequest &request) {
  if (bias_ >= 0 && bias_dtype_ != result_)
    scratch_ = request.reserve_scratch(columns_ * static_cast<int64_t>(tensor::size_bytes(result_)));
}

const char *LibraryEpilogue::addend(const gpu::Frame &frame) const {
  return addend_ < 0 ? nullptr : frame.input_as<char>(addend_);
}

const char *LibraryEpilogue::gelu_operand(const gpu::Frame &frame) const {
  return gelu_operand_ < 0 ? nullptr : frame.input_as<char>(gelu_operand_);
}

char *LibraryEpilogue::kept_operand(const gpu::Frame &frame) const {
  return kept_ < 0 ? nullptr : frame.output_as<char>(kept_);
}

Result<const void *> LibraryEpilogue::bias(const gpu::Frame &frame) const {
  if (bias_ < 0) return nullptr;
  if (bias_dtype_ == result_) return frame.input(bias_);
  gpu::ElementProgram program{};
  program.elements = columns_;
  program.arithmetic = gpu::Arithmetic::f32;
  program.input_count = program.instruction_count = 1;
  program.inputs[0] = {bias_dtype_, gpu::ElementAccess::dense, {1}};
  program.output = {result_, gpu::ElementAccess::dense, {1}};
  program.instructions[0] = {ElementOp::identity, 0, 0, 0, 0};
  gpu::ElementPlaces places = gpu::make_places(columns_);
  gpu::place_input(places, 0, frame.input(bias_));
  gpu::place_output(places, frame.scratch_as<char>(scratch_));
  TUTTI_TRY(gpu::status_of(gpu::launch_elements(program, places, frame.stream()), "launching elementwise work"));
  return places.output;
}

}  // namespace tutti::impl::backend::cuda

// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, and what follows them, become plans of cuDNN. No GPU is needed: cuDNN 9.11 and later make plans for a
// device that is described. Skipped where cuDNN is missing or older.
#include "backend/cuda/cudnn_convolution.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "described_device.h"
#include "testing.h"

using namespace tutti::impl;
using namespace tutti::impl::backend::cuda;
namespace gpu = backend::gpu;
using tensor::DType;

namespace {

ConvolutionShape shape_of(DType dtype, int64_t size, int64_t channels, int64_t filters, int64_t window, int64_t stride,
                          int64_t pad_before, int64_t pad_after, int64_t groups = 1) {
  ConvolutionShape shape;
  const int64_t output = (size + pad_before + pad_after - window) / stride + 1;
  shape.dtype = dtype;
  shape.x = {16, size, size, channels};
  shape.y = {16, output, output, filters};
  shape.kernel = {window, window, channels / groups, filters};
  shape.stride = {stride, stride};
  shape.pad_before = {pad_before, pad_before};
  shape.pad_after = {pad_after, pad_after};
  return shape;
}

std::vector<CudnnPlan> plans(const ConvolutionWork &work, const CudnnLimits &limits, const CudnnWish &wish = {}) {
  return assert_ok_value(plan_convolution(described_cudnn(), described_device(), work, limits, wish));
}
std::vector<CudnnPlan> plans(const ConvolutionShape &shape, ConvolutionPass pass, const CudnnLimits &limits,
                             const CudnnWish &wish = {}) {
  return plans({shape, pass}, limits, wish);
}

std::optional<CudnnPlan> plan(const ConvolutionShape &shape, ConvolutionPass pass, const CudnnLimits &limits) {
  std::vector<CudnnPlan> found = plans(shape, pass, limits);
  assert_true(found.size() <= 1);
  return found.empty() ? std::nullopt : std::optional<CudnnPlan>(std::move(found[0]));
}

constexpr ConvolutionPass kPasses[] = {ConvolutionPass::forward, ConvolutionPass::input_gradient,
                                       ConvolutionPass::kernel_gradient};

void usual_convolutions_have_plans(void **) {
  const ConvolutionShape shapes[] = {
      shape_of(DType::f16, 56, 64, 64, 3, 1, 1, 1),
      shape_of(DType::bf16, 56, 64, 64, 3, 1, 1, 1),
      shape_of(DType::f32, 56, 64, 64, 3, 1, 1, 1),
      shape_of(DType::f32, 224, 3, 64, 7, 2, 3, 3),
      gpu::evenly_padded(shape_of(DType::f32, 56, 64, 128, 3, 2, 0, 1)),
      gpu::evenly_padded(shape_of(DType::f16, 56, 64, 128, 3, 2, 0, 1)),
      shape_of(DType::f32, 28, 128, 128, 3, 1, 1, 1, 128),
      shape_of(DType::f32, 7, 5, 3, 3, 1, 1, 1),
      shape_of(DType::bf16, 56, 64, 256, 1, 2, 0, 0),
  };
  for (const ConvolutionShape &shape : shapes) {
    for (const ConvolutionPass pass : kPasses) {
      CudnnLimits limits;
      limits.most_scratch = int64_t{256} << 20;
      limits.must_repeat = true;
      limits.allows_tensor_cores = shape.dtype != DType::f32;
      const auto found = plan(shape, pass, limits);
      assert_true(found.has_value());
      assert_true(found->scratch_bytes() <= limits.most_scratch);
      assert_true(found->engine() >= 0);
    }
  }
}

/// The engines' notes are read: what is forbidden changes which engine is taken.
void limits_change_the_engine(void **) {
  const ConvolutionShape shape = shape_of(DType::f32, 56, 64, 64, 3, 1, 1, 1);
  for (const ConvolutionPass pass : kPasses) {
    CudnnLimits rounded, exact;
    rounded.most_scratch = exact.most_scratch = int64_t{256} << 20;
    exact.allows_tensor_cores = false;
    const auto first = plan(shape, pass, rounded), second = plan(shape, pass, exact);
    assert_true(first.has_value() && second.has_value());
    assert_int_not_equal(first->engine(), second->engine());
    CudnnLimits small = exact;
    small.most_scratch = second->scratch_bytes() - 1;
    const auto third = plan(shape, pass, small);
    if (third) assert_true(third->scratch_bytes() < second->scratch_bytes());
  }
}

/// Several plans of one search, each found again by its name.
void plans_have_names(void **) {
  const ConvolutionShape shape = shape_of(DType::bf16, 56, 64, 64, 3, 1, 1, 1);
  const CudnnLimits limits{int64_t{256} << 20};
  for (const ConvolutionPass pass : kPasses) {
    const std::vector<CudnnPlan> several = plans(shape, pass, limits, {4, ""});
    assert_in_range(several.size(), 2, 4);
    std::set<std::string> names;
    for (const CudnnPlan &one : several) {
      names.insert(one.name());
      const std::vector<CudnnPlan> again = plans(shape, pass, limits, {4, one.name()});
      assert_int_equal(again.size(), 1);
      assert_string_equal(again[0].name().c_str(), one.name().c_str());
      assert_int_equal(again[0].engine(), one.engine());
    }
    assert_int_equal(names.size(), several.size());
    assert_true(plans(shape, pass, limits, {1, "no such engine"}).empty());
  }
}

void impossible_convolutions_have_none(void **) {
  ConvolutionShape shape = shape_of(DType::f32, 56, 64, 64, 3, 1, 1, 1);
  shape.y[1] += 5;
  assert_false(plan(shape, ConvolutionPass::forward, {int64_t{256} << 20}).has_value());
}

// ---- what follows ----

/// All steps on one operand that lies as the results do, behind a bias.
CudnnEpilogue tail_of(DType result, DType bias, const std::vector<gpu::ElementOp> &steps) {
  gpu::Epilogue epilogue{};
  epilogue.dtype = result;
  epilogue.operands[0] = {nullptr, result, gpu::EpilogueAccess::dense, 0};
  for (const gpu::ElementOp op : steps)
    epilogue.steps[epilogue.step_count++] = {op, op < gpu::ElementOp::add ? -1 : 0, 0, 0.5f};
  auto tail = read_epilogue(result, CudnnEpilogueOperand{bias, gpu::EpilogueAccess::column, 2}, &epilogue, 3);
  assert_true(tail.has_value());
  return std::move(*tail);
}

/// cuDNN has kernels for a bias and an addend in front of it; they need no driver.
void a_bias_has_plans(void **) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    ConvolutionWork work{shape_of(dtype, 28, 64, 64, 3, 1, 1, 1)};
    work.tail = tail_of(dtype, dtype, {});
    CudnnLimits limits{int64_t{256} << 20};
    limits.must_repeat = true;
    limits.allows_tensor_cores = dtype != DType::f32;
    const auto found = plans(work, limits);
    assert_int_equal(found.size(), 1);
    // Names in the plan cache are of the whole graph.
    assert_string_not_equal(describe(work, limits).c_str(), describe({work.shape}, limits).c_str());
    ConvolutionWork other = work;
    other.tail = tail_of(dtype, dtype, {gpu::ElementOp::relu});
    assert_string_not_equal(describe(work, limits).c_str(), describe(other, limits).c_str());
  }
}

/// All other graphs cuDNN compiles, which it does with a driver only.
void every_tail_has_plans(void **) {
  if (!has_driver()) test_skip();
  using gpu::ElementOp;
  const std::pair<ConvolutionPass, std::vector<ElementOp>> tails[] = {
      {ConvolutionPass::forward, {ElementOp::relu}},
      {ConvolutionPass::forward,
       {ElementOp::leaky_relu, ElementOp::neg, ElementOp::abs, ElementOp::square, ElementOp::sub, ElementOp::mul,
        ElementOp::div}},
      {ConvolutionPass::forward, {ElementOp::tanh, ElementOp::sigmoid, ElementOp::exp}},
      {ConvolutionPass::forward, {ElementOp::silu, ElementOp::gelu, ElementOp::gelu_tanh}},
      {ConvolutionPass::input_gradient, {ElementOp::add, ElementOp::relu_gradient}},
      {ConvolutionPass::input_gradient,
       {ElementOp::maximum, ElementOp::minimum, ElementOp::tanh_gradient, ElementOp::sigmoid_gradient}},
      {ConvolutionPass::input_gradient, {ElementOp::gelu_gradient, ElementOp::gelu_tanh_gradient}},
  };
  const CudnnLimits limits{int64_t{256} << 20};
  for (const auto &[pass, steps] : tails) {
    ConvolutionWork work{shape_of(DType::bf16, 28, 64, 64, 3, 1, 1, 1), pass};
    work.tail = tail_of(DType::bf16, DType::f32, steps);
    assert_int_equal(plans(work, limits).size(), 1);
  }
  // Casts alone.
  ConvolutionWork work{shape_of(DType::bf16, 28, 64, 64, 3, 1, 1, 1)};
  const gpu::Epilogue nothing{};
  work.tail = *read_epilogue(DType::f32, std::nullopt, &nothing, 2);
  assert_int_equal(plans(work, limits).size(), 1);
}

/// The sums that a normalisation wants. Those of f16 are compiled where channels are a multiple of 8.
void sums_have_plans(void **) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const ConvolutionShape &shape :
         {shape_of(dtype, 56, 64, 64, 3, 1, 1, 1), shape_of(dtype, 56, 128, 128, 3, 2, 1, 1),
          shape_of(dtype, 56, 64, 256, 1, 1, 0, 0), shape_of(dtype, 224, 3, 64, 7, 2, 3, 3)}) {
      const bool is_compiled = dtype == DType::f16 && shape.x[3] % 8 == 0;
      if (!is_compiled && !has_driver()) continue;
      const ConvolutionWork work{shape, ConvolutionPass::forward, {}, true};
      assert_int_equal(plans(work, {int64_t{256} << 20}, {1, "", false}).size(), 1);
      assert_string_not_equal(describe(work, {}).c_str(), describe({shape}, {}).c_str());
    }
  }
}

void with_device(void **) {
  if (!has_described_device()) test_skip();
}

}  // namespace

int main() {
  const bool has_device = open_described_device();
  const CMUnitTest with_cudnn[] = {
      cmocka_unit_test(usual_convolutions_have_plans),
      cmocka_unit_test(limits_change_the_engine),
      cmocka_unit_test(plans_have_names),
      cmocka_unit_test(impossible_convolutions_have_none),
      cmocka_unit_test(a_bias_has_plans),
      cmocka_unit_test(every_tail_has_plans),
      cmocka_unit_test(sums_have_plans),
  };
  const CMUnitTest without[] = {cmocka_unit_test(with_device)};
  return has_device ? cmocka_run_group_tests(with_cudnn, nullptr, nullptr)
                    : cmocka_run_group_tests(without, nullptr, nullptr);
}

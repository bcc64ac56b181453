// SPDX-License-Identifier: Apache-2.0
//
// Nodes become calls of cuBLASLt and cuDNN that compute what the ops say. The libraries, and the CUDA runtime as far as
// it is met, are replaced by what works on the host's memory.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/cuda/cuda_library.h"
#include "backend/cuda/host_cublaslt.h"
#include "backend/cuda/host_cudnn.h"
#include "backend/cuda/host_runtime.h"
#include "backend/gpu/library/algorithm_trials.h"
#include "backend/gpu/lowered_testing.h"
#include "graph/builder.h"
#include "graph/ops/op_attributes.h"
#include "testing.h"

namespace library_kernels_test {

using namespace tutti::impl;
using backend::LoweredGraph;
using backend::LoweredValue;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tutti::testing::host_cublaslt;
using tutti::testing::host_cudnn;
using tutti::testing::host_runtime;
using tutti::testing::lower;
using tutti::testing::numbers;

namespace {

// ---- a graph of one node ----

using Values = std::vector<float>;

struct Outcome {
  std::string kernel;  // empty: the library has nothing
  std::vector<Values> inputs;
  Values result;
};

/// Runs the graph's last node on numbers, with the memory it asks for and not a byte more.
Outcome run(const LoweredGraph &lowered) {
  const graph::Node &node = lowered.step(lowered.step_count() - 1);
  std::vector<backend::BoundedIntegers> faults;
  const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(0));
  backend::gpu::KernelRequest request{lowered, node, library.get(), faults};
  const backend::gpu::Kernel kernel = assert_ok_value(library->find(request));
  Outcome outcome;
  if (!kernel) return outcome;
  outcome.kernel = request.kernel_name;
  std::vector<void *> table(lowered.values().size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    outcome.inputs.push_back(numbers(request.input(i).elements, static_cast<int>(i) * 3 + 1));
    table[static_cast<size_t>(node.inputs[i])] = outcome.inputs.back().data();
  }
  outcome.result.assign(static_cast<size_t>(request.output(0).elements), -77);
  table[static_cast<size_t>(node.outputs[0])] = outcome.result.data();
  // What others have left there are no zeros.
  std::vector<char> scratch(static_cast<size_t>(request.scratch_bytes) + 64, 7);
  backend::gpu::IssueContext context;
  assert_ok(
      kernel(backend::gpu::Frame(table.data(), node.inputs.data(), node.outputs.data(), scratch.data(), context)));
  assert_true(std::all_of(scratch.end() - 64, scratch.end(), [](char byte) { return byte == 7; }));
  return outcome;
}

/// Of the kernel for the graph's last node; empty: the library has nothing.
std::string kernel_of(const LoweredGraph &lowered) {
  std::vector<backend::BoundedIntegers> faults;
  const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(0));
  backend::gpu::KernelRequest request{lowered, lowered.step(lowered.step_count() - 1), library.get(), faults};
  return assert_ok_value(library->find(request)) ? request.kernel_name : "";
}

// ---- matrix products ----

void products_are_cublaslts(void **) {
  GraphBuilder b;
  const ValueId x = b.input("a", DType::f32, {2, 3, 4}), y = b.input("b", DType::f32, {2, 5, 4});
  graph::ops::MatmulAttributes attributes;
  attributes.transpose_b = true;
  b.set_result("y", b.op("matmul", {x, y}, attributes.to_attributes()));
  const Outcome outcome = run(lower(b));
  assert_string_equal(outcome.kernel.c_str(), "cublaslt");
  for (size_t batch = 0; batch < 2; ++batch) {
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 5; ++j) {
        float sum = 0;
        for (size_t k = 0; k < 4; ++k)
          sum += outcome.inputs[0][(batch * 3 + i) * 4 + k] * outcome.inputs[1][(batch * 5 + j) * 4 + k];
        assert_true(outcome.result[(batch * 3 + i) * 5 + j] == sum);
      }
    }
  }
}

// ---- convolutions ----

struct Case {
  int64_t size, channels, filters, window, stride, dilation, groups;
  graph::ops::Conv2dAttributes::Padding padding;
  std::array<int64_t, 4> pads = {};  // top, bottom, left, right: as many by height as by width
};

using Padding = graph::ops::Conv2dAttributes::Padding;
constexpr Case kCases[] = {
    {6, 4, 5, 3, 1, 1, 1, Padding::same},
    {6, 4, 5, 3, 2, 1, 1, Padding::same},
    {7, 4, 6, 3, 1, 2, 2, Padding::same},
    {8, 3, 4, 3, 2, 1, 1, Padding::valid},
    {6, 4, 5, 1, 1, 1, 1, Padding::same},
    {6, 4, 4, 1, 2, 1, 1, Padding::same},
    {6, 4, 4, 2, 1, 1, 4, Padding::explicit_, {1, 0, 0, 1}},
    // More on one side than on the other, of an axis or of both, with something left for the other or not.
    {6, 3, 4, 3, 1, 1, 1, Padding::explicit_, {2, 1, 1, 2}},
    {5, 4, 6, 4, 1, 1, 2, Padding::same},
    {7, 3, 4, 3, 2, 1, 1, Padding::explicit_, {2, 1, 1, 2}},
    {8, 1, 1, 5, 2, 1, 1, Padding::same},
    {6, 2, 3, 2, 1, 3, 1, Padding::same},
};

template <typename Attributes>
Attributes attributes_of(const Case &one) {
  Attributes attributes;
  attributes.stride = {one.stride, one.stride};
  attributes.dilation = {one.dilation, one.dilation};
  attributes.groups = one.groups;
  attributes.padding = static_cast<typename Attributes::Padding>(one.padding);
  if (one.padding == Padding::explicit_) attributes.pads.assign(one.pads.begin(), one.pads.end());
  return attributes;
}

int64_t output_size(const Case &one) {
  const int64_t reach = (one.window - 1) * one.dilation + 1;
  if (one.padding == Padding::same) return (one.size + one.stride - 1) / one.stride;
  return (one.size + one.pads[0] + one.pads[1] - reach) / one.stride + 1;
}

/// Padding in front by height and width.
std::pair<int64_t, int64_t> padding_before(const Case &one) {
  if (one.padding == Padding::explicit_) return {one.pads[0], one.pads[2]};
  const int64_t covered = (output_size(one) - 1) * one.stride + (one.window - 1) * one.dilation + 1;
  const int64_t before = one.padding == Padding::same ? std::max<int64_t>(covered - one.size, 0) / 2 : 0;
  return {before, before};
}

/// Calls function(x, kernel, y) with the positions of the elements of every product.
template <typename Function>
void for_products(const Case &one, Function function) {
  const int64_t output = output_size(one), depth = one.channels / one.groups, group = one.filters / one.groups;
  const auto [top, left] = padding_before(one);
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t p = 0; p < output; ++p)
      for (int64_t q = 0; q < output; ++q)
        for (int64_t i = 0; i < one.window; ++i)
          for (int64_t j = 0; j < one.window; ++j)
            for (int64_t c = 0; c < depth; ++c)
              for (int64_t f = 0; f < one.filters; ++f) {
                const int64_t h = p * one.stride + i * one.dilation - top, w = q * one.stride + j * one.dilation - left;
                if (h < 0 || h >= one.size || w < 0 || w >= one.size) continue;
                const int64_t x = ((n * one.size + h) * one.size + w) * one.channels + f / group * depth + c;
                const int64_t kernel = ((i * one.window + j) * depth + c) * one.filters + f;
                const int64_t y = ((n * output + p) * output + q) * one.filters + f;
                function(static_cast<size_t>(x), static_cast<size_t>(kernel), static_cast<size_t>(y));
              }
}

/// A bias is part of cuDNN's graph.
const char *expected_kernel(const Case &one, bool has_bias = false) {
  if (one.window == 1 && one.stride == 1) return "cublaslt";
  return has_bias ? "cudnn_28_bias" : "cudnn_8";
}

void convolutions_are_cudnns(void **) {
  for (const Case &one : kCases) {
    for (const bool has_bias : {false, true}) {
      GraphBuilder b;
      std::vector<ValueId> inputs = {
          b.input("x", DType::f32, {2, one.size, one.size, one.channels}),
          b.input("kernel", DType::f32, {one.window, one.window, one.channels / one.groups, one.filters})};
      if (has_bias) inputs.push_back(b.input("bias", DType::f32, {one.filters}));
      b.set_result("y", b.op("conv2d", inputs, attributes_of<graph::ops::Conv2dAttributes>(one).to_attributes()));
      const Outcome outcome = run(lower(b));
      assert_string_equal(outcome.kernel.c_str(), expected_kernel(one, has_bias));
      if (outcome.kernel == "cublaslt")
        assert_int_equal(host_cublaslt().epilogue, has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
      Values expected(outcome.result.size());
      for (size_t i = 0; has_bias && i < expected.size(); ++i)
        expected[i] = outcome.inputs[2][i % static_cast<size_t>(one.filters)];
      for_products(one, [&](size_t x, size_t kernel, size_t y) {
        expected[y] += outcome.inputs[0][x] * outcome.inputs[1][kernel];
      });
      assert_true(outcome.result == expected);
    }
  }
}

/// A bias of the node's own is computed apart where cuBLASLt has none.
void a_convolution_of_one_pixel_may_add_its_bias_apart(void **) {
  host_cublaslt().refused_epilogues = {CUBLASLT_EPILOGUE_BIAS};
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {1, 2, 3, 4}), kernel = b.input("kernel", DType::f32, {1, 1, 4, 5});
  b.set_result("y", b.op("conv2d", {x, kernel, b.input("bias", DType::f32, {5})}));
  const Outcome apart = run(lower(b));
  assert_string_equal(apart.kernel.c_str(), "cublaslt");
  assert_int_equal(host_cublaslt().epilogue, CUBLASLT_EPILOGUE_DEFAULT);
  for (size_t i = 0; i < 30; ++i) {
    float sum = apart.inputs[2][i % 5];
    for (size_t k = 0; k < 4; ++k)
      sum += apart.inputs[0][i / 5 * 4 + k] * apart.inputs[1][k * 5 + i % 5];
    assert_true(apart.result[i] == sum);
  }
  host_cublaslt().refused_epilogues.clear();
}

void gradients_of_inputs_are_cudnns(void **) {
  for (const Case &one : kCases) {
    GraphBuilder b;
    const int64_t output = output_size(one);
    const ValueId dy = b.input("dy", DType::f32, {2, output, output, one.filters});
    const ValueId kernel =
        b.input("kernel", DType::f32, {one.window, one.window, one.channels / one.groups, one.filters});
    auto attributes = attributes_of<graph::ops::Conv2dInputGradientAttributes>(one);
    attributes.input_dims = {2, one.size, one.size, one.channels};
    b.set_result("dx", b.op("conv2d_input_gradient", {dy, kernel}, attributes.to_attributes()));
    const Outcome outcome = run(lower(b));
    assert_string_equal(outcome.kernel.c_str(), expected_kernel(one));
    Values expected(outcome.result.size());
    for_products(one, [&](size_t at_x, size_t at_kernel, size_t at_y) {
      expected[at_x] += outcome.inputs[0][at_y] * outcome.inputs[1][at_kernel];
    });
    assert_true(outcome.result == expected);
  }
}

void gradients_of_kernels_are_cudnns(void **) {
  for (const Case &one : kCases) {
    GraphBuilder b;
    const int64_t output = output_size(one);
    const ValueId x = b.input("x", DType::f32, {2, one.size, one.size, one.channels});
    const ValueId dy = b.input("dy", DType::f32, {2, output, output, one.filters});
    auto attributes = attributes_of<graph::ops::Conv2dKernelGradientAttributes>(one);
    attributes.kernel_dims = {one.window, one.window, one.channels / one.groups, one.filters};
    b.set_result("dkernel", b.op("conv2d_kernel_gradient", {x, dy}, attributes.to_attributes()));
    const Outcome outcome = run(lower(b));
    assert_string_equal(outcome.kernel.c_str(), expected_kernel(one));
    Values expected(outcome.result.size());
    for_products(one, [&](size_t at_x, size_t at_kernel, size_t at_y) {
      expected[at_kernel] += outcome.inputs[0][at_x] * outcome.inputs[1][at_y];
    });
    assert_true(outcome.result == expected);
  }
}

/// x of [2, 8, 8, 3] with windows of 3 by 3, every other one: where padding is `same` a row and a column behind.
GraphBuilder &every_other(GraphBuilder &b, const std::string &op, Padding padding, DType dtype = DType::f32,
                          int64_t dilation = 1) {
  const Case one{8, 3, 2, 3, 2, dilation, 1, padding};
  const auto x = graph::to_dims({2, 8, 8, 3}), kernel = graph::to_dims({3, 3, 3, 2});
  const auto y = graph::to_dims({2, output_size(one), output_size(one), 2});
  if (op == "conv2d") {
    const auto attributes = attributes_of<graph::ops::Conv2dAttributes>(one);
    b.set_result("y", b.op(op, {b.input("x", dtype, x), b.input("kernel", dtype, kernel)}, attributes.to_attributes()));
  } else if (op == "conv2d_input_gradient") {
    auto attributes = attributes_of<graph::ops::Conv2dInputGradientAttributes>(one);
    attributes.input_dims = {2, 8, 8, 3};
    b.set_result("dx",
                 b.op(op, {b.input("dy", dtype, y), b.input("kernel", dtype, kernel)}, attributes.to_attributes()));
  } else {
    auto attributes = attributes_of<graph::ops::Conv2dKernelGradientAttributes>(one);
    attributes.kernel_dims = {3, 3, 3, 2};
    b.set_result("dkernel", b.op(op, {b.input("x", dtype, x), b.input("dy", dtype, y)}, attributes.to_attributes()));
  }
  return b;
}

constexpr const char *kOps[] = {"conv2d", "conv2d_input_gradient", "conv2d_kernel_gradient"};

/// [2, 9, 9, 3] beside the kernel in cuDNN's order and what cuDNN itself asks for.
void a_larger_image_is_scratch_memory(void **) {
  for (const char *op : kOps) {
    for (const auto &[padding, bytes] : {std::pair{Padding::valid, 256 + 512}, {Padding::same, 256 + 512 + 2048}}) {
      GraphBuilder b;
      const LoweredGraph lowered = lower(every_other(b, op, padding));
      std::vector<backend::BoundedIntegers> faults;
      const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(0));
      backend::gpu::KernelRequest request{lowered, lowered.step(lowered.step_count() - 1), library.get(), faults};
      assert_true(assert_ok_value(library->find(request)) != nullptr);
      assert_int_equal(request.scratch_bytes, bytes);
    }
  }
}

/// f64, and steps and gaps on one axis: not every engine computes them right.
void some_convolutions_are_not_cudnns(void **) {
  for (const char *op : kOps) {
    const auto kernel = [op](DType dtype, int64_t dilation) {
      GraphBuilder b;
      return kernel_of(lower(every_other(b, op, Padding::valid, dtype, dilation)));
    };
    assert_string_equal(kernel(DType::f32, 1).c_str(), "cudnn_8");
    assert_string_equal(kernel(DType::f64, 1).c_str(), "");
    assert_string_equal(kernel(DType::f32, 2).c_str(), "");
  }
}

// ---- what else ----

LoweredGraph one_convolution(int32_t level = TUTTI_LEVEL_FAST, int32_t flags = 0, int64_t window = 3) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {2, 4, 4, 3});
  const ValueId kernel = b.input("kernel", DType::f32, {window, window, 3, 2});
  b.set_result("y", b.op("conv2d", {x, kernel}, graph::ops::Conv2dAttributes().to_attributes()));
  return lower(b, level, flags);
}

LoweredGraph one_product(int32_t level, int32_t flags) {
  GraphBuilder b;
  b.set_result("y", b.matmul(b.input("x", DType::f32, {3, 4}), b.input("w", DType::f32, {4, 5})));
  return lower(b, level, flags);
}

/// What a compilation permits reaches both libraries: the engine that uses tensor cores, and TF32 in products, those of
/// convolutions of one pixel among them. At other levels nothing is permitted.
void factors_are_rounded_where_that_is_permitted(void **) {
  const struct {
    int32_t level, flags;
    const char *engine;
    cublasComputeType_t compute;
  } kPermissions[] = {
      {TUTTI_LEVEL_FAST, 0, "cudnn_8", CUBLAS_COMPUTE_32F},
      {TUTTI_LEVEL_FAST, TUTTI_COMPILE_TF32_WHERE_FASTER, "cudnn_7", CUBLAS_COMPUTE_32F_FAST_TF32},
      {TUTTI_LEVEL_FAST, TUTTI_COMPILE_BF16_WHERE_FASTER, "cudnn_7", CUBLAS_COMPUTE_32F_FAST_TF32},
      {TUTTI_LEVEL_REPEATABLE, TUTTI_COMPILE_TF32_WHERE_FASTER, "cudnn_9", CUBLAS_COMPUTE_32F},
      {TUTTI_LEVEL_INVARIANT, TUTTI_COMPILE_TF32_WHERE_FASTER, "cudnn_9", CUBLAS_COMPUTE_32F},
  };
  for (const auto &one : kPermissions) {
    assert_string_equal(run(one_convolution(one.level, one.flags)).kernel.c_str(), one.engine);
    for (const LoweredGraph &lowered : {one_convolution(one.level, one.flags, 1), one_product(one.level, one.flags)}) {
      host_cublaslt().compute = CUBLAS_COMPUTE_64F;
      assert_string_equal(run(lowered).kernel.c_str(), "cublaslt");
      assert_int_equal(host_cublaslt().compute, one.compute);
    }
  }
}

void levels_choose_engines(void **) {
  assert_string_equal(run(one_convolution(TUTTI_LEVEL_FAST)).kernel.c_str(), "cudnn_8");
  assert_string_equal(run(one_convolution(TUTTI_LEVEL_REPEATABLE)).kernel.c_str(), "cudnn_9");
  assert_string_equal(run(one_convolution(TUTTI_LEVEL_INVARIANT)).kernel.c_str(), "cudnn_9");
}

/// The engine that trials choose, on the first GPU and on another of the kind.
void engines_are_tried(void **) {
  const auto folder = backend::PlanCache("", {"gpu", "a GPU", "1"});
  const backend::gpu::TrialMemory memory{
      [](int64_t bytes) -> base::Result<void *> { return std::aligned_alloc(256, static_cast<size_t>(bytes)); },
      [](void *pointer, int64_t) { std::free(pointer); }};
  backend::gpu::AlgorithmTrials trials(folder, memory, [](const std::string &line) { fail_msg("%s", line.c_str()); });
  const LoweredGraph lowered = one_convolution(TUTTI_LEVEL_FAST);
  std::vector<backend::BoundedIntegers> faults;
  const auto first = assert_ok_value(backend::cuda::CudaLibrary::open(3));
  const auto second = assert_ok_value(backend::cuda::CudaLibrary::open(4));
  backend::gpu::KernelRequest request{lowered, lowered.step(lowered.step_count() - 1), first.get(), faults};
  request.trials = &trials;
  host_cudnn().engine_milliseconds = {{7, 1}, {8, 5}, {9, 3}};
  host_runtime().current_device = 3;
  const backend::gpu::Kernel kernel = assert_ok_value(first->find(request));
  // Engine 7 rounds the factors, which is not allowed here.
  assert_string_equal(request.kernel_name.c_str(), "cudnn_9");
  assert_int_equal(trials.measured_count(), 1);
  Values x(96, 1), weights(54, 1), y(64);
  std::vector<void *> table(lowered.values().size());
  table[static_cast<size_t>(request.node.inputs[0])] = x.data();
  table[static_cast<size_t>(request.node.inputs[1])] = weights.data();
  table[static_cast<size_t>(request.node.outputs[0])] = y.data();
  std::vector<char> scratch(static_cast<size_t>(request.scratch_bytes));
  backend::gpu::IssueContext context;
  for (const int device : {3, 4}) {
    host_runtime().current_device = device;
    const double before = host_cudnn().milliseconds;
    assert_ok(kernel(backend::gpu::Frame(table.data(), request.node.inputs.data(), request.node.outputs.data(),
                                         scratch.data(), context)));
    assert_true(host_cudnn().milliseconds - before == 3);
    assert_true(y[0] == 12);
  }
  // What is known is not tried again.
  const int calls = host_cudnn().calls;
  backend::gpu::KernelRequest again{lowered, request.node, second.get(), faults};
  again.trials = &trials;
  assert_true(assert_ok_value(second->find(again)) != nullptr);
  assert_string_equal(again.kernel_name.c_str(), "cudnn_9");
  assert_int_equal(host_cudnn().calls, calls);
  host_runtime().current_device = 0;
  host_cudnn().engine_milliseconds.clear();
}

void what_libraries_have_not_is_left_to_others(void **) {
  host_cudnn().supports = false;
  assert_string_equal(run(one_convolution()).kernel.c_str(), "");
  host_cudnn().supports = true;
  GraphBuilder b;
  b.set_result("y", b.unary("neg", b.input("x", DType::f32, {3})));
  assert_string_equal(run(lower(b)).kernel.c_str(), "");
  GraphBuilder empty;
  const ValueId x = empty.input("x", DType::f32, {0, 4}), y = empty.input("y", DType::f32, {4, 2});
  empty.set_result("y", empty.op("matmul", {x, y}, graph::ops::MatmulAttributes().to_attributes()));
  assert_string_equal(run(lower(empty)).kernel.c_str(), "");
}

void what_is_missing_is_said(void **) {
  const LoweredGraph lowered = one_convolution();
  std::vector<backend::BoundedIntegers> faults;
  const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(7));
  const auto has_kernel = [&] {
    backend::gpu::KernelRequest request{lowered, lowered.step(lowered.step_count() - 1), library.get(), faults};
    return static_cast<bool>(assert_ok_value(library->find(request)));
  };
  assert_string_equal(library->describe().c_str(), "");
  assert_int_equal(library->missing().size(), 0);
  host_runtime().has_libraries = false;
  assert_false(has_kernel());
  host_runtime().has_libraries = true;
  assert_int_equal(library->missing().size(), 1);
  assert_string_equal(library->missing()[0].c_str(), "cuDNN is missing: libcudnn.so: not here");
  // Asked once for each opening of a GPU.
  assert_false(has_kernel());
  assert_string_equal(library->describe().c_str(), "cuDNN is missing: libcudnn.so: not here");
  const auto again = assert_ok_value(backend::cuda::CudaLibrary::open(7));
  assert_true(has_kernel());
  assert_int_equal(again->missing().size(), 0);
}

void libraries_are_of_the_same_cuda(void **) {
  assert_ok(backend::cuda::check_built_for("libcudnn.so.9", CUDART_VERSION));
  const int own = CUDART_VERSION / 1000;
  assert_error_contains(backend::cuda::check_built_for("libcudnn.so.9", static_cast<size_t>(own - 1) * 1000 + 80),
                        base::concat("libcudnn.so.9 is built for CUDA ", own - 1, ", and this plug-in for CUDA ", own));
}

void a_kernel_runs_on_another_gpu_of_the_kind(void **) {
  const LoweredGraph lowered = one_convolution();
  std::vector<backend::BoundedIntegers> faults;
  const auto first = assert_ok_value(backend::cuda::CudaLibrary::open(1));
  const auto second = assert_ok_value(backend::cuda::CudaLibrary::open(2));
  backend::gpu::KernelRequest request{lowered, lowered.step(lowered.step_count() - 1), first.get(), faults};
  const backend::gpu::Kernel kernel = assert_ok_value(first->find(request));
  const graph::Node &node = request.node;
  Values x(96, 1), weights(54, 1), y(64);
  std::vector<void *> table(lowered.values().size());
  table[static_cast<size_t>(node.inputs[0])] = x.data();
  table[static_cast<size_t>(node.inputs[1])] = weights.data();
  table[static_cast<size_t>(node.outputs[0])] = y.data();
  std::vector<char> scratch(static_cast<size_t>(request.scratch_bytes));
  backend::gpu::IssueContext context;
  host_runtime().current_device = 2;
  assert_ok(
      kernel(backend::gpu::Frame(table.data(), node.inputs.data(), node.outputs.data(), scratch.data(), context)));
  host_runtime().current_device = 0;
  assert_true(y[0] == 12);
  assert_string_equal(second->describe().c_str(), "cuDNN 9.19.0");
  assert_int_equal(second->missing().size(), 0);
}

void nothing_is_left_over(void **) {
  assert_int_equal(host_cublaslt().descriptors, 0);
  assert_int_equal(host_cudnn().descriptors, 0);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(products_are_cublaslts),
      cmocka_unit_test(convolutions_are_cudnns),
      cmocka_unit_test(a_convolution_of_one_pixel_may_add_its_bias_apart),
      cmocka_unit_test(gradients_of_inputs_are_cudnns),
      cmocka_unit_test(gradients_of_kernels_are_cudnns),
      cmocka_unit_test(a_larger_image_is_scratch_memory),
      cmocka_unit_test(some_convolutions_are_not_cudnns),
      cmocka_unit_test(levels_choose_engines),
      cmocka_unit_test(factors_are_rounded_where_that_is_permitted),
      cmocka_unit_test(engines_are_tried),
      cmocka_unit_test(what_libraries_have_not_is_left_to_others),
      cmocka_unit_test(what_is_missing_is_said),
      cmocka_unit_test(libraries_are_of_the_same_cuda),
      cmocka_unit_test(a_kernel_runs_on_another_gpu_of_the_kind),
      cmocka_unit_test(nothing_is_left_over),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace library_kernels_test

// SPDX-License-Identifier: Apache-2.0
//
// What follows a product becomes part of cuBLASLt's call where that computes what the ops say. The libraries, and the
// CUDA runtime as far as it is met, are replaced by what works on the host's memory.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backend/cuda/cuda_library.h"
#include "backend/cuda/host_cublaslt.h"
#include "backend/cuda/host_runtime.h"
#include "backend/gpu/fusion/elementwise_trees.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/library/algorithm_probes.h"
#include "backend/gpu/lowered_testing.h"
#include "graph/builder.h"
#include "testing.h"

namespace library_tails_test {

using namespace tutti::impl;
using backend::LoweredGraph;
using backend::LoweredValue;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tutti::testing::host_cublaslt;
using tutti::testing::host_runtime;
using tutti::testing::lower;
using tutti::testing::numbers;

namespace {

using Values = std::vector<float>;

/// The kernels of a graph as GPUs compute it, with what follows the first product as its tail.
struct TailOutcome {
  std::string kernel;  ///< empty: the library leaves the tail alone
  cublasLtEpilogue_t epilogue{};
  std::vector<tensor::Tensor> inputs;
  tensor::Tensor result;
};

tensor::Tensor allocate(const LoweredValue &value) {
  return assert_ok_value(tensor::Tensor::allocate(value.dtype, assert_ok_value(tensor::Shape::make(value.dims))));
}

TailOutcome run_tail(GraphBuilder &builder, int32_t flags = TUTTI_COMPILE_TF32_WHERE_FASTER) {
  const LoweredGraph lowered = lower(builder, TUTTI_LEVEL_FAST, flags);
  const auto tails = backend::gpu::find_product_epilogues(lowered, backend::gpu::ElementwiseTrees::make(lowered));
  assert_int_equal(tails.size(), 1);
  std::vector<backend::BoundedIntegers> faults;
  const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(0));
  backend::gpu::KernelRequest request{lowered,  lowered.step(tails[0].product), library.get(), faults, nullptr,
                                      &tails[0]};
  tutti::testing::HostProbes probes;
  request.probes = &probes.probes;
  const backend::gpu::Kernel kernel = assert_ok_value(library->find(request));
  TailOutcome outcome;
  if (!kernel) return outcome;
  outcome.kernel = request.kernel_name;
  std::vector<void *> table(lowered.values().size());
  for (const auto &port : lowered.inputs()) {
    tensor::Tensor input = allocate(lowered.value(port.value));
    const Values values = numbers(input.elements(), static_cast<int>(outcome.inputs.size()) * 3 + 1);
    for (size_t i = 0; i < values.size(); ++i) {
      if (input.dtype() == DType::f32) input.mutable_data_as<float>()[i] = values[i];
      if (input.dtype() == DType::bf16) input.mutable_data_as<tensor::BFloat16>()[i] = tensor::BFloat16(values[i]);
    }
    table[static_cast<size_t>(port.value)] = input.mutable_data();
    outcome.inputs.push_back(std::move(input));
  }
  std::vector<graph::ValueId> operands = request.node.inputs;
  operands.insert(operands.end(), tails[0].reads.begin(), tails[0].reads.end());
  const graph::Node &root = lowered.step(tails[0].root());
  outcome.result = allocate(lowered.value(root.outputs[0]));
  table[static_cast<size_t>(root.outputs[0])] = outcome.result.mutable_data();
  std::vector<char> scratch(static_cast<size_t>(request.scratch_bytes));
  backend::gpu::IssueContext context;
  assert_ok(kernel(backend::gpu::Frame(table.data(), operands.data(), root.outputs.data(), scratch.data(), context)));
  outcome.epilogue = host_cublaslt().epilogue;
  return outcome;
}

float element(const tensor::Tensor &tensor, int64_t i) {
  return tensor.dtype() == DType::f32 ? tensor.data_as<float>()[i]
                                      : static_cast<float>(tensor.data_as<tensor::BFloat16>()[i]);
}

/// y[6, 5] = x[6, 4] w[4, 5] of the first two inputs.
float product_at(const TailOutcome &outcome, int64_t i) {
  float sum = 0;
  for (int64_t k = 0; k < 4; ++k)
    sum += element(outcome.inputs[0], i / 5 * 4 + k) * element(outcome.inputs[1], k * 5 + i % 5);
  return sum;
}

void biases_and_addends_are_part_of_the_call(void **) {
  GraphBuilder b;
  const ValueId first = b.input("a", DType::f32, {2, 3, 4}), second = b.input("b", DType::f32, {4, 5});
  const ValueId y = b.matmul(first, second);
  const ValueId bias = b.input("bias", DType::f32, {5}), addend = b.input("c", DType::f32, {2, 3, 5});
  b.set_result("y", b.add(b.add(y, bias), addend));
  const TailOutcome outcome = run_tail(b);
  assert_string_equal(outcome.kernel.c_str(), "cublaslt");
  assert_int_equal(outcome.epilogue, CUBLASLT_EPILOGUE_BIAS);
  for (int64_t i = 0; i < 30; ++i)
    assert_true(element(outcome.result, i) ==
                product_at(outcome, i) + element(outcome.inputs[2], i % 5) + element(outcome.inputs[3], i));
}

TailOutcome run_gelu(bool is_approximate, int32_t flags = TUTTI_COMPILE_TF32_WHERE_FASTER) {
  GraphBuilder b;
  const ValueId first = b.input("a", DType::f32, {6, 4}), second = b.input("b", DType::f32, {4, 5});
  const ValueId y = b.matmul(first, second);
  b.set_result("y", b.op("gelu", {b.add(y, b.input("bias", DType::f32, {5}))}, {{"approximate", is_approximate}}));
  return run_tail(b, flags);
}

void the_approximate_gelu_is_part_of_the_call(void **) {
  assert_string_equal(run_gelu(false).kernel.c_str(), "");
  // On GPUs it has as few digits as TF32.
  assert_string_equal(run_gelu(true, 0).kernel.c_str(), "");
  const TailOutcome outcome = run_gelu(true);
  assert_string_equal(outcome.kernel.c_str(), "cublaslt");
  for (int64_t i = 0; i < 30; ++i) {
    const double x = static_cast<double>(product_at(outcome, i) + element(outcome.inputs[2], i % 5));
    const double expected = 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    assert_true(std::fabs(static_cast<double>(element(outcome.result, i)) - expected) < 1e-4);
  }
}

/// d gelu(u) / du, of the approximate one, times (x w)[6, n], with u behind the factors among the inputs; in 16 bits as
/// mixed precision has it: computed in f32, rounded once.
TailOutcome run_gelu_gradient(DType dtype, int64_t n, bool is_approximate, bool has_addend = false,
                              int32_t flags = TUTTI_COMPILE_TF32_WHERE_FASTER) {
  GraphBuilder b;
  const ValueId first = b.input("a", dtype, {6, 4}), second = b.input("b", dtype, {4, n}),
                u = b.input("u", dtype, {6, n});
  ValueId y = b.matmul(first, second);
  if (has_addend) y = b.add(y, b.input("c", dtype, {6, n}));
  const graph::Attributes attributes{{"approximate", is_approximate}};
  if (dtype == DType::f32) {
    b.set_result("y", b.op("gelu_gradient", {y, u}, attributes));
  } else {
    const ValueId wide = b.op("gelu_gradient", {b.cast(y, DType::f32), b.cast(u, DType::f32)}, attributes);
    b.set_result("y", b.cast(wide, dtype));
  }
  return run_tail(b, flags);
}

void the_gradient_of_gelu_is_part_of_the_call(void **) {
  const TailOutcome outcome = run_gelu_gradient(DType::f32, 8, true);
  assert_string_equal(outcome.kernel.c_str(), "cublaslt");
  assert_int_equal(outcome.epilogue, CUBLASLT_EPILOGUE_DGELU);
  for (int64_t i = 0; i < 48; ++i) {
    double product = 0;
    for (int64_t k = 0; k < 4; ++k)
      product +=
          static_cast<double>(element(outcome.inputs[0], i / 8 * 4 + k) * element(outcome.inputs[1], k * 8 + i % 8));
    // By differences of gelu itself.
    const auto gelu = [](double x) {
      return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    };
    const double u = static_cast<double>(element(outcome.inputs[2], i));
    const double expected = product * (gelu(u + 1e-4) - gelu(u - 1e-4)) / 2e-4;
    const double off = std::fabs(static_cast<double>(element(outcome.result, i)) - expected);
    assert_true(off <= 1e-5 * std::fabs(expected) + 1e-5);
  }
}

/// A convolution of one pixel is a product, tail and all.
void the_gradient_of_gelu_is_part_of_a_convolution(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {6, 1, 1, 4}), kernel = b.input("kernel", DType::f32, {1, 1, 4, 8}),
                u = b.input("u", DType::f32, {6, 1, 1, 8});
  b.set_result("y", b.op("gelu_gradient", {b.op("conv2d", {x, kernel}), u}, {{"approximate", true}}));
  const TailOutcome outcome = run_tail(b);
  assert_string_equal(outcome.kernel.c_str(), "cublaslt");
  assert_int_equal(outcome.epilogue, CUBLASLT_EPILOGUE_DGELU);
  const TailOutcome product = run_gelu_gradient(DType::f32, 8, true);
  for (int64_t i = 0; i < 48; ++i)
    assert_true(element(outcome.result, i) == element(product.result, i));
}

/// The exact gelu, lines of another length, more than the gradient, f32 and bf16, algorithms that lose a NaN.
void other_gradients_of_gelu_are_left_alone(void **) {
  assert_string_equal(run_gelu_gradient(DType::f32, 8, false).kernel.c_str(), "");
  assert_string_equal(run_gelu_gradient(DType::f32, 12, true).kernel.c_str(), "");
  assert_string_equal(run_gelu_gradient(DType::f32, 8, true, true).kernel.c_str(), "");
  // What is not exact enough on GPUs.
  assert_string_equal(run_gelu_gradient(DType::f32, 8, true, false, 0).kernel.c_str(), "");
  assert_string_equal(run_gelu_gradient(DType::bf16, 8, true).kernel.c_str(), "");
  backend::gpu::AlgorithmProbes::forget();
  host_cublaslt().nan_droppers = {0};
  assert_string_equal(run_gelu_gradient(DType::f32, 8, true).kernel.c_str(), "");
  host_cublaslt().nan_droppers.clear();
  backend::gpu::AlgorithmProbes::forget();
}

/// As mixed precision has it: factors and results of 16 bits, a bias of f32, which is converted.
void a_bias_of_another_dtype_is_converted(void **) {
  GraphBuilder b;
  const ValueId first = b.input("a", DType::bf16, {6, 4}), second = b.input("b", DType::bf16, {4, 5});
  const ValueId y = b.matmul(first, second);
  const ValueId sum = b.add(b.cast(y, DType::f32), b.input("bias", DType::f32, {5}));
  b.set_result("y", b.cast(sum, DType::bf16));
  const TailOutcome outcome = run_tail(b);
  assert_string_equal(outcome.kernel.c_str(), "cublaslt");
  assert_int_equal(outcome.epilogue, CUBLASLT_EPILOGUE_BIAS);
  for (int64_t i = 0; i < 30; ++i)
    assert_true(element(outcome.result, i) == product_at(outcome, i) + element(outcome.inputs[2], i % 5));
}

void results_have_another_dtype(void **) {
  GraphBuilder b;
  const ValueId first = b.input("a", DType::bf16, {6, 4}), second = b.input("b", DType::bf16, {4, 5});
  const ValueId y = b.matmul(first, second);
  b.set_result("y", b.cast(y, DType::f32));
  const TailOutcome outcome = run_tail(b);
  assert_string_equal(outcome.kernel.c_str(), "cublaslt");
  assert_true(outcome.result.dtype() == DType::f32);
  for (int64_t i = 0; i < 30; ++i)
    assert_true(element(outcome.result, i) == product_at(outcome, i));
}

/// relu(x w), with the addend and the bias that are wanted, of the dtype; a chain that ends with relu.
TailOutcome run_relu(DType dtype, bool has_addend, bool has_bias) {
  GraphBuilder b;
  const ValueId first = b.input("a", dtype, {6, 4}), second = b.input("b", dtype, {4, 5});
  ValueId y = b.matmul(first, second);
  if (has_addend) y = b.add(y, b.input("c", dtype, {6, 5}));
  if (has_bias) y = b.add(y, b.input("bias", dtype, {5}));
  b.set_result("y", b.unary("relu", y));
  return run_tail(b);
}

/// It rounds nothing: results are those of the product, those below 0 cut.
void relu_is_part_of_the_call(void **) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool has_addend : {false, true}) {
      for (const bool has_bias : {false, true}) {
        const TailOutcome outcome = run_relu(dtype, has_addend, has_bias);
        assert_string_equal(outcome.kernel.c_str(), "cublaslt");
        assert_int_equal(outcome.epilogue, has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU);
        int64_t cut = 0;
        for (int64_t i = 0; i < 30; ++i) {
          float expected = product_at(outcome, i);
          if (has_addend) expected += element(outcome.inputs[2], i);
          if (has_bias) expected += element(outcome.inputs[has_addend ? 3 : 2], i % 5);
          cut += expected < 0 ? 1 : 0;
          assert_true(element(outcome.result, i) == std::max(expected, 0.0f));
        }
        assert_in_range(cut, 1, 29);
      }
    }
  }
}

/// Not where it would make a number of a NaN: then it is computed behind the product, with what is in front of it.
void a_relu_that_drops_nan_is_left_alone(void **) {
  backend::gpu::AlgorithmProbes::forget();
  host_cublaslt().nan_droppers = {0};
  assert_string_equal(run_relu(DType::f32, false, true).kernel.c_str(), "");
  host_cublaslt().nan_droppers.clear();
  // An answer stays.
  assert_string_equal(run_relu(DType::f32, false, true).kernel.c_str(), "");
  backend::gpu::AlgorithmProbes::forget();
  assert_string_equal(run_relu(DType::f32, false, true).kernel.c_str(), "cublaslt");
}

void other_tails_are_left_alone(void **) {
  const auto kernel_of = [](const std::function<ValueId(GraphBuilder &, ValueId)> &tail) {
    GraphBuilder b;
    b.set_result("y", tail(b, b.matmul(b.input("a", DType::f32, {6, 4}), b.input("b", DType::f32, {4, 5}))));
    return run_tail(b).kernel;
  };
  assert_string_equal(kernel_of([](GraphBuilder &b, ValueId y) { return b.unary("tanh", y); }).c_str(), "");
  // What follows relu, which comes last.
  for (const char *op : {"relu", "neg"}) {
    const auto tail = [&](GraphBuilder &b, ValueId y) { return b.unary(op, b.unary("relu", y)); };
    assert_string_equal(kernel_of(tail).c_str(), "");
  }
  const auto biased = [](GraphBuilder &b, ValueId y) {
    return b.add(b.unary("relu", y), b.input("bias", DType::f32, {5}));
  };
  assert_string_equal(kernel_of(biased).c_str(), "");
}

/// Of one pixel: a bias of the node's own and what follows it; a second bias stays apart.
void a_convolution_of_one_pixel_adds_its_bias(void **) {
  const auto run_with = [](bool has_second_bias) {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {1, 2, 3, 4}), kernel = b.input("kernel", DType::f32, {1, 1, 4, 5});
    const ValueId y = b.op("conv2d", {x, kernel, b.input("bias", DType::f32, {5})});
    const ValueId more = has_second_bias ? b.input("more", DType::f32, {5}) : b.input("more", DType::f32, {1, 2, 3, 5});
    b.set_result("y", b.add(y, more));
    return run_tail(b);
  };
  const TailOutcome outcome = run_with(false);
  assert_string_equal(outcome.kernel.c_str(), "cublaslt");
  for (int64_t i = 0; i < 30; ++i)
    assert_true(element(outcome.result, i) ==
                product_at(outcome, i) + element(outcome.inputs[2], i % 5) + element(outcome.inputs[3], i));
  assert_string_equal(run_with(true).kernel.c_str(), "");
  GraphBuilder cut;
  const ValueId image = cut.input("x", DType::f32, {1, 2, 3, 4}),
                filters = cut.input("kernel", DType::f32, {1, 1, 4, 5});
  cut.set_result("y", cut.unary("relu", cut.op("conv2d", {image, filters, cut.input("bias", DType::f32, {5})})));
  const TailOutcome relu = run_tail(cut);
  assert_string_equal(relu.kernel.c_str(), "cublaslt");
  assert_int_equal(relu.epilogue, CUBLASLT_EPILOGUE_RELU_BIAS);
  for (int64_t i = 0; i < 30; ++i)
    assert_true(element(relu.result, i) == std::max(product_at(relu, i) + element(relu.inputs[2], i % 5), 0.0f));
}

void nothing_is_left_over(void **) { assert_int_equal(host_cublaslt().descriptors, 0); }

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(biases_and_addends_are_part_of_the_call),
      cmocka_unit_test(the_approximate_gelu_is_part_of_the_call),
      cmocka_unit_test(the_gradient_of_gelu_is_part_of_the_call),
      cmocka_unit_test(the_gradient_of_gelu_is_part_of_a_convolution),
      cmocka_unit_test(other_gradients_of_gelu_are_left_alone),
      cmocka_unit_test(a_bias_of_another_dtype_is_converted),
      cmocka_unit_test(results_have_another_dtype),
      cmocka_unit_test(relu_is_part_of_the_call),
      cmocka_unit_test(a_relu_that_drops_nan_is_left_alone),
      cmocka_unit_test(other_tails_are_left_alone),
      cmocka_unit_test(a_convolution_of_one_pixel_adds_its_bias),
      cmocka_unit_test(nothing_is_left_over),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace library_tails_test

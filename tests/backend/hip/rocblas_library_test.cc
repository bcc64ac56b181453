// SPDX-License-Identifier: Apache-2.0
//
// Nodes become calls of rocBLAS that compute what the ops say. The library, and HIP as far as it is met, are replaced
// by what works on the host's memory.
#include "backend/hip/hip_library.h"

#include <string>
#include <vector>

#include "backend/gpu/kernel/kernel.h"
#include "backend/hip/host_hip.h"
#include "backend/hip/host_rocblas.h"
#include "backend/hip/rocblas_product.h"
#include "backend/lowered_graph.h"
#include "graph/builder.h"
#include "graph/ops/op_attributes.h"
#include "graph/serialize.h"
#include "tensor/half.h"
#include "testing.h"

using namespace tutti::impl;
using backend::LoweredGraph;
using backend::gpu::ProductShape;
using backend::hip::RocblasProduct;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tutti::testing::host_rocblas;

namespace {

using Values = std::vector<float>;
using Dims = std::vector<graph::Dim>;

/// Small whole numbers: sums are exact in any order.
Values numbers(int64_t count, int seed) {
  Values made(static_cast<size_t>(count));
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed)) % 11) - 5;
  return made;
}

LoweredGraph lower(GraphBuilder &builder) {
  const std::string text = graph::to_json_text(assert_ok_value(builder.finish_graph()));
  tutti_compile_request request{};
  request.struct_size = sizeof(request);
  request.graph_text = text.c_str();
  request.bindings_json = "{}";
  request.state_json = "{\"arenas\": [], \"entries\": []}";
  request.level = TUTTI_LEVEL_FAST;
  return assert_ok_value(LoweredGraph::decode(request, nullptr));
}

struct Outcome {
  std::string kernel;  // empty: the library has nothing
  std::vector<Values> inputs;
  Values result;
};

/// Runs the graph's last node on numbers, with the memory it asks for and not a byte more.
Outcome run(const LoweredGraph &lowered) {
  const graph::Node &node = lowered.step(lowered.step_count() - 1);
  std::vector<backend::BoundedIntegers> faults;
  const auto library = assert_ok_value(backend::hip::open_rocblas_library(0));
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
  std::vector<char> scratch(static_cast<size_t>(request.scratch_bytes));
  backend::gpu::IssueContext context;
  assert_ok(
      kernel(backend::gpu::Frame(table.data(), node.inputs.data(), node.outputs.data(), scratch.data(), context)));
  return outcome;
}

// ---- matrix products ----

Outcome multiply(const Dims &a, const Dims &b, bool transpose_a, bool transpose_b) {
  GraphBuilder builder;
  const ValueId x = builder.input("a", DType::f32, a), y = builder.input("b", DType::f32, b);
  graph::ops::MatmulAttributes attributes;
  attributes.transpose_a = transpose_a;
  attributes.transpose_b = transpose_b;
  builder.set_result("y", builder.op("matmul", {x, y}, attributes.to_attributes()));
  return run(lower(builder));
}

void products_are_rocblass(void **) {
  constexpr size_t m = 3, n = 5, k = 4;
  for (const bool turned_a : {false, true}) {
    for (const bool turned_b : {false, true}) {
      const Outcome outcome = multiply(turned_a ? Dims{2, k, m} : Dims{2, m, k},
                                       turned_b ? Dims{2, n, k} : Dims{2, k, n}, turned_a, turned_b);
      assert_string_equal(outcome.kernel.c_str(), "rocblas");
      const Values &a = outcome.inputs[0], &b = outcome.inputs[1];
      for (size_t batch = 0; batch < 2; ++batch) {
        for (size_t i = 0; i < m; ++i) {
          for (size_t j = 0; j < n; ++j) {
            float sum = 0;
            for (size_t p = 0; p < k; ++p)
              sum += a[batch * m * k + (turned_a ? p * m + i : i * k + p)] *
                     b[batch * k * n + (turned_b ? j * k + p : p * n + j)];
            assert_true(outcome.result[(batch * m + i) * n + j] == sum);
          }
        }
      }
    }
  }
}

void batches_that_do_not_walk_evenly_are_several_calls(void **) {
  host_rocblas().calls = 0;
  const Outcome outcome = multiply({3, 1, 2, 4}, {1, 5, 4, 3}, false, false);
  assert_int_equal(host_rocblas().calls, 3);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 5; ++j)
      for (size_t row = 0; row < 2; ++row)
        for (size_t column = 0; column < 3; ++column) {
          float sum = 0;
          for (size_t p = 0; p < 4; ++p)
            sum += outcome.inputs[0][(i * 2 + row) * 4 + p] * outcome.inputs[1][(j * 4 + p) * 3 + column];
          assert_true(outcome.result[((i * 5 + j) * 2 + row) * 3 + column] == sum);
        }
}

// ---- convolutions of one pixel ----

constexpr size_t kPixels = 2 * 3 * 5, kChannels = 4, kFilters = 6;
const Dims kX = {2, 3, 5, 4}, kKernel = {1, 1, 4, 6}, kY = {2, 3, 5, 6};

void a_convolution_of_one_pixel_is_a_product(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, kX), kernel = b.input("kernel", DType::f32, kKernel);
  b.set_result("y", b.op("conv2d", {x, kernel}, graph::ops::Conv2dAttributes().to_attributes()));
  const Outcome outcome = run(lower(b));
  assert_string_equal(outcome.kernel.c_str(), "rocblas");
  for (size_t pixel = 0; pixel < kPixels; ++pixel)
    for (size_t filter = 0; filter < kFilters; ++filter) {
      float sum = 0;
      for (size_t c = 0; c < kChannels; ++c)
        sum += outcome.inputs[0][pixel * kChannels + c] * outcome.inputs[1][c * kFilters + filter];
      assert_true(outcome.result[pixel * kFilters + filter] == sum);
    }
}

void its_bias_is_added_behind_it(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, kX), kernel = b.input("kernel", DType::f32, kKernel);
  const ValueId bias = b.input("bias", DType::f32, {static_cast<int64_t>(kFilters)});
  b.set_result("y", b.op("conv2d", {x, kernel, bias}, graph::ops::Conv2dAttributes().to_attributes()));
  const Outcome outcome = run(lower(b));
  assert_string_equal(outcome.kernel.c_str(), "rocblas");
  for (size_t pixel = 0; pixel < kPixels; ++pixel)
    for (size_t filter = 0; filter < kFilters; ++filter) {
      float sum = outcome.inputs[2][filter];
      for (size_t c = 0; c < kChannels; ++c)
        sum += outcome.inputs[0][pixel * kChannels + c] * outcome.inputs[1][c * kFilters + filter];
      assert_true(outcome.result[pixel * kFilters + filter] == sum);
    }
}

/// dx = dy kernel'
void so_is_the_gradient_of_its_image(void **) {
  GraphBuilder b;
  const ValueId dy = b.input("dy", DType::f32, kY), kernel = b.input("kernel", DType::f32, kKernel);
  graph::ops::Conv2dInputGradientAttributes attributes;
  attributes.input_dims = {2, 3, 5, 4};
  b.set_result("dx", b.op("conv2d_input_gradient", {dy, kernel}, attributes.to_attributes()));
  const Outcome outcome = run(lower(b));
  assert_string_equal(outcome.kernel.c_str(), "rocblas");
  for (size_t pixel = 0; pixel < kPixels; ++pixel)
    for (size_t c = 0; c < kChannels; ++c) {
      float sum = 0;
      for (size_t filter = 0; filter < kFilters; ++filter)
        sum += outcome.inputs[0][pixel * kFilters + filter] * outcome.inputs[1][c * kFilters + filter];
      assert_true(outcome.result[pixel * kChannels + c] == sum);
    }
}

/// dkernel = x' dy
void so_is_that_of_its_kernel(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, kX), dy = b.input("dy", DType::f32, kY);
  graph::ops::Conv2dKernelGradientAttributes attributes;
  attributes.kernel_dims = {1, 1, 4, 6};
  b.set_result("dkernel", b.op("conv2d_kernel_gradient", {x, dy}, attributes.to_attributes()));
  const Outcome outcome = run(lower(b));
  assert_string_equal(outcome.kernel.c_str(), "rocblas");
  for (size_t c = 0; c < kChannels; ++c)
    for (size_t filter = 0; filter < kFilters; ++filter) {
      float sum = 0;
      for (size_t pixel = 0; pixel < kPixels; ++pixel)
        sum += outcome.inputs[0][pixel * kChannels + c] * outcome.inputs[1][pixel * kFilters + filter];
      assert_true(outcome.result[c * kFilters + filter] == sum);
    }
}

void others_are_left_to_others(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, kX), kernel = b.input("kernel", DType::f32, {3, 3, 4, 6});
  b.set_result("y", b.op("conv2d", {x, kernel}, graph::ops::Conv2dAttributes().to_attributes()));
  assert_string_equal(run(lower(b)).kernel.c_str(), "");
}

// ---- rocBLAS itself ----

void halves_are_summed_wide_and_stored_as_asked(void **) {
  const std::vector<uint16_t> a = {tensor::float_to_bfloat16_bits(1), tensor::float_to_bfloat16_bits(2)};
  const std::vector<uint16_t> b = {tensor::float_to_bfloat16_bits(3), tensor::float_to_bfloat16_bits(0.001953125f)};
  ProductShape shape;
  shape.dtype = DType::bf16;
  shape.m = shape.n = 1;
  shape.k = 2;
  shape.result = DType::f32;
  shape.has_addend = true;
  const auto &rocblas = host_rocblas().functions;
  const auto product = assert_ok_value(RocblasProduct::make(rocblas, nullptr, shape, 0));
  assert_true(product.has_value());
  const float addend = 100;
  float y = -77;
  assert_ok(product->issue(rocblas, nullptr, {a.data(), b.data(), &y, &addend}, nullptr, nullptr));
  assert_true(y == 100 + 3 + 0.00390625f);
}

void what_it_has_not_is_nothing(void **) {
  const auto &rocblas = host_rocblas().functions;
  ProductShape shape;
  shape.m = shape.n = shape.k = 2;
  const auto is_made = [&](const ProductShape &asked, int64_t most_scratch) {
    return assert_ok_value(RocblasProduct::make(rocblas, nullptr, asked, most_scratch)).has_value();
  };
  assert_true(is_made(shape, 0));
  ProductShape with_bias = shape, wide = shape, whole = shape;
  with_bias.has_bias = true;
  wide.k = int64_t{1} << 31;
  whole.dtype = DType::i32;
  assert_false(is_made(with_bias, 0));
  assert_false(is_made(wide, 0));
  assert_false(is_made(whole, 0));
  host_rocblas().wanted_bytes = 1000;
  assert_false(is_made(shape, 999));
  assert_true(is_made(shape, 1000));
  host_rocblas().wanted_bytes = 0;
}

void its_memory_is_the_kernels(void **) {
  host_rocblas().wanted_bytes = 1000;
  assert_string_equal(multiply({2, 3}, {3, 2}, false, false).kernel.c_str(), "rocblas");
  host_rocblas().wanted_bytes = 0;
  assert_int_equal(host_rocblas().workspace, 1000);
}

void the_handle_repeats_itself_and_is_given_back(void **) {
  host_rocblas().strict_calls = 0;
  assert_string_equal(multiply({2, 3}, {3, 2}, false, false).kernel.c_str(), "rocblas");
  assert_false(host_rocblas().adds_atomically);
  assert_int_equal(host_rocblas().strict_calls, 0);
  assert_false(tutti::testing::host_hip().is_relaxed);
  assert_int_equal(host_rocblas().handles, 0);
}

void a_kernel_keeps_the_handle_open(void **) {
  GraphBuilder builder;
  const ValueId x = builder.input("a", DType::f32, {2, 3}), y = builder.input("b", DType::f32, {3, 2});
  builder.set_result("y", builder.op("matmul", {x, y}, graph::ops::MatmulAttributes().to_attributes()));
  const LoweredGraph lowered = lower(builder);
  std::vector<backend::BoundedIntegers> faults;
  auto library = assert_ok_value(backend::hip::open_rocblas_library(0));
  backend::gpu::KernelRequest request{lowered, lowered.step(lowered.step_count() - 1), library.get(), faults};
  backend::gpu::Kernel kernel = assert_ok_value(library->find(request));
  library.reset();
  assert_int_equal(host_rocblas().handles, 1);
  kernel = {};
  assert_int_equal(host_rocblas().handles, 0);
}

void a_failure_is_an_error_and_no_library_is_none(void **) {
  GraphBuilder builder;
  const ValueId x = builder.input("a", DType::f32, {2, 3}), y = builder.input("b", DType::f32, {3, 2});
  builder.set_result("y", builder.op("matmul", {x, y}, graph::ops::MatmulAttributes().to_attributes()));
  const LoweredGraph lowered = lower(builder);
  const graph::Node &node = lowered.step(lowered.step_count() - 1);
  std::vector<backend::BoundedIntegers> faults;
  const auto library = assert_ok_value(backend::hip::open_rocblas_library(0));
  backend::gpu::KernelRequest request{lowered, node, library.get(), faults};
  const backend::gpu::Kernel kernel = assert_ok_value(library->find(request));
  assert_string_equal(library->describe().c_str(), "rocBLAS 0.0.host");
  host_rocblas().answer = rocblas_status_internal_error;
  std::vector<void *> table(lowered.values().size());
  const backend::gpu::IssueContext context;
  assert_error_contains(
      kernel(backend::gpu::Frame(table.data(), node.inputs.data(), node.outputs.data(), nullptr, context)),
      "multiplying matrices: rocBLAS says no");
  host_rocblas().answer = rocblas_status_success;
  host_rocblas().is_missing = true;
  const auto other = assert_ok_value(backend::hip::open_rocblas_library(1));
  assert_false(static_cast<bool>(assert_ok_value(other->find(request))));
  assert_string_equal(other->describe().c_str(), "rocBLAS is missing: librocblas.so is not here");
  host_rocblas().is_missing = false;
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(products_are_rocblass),
      cmocka_unit_test(batches_that_do_not_walk_evenly_are_several_calls),
      cmocka_unit_test(a_convolution_of_one_pixel_is_a_product),
      cmocka_unit_test(its_bias_is_added_behind_it),
      cmocka_unit_test(so_is_the_gradient_of_its_image),
      cmocka_unit_test(so_is_that_of_its_kernel),
      cmocka_unit_test(others_are_left_to_others),
      cmocka_unit_test(halves_are_summed_wide_and_stored_as_asked),
      cmocka_unit_test(what_it_has_not_is_nothing),
      cmocka_unit_test(its_memory_is_the_kernels),
      cmocka_unit_test(the_handle_repeats_itself_and_is_given_back),
      cmocka_unit_test(a_kernel_keeps_the_handle_open),
      cmocka_unit_test(a_failure_is_an_error_and_no_library_is_none),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: Apache-2.0
//
// Gradients of weights and of biases as one call of cuBLASLt, where trials find that faster. The library and the
// runtime are replaced by what works on the host's memory.
#include <functional>
#include <string>
#include <vector>

#include "backend/cuda/cuda_library.h"
#include "backend/cuda/host_cublaslt.h"
#include "backend/cuda/host_cudnn.h"
#include "backend/cuda/host_runtime.h"
#include "backend/gpu/fusion/elementwise_trees.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/fusion/product_sums.h"
#include "backend/gpu/library/algorithm_trials.h"
#include "backend/gpu/lowered_testing.h"
#include "graph/builder.h"
#include "graph/ops/op_attributes.h"
#include "testing.h"

namespace product_sums_test {

using namespace tutti::impl;
using backend::LoweredGraph;
using backend::gpu::AlgorithmTrials;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using tutti::testing::host_cublaslt;
using tutti::testing::host_runtime;
using tutti::testing::HostTrials;
using tutti::testing::lower;
using tutti::testing::lower_halves;
using tutti::testing::run_call;

namespace {

/// Small whole numbers: sums are exact in any order, and in bf16.
Tensor numbers(const backend::LoweredValue &value, int seed) {
  Tensor made = assert_ok_value(Tensor::allocate(value.dtype, assert_ok_value(tensor::Shape::make(value.dims))));
  for (int64_t i = 0; i < made.elements(); ++i) {
    const auto number = static_cast<float>((i * 7 + seed) % 5 - 2);
    if (value.dtype == DType::f32) made.mutable_data_as<float>()[i] = number;
    if (value.dtype == DType::bf16) made.mutable_data_as<tensor::BFloat16>()[i] = tensor::BFloat16(number);
  }
  return made;
}

float element(const Tensor &tensor, int64_t i) {
  return tensor.dtype() == DType::f32 ? tensor.data_as<float>()[i]
                                      : static_cast<float>(tensor.data_as<tensor::BFloat16>()[i]);
}

struct Outcome {
  std::string kernel;  ///< empty: both are computed apart
  cublasLtEpilogue_t epilogue{};
  std::vector<Tensor> inputs;
  Tensor product, sum;
};

/// The call of the graph's product and sum, if it is one.
Outcome run(const LoweredGraph &lowered, AlgorithmTrials &trials) {
  const auto tails = backend::gpu::find_product_epilogues(lowered, backend::gpu::ElementwiseTrees::make(lowered));
  const auto widened = backend::gpu::find_widened_products(lowered, tails);
  const auto sums = backend::gpu::find_product_sums(
      lowered, [](int32_t) { return true; }, widened);
  assert_int_equal(sums.size(), 1);
  assert_int_equal(widened.size(), sums[0].cast >= 0 ? 1 : 0);
  const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(0));
  std::vector<backend::BoundedIntegers> faults;
  int64_t scratch_bytes = 0;
  const auto call = assert_ok_value(backend::gpu::make_sum_call(lowered, sums[0], widened.empty() ? nullptr : &tails[0],
                                                                *library, trials, faults, &scratch_bytes));
  Outcome outcome;
  if (!call.kernel) return outcome;
  outcome.kernel = call.kernel_name;
  assert_true(call.other_steps == sums[0].other_steps());
  for (const auto &port : lowered.inputs())
    outcome.inputs.push_back(numbers(lowered.value(port.value), static_cast<int>(outcome.inputs.size()) * 3 + 1));
  const auto results = run_call(lowered, call.kernel, {call.inputs, call.outputs, scratch_bytes}, outcome.inputs);
  outcome.product = results[0];
  outcome.sum = results[1];
  outcome.epilogue = host_cublaslt().epilogue;
  return outcome;
}

Outcome run(GraphBuilder &builder, AlgorithmTrials &trials) { return run(lower(builder), trials); }

/// dw[channels, filters] = x' dy and the sum of the rows of dy; transposed: dw[filters, channels] = dy' x.
GraphBuilder::Values add_gradients(GraphBuilder &b, DType dtype, bool is_transposed, bool sum_is_first) {
  const ValueId x = b.input("x", dtype, {6, 4}), dy = b.input("dy", dtype, {2, 3, 5});
  const ValueId rows = b.reshape(dy, {6, 5});
  ValueId sum = graph::kNoValue;
  if (sum_is_first) sum = b.reduce_sum(dy, {0, 1});
  const ValueId dw = is_transposed ? b.matmul(rows, x, true, false) : b.matmul(x, rows, true, false);
  if (!sum_is_first) sum = b.reduce_sum(dy, {0, 1});
  return {dw, sum};
}

void check(const Outcome &outcome, bool is_transposed, const char *kernel = "cublaslt(2)") {
  assert_string_equal(outcome.kernel.c_str(), kernel);
  for (int64_t channel = 0; channel < 4; ++channel) {
    for (int64_t filter = 0; filter < 5; ++filter) {
      float product = 0, sum = 0;
      for (int64_t row = 0; row < 6; ++row) {
        product += element(outcome.inputs[0], row * 4 + channel) * element(outcome.inputs[1], row * 5 + filter);
        sum += element(outcome.inputs[1], row * 5 + filter);
      }
      assert_true(element(outcome.product, is_transposed ? filter * 4 + channel : channel * 5 + filter) == product);
      assert_true(element(outcome.sum, filter) == sum);
    }
  }
}

/// A reduction takes 3, the product 1 and with the sum so much more.
void set_times(double more) {
  AlgorithmTrials::forget();
  host_runtime().reduce_milliseconds = 3;
  host_cublaslt().algorithm_milliseconds = {{0, 1}};
  host_cublaslt().sums_milliseconds = more;
}

void the_sum_is_part_of_the_call(void **) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool is_transposed : {false, true}) {
      for (const bool sum_is_first : {false, true}) {
        set_times(2);
        HostTrials trials;
        GraphBuilder b;
        const auto results = add_gradients(b, dtype, is_transposed, sum_is_first);
        b.set_result("dw", results[0]);
        b.set_result("sum", results[1]);
        const Outcome outcome = run(b, trials.trials);
        check(outcome, is_transposed);
        // cuBLASLt's first factor is the second of the row-major product.
        assert_int_equal(outcome.epilogue, is_transposed ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA);
      }
    }
  }
}

/// The same of 16 bits, as mixed precision has it: sums in f32, and a product that is widened, if it is.
GraphBuilder::Values add_mixed_gradients(GraphBuilder &b, bool is_transposed, bool sum_is_first, bool is_widened) {
  const ValueId x = b.input("x", DType::bf16, {6, 4}), dy = b.input("dy", DType::bf16, {6, 5});
  ValueId sum = graph::kNoValue;
  if (sum_is_first) sum = b.reduce_sum(b.cast(dy, DType::f32), {0});
  const ValueId dw = is_transposed ? b.matmul(dy, x, true, false) : b.matmul(x, dy, true, false);
  if (!sum_is_first) sum = b.reduce_sum(b.cast(dy, DType::f32), {0});
  return {is_widened ? b.cast(dw, DType::f32) : dw, sum};
}

void sums_of_halves_are_f32(void **) {
  for (const bool is_transposed : {false, true}) {
    for (const bool sum_is_first : {false, true}) {
      set_times(2);
      HostTrials trials;
      GraphBuilder b;
      const auto results = add_mixed_gradients(b, is_transposed, sum_is_first, true);
      b.set_result("dw", results[0]);
      b.set_result("sum", results[1]);
      const Outcome outcome = run(lower_halves(b), trials.trials);
      check(outcome, is_transposed, "cublaslt(3)");
      assert_true(outcome.product.dtype() == DType::f32 && outcome.sum.dtype() == DType::f32);
      assert_int_equal(outcome.epilogue, is_transposed ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA);
    }
  }
}

/// cuBLASLt's sums have the dtype of the results: those of f32 are not rounded to that of a product of 16 bits.
void sums_are_not_rounded(void **) {
  GraphBuilder b;
  const auto results = add_mixed_gradients(b, false, true, false);
  b.set_result("dw", results[0]);
  b.set_result("sum", results[1]);
  const LoweredGraph lowered = lower_halves(b);
  const auto tails = backend::gpu::find_product_epilogues(lowered, backend::gpu::ElementwiseTrees::make(lowered));
  const auto widened = backend::gpu::find_widened_products(lowered, tails);
  assert_int_equal(backend::gpu::find_product_sums(
                       lowered, [](int32_t) { return true; }, widened)
                       .size(),
                   0);
}

void a_convolution_of_one_pixel_has_it_too(void **) {
  set_times(2);
  HostTrials trials;
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {1, 2, 3, 4}), dy = b.input("dy", DType::f32, {1, 2, 3, 5});
  graph::ops::Conv2dKernelGradientAttributes attributes;
  attributes.kernel_dims = {1, 1, 4, 5};
  b.set_result("dw", b.op("conv2d_kernel_gradient", {x, dy}, attributes.to_attributes()));
  b.set_result("sum", b.reduce_sum(dy, {0, 1, 2}));
  check(run(b, trials.trials), false);
  // Larger kernels are cuDNN's.
  GraphBuilder larger;
  const ValueId image = larger.input("x", DType::f32, {1, 2, 3, 4}), dy2 = larger.input("dy", DType::f32, {1, 2, 3, 5});
  attributes.kernel_dims = {3, 3, 4, 5};
  larger.set_result("dw", larger.op("conv2d_kernel_gradient", {image, dy2}, attributes.to_attributes()));
  larger.set_result("sum", larger.reduce_sum(dy2, {0, 1, 2}));
  assert_string_equal(run(larger, trials.trials).kernel.c_str(), "");
}

/// One call against two, as trials measure them.
void the_faster_way_is_taken(void **) {
  for (const bool is_slow : {false, true}) {
    set_times(is_slow ? 4 : 2);
    HostTrials trials;
    GraphBuilder b;
    const auto results = add_gradients(b, DType::f32, false, true);
    b.set_result("dw", results[0]);
    b.set_result("sum", results[1]);
    const std::string kernel = run(b, trials.trials).kernel;
    assert_string_equal(kernel.c_str(), is_slow ? "" : "cublaslt(2)");
    assert_int_equal(trials.trials.measured_count(), 1);
    // What is known is not tried again.
    const int calls = host_cublaslt().calls;
    GraphBuilder again;
    const auto same = add_gradients(again, DType::f32, false, true);
    again.set_result("dw", same[0]);
    again.set_result("sum", same[1]);
    assert_string_equal(run(again, trials.trials).kernel.c_str(), kernel.c_str());
    assert_int_equal(host_cublaslt().calls, calls + (is_slow ? 0 : 1));
  }
  // What cannot be tried stays apart.
  set_times(2);
  HostTrials spent;
  spent.trials.spend(AlgorithmTrials::kBudgetSeconds);
  GraphBuilder b;
  const auto results = add_gradients(b, DType::f32, false, true);
  b.set_result("dw", results[0]);
  b.set_result("sum", results[1]);
  assert_string_equal(run(b, spent.trials).kernel.c_str(), "");
}

void without_an_algorithm_it_is_apart(void **) {
  set_times(2);
  host_cublaslt().refused_epilogues = {CUBLASLT_EPILOGUE_BGRADA};
  HostTrials trials;
  GraphBuilder b;
  const auto results = add_gradients(b, DType::f32, false, true);
  b.set_result("dw", results[0]);
  b.set_result("sum", results[1]);
  assert_string_equal(run(b, trials.trials).kernel.c_str(), "");
  host_cublaslt().refused_epilogues.clear();
}

// ---- which nodes ----

size_t found(const std::function<void(GraphBuilder &)> &build) {
  GraphBuilder b;
  build(b);
  const LoweredGraph lowered = lower(b);
  return backend::gpu::find_product_sums(lowered, [](int32_t) { return true; }).size();
}

/// The later comes to the earlier if what it reads is made before; else the earlier waits if nobody reads it meanwhile.
void results_are_made_before_they_are_read(void **) {
  for (const bool is_read_between : {false, true}) {
    for (const bool is_made_between : {false, true}) {
      GraphBuilder b;
      ValueId x = b.input("x", DType::f32, {6, 4});
      const ValueId dy = b.input("dy", DType::f32, {6, 5}), sum = b.reduce_sum(dy, {0});
      if (is_read_between) b.set_result("between", b.unary("exp", sum));
      if (is_made_between) x = b.unary("exp", x);
      b.set_result("sum", b.unary("neg", sum));
      b.set_result("dw", b.matmul(x, dy, true, false));
      const LoweredGraph lowered = lower(b);
      const auto sums = backend::gpu::find_product_sums(lowered, [](int32_t) { return true; });
      // The last reader of the sum stands in front of the product.
      assert_int_equal(sums.size(), is_made_between ? 0 : 1);
      if (!sums.empty()) assert_int_equal(sums[0].turn, sums[0].sum);
    }
  }
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {6, 4}), dy = b.input("dy", DType::f32, {6, 5});
  const ValueId sum = b.reduce_sum(dy, {0});
  b.set_result("dw", b.matmul(b.unary("exp", x), dy, true, false));
  b.set_result("sum", b.unary("neg", sum));
  const LoweredGraph lowered = lower(b);
  const auto sums = backend::gpu::find_product_sums(lowered, [](int32_t) { return true; });
  assert_int_equal(sums.size(), 1);
  assert_int_equal(sums[0].turn, sums[0].product);
}

void other_sums_are_none(void **) {
  const auto none = [](const std::function<ValueId(GraphBuilder &, ValueId dy)> &sum) {
    assert_int_equal(found([&](GraphBuilder &b) {
                       const ValueId x = b.input("x", DType::f32, {6, 4}), dy = b.input("dy", DType::f32, {6, 6});
                       b.set_result("dw", b.matmul(x, dy, true, false));
                       b.set_result("sum", sum(b, dy));
                     }),
                     0);
  };
  none([](GraphBuilder &b, ValueId dy) { return b.reduce_sum(dy, {1}); });
  none([](GraphBuilder &b, ValueId dy) { return b.reduce_sum(dy, {0, 1}); });
  none([](GraphBuilder &b, ValueId dy) { return b.op("reduce_max", {dy}, {{"axes", std::vector<int64_t>{0}}}); });
  none([](GraphBuilder &b, ValueId) { return b.reduce_sum(b.input("other", DType::f32, {6, 6}), {0}); });
  // Its rows are not what the product sums over.
  assert_int_equal(found([](GraphBuilder &b) {
                     const ValueId x = b.input("x", DType::f32, {6, 4}), dy = b.input("dy", DType::f32, {5, 4});
                     b.set_result("dw", b.matmul(x, dy, false, true));
                     b.set_result("sum", b.reduce_sum(dy, {0}));
                   }),
                   0);
  // Of two sums one is the product's.
  assert_int_equal(found([](GraphBuilder &b) {
                     const ValueId x = b.input("x", DType::f32, {6, 4}), dy = b.input("dy", DType::f32, {6, 5});
                     b.set_result("dw", b.matmul(x, dy, true, false));
                     b.set_result("sum", b.reduce_sum(dy, {0}));
                     b.set_result("kept", b.reduce_sum(dy, {0}, true));
                   }),
                   1);
}

void nothing_is_left_over(void **) {
  assert_int_equal(host_cublaslt().descriptors, 0);
  assert_int_equal(host_runtime().objects, 0);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_sum_is_part_of_the_call),
      cmocka_unit_test(sums_of_halves_are_f32),
      cmocka_unit_test(sums_are_not_rounded),
      cmocka_unit_test(a_convolution_of_one_pixel_has_it_too),
      cmocka_unit_test(the_faster_way_is_taken),
      cmocka_unit_test(without_an_algorithm_it_is_apart),
      cmocka_unit_test(results_are_made_before_they_are_read),
      cmocka_unit_test(other_sums_are_none),
      cmocka_unit_test(nothing_is_left_over),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace product_sums_test

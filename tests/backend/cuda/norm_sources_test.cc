// SPDX-License-Identifier: Apache-2.0
//
// A convolution that gives the sums of what it stores as one graph of cuDNN, with the normalisation behind it, against
// the reference backend. cuDNN, the runtime and the kernels of the normalisation are replaced by what works on the
// host's memory.
#include "backend/gpu/fusion/norm_sources.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "backend/cuda/cuda_library.h"
#include "backend/cuda/host_cudnn.h"
#include "backend/cuda/host_runtime.h"
#include "backend/gpu/fusion/elementwise_trees.h"
#include "backend/gpu/library/algorithm_trials.h"
#include "backend/gpu/lowered_testing.h"
#include "backend_cases.h"
#include "backend_under_test.h"
#include "graph/batch.h"
#include "testing.h"

namespace norm_sources_test {

using namespace tutti::impl;
using backend::LoweredGraph;
using backend::gpu::AlgorithmTrials;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using tutti::testing::host_cudnn;
using tutti::testing::host_runtime;
using tutti::testing::HostTrials;
using tutti::testing::lower;
using tutti::testing::run_call;
using Values = GraphBuilder::Values;
using Dims = std::vector<int64_t>;

namespace {

backend::DeviceRef oracle;

std::vector<Tensor> operands(DType dtype, int64_t window, double shift = 0) {
  std::vector<Tensor> made;
  for (const Dims &dims : {Dims{2, 5, 4, 3}, Dims{window, window, 3, 6}, Dims{6}, Dims{6}}) {
    conformance::Operand operand;
    operand.dtype = made.size() < 2 ? dtype : DType::f32;
    operand.dims = dims;
    operand.low = shift - 1;
    operand.high = shift + 1;
    made.push_back(assert_ok_value(conformance::make_operand(operand, 60 + made.size())));
  }
  return made;
}

/// conv2d, the normalisation, and relu if it is wanted; in this order the results of the graph.
conformance::BuildFunction network(bool has_relu, DType dtype, int64_t stride = 1) {
  return [=](GraphBuilder &b, const Values &v) {
    const ValueId x = b.op("conv2d", {v[0], v[1]}, {{"stride", Dims{stride, stride}}});
    const Values y = b.op_n("batch_norm_training", {x, v[2], v[3]}, {{"epsilon", 0.01}}, 3);
    const ValueId last = has_relu ? b.unary("relu", b.cast(y[0], dtype)) : y[0];
    return Values{last, y[1], y[2], x};
  };
}

struct Computed {
  std::string kernel;  // "" where both are computed apart
  std::vector<Tensor> results;
};

/// A convolution with what follows, as one call.
Computed compute(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build, size_t tail_count,
                 AlgorithmTrials &trials) {
  const LoweredGraph lowered = lower(assert_ok_value(conformance::build_graph(inputs, build)));
  const auto tails = backend::gpu::find_product_epilogues(lowered, backend::gpu::ElementwiseTrees::make(lowered));
  assert_int_equal(tails.size(), tail_count);
  const auto sources = backend::gpu::find_norm_sources(lowered, [](int32_t) { return true; });
  assert_int_equal(sources.size(), 1);
  const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(0));
  std::vector<backend::BoundedIntegers> faults;
  int64_t scratch_bytes = 0;
  const auto call = assert_ok_value(
      backend::gpu::make_norm_call(lowered, sources.begin()->first, sources.begin()->second,
                                   tails.empty() ? nullptr : &tails[0], *library, trials, faults, &scratch_bytes));
  if (!call.kernel) return {};
  return {call.kernel_name, run_call(lowered, call.kernel, {call.inputs, call.outputs, scratch_bytes}, inputs)};
}

std::vector<double> as_doubles(const Tensor &tensor) {
  std::vector<double> values;
  tensor::visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    for (int64_t i = 0; i < tensor.elements(); ++i)
      values.push_back(static_cast<double>(static_cast<float>(tensor.data_as<T>()[i])));
  });
  return values;
}

/// The call's name, "" where both are computed apart; its results are right.
std::string run(DType dtype, int64_t window, bool has_relu, AlgorithmTrials &trials, int64_t stride = 1) {
  const std::vector<Tensor> inputs = operands(dtype, window);
  const auto build = network(has_relu, dtype, stride);
  const Computed computed = compute(inputs, build, has_relu ? 1 : 0, trials);
  if (computed.kernel.empty()) return "";
  const std::vector<Tensor> &results = computed.results;
  const auto expected = assert_ok_value(conformance::run_graph(oracle, inputs, build));
  const double limit = dtype == DType::bf16 ? 2e-2 : 3e-3;
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(tensor::compare_close(results[i], expected[i], limit, limit));
  return computed.kernel;
}

void sums_come_with_the_convolution(void **) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const int64_t window : {1, 3}) {
      AlgorithmTrials::forget();
      HostTrials trials;
      assert_string_equal(run(dtype, window, false, trials.trials).c_str(), "cudnn_27_sums(2)");
      assert_string_equal(run(dtype, window, true, trials.trials).c_str(), "cudnn_27_sums(3)");
    }
  }
}

/// A column more behind than in front: the image lies among zeros then.
void padding_may_differ(void **) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    AlgorithmTrials::forget();
    HostTrials trials;
    assert_string_equal(run(dtype, 3, true, trials.trials, 2).c_str(), "cudnn_27_sums(3)");
  }
}

/// cuDNN adds up f32 and f16. So bf16 is widened first, and added up as it is only where cuDNN takes nothing else.
void bf16_is_added_up_as_f32(void **) {
  const struct {
    DType dtype;
    std::set<int32_t> summed_types;
    size_t operations;  // 0: apart
  } cases[] = {
      {DType::f16, {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF}, 2},
      {DType::f16, {CUDNN_DATA_FLOAT}, 0},
      {DType::bf16, {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF}, 3},
      {DType::bf16, {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16}, 3},
      {DType::bf16, {CUDNN_DATA_BFLOAT16}, 2},
      {DType::bf16, {CUDNN_DATA_HALF}, 0},
  };
  for (const auto &one : cases) {
    AlgorithmTrials::forget();
    host_cudnn().summed_types = one.summed_types;
    HostTrials trials;
    const std::string name = run(one.dtype, 3, true, trials.trials);
    assert_string_equal(name.c_str(), one.operations == 0 ? "" : "cudnn_27_sums(3)");
    if (one.operations != 0) assert_int_equal(host_cudnn().operations, one.operations);
  }
  host_cudnn().summed_types = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF};
}

/// Of several devices each gives its moments, in f64.
void sums_are_moments(void **) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const double shift : {0.0, 4.0}) {
      AlgorithmTrials::forget();
      HostTrials trials;
      const std::vector<Tensor> inputs = operands(dtype, 3, shift);
      const auto build = [](GraphBuilder &b, const Values &v) {
        const ValueId x = b.op("conv2d", {v[0], v[1]});
        const Values moments = b.op_n("batch_norm_moments", {x});
        return Values{moments[0], moments[1], x};
      };
      const Computed computed = compute(inputs, build, 0, trials.trials);
      assert_string_equal(computed.kernel.c_str(), "cudnn_27_sums(2)");
      // Of the elements that were stored, so that f32 alone loses something.
      const std::vector<Tensor> &results = computed.results;
      assert_true(results[0].dtype() == DType::f64 && results[1].dtype() == DType::f64);
      const std::vector<double> x = as_doubles(results[2]);
      const size_t channels = 6, rows = x.size() / channels;
      for (size_t channel = 0; channel < channels; ++channel) {
        double sum = 0, squares = 0, sizes = 0;
        for (size_t row = 0; row < rows; ++row) {
          const double value = x[row * channels + channel];
          sum += value;
          sizes += std::fabs(value);
          squares += value * value;
        }
        const double limit = static_cast<double>(rows) * 0x1p-24;
        assert_true(std::fabs(results[0].data_as<double>()[channel] - sum) <= limit * sizes);
        assert_true(std::fabs(results[1].data_as<double>()[channel] - squares) <= limit * squares);
      }
    }
  }
}

/// A graph of both against a convolution and a launch, each as long as the test says.
void the_faster_way_is_taken(void **) {
  for (const bool is_apart : {false, true}) {
    AlgorithmTrials::forget();
    host_cudnn().engine_milliseconds = {{7, 4}, {8, 6}, {9, 5}, {27, is_apart ? 8.0 : 6.5}, {28, 9}, {29, 9}};
    host_runtime().reduce_milliseconds = 3;
    HostTrials trials;
    assert_string_equal(run(DType::bf16, 3, true, trials.trials).c_str(), is_apart ? "" : "cudnn_27_sums(3)");
  }
  host_cudnn().engine_milliseconds.clear();
  host_runtime().reduce_milliseconds = 0;
}

void without_time_they_are_computed_apart(void **) {
  AlgorithmTrials::forget();
  HostTrials trials;
  trials.trials.spend(AlgorithmTrials::kBudgetSeconds);
  assert_string_equal(run(DType::bf16, 3, true, trials.trials).c_str(), "");
}

/// f32 loses too many digits in sums of squares.
void f32_is_left_alone(void **) {
  AlgorithmTrials::forget();
  HostTrials trials;
  assert_string_equal(run(DType::f32, 3, true, trials.trials).c_str(), "");
}

void nothing_is_left_over(void **) {
  assert_int_equal(host_cudnn().descriptors, 0);
  assert_int_equal(host_cudnn().asked_lost_streams, 0);
  // The stream that cuDNN's handle has between uses stays.
  assert_int_equal(host_runtime().objects, 1);
  assert_ptr_equal(*host_runtime().streams.begin(), host_cudnn().stream);
}

}  // namespace

static int run_all(int, char **) {
  char name[] = "norm_sources_test", reference[] = "reference";
  char *arguments[] = {name, reference};
  const auto tested = conformance::open_backend_under_test(2, arguments);
  if (!tested.ok()) return conformance::exit_without_backend(tested.status());
  oracle = tested->oracle;
  const CMUnitTest tests[] = {
      cmocka_unit_test(sums_come_with_the_convolution),
      cmocka_unit_test(padding_may_differ),
      cmocka_unit_test(bf16_is_added_up_as_f32),
      cmocka_unit_test(sums_are_moments),
      cmocka_unit_test(the_faster_way_is_taken),
      cmocka_unit_test(without_time_they_are_computed_apart),
      cmocka_unit_test(f32_is_left_alone),
      cmocka_unit_test(nothing_is_left_over),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace norm_sources_test

// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and what follows them as one graph of cuDNN, against the reference backend, which computes node by node.
// cuDNN and the runtime are replaced by what works on the host's memory.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backend/cuda/cuda_library.h"
#include "backend/cuda/host_cublaslt.h"
#include "backend/cuda/host_cudnn.h"
#include "backend/cuda/host_runtime.h"
#include "backend/gpu/fusion/elementwise_trees.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/library/algorithm_trials.h"
#include "backend/gpu/lowered_testing.h"
#include "backend_cases.h"
#include "backend_under_test.h"
#include "graph/batch.h"
#include "testing.h"

namespace convolution_tails_test {

using namespace tutti::impl;
using backend::LoweredGraph;
using backend::gpu::AlgorithmTrials;
using backend::gpu::ProductEpilogue;
using graph::Attributes;
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

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// ---- one convolution with what follows it ----

struct Outcome {
  std::string kernel;  ///< empty: the library leaves what follows alone
  Tensor result, expected;
};

const graph::Node &convolution_of(const LoweredGraph &lowered) {
  int32_t step = 0;
  while (!lowered.step(step).op.starts_with("conv2d"))
    ++step;
  return lowered.step(step);
}

/// The kernel of the graph's convolution and of what follows it, run on the inputs, with the scratch memory that it
/// asks for and not a byte more.
Outcome run(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build,
            AlgorithmTrials *trials = nullptr, int32_t level = TUTTI_LEVEL_FAST) {
  const LoweredGraph lowered = lower(assert_ok_value(conformance::build_graph(inputs, build)), level);
  const auto tails = backend::gpu::find_product_epilogues(lowered, backend::gpu::ElementwiseTrees::make(lowered));
  assert_true(tails.size() <= 1);
  const ProductEpilogue *const tail = tails.empty() ? nullptr : &tails[0];
  std::vector<backend::BoundedIntegers> faults;
  const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(0));
  backend::gpu::KernelRequest request{lowered, convolution_of(lowered), library.get(), faults, nullptr, tail, trials};
  const backend::gpu::Kernel kernel = assert_ok_value(library->find(request));
  Outcome outcome;
  if (!kernel) return outcome;
  outcome.kernel = request.kernel_name;
  std::vector<ValueId> operands = request.node.inputs;
  if (tail != nullptr) operands.insert(operands.end(), tail->reads.begin(), tail->reads.end());
  const ValueId root = (tail == nullptr ? request.node : lowered.step(tail->root())).outputs[0];
  outcome.result = run_call(lowered, kernel, {operands, {root}, request.scratch_bytes}, inputs)[0];
  outcome.expected = assert_ok_value(conformance::run_graph(oracle, inputs, build))[0];
  return outcome;
}

/// In [-1, 1).
std::vector<Tensor> operands(const std::vector<Dims> &shapes, DType dtype = DType::f32) {
  std::vector<Tensor> made;
  for (size_t i = 0; i < shapes.size(); ++i) {
    conformance::Operand operand;
    operand.dtype = dtype;
    operand.dims = shapes[i];
    operand.low = -1;
    operand.high = 1;
    made.push_back(assert_ok_value(conformance::make_operand(operand, 900 + i)));
  }
  return made;
}

struct Case {
  Dims x, kernel, y;
  int64_t stride, dilation, groups;
};
const Case kPlain = {{2, 5, 4, 3}, {3, 3, 3, 4}, {2, 5, 4, 4}, 1, 1, 1};
const Case kCases[] = {kPlain,
                       {{2, 7, 5, 3}, {3, 3, 3, 5}, {2, 4, 3, 5}, 2, 1, 1},
                       {{1, 8, 8, 2}, {3, 3, 2, 3}, {1, 8, 8, 3}, 1, 2, 1},
                       {{2, 6, 6, 4}, {3, 3, 2, 6}, {2, 6, 6, 6}, 1, 1, 2}};
/// With a row and a column more behind than in front.
const Case kUneven = {{2, 6, 8, 3}, {3, 3, 3, 4}, {2, 3, 4, 4}, 2, 1, 1};

Attributes attributes_of(const Case &one) {
  return {
      {"stride", Dims{one.stride, one.stride}}, {"dilation", Dims{one.dilation, one.dilation}}, {"groups", one.groups}};
}

/// What follows: makes the graph's result of the convolution's, a bias or a factor of a channel, and what lies as the
/// results do.
using Tail = std::function<ValueId(GraphBuilder &, ValueId y, ValueId column, ValueId dense)>;

Outcome run_forward(const Case &one, const Tail &tail, DType dtype = DType::f32, AlgorithmTrials *trials = nullptr) {
  return run(
      operands({one.x, one.kernel, {one.kernel[3]}, one.y}, dtype),
      [&](GraphBuilder &b, const Values &v) {
        return Values{tail(b, b.op("conv2d", {v[0], v[1]}, attributes_of(one)), v[2], v[3])};
      },
      trials);
}

Outcome run_backward(const Case &one, const Tail &tail, DType dtype = DType::f32) {
  return run(operands({one.y, one.kernel, {one.x[3]}, one.x}, dtype), [&](GraphBuilder &b, const Values &v) {
    Attributes attributes = attributes_of(one);
    attributes["input_dims"] = graph::to_dims(one.x);
    return Values{tail(b, b.op("conv2d_input_gradient", {v[0], v[1]}, attributes), v[2], v[3])};
  });
}

Outcome run_with_own_bias(const Case &one, bool has_tail, DType dtype = DType::f32, AlgorithmTrials *trials = nullptr) {
  return run(
      operands({one.x, one.kernel, {one.kernel[3]}, one.y}, dtype),
      [&](GraphBuilder &b, const Values &v) {
        const ValueId y = b.op("conv2d", {v[0], v[1], v[2]}, attributes_of(one));
        return Values{has_tail ? b.unary("relu", b.add(y, v[3])) : y};
      },
      trials);
}

void check(const Outcome &outcome, const char *kernel, double limit = 1e-5) {
  assert_string_equal(outcome.kernel.c_str(), kernel);
  assert_ok(tensor::compare_close(outcome.result, outcome.expected, limit, limit));
}

// ---- what follows ----

const std::vector<std::pair<const char *, Tail>> kExact = {
    {"bias", [](auto &b, ValueId y, ValueId column, ValueId) { return b.add(y, column); }},
    {"residual", [](auto &b, ValueId y, ValueId, ValueId dense) { return b.add(dense, y); }},
    {"bias, residual, relu",
     [](auto &b, ValueId y, ValueId column, ValueId dense) { return b.unary("relu", b.add(b.add(y, column), dense)); }},
    {"reversed", [](auto &b, ValueId y, ValueId column, ValueId dense) { return b.sub(dense, b.mul(column, y)); }},
    {"leaky_relu",
     [](auto &b, ValueId y, ValueId, ValueId) {
       return b.op("leaky_relu", {y}, {{"alpha", 0.25}});
     }},
    {"neg", [](auto &b, ValueId y, ValueId, ValueId) { return b.unary("neg", y); }},
    {"abs", [](auto &b, ValueId y, ValueId, ValueId) { return b.unary("abs", y); }},
    {"square", [](auto &b, ValueId y, ValueId, ValueId) { return b.unary("square", y); }},
    {"maximum",
     [](auto &b, ValueId y, ValueId column, ValueId) {
       return b.op("maximum", {y, column});
     }},
    {"minimum",
     [](auto &b, ValueId y, ValueId, ValueId dense) {
       return b.op("minimum", {dense, y});
     }},
    {"relu_gradient",
     [](auto &b, ValueId y, ValueId, ValueId dense) {
       return b.op("relu_gradient", {y, dense});
     }},
    {"relu_gradient, reversed",
     [](auto &b, ValueId y, ValueId, ValueId dense) {
       return b.op("relu_gradient", {dense, y});
     }},
    {"tanh_gradient",
     [](auto &b, ValueId y, ValueId, ValueId dense) {
       return b.op("tanh_gradient", {y, dense});
     }},
    {"sigmoid_gradient",
     [](auto &b, ValueId y, ValueId, ValueId dense) {
       return b.op("sigmoid_gradient", {y, dense});
     }},
};

/// How exact cuDNN's are is not documented.
const std::vector<std::pair<const char *, Tail>> kApproximate = {
    {"exp", [](auto &b, ValueId y, ValueId, ValueId) { return b.unary("exp", y); }},
    {"tanh", [](auto &b, ValueId y, ValueId column, ValueId) { return b.unary("tanh", b.add(y, column)); }},
    {"sigmoid", [](auto &b, ValueId y, ValueId, ValueId) { return b.unary("sigmoid", y); }},
    {"silu", [](auto &b, ValueId y, ValueId, ValueId) { return b.unary("silu", y); }},
    {"gelu",
     [](auto &b, ValueId y, ValueId, ValueId) {
       return b.op("gelu", {y}, {{"approximate", false}});
     }},
    {"gelu, approximate",
     [](auto &b, ValueId y, ValueId, ValueId) {
       return b.op("gelu", {y}, {{"approximate", true}});
     }},
    {"gelu_gradient",
     [](auto &b, ValueId y, ValueId, ValueId dense) {
       return b.op("gelu_gradient", {y, dense});
     }},
    {"gelu_gradient, approximate",
     [](auto &b, ValueId y, ValueId, ValueId dense) {
       return b.op("gelu_gradient", {y, dense}, {{"approximate", true}});
     }},
    {"div", [](auto &b, ValueId y, ValueId, ValueId dense) { return b.div(y, dense); }},
};

void what_follows_is_part_of_the_call(void **) {
  for (const Case &one : kCases) {
    for (const auto &[name, tail] : kExact) {
      check(run_forward(one, tail), "cudnn_28");
      check(run_backward(one, tail), "cudnn_28");
    }
  }
}

/// x lies among zeros then, of which y knows nothing; a gradient of x has to be taken out of them first.
void padding_may_differ(void **) {
  for (const auto &[name, tail] : kExact) {
    check(run_forward(kUneven, tail), "cudnn_28");
    assert_string_equal(run_backward(kUneven, tail).kernel.c_str(), "");
  }
  check(run_with_own_bias(kUneven, true), "cudnn_28_bias");
  check(run_with_own_bias(kUneven, true, DType::bf16), "cudnn_27_bias", 0x1p-5);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const Outcome outcome = run(operands({kUneven.y, kUneven.kernel}, dtype), [](GraphBuilder &b, const Values &v) {
      Attributes attributes = attributes_of(kUneven);
      attributes["input_dims"] = graph::to_dims(kUneven.x);
      return Values{b.op("conv2d_input_gradient", {v[0], v[1]}, attributes)};
    });
    check(outcome, dtype == DType::f32 ? "cudnn_8" : "cudnn_7", dtype == DType::f32 ? 1e-5 : 0x1p-6);
  }
}

/// Of 16 bits, where rounding hides what is not documented; the reference backend rounds behind each node.
void sixteen_bits_have_activations_too(void **) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const double limit = dtype == DType::bf16 ? 0x1p-6 : 0x1p-9;
    for (const auto *const tails : {&kExact, &kApproximate}) {
      for (const auto &[name, tail] : *tails) {
        const Outcome forward = run_forward(kPlain, tail, dtype), backward = run_backward(kPlain, tail, dtype);
        assert_string_equal(forward.kernel.c_str(), "cudnn_27");
        assert_string_equal(backward.kernel.c_str(), "cudnn_27");
        assert_ok(tensor::compare_close(forward.result, forward.expected, limit, 8 * limit));
        assert_ok(tensor::compare_close(backward.result, backward.expected, limit, 8 * limit));
      }
    }
  }
}

/// As mixed precision has it: factors of 16 bits, operands and arithmetic of 32, results of either.
void dtypes_may_differ(void **) {
  std::vector<Tensor> inputs = operands({kPlain.x, kPlain.kernel}, DType::bf16);
  for (Tensor &more : operands({{kPlain.kernel[3]}, {}}))
    inputs.push_back(std::move(more));
  for (const DType result : {DType::bf16, DType::f32}) {
    const Outcome outcome = run(inputs, [&](GraphBuilder &b, const Values &v) {
      const ValueId y = b.cast(b.op("conv2d", {v[0], v[1]}), DType::f32);
      return Values{b.cast(b.unary("relu", b.mul(b.add(y, v[2]), v[3])), result)};
    });
    check(outcome, "cudnn_27", 0x1p-7);
  }
  check(run(inputs,
            [](GraphBuilder &b, const Values &v) {
              return Values{b.cast(b.op("conv2d", {v[0], v[1]}), DType::f32)};
            }),
        "cudnn_27", 0x1p-7);
}

/// It is rounded once: sums of two that are both far below the last digit of bf16, and together are not.
void intermediates_keep_their_digits(void **) {
  std::vector<Tensor> inputs = operands({{1, 3, 3, 1}, {3, 3, 1, 1}, {1}, {1}}, DType::bf16);
  const auto fill = [&](size_t input, float value) {
    for (int64_t i = 0; i < inputs[input].elements(); ++i)
      inputs[input].mutable_data_as<tensor::BFloat16>()[i] = tensor::BFloat16(value);
  };
  fill(0, 0);
  fill(1, 0);
  inputs[0].mutable_data_as<tensor::BFloat16>()[4] = tensor::BFloat16(1.0f);
  inputs[1].mutable_data_as<tensor::BFloat16>()[4] = tensor::BFloat16(1.0f);
  fill(2, 0x1p-9f);
  fill(3, 0x1.8p-9f);
  const Outcome outcome = run(inputs, [](GraphBuilder &b, const Values &v) {
    return Values{b.add(b.add(b.op("conv2d", {v[0], v[1]}), v[2]), v[3])};
  });
  assert_string_equal(outcome.kernel.c_str(), "cudnn_27");
  assert_true(static_cast<float>(outcome.result.data_as<tensor::BFloat16>()[4]) == 1 + 0x1p-7f);
}

/// How often `value` is not a number, of both results at the same places.
int64_t nan_count(const Outcome &outcome) {
  int64_t count = 0;
  for (int64_t i = 0; i < outcome.result.elements(); ++i) {
    const auto is_nan = [&](const Tensor &tensor) {
      return std::isnan(tensor.dtype() == DType::f32 ? tensor.data_as<float>()[i]
                                                     : static_cast<float>(tensor.data_as<tensor::BFloat16>()[i]));
    };
    assert_true(is_nan(outcome.result) == is_nan(outcome.expected));
    count += is_nan(outcome.result) ? 1 : 0;
  }
  return count;
}

/// A loss that is not finite has to be seen.
void a_nan_stays_one(void **) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    // In the image, in a bias, in what lies as the results do.
    for (const size_t place : {0, 2, 3}) {
      std::vector<Tensor> inputs = operands({kPlain.x, kPlain.kernel, {kPlain.kernel[3]}, kPlain.y}, dtype);
      if (dtype == DType::f32) inputs[place].mutable_data_as<float>()[2] = kNan;
      if (dtype == DType::bf16) inputs[place].mutable_data_as<tensor::BFloat16>()[2] = tensor::BFloat16(kNan);
      int64_t seen = 0;
      for (const auto *const tails : {&kExact, &kApproximate}) {
        if (dtype == DType::f32 && tails == &kApproximate) continue;
        for (const auto &[name, tail] : *tails) {
          const Outcome outcome = run(inputs, [&](GraphBuilder &b, const Values &v) {
            return Values{tail(b, b.op("conv2d", {v[0], v[1]}), v[2], v[3])};
          });
          assert_string_equal(outcome.kernel.c_str(), dtype == DType::f32 ? "cudnn_28" : "cudnn_27");
          const int64_t count = nan_count(outcome);
          if (place == 0 && std::string(name) != "relu_gradient, reversed") assert_true(count > 0);
          seen += count;
        }
      }
      assert_true(seen > 0);
    }
  }
}

void what_is_not_exact_is_left_alone(void **) {
  for (const auto &[name, tail] : kApproximate)
    assert_string_equal(run_forward(kPlain, tail).kernel.c_str(), "");
  for (const char *op : {"softplus", "elu"}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tail tail = [op](GraphBuilder &b, ValueId y, ValueId, ValueId) { return b.unary(op, y); };
      assert_string_equal(run_forward(kPlain, tail, dtype).kernel.c_str(), "");
    }
  }
}

// ---- a bias of the node's own ----

void a_bias_of_its_own_is_part_of_the_call(void **) {
  for (const Case &one : kCases) {
    check(run_with_own_bias(one, false), "cudnn_28_bias");
    check(run_with_own_bias(one, true), "cudnn_28_bias");
    check(run_with_own_bias(one, true, DType::bf16), "cudnn_27_bias", 0x1p-5);
  }
}

// ---- where cuDNN has nothing ----

void without_an_engine_it_is_computed_apart(void **) {
  host_cudnn().refused_modes = {CUDNN_POINTWISE_ADD};
  assert_string_equal(run_forward(kPlain, kExact[0].second).kernel.c_str(), "");
  assert_string_equal(run_with_own_bias(kPlain, true).kernel.c_str(), "");
  // Then the bias is a kernel of its own.
  check(run_with_own_bias(kPlain, false), "cudnn_8");
  host_cudnn().refused_modes = {CUDNN_POINTWISE_BINARY_SELECT};
  check(run_forward(kPlain, kExact[0].second), "cudnn_28");
  assert_string_equal(run_forward(kPlain, kExact[2].second).kernel.c_str(), "");
  host_cudnn().refused_modes.clear();
  host_cudnn().supports = false;
  assert_string_equal(run_forward(kPlain, kExact[0].second).kernel.c_str(), "");
  assert_string_equal(run_with_own_bias(kPlain, false).kernel.c_str(), "");
  host_cudnn().supports = true;
  // What cuDNN itself thinks slow is not better than two kernels.
  host_cudnn().has_only_fallbacks = true;
  assert_string_equal(run_forward(kPlain, kExact[0].second).kernel.c_str(), "");
  check(run_with_own_bias(kPlain, false), "cudnn_8");
  host_cudnn().has_only_fallbacks = false;
}

void levels_choose_engines(void **) {
  for (const auto &[level, kernel] : {std::pair{TUTTI_LEVEL_FAST, "cudnn_28"},
                                      {TUTTI_LEVEL_REPEATABLE, "cudnn_29"},
                                      {TUTTI_LEVEL_INVARIANT, "cudnn_29"}}) {
    const auto inputs = operands({kPlain.x, kPlain.kernel, {kPlain.kernel[3]}});
    const auto build = [](GraphBuilder &b, const Values &v) {
      return Values{b.add(b.op("conv2d", {v[0], v[1]}), v[2])};
    };
    check(run(inputs, build, nullptr, level), kernel);
  }
}

// ---- trials ----

/// One graph and two launches, each as long as the test says.
void the_faster_way_is_taken(void **) {
  const Tail &tail = kExact[2].second;
  for (const bool is_apart : {false, true}) {
    AlgorithmTrials::forget();
    host_cudnn().engine_milliseconds = {{7, 1}, {8, 6}, {9, 4}, {27, 1}, {28, 9}, {29, is_apart ? 8.0 : 6.5}};
    host_runtime().elements_milliseconds = 3;
    HostTrials first, second;
    const Outcome outcome = run_forward(kPlain, tail, DType::f32, &first.trials);
    // Both are known by names of their own.
    assert_int_equal(first.trials.measured_count(), 2);
    if (is_apart) {
      assert_string_equal(outcome.kernel.c_str(), "");
    } else {
      check(outcome, "cudnn_29");
    }
    const int calls = host_cudnn().calls;
    assert_string_equal(run_forward(kPlain, tail, DType::f32, &second.trials).kernel.c_str(), outcome.kernel.c_str());
    assert_int_equal(host_cudnn().calls, calls + (is_apart ? 0 : 1));
    assert_int_equal(second.trials.measured_count(), 0);
    // The convolution alone: its own answer, and what follows it another one's.
    check(run(
              operands({kPlain.x, kPlain.kernel}),
              [](GraphBuilder &b, const Values &v) {
                return Values{b.op("conv2d", {v[0], v[1]})};
              },
              &second.trials),
          "cudnn_9");
    assert_int_equal(second.trials.measured_count(), 0);
    check(run_forward(kPlain, kExact[0].second, DType::f32, &second.trials), is_apart ? "" : "cudnn_29");
    assert_int_equal(second.trials.measured_count(), 1);
  }
  host_cudnn().engine_milliseconds.clear();
  host_runtime().elements_milliseconds = 0;
}

/// Two launches follow the convolution where the node has a bias and a tail.
void a_bias_of_its_own_is_another_launch(void **) {
  host_cudnn().engine_milliseconds = {{7, 1}, {8, 6}, {9, 4}, {27, 1}, {28, 9}, {29, 8}};
  host_runtime().elements_milliseconds = 3;
  AlgorithmTrials::forget();
  HostTrials trials;
  check(run_with_own_bias(kPlain, true, DType::f32, &trials.trials), "cudnn_29_bias");
  check(run_with_own_bias(kPlain, false, DType::f32, &trials.trials), "cudnn_9");
  check(run_with_own_bias(kPlain, false, DType::f32, &trials.trials), "cudnn_9");
  host_cudnn().engine_milliseconds.clear();
  host_runtime().elements_milliseconds = 0;
}

/// Plans of several operations take time, too: where it is spent there are none but those that are known.
void without_time_it_is_computed_apart(void **) {
  AlgorithmTrials::forget();
  HostTrials first, second;
  check(run_forward(kPlain, kExact[0].second, DType::f32, &first.trials), "cudnn_28");
  second.trials.spend(AlgorithmTrials::kBudgetSeconds);
  check(run_forward(kPlain, kExact[0].second, DType::f32, &second.trials), "cudnn_28");
  assert_string_equal(run_forward(kPlain, kExact[2].second, DType::f32, &second.trials).kernel.c_str(), "");
}

void nothing_is_left_over(void **) {
  assert_int_equal(host_cudnn().descriptors, 0);
  assert_int_equal(host_cudnn().asked_lost_streams, 0);
  // The stream that cuDNN's handle has between uses stays.
  assert_int_equal(host_runtime().objects, 1);
  assert_ptr_equal(*host_runtime().streams.begin(), host_cudnn().stream);
}

// ---- strides that are folded ----

/// Does a run fold the image? That takes a millisecond of its own, when what is faster is known.
bool folds(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build, AlgorithmTrials *trials,
           int32_t level) {
  (void)run(inputs, build, trials, level);
  const double before = host_runtime().milliseconds;
  const Outcome outcome = run(inputs, build, trials, level);
  assert_false(outcome.kernel.empty());
  assert_ok(tensor::compare_close(outcome.result, outcome.expected, 4e-2, 4e-2));
  return host_runtime().milliseconds != before;
}

bool folds_all(const Case &one, DType dtype, AlgorithmTrials *trials, int32_t level = TUTTI_LEVEL_FAST) {
  const auto inputs = operands({one.x, one.kernel, one.y}, dtype);
  const bool forward = folds(
      inputs,
      [&](GraphBuilder &b, const Values &v) {
        return Values{b.op("conv2d", {v[0], v[1]}, attributes_of(one))};
      },
      trials, level);
  const bool backward = folds(
      inputs,
      [&](GraphBuilder &b, const Values &v) {
        Attributes attributes = attributes_of(one);
        attributes["kernel_dims"] = graph::to_dims(one.kernel);
        return Values{b.op("conv2d_kernel_gradient", {v[0], v[2]}, attributes)};
      },
      trials, level);
  assert_true(forward == backward);
  return forward;
}

/// Of 16 bits, and where it is tried.
void strides_of_few_channels_are_folded_where_that_is_faster(void **) {
  const Case few = {{2, 7, 6, 3}, {5, 5, 3, 4}, {2, 4, 3, 4}, 2, 1, 1},
             many = {{2, 7, 6, 8}, {5, 5, 8, 4}, {2, 4, 3, 4}, 2, 1, 1};
  host_runtime().elements_milliseconds = 1;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const Case &one : {few, kUneven}) {
      for (const double slower : {0.0, 0.5, 3.0}) {
        AlgorithmTrials::forget();
        HostTrials trials;
        host_cudnn().stride_milliseconds = slower;
        assert_true(folds_all(one, dtype, &trials.trials) == (slower > 1));
        assert_false(folds_all(many, dtype, &trials.trials));
      }
      assert_false(folds_all(one, dtype, nullptr));
      assert_false(folds_all(one, dtype, nullptr, TUTTI_LEVEL_REPEATABLE));
    }
  }
  AlgorithmTrials::forget();
  HostTrials trials;
  assert_false(folds_all(few, DType::f32, &trials.trials));
  host_runtime().elements_milliseconds = 0;
  host_cudnn().stride_milliseconds = 0;
}

/// With what follows it, too.
void a_folded_convolution_has_a_tail(void **) {
  const Case few = {{2, 7, 6, 3}, {5, 5, 3, 4}, {2, 4, 3, 4}, 2, 1, 1};
  host_cudnn().stride_milliseconds = 3;
  host_runtime().elements_milliseconds = 1;
  AlgorithmTrials::forget();
  HostTrials trials;
  const auto relu = [](GraphBuilder &b, ValueId y, ValueId column, ValueId) {
    return b.unary("relu", b.add(y, column));
  };
  const Outcome outcome = run_forward(few, relu, DType::bf16, &trials.trials);
  assert_string_equal(outcome.kernel.c_str(), "cudnn_27");
  assert_ok(tensor::compare_close(outcome.result, outcome.expected, 4e-2, 4e-2));
  host_runtime().elements_milliseconds = 0;
  host_cudnn().stride_milliseconds = 0;
}

}  // namespace

static int run_all(int, char **) {
  char name[] = "convolution_tails_test", reference[] = "reference";
  char *arguments[] = {name, reference};
  const auto tested = conformance::open_backend_under_test(2, arguments);
  if (!tested.ok()) return conformance::exit_without_backend(tested.status());
  oracle = tested->oracle;
  const CMUnitTest tests[] = {
      cmocka_unit_test(what_follows_is_part_of_the_call),
      cmocka_unit_test(padding_may_differ),
      cmocka_unit_test(sixteen_bits_have_activations_too),
      cmocka_unit_test(dtypes_may_differ),
      cmocka_unit_test(intermediates_keep_their_digits),
      cmocka_unit_test(a_nan_stays_one),
      cmocka_unit_test(what_is_not_exact_is_left_alone),
      cmocka_unit_test(a_bias_of_its_own_is_part_of_the_call),
      cmocka_unit_test(without_an_engine_it_is_computed_apart),
      cmocka_unit_test(levels_choose_engines),
      cmocka_unit_test(the_faster_way_is_taken),
      cmocka_unit_test(a_bias_of_its_own_is_another_launch),
      cmocka_unit_test(without_time_it_is_computed_apart),
      cmocka_unit_test(nothing_is_left_over),
      cmocka_unit_test(strides_of_few_channels_are_folded_where_that_is_faster),
      cmocka_unit_test(a_folded_convolution_has_a_tail),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace convolution_tails_test

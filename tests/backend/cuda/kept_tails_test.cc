// SPDX-License-Identifier: Apache-2.0
//
// What gelu is computed of is stored by cuBLASLt's call of the product and read by that of the gradient. The libraries,
// and the CUDA runtime as far as it is met, are replaced by what works on the host's memory.
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/cuda/cuda_library.h"
#include "backend/cuda/host_cublaslt.h"
#include "backend/gpu/fusion/elementwise_trees.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/library/algorithm_probes.h"
#include "backend/gpu/lowered_testing.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "testing.h"

namespace kept_tails_test {

using namespace tutti::impl;
using backend::LoweredGraph;
using backend::gpu::ProductEpilogue;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using tutti::testing::host_cublaslt;
using tutti::testing::lower;
using tutti::testing::lower_halves;
using tutti::testing::lower_mixed;
using tutti::testing::numbers;

namespace {

const graph::Attributes kApproximate = {{"approximate", true}};

double element(const Tensor &tensor, int64_t i) {
  return tensor.dtype() == DType::f32 ? static_cast<double>(tensor.data_as<float>()[i])
                                      : static_cast<double>(static_cast<float>(tensor.data_as<tensor::BFloat16>()[i]));
}

void set_element(Tensor &tensor, int64_t i, float value) {
  if (tensor.dtype() == DType::f32) tensor.mutable_data_as<float>()[i] = value;
  if (tensor.dtype() == DType::bf16) tensor.mutable_data_as<tensor::BFloat16>()[i] = tensor::BFloat16(value);
}

/// Values of a graph, by id: those that it is given, casts of them, and what calls have stored.
class Memory {
 public:
  /// Inputs are whole numbers from -5 to 5 over `divisor`, which have few enough digits for bf16.
  Memory(const LoweredGraph &lowered, float divisor) : lowered_(lowered) {
    for (const auto &port : lowered.inputs()) {
      Tensor &input = add(port.value);
      const std::vector<float> values = numbers(input.elements(), static_cast<int>(values_.size()) * 3 + 1);
      for (int64_t i = 0; i < input.elements(); ++i)
        set_element(input, i, values[static_cast<size_t>(i)] / divisor);
    }
    for (int32_t step = 0; step < lowered.step_count(); ++step) {
      const graph::Node &node = lowered.step(step);
      if (node.op == "cast" && values_.count(node.inputs[0]) != 0) add_copy(node.outputs[0], at(node.inputs[0]));
    }
  }

  Tensor &add(ValueId value) {
    const backend::LoweredValue &info = lowered_.value(value);
    return values_[value] =
               assert_ok_value(Tensor::allocate(info.dtype, assert_ok_value(tensor::Shape::make(info.dims))));
  }
  void add_copy(ValueId value, const Tensor &from) {
    Tensor &made = add(value);
    for (int64_t i = 0; i < made.elements(); ++i)
      set_element(made, i, static_cast<float>(element(from, i)));
  }
  Tensor &at(ValueId value) {
    if (values_.count(value) == 0) fail_msg("value %d is not there yet", value);
    return values_.at(value);
  }
  Tensor &input(const std::string &name) {
    for (const auto &port : lowered_.inputs()) {
      if (port.name == name) return at(port.value);
    }
    fail_msg("there is no input %s", name.c_str());
    return values_.begin()->second;
  }
  std::vector<void *> pointers() {
    std::vector<void *> table(lowered_.values().size());
    for (auto &[value, tensor] : values_)
      table[static_cast<size_t>(value)] = tensor.mutable_data();
    return table;
  }

 private:
  const LoweredGraph &lowered_;
  std::map<ValueId, Tensor> values_;
};

/// What the library has for a product with its tail.
struct Found {
  backend::gpu::Kernel kernel;  ///< empty: it leaves the tail alone
  std::string name;
  int64_t scratch_bytes = 0;
};

Found find(const LoweredGraph &lowered, const ProductEpilogue &tail, bool has_probes = true) {
  std::vector<backend::BoundedIntegers> faults;
  const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(0));
  backend::gpu::KernelRequest request{lowered, lowered.step(tail.product), library.get(), faults, nullptr, &tail};
  tutti::testing::HostProbes probes;
  if (has_probes) request.probes = &probes.probes;
  Found found;
  found.kernel = assert_ok_value(library->find(request));
  found.name = found.kernel ? request.kernel_name : "";
  found.scratch_bytes = request.scratch_bytes;
  return found;
}

/// As an executable calls it.
void run(const LoweredGraph &lowered, const ProductEpilogue &tail, Memory &memory) {
  const Found found = find(lowered, tail);
  assert_string_equal(found.name.c_str(), "cublaslt");
  const graph::Node &product = lowered.step(tail.product);
  std::vector<ValueId> inputs = product.inputs, outputs = {lowered.step(tail.root()).outputs[0]};
  inputs.insert(inputs.end(), tail.reads.begin(), tail.reads.end());
  if (tail.keeps()) outputs.push_back(lowered.step(tail.kept).outputs[0]);
  for (const ValueId input : inputs)
    (void)memory.at(input);
  for (const ValueId output : outputs)
    (void)memory.add(output);
  const std::vector<void *> table = memory.pointers();
  std::vector<char> scratch(static_cast<size_t>(found.scratch_bytes));
  const backend::gpu::IssueContext context;
  assert_ok(found.kernel(backend::gpu::Frame(table.data(), inputs.data(), outputs.data(), scratch.data(), context)));
}

std::vector<ProductEpilogue> keeping_tails(const LoweredGraph &lowered) {
  const auto trees = backend::gpu::ElementwiseTrees::make(lowered);
  return backend::gpu::find_keeping_epilogues(lowered, trees, backend::gpu::find_product_epilogues(lowered, trees));
}

/// The tail whose last operation that is no cast has the name.
ProductEpilogue tail_with(const LoweredGraph &lowered, const std::string &op) {
  for (const ProductEpilogue &tail :
       backend::gpu::find_product_epilogues(lowered, backend::gpu::ElementwiseTrees::make(lowered))) {
    for (const int32_t step : tail.steps) {
      if (lowered.step(step).op == op) return tail;
    }
  }
  fail_msg("there is no tail with %s", op.c_str());
  return {};
}

// ---- training ----

constexpr int64_t kRows = 6, kInputs = 4, kUnits = 8, kOutputs = 3;

/// u = x w + b, h = gelu(u), a loss of h v weighed by c, and the gradients of w and v, in mixed precision or not.
LoweredGraph training_graph(bool is_mixed, bool has_bias) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {kRows, kInputs}), w = b.input("w", DType::f32, {kInputs, kUnits}),
                v = b.input("v", DType::f32, {kUnits, kOutputs}), c = b.input("c", DType::f32, {kRows, kOutputs});
  ValueId u = b.matmul(x, w);
  if (has_bias) u = b.add(u, b.input("b", DType::f32, {kUnits}));
  const ValueId y = b.matmul(b.op("gelu", {u}, kApproximate), v);
  const std::vector<ValueId> losses = {b.reduce_sum(b.mul(y, c))}, parameters = {w, v};
  const auto gradients = assert_ok_value(graph::gradients(b, losses, {}, parameters));
  b.set_result("loss", losses[0]);
  b.set_result("dw", gradients[0]);
  b.set_result("dv", gradients[1]);
  return is_mixed ? lower_mixed(b) : lower(b, TUTTI_LEVEL_FAST, TUTTI_COMPILE_TF32_WHERE_FASTER);
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

void assert_near(double got, double expected, double tolerance) {
  if (!(std::fabs(got - expected) <= tolerance * (1 + std::fabs(expected))))
    fail_msg("got %.9g, expected %.9g", got, expected);
}

/// u and h are what the ops say, and du, where it is part of the call, what differences of the loss say.
void check_training(bool is_mixed, bool has_bias) {
  const LoweredGraph lowered = training_graph(is_mixed, has_bias);
  Memory memory(lowered, 8);
  const std::vector<ProductEpilogue> keeping = keeping_tails(lowered);
  assert_int_equal(keeping.size(), 1);
  run(lowered, keeping[0], memory);
  const Tensor &u = memory.at(lowered.step(keeping[0].kept).outputs[0]);
  const Tensor &h = memory.at(lowered.step(keeping[0].root()).outputs[0]);
  assert_int_equal(host_cublaslt().epilogue, has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX);
  assert_ptr_equal(host_cublaslt().auxiliary, u.data());
  assert_int_equal(host_cublaslt().auxiliary_leading, kUnits);
  assert_true(u.dtype() == (is_mixed ? DType::bf16 : DType::f32) && h.dtype() == u.dtype());

  const ProductEpilogue gradient = tail_with(lowered, "gelu_gradient");
  memory.add_copy(lowered.step(gradient.product).inputs[0], memory.input("c"));  // the gradient of h v
  const Tensor *du = nullptr;
  if (is_mixed) {
    assert_string_equal(find(lowered, gradient).name.c_str(), "");  // of bf16 it is not exact enough
  } else {
    run(lowered, gradient, memory);
    assert_int_equal(host_cublaslt().epilogue, CUBLASLT_EPILOGUE_DGELU);
    assert_ptr_equal(host_cublaslt().auxiliary, u.data());
    du = &memory.at(lowered.step(gradient.root()).outputs[0]);
  }

  const double tolerance = is_mixed ? 0x1p-7 : 1e-5;
  for (int64_t i = 0; i < kRows * kUnits; ++i) {
    const int64_t row = i / kUnits, unit = i % kUnits;
    double sum = has_bias ? element(memory.input("b"), unit) : 0, dh = 0;
    for (int64_t k = 0; k < kInputs; ++k)
      sum += element(memory.input("x"), row * kInputs + k) * element(memory.input("w"), k * kUnits + unit);
    for (int64_t k = 0; k < kOutputs; ++k)
      dh += element(memory.input("c"), row * kOutputs + k) * element(memory.input("v"), unit * kOutputs + k);
    assert_near(element(u, i), sum, tolerance);
    assert_near(element(h, i), gelu(sum), tolerance);
    if (du != nullptr) assert_near(element(*du, i), dh * (gelu(sum + 1e-4) - gelu(sum - 1e-4)) / 2e-4, tolerance);
  }
}

void training_stores_what_the_gradient_reads(void **) {
  for (const bool is_mixed : {false, true}) {
    for (const bool has_bias : {false, true})
      check_training(is_mixed, has_bias);
  }
}

/// A residual and a bias in front of gelu, and a convolution of one pixel with a bias of its own.
void what_is_in_front_is_stored_with_it(void **) {
  GraphBuilder b;
  const ValueId y = b.matmul(b.input("x", DType::f32, {2, 3, 4}), b.input("w", DType::f32, {4, 8}));
  const ValueId u = b.add(b.add(y, b.input("c", DType::f32, {2, 3, 8})), b.input("b", DType::f32, {8}));
  b.set_result("u", u);
  b.set_result("h", b.op("gelu", {u}, kApproximate));
  GraphBuilder pixels;
  const ValueId z =
      pixels.op("conv2d", {pixels.input("x", DType::f32, {2, 3, 1, 4}), pixels.input("w", DType::f32, {1, 1, 4, 8}),
                           pixels.input("b", DType::f32, {8})});
  pixels.set_result("u", z);
  pixels.set_result("h", pixels.op("gelu", {z}, kApproximate));
  for (GraphBuilder *builder : {&b, &pixels}) {
    const bool has_addend = builder == &b;
    const LoweredGraph lowered = lower(*builder, TUTTI_LEVEL_FAST, TUTTI_COMPILE_TF32_WHERE_FASTER);
    Memory memory(lowered, 8);
    const std::vector<ProductEpilogue> keeping = keeping_tails(lowered);
    assert_int_equal(keeping.size(), 1);
    run(lowered, keeping[0], memory);
    assert_int_equal(host_cublaslt().epilogue, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
    for (int64_t i = 0; i < 48; ++i) {
      double sum = element(memory.input("b"), i % 8) + (has_addend ? element(memory.input("c"), i) : 0);
      for (int64_t k = 0; k < 4; ++k)
        sum += element(memory.input("x"), i / 8 * 4 + k) * element(memory.input("w"), k * 8 + i % 8);
      assert_near(element(memory.at(lowered.step(keeping[0].kept).outputs[0]), i), sum, 1e-5);
      assert_near(element(memory.at(lowered.step(keeping[0].root()).outputs[0]), i), gelu(sum), 1e-5);
    }
  }
}

// ---- what is left alone ----

/// What follows the product x w, and reads it or something made of it.
using Tail = std::function<void(GraphBuilder &, ValueId)>;

struct Product {
  DType dtype = DType::f32;
  std::vector<int64_t> a = {6, 4}, b = {4, 8};
};

/// The library's kernel of the one tail that keeps a value.
std::string kernel_of(const Product &product, const Tail &tail, bool has_probes = true) {
  GraphBuilder b;
  tail(b, b.matmul(b.input("a", product.dtype, graph::to_dims(product.a)),
                   b.input("b", product.dtype, graph::to_dims(product.b))));
  const LoweredGraph lowered = lower_halves(b);
  const std::vector<ProductEpilogue> keeping = keeping_tails(lowered);
  assert_int_equal(keeping.size(), 1);
  return find(lowered, keeping[0], has_probes).name;
}

/// y and an op of it are read elsewhere.
Tail results(const char *op, graph::Attributes attributes = {}) {
  return [=](GraphBuilder &b, ValueId y) {
    b.set_result("y", y);
    b.set_result("h", b.op(op, {y}, attributes));
  };
}

void other_activations_are_left_alone(void **) {
  assert_string_equal(kernel_of({}, results("gelu", kApproximate)).c_str(), "cublaslt");
  assert_string_equal(kernel_of({}, results("gelu")).c_str(), "");
  for (const char *op : {"relu", "tanh", "neg", "silu"})
    assert_string_equal(kernel_of({}, results(op)).c_str(), "");
  // More behind it.
  const auto negated = [](GraphBuilder &b, ValueId y) {
    b.set_result("y", y);
    b.set_result("h", b.neg(b.op("gelu", {y}, kApproximate)));
  };
  assert_string_equal(kernel_of({}, negated).c_str(), "");
  // What is kept is not what gelu is computed of, but its result.
  const auto result = [](GraphBuilder &b, ValueId y) {
    const ValueId h = b.op("gelu", {y}, kApproximate);
    b.set_result("h", h);
    b.set_result("more", b.op("gelu", {h}, kApproximate));
  };
  assert_string_equal(kernel_of({}, result).c_str(), "");
}

/// The library's header wants columns of the operand a multiple of 8 apart.
void lines_are_a_multiple_of_eight(void **) {
  for (const int64_t units : {7, 9, 12, 20})
    assert_string_equal(kernel_of({.b = {4, units}}, results("gelu", kApproximate)).c_str(), "");
  for (const int64_t units : {8, 24})
    assert_string_equal(kernel_of({.b = {4, units}}, results("gelu", kApproximate)).c_str(), "cublaslt");
}

/// More rows are one product, several products are not.
void batches_are_left_alone(void **) {
  assert_string_equal(kernel_of({.a = {2, 3, 4}}, results("gelu", kApproximate)).c_str(), "cublaslt");
  assert_string_equal(kernel_of({.a = {2, 3, 4}, .b = {2, 4, 8}}, results("gelu", kApproximate)).c_str(), "");
}

/// Both are stored in one dtype.
void dtypes_do_not_differ(void **) {
  const auto tail_of = [](DType kept, DType result) {
    return [=](GraphBuilder &b, ValueId y) {
      const ValueId u = b.cast(b.add(b.cast(y, DType::f32), b.input("bias", DType::f32, {8})), kept);
      b.set_result("u", u);
      b.set_result("h", b.cast(b.op("gelu", {b.cast(u, DType::f32)}, kApproximate), result));
    };
  };
  for (const DType kept : {DType::f32, DType::bf16}) {
    for (const DType result : {DType::f32, DType::bf16})
      assert_string_equal(kernel_of({DType::bf16}, tail_of(kept, result)).c_str(), kept == result ? "cublaslt" : "");
  }
}

/// Nor where it would make a number of a NaN, where nobody can tell, or where cuBLASLt has no algorithm.
void what_cublaslt_has_not_is_left_alone(void **) {
  const Tail tail = results("gelu", kApproximate);
  backend::gpu::AlgorithmProbes::forget();
  assert_string_equal(kernel_of({}, tail, false).c_str(), "");
  host_cublaslt().nan_droppers = {0};
  assert_string_equal(kernel_of({}, tail).c_str(), "");
  host_cublaslt().nan_droppers.clear();
  backend::gpu::AlgorithmProbes::forget();
  host_cublaslt().refused_epilogues = {CUBLASLT_EPILOGUE_GELU_AUX};
  assert_string_equal(kernel_of({}, tail).c_str(), "");
  host_cublaslt().refused_epilogues.clear();
  assert_string_equal(kernel_of({}, tail).c_str(), "cublaslt");
}

/// What reads something else, too, or another shape of it, is no tail at all.
void only_what_reads_nothing_else_follows(void **) {
  const auto count_of = [](DType dtype, const Tail &tail) {
    GraphBuilder b;
    tail(b, b.matmul(b.input("a", dtype, {6, 4}), b.input("b", dtype, {4, 8})));
    return keeping_tails(lower(b)).size();
  };
  assert_int_equal(count_of(DType::f32, results("gelu", kApproximate)), 1);
  assert_int_equal(count_of(DType::f64, results("gelu", kApproximate)), 0);
  assert_int_equal(count_of(DType::f32, results("reduce_sum")), 0);
  const auto read_with = [](const std::function<ValueId(GraphBuilder &, ValueId)> &read) {
    return [=](GraphBuilder &b, ValueId y) {
      b.set_result("y", y);
      b.set_result("h", b.op("gelu", {read(b, y)}, kApproximate));
    };
  };
  assert_int_equal(count_of(DType::f32, read_with([](GraphBuilder &b, ValueId y) { return b.reshape(y, {8, 6}); })), 0);
  assert_int_equal(count_of(DType::f32, read_with([](GraphBuilder &b, ValueId y) {
                              return b.broadcast_to(y, {2, 6, 8});
                            })),
                   0);
  assert_int_equal(count_of(DType::f32, read_with([](GraphBuilder &b, ValueId y) {
                              return b.add(y, b.input("late", DType::f32, {6, 8}));
                            })),
                   0);
  assert_int_equal(count_of(DType::f32, read_with([](GraphBuilder &b, ValueId y) { return b.op("all_reduce", {y}); })),
                   0);
  // Alone, a tail has nothing to keep.
  assert_int_equal(
      count_of(DType::f32, [](GraphBuilder &b, ValueId y) { b.set_result("h", b.op("gelu", {y}, kApproximate)); }), 0);
}

void nothing_is_left_over(void **) { assert_int_equal(host_cublaslt().descriptors, 0); }

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(training_stores_what_the_gradient_reads),
      cmocka_unit_test(what_is_in_front_is_stored_with_it),
      cmocka_unit_test(other_activations_are_left_alone),
      cmocka_unit_test(lines_are_a_multiple_of_eight),
      cmocka_unit_test(batches_are_left_alone),
      cmocka_unit_test(dtypes_do_not_differ),
      cmocka_unit_test(what_cublaslt_has_not_is_left_alone),
      cmocka_unit_test(only_what_reads_nothing_else_follows),
      cmocka_unit_test(nothing_is_left_over),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace kept_tails_test

// SPDX-License-Identifier: Apache-2.0
//
// Attention as graphs of cuDNN, against the reference backend. cuDNN and the runtime are replaced by what works on the
// host's memory.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/cuda_library.h"
#include "backend/cuda/host_cudnn.h"
#include "backend/gpu/generated/library_plan_cache.h"
#include "backend/gpu/lowered_testing.h"
#include "backend_cases.h"
#include "backend_under_test.h"
#include "base/temporary_directory.h"
#include "graph/batch.h"
#include "testing.h"

namespace attention_kernels_test {

using namespace tutti::impl;
using backend::LoweredGraph;
using graph::Attributes;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;
using tutti::testing::host_cudnn;
using tutti::testing::lower;
using tutti::testing::run_call;
using Values = GraphBuilder::Values;
using Dims = std::vector<int64_t>;

namespace {

backend::DeviceRef oracle;

struct Sizes {
  int64_t rows, length, heads, channels, key_length, key_heads;

  Dims queries() const { return {rows, length, heads, channels}; }
  Dims keys() const { return {rows, key_length, key_heads, channels}; }
};
const Sizes kSizes[] = {{2, 5, 4, 8, 5, 4}, {1, 7, 6, 16, 9, 2}, {3, 1, 2, 8, 6, 1}, {1, 9, 1, 8, 9, 1}};

/// The kernel of one node, ready to run: what it needs lives as long.
struct Prepared {
  std::shared_ptr<LoweredGraph> lowered;
  std::unique_ptr<backend::gpu::Library> library;
  std::vector<backend::BoundedIntegers> faults;
  std::string name;
  int64_t scratch_bytes = 0;
  backend::gpu::Kernel kernel;  ///< empty: the library has nothing
};

const graph::Node &attention_of(const LoweredGraph &lowered) {
  int32_t step = 0;
  while (!lowered.step(step).op.starts_with("attention"))
    ++step;
  return lowered.step(step);
}

Prepared prepare(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build, int32_t level,
                 std::shared_ptr<const backend::gpu::LibraryPlanCache> kept = nullptr) {
  Prepared made;
  made.lowered = std::make_shared<LoweredGraph>(lower(assert_ok_value(conformance::build_graph(inputs, build)), level));
  made.library = assert_ok_value(backend::cuda::CudaLibrary::open(0, std::move(kept)));
  backend::gpu::KernelRequest request{*made.lowered, attention_of(*made.lowered), made.library.get(), made.faults};
  made.kernel = assert_ok_value(made.library->find(request));
  made.name = request.kernel_name;
  made.scratch_bytes = request.scratch_bytes;
  return made;
}

std::vector<Tensor> run(const Prepared &prepared, const std::vector<Tensor> &inputs) {
  const graph::Node &node = attention_of(*prepared.lowered);
  return run_call(*prepared.lowered, prepared.kernel, {node.inputs, node.outputs, prepared.scratch_bytes}, inputs);
}

Tensor operand(DType dtype, const Dims &dims, uint64_t seed, double low = -1, double high = 1) {
  conformance::Operand made;
  made.dtype = dtype;
  made.dims = dims;
  made.low = low;
  made.high = high;
  return assert_ok_value(conformance::make_operand(made, seed));
}

conformance::BuildFunction attention(const Attributes &attributes) {
  return [attributes](GraphBuilder &b, const Values &v) { return b.op_n("attention", v, attributes, 2); };
}
conformance::BuildFunction gradient(const Attributes &attributes) {
  return [attributes](GraphBuilder &b, const Values &v) { return b.op_n("attention_gradient", v, attributes, 3); };
}

void assert_close(const std::vector<Tensor> &results, const std::vector<Tensor> &expected, double tolerance) {
  assert_int_equal(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(tensor::compare_close(results[i], expected[i], tolerance, tolerance));
}

void as_the_reference(DType dtype, const Sizes &sizes, const Attributes &attributes, int32_t level) {
  const double tolerance = dtype == DType::bf16 ? 2e-2 : 3e-3;
  const std::vector<Tensor> inputs = {operand(dtype, sizes.queries(), 1), operand(dtype, sizes.keys(), 2),
                                      operand(dtype, sizes.keys(), 3)};
  const Prepared forward = prepare(inputs, attention(attributes), level);
  assert_string_equal(forward.name.c_str(), "cudnn_attention_27");
  const std::vector<Tensor> expected = assert_ok_value(conformance::run_graph(oracle, inputs, attention(attributes)));
  assert_close(run(forward, inputs), expected, tolerance);
  std::vector<Tensor> of_gradient = {operand(dtype, sizes.queries(), 4)};
  of_gradient.insert(of_gradient.end(), inputs.begin(), inputs.end());
  of_gradient.insert(of_gradient.end(), expected.begin(), expected.end());
  const Prepared backward = prepare(of_gradient, gradient(attributes), level);
  assert_true(static_cast<bool>(backward.kernel));
  assert_close(run(backward, of_gradient),
               assert_ok_value(conformance::run_graph(oracle, of_gradient, gradient(attributes))), tolerance);
}

/// q, k and v side by side in rows of `wide`, after the other operands of a pass.
conformance::BuildFunction from_one_product(const std::string &op, const Sizes &sizes, const Attributes &attributes) {
  return [=](GraphBuilder &b, const Values &v) {
    const graph::ValueId wide = b.neg(v.back());
    const auto part = [&](int64_t first, const Dims &dims) {
      const graph::ValueId slice = b.slice(wide, {0, 0, first}, {dims[0], dims[1], dims[2] * dims[3]});
      return b.reshape(slice, graph::to_dims(dims));
    };
    const Dims queries = sizes.queries(), keys = sizes.keys();
    const int64_t of_queries = queries[2] * queries[3], of_keys = keys[2] * keys[3];
    const graph::ValueId q = part(0, queries), k = part(of_queries, keys), w = part(of_queries + of_keys, keys);
    if (op == "attention") return b.op_n(op, {q, k, w}, attributes, 2);
    return b.op_n(op, {v[0], q, k, w, v[1], v[2]}, attributes, 3);
  };
}

/// The pass on q, k and v as they lie in what the graph makes of its last input, which is that negated.
std::vector<Tensor> run_in_place(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build) {
  const LoweredGraph lowered = lower(assert_ok_value(conformance::build_graph(inputs, build)));
  const auto views = backend::AttentionViews::find(lowered, 16, [](const graph::Node &) { return true; });
  const auto library = assert_ok_value(backend::cuda::CudaLibrary::open(0, nullptr));
  std::vector<backend::BoundedIntegers> faults;
  backend::gpu::KernelRequest request{lowered, attention_of(lowered), library.get(), faults};
  request.views = &views;
  const backend::gpu::Kernel kernel = assert_ok_value(library->find(request));
  assert_true(static_cast<bool>(kernel));
  // The kernel is given the memory of what the parts were taken from, which is made here.
  std::vector<graph::ValueId> operands;
  for (const graph::ValueId input : request.node.inputs)
    operands.push_back(views.of(input) == nullptr ? input : lowered.inputs().back().value);
  return run_call(lowered, kernel, {operands, request.node.outputs, request.scratch_bytes}, inputs);
}

Tensor negated(const Tensor &x) {
  return assert_ok_value(
      conformance::run_graph(oracle, {x}, [](GraphBuilder &b, const Values &v) { return Values{b.neg(v[0])}; }))[0];
}

/// What a graph makes of the wide operand is given to the kernel, the operand itself to the oracle.
void parts_of_a_product_are_read_in_place(void **) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const double tolerance = dtype == DType::bf16 ? 2e-2 : 3e-3;
    for (const Sizes &sizes : {Sizes{2, 5, 4, 8, 5, 4}, Sizes{1, 9, 1, 8, 9, 1}, Sizes{2, 6, 4, 16, 6, 2}}) {
      const Dims queries = sizes.queries(), keys = sizes.keys();
      const Attributes attributes{{"causal", true}};
      const Dims all{queries[0], queries[1], (queries[2] + 2 * keys[2]) * queries[3]};
      const Tensor wide = operand(dtype, all, 5), made = negated(wide);
      const auto forward = from_one_product("attention", sizes, attributes);
      const std::vector<Tensor> expected = assert_ok_value(conformance::run_graph(oracle, {wide}, forward));
      assert_close(run_in_place({made}, forward), expected, tolerance);
      const auto backward = from_one_product("attention_gradient", sizes, attributes);
      const Tensor dy = operand(dtype, queries, 4);
      assert_close(run_in_place({dy, expected[0], expected[1], made}, backward),
                   assert_ok_value(conformance::run_graph(oracle, {dy, expected[0], expected[1], wide}, backward)),
                   tolerance);
    }
  }
}

void both_passes_are_as_the_reference(void **) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const Sizes &sizes : kSizes) {
      for (const int32_t level : {TUTTI_LEVEL_FAST, TUTTI_LEVEL_REPEATABLE}) {
        as_the_reference(dtype, sizes, {{"causal", false}}, level);
        as_the_reference(dtype, sizes, {{"causal", true}}, level);
        as_the_reference(dtype, sizes, {{"causal", true}, {"scale", 0.7}}, level);
      }
    }
  }
  assert_int_equal(host_cudnn().descriptors, 0);
}

/// Where cuDNN is not asked: f32, lengths, queries that see no key, nothing at all.
void the_rest_is_left_to_others(void **) {
  const auto has_kernel = [](DType dtype, const Sizes &sizes, bool has_lengths, bool is_causal) {
    std::vector<Tensor> inputs = {operand(dtype, sizes.queries(), 1), operand(dtype, sizes.keys(), 2),
                                  operand(dtype, sizes.keys(), 3)};
    if (has_lengths) inputs.push_back(operand(DType::i32, {sizes.rows}, 4, 1, 3));
    return static_cast<bool>(prepare(inputs, attention({{"causal", is_causal}}), TUTTI_LEVEL_FAST).kernel);
  };
  const Sizes more_queries = {1, 9, 2, 8, 7, 2}, no_rows = {0, 9, 2, 8, 9, 2};
  assert_true(has_kernel(DType::bf16, kSizes[0], false, true));
  assert_false(has_kernel(DType::f32, kSizes[0], false, true));
  assert_false(has_kernel(DType::bf16, kSizes[0], true, false));
  assert_true(has_kernel(DType::bf16, more_queries, false, false));
  assert_false(has_kernel(DType::bf16, more_queries, false, true));
  assert_false(has_kernel(DType::bf16, no_rows, false, false));
}

/// Versions that take the graph and compute it wrongly: what NVIDIA's frontend says of them.
void versions_that_are_wrong_are_left_alone(void **) {
  const auto has = [](size_t version, const Sizes &sizes, bool is_causal, bool is_gradient) {
    host_cudnn().version = version;
    std::vector<Tensor> inputs = {operand(DType::bf16, sizes.queries(), 1), operand(DType::bf16, sizes.keys(), 2),
                                  operand(DType::bf16, sizes.keys(), 3)};
    const Attributes attributes{{"causal", is_causal}};
    if (is_gradient) {
      inputs.insert(inputs.begin(), operand(DType::bf16, sizes.queries(), 4));
      inputs.push_back(operand(DType::bf16, sizes.queries(), 5));
      inputs.push_back(operand(DType::f32, {sizes.rows, sizes.heads, sizes.length}, 6));
    }
    const auto build = is_gradient ? gradient(attributes) : attention(attributes);
    const bool found = static_cast<bool>(prepare(inputs, build, TUTTI_LEVEL_FAST).kernel);
    host_cudnn().version = 91900;
    return found;
  };
  const Sizes whole = {1, 128, 1, 8, 128, 1}, ragged = {1, 64, 1, 8, 197, 1}, shifted = {1, 64, 1, 8, 128, 1};
  const Sizes one_query = {1, 1, 1, 8, 128, 1}, one = {1, 1, 1, 8, 1, 1};
  for (const bool is_gradient : {false, true}) {
    assert_true(has(91900, whole, true, is_gradient));
    assert_true(has(91002, whole, true, is_gradient));
    assert_false(has(91001, whole, true, is_gradient));
    assert_false(has(91000, whole, false, is_gradient));
    assert_true(has(90600, shifted, true, is_gradient));
    assert_false(has(90501, ragged, true, is_gradient));
  }
  assert_true(has(90501, shifted, true, false));
  // What dq is added up in.
  assert_false(has(90501, whole, false, true));
  // Keys behind the last whole tile.
  assert_true(has(91501, ragged, false, true));
  assert_false(has(91500, ragged, false, true));
  assert_true(has(91500, ragged, false, false));
  assert_true(has(90901, one_query, true, false));
  assert_false(has(90900, one_query, true, false));
  assert_true(has(90900, one_query, false, false));
  assert_false(has(91900, one, false, true));
  assert_true(has(91900, one, false, false));
}

/// What took long to compile is read the next time, also by what was damaged on the disk; what is quick is not kept.
void compiled_plans_are_kept(void **) {
  const tutti::testing::TemporaryDirectory folder;
  std::vector<std::string> lines;
  const auto log = [&](const std::string &line) { lines.push_back(line); };
  const std::vector<Tensor> inputs = {operand(DType::bf16, kSizes[0].queries(), 1),
                                      operand(DType::bf16, kSizes[0].keys(), 2),
                                      operand(DType::bf16, kSizes[0].keys(), 3)};
  const auto make = [&](const char *device, bool is_causal) {
    return prepare(inputs, attention({{"causal", is_causal}}), TUTTI_LEVEL_FAST,
                   std::make_shared<const backend::gpu::LibraryPlanCache>(folder.path(), device, log));
  };
  host_cudnn().compiled = host_cudnn().read = 0;
  const Prepared quick = make("a GPU", false), quick_again = make("a GPU", false);
  assert_int_equal(host_cudnn().compiled, 2);
  host_cudnn().compile_seconds = 0.06;
  const Prepared first = make("a GPU", false);
  assert_int_equal(host_cudnn().compiled, 3);
  const Prepared second = make("a GPU", false);
  assert_int_equal(host_cudnn().compiled, 3);
  assert_int_equal(host_cudnn().read, 1);
  assert_close(run(second, inputs), run(first, inputs), 0);
  // Another graph, another GPU.
  const Prepared causal = make("a GPU", true), elsewhere = make("another GPU", false);
  assert_int_equal(host_cudnn().compiled, 5);
  assert_int_equal(host_cudnn().read, 1);
  assert_true(lines.empty());
  for (const auto &file : std::filesystem::directory_iterator(folder.path()))
    std::ofstream(file.path(), std::ios::app) << "x";
  const Prepared damaged = make("a GPU", false);
  assert_int_equal(host_cudnn().compiled, 6);
  assert_int_equal(lines.size(), 1);
  host_cudnn().compile_seconds = 0;
}

}  // namespace

static int run_all(int, char **) {
  char name[] = "attention_kernels_test", reference[] = "reference";
  char *arguments[] = {name, reference};
  const auto tested = conformance::open_backend_under_test(2, arguments);
  if (!tested.ok()) return conformance::exit_without_backend(tested.status());
  oracle = tested->oracle;
  const CMUnitTest tests[] = {
      cmocka_unit_test(both_passes_are_as_the_reference), cmocka_unit_test(parts_of_a_product_are_read_in_place),
      cmocka_unit_test(the_rest_is_left_to_others),       cmocka_unit_test(versions_that_are_wrong_are_left_alone),
      cmocka_unit_test(compiled_plans_are_kept),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace attention_kernels_test

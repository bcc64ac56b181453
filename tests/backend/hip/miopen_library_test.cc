// SPDX-License-Identifier: Apache-2.0
//
// Convolutions become calls of MIOpen that give what the reference backend gives. The library, and HIP as far as it is
// met, are replaced by what works on the host's memory.
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/gpu/lowered_testing.h"
#include "backend/hip/hip_library.h"
#include "backend/hip/host_hip.h"
#include "backend/hip/host_miopen.h"
#include "backend/hip/last_node.h"
#include "backend/hip/miopen_convolution.h"
#include "graph/builder.h"
#include "graph/ops/op_attributes.h"
#include "testing.h"

using namespace tutti::impl;
using backend::LoweredGraph;
using backend::gpu::AlgorithmTrials;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using tutti::testing::expected_of;
using tutti::testing::host_hip;
using tutti::testing::host_miopen;
using tutti::testing::HostSolution;
using tutti::testing::HostTrials;
using tutti::testing::inputs_of;
using tutti::testing::last_of;
using tutti::testing::lower;
using tutti::testing::run_call;

namespace {

using Dims = std::vector<int64_t>;
using Tensors = std::vector<Tensor>;

/// MIOpen as every test finds it: one solution, with memory of its own.
int begin(void **) {
  host_hip() = {};
  host_miopen() = {};
  host_miopen().solutions = {{53, 1, 1000}};
  AlgorithmTrials::forget();
  return 0;
}

int end(void **) {
  assert_string_equal(host_miopen().misuse.c_str(), "");
  assert_int_equal(host_miopen().strict_calls, 0);
  assert_int_equal(host_miopen().late_compiles, 0);
  assert_int_equal(host_miopen().handles, 0);
  assert_int_equal(host_miopen().descriptors, 0);
  assert_false(host_hip().is_relaxed);
  return 0;
}

// ---- a graph of one node ----

/// A library's kernel for the last node, and the library.
struct Found {
  std::unique_ptr<backend::gpu::Library> library;
  backend::gpu::Kernel kernel;  // may be empty
  std::string name;
  int64_t scratch_bytes = 0;
};

Found find(const LoweredGraph &lowered, AlgorithmTrials *trials = nullptr, int32_t ordinal = 0) {
  host_hip().current_device = ordinal;
  Found found;
  std::vector<backend::BoundedIntegers> faults;
  found.library = assert_ok_value(backend::hip::open_miopen_library(ordinal));
  backend::gpu::KernelRequest request{lowered, last_of(lowered), found.library.get(), faults};
  request.trials = trials;
  found.kernel = assert_ok_value(found.library->find(request));
  found.name = request.kernel_name;
  found.scratch_bytes = request.scratch_bytes;
  return found;
}

Tensor run(const LoweredGraph &lowered, const Found &found, const Tensors &inputs) {
  const graph::Node &node = last_of(lowered);
  return run_call(lowered, found.kernel, {node.inputs, node.outputs, found.scratch_bytes}, inputs)[0];
}

/// The kernel is MIOpen's and gives the bits of the reference backend.
void check(const LoweredGraph &lowered, const char *kernel = "miopen_53") {
  const Found found = find(lowered);
  assert_string_equal(found.name.c_str(), kernel);
  const Tensors inputs = inputs_of(lowered);
  const Tensor expected = expected_of(lowered, inputs), result = run(lowered, found, inputs);
  assert_string_equal(result.describe().c_str(), expected.describe().c_str());
  assert_memory_equal(result.data(), expected.data(), static_cast<size_t>(expected.size_bytes()));
}

// ---- convolutions ----

using Padding = graph::ops::Conv2dAttributes::Padding;

struct Case {
  Dims x, kernel;
  Dims stride = {1, 1}, dilation = {1, 1};
  int64_t groups = 1;
  Padding padding = Padding::same;
  Dims pads = {0, 0, 0, 0};
};

/// Odd sizes, steps, holes and groups, each axis another; windows that end before the image does.
const std::vector<Case> &cases() {
  static const std::vector<Case> made = {
      {{2, 6, 6, 4}, {3, 3, 4, 5}},
      {{1, 7, 9, 3}, {5, 3, 3, 2}},
      {{2, 9, 7, 4}, {3, 1, 4, 6}, {2, 3}, {1, 1}, 1, Padding::valid},
      {{1, 11, 13, 1}, {3, 5, 1, 7}, {1, 1}, {2, 3}, 1, Padding::same},
      {{3, 8, 5, 6}, {3, 3, 2, 9}, {1, 1}, {1, 1}, 3, Padding::same},
      {{1, 5, 6, 4}, {3, 3, 1, 8}, {2, 1}, {1, 1}, 4, Padding::explicit_, {1, 1, 1, 1}},
      {{1, 8, 8, 2}, {3, 3, 2, 3}, {2, 2}, {1, 1}, 1, Padding::valid},
      {{2, 10, 7, 3}, {3, 2, 3, 4}, {3, 2}, {1, 1}, 1, Padding::explicit_, {2, 2, 1, 1}},
      {{2, 5, 4, 3}, {1, 1, 3, 6}, {2, 2}, {1, 1}, 1, Padding::valid},
      {{2, 1, 1, 8}, {1, 1, 8, 3}},
  };
  return made;
}

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

template <typename Attributes>
Attributes attributes_of(const Case &one) {
  Attributes attributes;
  attributes.stride = one.stride;
  attributes.dilation = one.dilation;
  attributes.groups = one.groups;
  attributes.padding = static_cast<typename Attributes::Padding>(one.padding);
  attributes.pads = one.pads;
  return attributes;
}

std::vector<graph::Dim> dims_of(const Dims &dims) { return {dims.begin(), dims.end()}; }

LoweredGraph forward(const Case &one, DType dtype, bool has_bias = false, int32_t level = TUTTI_LEVEL_FAST) {
  GraphBuilder b;
  std::vector<ValueId> inputs = {b.input("x", dtype, dims_of(one.x)), b.input("kernel", dtype, dims_of(one.kernel))};
  if (has_bias) inputs.push_back(b.input("bias", dtype, {one.kernel[3]}));
  b.set_result("y", b.op("conv2d", inputs, attributes_of<graph::ops::Conv2dAttributes>(one).to_attributes()));
  return lower(b, level);
}

Dims result_of(const Case &one) {
  const LoweredGraph lowered = forward(one, DType::f32);
  return lowered.value(last_of(lowered).outputs[0]).dims;
}

LoweredGraph input_gradient(const Case &one, DType dtype) {
  GraphBuilder b;
  const ValueId dy = b.input("dy", dtype, dims_of(result_of(one)));
  const ValueId kernel = b.input("kernel", dtype, dims_of(one.kernel));
  auto attributes = attributes_of<graph::ops::Conv2dInputGradientAttributes>(one);
  attributes.input_dims = dims_of(one.x);
  b.set_result("dx", b.op("conv2d_input_gradient", {dy, kernel}, attributes.to_attributes()));
  return lower(b);
}

LoweredGraph kernel_gradient(const Case &one, DType dtype) {
  GraphBuilder b;
  const ValueId x = b.input("x", dtype, dims_of(one.x)), dy = b.input("dy", dtype, dims_of(result_of(one)));
  auto attributes = attributes_of<graph::ops::Conv2dKernelGradientAttributes>(one);
  attributes.kernel_dims = dims_of(one.kernel);
  b.set_result("dkernel", b.op("conv2d_kernel_gradient", {x, dy}, attributes.to_attributes()));
  return lower(b);
}

void convolutions_are_miopens(void **) {
  for (const DType dtype : kTypes)
    for (const Case &one : cases())
      check(forward(one, dtype));
}

void a_bias_is_added_behind_them(void **) {
  for (const Case &one : cases())
    check(forward(one, DType::f32, true));
}

void so_are_gradients_of_images(void **) {
  for (const DType dtype : kTypes)
    for (const Case &one : cases())
      check(input_gradient(one, dtype));
}

void so_are_those_of_kernels(void **) {
  for (const DType dtype : kTypes)
    for (const Case &one : cases())
      check(kernel_gradient(one, dtype));
}

// ---- what is left to others ----

/// There is no kernel, and the library says why.
void check_refused(const LoweredGraph &lowered, const char *reason) {
  const Found found = find(lowered);
  assert_false(static_cast<bool>(found.kernel));
  assert_int_equal(found.scratch_bytes, 0);
  const std::string text = found.library->describe();
  if (std::strstr(text.c_str(), reason) == nullptr) fail_msg("'%s' does not say '%s'", text.c_str(), reason);
}

const Case &simple() { return cases()[0]; }

void what_it_lacks_is_said(void **) {
  check_refused(forward(simple(), DType::f64), "MIOpen supports convolutions of f32, f16 and bf16, and this is f64");
  const Case uneven = {{1, 6, 6, 2}, {3, 3, 2, 2}, {2, 2}};
  check_refused(forward(uneven, DType::f32), "needs 0x0 before and 1x1 after");
  check_refused(input_gradient(uneven, DType::f32), "MIOpen supports only equal padding at both ends of an axis");
  check_refused(kernel_gradient(uneven, DType::f32), "MIOpen supports only equal padding at both ends of an axis");
  const Case dilated = {{1, 9, 9, 4}, {3, 3, 2, 4}, {1, 1}, {2, 2}, 2};
  check_refused(forward(dilated, DType::f32), "MIOpen does not support dilation with groups, and this has 2 groups");
  host_miopen().solutions.clear();
  check_refused(forward(simple(), DType::f32), "MIOpen has no solution for a convolution: forward f32 x 2x6x6x4");
  host_miopen().asked = miopenStatusNotImplemented;
  check_refused(forward(simple(), DType::f32), "MIOpen 3.7.5, not for every convolution: MIOpen has no solution");
}

void images_of_2_to_the_31_are_not_its(void **) {
  backend::gpu::ConvolutionShape shape;
  shape.x = {1, 1 << 16, 1 << 15, 1};
  shape.kernel = {1, 1, 1, 1};
  shape.y = shape.x;
  const auto *const functions = assert_ok_value(backend::hip::miopen());
  assert_error_contains(
      backend::hip::MiopenConvolution::make(*functions, shape, backend::gpu::ConvolutionPass::forward, false),
      "less than 2^31 elements, and these are 1x65536x32768x1");
}

/// Plain loops, products that use memory of MIOpen's own, and what takes too much memory.
void not_everything_is_taken(void **) {
  host_miopen().solutions = {
      {85, 1}, {87, 1}, {91, 1, 0, miopenConvolutionAlgoGEMM}, {60, 1, (size_t{1} << 30) + 1}, {61, 9, 256}};
  check(forward(simple(), DType::f32), "miopen_61");
}

void levels_choose_solutions(void **) {
  host_miopen().solutions = {{53, 1}, {54, 2}};
  host_miopen().solutions[0].repeats = false;
  assert_string_equal(find(forward(simple(), DType::f32)).name.c_str(), "miopen_53");
  for (const int32_t level : {TUTTI_LEVEL_REPEATABLE, TUTTI_LEVEL_INVARIANT}) {
    const LoweredGraph lowered = forward(simple(), DType::f32, false, level);
    check(lowered, "miopen_54");
  }
  host_miopen().solutions.pop_back();
  check_refused(forward(simple(), DType::f32, false, TUTTI_LEVEL_REPEATABLE), "MIOpen has no repeatable solution");
}

// ---- trials ----

void the_fastest_is_taken_and_known_then(void **) {
  host_miopen().solutions = {{53, 5, 100}, {54, 3, 200}, {55, 2, 50}, {56, 4}, {57, 1}};
  HostTrials trials;
  const LoweredGraph lowered = forward(simple(), DType::bf16);
  const Tensors inputs = inputs_of(lowered);
  {
    const Found found = find(lowered, &trials.trials);
    // Four are tried.
    assert_string_equal(found.name.c_str(), "miopen_55");
    assert_int_equal(trials.trials.measured_count(), 1);
    assert_int_equal(host_miopen().compiled, 4);
    const double before = host_hip().milliseconds;
    (void)run(lowered, found, inputs);
    assert_true(host_hip().milliseconds - before == 2);
  }
  // Another compilation compiles what it needs, and tries nothing.
  const int calls = host_miopen().calls;
  const Found again = find(lowered, &trials.trials);
  assert_string_equal(again.name.c_str(), "miopen_55");
  assert_int_equal(host_miopen().calls, calls);
  assert_int_equal(host_miopen().compiled, 5);
}

void one_that_fails_is_not_the_fastest(void **) {
  host_miopen().solutions = {{53, 5}, {54, 1}, {55, 2}};
  host_miopen().solutions[1].compiling = miopenStatusUnknownError;
  HostTrials trials;
  assert_string_equal(find(forward(simple(), DType::f32), &trials.trials).name.c_str(), "miopen_55");
  host_miopen().solutions[2].running = miopenStatusInternalError;
  assert_string_equal(find(forward(cases()[1], DType::f32), &trials.trials).name.c_str(), "miopen_53");
}

void a_kernel_runs_on_another_gpu_of_the_kind(void **) {
  host_miopen().solutions = {{53, 5, 100}, {54, 3, 200}};
  HostTrials trials;
  const LoweredGraph lowered = forward(simple(), DType::f32);
  const Tensors inputs = inputs_of(lowered);
  const Tensor expected = expected_of(lowered, inputs);
  const auto other = assert_ok_value(backend::hip::open_miopen_library(4));
  const Found found = find(lowered, &trials.trials, 3);
  assert_string_equal(found.name.c_str(), "miopen_54");
  for (const int device : {3, 4}) {
    host_hip().current_device = device;
    const double before = host_hip().milliseconds;
    const Tensor result = run(lowered, found, inputs);
    assert_memory_equal(result.data(), expected.data(), static_cast<size_t>(expected.size_bytes()));
    assert_true(host_hip().milliseconds - before == 3);
  }
  assert_int_equal(host_miopen().handles, 2);
  // What wants more there than the plan has is not run there.
  host_miopen().solutions = {{54, 3, 300}};
  host_hip().current_device = 5;
  const graph::Node &node = last_of(lowered);
  std::vector<void *> table(lowered.values().size());
  const std::vector<char> memory(static_cast<size_t>(found.scratch_bytes + 4096));
  for (void *&place : table)
    place = const_cast<char *>(memory.data());
  std::vector<char> scratch(static_cast<size_t>(found.scratch_bytes));
  const backend::gpu::IssueContext context;
  assert_error_contains(
      found.kernel(backend::gpu::Frame(table.data(), node.inputs.data(), node.outputs.data(), scratch.data(), context)),
      "MIOpen has no solution for a convolution");
}

// ---- what goes wrong ----

base::Status failure_of(const LoweredGraph &lowered, const Found &found, const Tensors &inputs) {
  const graph::Node &node = last_of(lowered);
  std::vector<void *> table(lowered.values().size());
  for (size_t i = 0; i < inputs.size(); ++i)
    table[static_cast<size_t>(lowered.inputs()[i].value)] = const_cast<void *>(inputs[i].data());
  Tensor result = expected_of(lowered, inputs);
  table[static_cast<size_t>(node.outputs[0])] = result.mutable_data();
  std::vector<char> scratch(static_cast<size_t>(found.scratch_bytes));
  const backend::gpu::IssueContext context;
  return found.kernel(
      backend::gpu::Frame(table.data(), node.inputs.data(), node.outputs.data(), scratch.data(), context));
}

void failures_are_told(void **) {
  const LoweredGraph lowered = forward(simple(), DType::f32);
  const Tensors inputs = inputs_of(lowered);
  const Found found = find(lowered);
  host_miopen().solutions[0].running = miopenStatusInternalError;
  const base::Status internal = failure_of(lowered, found, inputs);
  assert_error_contains(internal, "convolving images: MIOpen says no");
  assert_true(internal.code() == base::Code::internal);
  host_miopen().solutions[0].running = miopenStatusAllocFailed;
  assert_true(failure_of(lowered, found, inputs).code() == base::Code::resource_exhausted);
  host_miopen().solutions[0].running = miopenStatusSuccess;
  host_miopen().solutions[0].compiling = miopenStatusUnknownError;
  check_refused(lowered, "MIOpen can compile no solution for a convolution (compiling solution 53: MIOpen says no)");
  host_miopen().asked = miopenStatusInternalError;
  std::vector<backend::BoundedIntegers> faults;
  backend::gpu::KernelRequest request{lowered, last_of(lowered), found.library.get(), faults};
  assert_error_contains(found.library->find(request), "looking for convolutions: MIOpen says no");
}

void a_missing_library_is_said(void **) {
  host_miopen().is_missing = true;
  const Found found = find(forward(simple(), DType::f32));
  assert_false(static_cast<bool>(found.kernel));
  assert_string_equal(found.library->describe().c_str(), "MIOpen is missing: libMIOpen.so.1 is not here");
}

void what_is_not_asked_for_is_not_opened(void **) {
  GraphBuilder b;
  b.set_result("y", b.unary("neg", b.input("x", DType::f32, {3})));
  const Found found = find(lower(b));
  assert_false(static_cast<bool>(found.kernel));
  assert_string_equal(found.library->describe().c_str(), "");
  assert_int_equal(host_miopen().handles, 0);
}

void an_empty_image_is_nobodys(void **) {
  const Case empty = {{0, 6, 6, 4}, {3, 3, 4, 5}};
  assert_false(static_cast<bool>(find(forward(empty, DType::f32)).kernel));
}

// ---- the handle ----

void a_stream_is_set_once(void **) {
  const LoweredGraph lowered = forward(simple(), DType::f32);
  const Tensors inputs = inputs_of(lowered);
  const Found found = find(lowered);
  (void)run(lowered, found, inputs);
  (void)run(lowered, found, inputs);
  assert_int_equal(host_miopen().streams_set, 1);
}

void a_kernel_keeps_the_handle_open(void **) {
  Found found = find(forward(simple(), DType::f32));
  assert_string_equal(found.library->describe().c_str(), "MIOpen 3.7.5");
  found.library.reset();
  assert_int_equal(host_miopen().handles, 1);
  found.kernel = {};
  assert_int_equal(host_miopen().handles, 0);
}

/// Behind a library without products; both are described where both were asked.
void it_is_part_of_the_whole(void **) {
  const auto library = assert_ok_value(backend::hip::open_library(0));
  const LoweredGraph lowered = forward(simple(), DType::f32);
  std::vector<backend::BoundedIntegers> faults;
  backend::gpu::KernelRequest request{lowered, last_of(lowered), library.get(), faults};
  assert_true(static_cast<bool>(assert_ok_value(library->find(request))));
  assert_string_equal(request.kernel_name.c_str(), "miopen_53");
  assert_string_equal(library->describe().c_str(), "MIOpen 3.7.5");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(convolutions_are_miopens, begin, end),
      cmocka_unit_test_setup_teardown(a_bias_is_added_behind_them, begin, end),
      cmocka_unit_test_setup_teardown(so_are_gradients_of_images, begin, end),
      cmocka_unit_test_setup_teardown(so_are_those_of_kernels, begin, end),
      cmocka_unit_test_setup_teardown(what_it_lacks_is_said, begin, end),
      cmocka_unit_test_setup_teardown(images_of_2_to_the_31_are_not_its, begin, end),
      cmocka_unit_test_setup_teardown(not_everything_is_taken, begin, end),
      cmocka_unit_test_setup_teardown(levels_choose_solutions, begin, end),
      cmocka_unit_test_setup_teardown(the_fastest_is_taken_and_known_then, begin, end),
      cmocka_unit_test_setup_teardown(one_that_fails_is_not_the_fastest, begin, end),
      cmocka_unit_test_setup_teardown(a_kernel_runs_on_another_gpu_of_the_kind, begin, end),
      cmocka_unit_test_setup_teardown(failures_are_told, begin, end),
      cmocka_unit_test_setup_teardown(a_missing_library_is_said, begin, end),
      cmocka_unit_test_setup_teardown(what_is_not_asked_for_is_not_opened, begin, end),
      cmocka_unit_test_setup_teardown(an_empty_image_is_nobodys, begin, end),
      cmocka_unit_test_setup_teardown(a_stream_is_set_once, begin, end),
      cmocka_unit_test_setup_teardown(a_kernel_keeps_the_handle_open, begin, end),
      cmocka_unit_test_setup_teardown(it_is_part_of_the_whole, begin, end),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

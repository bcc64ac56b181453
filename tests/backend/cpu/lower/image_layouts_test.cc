// SPDX-License-Identifier: Apache-2.0
//
// The layout pass: a residual network, its gradients included, gives the reference's numbers with every candidate of
// its convolutions, on odd sizes and with widths that block and that do not; choices repeat, and levels that promise to
// repeat never ask for times.
#include "backend/cpu/lower/image_layouts.h"

#include <stdlib.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/convolution/convolution_times.h"
#include "backend/cpu/simd/amx.h"
#include "backend/cpu/simd/simd_gemm.h"
#include "backend/executable.h"
#include "backend/graph_executor.h"
#include "base/random/philox.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/serialize.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace image_layouts_test {

namespace {

using tutti::impl::backend::DeviceRef;
using tutti::impl::backend::GraphExecutor;
using tutti::impl::backend::Level;
using tutti::impl::backend::cpu::ConvolutionPass;
using tutti::impl::backend::cpu::ConvolutionTimes;
using tutti::impl::backend::cpu::has_amx;
using tutti::impl::graph::GraphBuilder;
using tutti::impl::graph::ValueId;
using tutti::impl::tensor::DType;
using tutti::impl::tensor::Tensor;
namespace base = tutti::impl::base;
namespace backend = tutti::impl::backend;
namespace graph = tutti::impl::graph;
namespace tensor = tutti::impl::tensor;

struct Sizes {
  int64_t rows, height, width, channels;
};

struct Case {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};

Tensor random_tensor(const std::vector<int64_t> &dims, base::RandomStream &random, float scale) {
  const tensor::Shape shape = assert_ok_value(tensor::Shape::make(dims));
  Tensor made = assert_ok_value(Tensor::allocate(DType::f32, shape));
  int64_t elements = 1;
  for (int64_t n : dims)
    elements *= n;
  for (int64_t i = 0; i < elements; ++i)
    made.mutable_data_as<float>()[i] = (base::uniform_float(random.next()) * 2 - 1) * scale;
  return made;
}

/// A graph on random inputs, whose results are a loss, the block before it, and the gradients of all inputs.
struct CaseBuilder {
  GraphBuilder b;

  ValueId input(const std::string &name, const std::vector<int64_t> &dims, float scale) {
    made_.inputs.push_back(random_tensor(dims, random_, scale));
    sources_.push_back(b.input(name, DType::f32, graph::to_dims(dims)));
    return sources_.back();
  }

  Case finish(ValueId block, ValueId loss) {
    const ValueId targets[] = {loss};
    const auto gradients = assert_ok_value(graph::gradients_or_zeros(b, targets, {}, sources_));
    b.set_result("block", block);
    b.set_result("loss", loss);
    for (size_t i = 0; i < gradients.size(); ++i)
      b.set_result("gradient" + std::to_string(i), gradients[i]);
    made_.graph = assert_ok_value(b.finish_graph());
    return std::move(made_);
  }

 private:
  Case made_;
  base::RandomStream random_{base::RandomKey::of(3, 1, 0)};
  std::vector<ValueId> sources_;
};

/// block = relu(norm(conv(relu(conv(x)))) + x), then pooling, a strided convolution and a mean of squares. Results are
/// the loss, the block, and the gradients of everything.
Case residual_case(const Sizes &s) {
  CaseBuilder made;
  GraphBuilder &b = made.b;
  const int64_t c = s.channels;
  const float scale = 1.0f / std::sqrt(static_cast<float>(9 * c));
  const auto convolve = [&](ValueId x, ValueId kernel, int64_t stride) {
    return b.op("conv2d", {x, kernel},
                {{"padding", std::string("same")}, {"stride", std::vector<int64_t>{stride, stride}}});
  };
  const ValueId x = made.input("a", {s.rows, s.height, s.width, c}, 1);
  const ValueId first = made.input("b", {3, 3, c, c}, scale), second = made.input("c", {3, 3, c, c}, scale);
  const ValueId gain = made.input("d", {c}, 1), offset = made.input("e", {c}, 1);
  const ValueId third = made.input("f", {1, 1, c, 2 * c}, scale);
  ValueId y = b.unary("relu", convolve(x, first, 1));
  y = b.op_n("batch_norm_training", {convolve(y, second, 1), gain, offset}, {{"epsilon", 1e-5}}, 3)[0];
  const ValueId block = b.unary("relu", b.add(y, x));
  y = b.op("max_pool2d", {block}, {{"window", std::vector<int64_t>{2, 2}}});
  y = convolve(y, third, 2);
  const ValueId loss = b.reduce_mean(b.mul(y, y), {0, 1, 2, 3});
  return made.finish(block, loss);
}

/// relu(conv(relu(conv(x) + bias)) + x) with kernels of 1x1, and a mean of squares.
Case pointwise_case(const Sizes &s) {
  CaseBuilder made;
  GraphBuilder &b = made.b;
  const int64_t c = s.channels;
  const float scale = 1.0f / std::sqrt(static_cast<float>(c));
  const ValueId x = made.input("a", {s.rows, s.height, s.width, c}, 1);
  const ValueId first = made.input("b", {1, 1, c, 2 * c}, scale), second = made.input("c", {1, 1, 2 * c, c}, scale);
  const ValueId bias = made.input("d", {2 * c}, 1);
  const ValueId inner = b.unary("relu", b.add(b.op("conv2d", {x, first}, {}), bias));
  const ValueId block = b.unary("relu", b.add(b.op("conv2d", {inner, second}, {}), x));
  const ValueId loss = b.reduce_mean(b.mul(block, block), {0, 1, 2, 3});
  return made.finish(block, loss);
}

DeviceRef open_device(const char *name) {
  return assert_ok_value(assert_ok_value(tutti::impl::runtime::open_backend(name, "{}", {}))->open_device(0));
}

std::vector<Tensor> run(const DeviceRef &device, const Case &one, Level level) {
  backend::GraphExecutorOptions options;
  options.level = level;
  return assert_ok_value(assert_ok_value(GraphExecutor::create(device, one.graph, options))->run(one.inputs));
}

std::string report(const DeviceRef &device, const Case &one, Level level) {
  const std::string text = graph::to_json_text(one.graph);
  backend::CompileRequest request;
  request.graph_text = &text;
  request.level = level;
  return assert_ok_value(backend::Executable::compile(*device, request))->description().report_json;
}

double distance(const Tensor &a, const Tensor &b) {
  double difference = 0, norm = 1e-12;
  for (int64_t i = 0; i < a.size_bytes() / 4; ++i) {
    const double x = static_cast<double>(a.data_as<float>()[i]), y = static_cast<double>(b.data_as<float>()[i]);
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(difference / norm);
}

constexpr Sizes kSizes[] = {{3, 9, 7, 32}, {2, 12, 5, 16}, {1, 8, 8, 64}, {5, 7, 9, 6}, {2, 5, 6, 48}, {2, 6, 5, 128}};

void check_against_reference(const char *forced, Level level, Case (*make)(const Sizes &) = residual_case) {
  assert_int_equal(setenv("TUTTI_CPU_CONVOLUTION", forced, 1), 0);
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  for (const Sizes &sizes : kSizes) {
    const Case one = make(sizes);
    const std::vector<Tensor> got = run(cpu, one, level), expected = run(reference, one, level);
    assert_int_equal(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double off = distance(got[i], expected[i]);
      if (!(off < 1e-4)) {
        fail_msg("'%s', %d channels, result %zu: off by %g", forced, static_cast<int>(sizes.channels), i, off);
      }
    }
  }
  assert_int_equal(unsetenv("TUTTI_CPU_CONVOLUTION"), 0);
}

void every_candidate_agrees_with_reference(void **) {
  std::vector<std::string> forced = {""};
  for (const auto &family : tutti::impl::backend::cpu::convolution_families()) {
    for (const char *layouts : {"rr", "rb", "br", "bb"})
      forced.push_back(base::concat(family.name, ":", layouts));
  }
  for (const std::string &one : forced) {
    check_against_reference(one.c_str(), Level::fast);
    check_against_reference(one.c_str(), Level::fast, pointwise_case);
  }
}

/// Where the processor has a matrix unit, all passes of large enough convolutions of 1x1 can be made there.
void matrix_units_convolve(void **) {
  if (!has_amx()) {
    print_message("no matrix unit\n");
    return;
  }
  const Case one = pointwise_case(kSizes[2]);
  for (const char *forced : {"tiles:rr", "tiles:rb", "tiles:br", "tiles:bb"}) {
    assert_int_equal(setenv("TUTTI_CPU_CONVOLUTION", forced, 1), 0);
    const std::string text = report(open_device("cpu"), one, Level::fast);
    assert_int_equal(unsetenv("TUTTI_CPU_CONVOLUTION"), 0);
    assert_contains(text.c_str(), "tiles:1x1+bias+relu");
    assert_contains(text.c_str(), "tiles:1x1+add+relu");
    assert_contains(text.c_str(), "tiles:1x1:input_gradient");
    assert_contains(text.c_str(), "tiles:1x1:kernel_");
    assert_true(text.find("dnnl_direct") == std::string::npos);
  }
}

/// So can their gradients on vectors.
void products_convolve(void **) {
  if (tutti::impl::backend::cpu::gemm_lanes() > 8) {
    print_message("vectors are too long for it\n");
    return;
  }
  assert_int_equal(setenv("TUTTI_CPU_CONVOLUTION", "product:rr", 1), 0);
  const std::string text = report(open_device("cpu"), pointwise_case(kSizes[5]), Level::fast);
  assert_int_equal(unsetenv("TUTTI_CPU_CONVOLUTION"), 0);
  assert_contains(text.c_str(), "product:1x1:input_gradient");
  assert_contains(text.c_str(), "product:1x1:kernel_");
}

bool is_same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= 1e-4f * (1 + std::fabs(b));
}

/// Infinities come out where they would, whatever layouts and in each pass. (The library's relu makes NaN of negative
/// ones: relu_test.)
void matrix_units_keep_infinities(void **) {
  if (!has_amx()) {
    print_message("no matrix unit\n");
    return;
  }
  const float infinity = std::numeric_limits<float>::infinity();
  const DeviceRef reference = open_device("reference");
  for (const size_t input : {0, 1, 2}) {
    Case one = pointwise_case(kSizes[2]);
    one.inputs[input].mutable_data_as<float>()[40 * 64 + 5] = infinity;
    const std::vector<Tensor> expected = run(reference, one, Level::fast);
    for (const char *forced : {"tiles:rr", "tiles:rb", "tiles:br", "tiles:bb"}) {
      assert_int_equal(setenv("TUTTI_CPU_CONVOLUTION", forced, 1), 0);
      const std::vector<Tensor> got = run(open_device("cpu"), one, Level::fast);
      assert_int_equal(unsetenv("TUTTI_CPU_CONVOLUTION"), 0);
      for (size_t i = 0; i < got.size(); ++i) {
        for (int64_t at = 0; at < got[i].size_bytes() / 4; ++at) {
          const float value = got[i].data_as<float>()[at], wanted = expected[i].data_as<float>()[at];
          if (!is_same(value, wanted))
            fail_msg("%s, infinity in input %zu: element %ld of result %zu is %g, not %g", forced, input,
                     static_cast<long>(at), i, static_cast<double>(value), static_cast<double>(wanted));
        }
      }
    }
  }
}

void levels_that_repeat_agree_with_reference(void **) {
  check_against_reference("", Level::repeatable);
  check_against_reference("", Level::invariant);
}

/// Is there such a candidate for all passes of the first convolution on this processor?
bool exists(const std::string &wanted) {
  tutti::impl::backend::cpu::ConvolutionShape shape;
  shape.rows = kSizes[0].rows;
  shape.in_height = shape.out_height = kSizes[0].height;
  shape.in_width = shape.out_width = kSizes[0].width;
  shape.in_channels = shape.out_channels = kSizes[0].channels;
  shape.kernel_height = shape.kernel_width = 3;
  for (int axis : {0, 1})
    shape.pad_low[axis] = shape.pad_high[axis] = 1;
  int made = 0;
  for (const ConvolutionPass pass :
       {ConvolutionPass::forward, ConvolutionPass::input_gradient, ConvolutionPass::kernel_gradient}) {
    for (const auto &candidate : convolution_candidates(shape, pass, TUTTI_LEVEL_FAST, 1))
      made += label(candidate) == wanted && candidate.family->make(candidate.request).ok() ? 1 : 0;
  }
  return made == 3;
}

void forced_candidates_are_taken(void **) {
  const DeviceRef cpu = open_device("cpu");
  const Case one = residual_case(kSizes[0]);
  for (const char *forced : {"dnnl_direct:rr", "dnnl_direct:bb"}) {
    if (!exists(forced)) continue;
    assert_int_equal(setenv("TUTTI_CPU_CONVOLUTION", forced, 1), 0);
    const std::string text = report(cpu, one, Level::fast);
    assert_contains(text.c_str(), "dnnl_direct:");
    assert_true(text.find("winograd") == std::string::npos);
    // Only blocked images are reordered, on their way in and out.
    assert_true((text.find("reorder:->nChw16c") != std::string::npos) == (std::string(forced) == "dnnl_direct:bb"));
  }
  assert_int_equal(unsetenv("TUTTI_CPU_CONVOLUTION"), 0);
}

void choices_repeat(void **) {
  const Case one = residual_case(kSizes[0]);
  const std::string text = graph::to_json_text(one.graph);
  for (const Level level : {Level::fast, Level::repeatable}) {
    ConvolutionTimes::of_process().forget();
    const DeviceRef first = open_device("cpu"), second = open_device("cpu");
    backend::CompileRequest request;
    request.graph_text = &text;
    request.level = level;
    assert_ok(backend::plan_layouts(*first, request));
    const int64_t measured = ConvolutionTimes::of_process().measured_count();
    assert_int_equal(measured > 0, level == Level::fast);
    const std::string chosen = report(first, one, level);
    // Another device, another context: nothing is timed again, and the same is chosen.
    assert_ok(backend::plan_layouts(*second, request));
    assert_int_equal(ConvolutionTimes::of_process().measured_count(), measured);
    assert_string_equal(report(second, one, level).c_str(), chosen.c_str());
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(every_candidate_agrees_with_reference),
      cmocka_unit_test(matrix_units_convolve),
      cmocka_unit_test(products_convolve),
      cmocka_unit_test(matrix_units_keep_infinities),
      cmocka_unit_test(levels_that_repeat_agree_with_reference),
      cmocka_unit_test(forced_candidates_are_taken),
      cmocka_unit_test(choices_repeat),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace image_layouts_test

// SPDX-License-Identifier: Apache-2.0
//
// Rounding to bfloat16 where that is faster: what is rounded and what is not, that it takes a permission and level
// fast, that nothing of it is left for those without, and that networks learn. Where the processor does not multiply in
// bfloat16 the permission changes nothing; the build runs these tests as on such processors, too.
#include <stdlib.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/convolution/convolution_times.h"
#include "backend/cpu/dnnl/cpu_fingerprint.h"
#include "backend/cpu/lower/product_times.h"
#include "backend/cpu/step_models.h"
#include "backend/executable.h"
#include "backend/graph_executor.h"
#include "base/random/philox.h"
#include "base/temporary_directory.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/serialize.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace bf16_test {

namespace {

using tutti::impl::backend::DeviceRef;
using tutti::impl::backend::GraphExecutor;
using tutti::impl::backend::Level;
using tutti::impl::backend::PlanCache;
using tutti::impl::backend::Precision;
using tutti::impl::backend::cpu::ConvolutionPass;
using tutti::impl::backend::cpu::ConvolutionQuestion;
using tutti::impl::backend::cpu::ConvolutionTimes;
using tutti::impl::backend::cpu::cpu_plan_cache;
using tutti::impl::backend::cpu::has_bf16;
using tutti::impl::backend::cpu::ProductRequest;
using tutti::impl::backend::cpu::ProductTimes;
using tutti::impl::graph::GraphBuilder;
using tutti::impl::graph::ValueId;
using tutti::impl::tensor::DType;
using tutti::impl::tensor::Tensor;
using tutti::testing::StepTrainer;
using tutti::testing::TemporaryDirectory;
namespace base = tutti::impl::base;
namespace backend = tutti::impl::backend;
namespace graph = tutti::impl::graph;
namespace tensor = tutti::impl::tensor;

/// The environment's choice of convolutions while it lives.
class Forced {
 public:
  explicit Forced(const char *candidate) { setenv("TUTTI_CPU_CONVOLUTION", candidate, 1); }
  Forced(const Forced &) = delete;
  Forced &operator=(const Forced &) = delete;
  ~Forced() { unsetenv("TUTTI_CPU_CONVOLUTION"); }
};

struct Case {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};

/// What a test does with the elements of inputs: as they are, rounded to bfloat16, their magnitudes.
using Change = float (*)(float);

float unchanged(float x) { return x; }
float magnitude(float x) { return std::fabs(x); }
/// To the nearest number of 8 bits, ties to even.
float rounded(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000);
}

Tensor random_tensor(const std::vector<int64_t> &dims, base::RandomStream &random, Change change) {
  Tensor made = assert_ok_value(Tensor::allocate(DType::f32, assert_ok_value(tensor::Shape::make(dims))));
  for (int64_t i = 0; i < made.size_bytes() / 4; ++i)
    made.mutable_data_as<float>()[i] = change(base::uniform_float(random.next()) * 2 - 1);
  return made;
}

struct Sizes {
  int64_t rows, height, width, in, out, window, stride, groups;
};

constexpr Sizes kSizes[] = {{3, 9, 7, 32, 48, 3, 1, 1}, {2, 12, 5, 16, 64, 1, 2, 1}, {1, 8, 8, 3, 32, 5, 2, 1},
                            {2, 7, 9, 64, 16, 3, 2, 1}, {5, 6, 5, 7, 5, 3, 1, 1},    {2, 6, 6, 32, 32, 3, 1, 2}};

/// Results "forward", "input" and "kernel": a convolution and its gradients.
Case convolution_case(const Sizes &s, Change change) {
  GraphBuilder b;
  Case made;
  base::RandomStream random(base::RandomKey::of(5, 1, 0));
  const auto input = [&](const char *name, const std::vector<int64_t> &dims) {
    made.inputs.push_back(random_tensor(dims, random, change));
    return b.input(name, DType::f32, graph::to_dims(dims));
  };
  const ValueId x = input("a", {s.rows, s.height, s.width, s.in});
  const ValueId kernel = input("b", {s.window, s.window, s.in / s.groups, s.out});
  const int64_t height = (s.height + s.stride - 1) / s.stride, width = (s.width + s.stride - 1) / s.stride;
  const ValueId dy = input("c", {s.rows, height, width, s.out});
  const ValueId y = b.op(
      "conv2d", {x, kernel},
      {{"padding", std::string("same")}, {"stride", std::vector<int64_t>{s.stride, s.stride}}, {"groups", s.groups}});
  const ValueId sources[] = {x, kernel}, targets[] = {y}, seeds[] = {dy};
  const auto gradients = assert_ok_value(graph::gradients_or_zeros(b, targets, seeds, sources));
  b.set_result("forward", y);
  b.set_result("input", gradients[0]);
  b.set_result("kernel", gradients[1]);
  made.graph = assert_ok_value(b.finish_graph());
  return made;
}

DeviceRef open_device(const char *name) {
  return assert_ok_value(assert_ok_value(tutti::impl::runtime::open_backend(name, "{}", {}))->open_device(0));
}

std::vector<Tensor> run(const DeviceRef &device, const Case &one, Precision precision, int32_t threads = 1) {
  backend::GraphExecutorOptions options;
  options.precision = precision;
  options.threads = threads;
  return assert_ok_value(assert_ok_value(GraphExecutor::create(device, one.graph, options))->run(one.inputs));
}

std::string report(const DeviceRef &device, const Case &one, Level level, Precision precision) {
  const std::string text = graph::to_json_text(one.graph);
  backend::CompileRequest request;
  request.graph_text = &text;
  request.level = level;
  request.precision = precision;
  return assert_ok_value(backend::Executable::compile(*device, request))->description().report_json;
}

bool names_bf16(const std::string &report) { return report.find("bf16") != std::string::npos; }

// Of sums of products, relative to the sum of the magnitudes of their terms. Each factor is off by 2^-8 of itself at
// most; sums in f32 of up to 2,304 terms in any order by less than 2^-14.
constexpr double kSumming = 1.0 / (1 << 14);
constexpr double kRounding = 2.0 / (1 << 8) + 1.0 / (1 << 16) + kSumming;

/// |got - expected| <= limit * magnitudes, in every element.
void assert_near(const Tensor &got, const Tensor &expected, const Tensor &magnitudes, double limit, const char *what) {
  for (int64_t i = 0; i < got.size_bytes() / 4; ++i) {
    const double off =
        std::fabs(static_cast<double>(got.data_as<float>()[i]) - static_cast<double>(expected.data_as<float>()[i]));
    if (!(off <= limit * static_cast<double>(magnitudes.data_as<float>()[i]) + 1e-30)) {
      fail_msg("%s: element %d is off by %g, expected %g", what, static_cast<int>(i), off,
               static_cast<double>(expected.data_as<float>()[i]));
    }
  }
}

bool is_same(const std::vector<Tensor> &a, const std::vector<Tensor> &b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (memcmp(a[i].data(), b[i].data(), static_cast<size_t>(a[i].size_bytes())) != 0) return false;
  }
  return true;
}

size_t count(const std::string &text, const char *word) {
  size_t times = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++times;
  return times;
}

void only_factors_are_rounded(void **) {
  int all_rounded = 0;
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  for (const Sizes &sizes : kSizes) {
    const Case raw = convolution_case(sizes, unchanged);
    const auto exact = run(reference, raw, Precision::f32);
    const auto of_rounded = run(reference, convolution_case(sizes, rounded), Precision::f32);
    const auto magnitudes = run(reference, convolution_case(sizes, magnitude), Precision::f32);
    for (const char *layouts : {"dnnl_bf16:rr", "dnnl_bf16:bb", "dnnl_bf16:rb", "dnnl_bf16:br"}) {
      const Forced forced(layouts);
      for (const int32_t threads : {1, 3}) {
        const auto got = run(cpu, raw, Precision::bf16_where_faster, threads);
        for (size_t i = 0; i < got.size(); ++i) {
          const std::string what = base::concat(layouts, ", ", sizes.in, " channels, result ", i);
          assert_near(got[i], exact[i], magnitudes[i], kRounding, what.c_str());
        }
        const std::string plan = report(cpu, raw, Level::fast, Precision::bf16_where_faster);
        if (count(plan, "dnnl_bf16:") != got.size()) continue;
        ++all_rounded;
        for (size_t i = 0; i < got.size(); ++i)
          assert_near(got[i], of_rounded[i], magnitudes[i], kSumming, layouts);
      }
    }
  }
  assert_int_equal(all_rounded >= 8, has_bf16());
}

void what_follows_is_not_rounded(void **) {
  GraphBuilder b;
  Case one;
  base::RandomStream random(base::RandomKey::of(6, 1, 0));
  const auto input = [&](const char *name, const std::vector<int64_t> &dims, Change change) {
    one.inputs.push_back(random_tensor(dims, random, change));
    return b.input(name, DType::f32, graph::to_dims(dims));
  };
  const ValueId x = input("a", {2, 6, 7, 32}, rounded), kernel = input("b", {3, 3, 32, 32}, rounded);
  const ValueId bias = input("c", {32}, unchanged), addend = input("d", {2, 6, 7, 32}, unchanged);
  const ValueId y = b.op("conv2d", {x, kernel}, {{"padding", std::string("same")}});
  b.set_result("y", b.unary("relu", b.add(b.add(y, bias), addend)));
  one.graph = assert_ok_value(b.finish_graph());
  const DeviceRef cpu = open_device("cpu");
  const auto expected = run(open_device("reference"), one, Precision::f32);
  const Forced forced("dnnl_bf16");
  assert_int_equal(names_bf16(report(cpu, one, Level::fast, Precision::bf16_where_faster)), has_bf16());
  const auto got = run(cpu, one, Precision::bf16_where_faster);
  for (int64_t i = 0; i < got[0].size_bytes() / 4; ++i) {
    const double off = std::fabs(static_cast<double>(got[0].data_as<float>()[i] - expected[0].data_as<float>()[i]));
    if (!(off < 288 * kSumming / 4)) fail_msg("element %d is off by %g", static_cast<int>(i), off);
  }
}

// ---- products ----

struct Factors {
  int64_t rows, inputs, outputs;
};

/// Odd ones, and those of vectors.
constexpr Factors kFactors[] = {{64, 160, 128}, {75, 131, 117}, {128, 256, 384}};

/// Results "forward", "input" and "kernel": a product and its gradients.
Case product_case(const Factors &f, Change change) {
  GraphBuilder b;
  Case made;
  base::RandomStream random(base::RandomKey::of(7, 1, 0));
  const auto input = [&](const char *name, const std::vector<int64_t> &dims) {
    made.inputs.push_back(random_tensor(dims, random, change));
    return b.input(name, DType::f32, graph::to_dims(dims));
  };
  const ValueId x = input("a", {f.rows, f.inputs}), kernel = input("b", {f.inputs, f.outputs});
  const ValueId dy = input("c", {f.rows, f.outputs}), y = b.matmul(x, kernel);
  const ValueId sources[] = {x, kernel}, targets[] = {y}, seeds[] = {dy};
  const auto gradients = assert_ok_value(graph::gradients_or_zeros(b, targets, seeds, sources));
  b.set_result("forward", y);
  b.set_result("input", gradients[0]);
  b.set_result("kernel", gradients[1]);
  made.graph = assert_ok_value(b.finish_graph());
  return made;
}

/// A process that found rounding to pay, or not to pay, for all products of a case.
void set_times(const Factors &f, double rounded_seconds) {
  using Times = tutti::impl::backend::TimesByCandidate;
  using tutti::impl::backend::RunTime;
  const Times times = {{"f32", RunTime{1e-3, 0}}, {"bf16", RunTime{rounded_seconds, 0}}};
  const TemporaryDirectory directory;
  const PlanCache cache = cpu_plan_cache(directory.path());
  const std::string rows = base::concat("product n", f.rows, " ");
  assert_ok(cache.store({{base::concat(rows, f.inputs, "x", f.outputs), times},
                         {base::concat(rows, "b_turned ", f.outputs, "x", f.inputs), times},
                         {base::concat(rows, "turned ", f.inputs, "x", f.outputs), times}}));
  ProductTimes::of_process().forget();
  ProductTimes::of_process().measure({}, cache, [](const std::string &line) { fail_msg("%s", line.c_str()); });
}

void only_factors_of_products_are_rounded(void **) {
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  for (const Factors &factors : kFactors) {
    const Case raw = product_case(factors, unchanged);
    const auto of_rounded = run(reference, product_case(factors, rounded), Precision::f32);
    const auto exact = run(reference, raw, Precision::f32);
    const auto magnitudes = run(reference, product_case(factors, magnitude), Precision::f32);
    for (const double seconds : {0.9e-3, 0.99e-3}) {
      set_times(factors, seconds);
      const bool rounds = has_bf16() && seconds < 0.95e-3;
      assert_int_equal(count(report(cpu, raw, Level::fast, Precision::bf16_where_faster), "dnnl_bf16:"),
                       rounds ? 3 : 0);
      assert_false(names_bf16(report(cpu, raw, Level::fast, Precision::f32)));
      assert_false(names_bf16(report(cpu, raw, Level::repeatable, Precision::bf16_where_faster)));
      const auto got = run(cpu, raw, Precision::bf16_where_faster);
      for (size_t i = 0; i < got.size(); ++i)
        assert_near(got[i], rounds ? of_rounded[i] : exact[i], magnitudes[i], kSumming, "product");
    }
  }
  ProductTimes::of_process().forget();
}

/// y = relu(relu(x w + b) v): bias, and the gradient of relu behind the gradient of an input.
Case layers_case(const Factors &f) {
  GraphBuilder b;
  Case made;
  base::RandomStream random(base::RandomKey::of(8, 1, 0));
  std::vector<ValueId> sources;
  const auto input = [&](const char *name, const std::vector<int64_t> &dims) {
    made.inputs.push_back(random_tensor(dims, random, unchanged));
    sources.push_back(b.input(name, DType::f32, graph::to_dims(dims)));
    return sources.back();
  };
  const ValueId x = input("a", {f.rows, f.inputs}), w = input("b", {f.inputs, f.outputs}),
                bias = input("c", {f.outputs});
  const ValueId v = input("d", {f.outputs, f.inputs});
  const ValueId hidden = b.unary("relu", b.add(b.matmul(x, w), bias)), y = b.unary("relu", b.matmul(hidden, v));
  const ValueId loss = b.reduce_mean(b.mul(y, y), {0, 1}), targets[] = {loss};
  const auto gradients = assert_ok_value(graph::gradients_or_zeros(b, targets, {}, sources));
  b.set_result("y", y);
  for (size_t i = 0; i < gradients.size(); ++i)
    b.set_result("z" + std::to_string(i), gradients[i]);
  made.graph = assert_ok_value(b.finish_graph());
  return made;
}

/// Up to four products follow one another, with factors off by 2^-8 each. Of each of two relus up to 2^-8 of the
/// elements are so near to 0 that rounding moves them across, and with them all that comes back through them.
void layers_agree_but_for_rounding(void **) {
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  for (const Factors &factors : {Factors{64, 144, 144}, Factors{77, 121, 121}}) {
    const Case one = layers_case(factors);
    set_times(factors, 1e-4);
    const std::string plan = report(cpu, one, Level::fast, Precision::bf16_where_faster);
    assert_int_equal(count(plan, "dnnl_bf16:"), has_bf16() ? 6 : 0);
    assert_int_equal(count(plan, "simd:relu_gradient"), has_bf16() ? 1 : 0);
    const auto got = run(cpu, one, Precision::bf16_where_faster), expected = run(reference, one, Precision::f32);
    for (size_t i = 0; i < got.size(); ++i) {
      double difference = 0, norm = 0;
      for (int64_t at = 0; at < got[i].size_bytes() / 4; ++at) {
        const auto x = static_cast<double>(got[i].data_as<float>()[at]);
        const auto y = static_cast<double>(expected[i].data_as<float>()[at]);
        difference += (x - y) * (x - y);
        norm += y * y;
      }
      const double off = std::sqrt(difference / norm);
      if (!(off < 4 * kRounding + std::sqrt(2.0 / (1 << 8)))) fail_msg("result %zu is off by %g", i, off);
    }
  }
  ProductTimes::of_process().forget();
}

void products_are_timed_once(void **) {
  const TemporaryDirectory directory;
  const PlanCache cache = cpu_plan_cache(directory / "cache");
  const ProductTimes::Log quiet = [](const std::string &) {};
  const DeviceRef cpu = open_device("cpu");
  ProductTimes &table = ProductTimes::of_process();
  std::vector<ProductRequest> questions;
  for (const bool turned : {false, true}) {
    for (const bool b_turned : {false, true})
      questions.push_back({.m = 64, .n = 160, .k = 208, .turned = turned, .b_turned = b_turned, .bf16 = true});
  }
  table.forget();
  assert_false(table.pays(questions[0]));
  table.measure(questions, cache, quiet);
  assert_int_equal(table.measured_count(), has_bf16() ? 3 : 0);
  // Answers stay.
  assert_false(table.pays(questions[0]));
  table.forget();
  table.measure(questions, cache, quiet);
  assert_int_equal(table.measured_count(), 0);
  // Too small, and what the library does not have.
  assert_false(table.pays({.m = 2, .n = 4, .k = 8, .bf16 = true}));
  assert_false(table.pays(questions[3]));
}

void it_takes_permission_and_level_fast(void **) {
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  const Case one = convolution_case(kSizes[0], unchanged);
  const Forced forced("dnnl_bf16");
  assert_int_equal(names_bf16(report(cpu, one, Level::fast, Precision::bf16_where_faster)), has_bf16());
  assert_false(names_bf16(report(cpu, one, Level::fast, Precision::f32)));
  assert_false(names_bf16(report(cpu, one, Level::repeatable, Precision::bf16_where_faster)));
  assert_false(names_bf16(report(cpu, one, Level::invariant, Precision::bf16_where_faster)));
  assert_false(names_bf16(report(reference, one, Level::fast, Precision::bf16_where_faster)));
  assert_true(is_same(run(reference, one, Precision::bf16_where_faster), run(reference, one, Precision::f32)));
  assert_ok(backend::check_precision(Precision::bf16_where_faster, Level::fast));
  assert_ok(backend::check_precision(Precision::f32, Level::invariant));
  for (const Level level : {Level::repeatable, Level::invariant}) {
    const base::Status status = backend::check_precision(Precision::bf16_where_faster, level);
    assert_int_equal(status.code(), base::Code::invalid_argument);
    assert_contains(status.message().c_str(), "precision is bf16_where_faster, which needs determinism fast");
  }
}

ConvolutionQuestion question(bool allows_bf16) {
  ConvolutionQuestion q;
  q.shape.rows = 8;
  q.shape.in_channels = q.shape.out_channels = 64;
  q.shape.in_height = q.shape.out_height = q.shape.in_width = q.shape.out_width = 9;
  q.allows_bf16 = allows_bf16;
  return q;
}

std::string text_of(const std::vector<tutti::impl::backend::cpu::TimedCandidate> &times) {
  std::string text;
  for (const auto &one : times)
    text += base::concat(label(one.candidate), " ", one.seconds, "\n");
  return text;
}

void times_with_permission_are_kept_apart(void **) {
  const TemporaryDirectory directory;
  const PlanCache cache = cpu_plan_cache(directory / "cache");
  ConvolutionTimes &table = ConvolutionTimes::of_process();
  table.forget();
  const ConvolutionTimes::Log quiet = [](const std::string &) {};
  const std::vector<ConvolutionQuestion> plain = {question(false)}, permitted = {question(true)};
  table.measure(plain, cache, quiet);
  const std::string before = text_of(table.of(plain[0]));
  table.measure(permitted, cache, quiet);
  assert_int_equal(table.measured_count(), 2);
  const std::string with = text_of(table.of(permitted[0]));
  assert_int_equal(names_bf16(with), has_bf16());
  assert_string_equal(text_of(table.of(plain[0])).c_str(), before.c_str());
  // The same from the file, in whatever order.
  table.forget();
  table.measure(permitted, cache, quiet);
  table.measure(plain, cache, quiet);
  assert_int_equal(table.measured_count(), 0);
  assert_string_equal(text_of(table.of(permitted[0])).c_str(), with.c_str());
  assert_string_equal(text_of(table.of(plain[0])).c_str(), before.c_str());
}

void what_was_not_measured_is_not_rounded(void **) {
  ConvolutionTimes::of_process().forget();
  const DeviceRef cpu = open_device("cpu");
  for (const Sizes &sizes : kSizes) {
    const Case one = convolution_case(sizes, unchanged);
    assert_false(names_bf16(report(cpu, one, Level::fast, Precision::bf16_where_faster)));
  }
}

void without_permission_no_bit_changes(void **) {
  ConvolutionTimes::of_process().forget();
  const DeviceRef cpu = open_device("cpu");
  const Case one = convolution_case({4, 14, 14, 64, 128, 1, 1, 1}, unchanged);
  const std::string text = graph::to_json_text(one.graph);
  backend::CompileRequest request;
  request.graph_text = &text;
  assert_ok(backend::plan_layouts(*cpu, request));
  const std::string plan = report(cpu, one, Level::fast, Precision::f32);
  const auto before = run(cpu, one, Precision::f32);
  request.precision = Precision::bf16_where_faster;
  assert_ok(backend::plan_layouts(*cpu, request));
  run(cpu, one, Precision::bf16_where_faster);
  assert_string_equal(report(cpu, one, Level::fast, Precision::f32).c_str(), plan.c_str());
  assert_true(is_same(run(cpu, one, Precision::f32), before));
}

std::vector<double> losses(const char *model_name, int32_t flags, int steps) {
  const auto model = assert_ok_value(tutti::testing::make_step_model(model_name, 2));
  auto cpu = assert_ok_value(tutti::impl::runtime::open_backend("cpu", "{}", {}));
  StepTrainer trainer = assert_ok_value(StepTrainer::create(cpu, model, 16, Level::fast, flags));
  std::vector<double> list;
  for (int step = 0; step < steps; ++step) {
    assert_ok(trainer.step());
    list.push_back(trainer.loss());
  }
  return list;
}

/// Each of L layers adds up to 2^-7 to the relative error of what passes it, forward and backward: so much of the first
/// loss, and of all that it went down by, may be lost or won.
void networks_learn_as_in_f32(void **) {
  constexpr int kSteps = 25, kLayers = 4;
  constexpr double kLimit = 2.0 * kLayers / (1 << 7);
  const std::vector<double> exact = losses("cnn", 0, kSteps);
  const Forced forced("dnnl_bf16");
  const std::vector<double> got = losses("cnn", TUTTI_COMPILE_BF16_WHERE_FASTER, kSteps);
  assert_true(exact.back() < 0.5 * exact.front());
  assert_int_equal(got != exact, has_bf16());
  for (int step = 0; step < kSteps; ++step) {
    const auto at = static_cast<size_t>(step);
    if (!(std::fabs(got[at] - exact[at]) <= kLimit * exact.front())) {
      fail_msg("step %d: loss %g, in f32 %g", step, got[at], exact[at]);
    }
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(only_factors_are_rounded),
      cmocka_unit_test(what_follows_is_not_rounded),
      cmocka_unit_test(only_factors_of_products_are_rounded),
      cmocka_unit_test(layers_agree_but_for_rounding),
      cmocka_unit_test(products_are_timed_once),
      cmocka_unit_test(it_takes_permission_and_level_fast),
      cmocka_unit_test(times_with_permission_are_kept_apart),
      cmocka_unit_test(what_was_not_measured_is_not_rounded),
      cmocka_unit_test(without_permission_no_bit_changes),
      cmocka_unit_test(networks_learn_as_in_f32),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace bf16_test

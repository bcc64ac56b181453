// SPDX-License-Identifier: Apache-2.0
//
// The cases of backend_ops_test on the CPU backend with several threads and everything cut that can be cut, however
// small: equal to the reference backend for any number of threads, bitwise equal from run to run, and bitwise equal to
// one thread but for gradients of kernels, which are sums of parts.
#include <cstring>

#include "backend/cpu/kernel/kernel.h"
#include "backend/graph_executor.h"
#include "backend_cases.h"
#include "backend_under_test.h"
#include "base/text.h"
#include "testing.h"

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::OpCase;
using conformance::ShapeDims;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;

namespace {

BackendUnderTest *tested = nullptr;

constexpr int32_t kThreads[] = {1, 2, 3, 4};
constexpr int kRepeats = 2;

base::Result<std::vector<Tensor>> run(const backend::DeviceRef &device, const OpCase &one,
                                      const std::vector<Tensor> &inputs, int32_t threads, int repeats) {
  const auto plain = [&](GraphBuilder &builder, const GraphBuilder::Values &values) {
    return builder.op_n(one.op, values, one.attributes);
  };
  TUTTI_ASSIGN(const graph::Graph graph, conformance::build_graph(inputs, one.build ? one.build : plain));
  backend::GraphExecutorOptions options;
  options.threads = threads;
  TUTTI_ASSIGN(const backend::GraphExecutorRef executor, backend::GraphExecutor::create(device, graph, options));
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::seed, 42).set(backend::RunScalar::batch_counter, 3);
  TUTTI_ASSIGN(std::vector<Tensor> results, executor->run(inputs, scalars));
  for (int i = 1; i < repeats; ++i) {
    TUTTI_ASSIGN(const std::vector<Tensor> again, executor->run(inputs, scalars));
    for (size_t k = 0; k < results.size(); ++k) {
      if (std::memcmp(results[k].data(), again[k].data(), results[k].size_bytes()) != 0)
        return base::internal_error("result ", k, " differs from run to run");
    }
  }
  return results;
}

bool is_sum_of_parts(const OpCase &one) {
  return one.op.find("gradient") != std::string::npos && one.op != "attention_gradient";
}

base::Status check_threads(const OpCase &one, const std::vector<Tensor> &inputs, const std::vector<Tensor> &expected,
                           std::vector<Tensor> &alone, int32_t threads) {
  auto results = run(tested->device, one, inputs, threads, kRepeats);
  if (results.code() == base::Code::unimplemented && conformance::is_optional(inputs, one.attributes)) return {};
  TUTTI_TRY(results);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].dtype() == DType::f32) {
      TUTTI_TRY(tensor::compare_close((*results)[i], expected[i], one.relative == 0 ? 1e-5 : one.relative,
                                      one.absolute == 0 ? 1e-5 * conformance::size_of(expected[i]) : one.absolute));
    }
    if (threads == 1 || is_sum_of_parts(one)) continue;
    if (std::memcmp((*results)[i].data(), alone[i].data(), alone[i].size_bytes()) != 0)
      return base::internal_error("result ", i, " is not bitwise that of one thread");
  }
  if (threads == 1) alone = std::move(results).value();
  return {};
}

base::Status check_case(const OpCase &one) {
  std::vector<Tensor> inputs, alone;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    TUTTI_ASSIGN(Tensor input, conformance::make_operand(one.inputs[i], 100 + i));
    inputs.push_back(std::move(input));
  }
  TUTTI_ASSIGN(const std::vector<Tensor> expected, run(tested->oracle, one, inputs, 1, 1));
  for (int32_t threads : kThreads) {
    const base::Status status = check_threads(one, inputs, expected, alone, threads);
    if (!status.ok()) return status.wrap(base::concat(threads, " threads"));
    if (alone.empty()) break;
  }
  return {};
}

void check_family(void **state) {
  int failures = 0;
  for (const OpCase &one : reinterpret_cast<std::vector<OpCase> (*)()> (*state)()) {
    const base::Status status = check_case(one);
    if (status.ok()) continue;
    if (++failures <= 20) print_error("%s: %s\n", one.describe().c_str(), status.to_string().c_str());
  }
  assert_int_equal(failures, 0);
}

/// conv2d and its gradients on images as many as threads, more and fewer.
void add_convolution(std::vector<OpCase> &cases, ShapeDims image, ShapeDims kernel, graph::Attributes attributes) {
  const conformance::Operand x = conformance::whole(DType::f32, image, -2, 3);
  const conformance::Operand w = conformance::whole(DType::f32, kernel, -2, 3);
  const conformance::Operand bias = conformance::whole(DType::f32, {kernel[3]}, -2, 3);
  const auto relu = [=](GraphBuilder &builder, const GraphBuilder::Values &inputs) -> GraphBuilder::Values {
    return {builder.unary("relu", builder.op("conv2d", inputs, attributes))};
  };
  // Neither large nor a jump: Winograd may round y.
  const auto gradient_of = [=](GraphBuilder &builder, const GraphBuilder::Values &inputs) {
    return builder.op("mul", {builder.op("conv2d", inputs, attributes), builder.constant(1.0 / 32, DType::f32)});
  };
  const auto dx = [=](GraphBuilder &builder, const GraphBuilder::Values &inputs) -> GraphBuilder::Values {
    graph::Attributes own = attributes;
    own.emplace("input_dims", graph::to_dims(image));
    const graph::ValueId dy = gradient_of(builder, inputs);
    return {builder.op("conv2d_input_gradient", {dy, inputs[1]}, own)};
  };
  const auto dw = [=](GraphBuilder &builder, const GraphBuilder::Values &inputs) -> GraphBuilder::Values {
    graph::Attributes own = attributes;
    own.emplace("kernel_dims", graph::to_dims(kernel));
    const graph::ValueId dy = gradient_of(builder, inputs);
    return {builder.op("conv2d_kernel_gradient", {inputs[0], dy}, own),
            builder.op("reduce_sum", {dy}, {{"axes", std::vector<int64_t>{0, 1, 2}}})};
  };
  cases.push_back({"conv2d + bias + relu", {x, w, bias}, attributes, relu, 1e-3, 1e-3});
  cases.push_back({"conv2d, dx", {x, w}, attributes, dx, 1e-3, 1e-2});
  cases.push_back({"conv2d, gradient of the kernel", {x, w}, attributes, dw, 1e-3, 1e-2});
}

std::vector<OpCase> convolution_cases() {
  using Ints = std::vector<int64_t>;
  const auto same = [](Ints stride, int64_t groups = 1) {
    return graph::Attributes{{"stride", std::move(stride)}, {"padding", std::string("same")}, {"groups", groups}};
  };
  const graph::Attributes shifted{{"padding", std::string("explicit")},
                                  {"pads", Ints{1, 2, 0, 1}},
                                  {"dilation", Ints{2, 1}},
                                  {"stride", Ints{1, 2}}};
  std::vector<OpCase> cases;
  for (int64_t rows : {1, 2, 3, 5, 9}) {
    add_convolution(cases, {rows, 9, 7, 3}, {3, 3, 3, 32}, same({1, 1}));
    add_convolution(cases, {rows, 12, 12, 32}, {3, 3, 32, 64}, same({1, 1}));  // may be Winograd
    add_convolution(cases, {rows, 4, 4, 48}, {3, 3, 48, 80}, same({1, 1}));
    add_convolution(cases, {rows, 13, 11, 16}, {5, 3, 16, 24}, {{"padding", std::string("valid")}});
    add_convolution(cases, {rows, 14, 14, 16}, {3, 3, 16, 32}, same({2, 2}));
    add_convolution(cases, {rows, 10, 10, 32}, {3, 3, 1, 32}, same({1, 1}, 32));
    add_convolution(cases, {rows, 8, 8, 64}, {1, 1, 64, 48}, same({1, 1}));
    add_convolution(cases, {rows, 7, 8, 4}, {2, 3, 4, 3}, shifted);
  }
  return cases;
}

// ---- chains: convolutions and normalisations in turns, forward and back ----

/// Dims of a unit: images, a 3x3 convolution by channel, a 1x1 convolution.
struct UnitDims {
  int64_t rows, size, in, out;
};

/// The graph's inputs by name.
struct UnitInputs {
  graph::ValueId x, dy;
  graph::ValueId kernel[2], scale[2], offset[2], mean[2], variance[2];
  graph::ValueId count;

  explicit UnitInputs(const GraphBuilder::Values &v)
      : x(v[0]),
        dy(v[1]),
        kernel{v[2], v[3]},
        scale{v[4], v[5]},
        offset{v[6], v[7]},
        mean{v[8], v[9]},
        variance{v[10], v[11]},
        count(v[12]) {}
  static std::vector<conformance::Operand> operands(const UnitDims &d) {
    using conformance::Operand;
    const auto channels = [](int64_t n, double low, double high) { return Operand{DType::f32, {n}, low, high}; };
    return {{DType::f32, {d.rows, d.size, d.size, d.in}, -1, 1},
            {DType::f32, {d.rows, d.size, d.size, d.out}, -1, 1},
            {DType::f32, {3, 3, 1, d.in}, -1, 1},
            {DType::f32, {1, 1, d.in, d.out}, -0.5, 0.5},
            channels(d.in, 0.5, 1.5),
            channels(d.out, 0.5, 1.5),
            channels(d.in, -1, 1),
            channels(d.out, -1, 1),
            channels(d.in, -1, 1),
            channels(d.out, -1, 1),
            channels(d.in, 0.5, 2),
            channels(d.out, 0.5, 2),
            {DType::f64, {}, 50, 60}};
  }
};

/// Attributes of the convolutions of a unit.
struct UnitAttributes {
  graph::Attributes forward[2], input_gradient[2], kernel_gradient[2];

  explicit UnitAttributes(const UnitDims &d) {
    const ShapeDims image{d.rows, d.size, d.size, d.in};
    const ShapeDims kernels[2] = {{3, 3, 1, d.in}, {1, 1, d.in, d.out}};
    for (int i = 0; i < 2; ++i) {
      forward[i] = {{"padding", std::string("same")}, {"groups", i == 0 ? d.in : int64_t{1}}};
      input_gradient[i] = kernel_gradient[i] = forward[i];
      input_gradient[i].emplace("input_dims", graph::to_dims(image));
      kernel_gradient[i].emplace("kernel_dims", graph::to_dims(kernels[i]));
    }
  }
};

/// Normalised by statistics of the batch; everything that training wants.
GraphBuilder::Values training_unit(GraphBuilder &b, const UnitInputs &in, const UnitAttributes &how) {
  const graph::Attributes epsilon{{"epsilon", 0.01}};
  graph::ValueId y[2], z[2];
  GraphBuilder::Values norm[2], gradient[2];
  for (int i = 0; i < 2; ++i) {
    y[i] = b.op("conv2d", {i == 0 ? in.x : z[0], in.kernel[i]}, how.forward[i]);
    norm[i] = b.op_n("batch_norm_training", {y[i], in.scale[i], in.offset[i]}, epsilon);
    z[i] = b.unary("relu", norm[i][0]);
  }
  graph::ValueId dz = in.dy;
  GraphBuilder::Values results = {z[1], norm[0][1], norm[0][2], norm[1][1], norm[1][2]};
  for (int i : {1, 0}) {
    const graph::ValueId masked = b.op("relu_gradient", {dz, z[i]});
    gradient[i] = b.op_n("batch_norm_training_gradient", {masked, y[i], in.scale[i], norm[i][1], norm[i][2]}, epsilon);
    dz = b.op("conv2d_input_gradient", {gradient[i][0], in.kernel[i]}, how.input_gradient[i]);
    results.push_back(b.op("conv2d_kernel_gradient", {i == 0 ? in.x : z[0], gradient[i][0]}, how.kernel_gradient[i]));
    results.insert(results.end(), {gradient[i][1], gradient[i][2]});
  }
  results.push_back(dz);
  return results;
}

/// Normalised by statistics that are given, as those of several replicas are, with the sums they are made of.
GraphBuilder::Values global_unit(GraphBuilder &b, const UnitInputs &in, const UnitAttributes &how) {
  const graph::Attributes epsilon{{"epsilon", 0.01}};
  graph::ValueId y[2], z[2];
  GraphBuilder::Values results;
  for (int i = 0; i < 2; ++i) {
    y[i] = b.op("conv2d", {i == 0 ? in.x : z[0], in.kernel[i]}, how.forward[i]);
    const auto sums = b.op_n("batch_norm_moments", {y[i]});
    results.insert(results.end(), sums.begin(), sums.end());
    z[i] = b.unary(
        "relu", b.op("batch_norm_inference", {y[i], in.scale[i], in.offset[i], in.mean[i], in.variance[i]}, epsilon));
  }
  graph::ValueId dz = in.dy;
  for (int i : {1, 0}) {
    const graph::ValueId masked = b.op("relu_gradient", {dz, z[i]});
    const auto sums = b.op_n("batch_norm_gradient_moments", {masked, y[i], in.mean[i]});
    results.insert(results.end(), sums.begin(), sums.end());
    const graph::ValueId dy =
        b.op("batch_norm_gradient_apply",
             {masked, y[i], in.scale[i], in.mean[i], in.variance[i], sums[0], sums[1], in.count}, epsilon);
    dz = b.op("conv2d_input_gradient", {dy, in.kernel[i]}, how.input_gradient[i]);
    results.push_back(b.op("conv2d_kernel_gradient", {i == 0 ? in.x : z[0], dy}, how.kernel_gradient[i]));
  }
  results.push_back(dz);
  return results;
}

std::vector<OpCase> chain_cases() {
  std::vector<OpCase> cases;
  for (const UnitDims &d : {UnitDims{2, 6, 16, 32}, {3, 5, 32, 16}, {7, 4, 16, 16}, {5, 7, 10, 12}, {9, 3, 48, 32}}) {
    const UnitAttributes how(d);
    const auto unit = [&](const char *name,
                          GraphBuilder::Values (*build)(GraphBuilder &, const UnitInputs &, const UnitAttributes &)) {
      cases.push_back(
          {name,
           UnitInputs::operands(d),
           {},
           [=](GraphBuilder &b, const GraphBuilder::Values &inputs) { return build(b, UnitInputs(inputs), how); },
           1e-3,
           2e-3});
    };
    unit("chain of a unit, with gradients", training_unit);
    unit("chain of a unit, with gradients and given statistics", global_unit);
  }
  return cases;
}

}  // namespace

static int run_all(int, char **) {
  char program[] = "cpu_parts_test", backend_name[] = "cpu";
  char *arguments[] = {program, backend_name};
  auto opened = conformance::open_backend_under_test(2, arguments);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.status().to_string().c_str());
    return 1;
  }
  tested = &*opened;
  backend::cpu::cut_everything = true;
  const auto family = [](const char *name, std::vector<OpCase> (*make)()) {
    return CMUnitTest{name, check_family, nullptr, nullptr, reinterpret_cast<void *>(make)};
  };
  const CMUnitTest tests[] = {
      family("elementwise", conformance::elementwise_cases),
      family("reductions", conformance::reduction_cases),
      family("shapes", conformance::shape_cases),
      family("products", conformance::product_cases),
      family("attention", conformance::attention_cases),
      family("normalization", conformance::normalization_cases),
      family("losses", conformance::loss_cases),
      family("training", conformance::training_cases),
      family("convolutions", convolution_cases),
      family("chains", chain_cases),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

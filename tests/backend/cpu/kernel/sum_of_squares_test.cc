// SPDX-License-Identifier: Apache-2.0
//
// Sums of squares, plain and of a scaled value, are one kernel that stores nothing of the value's size, and the sums of
// the reference backend: with every instruction set, any number of threads, what is infinite or no number included.
// What is needed elsewhere is computed as before.
#include <stdlib.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/simd/simd_reduce.h"
#include "backend/cpu/simd/simd_testing.h"
#include "backend/executable.h"
#include "backend/graph_executor.h"
#include "graph/builder.h"
#include "graph/serialize.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace sum_of_squares_test {

namespace {

using namespace tutti::impl;
using backend::DeviceRef;
using backend::GraphExecutor;
using backend::Level;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;

constexpr int64_t kMany = 1000003;
/// With it the squares of all floats have a sum within the range of floats.
constexpr double kShrunk = 0x1p-96;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Build = std::function<ValueId(GraphBuilder &b, ValueId x)>;

ValueId sum(GraphBuilder &b, ValueId x) { return b.reduce_sum(b.unary("square", x)); }

Build sum_of_scaled(std::optional<double> factor) {
  return [=](GraphBuilder &b, ValueId x) { return sum(b, factor ? b.scale(x, *factor) : x); };
}

DeviceRef open_device(const char *name) {
  return assert_ok_value(assert_ok_value(runtime::open_backend(name, "{}", {}))->open_device(0));
}

graph::Graph graph_of(const std::vector<int64_t> &dims, const Build &build, DType dtype = DType::f32) {
  GraphBuilder b;
  b.set_result("y", build(b, b.input("x", dtype, graph::to_dims(dims))));
  return assert_ok_value(b.finish_graph());
}

Tensor as_tensor(const std::vector<int64_t> &dims, const std::vector<float> &values) {
  return assert_ok_value(
      Tensor::from_values<float>(assert_ok_value(tensor::Shape::make(dims)), std::span<const float>(values)));
}

float run(const DeviceRef &device, const graph::Graph &graph, const Tensor &x, int32_t threads = 1) {
  backend::GraphExecutorOptions options;
  options.threads = threads;
  const auto executor = assert_ok_value(GraphExecutor::create(device, graph, options));
  return assert_ok_value(executor->run(std::vector<Tensor>{x}))[0].data_as<float>()[0];
}

backend::ExecutableDescription describe(const DeviceRef &device, const graph::Graph &graph, Level level = Level::fast) {
  const std::string text = graph::to_json_text(graph);
  backend::CompileRequest request;
  request.graph_text = &text;
  request.level = level;
  return assert_ok_value(backend::Executable::compile(*device, request))->description();
}

int count(const std::string &text, const std::string &part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

bool is_one_pass(const backend::ExecutableDescription &plan) {
  return count(plan.report_json, "simd:sum_of_squares") == 1;
}

bool is_close(float got, float expected) {
  if (std::isnan(expected)) return std::isnan(got);
  return got == expected || std::fabs(got - expected) <= 1e-5F * std::fabs(expected);
}

struct Numbers {
  const char *what;
  std::vector<float> values;
};

std::vector<float> with(std::vector<float> values, float other) {
  values[values.size() / 3] = other;
  return values;
}

std::vector<Numbers> all_numbers() {
  std::vector<Numbers> all;
  for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{64}, int64_t{1000}, kMany})
    all.push_back({"noise", tutti::testing::noise(n, 1)});
  for (const int64_t n : {int64_t{1}, int64_t{7}, int64_t{1001}, kMany}) {
    const std::vector<float> noise = tutti::testing::noise(n, 2);
    all.push_back({"NaN", with(noise, std::numeric_limits<float>::quiet_NaN())});
    all.push_back({"infinity", with(noise, -kInfinity)});
    all.push_back({"one large", with(noise, 0x1p70F)});
    all.push_back({"large", std::vector<float>(noise.size(), -0x1p70F)});
    all.push_back({"largest", std::vector<float>(noise.size(), std::numeric_limits<float>::max())});
    all.push_back({"denormal", std::vector<float>(noise.size(), 0x1p-140F)});
  }
  return all;
}

void sums_are_those_of_the_reference(void **) {
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  for (const Numbers &numbers : all_numbers()) {
    const std::vector<int64_t> dims = {static_cast<int64_t>(numbers.values.size())};
    const Tensor x = as_tensor(dims, numbers.values);
    for (const std::optional<double> factor : {std::optional<double>(), {kShrunk}, {-3.0}}) {
      const graph::Graph graph = graph_of(dims, sum_of_scaled(factor));
      const float expected = run(reference, graph, x);
      tutti::testing::on_all_targets([&] {
        const float got = run(cpu, graph, x);
        if (is_close(got, expected)) return;
        fail_msg("%zu times %s, factor %g: %g, expected %g", numbers.values.size(), numbers.what, factor.value_or(1),
                 static_cast<double>(got), static_cast<double>(expected));
      });
    }
  }
}

void squares_of_large_numbers_overflow_unless_they_are_shrunk(void **) {
  const DeviceRef cpu = open_device("cpu");
  const Tensor x = as_tensor({kMany}, std::vector<float>(kMany, 0x1p70F));
  assert_true(run(cpu, graph_of({kMany}, sum_of_scaled({})), x) == kInfinity);
  assert_true(is_close(run(cpu, graph_of({kMany}, sum_of_scaled(kShrunk)), x), 0x1p-52F * kMany));
}

void one_kernel_stores_nothing_of_the_size(void **) {
  const DeviceRef cpu = open_device("cpu");
  const auto from_the_left = [](GraphBuilder &b, ValueId x) {
    return sum(b, b.mul(b.constant(kShrunk, DType::f32), x));
  };
  const auto keeping_dims = [](GraphBuilder &b, ValueId x) {
    return b.reduce_sum(b.unary("square", x), {0, 1, 2, -1}, true);
  };
  for (const Build &build : {sum_of_scaled({}), sum_of_scaled(kShrunk), Build(from_the_left), Build(keeping_dims)}) {
    for (const Level level : {Level::fast, Level::repeatable}) {
      const auto plan = describe(cpu, graph_of({8, 9, 10, 32}, build), level);
      assert_true(is_one_pass(plan));
      assert_int_equal(count(plan.report_json, "\"kernel\":"), 1);
      assert_true(plan.workspace_bytes <= 1024);
    }
  }
}

/// What lies in blocks of channels is added up there.
void images_are_read_as_they_lie(void **) {
  const std::vector<int64_t> dims = {3, 12, 12, 32};
  const auto of_convolution = [](GraphBuilder &b, ValueId x) {
    const ValueId kernel = b.broadcast_to(b.constant(0.125, DType::f32), {3, 3, 32, 64});
    return sum(b, b.scale(b.op("conv2d", {x, kernel}, {{"padding", std::string("same")}}), 0.5));
  };
  const graph::Graph graph = graph_of(dims, of_convolution);
  const Tensor x = as_tensor(dims, tutti::testing::noise(3 * 12 * 12 * 32, 3));
  const float expected = run(open_device("reference"), graph, x);
  for (const char *candidate : {"dnnl_direct:rr", "dnnl_direct:bb", "winograd:bb"}) {
    setenv("TUTTI_CPU_CONVOLUTION", candidate, 1);
    const DeviceRef cpu = open_device("cpu");
    const auto plan = describe(cpu, graph);
    const float got = run(cpu, graph, x);
    unsetenv("TUTTI_CPU_CONVOLUTION");
    assert_true(is_one_pass(plan));
    // Winograd takes blocks on any processor.
    assert_true(std::string_view(candidate) != "winograd:bb" || count(plan.report_json, "reorder:->nChw16c") == 1);
    assert_int_equal(count(plan.report_json, "reorder:nChw16c->"), 0);
    assert_true(is_close(got, expected));
  }
}

void threads_change_no_bit(void **) {
  const DeviceRef cpu = open_device("cpu");
  for (const bool cut : {false, true}) {
    backend::cpu::cut_everything = cut;
    for (const int64_t n : {int64_t{7}, int64_t{300}, kMany}) {
      const Tensor x = as_tensor({n}, tutti::testing::noise(n, 4));
      for (const std::optional<double> factor : {std::optional<double>(), {kShrunk}}) {
        const graph::Graph graph = graph_of({n}, sum_of_scaled(factor));
        const float alone = run(cpu, graph, x);
        for (const int32_t threads : {1, 2, 3}) {
          const float again = run(cpu, graph, x, threads);
          assert_memory_equal(&again, &alone, sizeof(float));
        }
      }
    }
  }
  backend::cpu::cut_everything = false;
}

struct Other {
  const char *what;
  Build build;
  Level level = Level::fast;
};

std::vector<Other> others() {
  return {
      {"squares are a result",
       [](GraphBuilder &b, ValueId x) {
         const ValueId squares = b.unary("square", x);
         b.set_result("z", squares);
         return b.reduce_sum(squares);
       }},
      {"squares are read twice",
       [](GraphBuilder &b, ValueId x) {
         const ValueId squares = b.unary("square", x);
         return b.add(b.reduce_sum(squares), b.reduce("reduce_max", squares, {}));
       }},
      {"rows", [](GraphBuilder &b, ValueId x) { return b.reduce_sum(b.unary("square", x), {1}); }},
      {"level invariant", sum_of_scaled(kShrunk), Level::invariant},
  };
}

void other_sums_are_computed_as_before(void **) {
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  const std::vector<int64_t> dims = {40, 50};
  const Tensor x = as_tensor(dims, tutti::testing::noise(2000, 5));
  for (const Other &other : others()) {
    const graph::Graph graph = graph_of(dims, other.build);
    if (count(describe(cpu, graph, other.level).report_json, "simd:sum_of_squares") != 0) fail_msg("%s", other.what);
    assert_true(is_close(run(cpu, graph, x), run(reference, graph, x)));
  }
}

/// The sum alone is one kernel; what it reads is computed before it.
void factors_that_are_no_scalar_constants_are_multiplied_before(void **) {
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  const std::vector<int64_t> dims = {40, 50};
  const Tensor x = as_tensor(dims, tutti::testing::noise(2000, 6));
  const Build builds[] = {
      [](GraphBuilder &b, ValueId x) { return sum(b, b.mul(x, b.reduce("reduce_max", x, {}))); },
      [](GraphBuilder &b, ValueId x) { return sum(b, b.mul(x, x)); },
      [](GraphBuilder &b, ValueId x) {
        return sum(b, b.mul(b.constant(as_tensor({50}, tutti::testing::noise(50, 7))), x));
      },
      [](GraphBuilder &b, ValueId x) {
        const ValueId first = b.slice(x, {0, 0}, {1, 1});
        return sum(b, b.mul(first, b.constant(as_tensor({1, 1, 1}, {3}))));
      },
      [](GraphBuilder &b, ValueId x) {
        const ValueId scaled = b.scale(x, 3);
        b.set_result("z", scaled);
        return sum(b, scaled);
      },
  };
  for (const Build &build : builds) {
    const graph::Graph graph = graph_of(dims, build);
    assert_true(is_one_pass(describe(cpu, graph)));
    assert_true(is_close(run(cpu, graph, x), run(reference, graph, x)));
  }
}

void the_kernel_agrees(void **) {
  tutti::testing::on_all_targets([] {
    for (const int64_t n : {0, 1, 3, 7, 8, 63, 64, 65, 127, 1000, 4099}) {
      const std::vector<float> x = tutti::testing::noise(n, 1);
      double sum = 0;
      for (const float value : x)
        sum += static_cast<double>(value) * static_cast<double>(value);
      for (const float factor : {1.0f, -0.5f, 0x1p-60f}) {
        const double scale = static_cast<double>(factor) * static_cast<double>(factor);
        assert_true(std::fabs(backend::cpu::sum_of_squares(x.data(), n, factor) - sum * scale) <= 1e-6 * sum * scale);
      }
      assert_true(backend::cpu::sum_of_squares(x.data(), n, kInfinity) == (n == 0 ? 0 : kInfinity));
    }
  });
}

void doubles_keep_their_range(void **) {
  const graph::Graph graph = graph_of({3}, sum_of_scaled({}), DType::f64);
  const Tensor x = assert_ok_value(Tensor::from_values<double>({3}, {0x1p70, 1, 2}));
  const auto executor = assert_ok_value(GraphExecutor::create(open_device("cpu"), graph, {}));
  assert_true(assert_ok_value(executor->run(std::vector<Tensor>{x}))[0].data_as<double>()[0] == 0x1p140);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_kernel_agrees),
    cmocka_unit_test(sums_are_those_of_the_reference),
    cmocka_unit_test(squares_of_large_numbers_overflow_unless_they_are_shrunk),
    cmocka_unit_test(one_kernel_stores_nothing_of_the_size),
    cmocka_unit_test(images_are_read_as_they_lie),
    cmocka_unit_test(threads_change_no_bit),
    cmocka_unit_test(other_sums_are_computed_as_before),
    cmocka_unit_test(factors_that_are_no_scalar_constants_are_multiplied_before),
    cmocka_unit_test(doubles_keep_their_range),
};
TEST_MAIN(tests)

}  // namespace sum_of_squares_test

// SPDX-License-Identifier: Apache-2.0
//
// Products with what is computed while their results are stored, against the reference backend, which computes node by
// node; and that they are one kernel where nothing else reads what lies between, and only there.
//
// usage: product_tails_test PLUG-IN
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "bound_graph.h"
#include "graph/batch.h"
#include "testing.h"

namespace product_tails_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;
using Dims = std::vector<int64_t>;

namespace {

BackendUnderTest *tested = nullptr;

/// In [-1, 1), of f32.
std::vector<Tensor> operands(const std::vector<Dims> &shapes, DType dtype = DType::f32) {
  return assert_ok_value(conformance::make_operands(shapes, dtype, 700));
}

/// How many kernels a graph has. A library has products of its own, and of tails what it has.
struct Kernels {
  size_t count = 0;
  bool has_library = false;
};

void assert_kernels(const Kernels &kernels, size_t expected) {
  if (!kernels.has_library) assert_int_equal(kernels.count, expected);
}

/// How many kernels the graph is, and that all of its results are right.
Kernels check(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build, double limit = 1e-4) {
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
  const auto results = assert_ok_value(conformance::run_graph(tested->device, inputs, build));
  assert_int_equal(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(tensor::compare_close(results[i], expected[i], limit, limit));
  const auto graph = assert_ok_value(conformance::build_graph(inputs, build));
  const auto bound = assert_ok_value(conformance::BoundGraph::make(tested->device, graph));
  const std::string &report = bound->description().report_json;
  Kernels kernels;
  for (size_t at = report.find("\"kernel\":"); at != std::string::npos; ++kernels.count)
    at = report.find("\"kernel\":", at + 1);
  for (const char *library : {"\"kernel\":\"cublaslt", "\"kernel\":\"cudnn"})
    kernels.has_library = kernels.has_library || report.find(library) != std::string::npos;
  return kernels;
}

void bias_and_activation_need_no_kernel(void **) {
  for (const char *activation : {"relu", "gelu", "tanh", "sigmoid", "silu", "elu", "leaky_relu", "softplus"}) {
    for (const auto &[m, k, n] : {std::array<int64_t, 3>{5, 7, 3}, {33, 16, 12}, {70, 40, 68}, {1, 3, 1}}) {
      const Kernels kernels = check(operands({{m, k}, {k, n}, {n}}), [&](GraphBuilder &b, const Values &v) {
        return Values{b.op(activation, {b.add(b.matmul(v[0], v[1]), v[2])})};
      });
      assert_kernels(kernels, 1);
    }
  }
}

/// A NaN stays one, behind a matmul and behind a convolution of one pixel, whoever computes them.
void relu_keeps_nan(void **) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const auto &[m, k, n] : {std::array<int64_t, 3>{5, 7, 3}, {64, 16, 32}, {72, 40, 128}}) {
      for (const bool is_convolution : {false, true}) {
        std::vector<Tensor> inputs = operands(is_convolution ? std::vector<Dims>{{m, 1, 1, k}, {1, 1, k, n}, {n}}
                                                             : std::vector<Dims>{{m, k}, {k, n}, {n}},
                                              dtype);
        tensor::visit_dtype(dtype, [&, row = m / 2 * k]<typename T>(T) {
          inputs[0].mutable_data_as<T>()[row + 1] = static_cast<T>(NAN);
          inputs[2].mutable_data_as<T>()[1] = static_cast<T>(NAN);
        });
        const auto build = [&](GraphBuilder &b, const Values &v) {
          return Values{b.unary("relu", b.add(b.op(is_convolution ? "conv2d" : "matmul", {v[0], v[1]}), v[2]))};
        };
        (void)check(inputs, build, dtype == DType::f32 ? 1e-4 : 0x1p-6);
      }
    }
  }
}

/// The nearest quarters: sums of few products of these are exact in 16 bits, so all who round them get the same.
void round_to_quarters(std::vector<Tensor> &inputs) {
  for (Tensor &input : inputs) {
    tensor::visit_dtype(input.dtype(), [&]<typename T>(T) {
      T *const elements = input.mutable_data_as<T>();
      for (int64_t i = 0; i < input.elements(); ++i)
        elements[i] = static_cast<T>(std::round(4 * static_cast<float>(elements[i])) / 4);
    });
  }
}

/// While a network learns, the gradient reads what gelu is computed of. A NaN stays one in both, whoever stores them.
void gelu_and_its_operand_are_stored(void **) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const auto &[m, k, n] : {std::array<int64_t, 3>{5, 7, 3}, {64, 16, 32}, {72, 40, 128}}) {
      for (const bool has_nan : {false, true}) {
        std::vector<Tensor> inputs = operands({{m, k}, {k, n}, {n}, {m, k}, {n, k}}, dtype);
        // Where the gradient is steep, one rounding of what it is computed of is several of its own.
        if (dtype != DType::f32) round_to_quarters(inputs);
        tensor::visit_dtype(dtype, [&, row = m / 2 * k]<typename T>(T) {
          if (has_nan) inputs[0].mutable_data_as<T>()[row + 1] = static_cast<T>(NAN);
        });
        const auto build = [&](GraphBuilder &b, const Values &v) {
          const graph::Attributes approximate = {{"approximate", true}};
          const ValueId u = b.add(b.matmul(v[0], v[1]), v[2]), dy = b.matmul(v[3], v[4], false, true);
          return Values{b.op("gelu", {u}, approximate), b.op("gelu_gradient", {dy, u}, approximate), u};
        };
        (void)check(inputs, build, dtype == DType::f32 ? 1e-4 : 0x1p-7);
      }
    }
  }
}

/// Few results of long sums: parts are added by another kernel, which has the tail.
void sums_in_parts_have_it_behind_the_last(void **) {
  const Kernels kernels = check(operands({{3, 900}, {900, 5}, {5}}), [](GraphBuilder &b, const Values &v) {
    return Values{b.unary("relu", b.add(b.matmul(v[0], v[1]), v[2]))};
  });
  assert_kernels(kernels, 1);
}

void operands_lie_as_results_do_or_repeat(void **) {
  // A residual on the left and on the right of a difference, a factor for all, batches.
  const Kernels kernels =
      check(operands({{2, 9, 6}, {6, 10}, {2, 9, 10}, {}, {1, 1, 10}}), [](GraphBuilder &b, const Values &v) {
        const ValueId scaled = b.mul(b.matmul(v[0], v[1]), v[3]);
        return Values{b.sub(v[2], b.sub(scaled, v[4]))};
      });
  assert_kernels(kernels, 1);
  const Kernels batched = check(operands({{4, 3, 6}, {4, 6, 8}, {4, 3, 8}, {8}}), [](GraphBuilder &b, const Values &v) {
    return Values{b.add(b.add(b.matmul(v[0], v[1]), v[2]), v[3])};
  });
  assert_kernels(batched, 1);
}

/// The gradient of an activation behind the product that makes dy.
void gradients_of_activations_need_no_kernel(void **) {
  for (const char *gradient : {"relu_gradient", "gelu_gradient", "tanh_gradient", "sigmoid_gradient"}) {
    const Kernels kernels = check(operands({{17, 9}, {12, 9}, {17, 12}}), [&](GraphBuilder &b, const Values &v) {
      return Values{b.op(gradient, {b.matmul(v[0], v[1], false, true), v[2]})};
    });
    assert_kernels(kernels, 1);
  }
}

void convolutions_have_tails(void **) {
  struct Shape {
    Dims x, kernel, y;
    int64_t stride, groups;
  };
  for (const Shape &shape :
       {Shape{{2, 6, 5, 4}, {3, 3, 4, 8}, {2, 6, 5, 8}, 1, 1}, Shape{{2, 7, 5, 3}, {3, 3, 3, 5}, {2, 4, 3, 5}, 2, 1},
        Shape{{3, 4, 4, 6}, {1, 1, 6, 12}, {3, 4, 4, 12}, 1, 1},
        Shape{{2, 5, 5, 32}, {3, 3, 16, 32}, {2, 5, 5, 32}, 1, 2}}) {
    const graph::Attributes attributes = {{"stride", Dims{shape.stride, shape.stride}}, {"groups", shape.groups}};
    const Dims filters = {shape.kernel[3]}, channels = {shape.x[3]};
    Kernels kernels = check(operands({shape.x, shape.kernel, filters, shape.y}), [&](GraphBuilder &b, const Values &v) {
      const ValueId y = b.op("conv2d", {v[0], v[1]}, attributes);
      return Values{b.unary("relu", b.add(b.add(y, v[2]), v[3]))};
    });
    assert_kernels(kernels, 1);
    // With a bias of its own, too.
    kernels = check(operands({shape.x, shape.kernel, filters, shape.y}), [&](GraphBuilder &b, const Values &v) {
      return Values{b.unary("relu", b.op("conv2d", {v[0], v[1], v[2]}, attributes))};
    });
    assert_kernels(kernels, 1);
    graph::Attributes gradient = attributes;
    gradient["input_dims"] = graph::to_dims(shape.x);
    kernels = check(operands({shape.y, shape.kernel, shape.x, channels}), [&](GraphBuilder &b, const Values &v) {
      const ValueId dx = b.op("conv2d_input_gradient", {v[0], v[1]}, gradient);
      return Values{b.mul(b.op("relu_gradient", {b.add(dx, v[2]), v[2]}), v[3])};
    });
    assert_kernels(kernels, 1);
  }
}

/// Values of 16 bits are rounded as if they were stored, so results are those of the reference backend but for sums in
/// another order, which may round to a neighbour.
void sixteen_bits_are_rounded_on_the_way(void **) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto build = [&](GraphBuilder &b, const Values &v) {
      const ValueId y = b.add(b.cast(b.matmul(v[0], v[1]), DType::f32), b.cast(v[2], DType::f32));
      return Values{b.cast(b.unary("relu", y), dtype)};
    };
    // A cast of the bias is a kernel of its own: tails read what lies in memory.
    assert_kernels(check(operands({{20, 24}, {24, 16}, {16}}, dtype), build, 0x1p-7), 2);
  }
  const Kernels widened = check(
      operands({{20, 24}, {24, 16}}, DType::bf16),
      [](GraphBuilder &b, const Values &v) { return Values{b.cast(b.matmul(v[0], v[1]), DType::f32)}; }, 0x1p-7);
  assert_kernels(widened, 1);
}

void what_is_read_elsewhere_is_stored(void **) {
  const std::vector<Tensor> inputs = operands({{6, 5}, {5, 8}, {8}});
  // The plain product is a result; the sum before the activation is.
  assert_kernels(check(inputs,
                       [](GraphBuilder &b, const Values &v) {
                         const ValueId y = b.matmul(v[0], v[1]);
                         return Values{y, b.unary("relu", b.add(y, v[2]))};
                       }),
                 2);
  assert_kernels(check(inputs,
                       [](GraphBuilder &b, const Values &v) {
                         const ValueId y = b.add(b.matmul(v[0], v[1]), v[2]);
                         return Values{y, b.unary("relu", y)};
                       }),
                 2);
}

/// Trees that are no chains, operands that repeat along rows, products of f64.
void what_is_no_chain_stays_apart(void **) {
  assert_kernels(check(operands({{6, 5}, {5, 8}, {8}, {6, 8}}),
                       [](GraphBuilder &b, const Values &v) {
                         return Values{b.mul(b.matmul(v[0], v[1]), b.unary("tanh", b.add(v[3], v[2])))};
                       }),
                 2);
  assert_kernels(check(operands({{6, 5}, {5, 8}, {6, 1}}),
                       [](GraphBuilder &b, const Values &v) { return Values{b.add(b.matmul(v[0], v[1]), v[2])}; }),
                 2);
  assert_kernels(check(operands({{6, 5}, {5, 8}, {8}}, DType::f64),
                       [](GraphBuilder &b, const Values &v) { return Values{b.add(b.matmul(v[0], v[1]), v[2])}; }),
                 2);
}

/// Inside of a tail nothing is stored that a step further behind could read again.
void what_is_read_twice_stays_apart(void **) {
  const std::vector<Tensor> inputs = operands({{6, 5}, {5, 8}, {8}});
  assert_kernels(check(inputs,
                       [](GraphBuilder &b, const Values &v) {
                         const ValueId y = b.matmul(v[0], v[1]);
                         return Values{b.mul(b.unary("tanh", y), y)};
                       }),
                 2);
  assert_kernels(check(inputs,
                       [](GraphBuilder &b, const Values &v) {
                         const ValueId y = b.add(b.matmul(v[0], v[1]), v[2]);
                         return Values{b.mul(b.unary("sigmoid", y), y)};
                       }),
                 2);
}

/// x + x · w in place of x would change what other blocks have to read.
void a_factor_is_not_overwritten(void **) {
  const int64_t size = 64;
  const Kernels kernels = check(
      operands({{size, size}, {size, size}}),
      [](GraphBuilder &b, const Values &v) {
        ValueId x = b.unary("tanh", v[0]);
        for (int i = 0; i < 3; ++i)
          x = b.unary("tanh", b.add(x, b.matmul(x, v[1])));
        return Values{x};
      },
      1e-3);
  assert_kernels(kernels, 4);
}

/// Writes entry "w" with what `build` makes of the entry and x; that and the graph's results have to be right.
void check_entry(ValueId (*build)(GraphBuilder &b, ValueId w, ValueId x)) {
  const int64_t size = 48;
  backend::StateTable table;
  const int32_t arena = table.add_arena("weights");
  assert_ok(table.add({.name = "w", .arena = arena, .dims = {size, size}, .storage_bytes = size * size * 4}));
  const std::vector<Tensor> inputs = operands({{size, size}, {size, size}});
  std::vector<std::vector<Tensor>> results;
  for (const backend::DeviceRef &device : {tested->device, tested->oracle}) {
    auto arenas = assert_ok_value(conformance::Arenas::make(device, table));
    assert_ok(arenas.write("w", inputs[0]));
    GraphBuilder b;
    const ValueId w = b.state_read("w", DType::f32, {size, size}), x = b.input("x", DType::f32, {size, size});
    b.state_write(build(b, w, x), "w");
    const auto bound =
        assert_ok_value(conformance::BoundGraph::make(device, assert_ok_value(b.finish_graph()), {}, &arenas));
    results.push_back(assert_ok_value(bound->run({inputs[1]})));
    results.back().push_back(assert_ok_value(arenas.read("w")));
  }
  assert_int_equal(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i)
    assert_ok(tensor::compare_close(results[0][i], results[1][i], 1e-4, 1e-4));
}

void an_entry_is_not_written_while_it_is_read(void **) {
  check_entry([](GraphBuilder &b, ValueId w, ValueId x) { return b.unary("tanh", b.add(b.matmul(x, w), x)); });
}

/// Nor by what would be computed in the memory of the tail's result.
void an_entry_is_not_written_by_what_follows_a_tail(void **) {
  check_entry([](GraphBuilder &b, ValueId w, ValueId x) {
    const ValueId y = b.unary("tanh", b.add(b.matmul(x, w), x));
    b.set_result("sum", b.reduce_sum(y, {0}));
    return b.neg(y);
  });
}

void no_rows_are_legal(void **) {
  (void)check(operands({{0, 5}, {5, 8}, {8}}), [](GraphBuilder &b, const Values &v) {
    return Values{b.unary("relu", b.add(b.matmul(v[0], v[1]), v[2]))};
  });
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(bias_and_activation_need_no_kernel),
    cmocka_unit_test(relu_keeps_nan),
    cmocka_unit_test(gelu_and_its_operand_are_stored),
    cmocka_unit_test(sums_in_parts_have_it_behind_the_last),
    cmocka_unit_test(operands_lie_as_results_do_or_repeat),
    cmocka_unit_test(gradients_of_activations_need_no_kernel),
    cmocka_unit_test(convolutions_have_tails),
    cmocka_unit_test(sixteen_bits_are_rounded_on_the_way),
    cmocka_unit_test(what_is_read_elsewhere_is_stored),
    cmocka_unit_test(what_is_no_chain_stays_apart),
    cmocka_unit_test(what_is_read_twice_stays_apart),
    cmocka_unit_test(a_factor_is_not_overwritten),
    cmocka_unit_test(an_entry_is_not_written_while_it_is_read),
    cmocka_unit_test(an_entry_is_not_written_by_what_follows_a_tail),
    cmocka_unit_test(no_rows_are_legal),
};

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  BackendUnderTest backend = std::move(opened).value();
  tested = &backend;
  return cmocka_run_group_tests(kTests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace product_tails_test

// SPDX-License-Identifier: Apache-2.0
//
// Random loops: bodies of elementwise nodes with broadcasting, slices, concats, products and reductions, whose states
// may be swapped, passed on or one value, and whose results are stacked along any axis: what a backend computes
// together must be what the reference backend computes one by one.
//
// usage: backend_loops_test BACKEND
#include <string>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "base/random/philox.h"
#include "testing.h"

namespace backend_loops_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using graph::Dim;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;

namespace {

BackendUnderTest *tested = nullptr;

constexpr int64_t kRows = 5, kColumns = 6, kParts = 3, kLength = 4;

constexpr const char *kUnary[] = {"neg", "abs", "tanh", "sigmoid", "relu"};
constexpr const char *kBinary[] = {"add", "sub", "mul", "maximum", "minimum"};

/// A body is a function of its number.
class BodyBuilder {
 public:
  BodyBuilder(GraphBuilder &builder, uint64_t number)
      : builder_(builder), random_(base::RandomKey::of(11, number, 0)) {}

  /// Of parameters [rows, columns], [rows, parts * columns], and others that are broadcast to the first.
  Values build(const Values &narrow, const Values &wide, const Values &broadcast, ValueId kernel, size_t states,
               size_t stacked, int32_t nodes) {
    narrow_ = narrow;
    wide_ = wide;
    broadcast_ = broadcast;
    kernel_ = kernel;
    for (int32_t i = 0; i < nodes; ++i)
      add_node();
    Values results;
    // Any value may be a state, also one that was a state before; bounded, as loops feed it back.
    for (size_t i = 0; i < states; ++i)
      results.push_back(random_.below(3) == 0 ? any(narrow) : builder_.unary("tanh", any(narrow_)));
    if (states > 1 && random_.below(5) == 0) results[1] = results[0];
    for (size_t i = 0; i < stacked; ++i)
      results.push_back(random_.below(3) == 0 ? any(wide_) : any(narrow_));
    return results;
  }

  /// Of what build() made.
  ValueId any_wide() { return any(wide_); }

 private:
  ValueId any(const Values &values) {
    const auto count = static_cast<int64_t>(values.size());
    const int64_t back = random_.below(random_.below(2) == 0 ? std::min<int64_t>(count, 2) : count);
    return values[static_cast<size_t>(count - 1 - back)];
  }
  template <size_t N>
  const char *one_of(const char *const (&names)[N]) {
    return names[random_.below(static_cast<int64_t>(N))];
  }

  void add_node() {
    switch (random_.below(12)) {
      case 0:
      case 1:
        narrow_.push_back(builder_.unary(one_of(kUnary), any(narrow_)));
        break;
      case 2:
        narrow_.push_back(builder_.op(one_of(kBinary), {any(narrow_), any(broadcast_)}));
        break;
      case 3:
      case 4: {
        const ValueId whole = any(wide_);
        const int64_t part = random_.below(kParts);
        narrow_.push_back(builder_.slice(whole, {Dim(0), Dim(part * kColumns)}, {Dim(kRows), Dim(kColumns)}));
        break;
      }
      case 5:
        wide_.push_back(builder_.op(one_of(kBinary), {any(wide_), any(wide_)}));
        break;
      case 6:
        wide_.push_back(builder_.concat({any(narrow_), any(narrow_), any(narrow_)}, 1));
        break;
      case 7:
        wide_.push_back(builder_.unary("tanh", builder_.matmul(any(narrow_), kernel_)));
        break;
      case 8: {
        const ValueId row =
            builder_.op("reduce_max", {any(narrow_)}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}});
        broadcast_.push_back(builder_.unary("tanh", row));
        break;
      }
      case 9: {
        const ValueId is_less = builder_.op("less", {any(narrow_), any(broadcast_)});
        narrow_.push_back(builder_.select(is_less, any(narrow_), any(narrow_)));
        break;
      }
      case 10: {
        const ValueId lifted = builder_.reshape(any(narrow_), {Dim(kRows), Dim(1), Dim(kColumns)});
        narrow_.push_back(builder_.reshape(builder_.unary("neg", lifted), {Dim(kRows), Dim(kColumns)}));
        break;
      }
      default:
        narrow_.push_back(builder_.op(one_of(kBinary), {any(narrow_), any(narrow_)}));
    }
  }

  GraphBuilder &builder_;
  base::RandomStream random_;
  Values narrow_, wide_, broadcast_;
  ValueId kernel_ = graph::kNoValue;
};

std::vector<int64_t> with_length(std::vector<int64_t> dims, int64_t axis) {
  dims.insert(dims.begin() + axis, kLength);
  return dims;
}

Tensor operand(DType dtype, std::vector<int64_t> dims, uint64_t seed) {
  conformance::Operand made;
  made.dtype = dtype;
  made.dims = std::move(dims);
  return assert_ok_value(conformance::make_operand(made, seed));
}

struct Loops {
  DType dtype = DType::f32;
  int64_t axis = 1;
  bool is_reverse = false;
  /// Is the second state a product of what the iteration has made, which one node of the next one reads?
  bool ends_with_product = false;
  int32_t nodes = 12;
  uint64_t first = 0, count = 60;
  double tolerance = 1e-4;
};

Values body_of(const Loops &loops, uint64_t number, GraphBuilder &in, const Values &at, const Values &captured) {
  const auto product = [&](ValueId wide) {
    const bool is_transposed = number % 2 == 1;
    return in.matmul(wide, captured[is_transposed ? 5 : 4], false, is_transposed);
  };
  BodyBuilder body(in, number);
  const ValueId second = loops.ends_with_product ? in.add(at[1], at[2]) : at[1];
  // What it multiplies may be made long before the end.
  const bool is_early = loops.ends_with_product && number % 3 == 0;
  const ValueId early = is_early ? product(in.unary("tanh", at[3])) : graph::kNoValue;
  Values results = body.build({at[0], second, at[2]}, {captured[0], at[3]}, {captured[1], captured[2], at[4]},
                              captured[3], 2, 3, loops.nodes);
  if (loops.ends_with_product) results[1] = is_early ? early : product(body.any_wide());
  return results;
}

void check(const Loops &loops) {
  if (!tested->device->backend().runs_regions()) test_skip();
  const auto made = [&](std::vector<int64_t> dims, uint64_t seed) {
    return operand(loops.dtype, std::move(dims), seed);
  };
  const std::vector<int64_t> narrow = {kRows, kColumns}, wide = {kRows, kParts * kColumns};
  const std::vector<Tensor> inputs = {made(narrow, 1),
                                      made(narrow, 2),
                                      made(with_length(narrow, loops.axis), 3),
                                      made(with_length(wide, loops.axis), 4),
                                      made(with_length({kRows, 1}, loops.axis), 5),
                                      made(wide, 6),
                                      made({kColumns}, 7),
                                      made({}, 8),
                                      made({kColumns, kParts * kColumns}, 9),
                                      made({kParts * kColumns, kColumns}, 10),
                                      made({kColumns, kParts * kColumns}, 11)};
  std::vector<uint64_t> bodies;  // by result
  const auto build = [&](GraphBuilder &builder, const Values &values) {
    const Values captured(values.begin() + 5, values.end());
    Values results;
    bodies.clear();
    for (uint64_t number = loops.first; number < loops.first + loops.count; ++number) {
      const Values of_loop = builder.scan(
          {values[0], values[1]}, {values[2], values[3], values[4]},
          [&](GraphBuilder &in, const Values &at) { return body_of(loops, number, in, at, captured); }, loops.axis,
          loops.is_reverse);
      results.insert(results.end(), of_loop.begin(), of_loop.end());
      bodies.resize(results.size(), number);
    }
    return results;
  };
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
  const auto results = assert_ok_value(conformance::run_graph(tested->device, inputs, build));
  assert_int_equal(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const base::Status status = tensor::compare_close(results[i], expected[i], loops.tolerance, loops.tolerance);
    if (status.ok()) continue;
    print_error("result %d of loop %d of %d nodes: %s\n", static_cast<int>(i % 5), static_cast<int>(bodies[i]),
                loops.nodes, status.to_string().c_str());
    _fail(__FILE__, __LINE__);
  }
}

void along_the_middle(void **) { check({}); }
void along_the_first_axis(void **) { check({.axis = 0, .first = 100}); }
void along_the_last_axis(void **) { check({.axis = 2, .first = 200, .count = 30}); }
void backwards(void **) { check({.is_reverse = true, .first = 300}); }
void with_bodies_larger_than_a_program(void **) { check({.nodes = 120, .first = 400, .count = 20}); }
void of_halves(void **) {
  check({.dtype = DType::f16, .nodes = 8, .first = 600, .count = 30, .tolerance = 1e-2});
  check({.dtype = DType::bf16, .nodes = 8, .first = 700, .count = 30, .tolerance = 6e-2});
}
void of_doubles(void **) { check({.dtype = DType::f64, .first = 500, .count = 20, .tolerance = 1e-9}); }
void that_end_with_a_product(void **) {
  check({.ends_with_product = true, .nodes = 3, .first = 800});
  check({.is_reverse = true, .ends_with_product = true, .nodes = 6, .first = 900, .count = 40});
  check({.dtype = DType::bf16, .ends_with_product = true, .nodes = 3, .first = 1000, .count = 20, .tolerance = 6e-2});
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(along_the_middle),
    cmocka_unit_test(along_the_first_axis),
    cmocka_unit_test(along_the_last_axis),
    cmocka_unit_test(backwards),
    cmocka_unit_test(with_bodies_larger_than_a_program),
    cmocka_unit_test(of_halves),
    cmocka_unit_test(of_doubles),
    cmocka_unit_test(that_end_with_a_product),
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

}  // namespace backend_loops_test

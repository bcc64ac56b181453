// SPDX-License-Identifier: Apache-2.0
//
// Random trees of elementwise nodes, with broadcasting, booleans, casts and values that several nodes or results share:
// what a backend computes together must be what the reference backend computes one by one.
//
// usage: backend_trees_test BACKEND
#include <string>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "base/random/philox.h"
#include "testing.h"

namespace backend_trees_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;

namespace {

BackendUnderTest *tested = nullptr;

constexpr const char *kUnary[] = {"neg", "abs", "tanh", "sigmoid", "relu", "square", "gelu", "softplus"};
constexpr const char *kBinary[] = {"add", "sub", "mul", "maximum", "minimum"};
constexpr const char *kComparison[] = {"less", "greater_equal", "not_equal"};

/// A tree is a function of its number: which nodes, of which values.
class TreeBuilder {
 public:
  TreeBuilder(GraphBuilder &builder, Values inputs, uint64_t number)
      : builder_(builder), values_(std::move(inputs)), random_(base::RandomKey::of(7, number, 0)) {}

  Values build(int32_t nodes) {
    Values results;
    for (int32_t i = 0; i < nodes; ++i) {
      values_.push_back(node());
      // Some values are wanted although others are made of them.
      if (random_.below(6) == 0) results.push_back(values_.back());
    }
    results.push_back(values_.back());
    return results;
  }

 private:
  template <size_t N>
  const char *one_of(const char *const (&names)[N]) {
    return names[random_.below(static_cast<int64_t>(N))];
  }
  /// The latest values more often than others, so that trees grow deep.
  ValueId any() {
    const auto count = static_cast<int64_t>(values_.size());
    const int64_t back = random_.below(random_.below(2) == 0 ? std::min<int64_t>(count, 2) : count);
    return values_[static_cast<size_t>(count - 1 - back)];
  }
  ValueId node() {
    switch (random_.below(10)) {
      case 0:
      case 1:
      case 2:
        return builder_.op(one_of(kUnary), {any()});
      case 3: {
        const ValueId condition = builder_.op(one_of(kComparison), {any(), any()});
        return builder_.select(condition, any(), any());
      }
      case 4: {
        const ValueId both =
            builder_.op("logical_and", {builder_.op("less", {any(), any()}), builder_.cast(any(), DType::boolean)});
        return builder_.cast(both, DType::f32);
      }
      case 5: {
        const ValueId x = any();
        return builder_.op("tanh_gradient", {x, builder_.op("tanh", {x})});
      }
      case 6:
        return builder_.op("mul", {any(), builder_.constant(0.5, DType::f32)});
      default:
        return builder_.op(one_of(kBinary), {any(), any()});
    }
  }

  GraphBuilder &builder_;
  Values values_;
  base::RandomStream random_;
};

std::vector<Tensor> make_inputs(int64_t rows, int64_t columns) {
  const std::vector<std::vector<int64_t>> shapes = {{rows, columns}, {columns}, {rows, 1}, {}, {rows, columns}, {1, 1}};
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    conformance::Operand operand;
    operand.dtype = DType::f32;
    operand.dims = shapes[i];
    inputs.push_back(assert_ok_value(conformance::make_operand(operand, 300 + i)));
  }
  return inputs;
}

/// All trees are in one graph: a backend that compiles kernels begins to compile once.
void check_trees(int64_t rows, int64_t columns, int32_t nodes, uint64_t first, uint64_t count) {
  const std::vector<Tensor> inputs = make_inputs(rows, columns);
  std::vector<uint64_t> trees;  // by result
  const auto build = [&](GraphBuilder &builder, const Values &values) {
    Values results;
    trees.clear();
    for (uint64_t number = first; number < first + count; ++number) {
      const Values of_tree = TreeBuilder(builder, values, number).build(nodes);
      results.insert(results.end(), of_tree.begin(), of_tree.end());
      trees.resize(results.size(), number);
    }
    return results;
  };
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
  const auto results = assert_ok_value(conformance::run_graph(tested->device, inputs, build));
  assert_int_equal(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const base::Status status = tensor::compare_close(results[i], expected[i], 1e-4, 1e-4);
    if (status.ok()) continue;
    print_error("tree %d of %d nodes: %s\n", static_cast<int>(trees[i]), nodes, status.to_string().c_str());
    _fail(__FILE__, __LINE__);
  }
}

void small_trees(void **) { check_trees(5, 7, 4, 0, 200); }
void trees_larger_than_a_program(void **) { check_trees(3, 9, 40, 1000, 40); }
void several_blocks(void **) { check_trees(67, 33, 8, 2000, 20); }
void no_elements(void **) { check_trees(0, 7, 6, 3000, 5); }

void bytes_become_floats(void **) {
  conformance::Operand operand;
  operand.dtype = DType::u8;
  operand.dims = {13, 3};
  const std::vector<Tensor> inputs = {assert_ok_value(conformance::make_operand(operand, 5))};
  const auto build = [](GraphBuilder &b, const Values &values) {
    const ValueId scaled = b.op("mul", {b.cast(values[0], DType::f32), b.constant(1.0 / 255, DType::f32)});
    return Values{b.op("sub", {scaled, b.constant(0.5, DType::f32)})};
  };
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
  const auto results = assert_ok_value(conformance::run_graph(tested->device, inputs, build));
  assert_ok(tensor::compare_close(results[0], expected[0], 1e-6, 1e-6));
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(small_trees), cmocka_unit_test(trees_larger_than_a_program), cmocka_unit_test(several_blocks),
    cmocka_unit_test(no_elements), cmocka_unit_test(bytes_become_floats),
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

}  // namespace backend_trees_test

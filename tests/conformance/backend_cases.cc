// SPDX-License-Identifier: Apache-2.0
#include "backend_cases.h"

#include <cmath>
#include <utility>

#include "base/random/philox.h"
#include "base/text.h"

namespace tutti::impl::conformance {

using base::Result;
using graph::GraphBuilder;
using tensor::Tensor;

Result<Tensor> make_operand(const Operand &operand, uint64_t seed) {
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(operand.dims));
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(operand.dtype, shape));
  base::RandomStream stream(base::RandomKey::of(seed, 1, 2));
  tensor::visit_dtype(operand.dtype, [&]<typename T>(T) {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      double value = operand.low + (operand.high - operand.low) * base::uniform_float(stream.next());
      if (operand.is_whole) value = std::floor(value);
      tensor.mutable_data_as<T>()[i] = static_cast<T>(static_cast<float>(value));
    }
  });
  return tensor;
}

Result<std::vector<Tensor>> make_operands(const std::vector<std::vector<int64_t>> &shapes, DType dtype,
                                          uint64_t first_seed) {
  std::vector<Tensor> made;
  for (const std::vector<int64_t> &dims : shapes) {
    Operand operand;
    operand.dtype = dtype;
    operand.dims = dims;
    TUTTI_ASSIGN(Tensor tensor, make_operand(operand, first_seed + made.size()));
    made.push_back(std::move(tensor));
  }
  return made;
}

std::string OpCase::describe() const {
  std::string text = op + "(";
  for (const Operand &input : inputs)
    text += base::concat(&input == inputs.data() ? "" : ", ", input.dtype, input.dims);
  text += ")";
  for (const auto &[name, value] : attributes)
    text += " " + name + "=" + graph::to_string(value);
  return text;
}

namespace {

const DType kFloats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
const ShapeDims kShapes[] = {{}, {1}, {0, 3}, {7}, {3, 5}, {2, 129}, {4, 1, 33}};
const std::pair<ShapeDims, ShapeDims> kPairs[] = {
    {{}, {}},         {{1}, {5}},          {{7}, {7}},    {{3, 5}, {5}},       {{3, 1}, {1, 4}},
    {{0, 4}, {4}},    {{2, 3, 4}, {3, 1}}, {{5}, {}},     {{2, 1, 3}, {4, 1}}, {{33, 65}, {33, 65}},
    {{33, 65}, {65}}, {{}, {3, 3}},        {{1, 1}, {1}},
};

void add_unary(std::vector<OpCase> &cases) {
  for (const DType dtype : kFloats) {
    for (const ShapeDims &shape : kShapes) {
      for (const char *op : {"identity", "stop_gradient", "neg",   "abs",     "sign",  "exp",  "expm1",    "square",
                             "sin",      "cos",           "tanh",  "sigmoid", "relu",  "gelu", "silu",     "softplus",
                             "elu",      "leaky_relu",    "floor", "ceil",    "round", "erf",  "is_finite"})
        cases.push_back({op, {{dtype, shape}}});
      for (const char *op : {"log", "log1p", "sqrt", "rsqrt", "reciprocal"})
        cases.push_back({op, {positive(dtype, shape)}});
      for (const char *op : {"arc_sine", "arc_cosine"})
        cases.push_back({op, {{dtype, shape, -1, 1}}});
      cases.push_back({"tangent", {{dtype, shape, -1.4, 1.4}}});
      cases.push_back({"arc_tangent", {{dtype, shape, -9, 9}}});
      cases.push_back({"gelu", {{dtype, shape}}, {{"approximate", true}}});
      cases.push_back({"elu", {{dtype, shape}}, {{"alpha", 0.3}}});
      cases.push_back({"leaky_relu", {{dtype, shape}}, {{"alpha", 0.3}}});
      for (const char *op : {"relu_gradient", "sigmoid_gradient", "tanh_gradient", "gelu_gradient"})
        cases.push_back({op, {{dtype, shape}, {dtype, shape, -0.9, 0.9}}});
      cases.push_back({"gelu_gradient", {{dtype, shape}, {dtype, shape}}, {{"approximate", true}}});
      cases.push_back({"all_finite", {{dtype, shape}}});
    }
  }
  for (const DType dtype : {DType::i32, DType::i64}) {
    for (const char *op : {"identity", "neg", "abs", "sign", "square", "relu"})
      cases.push_back({op, {whole(dtype, {3, 7}, -9, 9)}});
  }
  cases.push_back({"logical_not", {whole(DType::boolean, {3, 7}, 0, 2)}});
}

void add_casts(std::vector<OpCase> &cases) {
  const DType all[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                       DType::i32, DType::i64, DType::u8,  DType::boolean};
  for (const DType from : all) {
    for (const DType to : all) {
      for (const ShapeDims &shape : {ShapeDims{0}, ShapeDims{33}})
        cases.push_back({"cast", {whole(from, shape, 0, 100)}, {{"dtype", to}}});
    }
  }
}

void add_binary(std::vector<OpCase> &cases) {
  for (const auto &[a, b] : kPairs) {
    for (const DType dtype : kFloats) {
      for (const char *op : {"add", "sub", "mul", "maximum", "minimum"})
        cases.push_back({op, {{dtype, a}, {dtype, b}}});
      for (const char *op : {"div", "pow", "mod", "floor_divide"})
        cases.push_back({op, {positive(dtype, a), positive(dtype, b)}});
      cases.push_back({"arc_tangent2", {{dtype, a}, {dtype, b}}});
      cases.push_back({"arc_tangent2", {whole(dtype, a, -2, 2), whole(dtype, b, -2, 2)}});
    }
    for (const DType dtype : {DType::i32, DType::i64}) {
      for (const char *op : {"add", "sub", "mul", "maximum", "minimum", "mod", "floor_divide"})
        cases.push_back({op, {whole(dtype, a, -9, 9), whole(dtype, b, -3, 4)}});
    }
    for (const DType dtype : {DType::f32, DType::i32, DType::i64}) {
      for (const char *op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
        cases.push_back({op, {whole(dtype, a, -2, 2), whole(dtype, b, -2, 2)}});
    }
    for (const char *op : {"logical_and", "logical_or", "logical_xor"})
      cases.push_back({op, {whole(DType::boolean, a, 0, 2), whole(DType::boolean, b, 0, 2)}});
    for (const DType dtype : {DType::f32, DType::i64})
      cases.push_back({"select", {whole(DType::boolean, b, 0, 2), whole(dtype, a, -9, 9), whole(dtype, {}, -9, 9)}});
  }
}

}  // namespace

std::vector<OpCase> elementwise_cases() {
  std::vector<OpCase> cases;
  add_unary(cases);
  add_casts(cases);
  add_binary(cases);
  return cases;
}

namespace {

/// With many ties, and its gradient with the indices that it gave.
std::vector<OpCase> top_k_cases() {
  const std::pair<ShapeDims, int64_t> kChosen[] = {{{1}, 1},         {{7}, 7},       {{0, 3}, 2},    {{5, 7}, 1},
                                                   {{2, 3, 65}, 65}, {{3, 129}, 17}, {{2, 700}, 40}, {{3, 1}, 1}};
  std::vector<OpCase> cases;
  for (const auto &[shape, k] : kChosen) {
    const graph::Attributes attributes{{"k", k}};
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i16, DType::i32,
                              DType::i64, DType::u8, DType::u16, DType::u32, DType::u64}) {
      const bool is_unsigned = dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32 || dtype == DType::u64;
      cases.push_back({"top_k", {whole(dtype, shape, is_unsigned ? 0 : -20, 50)}, attributes});
    }
    ShapeDims chosen = shape;
    chosen.back() = k;
    for (const DType dtype : kFloats) {
      OpCase backward{"top_k_gradient", {{dtype, shape}, {dtype, chosen}}, attributes};
      backward.build = [attributes](graph::GraphBuilder &b, const graph::GraphBuilder::Values &v) {
        const graph::ValueId indices = b.op_n("top_k", {v[0]}, attributes, 2)[1];
        return graph::GraphBuilder::Values{b.op("top_k_gradient", {v[1], indices}, {{"dims", b.dims(v[0])}})};
      };
      cases.push_back(backward);
    }
  }
  return cases;
}

/// Equal ones, of which the first counts, and one in a hundred NaN, which counts as better than any number.
void add_arg_reductions(std::vector<OpCase> &cases) {
  const std::pair<ShapeDims, int64_t> kChoices[] = {{{1}, 0},      {{5, 7}, 0},       {{5, 7}, 1},
                                                    {{0, 3}, 1},   {{2, 3, 65}, -1},  {{4, 1, 6}, 1},
                                                    {{3, 500}, 1}, {{130, 2, 70}, 0}, {{9, 130, 65}, 1}};
  for (const auto &[shape, axis] : kChoices) {
    const graph::Attributes attributes = {{"axis", axis}};
    for (const char *op : {"argmax", "argmin"}) {
      for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64})
        cases.push_back({op, {whole(dtype, shape, -3, 4)}, attributes});
      const auto of_nan = [=](graph::GraphBuilder &b, const graph::GraphBuilder::Values &inputs) {
        const graph::ValueId zero = b.constant(0.0, DType::f32);
        const graph::ValueId x = b.add(inputs[0], b.op("div", {zero, inputs[0]}));
        return graph::GraphBuilder::Values{b.op(op, {x}, attributes)};
      };
      cases.push_back({op, {whole(DType::f32, shape, -50, 50)}, {}, of_nan});
    }
  }
}

/// Of all elements, as norms of gradients are made of.
void add_sums_of_squares(std::vector<OpCase> &cases) {
  for (const auto &[shape, axes] : {std::pair<ShapeDims, std::vector<int64_t>>{{5, 300}, {1}},
                                    {{300, 7}, {0}},
                                    {{3, 40, 33}, {1}},
                                    {{2, 3, 4, 5}, {0, 2}},
                                    {{4, 0}, {1}},
                                    {{2000, 70}, {0}}}) {
    const auto build = [axes = axes](graph::GraphBuilder &b, const graph::GraphBuilder::Values &inputs) {
      return graph::GraphBuilder::Values{b.reduce_sum(b.unary("square", inputs[0]), axes)};
    };
    cases.push_back({"reduce_sum of squares", {{DType::f32, shape}}, {}, build});
  }
  for (const ShapeDims &shape : {ShapeDims{}, {1}, {7}, {0, 3}, {2, 300}, {3, 5, 2, 16}, {137, 768}}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const double factor : {1.0, 0.375}) {
        const auto build = [=](graph::GraphBuilder &b, const graph::GraphBuilder::Values &inputs) {
          const graph::ValueId x = factor == 1 ? inputs[0] : b.scale(inputs[0], factor);
          return graph::GraphBuilder::Values{b.reduce_sum(b.unary("square", x))};
        };
        cases.push_back({"reduce_sum of squares", {{dtype, shape}}, {}, build});
      }
    }
  }
}

}  // namespace

/// Sums in packs: of rows that share a column with others or not, of lines, along walks of one axis and of two.
void add_long_sums(std::vector<OpCase> &cases) {
  const std::pair<ShapeDims, std::vector<int64_t>> kSums[] = {
      {{137, 768}, {0}}, {{1000, 40}, {0}}, {{3, 50, 24}, {1}},     {{4, 33, 16}, {0, 1}},
      {{7, 1600}, {1}},  {{2100, 8}, {0}},  {{4, 9, 6, 8}, {0, 2}}, {{5, 3, 16}, {0, 2}}};
  for (const auto &[shape, axes] : kSums) {
    for (const DType dtype : kFloats) {
      for (const char *op : {"reduce_sum", "reduce_mean"})
        cases.push_back({op, {{dtype, shape}}, {{"axes", axes}, {"keep_dims", false}}});
    }
  }
}

std::vector<OpCase> reduction_cases() {
  std::vector<OpCase> cases;
  const std::pair<ShapeDims, std::vector<int64_t>> kReductions[] = {{{0, 3}, {0}},
                                                                    {{0, 3}, {1}},
                                                                    {{1}, {}},
                                                                    {{}, {}},
                                                                    {{5, 7}, {0}},
                                                                    {{5, 7}, {1}},
                                                                    {{3, 4, 5}, {0, 2}},
                                                                    {{3, 4, 5}, {1}},
                                                                    {{2, 300}, {}},
                                                                    {{129, 3}, {0}},
                                                                    {{2, 3, 4, 5}, {0, 1, 2}},
                                                                    {{2, 3}, {-1}},
                                                                    {{1, 1, 7}, {0, 1}}};
  for (const auto &[shape, axes] : kReductions) {
    for (const bool keep : {false, true}) {
      const graph::Attributes attributes{{"axes", axes}, {"keep_dims", keep}};
      for (const DType dtype : kFloats) {
        for (const char *op : {"reduce_sum", "reduce_max", "reduce_min"})
          cases.push_back({op, {{dtype, shape}}, attributes});
        cases.push_back({"reduce_prod", {{dtype, shape, 0.9, 1.1}}, attributes});
        if (shape != ShapeDims{0, 3}) cases.push_back({"reduce_mean", {{dtype, shape}}, attributes});
      }
      for (const DType dtype : {DType::i32, DType::i64}) {
        for (const char *op : {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"})
          cases.push_back({op, {whole(dtype, shape, -3, 4)}, attributes});
      }
    }
  }
  add_long_sums(cases);
  add_sums_of_squares(cases);
  add_arg_reductions(cases);
  const std::vector<OpCase> more = top_k_cases();
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

/// Rows of 9 that are added up by index, and then put in place of others; indices of some are out of range.
static std::vector<OpCase> row_update_cases(DType dtype) {
  struct Shape {
    int64_t count;
    ShapeDims row;
  };
  std::vector<OpCase> cases;
  for (const DType index : {DType::i32, DType::i64}) {
    for (const int64_t first : {int64_t{0}, int64_t{2}}) {
      for (const Shape &shape : {Shape{13, {5}}, Shape{1, {2, 3}}, Shape{0, {3}}, Shape{3000, {}}}) {
        ShapeDims rows = shape.row, table = shape.row;
        rows.insert(rows.begin(), shape.count);
        table.insert(table.begin(), 9);
        const graph::Attributes window{{"first", graph::Dims{first}}, {"count", graph::Dims{9}}};
        const std::vector<Operand> inputs{{dtype, rows}, whole(index, {shape.count}, -1, 13)};
        cases.push_back({"sum_rows", inputs, window});
        OpCase update{"row_update", inputs, window};
        update.inputs.push_back({dtype, table});
        update.build = [window](graph::GraphBuilder &b, const graph::GraphBuilder::Values &v) {
          const graph::GraphBuilder::Values merged = b.op_n("sum_rows", {v[0], v[1]}, window, 2);
          const graph::ValueId rows = b.add(b.op("rows_at", {v[2], merged[1]}), merged[0]);
          return graph::GraphBuilder::Values{rows, b.op("row_update", {v[2], rows, merged[1]})};
        };
        cases.push_back(update);
      }
    }
  }
  cases.push_back({"rows_at", {{dtype, {7, 3}}, whole(DType::i64, {20}, -2, 9)}});
  return cases;
}

namespace {

/// Lines next to each other, behind each other and one alone, also longer than a block of a GPU and of no elements.
void add_running(std::vector<OpCase> &cases) {
  const std::pair<ShapeDims, int64_t> kLines[] = {
      {{7}, 0},       {{1}, 0},    {{3, 5}, 1}, {{13, 6}, 1},    {{5, 19}, 0},     {{2, 300, 33}, 1}, {{3, 1, 4}, 1},
      {{2, 700}, -1}, {{0, 3}, 1}, {{3, 0}, 1}, {{4, 3, 90}, 0}, {{17, 2, 2}, -1}, {{9, 3000}, 0}};
  for (const auto &[shape, axis] : kLines) {
    for (const bool exclusive : {false, true}) {
      for (const bool backward : {false, true}) {
        const graph::Attributes attributes = {{"axis", axis}, {"exclusive", exclusive}, {"backward", backward}};
        for (const DType dtype : kFloats) {
          cases.push_back({"running_sum", {{dtype, shape}}, attributes});
          cases.push_back({"running_product", {{dtype, shape, 0.98, 1.02}}, attributes});
          cases.push_back({"running_product_gradient", {{dtype, shape}, {dtype, shape, 0.9, 1.05}}, attributes});
          // Zeros, from which on products are 0.
          cases.push_back({"running_product_gradient", {{dtype, shape}, whole(dtype, shape, 0, 3)}, attributes});
        }
        for (const DType dtype : {DType::i8, DType::i32, DType::i64, DType::u64}) {
          cases.push_back({"running_sum", {whole(dtype, shape, 0, 9)}, attributes});
          cases.push_back({"running_product", {whole(dtype, shape, 1, 4)}, attributes});
        }
      }
    }
  }
}

/// Rows that are named several times, or not at all.
void add_merged_rows(std::vector<OpCase> &cases) {
  const auto numbers = [](DType dtype, ShapeDims dims) { return whole(dtype, std::move(dims), 0, 9); };
  for (const char *mode : {"add", "maximum", "replace"}) {
    const graph::Attributes attributes = {{"mode", std::string(mode)}};
    for (const DType index : {DType::i32, DType::i64}) {
      for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
        const auto add = [&](const ShapeDims &table, int64_t count) {
          ShapeDims updates = table;
          updates[0] = count;
          const Operand indices = whole(index, {count}, 0, static_cast<double>(table[0]));
          cases.push_back({"merge_rows", {numbers(dtype, table), indices, numbers(dtype, updates)}, attributes});
        };
        add({5, 3}, 9), add({7}, 4), add({1, 2, 5}, 3), add({300, 2}, 700), add({4, 33}, 0), add({6, 0}, 3);
      }
    }
    cases.push_back(
        {"merge_rows", {{DType::f32, {40, 65}}, whole(DType::i64, {90}, 0, 40), {DType::f32, {90, 65}}}, attributes});
    const graph::Attributes of_truth = {{"mode", std::string("replace")}};
    const Operand bits = whole(DType::boolean, {6, 2}, 0, 2);
    cases.push_back({"merge_rows", {bits, whole(DType::i32, {6}, 0, 6), bits}, of_truth});
  }
}

/// Larger, smaller, one axis alone, one pixel, few channels and many.
void add_interpolations(std::vector<OpCase> &cases) {
  const std::pair<ShapeDims, std::vector<int64_t>> kSizes[] = {
      {{2, 3, 4, 5}, {6, 8}},  {{1, 8, 8, 3}, {3, 5}}, {{2, 5, 7, 1}, {5, 9}},
      {{1, 4, 6, 33}, {9, 6}}, {{3, 1, 1, 2}, {2, 3}}, {{1, 2, 2, 17}, {1, 1}},
      {{0, 2, 2, 3}, {4, 4}},  {{2, 3, 3, 0}, {4, 4}}, {{1, 17, 16, 8}, {33, 7}}};
  for (const auto &[shape, size] : kSizes) {
    for (const DType dtype : kFloats)
      cases.push_back({"interpolate2d", {{dtype, shape}}, {{"size", size}}});
  }
}

/// In one axis or all, of neighbours or of runs.
void add_reversals(std::vector<OpCase> &cases) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64, DType::u8, DType::boolean}) {
    const double high = dtype == DType::boolean ? 2 : 100;
    for (const auto &[shape, axes] : {std::pair<ShapeDims, std::vector<int64_t>>{{7}, {0}},
                                      {{3, 70}, {1}},
                                      {{3, 5}, {0}},
                                      {{4, 3, 9}, {1}},
                                      {{4, 3, 9}, {2, 0}},
                                      {{2, 1, 33}, {0, 1, 2}},
                                      {{0, 3}, {1}},
                                      {{3, 2}, {}}})
      cases.push_back({"reverse_axes", {whole(dtype, shape, 0, high)}, {{"axes", axes}}});
  }
}

}  // namespace

std::vector<OpCase> shape_cases() {
  std::vector<OpCase> cases;
  add_running(cases);
  add_merged_rows(cases);
  add_interpolations(cases);
  add_reversals(cases);
  using graph::Dims;
  using Ints = std::vector<int64_t>;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64, DType::u8, DType::boolean}) {
    const auto x = [&](ShapeDims dims) { return whole(dtype, std::move(dims), 0, dtype == DType::boolean ? 2 : 100); };
    cases.push_back({"reshape", {x({2, 3, 4})}, {{"dims", Dims{4, -1}}}});
    cases.push_back({"reshape", {x({0, 3})}, {{"dims", Dims{3, 0}}}});
    for (const Ints &permutation : {Ints{0, 1, 2}, Ints{2, 1, 0}, Ints{1, 0, 2}, Ints{0, 2, 1}, Ints{2, 0, 1}})
      cases.push_back({"transpose", {x({3, 5, 17})}, {{"permutation", permutation}}});
    cases.push_back({"transpose", {x({0, 3})}});
    cases.push_back({"transpose", {x({65, 33})}});
    cases.push_back({"broadcast_to", {x({3, 1})}, {{"dims", Dims{2, 3, 5}}}});
    cases.push_back({"broadcast_to", {x({})}, {{"dims", Dims{4, 3}}}});
    cases.push_back({"broadcast_to", {x({1})}, {{"dims", Dims{0}}}});
    for (const int64_t axis : {int64_t{0}, int64_t{1}, int64_t{-1}})
      cases.push_back({"concat", {x({2, 3, 5}), x({2, 3, 5}), x({2, 3, 5})}, {{"axis", axis}}});
    cases.push_back({"concat", {x({0, 3}), x({2, 3})}, {{"axis", int64_t{0}}}});
    cases.push_back({"concat", {x({7})}, {{"axis", int64_t{0}}}});
    cases.push_back({"slice", {x({5, 7})}, {{"begin", Dims{1, 2}}, {"size", Dims{3, 4}}}});
    cases.push_back({"slice", {x({5, 7})}, {{"begin", Dims{0, 1}}, {"size", Dims{3, 3}}, {"strides", Ints{2, 2}}}});
    cases.push_back({"slice", {x({5, 7})}, {{"begin", Dims{5, 0}}, {"size", Dims{0, 7}}}});
    cases.push_back({"pad", {x({3, 5})}, {{"low", Ints{1, 0}}, {"high", Ints{0, 2}}, {"value", 1.0}}});
    cases.push_back({"pad", {x({0, 5})}, {{"low", Ints{1, 0}}, {"high", Ints{1, 0}}}});
    cases.push_back(
        {"pad", {x({2, 3, 1, 5})}, {{"low", Ints{0, 2, 0, 0}}, {"high", Ints{0, 1, 3, 0}}, {"value", 1.0}}});
    cases.push_back({"pad", {x({3, 4})}, {{"low", Ints{0, 0}}, {"high", Ints{0, 0}}}});
    cases.push_back({"pad", {x({})}, {{"low", Ints{}}, {"high", Ints{}}}});
    // Slices that are read where they were taken from, beside one that is a result and one of another value.
    const auto joined = [](graph::GraphBuilder &b, const graph::GraphBuilder::Values &v) {
      const graph::ValueId end = b.slice(v[0], {0, 2}, {4, 3}), middle = b.slice(v[0], {1, 0}, {2, 3}, {2, 2});
      const graph::ValueId kept = b.slice(v[0], {0, 0}, {4, 1});
      return graph::GraphBuilder::Values{b.concat({end, kept, v[1], b.slice(v[0], {0, 0}, {4, 2})}, 1), kept,
                                         b.concat({b.reshape(middle, {2, 3}), middle}, 0)};
    };
    cases.push_back({"concat", {x({4, 5}), x({4, 1})}, {}, joined});
    for (const DType index : {DType::i32, DType::i64}) {
      cases.push_back({"gather", {x({7, 5}), whole(index, {3, 2}, 0, 7)}});
      cases.push_back({"gather", {x({3, 7, 2}), whole(index, {4}, 0, 7)}, {{"axis", int64_t{1}}}});
      cases.push_back({"gather", {x({7}), whole(index, {}, 0, 7)}});
      cases.push_back({"gather", {x({7, 5}), whole(index, {0}, 0, 7)}});
    }
  }
  for (const DType dtype : kFloats) {
    cases.push_back(
        {"slice_gradient", {{dtype, {3, 3}}}, {{"begin", Dims{0, 1}}, {"strides", Ints{2, 2}}, {"dims", Dims{5, 7}}}});
    cases.push_back({"gather_gradient", {{dtype, {3, 2, 5}}, whole(DType::i64, {3, 2}, 0, 4)}, {{"dims", Dims{4, 5}}}});
    cases.push_back({"gather_gradient",
                     {{dtype, {3, 6, 2}}, whole(DType::i32, {6}, 0, 4)},
                     {{"axis", int64_t{1}}, {"dims", Dims{3, 4, 2}}}});
    cases.push_back({"gather_gradient",
                     {{dtype, {40, 3}}, whole(DType::i64, {40}, -3, 9)},
                     {{"dims", Dims{5, 3}}, {"ignores_others", true}}});
    cases.push_back({"gather_gradient",
                     {{dtype, {40}}, whole(DType::i32, {40}, -3, 9)},
                     {{"dims", Dims{5}}, {"ignores_others", true}}});
    cases.push_back({"gather_gradient", {{dtype, {0, 5}}, whole(DType::i64, {0}, 0, 4)}, {{"dims", Dims{4, 5}}}});
    const std::vector<OpCase> updates = row_update_cases(dtype);
    cases.insert(cases.end(), updates.begin(), updates.end());
    // Columns of a matrix, which one kernel may read where they lie, beside broadcasts of a number and a row.
    const std::vector<std::pair<int64_t, int64_t>> parts = {{7, 3}, {1, 5}, {3, 160}, {2, 1100}, {0, 4}, {700, 2}};
    for (const auto &[rows, columns] : parts) {
      const Dims part = {rows, columns};
      const auto both = [part](graph::GraphBuilder &b, const graph::GraphBuilder::Values &v) {
        const graph::ValueId gate = b.unary("sigmoid", b.slice(v[0], {0, 1}, part));
        const graph::ValueId gated = b.mul(gate, b.slice(v[0], {0, part[1]}, part));
        const graph::ValueId row = b.broadcast_to(v[2], part);
        return graph::GraphBuilder::Values{b.add(gated, b.mul(b.broadcast_to(v[1], part), row)),
                                           b.unary("tanh", b.slice(v[0], {0, 0}, part))};
      };
      cases.push_back({"slice", {{dtype, {rows, 2 * columns}}, {dtype, {}}, {dtype, {columns}}}, {}, both});
    }
    cases.push_back({"one_hot",
                     {whole(DType::i64, {3, 5}, -1, 8)},
                     {{"depth", int64_t{7}}, {"on", 2.0}, {"off", -1.0}, {"dtype", dtype}}});
    cases.push_back({"iota", {}, {{"dims", Dims{2, 3, 5}}, {"axis", int64_t{1}}, {"dtype", dtype}}});
  }
  cases.push_back({"one_hot", {whole(DType::i32, {0}, 0, 8)}, {{"depth", int64_t{7}}, {"dtype", DType::i64}}});
  cases.push_back({"iota", {}, {{"dims", Dims{300}}, {"axis", int64_t{0}}}});
  return cases;
}

double element(const tensor::Tensor &values, int64_t i) {
  return values.dtype() == DType::f64 ? values.data_as<double>()[i] : values.data_as<float>()[i];
}

double size_of(const tensor::Tensor &values) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < values.elements(); ++i) {
    const double value = element(values, i);
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

}  // namespace tutti::impl::conformance

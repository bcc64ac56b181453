// SPDX-License-Identifier: Apache-2.0
//
// The gradient of every differentiable op against finite differences, in f64 on the backend under test. For an input x,
// a random direction v and random weights w:   d <w, op(x + t·v)> / dt at 0   must be   <gradient, v>, the left side by
// a central difference. Random weights and directions see every element at once.
//
// usage: gradient_test BACKEND
//
// To add an op: a line in a table below. Inputs of dtype f64 are differentiated, all others are held.
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "base/text.h"
#include "gradient_case.h"
#include "graph/autodiff.h"
#include "graph/op_registry.h"
#include "testing.h"

namespace gradient_test {

using tensor::Tensor;

namespace {

backend::DeviceRef *device = nullptr;

const std::vector<ShapeDims> kShapes = {{}, {1}, {0, 3}, {3, 5}, {2, 1, 7}};

// ---- the tables ----

std::vector<GradientCase> unary_cases() {
  struct Domain {
    const char *op;
    double low, high;
    Attributes attributes = {};
  };
  const Domain domains[] = {
      {"identity", -2, 2},
      {"neg", -2, 2},
      {"abs", -2, 2},
      {"exp", -2, 2},
      {"log", 0.2, 3},
      {"log1p", -0.7, 3},
      {"expm1", -2, 2},
      {"sqrt", 0.2, 3},
      {"rsqrt", 0.2, 3},
      {"square", -2, 2},
      {"reciprocal", 0.3, 3},
      {"reciprocal", -3, -0.3},
      {"sin", -4, 4},
      {"cos", -4, 4},
      {"tangent", -1.2, 1.2},
      {"arc_tangent", -3, 3},
      {"arc_sine", -0.9, 0.9},
      {"arc_cosine", -0.9, 0.9},
      {"tanh", -2, 2},
      {"sigmoid", -4, 4},
      {"relu", -2, 2},
      {"gelu", -3, 3},
      {"silu", -4, 4},
      {"softplus", -5, 5},
      {"elu", -2, 2},
      {"leaky_relu", -2, 2},
      {"erf", -2, 2},
      {"dropout", -2, 2, {{"rate", 0.4}}},
      {"gelu", -3, 3, {{"approximate", true}}},
      {"elu", -2, 2, {{"alpha", 0.3}}},
      {"leaky_relu", -2, 2, {{"alpha", 0.3}}},
      {"cast", -2, 2, {{"dtype", DType::f64}}},
  };
  std::vector<GradientCase> cases;
  for (const Domain &domain : domains) {
    for (const ShapeDims &shape : kShapes)
      cases.push_back({domain.op, {real(shape, domain.low, domain.high)}, domain.attributes});
  }
  for (const char *op : {"relu_gradient", "sigmoid_gradient", "tanh_gradient"}) {
    for (const ShapeDims &shape : kShapes)
      cases.push_back({op, {real(shape), real(shape, 0.1, 0.9)}});
  }
  return cases;
}

std::vector<GradientCase> binary_cases() {
  const std::pair<ShapeDims, ShapeDims> shapes[] = {
      {{}, {}},         {{3, 5}, {3, 5}}, {{3, 5}, {}},     {{}, {3, 5}},        {{3, 1}, {1, 5}}, {{5}, {3, 5}},
      {{3, 5}, {3, 1}}, {{0, 3}, {3}},    {{1, 3}, {0, 3}}, {{2, 1, 3}, {4, 1}}, {{1}, {1}}};
  std::vector<GradientCase> cases;
  for (const auto &[a, b] : shapes) {
    for (const char *op : {"add", "sub", "mul", "maximum", "minimum"})
      cases.push_back({op, {real(a), real(b)}});
    cases.push_back({"div", {real(a), real(b, 0.4, 2)}});
    cases.push_back({"pow", {real(a, 0.3, 2), real(b)}});
    cases.push_back({"arc_tangent2", {real(a, 0.3, 2), real(b)}});
    cases.push_back({"arc_tangent2", {real(a), real(b, -2, -0.3)}});
    cases.push_back({"mod", {real(a, -7, 7), real(b, 1.6, 2.1)}});
    cases.push_back({"select", {whole(DType::boolean, a, 0, 2), real(b), real(a)}});
    cases.push_back({"select", {whole(DType::boolean, {}, 0, 2), real(a), real(b)}});
  }
  return cases;
}

std::vector<GradientCase> reduction_cases() {
  struct Reduction {
    ShapeDims shape;
    Ints axes;
  };
  const Reduction reductions[] = {{{}, {}},         {{3, 5}, {}},  {{3, 5}, {0}}, {{3, 5}, {-1}}, {{2, 3, 4}, {0, 2}},
                                  {{2, 0, 4}, {1}}, {{0, 4}, {1}}, {{1, 1}, {0}}};
  std::vector<GradientCase> cases;
  for (const char *op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}) {
    for (const Reduction &r : reductions) {
      // Over nothing only the sum and the product are numbers.
      const bool empty =
          r.shape == ShapeDims{2, 0, 4} && op != std::string("reduce_sum") && op != std::string("reduce_prod");
      for (const bool keep : {false, true}) {
        if (!empty) cases.push_back({op, {real(r.shape)}, {{"axes", r.axes}, {"keep_dims", keep}}});
      }
    }
  }
  for (const Ints &zeros : {Ints{1}, Ints{1, 3}}) {  // products with one zero, with two
    cases.push_back({"reduce_prod", {real({5})}, {}, [zeros](GraphBuilder &b, const Values &v) {
                       std::vector<double> mask(5, 1);
                       for (const int64_t at : zeros)
                         mask[static_cast<size_t>(at)] = 0;
                       auto values = Tensor::from_values<double>({5}, std::span<const double>(mask));
                       // The first input has this seed: where it is taken away, x is 0.
                       const ValueId zero = b.sub(v[0], b.constant(*conformance::make_operand(real({5}), 100)));
                       const ValueId keep = b.op("equal", {b.constant(*values), b.constant(1, DType::f64)});
                       return Values{b.reduce("reduce_prod", b.select(keep, v[0], zero), {})};
                     }});
  }
  return cases;
}

std::vector<GradientCase> shape_cases() {
  using graph::Dims;
  const Operand indices = whole(DType::i64, {2, 3}, 0, 4);
  const auto indices_of = [](int64_t count) { return whole(DType::i32, {count}, 0, 4); };
  const auto largest = [](int64_t k) {
    // The values alone are weighed: indices have no gradient.
    return [k](GraphBuilder &b, const Values &v) { return Values{b.op_n("top_k", v, {{"k", k}}, 2)[0]}; };
  };
  return {
      {"reshape", {real({3, 4})}, {{"dims", Dims{2, -1}}}},
      {"reshape", {real({0, 4})}, {{"dims", Dims{4, 0}}}},
      {"transpose", {real({2, 3, 4})}, {{"permutation", Ints{1, 2, 0}}}},
      {"transpose", {real({2, 3})}},
      {"broadcast_to", {real({3, 1})}, {{"dims", Dims{2, 3, 4}}}},
      {"broadcast_to", {real({})}, {{"dims", Dims{0, 4}}}},
      {"concat", {real({2, 3}), real({2, 1}), real({2, 0})}, {{"axis", int64_t{-1}}}},
      {"concat", {real({2, 3})}},
      {"slice", {real({5, 7})}, {{"begin", Dims{1, -6}}, {"size", Dims{3, -1}}, {"strides", Ints{1, 2}}}},
      {"slice", {real({5})}, {{"begin", Dims{2}}, {"size", Dims{0}}}},
      {"slice_gradient", {real({2, 3})}, {{"begin", Dims{1, 0}}, {"strides", Ints{2, 1}}, {"dims", Dims{4, 5}}}},
      {"pad", {real({2, 3})}, {{"low", Ints{1, 0}}, {"high", Ints{0, 2}}, {"value", 3.0}}},
      {"gather", {real({4, 2}), indices}},
      {"gather", {real({2, 4, 3}), whole(DType::i32, {}, 0, 4)}, {{"axis", int64_t{1}}}},
      {"gather", {real({2, 4}), whole(DType::i32, {0}, 0, 4)}, {{"axis", int64_t{-1}}}},
      {"gather_gradient", {real({2, 3, 2}), indices}, {{"dims", Dims{4, 2}}}},
      {"gather_gradient",
       {real({3, 5, 2}), whole(DType::i32, {5}, -1, 4)},
       {{"axis", int64_t{1}}, {"dims", Dims{3, 3, 2}}, {"ignores_others", true}}},
      {"reverse_axes", {real({3, 4})}, {{"axes", Ints{-1}}}},
      {"reverse_axes", {real({2, 1, 3})}, {{"axes", Ints{0, 1, 2}}}},
      {"merge_rows", {real({4, 3}), indices_of(5), real({5, 3})}, {{"mode", std::string("add")}}},
      {"merge_rows", {real({4, 3}), indices_of(5), real({5, 3})}, {{"mode", std::string("replace")}}},
      {"merge_rows", {real({4, 3}), indices_of(5), real({5, 3})}, {{"mode", std::string("maximum")}}},
      {"merge_rows", {real({4}), indices_of(9), real({9})}, {{"mode", std::string("maximum")}}},
      {"merge_rows", {real({4}), indices_of(0), real({0})}, {{"mode", std::string("replace")}}},
      {"interpolate2d", {real({2, 3, 4, 2})}, {{"size", Ints{5, 7}}}},
      {"interpolate2d", {real({1, 5, 6, 1})}, {{"size", Ints{5, 2}}}},
      {"interpolate2d", {real({1, 1, 1, 3})}, {{"size", Ints{2, 1}}}},
      {"top_k", {real({2, 3, 7})}, {}, largest(3)},
      {"top_k", {real({5})}, {}, largest(5)},
      {"top_k", {real({0, 4})}, {}, largest(1)},
      {"top_k", {real({3, 1})}, {}, largest(1)},
  };
}

std::vector<GradientCase> product_cases() {
  std::vector<GradientCase> cases;
  const std::pair<ShapeDims, ShapeDims> leads[] = {{{}, {}},      {{2}, {2}}, {{2}, {}},       {{}, {2}},
                                                   {{2, 1}, {3}}, {{0}, {}},  {{2, 3}, {1, 1}}};
  for (const auto &[first, second] : leads) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        ShapeDims a = first, b = second;
        a.insert(a.end(), {ta ? 4 : 3, ta ? 3 : 4});
        b.insert(b.end(), {tb ? 5 : 4, tb ? 4 : 5});
        cases.push_back({"matmul", {real(a), real(b)}, {{"transpose_a", ta}, {"transpose_b", tb}}});
      }
    }
  }
  const Attributes windows[] = {
      {},
      {{"stride", Ints{2, 3}}},
      {{"padding", std::string("valid")}, {"dilation", Ints{2, 1}}},
      {{"padding", std::string("explicit")}, {"pads", Ints{2, 0, 1, 3}}, {"stride", Ints{2, 1}}},
      {{"groups", int64_t{2}}},
      {{"groups", int64_t{4}}, {"stride", Ints{2, 2}}},
  };
  for (const Attributes &window : windows) {
    const auto groups = window.find("groups");
    const int64_t g = groups == window.end() ? 1 : std::get<int64_t>(groups->second);
    const Operand x = real({2, 7, 6, 4}), kernel = real({3, 2, 4 / g, 4}), bias = real({4});
    const auto convolve = [window](GraphBuilder &b, const Values &v) { return Values{b.op("conv2d", v, window)}; };
    cases.push_back({"conv2d", {x, kernel, bias}, window});
    cases.push_back({"conv2d", {real({0, 7, 6, 4}), kernel}, window});
    // The gradient ops are differentiated in turn, as the ops they are.
    const auto of_input = [window, convolve](GraphBuilder &b, const Values &v) {
      const ValueId y = convolve(b, {v[0], v[1]})[0];
      Attributes attributes = window;
      attributes["input_dims"] = b.dims(v[0]);
      return Values{b.op("conv2d_input_gradient", {b.unary("square", y), v[1]}, attributes)};
    };
    const auto of_kernel = [window, convolve](GraphBuilder &b, const Values &v) {
      const ValueId y = convolve(b, {v[0], v[1]})[0];
      Attributes attributes = window;
      attributes["kernel_dims"] = b.dims(v[1]);
      return Values{b.op("conv2d_kernel_gradient", {v[0], b.unary("square", y)}, attributes)};
    };
    cases.push_back({"conv2d_input_gradient", {x, kernel}, {}, of_input});
    cases.push_back({"conv2d_kernel_gradient", {x, kernel}, {}, of_kernel});
  }
  const Attributes pools[] = {
      {{"window", Ints{2, 2}}},
      {{"window", Ints{3, 2}}, {"stride", Ints{2, 1}}, {"padding", std::string("same")}},
      {{"window", Ints{3, 3}},
       {"stride", Ints{1, 2}},
       {"padding", std::string("explicit")},
       {"pads", Ints{1, 0, 2, 1}}},
  };
  for (const Attributes &pool : pools) {
    Attributes counted = pool;
    counted["count_include_padding"] = true;
    for (const ShapeDims &shape : {ShapeDims{2, 5, 4, 3}, ShapeDims{0, 5, 4, 3}, ShapeDims{1, 3, 3, 1}}) {
      cases.push_back({"max_pool2d", {real(shape)}, pool});
      cases.push_back({"avg_pool2d", {real(shape)}, pool});
      cases.push_back({"avg_pool2d", {real(shape)}, counted});
      cases.push_back({"avg_pool2d_gradient", {real(shape)}, {}, [counted](GraphBuilder &b, const Values &v) {
                         Attributes attributes = counted;
                         attributes["input_dims"] = b.dims(v[0]);
                         const ValueId y = b.op("avg_pool2d", {v[0]}, counted);
                         return Values{b.op("avg_pool2d_gradient", {b.unary("square", y)}, attributes)};
                       }});
    }
  }
  return cases;
}

std::vector<GradientCase> attention_cases() {
  std::vector<GradientCase> cases;
  const std::pair<ShapeDims, ShapeDims> shapes[] = {
      {{2, 5, 4, 3}, {2, 5, 4, 3}},                                // rows, length, heads, channels
      {{2, 3, 6, 2}, {2, 7, 2, 2}}, {{1, 6, 2, 4}, {1, 4, 1, 4}},  // with `causal` the first queries see no key
      {{3, 1, 1, 1}, {3, 2, 1, 1}}, {{0, 2, 2, 2}, {0, 2, 2, 2}}, {{2, 2, 2, 2}, {2, 0, 2, 2}},
  };
  for (const auto &[q, k] : shapes) {
    for (const Attributes &attributes :
         {Attributes{}, Attributes{{"causal", true}}, Attributes{{"causal", true}, {"scale", 0.7}}}) {
      const auto build = [attributes](GraphBuilder &b, const Values &v) {
        return Values{b.op_n("attention", v, attributes, 2)[0]};
      };
      const Operand lengths = whole(DType::i32, {q[0]}, 0, static_cast<double>(k[1]) + 2);
      cases.push_back({"attention", {real(q), real(k), real(k)}, attributes, build});
      cases.push_back({"attention", {real(q), real(k), real(k), lengths}, attributes, build});
    }
    for (const bool causal : {false, true}) {
      const Attributes attributes{{"rate", 0.4}, {"causal", causal}};
      const auto build = [attributes](GraphBuilder &b, const Values &v) {
        return Values{b.op_n("dropout_attention", v, attributes, 2)[0]};
      };
      cases.push_back({"dropout_attention", {real(q), real(k), real(k)}, attributes, build});
    }
  }
  return cases;
}

std::vector<GradientCase> normalization_cases() {
  std::vector<GradientCase> cases;
  const auto only_first = [](const char *op, Attributes attributes) {
    return [op, attributes](GraphBuilder &b, const Values &v) { return Values{b.op_n(op, v, attributes)[0]}; };
  };
  for (const ShapeDims &shape : {ShapeDims{4, 3}, ShapeDims{2, 3, 2, 5}, ShapeDims{0, 3}, ShapeDims{5, 1}}) {
    const Operand channel = real({shape.back()}), positive = real({shape.back()}, 0.3, 2);
    const Attributes epsilon{{"epsilon", 0.01}};
    if (shape[0] != 0)
      cases.push_back(
          {"batch_norm_training", {real(shape), channel, channel}, {}, only_first("batch_norm_training", epsilon)});
    cases.push_back({"layer_norm", {real(shape), channel, channel}, {}, only_first("layer_norm", epsilon)});
    cases.push_back({"rms_norm", {real(shape), channel}, {}, only_first("rms_norm", epsilon)});
    cases.push_back({"batch_norm_inference", {real(shape), channel, channel, channel, positive}, epsilon});
  }
  const std::pair<ShapeDims, int64_t> grouped[] = {
      {{4, 6}, 2}, {{2, 3, 2, 6}, 3}, {{3, 5, 4}, 1}, {{2, 4, 3}, 3}, {{0, 2, 4}, 2}};
  for (const auto &[shape, groups] : grouped) {
    const Operand channel = real({shape.back()});
    const Attributes attributes{{"groups", groups}, {"epsilon", 0.01}};
    cases.push_back({"group_norm", {real(shape), channel, channel}, {}, only_first("group_norm", attributes)});
  }
  return cases;
}

std::vector<GradientCase> loss_cases() {
  std::vector<GradientCase> cases;
  for (const ShapeDims &rows : {ShapeDims{4}, ShapeDims{2, 3}, ShapeDims{}, ShapeDims{0}, ShapeDims{1}}) {
    ShapeDims full = rows;
    full.push_back(5);
    for (const double smoothing : {0.0, 0.2}) {
      const Attributes attributes{{"label_smoothing", smoothing}};
      cases.push_back({"sparse_softmax_cross_entropy", {real(full), whole(DType::i64, rows, 0, 5)}, attributes});
      cases.push_back({"softmax_cross_entropy", {real(full), real(full, 0, 1)}, attributes});
    }
    cases.push_back({"sigmoid_cross_entropy", {real(full), real(full, 0, 1)}});
    for (const int64_t axis : {int64_t{-1}, int64_t{0}}) {
      const Attributes along{{"axis", axis}};
      for (const char *op : {"softmax", "log_softmax"})
        cases.push_back({op, {real(full)}, along});
      for (const char *op : {"softmax_gradient", "log_softmax_gradient"})
        cases.push_back({op, {real(full), real(full)}, along});
    }
  }
  return cases;
}

// state' = tanh(state · w + x), results are its squares; the last state and the results are weighed.
Values recurrence(GraphBuilder &b, const Values &v, int64_t axis, bool reverse) {
  Values states{v[0]};
  if (v.size() > 3) states.push_back(v[3]);
  Values made = b.scan(
      states, {v[1]},
      [&](GraphBuilder &g, const Values &p) {
        const ValueId next = g.unary("tanh", g.add(g.matmul(p[0], v[2]), p.back()));
        Values results{next};
        if (p.size() > 2) results.push_back(g.add_scalar(p[1], 1));
        results.push_back(g.unary("square", next));
        return results;
      },
      axis, reverse);
  if (!b.ok()) return {};
  return {made.front(), made.back()};
}

// Two matrices: one only multiplies, a state, and a value of the step transposed; the other is also added. A product is
// stacked.
Values products(GraphBuilder &b, const Values &v, int64_t axis) {
  return b.scan(
      {v[0]}, {v[1]},
      [&](GraphBuilder &g, const Values &p) {
        const ValueId first = g.unary("tanh", g.matmul(p[0], v[2])), second = g.matmul(first, v[2], false, true);
        const ValueId third =
            g.add(g.matmul(p[1], v[3]), g.op("reduce_sum", {v[3]}, {{"axes", std::vector<int64_t>{0}}}));
        return Values{g.unary("sin", second), g.mul(first, third), second};
      },
      axis);
}

// Activations and a slice are stacked, which the backward pass need not make again.
Values gates(GraphBuilder &b, const Values &v, int64_t axis) {
  return b.scan(
      {v[0]}, {v[1]},
      [&](GraphBuilder &g, const Values &p) {
        const ValueId both = g.add(g.matmul(p[0], v[2]), p[1]);
        const ValueId gate = g.unary("sigmoid", g.slice(both, {0, 0}, {2, 3})), part = g.slice(both, {0, 3}, {2, 3}),
                      made = g.unary("tanh", part), positive = g.unary("relu", g.add_scalar(part, 0.3));
        return Values{g.add(g.mul(gate, made), positive), gate, part, made, positive};
      },
      axis);
}

Values branch(GraphBuilder &b, const Values &v, double taken) {
  return b.cond(
      b.constant(taken, DType::boolean), [&](GraphBuilder &g, const Values &) { return Values{g.mul(v[0], v[1])}; },
      [&](GraphBuilder &g, const Values &) { return Values{g.unary("exp", v[0])}; });
}

std::vector<GradientCase> region_cases() {
  const auto along = [](Values (*loop)(GraphBuilder &, const Values &, int64_t), int64_t axis) {
    return [=](GraphBuilder &b, const Values &v) { return loop(b, v, axis); };
  };
  const auto body = [](GraphBuilder &g, const Values &p) { return Values{g.mul(g.unary("tanh", p[0]), p[1])}; };
  return {
      // One input depends on the other, but not through the call.
      {"call",
       {real({3, 2})},
       {},
       [body](GraphBuilder &b, const Values &v) {
         return b.call({v[0], b.unary("square", v[0])}, body);
       }},
      {"call",
       {real({3}), real({3})},
       {},
       [](GraphBuilder &b, const Values &v) {
         return b.call({v[0]}, [&](GraphBuilder &g, const Values &p) {
           return Values{g.mul(p[0], v[1]), g.unary("exp", v[1])};
         });
       }},
      // A recurrent cell: states, sequences, captured weights, a counter that has no gradient.
      {"scan",
       {real({2, 3}), real({4, 2, 3}), real({3, 3}, -1, 1), whole(DType::i64, {}, 0, 3)},
       {},
       [](GraphBuilder &b, const Values &v) { return recurrence(b, v, 0, false); }},
      {"scan",
       {real({2, 3}), real({2, 4, 3}), real({3, 3}, -1, 1)},
       {},
       [](GraphBuilder &b, const Values &v) { return recurrence(b, v, 1, true); }},
      {"scan",
       {real({2, 3}), real({0, 2, 3}), real({3, 3}), whole(DType::i64, {}, 0, 3)},
       {},
       [](GraphBuilder &b, const Values &v) { return recurrence(b, v, 0, false); }},
      {"scan",
       {real({5}), real({})},
       {},
       [](GraphBuilder &b, const Values &v) {  // no state
         return b.scan({}, {v[0]},
                       [&](GraphBuilder &g, const Values &p) { return Values{g.mul(g.unary("sin", p[0]), v[1])}; });
       }},
      {"scan", {real({2, 3}), real({4, 2, 3}), real({3, 5}, -1, 1), real({3, 5})}, {}, along(products, 0)},
      {"scan", {real({2, 3}), real({2, 4, 3}), real({3, 5}, -1, 1), real({3, 5})}, {}, along(products, 1)},
      {"scan", {real({2, 3}), real({2, 3, 4}), real({3, 5}, -1, 1), real({3, 5})}, {}, along(products, 2)},
      {"scan", {real({2, 3}), real({4, 2, 6}), real({3, 6}, -1, 1)}, {}, along(gates, 0)},
      {"scan", {real({2, 3}), real({2, 4, 6}), real({3, 6}, -1, 1)}, {}, along(gates, 1)},
      // The backward pass drops what the forward pass dropped, in each iteration.
      {"scan",
       {real({3, 8}), real({8})},
       {},
       [](GraphBuilder &b, const Values &v) {
         return b.scan({v[1]}, {v[0]}, [](GraphBuilder &g, const Values &p) {
           const ValueId kept = g.op("dropout", {g.mul(p[0], p[1])}, {{"rate", 0.4}});
           return Values{kept, g.unary("square", kept)};
         });
       }},
      {"cond", {real({3}), real({})}, {}, [](GraphBuilder &b, const Values &v) { return branch(b, v, 1); }},
      {"cond", {real({3}), real({})}, {}, [](GraphBuilder &b, const Values &v) { return branch(b, v, 0); }},
      {"custom_gradient",
       {real({3}), real({})},
       {},
       [](GraphBuilder &b, const Values &v) {
         return b.custom_gradient(
             v,
             [](GraphBuilder &g, const Values &p) {
               return Values{g.unary("exp", p[0]), g.unary("square", p[1])};
             },
             [](GraphBuilder &g, const Values &p) {
               return Values{g.mul(p[4], p[2]), g.mul(p[5], g.scale(p[1], 2))};
             });
       }},
  };
}

// ---- one case ----

Values results_of(const GradientCase &one, GraphBuilder &b, const Values &inputs) {
  return one.build ? one.build(b, inputs) : b.op_n(one.op, inputs, one.attributes);
}

// <w, results> with w drawn by position.
ValueId weighed(const GradientCase &one, GraphBuilder &b, const Values &inputs) {
  ValueId sum = b.constant(0, DType::f64);
  uint64_t seed = 900;
  for (const ValueId result : results_of(one, b, inputs)) {
    if (!b.ok()) break;
    auto weights = conformance::make_operand(real(*graph::constant_shape(b.dims(result))), seed++);
    if (!weights.ok()) return b.fail(weights.status());
    sum = b.add(sum, b.reduce_sum(b.mul(result, b.constant(*weights))));
  }
  return sum;
}

base::Result<double> value_at(const GradientCase &one, const std::vector<Tensor> &inputs) {
  const auto build = [&](GraphBuilder &b, const Values &v) { return Values{weighed(one, b, v)}; };
  TUTTI_ASSIGN(const std::vector<Tensor> results, conformance::run_graph(*device, inputs, build));
  return results[0].scalar_value<double>();
}

base::Result<std::vector<Tensor>> gradients_at(const GradientCase &one, const std::vector<Tensor> &inputs) {
  const auto build = [&](GraphBuilder &b, const Values &v) {
    const ValueId target = weighed(one, b, v);
    Values wrt;
    for (const ValueId input : v) {
      if (b.dtype(input) == DType::f64) wrt.push_back(input);
    }
    auto made = graph::gradients_or_zeros(b, std::span(&target, 1), {}, wrt);
    if (made.ok()) return *made;
    b.fail(made.status());
    return Values(wrt.size(), graph::kNoValue);
  };
  return conformance::run_graph(*device, inputs, build);
}

// d <w, op> along v for input `which`, by a central difference.
base::Result<double> slope(const GradientCase &one, std::vector<Tensor> inputs, size_t which, const Tensor &direction) {
  constexpr double kStep = 1e-5;
  const Tensor point = inputs[which];
  double values[2];
  for (int side = 0; side < 2; ++side) {
    TUTTI_ASSIGN(inputs[which], point.clone());
    double *x = inputs[which].mutable_data_as<double>();
    const double *v = direction.data_as<double>();
    for (int64_t i = 0; i < point.elements(); ++i)
      x[i] += (side == 0 ? -kStep : kStep) * v[i];
    TUTTI_ASSIGN(values[side], value_at(one, inputs));
  }
  return (values[1] - values[0]) / (2 * kStep);
}

base::Status check_case(const GradientCase &one) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    TUTTI_ASSIGN(Tensor input, conformance::make_operand(one.inputs[i], 100 + i));
    inputs.push_back(std::move(input));
  }
  TUTTI_ASSIGN(const std::vector<Tensor> gradients, gradients_at(one, inputs));
  size_t position = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != DType::f64) continue;
    const Tensor &gradient = gradients[position++];
    if (gradient.shape() != inputs[i].shape()) return base::internal_error("gradient ", i, " is ", gradient.describe());
    for (uint64_t seed = 500; seed < 502; ++seed) {
      TUTTI_ASSIGN(const Tensor direction, conformance::make_operand(real(one.inputs[i].dims, -1, 1), seed + i));
      TUTTI_ASSIGN(const double expected, slope(one, inputs, i, direction));
      double got = 0;
      for (int64_t k = 0; k < gradient.elements(); ++k)
        got += gradient.data_as<double>()[k] * direction.data_as<double>()[k];
      if (!(std::abs(got - expected) <= 1e-6 * (1 + std::abs(expected)))) {
        return base::internal_error("input ", i, ": the gradient says ", got, ", the difference ", expected);
      }
    }
  }
  return {};
}

void check_family(void **state) {
  const auto make = reinterpret_cast<std::vector<GradientCase> (*)()>(*state);
  int failures = 0;
  const std::vector<GradientCase> cases = make();
  for (size_t i = 0; i < cases.size(); ++i) {
    const base::Status status = check_case(cases[i]);
    if (status.ok()) continue;
    std::string shapes;
    for (const Operand &operand : cases[i].inputs)
      shapes += base::concat(" ", operand.dims);
    std::string attributes;
    for (const auto &[name, value] : cases[i].attributes)
      attributes += base::concat(" ", name, "=", graph::to_string(value));
    if (++failures <= 20)
      print_error("%s%s%s: %s\n", cases[i].op.c_str(), shapes.c_str(), attributes.c_str(), status.to_string().c_str());
  }
  print_message("%zu cases\n", cases.size());
  assert_int_equal(failures, 0);
}

struct Family {
  const char *name;
  std::vector<GradientCase> (*make)();
};

const Family kFamilies[] = {
    {"unary", unary_cases},          {"binary", binary_cases},
    {"reductions", reduction_cases}, {"shapes", shape_cases},
    {"running", running_cases},      {"products", product_cases},
    {"attention", attention_cases},  {"normalization", normalization_cases},
    {"losses", loss_cases},          {"regions", region_cases},
};

void every_differentiable_op_is_tested(void **) {
  std::set<std::string, std::less<>> seen = {"fusion"};  // as call
  for (const Family &family : kFamilies) {
    for (const GradientCase &one : family.make())
      seen.insert(one.op);
  }
  for (const graph::OpDefinition &definition : graph::all_ops()) {
    if (definition.gradient == nullptr || seen.count(definition.name) != 0) continue;
    print_error("the gradient of '%s' is not tested\n", std::string(definition.name).c_str());
    _fail(__FILE__, __LINE__);
  }
}

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  device = &opened->device;
  std::vector<CMUnitTest> tests{
      {"every_differentiable_op_is_tested", every_differentiable_op_is_tested, nullptr, nullptr, nullptr}};
  for (const Family &family : kFamilies) {
    tests.push_back({family.name, check_family, nullptr, nullptr, reinterpret_cast<void *>(family.make)});
  }
  return _cmocka_run_group_tests("gradients", tests.data(), tests.size(), nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace gradient_test

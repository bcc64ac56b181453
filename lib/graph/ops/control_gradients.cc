// SPDX-License-Identifier: Apache-2.0
//
// Gradient rules of scan and cond. Both compute their regions again inside the backward regions: the states before each
// step are kept, and products, slices and activations that are stacked results. The gradient of a matrix that a loop
// multiplies by is one product after the loop.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/autodiff.h"
#include "graph/clone.h"
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

using Values = GraphBuilder::Values;

bool is_real(const GraphBuilder &b, ValueId value) { return tensor::is_floating(b.dtype(value)); }

ValueId zeros_like(GraphBuilder &b, ValueId value) {
  const Dims dims = b.dims(value);
  return b.broadcast_to(b.constant(0, b.dtype(value)), dims);
}

// Copies the nodes of a region into the region under construction.
Values inline_body(GraphBuilder &b, const Region &body, const Values &arguments) {
  NodeCloner cloner(b.graph(), b);
  base::Result<Values> results = cloner.inline_region(body, arguments);
  if (results.ok()) return std::move(results).value();
  b.fail(results.status());
  return Values(body.results.size(), kNoValue);
}

Values differentiate(GraphBuilder &b, const Values &targets, const Values &seeds, const Values &wrt) {
  base::Result<Values> made = gradients_or_zeros(b, targets, seeds, wrt);
  if (made.ok()) return std::move(made).value();
  b.fail(made.status());
  return Values(wrt.size(), kNoValue);
}

/// A product x · C in the body of a loop, with a capture C: its gradient is the sum of xᵀ · d(x · C) over all steps, so
/// the two are stacked, and multiplied once.
struct Product {
  size_t capture = 0;
  bool is_transposed = false;                  // x · Cᵀ
  ValueId rows = kNoValue, result = kNoValue;  // of the body
};

// The backward pass of one scan node.
class ScanGradient {
 public:
  ScanGradient(GradientContext &context, const ScanAttributes &attributes)
      : context_(context),
        b_(context.builder()),
        attributes_(attributes),
        body_(context.node().regions[0]),
        states_(static_cast<size_t>(attributes.states)),
        first_capture_(states_ + static_cast<size_t>(attributes.sequences)) {
    const Values &inputs = context.node().inputs;
    initial_.assign(inputs.begin(), inputs.begin() + attributes.states);
    sequences_.assign(inputs.begin() + attributes.states, inputs.begin() + static_cast<std::ptrdiff_t>(first_capture_));
    captures_.assign(inputs.begin() + static_cast<std::ptrdiff_t>(first_capture_), inputs.end());
  }

  base::Status run() {
    choose();
    Values running;  // gradients of the states, then of the captures
    for (const size_t i : real_states_) {
      const ValueId end = context_.output_gradient(i);
      running.push_back(end != kNoValue ? end : zeros_like(b_, context_.output(i)));
    }
    for (const size_t i : needed_captures_)
      running.push_back(zeros_like(b_, captures_[i]));
    Values along = sequences_;
    const Values before = states_before_each_step();
    along.insert(along.end(), before.begin(), before.end());
    for (const size_t i : weighed_results_)
      along.push_back(context_.output_gradient(i));
    for (const size_t i : known_results_)
      along.push_back(context_.output(i));
    const Values made = b_.scan(
        running, along, [&](GraphBuilder &, const Values &parameters) { return step(parameters); }, attributes_.axis,
        !attributes_.reverse);
    TUTTI_TRY(b_.status());
    deliver(made, along);
    return b_.status();
  }

 private:
  void choose() {
    for (size_t i = 0; i < states_; ++i) {
      if (is_real(b_, initial_[i])) real_states_.push_back(i);
    }
    for (size_t i = 0; i < sequences_.size(); ++i) {
      if (context_.needs(states_ + i)) needed_sequences_.push_back(i);
    }
    for (size_t i = 0; i < captures_.size(); ++i) {
      if (context_.needs(first_capture_ + i) && !only_multiplies(i)) needed_captures_.push_back(i);
    }
    for (size_t i = states_; i < body_.results.size(); ++i) {
      if (context_.output_gradient(i) != kNoValue) weighed_results_.push_back(i);
      if (is_known(i)) known_results_.push_back(i);
    }
  }

  /// Are the gradients of an op made of its result, and of nothing else that it computes with?
  static bool has_gradient_by_result(std::string_view op) { return op == "sigmoid" || op == "tanh" || op == "relu"; }

  /// Products, slices and activations that were stacked are not made again.
  bool is_known(size_t result) const {
    const NodeId producer = b_.info(body_.results[result]).producer;
    if (producer == kNoNode) return false;
    const std::string &op = b_.graph().node(producer).op;
    return op == "matmul" || op == "slice" || has_gradient_by_result(op);
  }

  /// Notes the products of a capture, if it has no other use.
  bool only_multiplies(size_t capture) {
    const ValueId value = body_.parameters[first_capture_ + capture];
    if (std::ranges::find(body_.results, value) != body_.results.end()) return false;
    std::vector<Product> found;
    for (const NodeId id : body_.nodes) {
      const Node &node = b_.graph().node(id);
      const auto uses = std::ranges::count(node.inputs, value);
      if (uses == 0) continue;
      const std::optional<Product> product = uses == 1 ? product_with(value, node) : std::nullopt;
      if (!product) return false;
      found.push_back(*product);
      found.back().capture = capture;
    }
    products_.insert(products_.end(), found.begin(), found.end());
    return !found.empty();
  }

  std::optional<Product> product_with(ValueId matrix, const Node &node) const {
    if (node.op != "matmul" || node.inputs[1] != matrix) return std::nullopt;
    const base::Result<MatmulAttributes> attributes = MatmulAttributes::from(node);
    if (!attributes.ok() || attributes->transpose_a) return std::nullopt;
    const ValueId rows = node.inputs[0], result = node.outputs[0];
    if (b_.rank(matrix) != 2 || !stacks_rows(rows) || !stacks_rows(result)) return std::nullopt;
    return Product{.is_transposed = attributes->transpose_b, .rows = rows, .result = result};
  }

  /// Are the stacked [rows, k] rows of one matrix?
  bool stacks_rows(ValueId element) const {
    Dims dims = b_.dims(element);
    if (attributes_.axis > 1 || dims.size() != 2) return false;
    dims.insert(dims.begin() + attributes_.axis, b_.dims(sequences_[0])[static_cast<size_t>(attributes_.axis)]);
    return can_flatten(dims);
  }

  /// The stacked result that is a value of the body; none if there is no such result.
  std::optional<size_t> stacked(ValueId value) const {
    for (size_t i = states_; i < body_.results.size(); ++i) {
      if (body_.results[i] == value) return i;
    }
    return std::nullopt;
  }

  /// A state as it enters each step, if that was stacked, or as it leaves it; kNoValue if neither was.
  ValueId stacked_state(size_t state) {
    if (const std::optional<size_t> before = stacked(body_.parameters[state])) return context_.output(*before);
    const std::optional<size_t> after = stacked(body_.results[state]);
    return after ? shifted(state, *after) : kNoValue;
  }

  /// What enters each step where all that left the steps was stacked: the same, one step later.
  ValueId shifted(size_t state, size_t stacked) {
    const Dims whole = b_.dims(context_.output(stacked));
    Dims one = whole, begin(whole.size(), Dim(0));
    one[static_cast<size_t>(attributes_.axis)] = Dim(1);
    const ValueId first = b_.reshape(initial_[state], one), later = context_.output(stacked);
    if (!attributes_.reverse) return b_.slice(b_.concat({first, later}, attributes_.axis), begin, whole);
    begin[static_cast<size_t>(attributes_.axis)] = Dim(1);
    return b_.slice(b_.concat({later, first}, attributes_.axis), begin, whole);
  }

  // The forward scan again, with the states that enter each step as stacked results, unless they were stacked before.
  Values states_before_each_step() {
    if (states_ == 0) return {};
    Values known;
    for (size_t i = 0; i < states_; ++i) {
      if (const ValueId before = stacked_state(i); before != kNoValue) known.push_back(before);
    }
    if (known.size() == states_ || !b_.ok()) return known;
    Values made = b_.scan(
        initial_, sequences_,
        [&](GraphBuilder &g, const Values &parameters) {
          Values arguments = parameters;
          arguments.insert(arguments.end(), captures_.begin(), captures_.end());
          Values results = inline_body(g, body_, arguments);
          results.resize(states_);
          results.insert(results.end(), parameters.begin(), parameters.begin() + attributes_.states);
          return results;
        },
        attributes_.axis, attributes_.reverse);
    if (!b_.ok()) return {};
    return Values(made.begin() + attributes_.states, made.end());
  }

  /// The body, with the elements of known_results_ where it made them.
  Values body_again(NodeCloner &cloner, const Values &arguments, const Values &known) {
    for (size_t i = 0; i < arguments.size(); ++i)
      cloner.map(body_.parameters[i], arguments[i]);
    for (const NodeId id : body_.nodes) {
      const Node node = b_.graph().node(id);
      const base::Result<Values> made = cloner.clone_node(node);
      if (!made.ok()) b_.fail(made.status());
      if (!b_.ok()) break;
      for (size_t i = 0; i < known.size(); ++i) {
        const ValueId result = body_.results[known_results_[i]];
        if (node.outputs[0] != result) continue;
        const bool by_result = has_gradient_by_result(node.op);
        cloner.map(result, by_result ? activation_instead(node.op, cloner.mapped(node.inputs[0]), known[i])
                                     : known_instead(made->front(), known[i]));
      }
    }
    Values results;
    for (const ValueId result : body_.results)
      results.push_back(cloner.mapped(result));
    return results;
  }

  /// `known`, whose gradient is that of `made`; nobody else needs `made`.
  ValueId known_instead(ValueId made, ValueId known) {
    const Values one = b_.custom_gradient(
        {made, known}, [](GraphBuilder &, const Values &p) { return Values{p[1]}; },
        [](GraphBuilder &g, const Values &p) {
          return Values{p[3], zeros_like(g, p[1])};
        });
    return b_.ok() ? one.front() : kNoValue;
  }

  /// `known`, which is what `op` makes of `argument`; that takes the gradient, and nobody else needs it.
  ValueId activation_instead(std::string_view op, ValueId argument, ValueId known) {
    const std::string gradient = base::concat(op, "_gradient");
    const Values one = b_.custom_gradient(
        {argument, known}, [](GraphBuilder &, const Values &p) { return Values{p[1]}; },
        [&](GraphBuilder &g, const Values &p) {
          return Values{g.op(gradient, {p[3], p[2]}), zeros_like(g, p[1])};
        });
    return b_.ok() ? one.front() : kNoValue;
  }

  // Parameters: running gradients; elements of the sequences, states before this step, gradients of stacked results,
  // known results.
  Values step(const Values &parameters) {
    auto next = parameters.begin() + static_cast<std::ptrdiff_t>(real_states_.size() + needed_captures_.size());
    const Values elements(next, next + attributes_.sequences);
    next += attributes_.sequences;
    Values arguments(next, next + attributes_.states);
    next += attributes_.states;
    const auto weighed = static_cast<std::ptrdiff_t>(weighed_results_.size());
    const Values result_gradients(next, next + weighed);
    arguments.insert(arguments.end(), elements.begin(), elements.end());
    // Names of this region, to differentiate by.
    for (const ValueId capture : captures_)
      arguments.push_back(b_.unary("identity", capture));
    NodeCloner cloner(b_.graph(), b_);
    const Values results = body_again(cloner, arguments, Values(next + weighed, parameters.end()));
    if (!b_.ok()) return Values(real_states_.size() + needed_captures_.size(), kNoValue);

    Values targets, seeds, wrt;
    for (size_t i = 0; i < real_states_.size(); ++i) {
      targets.push_back(results[real_states_[i]]);
      seeds.push_back(parameters[i]);
    }
    for (size_t i = 0; i < weighed_results_.size(); ++i) {
      targets.push_back(results[weighed_results_[i]]);
      seeds.push_back(result_gradients[i]);
    }
    for (const size_t i : real_states_)
      wrt.push_back(arguments[i]);
    for (const size_t i : needed_captures_)
      wrt.push_back(arguments[first_capture_ + i]);
    for (const size_t i : needed_sequences_)
      wrt.push_back(arguments[states_ + i]);
    const size_t kept = wrt.size();
    for (const Product &product : products_)
      wrt.push_back(cloner.mapped(product.result));
    Values made = differentiate(b_, targets, seeds, wrt);
    for (size_t i = 0; i < needed_captures_.size(); ++i) {
      const size_t at = real_states_.size() + i;
      made[at] = b_.add(parameters[at], made[at]);
    }
    return stack_products(cloner, parameters, kept, std::move(made));
  }

  // Of `made`, the first `kept` are results, the others gradients of products.
  Values stack_products(const NodeCloner &cloner, const Values &parameters, size_t kept, Values made) {
    const size_t running = real_states_.size() + needed_captures_.size();
    Values results(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(kept));
    const auto place_of = [&](ValueId value) {
      const auto known = std::find(results.begin() + static_cast<std::ptrdiff_t>(running), results.end(), value);
      const auto place = static_cast<size_t>(known - results.begin());
      if (known == results.end()) results.push_back(value);
      return place;
    };
    for (size_t i = 0; i < products_.size(); ++i) {
      Stacked &stacked = stacked_.emplace_back();
      const ValueId rows = cloner.mapped(products_[i].rows);
      const auto element = std::find(parameters.begin() + static_cast<std::ptrdiff_t>(running), parameters.end(), rows);
      stacked.is_walked = element != parameters.end();
      stacked.rows = stacked.is_walked ? static_cast<size_t>(element - parameters.begin()) - running : place_of(rows);
      stacked.gradient = place_of(made[kept + i]);
    }
    return results;
  }

  // `along`: the sequences of the backward loop.
  void deliver(const Values &made, const Values &along) {
    size_t at = 0;
    for (const size_t i : real_states_)
      context_.set(i, made[at++]);
    for (const size_t i : needed_captures_)
      context_.set(first_capture_ + i, made[at++]);
    for (const size_t i : needed_sequences_)
      context_.set(states_ + i, made[at++]);
    for (size_t i = 0; i < products_.size();) {
      const size_t capture = products_[i].capture;
      ValueId sum = kNoValue;
      for (; i < products_.size() && products_[i].capture == capture; ++i) {
        const Stacked &stacked = stacked_[i];
        const ValueId rows = flatten(b_, stacked.is_walked ? along[stacked.rows] : made[stacked.rows]),
                      d_rows = flatten(b_, made[stacked.gradient]);
        const ValueId one =
            products_[i].is_transposed ? b_.matmul(d_rows, rows, true, false) : b_.matmul(rows, d_rows, true, false);
        sum = sum == kNoValue ? one : b_.add(sum, one);
      }
      context_.set(first_capture_ + capture, sum);
    }
  }

  /// Where the factors of a product's gradient are.
  struct Stacked {
    bool is_walked = false;  // the rows are a sequence that the backward loop walks, not one of its results
    size_t rows = 0, gradient = 0;
  };

  GradientContext &context_;
  GraphBuilder &b_;
  const ScanAttributes attributes_;
  const Region body_;
  const size_t states_, first_capture_;
  Values initial_, sequences_, captures_;
  std::vector<size_t> real_states_, needed_sequences_, needed_captures_, weighed_results_, known_results_;
  std::vector<Product> products_;
  std::vector<Stacked> stacked_;
};

}  // namespace

base::Status gradient_scan(GradientContext &context) {
  TUTTI_ASSIGN(const ScanAttributes attributes, ScanAttributes::from(context.node()));
  return ScanGradient(context, attributes).run();
}

// The gradient of the branch that was taken.
base::Status gradient_cond(GradientContext &context) {
  GraphBuilder &b = context.builder();
  const Node &node = context.node();
  std::vector<size_t> needed;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (context.needs(i)) needed.push_back(i);
  }
  const auto backward = [&](size_t branch) {
    return [&, branch](GraphBuilder &g, const Values &) {
      Values arguments, targets, seeds, wrt;
      for (size_t i = 1; i < node.inputs.size(); ++i)
        arguments.push_back(g.unary("identity", node.inputs[i]));
      const Values results = inline_body(g, node.regions[branch], arguments);
      for (size_t i = 0; i < results.size(); ++i) {
        if (context.output_gradient(i) == kNoValue) continue;
        targets.push_back(results[i]);
        // The seed under its name in this region.
        seeds.push_back(g.unary("identity", context.output_gradient(i)));
      }
      for (const size_t i : needed)
        wrt.push_back(arguments[i - 1]);
      return differentiate(g, targets, seeds, wrt);
    };
  };
  const Values made = b.cond(node.inputs[0], backward(0), backward(1));
  TUTTI_TRY(b.status());
  for (size_t i = 0; i < needed.size(); ++i)
    context.set(needed[i], made[i]);
  return {};
}

}  // namespace tutti::impl::graph::ops

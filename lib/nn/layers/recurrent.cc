// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers: loops over the positions of sequences [batch, length, channels]. What the input adds to all gates
// is one product in front of the loop.
#include <algorithm>
#include <functional>

#include "nn/expansion.h"
#include "nn/layers/positions.h"

namespace tutti::impl::nn {
namespace {

using graph::Dim;
using Values = GraphBuilder::Values;

/// How one kind of layer makes its states of the states before.
struct Cell {
  std::string_view name;  // of the scope
  int64_t gates;
  size_t states;
  bool has_recurrent_bias;
  /// From the input's part of the gates, the product with the recurrent kernel and the states: the next states, and
  /// behind them what the backward pass need not make again.
  std::function<Values(Expansion &e, ValueId from_input, ValueId from_state, const Values &states)> step;
};

/// Part `index` of [batch, parts * units].
ValueId gate(GraphBuilder &b, ValueId gates, int64_t index, int64_t units) {
  return b.slice(gates, {Dim(0), Dim(index * units)}, {b.dims(gates)[0], Dim(units)});
}

class Recurrence {
 public:
  Recurrence(Expansion &e, const Cell &cell, bool is_bidirectional)
      : e_(e),
        b_(e.builder()),
        cell_(cell),
        units_(e.i64("units")),
        layers_(e.i64("layers")),
        directions_(is_bidirectional ? 2 : 1) {}

  /// The outputs of the last layer; the last states are further outputs.
  ValueId run() {
    const LayerScope scope(b_, cell_.name);
    ValueId x = e_.input(0);
    if (x == kNoValue) return kNoValue;
    if (b_.rank(x) != 3)
      return e_.fail(base::concat("expected a sequence [batch, length, channels], got ", graph::to_string(b_.dims(x))));
    dims_ = b_.dims(x);
    if (!check_states() || !find_positions()) return kNoValue;
    std::vector<Values> last(cell_.states);  // by state, of layers and directions
    for (int64_t layer = 0; layer < layers_; ++layer) {
      if (layer > 0) x = drop(x);
      Values outputs;
      for (int64_t direction = 0; direction < directions_; ++direction)
        outputs.push_back(loop(x, layer, direction, last));
      if (!b_.ok()) return kNoValue;
      x = directions_ == 1 ? outputs[0] : b_.concat(outputs, 2);
    }
    for (const Values &states : last)
      e_.give(states.size() == 1 ? states[0] : b_.concat(states, 1));
    return x;
  }

 private:
  int64_t loops() const { return layers_ * directions_; }

  bool check_states() {
    for (size_t s = 0; s < cell_.states; ++s) {
      const ValueId initial = e_.input(2 + s);
      if (initial == kNoValue) continue;
      const graph::Dims expected = {dims_[0], Dim(loops()), Dim(units_)};
      if (b_.dims(initial) == expected) continue;
      e_.fail(base::concat("the initial states are ", graph::to_string(b_.dims(initial)), ", expected ",
                           graph::to_string(expected), ": a state for each layer and direction"));
      return false;
    }
    return true;
  }

  /// Where there are lengths: the number of each position, and the lengths, each of which has been found among them.
  bool find_positions() {
    if (!e_.has_input(1)) return true;
    const ValueId lengths = e_.input(1);
    if (b_.rank(lengths) != 1 || tensor::is_floating(b_.dtype(lengths))) {
      e_.fail(base::concat("expected lengths of integers, one for each row, got ", tensor::name(b_.dtype(lengths)), " ",
                           graph::to_string(b_.dims(lengths))));
      return false;
    }
    positions_ = b_.op("iota", {}, {{"dims", graph::Dims{dims_[1]}}, {"dtype", tensor::DType::i32}});
    lengths_ = b_.reshape(lengths_within(e_, lengths, dims_[1]), {dims_[0], Dim(1)});
    return b_.ok();
  }

  ValueId drop(ValueId x) {
    const double rate = e_.f64("dropout");
    return e_.training() && rate > 0 ? b_.op("dropout", {x}, {{"rate", rate}}) : x;
  }

  /// [batch, units] of the initial states; zeros where there are none.
  ValueId first_state(size_t state, int64_t index, ValueId like) {
    const ValueId initial = e_.input(2 + state);
    if (initial == kNoValue) return b_.broadcast_to(b_.constant(0, b_.dtype(like)), {dims_[0], Dim(units_)});
    const ValueId one = b_.slice(initial, {Dim(0), Dim(index), Dim(0)}, {dims_[0], Dim(1), Dim(units_)});
    return b_.reshape(one, {dims_[0], Dim(units_)});
  }

  /// One direction of one layer.
  ValueId loop(ValueId x, int64_t layer, int64_t direction, std::vector<Values> &last) {
    b_.push_scope(base::concat("layer_", layer, direction == 1 ? "/backward" : ""));
    const int64_t width = cell_.gates * units_, channels = e_.last_dimension(x);
    const ValueId kernel = e_.kernel("kernel", x, {channels, width});
    const ValueId recurrent = e_.weight("recurrent_kernel", x, {units_, width}, e_.text("recurrent_initializer"));
    ValueId gates = b_.matmul(x, kernel), bias = kNoValue;
    if (e_.flag("use_bias")) {
      gates = b_.add(gates, e_.weight("bias", x, {width}, e_.text("bias_initializer")));
      if (cell_.has_recurrent_bias) bias = e_.weight("recurrent_bias", x, {width}, e_.text("bias_initializer"));
    }
    const int64_t index = layer * directions_ + direction;
    Values initial, sequences = {gates};
    for (size_t s = 0; s < cell_.states; ++s)
      initial.push_back(first_state(s, index, x));
    if (positions_ != kNoValue) sequences.push_back(row_of_positions());
    const bool is_reversed = direction == 1 || e_.flag("reverse");
    const Values made = b_.scan(
        initial, sequences, [&](GraphBuilder &, const Values &at) { return step(at, recurrent, bias); }, 1,
        is_reversed);
    b_.pop_scope();
    if (!b_.ok()) return kNoValue;
    for (size_t s = 0; s < cell_.states; ++s)
      last[s].push_back(b_.reshape(made[s], {dims_[0], Dim(1), Dim(units_)}));
    return made[cell_.states];
  }

  /// [1, length]: the axis that is walked is the second one of all sequences.
  ValueId row_of_positions() { return b_.reshape(positions_, {Dim(1), dims_[1]}); }

  /// The states after one position, its output, and what the backward pass wants. Behind the end of a row states
  /// stay, and outputs are 0.
  Values step(const Values &at, ValueId recurrent, ValueId bias) {
    const Values states(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(cell_.states));
    ValueId from_state = b_.matmul(states[0], recurrent);
    if (bias != kNoValue) from_state = b_.add(from_state, bias);
    Values next = cell_.step(e_, at[cell_.states], from_state, states);
    const Values kept(next.begin() + static_cast<std::ptrdiff_t>(cell_.states), next.end());
    next.resize(cell_.states);
    ValueId output = next[0];
    if (positions_ != kNoValue) {
      const ValueId is_inside = b_.op("less", {at[cell_.states + 1], lengths_});
      for (size_t s = 0; s < cell_.states; ++s)
        next[s] = b_.select(is_inside, next[s], states[s]);
      output = b_.select(is_inside, output, b_.constant(0, b_.dtype(output)));
    }
    Values results = next;
    results.push_back(output);
    if (!e_.training()) return results;
    // For the backward pass: the states as they enter each position, but for one that is the output of that before.
    Values wanted;
    for (size_t s = 0; s < cell_.states; ++s) {
      if (next[s] != output) wanted.push_back(states[s]);
    }
    wanted.insert(wanted.end(), kept.begin(), kept.end());
    for (const ValueId value : wanted) {
      if (std::find(results.begin() + static_cast<std::ptrdiff_t>(cell_.states), results.end(), value) == results.end())
        results.push_back(value);
    }
    return results;
  }

  Expansion &e_;
  GraphBuilder &b_;
  const Cell &cell_;
  const int64_t units_, layers_, directions_;
  graph::Dims dims_;                                   // of the input
  ValueId positions_ = kNoValue, lengths_ = kNoValue;  // [length]; [batch, 1]
};

ValueId run(Expansion &e, const Cell &cell) {
  if (e.f64("dropout") >= 1) return e.fail("attribute 'dropout' must be below 1");
  const bool is_bidirectional = e.flag("bidirectional");
  if (is_bidirectional && e.flag("reverse"))
    return e.fail("a bidirectional layer runs in both directions: 'reverse' has no meaning");
  return Recurrence(e, cell, is_bidirectional).run();
}

}  // namespace

ValueId expand_layer_rnn(Expansion &e) {
  const bool is_relu = e.text("activation") == "relu";
  const auto step = [is_relu](Expansion &in, ValueId from_input, ValueId from_state, const Values &) {
    GraphBuilder &b = in.builder();
    const ValueId state = b.unary(is_relu ? "relu" : "tanh", b.add(from_input, from_state));
    return Values{state, state};
  };
  return run(e, {.name = "rnn", .gates = 1, .states = 1, .has_recurrent_bias = false, .step = step});
}

// Gates in the order input, forget, cell, output.
ValueId expand_layer_lstm(Expansion &e) {
  const double forget_bias = e.f64("forget_bias");
  const auto step = [forget_bias](Expansion &in, ValueId from_input, ValueId from_state, const Values &states) {
    GraphBuilder &b = in.builder();
    const int64_t units = in.i64("units");
    const ValueId gates = b.add(from_input, from_state);
    ValueId forget = gate(b, gates, 1, units);
    if (forget_bias != 0) forget = b.add_scalar(forget, forget_bias);
    forget = b.unary("sigmoid", forget);
    const ValueId input = b.unary("sigmoid", gate(b, gates, 0, units)),
                  candidate = b.unary("tanh", gate(b, gates, 2, units)),
                  output = b.unary("sigmoid", gate(b, gates, 3, units));
    const ValueId cell = b.add(b.mul(forget, states[1]), b.mul(input, candidate));
    return Values{b.mul(output, b.unary("tanh", cell)), cell, input, forget, candidate, output};
  };
  return run(e, {.name = "lstm", .gates = 4, .states = 2, .has_recurrent_bias = false, .step = step});
}

// Gates in the order reset, update, new.
ValueId expand_layer_gru(Expansion &e) {
  const auto step = [](Expansion &in, ValueId from_input, ValueId from_state, const Values &states) {
    GraphBuilder &b = in.builder();
    const int64_t units = in.i64("units");
    const auto sum = [&](int64_t i) { return b.add(gate(b, from_input, i, units), gate(b, from_state, i, units)); };
    const ValueId reset = b.unary("sigmoid", sum(0)), update = b.unary("sigmoid", sum(1));
    const ValueId gated = gate(b, from_state, 2, units);
    const ValueId made = b.unary("tanh", b.add(gate(b, from_input, 2, units), b.mul(reset, gated)));
    return Values{b.add(made, b.mul(update, b.sub(states[0], made))), reset, update, made, gated};
  };
  return run(e, {.name = "gru", .gates = 3, .states = 1, .has_recurrent_bias = true, .step = step});
}

}  // namespace tutti::impl::nn

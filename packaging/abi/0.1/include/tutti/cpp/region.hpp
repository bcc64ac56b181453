// SPDX-License-Identifier: Apache-2.0
//
// Ops with regions in C++: each region is a function that is called once, to write the graph.
//
//   auto [last, all] = tutti::scan(g, {h0}, {x}, [&](const tutti::Values &states, const tutti::Values &elements) {
//     const tutti_value h = tutti_tanh(g, tutti_add(g, states[0], elements[0]));
//     return std::pair(tutti::Values{h}, tutti::Values{h});               // the next states, and what is stacked
//   });
#ifndef TUTTI_CPP_REGION_HPP_
#define TUTTI_CPP_REGION_HPP_

#include <tutti/region.h>
#include <tutti/cpp/handle.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

using Values = std::vector<tutti_value>;
using Region = std::function<Values(const Values &parameters)>;

namespace detail {

/// An op with regions, from begin to end.
class RegionOp {
 public:
  RegionOp(const Graph &graph, const char *op, const Values &inputs) : graph_(graph) {
    tutti_graph_begin(graph_, op, 1);
    for (const tutti_value input : inputs)
      tutti_graph_add_input(graph_, input);
  }
  Values begin(size_t count) const {
    Values parameters(count);
    tutti_graph_begin_region(graph_, parameters.data(), static_cast<int64_t>(count));
    return parameters;
  }
  void end(const Values &results) const {
    tutti_graph_end_region(graph_, results.data(), static_cast<int64_t>(results.size()));
  }
  Values outputs(size_t count) const {
    Values all(count + 1);
    all[0] = tutti_graph_end(graph_, all.data() + 1, static_cast<int64_t>(count));
    all.resize(count);
    return all;
  }

 private:
  Graph graph_;
};

}  // namespace detail

/// A loop over an axis of the sequences. `body`, from the states and one element of each sequence, gives the next
/// states and elements of what is stacked; the loop gives the last states and all that was stacked.
template <typename Body>
std::pair<Values, Values> scan(const Graph &graph, const Values &states, const Values &sequences, Body &&body,
                               int64_t axis = 0, bool reverse = false) {
  Values inputs = states;
  inputs.insert(inputs.end(), sequences.begin(), sequences.end());
  const detail::RegionOp op(graph, "scan", inputs);
  tutti_graph_set_i64(graph, "states", static_cast<int64_t>(states.size()));
  tutti_graph_set_i64(graph, "sequences", static_cast<int64_t>(sequences.size()));
  tutti_graph_set_i64(graph, "axis", axis);
  tutti_graph_set_bool(graph, "reverse", reverse);
  const Values parameters = op.begin(inputs.size());
  const auto middle = parameters.begin() + static_cast<std::ptrdiff_t>(states.size());
  const auto [next, stacked] = body(Values(parameters.begin(), middle), Values(middle, parameters.end()));
  Values results = next;
  results.insert(results.end(), stacked.begin(), stacked.end());
  op.end(results);
  const Values outputs = op.outputs(results.size());
  const auto last = outputs.begin() + static_cast<std::ptrdiff_t>(next.size());
  return {Values(outputs.begin(), last), Values(last, outputs.end())};
}

/// What `then` writes runs if the boolean scalar is true, else what `otherwise` writes.
inline Values cond(const Graph &graph, tutti_value predicate, const std::function<Values()> &then,
                   const std::function<Values()> &otherwise) {
  const detail::RegionOp op(graph, "cond", {predicate});
  op.begin(0);
  const Values results = then();
  op.end(results);
  op.begin(0);
  op.end(otherwise());
  return op.outputs(results.size());
}

/// A part of the model that the backward pass computes again.
inline Values call(const Graph &graph, const Values &inputs, const Region &body) {
  const detail::RegionOp op(graph, "call", inputs);
  const Values results = body(op.begin(inputs.size()));
  op.end(results);
  return op.outputs(results.size());
}

/// A function with a gradient of its own. `backward` gets inputs, outputs and gradients of the outputs, and gives one
/// value for each input.
inline Values custom_gradient(
    const Graph &graph, const Values &inputs, const Region &forward,
    const std::function<Values(const Values &inputs, const Values &outputs, const Values &gradients)> &backward) {
  const detail::RegionOp op(graph, "custom_gradient", inputs);
  const Values results = forward(op.begin(inputs.size()));
  op.end(results);
  const Values all = op.begin(inputs.size() + 2 * results.size());
  const auto outputs = all.begin() + static_cast<std::ptrdiff_t>(inputs.size());
  const auto gradients = outputs + static_cast<std::ptrdiff_t>(results.size());
  op.end(backward(Values(all.begin(), outputs), Values(outputs, gradients), Values(gradients, all.end())));
  return op.outputs(results.size());
}

/// What a slot has a value for: each element of a variable; with stacks also each row or each column of its matrices.
enum class SlotPer { element, row, column };

/// What a rule of update keeps of each variable, from update to update.
struct Slot {
  std::string name;
  double initial = 0;
  SlotPer per = SlotPer::element;
};

/// As tutti_update_rule_attrs.
struct UpdateRuleOptions {
  std::vector<Slot> slots;
  double weight_decay = 0;
  int32_t dtype = TUTTI_DTYPE_F32;
  bool matrices = false;
  bool stacks = false;
  bool lazy = false;
  bool keeps_unreached = false;
  double clip_value = 0;
  double clip_norm = 0;
  double average_decay = 0;
  bool average_ramp = false;
  int64_t average_start = 0;
};

/// What a rule of update gets. Weight, gradient and slots are arrays of one axis, matrices [rows, columns], or stacks
/// [matrices, rows, columns], where slots may be [matrices, rows] or [matrices, columns].
struct VariableUpdate {
  tutti_value weight, gradient;
  tutti_value learning_rate, weight_decay;
  tutti_value count;  ///< the number of the update, an i64 scalar, from 1
  Values slots;
};

namespace detail {

/// The attributes of a rule, valid while this lives.
class UpdateRuleAttributes {
 public:
  explicit UpdateRuleAttributes(const UpdateRuleOptions &options) {
    for (const Slot &slot : options.slots) {
      constexpr const char *names[] = {"element", "row", "column"};
      slots_ += (slots_.empty() ? "" : ", ") + slot.name;
      slots_per_ += (slots_per_.empty() ? std::string() : ", ") + names[static_cast<size_t>(slot.per)];
      initial_.push_back(slot.initial);
    }
    attrs_.slots = slots_.c_str();
    attrs_.slots_per = slots_per_.c_str();
    attrs_.initial = initial_.data();
    attrs_.initial_count = static_cast<int64_t>(initial_.size());
    attrs_.weight_decay = options.weight_decay;
    attrs_.dtype = options.dtype;
    attrs_.matrices = options.matrices;
    attrs_.stacks = options.stacks;
    attrs_.lazy = options.lazy;
    attrs_.keeps_unreached = options.keeps_unreached;
    attrs_.clip_value = options.clip_value;
    attrs_.clip_norm = options.clip_norm;
    attrs_.average_decay = options.average_decay;
    attrs_.average_ramp = options.average_ramp;
    attrs_.average_start = options.average_start;
  }
  UpdateRuleAttributes(const UpdateRuleAttributes &) = delete;
  UpdateRuleAttributes &operator=(const UpdateRuleAttributes &) = delete;
  const tutti_update_rule_attrs *get() const { return &attrs_; }

 private:
  std::string slots_, slots_per_;
  std::vector<double> initial_;
  tutti_update_rule_attrs attrs_ = {};
};

}  // namespace detail

/// An optimizer of one's own. `rule`, from a VariableUpdate, gives std::pair(new weight, Values{new slots}). It is
/// called once, to write the graph for all variables of the dtype, and may use values that are computed from constants,
/// schedules and host scalars.
template <typename Rule>
void update_rule(const Graph &graph, tutti_value learning_rate, const UpdateRuleOptions &options, Rule &&rule) {
  constexpr size_t first_slot = 5;
  const detail::UpdateRuleAttributes attributes(options);
  Values given(first_slot + options.slots.size());
  tutti_begin_update_rule(graph, learning_rate, attributes.get(), given.data(), static_cast<int64_t>(given.size()));
  const auto [weight, slots] = rule(VariableUpdate{given[0], given[1], given[2], given[3], given[4],
                                                   Values(given.begin() + first_slot, given.end())});
  Values results = {weight};
  results.insert(results.end(), slots.begin(), slots.end());
  tutti_end_update_rule(graph, results.data(), static_cast<int64_t>(results.size()));
}

}  // namespace tutti

#endif  // TUTTI_CPP_REGION_HPP_

// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/image_layouts.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string_view>

#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/lower/cost_network.h"

namespace tutti::impl::backend::cpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

constexpr double kForbidden = 1e6;  // seconds

/// An op that takes and makes images in either layout, and the seconds per byte of its largest image that it takes
/// longer in blocks than row-major: with fewer than kManyChannels, and with as many (tests/bench/image_layout_bench).
struct EitherLayout {
  std::string_view op;
  double blocked_excess, blocked_excess_of_many;
};
constexpr int64_t kManyChannels = 512;
constexpr EitherLayout kEitherLayout[] = {
    {"batch_norm_training", 0, -4e-11},
    {"batch_norm_training_gradient", 0, -9e-11},
    {"batch_norm_inference", 0, -4e-11},
    {"batch_norm_moments", 0, -1e-11},
    {"batch_norm_gradient_moments", 0, -4e-11},
    {"batch_norm_gradient_apply", 0, -5e-11},
    {"group_norm", 0, -4e-11},  // the passes of batch norm
    {"group_norm_gradient", 0, -9e-11},
    {"max_pool2d", 2e-12, 2e-12},
    {"max_pool2d_gradient", 0, 0},
    {"avg_pool2d", 1e-11, 1e-11},
};

const EitherLayout *either_layout(const Node &node) {
  for (const EitherLayout &entry : kEitherLayout) {
    if (entry.op == node.op) return &entry;
  }
  return nullptr;
}

std::optional<ConvolutionPass> pass_of(const Node &node) {
  if (node.op == "conv2d") return ConvolutionPass::forward;
  if (node.op == "conv2d_input_gradient") return ConvolutionPass::input_gradient;
  if (node.op == "conv2d_kernel_gradient") return ConvolutionPass::kernel_gradient;
  return std::nullopt;
}

/// The image on the side of x (x or its gradient) and on the side of y.
std::pair<ValueId, ValueId> images_of(const Node &node, ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::forward:
      return {node.inputs[0], node.outputs[0]};
    case ConvolutionPass::input_gradient:
      return {node.outputs[0], node.inputs[0]};
    case ConvolutionPass::kernel_gradient:
      break;
  }
  return {node.inputs[0], node.inputs[1]};
}

/// Calls function(step, question) for every convolution that is computed in f32.
template <typename Function>
void for_convolutions(const LoweredGraph &graph, const FusionPlan &fusion, const Function &function) {
  // Where there is no such arithmetic, a permission changes nothing.
  const bool allows_bf16 = graph.allows_bf16() && has_bf16();
  for (int32_t step = 0; step < graph.step_count(); ++step) {
    const Node &node = graph.step(step);
    const std::optional<ConvolutionPass> pass = pass_of(node);
    if (!pass || fusion.group_of(step) == nullptr || graph.value(node.outputs[0]).dtype != DType::f32) continue;
    const ConvolutionShape shape = convolution_shape(graph, node);
    if (!is_empty(shape)) function(step, ConvolutionQuestion{shape, *pass, graph.threads(), allows_bf16});
  }
}

}  // namespace

class LayoutPass {
 public:
  LayoutPass(const LoweredGraph &graph, const FusionPlan &fusion)
      : graph_(graph), fusion_(fusion), parents_(graph.values().size()), variables_(graph.values().size(), -1) {
    std::iota(parents_.begin(), parents_.end(), 0);
    result_.blocked_.assign(graph.values().size(), 0);
  }

  ImageLayouts by_rule() {
    std::map<ConvolutionShape, base::Result<ConvolutionCandidate>> known;
    for_convolutions(graph_, fusion_, [&](int32_t step, const ConvolutionQuestion &question) {
      auto found = known.find(question.shape);
      if (found == known.end()) {
        found = known.emplace(question.shape, choose_by_rule(question.shape, graph_.level(), graph_.threads())).first;
      }
      if (!found->second.ok()) return;
      ConvolutionCandidate candidate = *found->second;
      candidate.request.pass = question.pass;
      result_.convolutions_.emplace(step, std::move(candidate));
    });
    return std::move(result_);
  }

  ImageLayouts by_cost() {
    reorder_ = ConvolutionTimes::of_process().reorder_seconds_per_byte();
    forced_ = forced_convolution_from_environment();
    for (int32_t step = 0; step < graph_.step_count(); ++step)
      join_images(step);
    for (size_t id = 0; id < variables_.size(); ++id)
      give_variable(static_cast<ValueId>(id));
    for (int32_t step = 0; step < graph_.step_count(); ++step)
      add_neighbour(step);
    for (size_t id = 0; id < variables_.size(); ++id)
      add_borders(static_cast<ValueId>(id));
    for_convolutions(graph_, fusion_,
                     [this](int32_t step, const ConvolutionQuestion &question) { add_convolution(step, question); });
    const std::vector<char> best = network_.minimize();
    for (size_t id = 0; id < variables_.size(); ++id) {
      const int32_t variable = variables_[root(static_cast<ValueId>(id))];
      result_.blocked_[id] = can_block(static_cast<ValueId>(id)) && best[static_cast<size_t>(variable)] != 0 ? 1 : 0;
    }
    for (const Convolution &one : convolutions_) {
      const TimedCandidate *candidate =
          cheapest(one, result_.is_blocked(one.input), result_.is_blocked(one.output)).first;
      if (candidate != nullptr) result_.convolutions_.emplace(one.step, candidate->candidate);
    }
    return std::move(result_);
  }

 private:
  struct Convolution {
    int32_t step;
    ValueId input, output;
    std::vector<TimedCandidate> candidates;
  };

  // ---- sets of images of one layout ----

  bool is_image(ValueId id) const {
    return id != kNoValue && graph_.value(id).dims.size() == 4 && graph_.value(id).dtype == DType::f32;
  }
  bool can_block(ValueId id) const {
    return is_image(id) && graph_.value(id).dims[3] % kBlockChannels == 0 && graph_.value(id).elements > 0;
  }
  size_t root(ValueId id) {
    auto at = static_cast<size_t>(id);
    while (parents_[at] != at)
      at = parents_[at] = parents_[parents_[at]];
    return at;
  }
  void join(ValueId a, ValueId b) {
    const size_t x = root(a), y = root(b);
    parents_[std::max(x, y)] = std::min(x, y);
  }

  /// Elementwise nodes of one shape, as lower_elementwise takes them.
  bool is_uniform(const Node &node) const {
    if (node.outputs.size() != 1 || !is_image(node.outputs[0]) || !is_elementwise(graph_, node)) return false;
    const std::vector<int64_t> &dims = graph_.value(node.outputs[0]).dims;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return graph_.value(input).elements == 1 || (is_image(input) && graph_.value(input).dims == dims);
    });
  }

  /// Squares of all elements, in any order, or of rows or columns?
  bool adds_all(const Group &group) const {
    return graph_.value(graph_.step(group.steps.back()).outputs[0]).elements == 1;
  }

  /// Does the node at a step take both layouts?
  bool is_flexible(int32_t step) const {
    const Node &node = graph_.step(step);
    if (either_layout(node) != nullptr) return true;
    const Group &group = *fusion_.group_of(step);
    if (group.kind == GroupKind::elementwise) {
      return std::all_of(group.steps.begin(), group.steps.end(),
                         [this](int32_t one) { return is_uniform(graph_.step(one)); });
    }
    if (group.kind == GroupKind::sum_of_squares && !adds_all(group)) return false;
    // What follows a convolution or a normalisation in its group: bias, sum, relu.
    return group.kind != GroupKind::single && is_elementwise(graph_, node);
  }

  void join_images(int32_t step) {
    if (fusion_.group_of(step) == nullptr || !is_flexible(step)) return;
    const Node &node = graph_.step(step);
    for (ValueId output : node.outputs) {
      for (ValueId input : node.inputs) {
        const bool meet = is_image(input) && is_image(output) &&
                          graph_.value(input).dims[3] == graph_.value(output).dims[3] &&
                          graph_.value(input).dims[0] == graph_.value(output).dims[0];
        if (meet) join(input, output);
      }
    }
  }

  void give_variable(ValueId id) {
    if (can_block(id) && variables_[root(id)] < 0) variables_[root(id)] = network_.add_variable();
  }
  int32_t variable(ValueId id) { return can_block(id) ? variables_[root(id)] : -1; }

  // ---- costs ----

  /// Of changing the layout of an image; images of 16 channels are the same bytes in both.
  double reorder_cost(ValueId id) const {
    const LoweredValue &value = graph_.value(id);
    return value.dims[3] == kBlockChannels ? 0 : static_cast<double>(value.bytes) * reorder_;
  }

  void add_neighbour(int32_t step) {
    if (fusion_.group_of(step) == nullptr) return;
    const Node &node = graph_.step(step);
    const EitherLayout *entry = either_layout(node);
    if (entry == nullptr) return;
    int64_t bytes = 0;
    ValueId image = kNoValue;
    for (const auto &list : {node.inputs, node.outputs}) {
      for (ValueId id : list) {
        if (!is_image(id) || graph_.value(id).bytes <= bytes) continue;
        bytes = graph_.value(id).bytes;
        image = id;
      }
    }
    if (image == kNoValue || variable(image) < 0) return;
    const bool many = graph_.value(image).dims[3] >= kManyChannels;
    const double excess = many ? entry->blocked_excess_of_many : entry->blocked_excess;
    if (excess != 0) network_.add_cost(variable(image), 0, static_cast<double>(bytes) * excess);
  }

  /// Where an image meets somebody who only takes or makes it row-major.
  void add_borders(ValueId id) {
    if (!can_block(id)) return;
    const int32_t producer = fusion_.producer(id);
    const auto is_row_major = [this](int32_t step) {
      const Group *group = fusion_.group_of(step);
      // The sum that is a bias's gradient is taken by the convolution's gradient. Squares are only added up.
      if (group == nullptr || group->kind == GroupKind::kernel_gradient) return false;
      if (group->kind == GroupKind::sum_of_squares && adds_all(*group)) return false;
      return !pass_of(graph_.step(step)) && !is_flexible(step);
    };
    double cost = 0;
    if (producer < 0 || is_row_major(producer)) cost += reorder_cost(id);
    const std::vector<int32_t> &uses = fusion_.uses(id);
    if (fusion_.is_result(id) || std::any_of(uses.begin(), uses.end(), is_row_major)) cost += reorder_cost(id);
    if (cost > 0) network_.add_cost(variable(id), 0, cost);
  }

  void add_convolution(int32_t step, const ConvolutionQuestion &question) {
    Convolution one{step, kNoValue, kNoValue, ConvolutionTimes::of_process().of(question)};
    std::tie(one.input, one.output) = images_of(graph_.step(step), question.pass);
    for (TimedCandidate &candidate : one.candidates) {
      if (!forced_.empty() && !label(candidate.candidate).starts_with(forced_)) candidate.seconds += kForbidden;
    }
    const int32_t x = variable(one.input), y = variable(one.output);
    std::array<std::array<double, 2>, 2> cost{};
    for (int bx : {0, 1}) {
      for (int by : {0, 1})
        cost[static_cast<size_t>(bx)][static_cast<size_t>(by)] = cheapest(one, bx != 0, by != 0).second;
    }
    if (x >= 0 && y >= 0) {
      network_.add_cost(x, y, cost);
    } else if (x >= 0) {
      network_.add_cost(x, cost[0][0], cost[1][0]);
    } else if (y >= 0) {
      network_.add_cost(y, cost[0][0], cost[0][1]);
    }
    convolutions_.push_back(std::move(one));
  }

  /// The best candidate between images in these layouts, and what it costs with the reorders it needs.
  std::pair<const TimedCandidate *, double> cheapest(const Convolution &one, bool blocked_input,
                                                     bool blocked_output) const {
    const TimedCandidate *best = nullptr;
    double least = 0;
    for (const TimedCandidate &timed : one.candidates) {
      double cost = timed.seconds;
      if (timed.candidate.request.blocked_input != blocked_input) cost += reorder_cost(one.input);
      if (timed.candidate.request.blocked_output != blocked_output) cost += reorder_cost(one.output);
      if (best != nullptr && cost >= least) continue;
      best = &timed;
      least = cost;
    }
    return {best, least};
  }

  const LoweredGraph &graph_;
  const FusionPlan &fusion_;
  std::vector<size_t> parents_;     // by value: sets of images
  std::vector<int32_t> variables_;  // by root of a set, -1 = none
  CostNetwork network_;
  std::vector<Convolution> convolutions_;
  double reorder_ = 0;
  std::string forced_;
  ImageLayouts result_;
};

ImageLayouts ImageLayouts::make(const LoweredGraph &graph, const FusionPlan &fusion) {
  LayoutPass pass(graph, fusion);
  return graph.level() == TUTTI_LEVEL_FAST ? pass.by_cost() : pass.by_rule();
}

std::vector<ConvolutionQuestion> convolution_questions(const LoweredGraph &graph, const FusionPlan &fusion) {
  std::vector<ConvolutionQuestion> questions;
  if (graph.level() != TUTTI_LEVEL_FAST) return questions;
  for_convolutions(graph, fusion, [&](int32_t, const ConvolutionQuestion &question) { questions.push_back(question); });
  return questions;
}

std::string forced_convolution_from_environment() {
  const char *value = secure_getenv("TUTTI_CPU_CONVOLUTION");
  return value == nullptr ? "" : value;
}

}  // namespace tutti::impl::backend::cpu

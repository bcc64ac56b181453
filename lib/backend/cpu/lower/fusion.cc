// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/fusion.h"

#include <algorithm>

#include "backend/cpu/lower/lower.h"
#include "backend/cpu/lower/product_times.h"
#include "backend/cpu/lower/variable_update.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/shapes/strided_view.h"
#include "backend/cpu/simd/simd_elementwise.h"
#include "backend/cpu/simd/simd_gemm.h"
#include "backend/cpu/simd/simd_split_gemm.h"

namespace tutti::impl::backend::cpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

constexpr size_t kMaximumChain = 24;

bool is_register_dtype(DType dtype) { return dtype == DType::f32 || dtype == DType::boolean; }

bool is_convertible(DType dtype) {
  return is_register_dtype(dtype) || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64 ||
         dtype == DType::i8 || dtype == DType::u8;
}

bool has_effect(const Node &node) { return node.op == "state_write" || node.op == "all_reduce"; }

}  // namespace

bool is_elementwise(const LoweredGraph &graph, const Node &node) {
  if (node.outputs.size() != 1 || !is_register_dtype(graph.value(node.outputs[0]).dtype)) return false;
  if (node.op == "cast") {
    const DType from = graph.value(node.inputs[0]).dtype;
    // What is not zero may be zero once it is a float.
    const bool to_boolean = graph.value(node.outputs[0]).dtype == DType::boolean;
    return to_boolean ? is_register_dtype(from) : is_convertible(from);
  }
  if (!element_op(node.op, false)) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return input != kNoValue && is_register_dtype(graph.value(input).dtype); });
}

bool is_read_in_place(const Node &node) { return node.op == "slice" || node.op == "broadcast_to"; }

std::optional<ScaledValue> scaled_value(const LoweredGraph &graph, const FusionPlan &plan, const Node &node) {
  if (node.op != "mul" || graph.value(node.outputs[0]).dtype != DType::f32) return std::nullopt;
  for (const size_t side : {size_t{1}, size_t{0}}) {
    const ValueId factor = node.inputs[side];
    const int32_t step = plan.producer(factor);
    if (step < 0 || graph.step(step).op != "constant" || graph.value(factor).elements != 1) continue;
    const auto value = attribute<tensor::Tensor>(graph.step(step), "value");
    return ScaledValue{node.inputs[1 - side], *value.data_as<float>()};
  }
  return std::nullopt;
}

bool FusionPlan::is_internal(ValueId id) const {
  const int32_t step = producer(id);
  if (step < 0 || is_result(id) || uses(id).empty()) return false;
  const int32_t group = group_index_[static_cast<size_t>(step)];
  return std::all_of(uses(id).begin(), uses(id).end(),
                     [&](int32_t use) { return group_index_[static_cast<size_t>(use)] == group; });
}

int32_t FusionPlan::waiting_mask(ValueId id) const {
  const int32_t step = producer(id);
  if (step < 0) return -1;
  const Group *group = group_of(step);
  return group != nullptr && group->kind == GroupKind::norm_gradient ? step : -1;
}

class Fuser {
 public:
  explicit Fuser(const LoweredGraph &graph) : graph_(graph) {}

  FusionPlan make() {
    find_needed();
    find_uses();
    plan_.group_index_.assign(static_cast<size_t>(graph_.step_count()), -1);
    for (int32_t step = 0; step < graph_.step_count(); ++step) {
      if (is_free(step)) fuse_from(step);
    }
    for (int32_t step = graph_.step_count() - 1; step >= 0; --step) {
      if (is_free(step)) grow_elementwise(step);
    }
    for (int32_t step = 0; step < graph_.step_count(); ++step) {
      if (is_free(step)) add_group(GroupKind::single, {step}, step);
    }
    return std::move(plan_);
  }

 private:
  const Node &node(int32_t step) const { return graph_.step(step); }

  void find_needed() {
    std::vector<char> value_needed(graph_.values().size(), 0);
    needed_.assign(static_cast<size_t>(graph_.step_count()), 0);
    plan_.is_result_.assign(graph_.values().size(), 0);
    plan_.producer_.assign(graph_.values().size(), -1);
    for (const LoweredPort &port : graph_.outputs()) {
      value_needed[static_cast<size_t>(port.value)] = 1;
      ++plan_.is_result_[static_cast<size_t>(port.value)];
    }
    for (int32_t step = graph_.step_count() - 1; step >= 0; --step) {
      bool wanted = has_effect(node(step));
      for (ValueId output : node(step).outputs) {
        wanted |= value_needed[static_cast<size_t>(output)] != 0;
        plan_.producer_[static_cast<size_t>(output)] = step;
      }
      if (!wanted) continue;
      needed_[static_cast<size_t>(step)] = 1;
      for (ValueId input : node(step).inputs) {
        if (input != kNoValue) value_needed[static_cast<size_t>(input)] = 1;
      }
    }
  }

  void find_uses() {
    plan_.uses_.resize(graph_.values().size());
    for (int32_t step = 0; step < graph_.step_count(); ++step) {
      if (!needed_[static_cast<size_t>(step)]) continue;
      for (ValueId input : node(step).inputs) {
        if (input != kNoValue) plan_.uses_[static_cast<size_t>(input)].push_back(step);
      }
    }
  }

  bool is_free(int32_t step) const {
    return needed_[static_cast<size_t>(step)] != 0 && plan_.group_index_[static_cast<size_t>(step)] < 0;
  }

  void add_group(GroupKind kind, std::vector<int32_t> steps, int32_t emit_at) {
    for (int32_t step : steps)
      plan_.group_index_[static_cast<size_t>(step)] = static_cast<int32_t>(plan_.groups_.size());
    plan_.groups_.push_back({kind, std::move(steps), emit_at});
  }

  /// The one node that uses a value, if it is a free `op`; else -1.
  int32_t only_user(ValueId id, std::string_view op) const {
    if (plan_.use_count(id) != 1 || plan_.uses(id).size() != 1) return -1;
    const int32_t user = plan_.uses(id)[0];
    return is_free(user) && node(user).op == op ? user : -1;
  }

  ValueId other_input(int32_t step, ValueId id) const {
    const Node &n = node(step);
    return n.inputs[0] == id ? n.inputs[1] : n.inputs[0];
  }

  bool same_dims(ValueId a, ValueId b) const { return graph_.value(a).dims == graph_.value(b).dims; }

  /// May the nodes `from` and what it reads wait until `to`?
  bool may_wait(int32_t from, int32_t to) const {
    const std::vector<int32_t> entries = entries_behind(node(from).inputs);
    for (int32_t step = from + 1; step < to; ++step) {
      if (node(step).op == "all_reduce" || writes_any(step, entries)) return false;
    }
    return true;
  }

  /// The state entries that values are, also seen under another name or shape.
  std::vector<int32_t> entries_behind(const std::vector<ValueId> &values) const {
    std::vector<int32_t> entries;
    for (ValueId root : values) {
      if (root == kNoValue) continue;
      for (int32_t step = plan_.producer(root); step >= 0; step = plan_.producer(root)) {
        const std::string &op = node(step).op;
        if (op != "reshape" && op != "identity" && op != "stop_gradient") {
          if (op == "state_read") entries.push_back(graph_.access(step).entry);
          break;
        }
        root = node(step).inputs[0];
      }
    }
    return entries;
  }

  bool writes_any(int32_t step, const std::vector<int32_t> &entries) const {
    return node(step).op == "state_write" &&
           std::find(entries.begin(), entries.end(), graph_.access(step).entry) != entries.end();
  }

  bool is_bias(ValueId id, ValueId target) const {
    const LoweredValue &bias = graph_.value(id);
    const LoweredValue &y = graph_.value(target);
    return bias.dims.size() == 1 && !y.dims.empty() && bias.dims[0] == y.dims.back() && bias.dtype == DType::f32;
  }

  /// Adds to `steps` a following add of a bias.
  void add_bias(std::vector<int32_t> &steps) const {
    const ValueId y = node(steps.back()).outputs[0];
    const int32_t add = only_user(y, "add");
    if (add >= 0 && is_bias(other_input(add, y), y) && same_dims(node(add).outputs[0], y) &&
        may_wait(steps.front(), add)) {
      steps.push_back(add);
    }
  }

  /// A following add of another value of the same shape.
  void add_addend(std::vector<int32_t> &steps) const {
    const ValueId y = node(steps.back()).outputs[0];
    const int32_t add = only_user(y, "add");
    if (add < 0 || !may_wait(steps.front(), add)) return;
    const ValueId other = other_input(add, y);
    if (other != y && same_dims(other, y) && same_dims(node(add).outputs[0], y)) steps.push_back(add);
  }

  void add_relu(std::vector<int32_t> &steps) const {
    const int32_t relu = only_user(node(steps.back()).outputs[0], "relu");
    if (relu >= 0 && may_wait(steps.front(), relu)) steps.push_back(relu);
  }

  void fuse_dense(int32_t step) {
    const Node &n = node(step);
    const LoweredValue &y = graph_.value(n.outputs[0]);
    if (y.dtype != DType::f32) return;
    if (fuse_dense_update(step)) return;
    std::vector<int32_t> steps = {step};
    const int32_t mask = only_user(n.outputs[0], "relu_gradient");
    if (mask >= 0 && node(mask).inputs[0] == n.outputs[0] && may_wait(step, mask)) {
      steps.push_back(mask);
    } else {
      add_bias(steps);
      add_relu(steps);
    }
    if (steps.size() > 1) add_group(GroupKind::dense, steps, steps.back());
  }

  /// Had the library better make this gradient of a variable (lower_dense.cc)?
  bool is_large(const Node &n) const {
    const std::vector<int64_t> &a = graph_.value(n.inputs[0]).dims, &y = graph_.value(n.outputs[0]).dims;
    const bool turned = flag(n, "transpose_a");
    if (graph_.level() != TUTTI_LEVEL_FAST || graph_.threads() > 1) return false;
    ProductRequest request{.m = y[0], .n = y[1], .k = a[turned ? 0 : 1], .turned = turned};
    request.bf16 = true;
    if (graph_.allows_bf16() && ProductTimes::of_process().pays(request)) return true;
    request.bf16 = false;
    constexpr int64_t kFewExamples = 128;
    GemmShape shape{.m = request.m, .n = request.n, .k = request.k};
    shape.a_row = turned ? 1 : shape.k, shape.a_column = turned ? shape.m : 1;
    const bool b_turned = flag(n, "transpose_b");
    shape.b_row = b_turned ? 1 : shape.n, shape.b_column = b_turned ? shape.k : 1;
    return !split_gemm_update_suits(shape) && ProductPlan::suits(request) && request.rows() > kFewExamples;
  }

  /// The slice of columns that only a gradient reads, as its first factor, so that they can be read where they lie.
  /// -1 if there is none.
  int32_t sliced_factor(int32_t gradient, int32_t update) const {
    const ValueId factor = node(gradient).inputs[0];
    const int32_t slice = plan_.producer(factor);
    if (slice < 0 || only_user(factor, "matmul") != gradient || !is_free(slice)) return -1;
    return submatrix_view(graph_, node(slice)) && may_wait(slice, update) ? slice : -1;
  }

  /// A product that is the gradient of a variable, and whose sums one pass makes. For large ones of many examples the
  /// library gains more than storing the gradient costs; narrow ones are updated faster in one row.
  bool fuse_dense_update(int32_t step) {
    const Node &n = node(step);
    const std::vector<int64_t> &a = graph_.value(n.inputs[0]).dims;
    if (a.size() != 2 || graph_.value(n.inputs[1]).dims.size() != 2) return false;
    constexpr int64_t kColumns = 64;
    if (graph_.value(n.outputs[0]).dims[1] < kColumns || is_large(n)) return false;
    if (a[flag(n, "transpose_a") ? 0 : 1] > kGemmUpdateDepth) return false;
    if (plan_.use_count(n.outputs[0]) != 1 || plan_.uses(n.outputs[0]).size() != 1) return false;
    const int32_t update = plan_.uses(n.outputs[0])[0];
    const bool fits = is_free(update) && is_update(node(update).op) && gradient_of(node(update)) == n.outputs[0] &&
                      VariableUpdate::suits(graph_, node(update)) && may_wait(step, update);
    if (!fits) return false;
    std::vector<int32_t> steps = {step, update};
    const int32_t slice = sliced_factor(step, update);
    if (slice >= 0) steps.insert(steps.begin(), slice);
    add_group(GroupKind::dense, std::move(steps), update);
    return true;
  }

  void fuse_convolution(int32_t step) {
    const Node &n = node(step);
    if (graph_.value(n.outputs[0]).dtype != DType::f32) return;
    std::vector<int32_t> steps = {step};
    const bool has_bias = n.inputs.size() > 2 && n.inputs[2] != kNoValue;
    if (!has_bias) add_bias(steps);
    add_addend(steps);
    add_relu(steps);
    if (steps.size() > 1) add_group(GroupKind::convolution, steps, steps.back());
  }

  /// Is a value there before `step`? Leaves always are.
  bool is_ready(ValueId id, int32_t step) const {
    const int32_t producer = plan_.producer(id);
    if (producer < 0 || producer > step) return false;
    const int32_t group = plan_.group_index_[static_cast<size_t>(producer)];
    return (group < 0 ? producer : plan_.groups_[static_cast<size_t>(group)].emit_at) < step;
  }

  void fuse_batch_norm(int32_t step) {
    ValueId y = node(step).outputs[0];
    if (graph_.value(y).dtype != DType::f32) return;
    // The statistics of a batch are needed at once, so that group is computed at the turn of its first node.
    const bool at_once = node(step).op == "batch_norm_training";
    std::vector<int32_t> steps = {step};
    const int32_t add = only_user(y, "add");
    if (add >= 0) {
      const ValueId other = other_input(add, y);
      if (other != y && same_dims(other, y) && (at_once ? is_ready(other, step) : may_wait(step, add))) {
        steps.push_back(add);
        y = node(add).outputs[0];
      }
    }
    const int32_t relu = only_user(y, "relu");
    if (relu >= 0 && (at_once || may_wait(step, relu))) steps.push_back(relu);
    if (steps.size() > 1) add_group(GroupKind::batch_norm, steps, at_once ? step : steps.back());
  }

  /// The normalisation, by an op of this name, whose relu made `y`; -1 if there is none.
  int32_t norm_under_relu(ValueId y, std::string_view op) const {
    const int32_t relu = plan_.producer(y);
    if (relu < 0 || node(relu).op != "relu") return -1;
    const int32_t norm = plan_.producer(node(relu).inputs[0]);
    return norm >= 0 && node(norm).op == op ? norm : -1;
  }

  /// The mask is made again from the normalisation's inputs, so its offset is read as late as the gradient is computed.
  void add_norm_gradient(int32_t step, int32_t norm, int32_t gradient) {
    add_group(GroupKind::norm_gradient, {step, gradient}, gradient);
    plan_.uses_[static_cast<size_t>(node(norm).inputs[2])].push_back(gradient);
  }

  void fuse_norm_gradient(int32_t step) {
    const Node &n = node(step);
    const int32_t gradient = only_user(n.outputs[0], "batch_norm_training_gradient");
    if (gradient < 0 || node(gradient).inputs[0] != n.outputs[0]) return fuse_global_norm_gradient(step);
    const int32_t norm = norm_under_relu(n.inputs[1], "batch_norm_training");
    if (norm < 0) return;
    const bool same_norm =
        node(norm).inputs[0] == node(gradient).inputs[1] && node(norm).inputs[1] == node(gradient).inputs[2] &&
        node(norm).outputs[1] == node(gradient).inputs[3] && node(norm).outputs[2] == node(gradient).inputs[4] &&
        number(node(norm), "epsilon") == number(node(gradient), "epsilon");
    if (same_norm && may_wait(step, gradient)) add_norm_gradient(step, norm, gradient);
  }

  /// With statistics of several replicas the gradient is two nodes with a collective between them; both make the mask.
  void fuse_global_norm_gradient(int32_t step) {
    const Node &n = node(step);
    if (plan_.use_count(n.outputs[0]) != 2 || plan_.uses(n.outputs[0]).size() != 2) return;
    const int32_t moments = plan_.uses(n.outputs[0])[0], apply = plan_.uses(n.outputs[0])[1];
    if (node(moments).op != "batch_norm_gradient_moments" || node(apply).op != "batch_norm_gradient_apply") return;
    if (node(moments).inputs[0] != n.outputs[0] || node(apply).inputs[0] != n.outputs[0] || !is_free(apply)) return;
    const int32_t norm = norm_under_relu(n.inputs[1], "batch_norm_inference");
    if (norm < 0 || number(node(norm), "epsilon") != number(node(apply), "epsilon")) return;
    const auto &given = node(norm).inputs;
    const auto &wanted = node(apply).inputs;
    const bool same_norm = given[0] == wanted[1] && given[1] == wanted[2] && given[3] == wanted[3] &&
                           given[4] == wanted[4] && node(moments).inputs[1] == given[0] &&
                           node(moments).inputs[2] == given[3];
    if (!same_norm || graph_.value(given[0]).elements == 0) return;
    for (ValueId input : given) {
      if (graph_.value(input).dtype != DType::f32) return;
    }
    const std::vector<int32_t> entries = entries_behind(given);
    for (int32_t between = step + 1; between < apply; ++between) {
      if (writes_any(between, entries)) return;
    }
    add_norm_gradient(step, norm, apply);
  }

  void fuse_pool_gradient(int32_t step) {
    const Node &n = node(step);
    const int32_t mask = only_user(n.outputs[0], "relu_gradient");
    if (mask < 0 || node(mask).inputs[0] != n.outputs[0] || node(mask).inputs[1] != n.inputs[1]) return;
    if (may_wait(step, mask)) add_group(GroupKind::pool_gradient, {step, mask}, mask);
  }

  void fuse_kernel_gradient(int32_t step) {
    const ValueId dy = node(step).inputs[1];
    if (graph_.value(dy).dtype != DType::f32) return;
    for (int32_t use : plan_.uses(dy)) {
      if (!is_free(use) || node(use).op != "reduce_sum" || flag(node(use), "keep_dims")) continue;
      if (integers(node(use), "axes") != std::vector<int64_t>{0, 1, 2}) continue;
      // Both need no more than x and dy.
      const int32_t first = std::min(step, use);
      if (!is_ready(node(step).inputs[0], first)) continue;
      return add_group(GroupKind::kernel_gradient, {first, std::max(step, use)}, first);
    }
  }

  /// An update whose gradient is a chain of adds of state: ((a + b) + c) + ...
  void fuse_update(int32_t step) {
    if (!VariableUpdate::suits(graph_, node(step))) return;
    std::vector<int32_t> steps;
    ValueId total = gradient_of(node(step));
    while (is_sum_of_state(total) && may_wait(plan_.producer(total), step)) {
      steps.push_back(plan_.producer(total));
      total = node(steps.back()).inputs[0];
    }
    // What is left is the first of the gradients.
    if (steps.empty() || steps.size() >= kMaximumGradients) return;
    steps.insert(steps.begin(), step);
    std::reverse(steps.begin(), steps.end());
    add_group(GroupKind::update, steps, step);
  }

  /// Is a value, used once, another of its shape plus an entry of state?
  bool is_sum_of_state(ValueId id) const {
    const int32_t add = plan_.producer(id);
    if (add < 0 || !is_free(add) || node(add).op != "add" || plan_.use_count(id) != 1) return false;
    const ValueId left = node(add).inputs[0], right = node(add).inputs[1];
    const int32_t read = plan_.producer(right);
    return read >= 0 && node(read).op == "state_read" && same_dims(left, id) && same_dims(right, id);
  }

  /// The free node, by an op of this name, that makes a value which nobody else uses; -1 if there is none.
  int32_t only_maker(ValueId id, std::string_view op) const {
    const int32_t maker = plan_.producer(id);
    return maker >= 0 && is_free(maker) && node(maker).op == op && plan_.use_count(id) == 1 ? maker : -1;
  }

  void fuse_sum_of_squares(int32_t step) {
    const LoweredValue &sum = graph_.value(node(step).outputs[0]);
    if (graph_.level() == TUTTI_LEVEL_INVARIANT || graph_.is_row_invariant()) return;
    if (sum.dtype != DType::f32) return;
    const int32_t square = only_maker(node(step).inputs[0], "square");
    if (square < 0) return;
    std::vector<int32_t> steps = {square, step};
    if (sum.elements != 1) {
      const bool fits = is_one_reduction(graph_.value(node(square).inputs[0]).dims, integers(node(step), "axes"));
      if (fits && may_wait(square, step)) add_group(GroupKind::sum_of_squares, std::move(steps), step);
      return;
    }
    const int32_t scaling = only_maker(node(square).inputs[0], "mul");
    if (scaling >= 0 && scaled_value(graph_, plan_, node(scaling)) && may_wait(scaling, step))
      steps.insert(steps.begin(), scaling);
    if (may_wait(square, step)) add_group(GroupKind::sum_of_squares, std::move(steps), step);
  }

  void fuse_concat(int32_t step) {
    std::vector<int32_t> steps;
    for (const ValueId input : node(step).inputs) {
      const int32_t slice = only_maker(input, "slice");
      StridedView view;
      if (slice >= 0 && may_wait(slice, step) &&
          view_of(graph_, node(slice), graph_.value(node(slice).inputs[0]).dims, view))
        steps.push_back(slice);
    }
    if (steps.empty()) return;
    std::sort(steps.begin(), steps.end());
    steps.push_back(step);
    add_group(GroupKind::concat, std::move(steps), step);
  }

  void fuse_from(int32_t step) {
    const std::string &op = node(step).op;
    if (is_update(op)) return fuse_update(step);
    if (op == "matmul") return fuse_dense(step);
    if (op == "conv2d") return fuse_convolution(step);
    if (op == "batch_norm_training" || op == "batch_norm_inference") return fuse_batch_norm(step);
    if (op == "relu_gradient") return fuse_norm_gradient(step);
    if (op == "max_pool2d_gradient") return fuse_pool_gradient(step);
    if (op == "conv2d_kernel_gradient") return fuse_kernel_gradient(step);
    if (op == "reduce_sum") return fuse_sum_of_squares(step);
    if (op == "concat") return fuse_concat(step);
  }

  /// Columns of a matrix, or what is broadcast but to images, which may be in blocks.
  bool may_read_in_place(int32_t step) const {
    if (!is_read_in_place(node(step))) return false;
    const LoweredValue &result = graph_.value(node(step).outputs[0]);
    if (result.dtype != DType::f32 || result.elements == 0) return false;
    if (node(step).op == "broadcast_to") return result.dims.size() != 4;
    return submatrix_view(graph_, node(step)).has_value();
  }

  void grow_elementwise(int32_t root) {
    if (!is_elementwise(graph_, node(root))) return;
    const ValueId result = node(root).outputs[0];
    std::vector<int32_t> steps = {root};
    for (size_t i = 0; i < steps.size() && steps.size() < kMaximumChain; ++i) {
      if (is_read_in_place(node(steps[i]))) continue;
      for (ValueId input : node(steps[i]).inputs) {
        const int32_t producer = plan_.producer(input);
        const bool fits =
            producer >= 0 && is_free(producer) && plan_.use_count(input) == 1 && same_dims(input, result) &&
            (is_elementwise(graph_, node(producer)) || may_read_in_place(producer)) && may_wait(producer, root);
        if (fits && steps.size() < kMaximumChain) steps.push_back(producer);
      }
    }
    std::sort(steps.begin(), steps.end());
    add_group(GroupKind::elementwise, steps, root);
  }

  const LoweredGraph &graph_;
  FusionPlan plan_;
  std::vector<char> needed_;
};

FusionPlan FusionPlan::make(const LoweredGraph &graph) { return Fuser(graph).make(); }

}  // namespace tutti::impl::backend::cpu

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/shapes/strided_copy.h"
#include "backend/cpu/shapes/strided_view.h"
#include "backend/cpu/simd/simd_cast.h"
#include "backend/cpu/simd/simd_elementwise.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

/// How a value is spread over `dims`: which access, and the columns it implies (-1 = any).
struct Spread {
  bool known = false;
  ElementAccess access = ElementAccess::dense;
  int64_t columns = -1;
};

Spread spread_of(const std::vector<int64_t> &dims, const std::vector<int64_t> &over) {
  std::vector<int64_t> full(over.size() - dims.size(), 1);
  full.insert(full.end(), dims.begin(), dims.end());
  if (full == over) return {true, ElementAccess::dense, -1};
  if (std::all_of(full.begin(), full.end(), [](int64_t n) { return n == 1; })) {
    return {true, ElementAccess::scalar, -1};
  }
  // The first axes repeat: a value per column.
  size_t axis = 0;
  while (axis < over.size() && full[axis] == 1)
    ++axis;
  int64_t columns = 1;
  bool matches = true;
  for (size_t i = axis; i < over.size(); ++i) {
    matches &= full[i] == over[i];
    columns *= over[i];
  }
  if (matches) return {true, ElementAccess::column, columns};
  // The last axes repeat: a value per row.
  axis = over.size();
  columns = 1;
  while (axis > 0 && full[axis - 1] == 1)
    columns *= over[--axis];
  matches = true;
  for (size_t i = 0; i < axis; ++i)
    matches &= full[i] == over[i];
  if (matches) return {true, ElementAccess::row, columns};
  return {};
}

class ElementwiseLowering {
 public:
  ElementwiseLowering(Lowering &l, const Group &group) : l_(l), group_(group) {}

  void run() {
    const Node &root = l_.graph().step(group_.steps.back());
    result_ = root.outputs[0];
    const LoweredValue &result = l_.value(result_);
    program_.boolean_result = result.dtype == DType::boolean;
    find_columns();
    choose_layout();
    for (int32_t step : group_.steps) {
      if (!is_read_in_place(l_.graph().step(step))) note_inputs(l_.graph().step(step));
    }
    const auto first = static_cast<int32_t>(program_.inputs.size());
    for (int32_t step : group_.steps) {
      if (!is_read_in_place(l_.graph().step(step))) add_instruction(l_.graph().step(step), first);
    }
    program_.columns = columns_ > 0 ? columns_ : result.elements;
    program_.rows = program_.columns > 0 ? result.elements / program_.columns : 0;
    program_.finish();
    emit();
  }

 private:
  /// Is a value the result of an instruction?
  bool is_inside(ValueId id) const {
    const int32_t producer = maker(id);
    return producer >= 0 && !is_read_in_place(l_.graph().step(producer));
  }

  /// The node of the group that makes a value, -1 if there is none.
  int32_t maker(ValueId id) const {
    const int32_t producer = l_.fusion().producer(id);
    const bool is_in_group = std::find(group_.steps.begin(), group_.steps.end(), producer) != group_.steps.end();
    return is_in_group ? producer : -1;
  }

  /// What is read for an input: where the group broadcasts it, its source, which an instruction spreads itself.
  ValueId operand(ValueId input) const {
    const int32_t step = maker(input);
    const bool is_broadcast = step >= 0 && l_.graph().step(step).op == "broadcast_to";
    return is_broadcast ? l_.graph().step(step).inputs[0] : input;
  }

  template <typename Function>
  void for_inputs(const Function &function) const {
    for (int32_t step : group_.steps) {
      if (is_read_in_place(l_.graph().step(step))) continue;
      for (ValueId input : l_.graph().step(step).inputs) {
        if (!is_inside(operand(input))) function(operand(input));
      }
    }
  }

  /// The first input that is repeated along rows or columns decides how rows and columns are counted.
  void find_columns() {
    const std::vector<int64_t> &over = l_.value(result_).dims;
    for_inputs([&](ValueId input) {
      if (columns_ < 0 && part(input)) columns_ = over.back();
      const Spread spread = spread_of(l_.value(input).dims, over);
      if (columns_ < 0 && spread.known && spread.columns >= 0) columns_ = spread.columns;
    });
  }

  /// What a slice of the group takes.
  std::optional<SubmatrixView> part(ValueId input) const {
    const int32_t step = maker(input);
    return step < 0 ? std::nullopt : submatrix_view(l_.graph(), l_.graph().step(step));
  }

  /// Images that are all of one shape are taken in the blocked layout when most of their bytes already are.
  void choose_layout() {
    const LoweredValue &result = l_.value(result_);
    if (columns_ >= 0 || result.dtype != DType::f32 || result.dims.size() != 4 || result.dims[3] % 16 != 0) return;
    int blocked = 0, plain = 0;
    bool possible = true;
    for_inputs([&](ValueId input) {
      const LoweredValue &value = l_.value(input);
      if (value.elements == 1) return;
      possible &= value.dims == result.dims && value.dtype == DType::f32;
      (l_.layout_of(input) == kBlocked16 ? blocked : plain) += 1;
    });
    if (possible && blocked > plain) layout_ = kBlocked16;
  }

  void note_inputs(const Node &node) {
    for (ValueId given : node.inputs) {
      const ValueId input = operand(given);
      if (is_inside(input) || registers_.count(input) != 0) continue;
      if (const std::optional<SubmatrixView> columns = part(input)) {
        registers_[input] = static_cast<int32_t>(program_.inputs.size());
        program_.inputs.push_back({ElementAccess::part, DType::f32, std::nullopt, columns->first, columns->pitch});
        buffers_.push_back(l_.read(columns->source));
        continue;
      }
      const LoweredValue &value = l_.value(input);
      Spread spread = spread_of(value.dims, l_.value(result_).dims);
      BufferId buffer = -1;
      if (!spread.known || (spread.columns >= 0 && spread.columns != columns_)) {
        buffer = broadcast(l_, input, l_.value(result_).dims);
        spread.access = ElementAccess::dense;
      } else {
        buffer = l_.read(input, spread.access == ElementAccess::dense ? layout_ : std::string_view());
        if (spread.access == ElementAccess::dense && value.dtype == DType::f32) overwrite_.push_back(input);
      }
      registers_[input] = static_cast<int32_t>(program_.inputs.size());
      program_.inputs.push_back({spread.access, value.dtype, known_value(input)});
      buffers_.push_back(buffer);
    }
  }

  /// Of a scalar constant of f32.
  std::optional<float> known_value(ValueId id) const {
    const int32_t step = l_.fusion().producer(id);
    const LoweredValue &value = l_.value(id);
    if (step < 0 || value.elements != 1 || value.dtype != DType::f32) return std::nullopt;
    const Node &node = l_.graph().step(step);
    if (node.op != "constant") return std::nullopt;
    return *attribute<tensor::Tensor>(node, "value").data_as<float>();
  }

  void add_instruction(const Node &node, int32_t first) {
    ElementInstruction instruction;
    if (node.op == "cast") {
      instruction.op = dtype(node, "dtype") == DType::boolean ? ElementOp::to_boolean : ElementOp::identity;
    } else {
      const bool approximate = node.op.starts_with("gelu") && flag(node, "approximate");
      instruction.op = *element_op(node.op, approximate);
    }
    if (node.op == "elu" || node.op == "leaky_relu") instruction.constant = static_cast<float>(number(node, "alpha"));
    int32_t *operands[] = {&instruction.a, &instruction.b, &instruction.c};
    for (size_t i = 0; i < node.inputs.size(); ++i)
      *operands[i] = registers_.at(operand(node.inputs[i]));
    registers_[node.outputs[0]] = first + static_cast<int32_t>(program_.instructions.size());
    program_.instructions.push_back(instruction);
  }

  void emit() {
    if (program_.boolean_result) overwrite_.clear();
    const BufferId out = l_.write(result_, layout_, overwrite_, true);
    const int64_t scratch_floats = program_.scratch_floats();
    const int64_t steps = program_.steps();
    const int64_t grain = grain_of(program_.step_elements());
    const BufferId scratch =
        l_.scratch(Parts(steps, grain, l_.threads()).threads() * scratch_floats * static_cast<int64_t>(sizeof(float)));
    std::string name = "simd:elementwise";
    if (group_.steps.size() > 1) name += base::concat("(", group_.steps.size(), ")");
    l_.emit_ranges(name, steps, grain,
                   [=, program = std::move(program_), buffers = std::move(buffers_)](const RunContext &c, Range range,
                                                                                     int32_t thread) {
                     const void *inputs[64];
                     for (size_t i = 0; i < buffers.size(); ++i)
                       inputs[i] = c.buffers[buffers[i]];
                     run_elementwise(program, range.begin, range.end, inputs, c.buffers[out],
                                     c.out(scratch) + thread * scratch_floats);
                   });
  }

  Lowering &l_;
  const Group &group_;
  ValueId result_ = graph::kNoValue;
  int64_t columns_ = -1;
  std::string_view layout_;
  ElementProgram program_;
  std::map<ValueId, int32_t> registers_;
  std::vector<BufferId> buffers_;
  std::vector<ValueId> overwrite_;
};

}  // namespace

/// Sums, differences and products that wrap, of equal shapes or with one element.
bool lower_integer_arithmetic(Lowering &l, const Node &node) {
  const LoweredValue &a = l.value(node.inputs[0]), &b = l.value(node.inputs[1]), &y = l.value(node.outputs[0]);
  const bool is_wide = y.dtype == DType::i64;
  if (!is_wide && y.dtype != DType::i32) return false;
  const bool repeats_a = a.elements == 1, repeats_b = b.elements == 1;
  if ((!repeats_a && a.dims != y.dims) || (!repeats_b && b.dims != y.dims)) return false;
  const BufferId first = l.read(node.inputs[0]), second = l.read(node.inputs[1]), out = l.write(node.outputs[0]);
  const char kind = node.op[0];
  l.emit_ranges("integer:" + node.op, y.elements, kPartElements, [=](const RunContext &c, Range r) {
    const auto run = [&]<typename T>(T) {
      const T *const x = static_cast<const T *>(c.buffers[first]), *const z = static_cast<const T *>(c.buffers[second]);
      T *const to = static_cast<T *>(c.buffers[out]);
      for (int64_t i = r.begin; i < r.end; ++i) {
        const T left = x[repeats_a ? 0 : i], right = z[repeats_b ? 0 : i];
        to[i] = kind == 'a' ? left + right : kind == 's' ? left - right : left * right;
      }
    };
    is_wide ? run(uint64_t{}) : run(uint32_t{});
  });
  return true;
}

bool lower_cast(Lowering &l, const Node &node) {
  if (node.op != "cast") return false;
  const DType from = l.value(node.inputs[0]).dtype, to = l.value(node.outputs[0]).dtype;
  if (!has_fast_cast(from, to)) return false;
  const BufferId in = l.read(node.inputs[0]), out = l.write(node.outputs[0]);
  const auto step = static_cast<int64_t>(tensor::size_bytes(from)),
             stride = static_cast<int64_t>(tensor::size_bytes(to));
  l.emit_ranges("simd:cast", l.value(node.outputs[0]).elements, kPartElements, [=](const RunContext &c, Range r) {
    const char *const x = static_cast<const char *>(c.buffers[in]) + r.begin * step;
    cast_numbers(from, to, x, static_cast<char *>(c.buffers[out]) + r.begin * stride, r.size());
  });
  return true;
}

void lower_elementwise(Lowering &l, const Group &group) { ElementwiseLowering(l, group).run(); }

BufferId broadcast(Lowering &l, ValueId id, const std::vector<int64_t> &dims) {
  const LoweredValue &value = l.value(id);
  const auto element = static_cast<int64_t>(tensor::size_bytes(value.dtype));
  int64_t elements = 1;
  for (int64_t n : dims)
    elements *= n;
  std::vector<int64_t> strides(dims.size(), 0);
  const std::vector<int64_t> own = dense_strides(value.dims);
  const size_t missing = dims.size() - value.dims.size();
  for (size_t axis = 0; axis < value.dims.size(); ++axis) {
    strides[missing + axis] = value.dims[axis] == 1 ? 0 : own[axis];
  }
  const StridedCopy copy = StridedCopy::make(dims, strides, 0, dense_strides(dims), 0, element);
  return l.repeat(id, elements * element, [copy](const void *from, void *to) { copy.run(from, to); });
}

}  // namespace tutti::impl::backend::cpu

// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/fused_program_maker.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "backend/gpu/kernel/program_maker.h"

namespace tutti::impl::backend::gpu {

using graph::Node;
using graph::ValueId;

namespace {

/// Of an instruction with fewer operands: any register does.
constexpr int32_t kNoOperand = INT32_MIN;

}  // namespace

bool FusedProgramMaker::Reading::operator<(const Reading &other) const {
  return std::tie(value, first_column, is_constant) < std::tie(other.value, other.first_column, other.is_constant);
}

bool FusedProgramMaker::fits() const {
  return fits_ && inputs_.size() <= FusedProgram::kInputs && instructions_.size() <= FusedProgram::kInstructions;
}

int32_t FusedProgramMaker::add(const ElementInstruction &instruction) {
  instructions_.push_back(instruction);
  return static_cast<int32_t>(instructions_.size()) - 1;
}

int32_t FusedProgramMaker::register_of(Reading reading) {
  // A single column is both: the same for all, and each its own.
  if (space_.columns == 1) reading.is_constant = true;
  const auto known = registers_.find(reading);
  if (known != registers_.end()) return known->second;
  // A chain that is longer than a program is not walked to its end.
  constexpr int32_t kDeepest = 4 * FusedProgram::kInstructions;
  if (depth_ == kDeepest) {
    fits_ = false;
    return 0;
  }
  ++depth_;
  const int32_t made = make_register(reading);
  --depth_;
  registers_.emplace(reading, made);
  return made;
}

int32_t FusedProgramMaker::make_register(const Reading &reading) {
  const std::optional<size_t> at = nodes_.producer(reading.value);
  if (at.has_value() && nodes_.kind(*at) == NodeKind::view) return view_register(*at, reading);
  const bool is_made = at.has_value() && (nodes_.kind(*at) == NodeKind::narrowed ||
                                          (nodes_.kind(*at) == NodeKind::elementwise && is_inside_(*at)));
  if (is_made) return computed(*at, reading);
  return input_register(reading);
}

int32_t FusedProgramMaker::view_register(size_t at, const Reading &reading) {
  const ValueId input = nodes_.node(at).inputs[0];
  const bool is_repeated = nodes_.space_of(input).columns == 1 && nodes_.space(at).columns != 1;
  if (is_repeated) return register_of({input, 0, true});
  return register_of({input, reading.first_column + nodes_.first_column(at), reading.is_constant});
}

int32_t FusedProgramMaker::input_register(const Reading &reading) {
  const Space from = nodes_.space_of(reading.value);
  const int64_t pitch = pitch_of_(reading.value);
  FusedOperand operand{};
  operand.dtype = nodes_.lowered().value(reading.value).dtype;
  operand.row_stride = from.rows == 1 ? 0 : pitch != 0 ? pitch : from.columns;
  operand.column_stride = reading.is_constant || space_.columns == 1 ? 0 : 1;
  operand.offset = reading.first_column;
  inputs_.push_back(operand);
  group_.inputs.push_back(reading.value);
  return -static_cast<int32_t>(inputs_.size());
}

int32_t FusedProgramMaker::computed(size_t at, const Reading &reading) {
  const Node &node = nodes_.node(at);
  const auto named = element_instruction(node);
  if (!named.ok()) {
    fits_ = false;
    return 0;
  }
  ElementInstruction instruction = named.value();
  int32_t *const operands[] = {&instruction.a, &instruction.b, &instruction.c};
  for (int32_t *const operand : operands)
    *operand = kNoOperand;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool is_constant = nodes_.space_of(node.inputs[i]).columns == 1;
    *operands[i] = register_of(is_constant ? Reading{node.inputs[i], 0, true}
                                           : Reading{node.inputs[i], reading.first_column, reading.is_constant});
  }
  const int32_t made = add(instruction);
  const std::optional<ElementOp> rounding = rounding_to(nodes_.lowered().value(node.outputs[0]).dtype);
  return rounding.has_value() ? add({*rounding, made, kNoOperand, kNoOperand, 0}) : made;
}

void FusedProgramMaker::add_output(const Reading &reading, int64_t first_column, int64_t row_stride,
                                   const FusedTarget &target) {
  FusedOperand operand{};
  operand.dtype = nodes_.lowered().value(reading.value).dtype;
  operand.source = register_of(reading);
  operand.row_stride = row_stride;
  operand.column_stride = 1;
  operand.offset = first_column;
  if (group_.program.output_count == FusedProgram::kOutputs) {
    fits_ = false;
    return;
  }
  group_.program.outputs[group_.program.output_count++] = operand;
  group_.outputs.push_back(target);
}

void FusedProgramMaker::store_value(ValueId value, int64_t pitch, const FusedTarget &target) {
  add_output({value, 0, false}, 0, pitch != 0 ? pitch : nodes_.space_of(value).columns, target);
}

void FusedProgramMaker::store(size_t at, int64_t pitch, const FusedTarget &target) {
  const ValueId whole = nodes_.output(at);
  if (nodes_.kind(at) != NodeKind::concat) return store_value(whole, pitch, target);
  int64_t first_column = 0;
  for (const ValueId part : nodes_.node(at).inputs) {
    add_output({part, 0, false}, first_column, pitch != 0 ? pitch : nodes_.space_of(whole).columns, target);
    first_column += space_.columns;
  }
}

FusedGroup FusedProgramMaker::take(int32_t nodes) {
  FusedProgram &program = group_.program;
  program.rows = space_.rows;
  program.columns = space_.columns;
  program.input_count = static_cast<int32_t>(inputs_.size());
  std::copy(inputs_.begin(), inputs_.end(), program.inputs);
  const auto number = [&](int32_t &made) {
    made = made == kNoOperand ? 0 : made < 0 ? -made - 1 : program.input_count + made;
  };
  for (ElementInstruction &instruction : instructions_) {
    for (int32_t *const operand : {&instruction.a, &instruction.b, &instruction.c})
      number(*operand);
    program.instructions[program.instruction_count++] = instruction;
  }
  for (int32_t i = 0; i < program.output_count; ++i)
    number(program.outputs[i].source);
  group_.nodes = nodes;
  return std::move(group_);
}

}  // namespace tutti::impl::backend::gpu

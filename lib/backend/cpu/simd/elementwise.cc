// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "backend/cpu/simd/simd_elementwise.h"

namespace tutti::impl::backend::cpu {

namespace {

constexpr int64_t kTile = 1024;
/// Columns of a part of a matrix from which a tile is one of its rows, read where it lies.
constexpr int64_t kRowColumns = 128;
/// Where nothing lies between the inputs and the result.
constexpr int64_t kDirectTile = 16384;

const std::unordered_map<std::string_view, ElementOp> &names() {
  static const std::unordered_map<std::string_view, ElementOp> table = {
      {"identity", ElementOp::identity},
      {"stop_gradient", ElementOp::identity},
      {"neg", ElementOp::neg},
      {"abs", ElementOp::abs},
      {"sign", ElementOp::sign},
      {"exp", ElementOp::exp},
      {"log", ElementOp::log},
      {"log1p", ElementOp::log1p},
      {"expm1", ElementOp::expm1},
      {"sqrt", ElementOp::sqrt},
      {"rsqrt", ElementOp::rsqrt},
      {"square", ElementOp::square},
      {"reciprocal", ElementOp::reciprocal},
      {"sin", ElementOp::sin},
      {"cos", ElementOp::cos},
      {"tangent", ElementOp::tangent},
      {"arc_tangent", ElementOp::arc_tangent},
      {"arc_sine", ElementOp::arc_sine},
      {"arc_cosine", ElementOp::arc_cosine},
      {"tanh", ElementOp::tanh},
      {"sigmoid", ElementOp::sigmoid},
      {"relu", ElementOp::relu},
      {"gelu", ElementOp::gelu},
      {"silu", ElementOp::silu},
      {"softplus", ElementOp::softplus},
      {"elu", ElementOp::elu},
      {"leaky_relu", ElementOp::leaky_relu},
      {"floor", ElementOp::floor},
      {"ceil", ElementOp::ceil},
      {"round", ElementOp::round},
      {"erf", ElementOp::erf},
      {"logical_not", ElementOp::logical_not},
      {"is_finite", ElementOp::is_finite},
      {"relu_gradient", ElementOp::relu_gradient},
      {"sigmoid_gradient", ElementOp::sigmoid_gradient},
      {"tanh_gradient", ElementOp::tanh_gradient},
      {"gelu_gradient", ElementOp::gelu_gradient},
      {"add", ElementOp::add},
      {"sub", ElementOp::sub},
      {"mul", ElementOp::mul},
      {"div", ElementOp::div},
      {"pow", ElementOp::pow},
      {"arc_tangent2", ElementOp::arc_tangent2},
      {"maximum", ElementOp::maximum},
      {"minimum", ElementOp::minimum},
      {"mod", ElementOp::mod},
      {"floor_divide", ElementOp::floor_divide},
      {"equal", ElementOp::equal},
      {"not_equal", ElementOp::not_equal},
      {"less", ElementOp::less},
      {"less_equal", ElementOp::less_equal},
      {"greater", ElementOp::greater},
      {"greater_equal", ElementOp::greater_equal},
      {"logical_and", ElementOp::logical_and},
      {"logical_or", ElementOp::logical_or},
      {"logical_xor", ElementOp::logical_xor},
      {"select", ElementOp::select},
      {"sigmoid_cross_entropy", ElementOp::sigmoid_cross_entropy},
  };
  return table;
}

int operands_of(ElementOp op) {
  if (op == ElementOp::select) return 3;
  const bool is_gradient = op >= ElementOp::relu_gradient && op <= ElementOp::gelu_tanh_gradient;
  return is_gradient || op >= ElementOp::add || op == ElementOp::mul_scaled || op == ElementOp::prelu ? 2 : 1;
}

/// Calls function(register) for what an instruction reads.
template <typename Function>
void for_operands(const ElementInstruction &one, const Function &function) {
  const int32_t operands[] = {one.a, one.b, one.c};
  for (int i = 0; i < operands_of(one.op); ++i)
    function(static_cast<size_t>(operands[i]));
}

/// Puts one instruction in the place of several, where only the last of them needs what the others make.
class Joiner {
 public:
  explicit Joiner(ElementProgram &program) : program_(program), inputs_(static_cast<int32_t>(program.inputs.size())) {
    count_uses();
  }

  void run() {
    for (ElementInstruction &instruction : program_.instructions) {
      if (join(instruction)) count_uses();
    }
    remove_unused();
  }

 private:
  void count_uses() {
    uses_.assign(program_.inputs.size() + program_.instructions.size(), 0);
    uses_.back() = 1;
    for (size_t i = program_.instructions.size(); i-- > 0;) {
      if (uses_[program_.inputs.size() + i] != 0)
        for_operands(program_.instructions[i], [&](size_t operand) { ++uses_[operand]; });
    }
  }

  std::optional<float> known(int32_t reg) const {
    return reg < inputs_ ? program_.inputs[static_cast<size_t>(reg)].value : std::nullopt;
  }
  bool is_zero(int32_t reg) const { return known(reg) == 0.0f; }
  /// What makes a register that is used once, if it is an `op`.
  const ElementInstruction *maker(int32_t reg, ElementOp op) const {
    if (reg < inputs_ || uses_[static_cast<size_t>(reg)] != 1) return nullptr;
    const ElementInstruction &one = program_.instructions[static_cast<size_t>(reg - inputs_)];
    return one.op == op ? &one : nullptr;
  }

  bool join(ElementInstruction &one) const {
    switch (one.op) {
      case ElementOp::minimum:
        return known(one.a) && join_limits(one, *known(one.a));
      case ElementOp::mul:
        return join_product(one, one.a, one.b) || join_product(one, one.b, one.a);
      case ElementOp::select:
        return join_select(one);
      default:
        return false;
    }
  }

  bool join_limits(ElementInstruction &one, float high) const {
    const ElementInstruction *const above = maker(one.b, ElementOp::maximum);
    if (above != nullptr && known(above->a)) {
      one = {ElementOp::clamp, above->b, 0, 0, 0.0f, *known(above->a), high};
      return true;
    }
    const ElementInstruction *const relu = maker(one.b, ElementOp::relu);
    if (relu == nullptr) return false;
    const ElementInstruction *const sum = maker(relu->a, ElementOp::add);
    if (sum != nullptr && known(sum->b))
      one = {ElementOp::limited_sum, sum->a, 0, 0, *known(sum->b), 0.0f, high};
    else
      one = {ElementOp::limited_relu, relu->a, 0, 0, 0.0f, 0.0f, high};
    return true;
  }

  bool join_product(ElementInstruction &one, int32_t first, int32_t second) const {
    const ElementInstruction *const log = maker(first, ElementOp::log);
    if (log != nullptr && known(second)) {
      one = {ElementOp::log_scaled, log->a, 0, 0, *known(second)};
      return true;
    }
    const ElementInstruction *const scaled = maker(second, ElementOp::mul);
    if (scaled == nullptr || !known(scaled->b)) return false;
    one = {ElementOp::mul_scaled, first, scaled->a, 0, *known(scaled->b)};
    return true;
  }

  // x > 0 ? x : slope · min(x, 0)
  bool join_select(ElementInstruction &one) const {
    const ElementInstruction *const is_above = maker(one.a, ElementOp::greater);
    const ElementInstruction *const product = maker(one.c, ElementOp::mul);
    if (is_above == nullptr || product == nullptr || is_above->a != one.b || !is_zero(is_above->b)) return false;
    const ElementInstruction *const below = maker(product->b, ElementOp::minimum);
    if (below == nullptr || below->a != one.b || !is_zero(below->b)) return false;
    one = {ElementOp::prelu, one.b, product->a};
    return true;
  }

  void remove_unused() {
    std::vector<int32_t> places(uses_.size(), 0);
    for (int32_t i = 0; i < inputs_; ++i)
      places[static_cast<size_t>(i)] = i;
    std::vector<ElementInstruction> kept;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const size_t reg = program_.inputs.size() + i;
      if (uses_[reg] == 0) continue;
      places[reg] = inputs_ + static_cast<int32_t>(kept.size());
      ElementInstruction one = program_.instructions[i];
      int32_t *const operands[] = {&one.a, &one.b, &one.c};
      for (int k = 0; k < 3; ++k)
        *operands[k] = k < operands_of(one.op) ? places[static_cast<size_t>(*operands[k])] : 0;
      kept.push_back(one);
    }
    program_.instructions = std::move(kept);
  }

  ElementProgram &program_;
  const int32_t inputs_;
  std::vector<int32_t> uses_;  // by register; 0 of what nothing needs any more
};

/// Which operand of a sum, difference, product or quotient is a number per long row, beside a dense one; or -1.
int32_t find_row_input(const ElementProgram &program) {
  constexpr int64_t kLeastColumns = 256;
  if (program.instructions.size() != 1 || program.boolean_result || program.columns < kLeastColumns) return -1;
  const ElementInstruction &one = program.instructions[0];
  if (one.op < ElementOp::add || one.op > ElementOp::div) return -1;
  const ElementInput &a = program.inputs[static_cast<size_t>(one.a)], &b = program.inputs[static_cast<size_t>(one.b)];
  if (a.dtype != tensor::DType::f32 || b.dtype != tensor::DType::f32) return -1;
  if (a.access == ElementAccess::dense && b.access == ElementAccess::row) return one.b;
  if (a.access == ElementAccess::row && b.access == ElementAccess::dense) return one.a;
  return -1;
}

}  // namespace

std::optional<ElementOp> element_op(std::string_view op, bool approximate) {
  const auto found = names().find(op);
  if (found == names().end()) return std::nullopt;
  if (approximate && found->second == ElementOp::gelu) return ElementOp::gelu_tanh;
  if (approximate && found->second == ElementOp::gelu_gradient) return ElementOp::gelu_tanh_gradient;
  return found->second;
}

void ElementProgram::finish() {
  if (!instructions.empty()) Joiner(*this).run();
  const auto registers = inputs.size() + instructions.size();
  std::vector<int32_t> last_use(registers, -1);
  for (size_t i = 0; i < instructions.size(); ++i)
    for_operands(instructions[i], [&](size_t operand) { last_use[operand] = static_cast<int32_t>(i); });
  bool repeats = false, has_parts = false;
  bool is_direct = instructions.size() == 1 && !boolean_result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (last_use[i] < 0) continue;
    has_parts |= inputs[i].access == ElementAccess::part;
    repeats |= inputs[i].access == ElementAccess::column || inputs[i].access == ElementAccess::row;
    is_direct &= inputs[i].access == ElementAccess::dense && inputs[i].dtype == tensor::DType::f32;
  }
  repeats |= has_parts;
  if (!repeats) {
    columns *= rows;
    rows = columns > 0 ? 1 : 0;
  }
  tile = std::min(columns, is_direct ? kDirectTile : kTile);
  row_input = find_row_input(*this);
  if (row_input >= 0)
    tile = std::min(columns, kDirectTile);
  else if (repeats && columns <= kTile && columns > 0)
    tile =
        has_parts && columns >= kRowColumns ? columns : std::min(rows, std::max<int64_t>(1, kTile / columns)) * columns;

  buffers.assign(registers, -1);
  buffer_count = 0;
  // Inputs that are not read in place keep their tile for the whole run.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool in_place = inputs[i].dtype == tensor::DType::f32 &&
                          (inputs[i].access == ElementAccess::dense || static_cast<int32_t>(i) == row_input ||
                           (inputs[i].access == ElementAccess::part && tile <= columns) ||
                           (inputs[i].access == ElementAccess::column && columns > kTile));
    buffers[i] = last_use[i] < 0 ? kUnused : in_place ? -1 : buffer_count++;
  }
  std::vector<int32_t> free;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const size_t result = inputs.size() + i;
    for_operands(instructions[i], [&](size_t o) {
      if (o >= inputs.size() && last_use[o] == static_cast<int32_t>(i) &&
          std::find(free.begin(), free.end(), buffers[o]) == free.end()) {
        free.push_back(buffers[o]);
      }
    });
    if (i + 1 == instructions.size() && !boolean_result) break;  // written to its place
    if (free.empty()) {
      buffers[result] = buffer_count++;
    } else {
      buffers[result] = free.back();
      free.pop_back();
    }
  }
}

}  // namespace tutti::impl::backend::cpu

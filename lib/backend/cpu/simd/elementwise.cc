// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "backend/cpu/simd/simd_elementwise.h"

namespace tutti::impl::backend::cpu {

namespace {

constexpr int64_t kTile = 1024;

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

}  // namespace

std::optional<ElementOp> element_op(std::string_view op, bool approximate) {
  const auto found = names().find(op);
  if (found == names().end()) return std::nullopt;
  if (approximate && found->second == ElementOp::gelu) return ElementOp::gelu_tanh;
  if (approximate && found->second == ElementOp::gelu_gradient) return ElementOp::gelu_tanh_gradient;
  return found->second;
}

void ElementProgram::finish() {
  bool repeats = false;
  for (const ElementInput &input : inputs) {
    repeats |= input.access == ElementAccess::column || input.access == ElementAccess::row;
  }
  if (!repeats) {
    columns *= rows;
    rows = columns > 0 ? 1 : 0;
  }
  tile = std::min(columns, kTile);
  if (repeats && columns <= kTile && columns > 0)
    tile = std::min(rows, std::max<int64_t>(1, kTile / columns)) * columns;

  const auto registers = static_cast<int32_t>(inputs.size() + instructions.size());
  std::vector<int32_t> last_use(static_cast<size_t>(registers), -1);
  for (size_t i = 0; i < instructions.size(); ++i) {
    for (int32_t operand : {instructions[i].a, instructions[i].b, instructions[i].c}) {
      last_use[static_cast<size_t>(operand)] = static_cast<int32_t>(i);
    }
  }
  buffers.assign(static_cast<size_t>(registers), -1);
  buffer_count = 0;
  // Inputs that are not read in place keep their tile for the whole run.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool in_place =
        inputs[i].dtype == tensor::DType::f32 &&
        (inputs[i].access == ElementAccess::dense || (inputs[i].access == ElementAccess::column && columns > kTile));
    if (!in_place) buffers[i] = buffer_count++;
  }
  std::vector<int32_t> free;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const size_t result = inputs.size() + i;
    for (int32_t operand : {instructions[i].a, instructions[i].b, instructions[i].c}) {
      const auto o = static_cast<size_t>(operand);
      if (o >= inputs.size() && last_use[o] == static_cast<int32_t>(i) &&
          std::find(free.begin(), free.end(), buffers[o]) == free.end()) {
        free.push_back(buffers[o]);
      }
    }
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

// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernel/program_maker.h"

#include <algorithm>
#include <utility>

#include "backend/gpu/kernel/extents.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

struct NamedOp {
  std::string_view name;
  ElementOp op;
  bool takes_integers = false;
};

constexpr NamedOp kOps[] = {
    {"abs", ElementOp::abs, true},
    {"add", ElementOp::add, true},
    {"arc_cosine", ElementOp::arc_cosine},
    {"arc_sine", ElementOp::arc_sine},
    {"arc_tangent", ElementOp::arc_tangent},
    {"arc_tangent2", ElementOp::arc_tangent2},
    {"cast", ElementOp::identity, true},
    {"ceil", ElementOp::ceil},
    {"cos", ElementOp::cos},
    {"div", ElementOp::div},
    {"elu", ElementOp::elu},
    {"equal", ElementOp::equal, true},
    {"erf", ElementOp::erf},
    {"exp", ElementOp::exp},
    {"expm1", ElementOp::expm1},
    {"floor", ElementOp::floor},
    {"floor_divide", ElementOp::floor_divide, true},
    {"gelu", ElementOp::gelu},
    {"gelu_gradient", ElementOp::gelu_gradient},
    {"greater", ElementOp::greater, true},
    {"greater_equal", ElementOp::greater_equal, true},
    {"identity", ElementOp::identity, true},
    {"is_finite", ElementOp::is_finite, true},
    {"leaky_relu", ElementOp::leaky_relu},
    {"less", ElementOp::less, true},
    {"less_equal", ElementOp::less_equal, true},
    {"log", ElementOp::log},
    {"log1p", ElementOp::log1p},
    {"logical_and", ElementOp::logical_and, true},
    {"logical_not", ElementOp::logical_not, true},
    {"logical_or", ElementOp::logical_or, true},
    {"logical_xor", ElementOp::logical_xor, true},
    {"maximum", ElementOp::maximum, true},
    {"minimum", ElementOp::minimum, true},
    {"mod", ElementOp::mod, true},
    {"mul", ElementOp::mul, true},
    {"neg", ElementOp::neg, true},
    {"not_equal", ElementOp::not_equal, true},
    {"pow", ElementOp::pow, true},
    {"reciprocal", ElementOp::reciprocal},
    {"relu", ElementOp::relu, true},
    {"relu_gradient", ElementOp::relu_gradient, true},
    {"reshape", ElementOp::identity, true},
    {"round", ElementOp::round},
    {"rsqrt", ElementOp::rsqrt},
    {"select", ElementOp::select, true},
    {"sigmoid", ElementOp::sigmoid},
    {"sigmoid_cross_entropy", ElementOp::sigmoid_cross_entropy},
    {"sigmoid_gradient", ElementOp::sigmoid_gradient},
    {"sign", ElementOp::sign, true},
    {"silu", ElementOp::silu},
    {"sin", ElementOp::sin},
    {"softplus", ElementOp::softplus},
    {"sqrt", ElementOp::sqrt},
    {"square", ElementOp::square, true},
    {"stop_gradient", ElementOp::identity, true},
    {"sub", ElementOp::sub, true},
    {"tangent", ElementOp::tangent},
    {"tanh", ElementOp::tanh},
    {"tanh_gradient", ElementOp::tanh_gradient},
};

/// The op with the number it takes from the node's attributes.
Result<ElementInstruction> instruction_of(const graph::Node &node, ElementOp op) {
  ElementInstruction instruction{op, 0, 0, 0, 0};
  if (op == ElementOp::elu) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::EluAttributes::from(node));
    instruction.number = attributes.alpha;
  } else if (op == ElementOp::leaky_relu) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::LeakyReluAttributes::from(node));
    instruction.number = attributes.alpha;
  } else if (op == ElementOp::gelu) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::GeluAttributes::from(node));
    if (attributes.approximate) instruction.op = ElementOp::gelu_tanh;
  } else if (op == ElementOp::gelu_gradient) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::GeluGradientAttributes::from(node));
    if (attributes.approximate) instruction.op = ElementOp::gelu_tanh_gradient;
  }
  return instruction;
}

/// Merges neighbouring axes that all operands walk evenly, and drops those of one element.
void merge_axes(Extents &dims, std::vector<Extents> &operands) {
  size_t kept = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 1) continue;
    const bool merges = kept > 0 && std::all_of(operands.begin(), operands.end(), [&](const Extents &strides) {
                          return strides[kept - 1] == strides[axis] * dims[axis];
                        });
    if (!merges) ++kept;
    dims[kept - 1] = merges ? dims[kept - 1] * dims[axis] : dims[axis];
    for (Extents &strides : operands)
      strides[kept - 1] = strides[axis];
  }
  dims.resize(kept);
  for (Extents &strides : operands)
    strides.resize(kept);
}

/// Null where there is none.
const NamedOp *find_op(std::string_view name) {
  const NamedOp *const found =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const NamedOp &one) { return one.name == name; });
  return found == std::end(kOps) ? nullptr : found;
}

/// Exact in a float.
bool is_small_integer(DType dtype) {
  return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::i16 || dtype == DType::u16;
}

/// A program in the making, with the values it reads.
class ProgramMaker {
 public:
  ProgramMaker(const LoweredGraph &lowered, std::vector<const Node *> nodes, ProgramResult result)
      : lowered_(lowered), nodes_(std::move(nodes)), result_(result) {}

  Status make() {
    const Node &root = *nodes_.back();
    program_.elements = lowered_.value(root.outputs[0]).elements;
    // Comparisons give booleans, select takes one: the operands that are computed with decide.
    const DType dtype = lowered_.value(root.inputs[root.op == "select" ? 1 : 0]).dtype;
    const bool is_alone = nodes_.size() == 1 && result_ == ProgramResult::stored;
    program_.arithmetic = is_alone ? arithmetic_of(dtype) : Arithmetic::f32;
    for (const Node *node : nodes_)
      find_inputs(*node);
    if (inputs_.size() > ElementProgram::kInputs)
      return base::unimplemented(inputs_.size(), " operands, at most ", ElementProgram::kInputs, " are possible");
    program_.input_count = static_cast<int32_t>(inputs_.size());
    for (const Node *node : nodes_)
      TUTTI_TRY(add_node(*node, node == &root));
    return find_strides(root);
  }

  TreeProgram take() { return {program_, std::move(inputs_)}; }

 private:
  bool is_inside(ValueId value) const {
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node *node) { return node->outputs[0] == value; });
  }

  void find_inputs(const Node &node) {
    for (const ValueId input : node.inputs) {
      if (!is_inside(input) && std::find(inputs_.begin(), inputs_.end(), input) == inputs_.end())
        inputs_.push_back(input);
    }
  }

  int32_t register_of(ValueId value) const {
    const auto found = std::find(inputs_.begin(), inputs_.end(), value);
    if (found != inputs_.end()) return static_cast<int32_t>(found - inputs_.begin());
    return std::find_if(results_.begin(), results_.end(), [&](const auto &one) { return one.first == value; })->second;
  }

  Status add_instruction(const ElementInstruction &instruction) {
    if (program_.instruction_count == ElementProgram::kInstructions)
      return base::unimplemented("more than ", ElementProgram::kInstructions, " instructions");
    program_.instructions[program_.instruction_count++] = instruction;
    return Status();
  }

  int32_t last_register() const { return program_.input_count + program_.instruction_count - 1; }

  /// Registers are floats: a cast between float dtypes is a rounding, or nothing.
  bool only_rounds(const Node &node) const {
    return node.op == "cast" && program_.arithmetic == Arithmetic::f32 &&
           tensor::is_floating(lowered_.value(node.inputs[0]).dtype) &&
           tensor::is_floating(lowered_.value(node.outputs[0]).dtype);
  }

  /// The result of a program is its last instruction's.
  bool is_result(int32_t made) const { return program_.instruction_count > 0 && made == last_register(); }

  Status add_node(const Node &node, bool is_root) {
    const DType dtype = lowered_.value(node.outputs[0]).dtype;
    int32_t made = only_rounds(node) ? register_of(node.inputs[0]) : -1;
    if (made < 0 || (is_root && !is_result(made))) {
      TUTTI_ASSIGN(ElementInstruction instruction, instruction_of(node, find_op(node.op)->op));
      int32_t *const operands[] = {&instruction.a, &instruction.b, &instruction.c};
      for (size_t i = 0; i < node.inputs.size(); ++i)
        *operands[i] = register_of(node.inputs[i]);
      TUTTI_TRY(add_instruction(instruction));
      made = last_register();
    }
    // What is stored is rounded then; inner values are rounded as if they were.
    const bool is_stored = is_root && result_ == ProgramResult::stored;
    const std::optional<ElementOp> rounding = rounding_to(dtype);
    if (!is_stored && rounding.has_value()) {
      TUTTI_TRY(add_instruction({*rounding, made, 0, 0, 0}));
      made = last_register();
    }
    results_.emplace_back(node.outputs[0], made);
    return Status();
  }

  /// How the inputs lie along the result's axes.
  Status find_strides(const Node &root) {
    Extents dims = lowered_.value(root.outputs[0]).dims;
    std::vector<Extents> operands;
    for (const ValueId input : inputs_) {
      // One with as many elements lies as the result does; before a reshape its axes are others, perhaps more.
      const bool is_dense = lowered_.value(input).elements == program_.elements;
      operands.push_back(broadcast_strides(is_dense ? dims : lowered_.value(input).dims, dims));
    }
    operands.push_back(broadcast_strides(dims, dims));
    merge_axes(dims, operands);
    if (dims.size() > ElementOperand::kAxes)
      return base::unimplemented("operands that are broadcast along ", dims.size(), " axes in turn, at most ",
                                 ElementOperand::kAxes, " are possible");
    program_.rank = static_cast<int32_t>(dims.size());
    std::copy(dims.begin(), dims.end(), program_.dims);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      ElementOperand &operand = program_.inputs[i];
      const LoweredValue &value = lowered_.value(inputs_[i]);
      const bool is_dense = value.elements == program_.elements;
      operand.dtype = value.dtype;
      operand.access = is_dense              ? ElementAccess::dense
                       : value.elements == 1 ? ElementAccess::scalar
                                             : ElementAccess::strided;
      std::copy(operands[i].begin(), operands[i].end(), operand.strides);
    }
    program_.output.dtype = lowered_.value(root.outputs[0]).dtype;
    program_.output.access = ElementAccess::dense;
    return Status();
  }

  const LoweredGraph &lowered_;
  std::vector<const Node *> nodes_;
  ProgramResult result_;
  ElementProgram program_{};
  std::vector<ValueId> inputs_;
  std::vector<std::pair<ValueId, int32_t>> results_;
};

}  // namespace

Arithmetic arithmetic_of(DType dtype) {
  if (dtype == DType::f64) return Arithmetic::f64;
  if (tensor::is_floating(dtype)) return Arithmetic::f32;
  return dtype == DType::u64 ? Arithmetic::u64 : Arithmetic::i64;
}

bool is_float_like(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::boolean;
}

std::optional<ElementOp> rounding_to(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return ElementOp::to_f16;
    case DType::bf16:
      return ElementOp::to_bf16;
    case DType::boolean:
      return ElementOp::to_boolean;
    default:
      return std::nullopt;
  }
}

bool is_elementwise(std::string_view op) { return find_op(op) != nullptr; }

bool fuses(const LoweredGraph &lowered, const Node &node) {
  if (find_op(node.op) == nullptr || node.op == "reshape" || node.op == "identity" || node.op == "stop_gradient")
    return false;
  if (!is_float_like(lowered.value(node.outputs[0]).dtype)) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    const DType dtype = lowered.value(input).dtype;
    return is_float_like(dtype) || (node.op == "cast" && is_small_integer(dtype));
  });
}

Result<ElementInstruction> element_instruction(const Node &node) {
  const NamedOp *const named = find_op(node.op);
  if (named == nullptr) return base::unimplemented("op '", node.op, "' is not elementwise");
  return instruction_of(node, named->op);
}

bool may_overwrite(const LoweredGraph &lowered, const Node &node, int32_t input) {
  if (!is_elementwise(node.op)) return false;
  const LoweredValue &from = lowered.value(node.inputs[static_cast<size_t>(input)]);
  const LoweredValue &to = lowered.value(node.outputs[0]);
  return from.elements == to.elements && tensor::size_bytes(from.dtype) == tensor::size_bytes(to.dtype);
}

bool takes_integers(std::string_view op) { return find_op(op)->takes_integers; }

Result<TreeProgram> make_program(const LoweredGraph &lowered, std::vector<const Node *> nodes, ProgramResult result) {
  ProgramMaker maker(lowered, std::move(nodes), result);
  TUTTI_TRY(maker.make());
  return maker.take();
}

Result<TreeProgram> make_tree_program(const LoweredGraph &lowered, std::span<const int32_t> steps,
                                      ProgramResult result) {
  std::vector<const Node *> nodes;
  for (const int32_t step : steps)
    nodes.push_back(&lowered.step(step));
  return make_program(lowered, std::move(nodes), result);
}

}  // namespace tutti::impl::backend::gpu

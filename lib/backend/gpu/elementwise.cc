// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/elementwise.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "backend/gpu/device_elementwise.h"
#include "backend/gpu/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
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
    {"tanh", ElementOp::tanh},
    {"tanh_gradient", ElementOp::tanh_gradient},
};

Arithmetic arithmetic_of(DType dtype) {
  if (dtype == DType::f64) return Arithmetic::f64;
  if (tensor::is_floating(dtype)) return Arithmetic::f32;
  return dtype == DType::u64 ? Arithmetic::u64 : Arithmetic::i64;
}

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

using Extents = std::vector<int64_t>;

/// Strides that read an array of `dims` as if it had been broadcast to `to`: 0 on repeated axes.
Extents broadcast_strides(const Extents &dims, const Extents &to) {
  Extents strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t i = 1; i <= dims.size(); ++i) {
    const int64_t dim = dims[dims.size() - i];
    strides[to.size() - i] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
  return strides;
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

void set_operand(ElementOperand &operand, DType dtype, const Extents &dims, const Extents &strides) {
  operand.dtype = dtype;
  operand.is_dense = dims.empty() || (dims.size() == 1 && strides[0] == 1) ? 1 : 0;
  std::copy(strides.begin(), strides.end(), operand.strides);
}

/// The shape of a program whose inputs are those of a node, broadcast to its result.
Status shape_program(const KernelRequest &request, ElementProgram &program) {
  Extents dims = request.output(0).dims;
  std::vector<Extents> operands;
  for (size_t i = 0; i < request.input_count(); ++i)
    operands.push_back(broadcast_strides(request.input(i).dims, dims));
  operands.push_back(broadcast_strides(dims, dims));
  program.elements = request.output(0).elements;
  merge_axes(dims, operands);
  if (dims.size() > ElementProgram::kAxes)
    return base::unimplemented("operands that are broadcast along ", dims.size(), " axes in turn, at most ",
                               ElementProgram::kAxes, " are possible");
  program.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), program.dims);
  program.input_count = static_cast<int32_t>(request.input_count());
  for (size_t i = 0; i < request.input_count(); ++i)
    set_operand(program.inputs[i], request.input(i).dtype, dims, operands[i]);
  program.output_count = 1;
  set_operand(program.outputs[0], request.output(0).dtype, dims, operands.back());
  return Status();
}

Status issue_program(ElementProgram program, const Frame &frame) {
  for (int32_t i = 0; i < program.input_count; ++i)
    program.inputs[i].data = const_cast<void *>(frame.input(i));
  for (int32_t i = 0; i < program.output_count; ++i)
    program.outputs[i].data = frame.output(i);
  return status_of(launch_elements(program, frame.stream()), "launching elementwise work");
}

/// Null where there is none.
const NamedOp *find_op(std::string_view name) {
  const NamedOp *const found =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const NamedOp &one) { return one.name == name; });
  return found == std::end(kOps) ? nullptr : found;
}

}  // namespace

bool is_elementwise(std::string_view op) { return find_op(op) != nullptr; }

Result<Kernel> make_elementwise(KernelRequest &request) {
  const NamedOp *const named = find_op(request.node.op);
  // Comparisons give booleans, select takes one: the operands that are computed with decide.
  const DType dtype = request.input(request.node.op == "select" ? 1 : 0).dtype;
  if (!named->takes_integers && !tensor::is_floating(dtype))
    return base::unimplemented("op '", named->name, "' on ", dtype);
  ElementProgram program{};
  program.arithmetic = arithmetic_of(dtype);
  TUTTI_TRY(shape_program(request, program));
  TUTTI_ASSIGN(program.instructions[0], instruction_of(request.node, named->op));
  program.instructions[0].b = program.input_count > 1 ? 1 : 0;
  program.instructions[0].c = program.input_count > 2 ? 2 : 0;
  program.instruction_count = 1;
  program.outputs[0].slot = program.input_count;
  return Kernel([program](const Frame &frame) { return issue_program(program, frame); });
}

Kernel copy_kernel(int64_t bytes) {
  return [bytes](const Frame &frame) {
    return status_of(launch_copy(frame.output(0), frame.input(0), bytes, frame.stream()), "launching a copy");
  };
}

Result<Kernel> accumulate_kernel(DType dtype, int64_t elements) {
  ElementProgram program{};
  program.elements = elements;
  program.arithmetic = arithmetic_of(dtype);
  program.input_count = 2;
  program.output_count = 1;
  program.instruction_count = 1;
  for (ElementOperand *const operand : {&program.inputs[0], &program.inputs[1], &program.outputs[0]}) {
    operand->dtype = dtype;
    operand->is_dense = 1;
  }
  program.instructions[0] = {ElementOp::add, 0, 1, 0, 0};
  program.outputs[0].slot = 2;
  return Kernel([program](const Frame &frame) { return issue_program(program, frame); });
}

}  // namespace tutti::impl::backend::gpu

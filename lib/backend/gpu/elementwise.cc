// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/elementwise.h"

#include <algorithm>
#include <utility>

#include "backend/gpu/device_elementwise.h"
#include "backend/gpu/generated_kernels.h"
#include "backend/gpu/kernels.h"
#include "backend/gpu/program_maker.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

/// The program with operands at these positions of the frame; none = in order.
Kernel kernel_of(const ElementProgram &program, GeneratedProgramRef generated, std::vector<int32_t> positions = {}) {
  return [program, generated = std::move(generated), positions = std::move(positions)](const Frame &frame) {
    const ElementProgram placed = place_program(program, frame, frame.output(0), positions);
    if (can_launch(generated, placed))
      return status_of(launch_generated(*generated, placed, frame.stream()), "launching generated work");
    return status_of(launch_elements(placed, frame.stream()), "launching elementwise work");
  };
}

GeneratedProgramRef generated_of(KernelBatch *batch, const ElementProgram &program) {
  return batch != nullptr ? batch->add(program) : nullptr;
}

void point(ElementOperand &operand, const void *data) {
  operand.data = const_cast<void *>(data);
  operand.is_aligned = reinterpret_cast<uintptr_t>(data) % 16 == 0 ? 1 : 0;
}

}  // namespace

ElementProgram place_program(const ElementProgram &program, const Frame &frame, void *output,
                             std::span<const int32_t> positions) {
  ElementProgram placed = program;
  for (int32_t i = 0; i < placed.input_count; ++i)
    point(placed.inputs[i], frame.input(positions.empty() ? i : positions[static_cast<size_t>(i)]));
  point(placed.output, output);
  return placed;
}

Result<Kernel> make_elementwise(KernelRequest &request) {
  const DType dtype = request.input(request.node.op == "select" ? 1 : 0).dtype;
  if (!takes_integers(request.node.op) && !tensor::is_floating(dtype))
    return base::unimplemented("op '", request.node.op, "' on ", dtype);
  TUTTI_ASSIGN(const TreeProgram made, make_program(request.lowered, {&request.node}));
  request.kernel_name = "elementwise";
  // An operand that is used twice is read once.
  std::vector<int32_t> positions;
  for (const ValueId input : made.inputs) {
    const auto &inputs = request.node.inputs;
    positions.push_back(static_cast<int32_t>(std::find(inputs.begin(), inputs.end(), input) - inputs.begin()));
  }
  request.generated = generated_of(request.batch, made.program);
  return kernel_of(made.program, request.generated, std::move(positions));
}

Result<KernelCall> make_tree_call(const LoweredGraph &lowered, std::span<const int32_t> steps, KernelBatch *batch) {
  TUTTI_ASSIGN(const TreeProgram made, make_tree_program(lowered, steps));
  const Node &root = lowered.step(steps.back());
  KernelCall call;
  call.inputs = made.inputs;
  call.outputs = root.outputs;
  call.trace_name = root.scope_name.empty() ? root.op : root.scope_name;
  call.kernel_name = base::concat("elementwise(", steps.size(), ")");
  call.generated = generated_of(batch, made.program);
  call.kernel = kernel_of(made.program, call.generated);
  return call;
}

Kernel copy_kernel(int64_t bytes) {
  return [bytes](const Frame &frame) {
    return status_of(launch_copy(frame.output(0), frame.input(0), bytes, frame.stream()), "launching a copy");
  };
}

Kernel accumulate_kernel(DType dtype, int64_t elements) {
  ElementProgram program{};
  program.elements = elements;
  program.arithmetic = arithmetic_of(dtype);
  program.input_count = 2;
  program.instruction_count = 1;
  for (ElementOperand *const operand : {&program.inputs[0], &program.inputs[1], &program.output}) {
    operand->dtype = dtype;
    operand->access = ElementAccess::dense;
  }
  program.instructions[0] = {ElementOp::add, 0, 1, 0, 0};
  return kernel_of(program, nullptr);
}

}  // namespace tutti::impl::backend::gpu

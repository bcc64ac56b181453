// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/kernels/elementwise.h"

#include <algorithm>
#include <utility>

#include "backend/gpu/device/device_elementwise.h"
#include "backend/gpu/generated/generated_kernels.h"
#include "backend/gpu/kernel/kernels.h"
#include "backend/gpu/kernel/program_maker.h"
#include "backend/gpu/kernel/rows_kernel.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

/// A program with the inputs that its operands are, among so many of a call.
struct ElementCall {
  ElementProgram program;
  GeneratedProgramRef generated;
  std::vector<int32_t> positions;
  int32_t input_count = 0;

  /// Of one of several calls, whose inputs stand one behind the other.
  ElementPlaces places(const Frame &frame, int32_t call, int64_t elements) const {
    ElementPlaces places = make_places(elements);
    for (int32_t i = 0; i < program.input_count; ++i)
      place_input(places, i, frame.input(call * input_count + positions[static_cast<size_t>(i)]));
    place_output(places, frame.output(call));
    return places;
  }

  bool is_generated(const ElementPlaces &places) const { return can_launch(generated, program, places); }

  Status launch(const Frame &frame) const {
    const ElementPlaces one = places(frame, 0, program.elements);
    if (is_generated(one)) return status_of(launch_generated(*generated, one, frame.stream()), kGenerated);
    return status_of(launch_elements(program, one, frame.stream()), kInterpreted);
  }

  static constexpr const char *kGenerated = "launching generated work";
  static constexpr const char *kInterpreted = "launching elementwise work";
};

class ElementRows final : public RowsKernel {
 public:
  explicit ElementRows(ElementCall call) : call_(std::move(call)) {}

  int64_t row_bytes() const override { return sizeof(ElementPlaces); }

  void fill(const Frame &frame, std::span<const int64_t> elements, void *rows) const override {
    const std::span<ElementPlaces> table(static_cast<ElementPlaces *>(rows), elements.size());
    for (size_t i = 0; i < elements.size(); ++i)
      table[i] = call_.places(frame, static_cast<int32_t>(i), elements[i]);
    place_chunks(table, chunk_of(are_generated(frame, elements)));
  }

  Status launch(const Frame &frame, std::span<const int64_t> elements) const override {
    const bool is_generated = are_generated(frame, elements);
    const Rows<ElementPlaces> rows{static_cast<const ElementPlaces *>(frame.rows()),
                                   static_cast<int32_t>(elements.size()),
                                   count_chunks(elements, chunk_of(is_generated))};
    if (is_generated)
      return status_of(launch_generated(*call_.generated, rows, frame.stream()), ElementCall::kGenerated);
    return status_of(launch_elements(call_.program, rows, frame.stream()), ElementCall::kInterpreted);
  }

  GeneratedProgramRef generated() const override { return call_.generated; }

 private:
  bool are_generated(const Frame &frame, std::span<const int64_t> elements) const {
    for (size_t i = 0; i < elements.size(); ++i) {
      if (!call_.is_generated(call_.places(frame, static_cast<int32_t>(i), elements[i]))) return false;
    }
    return true;
  }

  int64_t chunk_of(bool is_generated) const {
    return is_generated ? chunk_elements(*call_.generated) : chunk_elements(call_.program);
  }

  const ElementCall call_;
};

/// The program in a call of these inputs: an operand that is used twice is read once.
ElementCall call_of(const TreeProgram &made, GeneratedProgramRef generated, const std::vector<ValueId> &inputs) {
  ElementCall call{made.program, std::move(generated), {}, static_cast<int32_t>(inputs.size())};
  for (const ValueId input : made.inputs)
    call.positions.push_back(static_cast<int32_t>(std::find(inputs.begin(), inputs.end(), input) - inputs.begin()));
  return call;
}

/// The program without its number of elements, as far as nothing depends on it.
std::string key_of(const ElementCall &call) {
  ElementProgram program = call.program;
  const bool has_strides = std::any_of(program.inputs, program.inputs + program.input_count,
                                       [](const auto &input) { return input.access == ElementAccess::strided; });
  if (!has_strides) {
    program.elements = program.rank = 0;
    std::fill(std::begin(program.dims), std::end(program.dims), 0);
    for (ElementOperand &input : program.inputs)
      std::fill(std::begin(input.strides), std::end(input.strides), 0);
    std::fill(std::begin(program.output.strides), std::end(program.output.strides), 0);
  }
  std::string key(reinterpret_cast<const char *>(&program), sizeof(program));
  for (const int32_t position : call.positions)
    key += base::concat(" ", position);
  return base::concat(key, " of ", call.input_count);
}

std::shared_ptr<const Joinable> joinable_of(const ElementCall &call) {
  const auto join = [call](KernelBatch &batch, int64_t all_elements) -> std::shared_ptr<const RowsKernel> {
    ElementCall joined = call;
    joined.generated = batch.add_joined(call.program, all_elements);
    return std::make_shared<ElementRows>(std::move(joined));
  };
  return std::make_shared<Joinable>(Joinable{key_of(call), call.program.elements, join});
}

GeneratedProgramRef generated_of(KernelBatch *batch, const ElementProgram &program) {
  return batch != nullptr ? batch->add(program) : nullptr;
}

Kernel kernel_of(ElementCall call) {
  return [call = std::move(call)](const Frame &frame) { return call.launch(frame); };
}

}  // namespace

ElementPlaces place_program(const ElementProgram &program, const Frame &frame, void *output) {
  ElementPlaces places = make_places(program.elements);
  for (int32_t i = 0; i < program.input_count; ++i)
    place_input(places, i, frame.input(i));
  place_output(places, output);
  return places;
}

Result<Kernel> make_elementwise(KernelRequest &request) {
  const DType dtype = request.input(request.node.op == "select" ? 1 : 0).dtype;
  if (!takes_integers(request.node.op) && !tensor::is_floating(dtype))
    return base::unimplemented("op '", request.node.op, "' on ", dtype);
  TUTTI_ASSIGN(const TreeProgram made, make_program(request.lowered, {&request.node}));
  request.kernel_name = "elementwise";
  request.generated = generated_of(request.batch, made.program);
  const ElementCall call = call_of(made, request.generated, request.node.inputs);
  request.joinable = joinable_of(call);
  return kernel_of(call);
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
  const ElementCall work = call_of(made, call.generated, made.inputs);
  call.joinable = joinable_of(work);
  call.kernel = kernel_of(work);
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
  return kernel_of({program, nullptr, {0, 1}, 2});
}

}  // namespace tutti::impl::backend::gpu

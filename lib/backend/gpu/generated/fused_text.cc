// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/generated/fused_text.h"

#include "base/status.h"

namespace tutti::impl::backend::gpu {

using base::concat;

namespace {

class FusedWriter {
 public:
  explicit FusedWriter(const FusedProgram &program) : program_(program) {}

  std::string write() {
    // 32 bits do where they do: a division is cheaper then.
    const int64_t elements = program_.rows * program_.columns;
    const std::string index = elements < (int64_t{1} << 31) ? "uint32_t" : "uint64_t";
    add("extern \"C\" __global__ void __launch_bounds__(kBlockThreads) ", kName,
        "(const GeneratedOperands operands) {\n  using C = float;\n"
        "  for (int64_t element = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; element < ",
        elements,
        ";\n       element += static_cast<int64_t>(gridDim.x) * blockDim.x) {\n    const int64_t row = ", index,
        "(element) / ", index, "(", program_.columns, "), column = element - row * ", program_.columns, ";\n");
    for (int32_t i = 0; i < program_.input_count; ++i)
      add("    const C x", i, " = load_element<C>(", dtype_text(program_.inputs[i].dtype), ", operands.fused.inputs[",
          i, "], ", position_text(program_.inputs[i]), ");\n");
    for (int32_t i = 0; i < program_.instruction_count; ++i)
      add_instruction(i);
    for (int32_t i = 0; i < program_.output_count; ++i)
      add("    store_element<C>(", dtype_text(program_.outputs[i].dtype), ", operands.fused.outputs[", i, "], ",
          position_text(program_.outputs[i]), ", ", register_text(program_.outputs[i].source), ");\n");
    add("  }\n}\n");
    return std::move(text_);
  }

 private:
  template <typename... Parts>
  void add(const Parts &...parts) {
    text_ += concat(parts...);
  }

  std::string register_text(int32_t number) const {
    return number < program_.input_count ? concat("x", number) : concat("v", number - program_.input_count);
  }

  static std::string position_text(const FusedOperand &operand) {
    return concat(operand.offset, " + row * ", operand.row_stride, " + column * ", operand.column_stride);
  }

  void add_instruction(int32_t index) {
    const ElementInstruction &instruction = program_.instructions[index];
    const int32_t operands[] = {instruction.a, instruction.b, instruction.c};
    add("    const C v", index, " = apply<ElementOp::", op_text(instruction.op), ", C>(");
    for (int32_t i = 0; i < 3; ++i)
      add(i < operand_count(instruction.op) ? register_text(operands[i]) : "C(0)", ", ");
    add(number_text(instruction.number), ");\n");
  }

  const FusedProgram &program_;
  std::string text_;
};

}  // namespace

std::optional<KernelText> fused_text(const FusedProgram &program) {
  if (!can_be_written(program.instructions, program.instruction_count)) return std::nullopt;
  return named(FusedWriter(program).write());
}

}  // namespace tutti::impl::backend::gpu

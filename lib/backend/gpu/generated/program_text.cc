// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/generated/program_text.h"

#include <algorithm>

#include "base/status.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::gpu {

using base::concat;
using tensor::DType;

namespace {

class ProgramWriter {
 public:
  ProgramWriter(const ElementProgram &program, const ReductionText *reduction, bool is_joined)
      : program_(program), reduction_(reduction), is_joined_(is_joined) {
    if (reduction != nullptr) {
      width_ = reduction->width;
      return;
    }
    int64_t widest = tensor::size_bytes(program.output.dtype);
    for (int32_t i = 0; i < program.input_count; ++i) {
      const ElementOperand &input = program.inputs[i];
      if (input.access == ElementAccess::dense) widest = std::max<int64_t>(widest, tensor::size_bytes(input.dtype));
    }
    width_ = static_cast<int32_t>(std::min<int64_t>(16 / widest, kMostWidth));
    is_whole_ = !is_joined && program.elements % width_ == 0;
  }

  int32_t width() const { return width_; }

  std::string write() {
    begin_struct();
    write_begin();
    write_load();
    add("};\n}\nextern \"C\" __global__ void __launch_bounds__(kBlockThreads) ", kName,
        "(const GeneratedOperands operands) {\n  ");
    if (reduction_ == nullptr) {
      const DType dtype = program_.output.dtype;
      add(is_joined_ ? "run_tree_rows<Tree_" : "run_tree<Tree_", kName, ", ", word_text(dtype), ", ", dtype_text(dtype),
          ">(operands);\n}\n");
    } else {
      add(reduction_->is_lines ? "reduce_tree_lines<Tree_" : "reduce_tree_columns<Tree_", kName, ", ", reduction_->op,
          ", ", dtype_text(reduction_->result), ">(operands);\n}\n");
    }
    return std::move(text_);
  }

 private:
  static constexpr int32_t kMostWidth = 8;

  template <typename... Parts>
  void add(const Parts &...parts) {
    text_ += concat(parts...);
  }

  bool is_scalar(int32_t input) const { return program_.inputs[input].access == ElementAccess::scalar; }
  std::string array(int32_t input) const { return concat("data", input); }

  void begin_struct() {
    add("namespace {\nstruct Tree_", kName, " {\n  using C = ", type_text(program_.arithmetic),
        ";\n  static constexpr int kWidth = ", width_,
        ";\n  static constexpr bool kIsWhole = ", is_whole_ ? "true" : "false", ";\n");
    for (int32_t i = 0; i < program_.input_count; ++i) {
      if (is_scalar(i)) {
        add("  C x", i, ";\n");
      } else {
        add("  const void *", array(i), ";\n");
      }
    }
  }

  void write_begin() {
    add("  __device__ __forceinline__ void begin(const ElementPlaces &places) {\n");
    for (int32_t i = 0; i < program_.input_count; ++i) {
      const std::string source = concat("places.inputs[", i, "]");
      if (is_scalar(i)) {
        add("    x", i, " = load_element<C>(", dtype_text(program_.inputs[i].dtype), ", ", source, ", 0);\n");
      } else {
        add("    ", array(i), " = ", source, ";\n");
      }
    }
    add("  }\n");
  }

  void write_load() {
    add("  __device__ __forceinline__ void load(int64_t first, int64_t end, C (&out)[kWidth]) const {\n");
    for (int32_t i = 0; i < program_.input_count; ++i) {
      if (is_scalar(i)) continue;
      add("    C x", i, "[kWidth];\n");
      if (program_.inputs[i].access == ElementAccess::dense) {
        write_dense(i, "kIsWhole", "first");
      } else {
        write_strided(i);
      }
    }
    add("    TUTTI_UNROLL\n    for (int lane = 0; lane < kWidth; ++lane) {\n");
    for (int32_t i = 0; i < program_.instruction_count; ++i)
      write_instruction(i);
    add("      out[lane] = v", program_.instruction_count - 1, ";\n    }\n  }\n");
  }

  void write_dense(int32_t input, std::string_view is_whole, std::string_view first) {
    const DType dtype = program_.inputs[input].dtype;
    add("    load_dense<", word_text(dtype), ", ", dtype_text(dtype), ", ", is_whole, ">(", array(input), ", ", first,
        ", end, x", input, ");\n");
  }

  void write_strided(int32_t input) {
    const ElementOperand &operand = program_.inputs[input];
    const int32_t inner = program_.rank - 1;
    const bool has_rows = program_.dims[inner] % width_ == 0;
    const std::string first = position_text(operand, "first");
    const bool is_even =
        std::all_of(operand.strides, operand.strides + inner, [&](int64_t stride) { return stride % width_ == 0; });
    if (has_rows && operand.strides[inner] == 1 && is_even) return write_dense(input, "true", first);
    if (has_rows && operand.strides[inner] == 0) {
      add("    fill(load_element<C>(", dtype_text(operand.dtype), ", ", array(input), ", ", first, "), x", input,
          ");\n");
      return;
    }
    add("    TUTTI_UNROLL\n    for (int lane = 0; lane < kWidth; ++lane) {\n      const int64_t at = ",
        is_whole_ ? "first + lane" : "first + lane < end ? first + lane : first", ";\n      x", input,
        "[lane] = load_element<C>(", dtype_text(operand.dtype), ", ", array(input), ", ", position_text(operand, "at"),
        ");\n    }\n");
  }

  /// Where the result's element lies in a strided operand.
  std::string position_text(const ElementOperand &operand, std::string_view element) const {
    // 32 bits do where they do: divisions are cheaper then.
    const std::string index = program_.elements < (int64_t{1} << 31) ? "uint32_t" : "uint64_t";
    std::string sum;
    int64_t below = 1;  // elements of the result that one step along the axis passes
    for (int32_t axis = program_.rank - 1; axis >= 0; below *= program_.dims[axis--]) {
      if (operand.strides[axis] == 0) continue;
      std::string coordinate = concat(index, "(", element, ")");
      if (below != 1) coordinate += concat(" / ", index, "(", below, ")");
      if (axis > 0) coordinate += concat(" % ", index, "(", program_.dims[axis], ")");
      if (!sum.empty()) sum += " + ";
      sum += concat("int64_t(", coordinate, ")");
      if (operand.strides[axis] != 1) sum += concat(" * ", operand.strides[axis]);
    }
    return sum.empty() ? "0" : sum;
  }

  std::string register_text(int32_t number) const {
    if (number >= program_.input_count) return concat("v", number - program_.input_count);
    return is_scalar(number) ? concat("x", number) : concat("x", number, "[lane]");
  }

  void write_instruction(int32_t index) {
    add("      const C v", index, " = ",
        instruction_text(program_.instructions[index], [this](int32_t number) { return register_text(number); }),
        ";\n");
  }

  const ElementProgram &program_;
  const ReductionText *const reduction_;
  const bool is_joined_;
  int32_t width_ = 1;
  bool is_whole_ = true;
  std::string text_;
};

std::optional<KernelText> write_kernel(const ElementProgram &program, const ReductionText *reduction, bool is_joined) {
  if (!can_be_written(program.instructions, program.instruction_count)) return std::nullopt;
  ProgramWriter writer(program, reduction, is_joined);
  KernelText made = named(writer.write());
  made.width = writer.width();
  return made;
}

}  // namespace

std::optional<KernelText> program_text(const ElementProgram &program, const ReductionText *reduction) {
  return write_kernel(program, reduction, false);
}

std::optional<KernelText> joined_program_text(const ElementProgram &program) {
  return write_kernel(program, nullptr, true);
}

std::string_view text_prologue() {
  return "#include \"backend/gpu/device/generated-inl.h\"\nnamespace tutti::impl::backend::gpu {\n";
}
std::string_view text_epilogue() { return "}\n"; }

}  // namespace tutti::impl::backend::gpu

// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/generated/fused_text.h"

#include <utility>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

using base::concat;

namespace {

class FusedWriter {
 public:
  FusedWriter(const FusedProgram &program, const FusedProduct *product) : program_(program), product_(product) {}

  std::string write() {
    if (product_ != nullptr) add_product();
    add("extern \"C\" __global__ void __launch_bounds__(kBlockThreads) ", kName,
        "(const GeneratedOperands operands) {\n  using C = float;\n");
    if (product_ == nullptr) {
      add_elements();
    } else {
      add_tiles();
    }
    add("  }\n}\n");
    return std::move(text_);
  }

 private:
  template <typename... Parts>
  void add(const Parts &...parts) {
    text_ += concat(parts...);
  }

  static std::string number(int64_t value) { return std::to_string(value); }

  void add_product() {
    const FusedProduct &product = *product_;
    add("namespace {\nstruct Product_", kName, " {\n");
    for (const auto &[letter, dtype] : {std::pair{"A", product.a}, {"B", product.b}})
      add("  using ", letter, " = ", word_text(dtype), ";\n  static constexpr DType k", letter, " = ",
          dtype_text(dtype), ";\n");
    add("  static constexpr DType kResult = ", dtype_text(product.result), ";\n");
    for (const auto &[name, value] : {std::pair{"kRows", program_.rows},
                                      {"kInner", product.inner},
                                      {"kColumns", program_.columns},
                                      {"kPitch", product.is_transposed ? product.inner : product.columns}})
      add("  static constexpr int64_t ", name, " = ", number(value), ";\n");
    add("  static constexpr bool kIsTransposed = ", product.is_transposed ? "true" : "false",
        ";\n  static constexpr int kParts = ", product.part_count,
        ";\n  static __device__ __forceinline__ int64_t first_column(int part) {\n    return ");
    for (int32_t part = 0; part < product.part_count; ++part) {
      const std::string first = number(program_.inputs[product.parts[part]].offset);
      if (part + 1 < product.part_count) {
        add("part == ", part, " ? ", first, " : ");
      } else {
        add(first, ";\n  }\n};\n}\n");
      }
    }
  }

  void add_elements() {
    // 32 bits do where they do: a division is cheaper then.
    const int64_t elements = program_.rows * program_.columns;
    const std::string index = elements < (int64_t{1} << 31) ? "uint32_t" : "uint64_t";
    add("  for (int64_t element = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; element < ", elements,
        ";\n       element += static_cast<int64_t>(gridDim.x) * blockDim.x) {\n    const int64_t row = ", index,
        "(element) / ", index, "(", program_.columns, "), column = element - row * ", program_.columns, ";\n");
    for (int32_t i = 0; i < program_.input_count; ++i)
      add("    const C x", i, " = ", load_text(i), ";\n");
    add_work("    ");
  }

  void add_tiles() {
    const int64_t across = (program_.columns + kTileColumns - 1) / kTileColumns;
    const int64_t tiles = across * ((program_.rows + kTileRows - 1) / kTileRows);
    add("  using Product = Product_", kName, ";\n  __shared__ TileSums<Product::kParts> sums;\n",
        "  for (int64_t tile = blockIdx.x; tile < ", tiles,
        "; tile += gridDim.x) {\n    const int64_t first_row = tile / ", across, " * kTileRows, first_column = tile % ",
        across, " * kTileColumns;\n",
        "    const int element = static_cast<int>(threadIdx.x);\n"
        "    const int64_t row = first_row + element / kTileColumns, column = first_column + element % kTileColumns;\n"
        "    const bool is_inside = element < kTileElements && row < Product::kRows && column < Product::kColumns;\n");
    for (int32_t i = 0; i < program_.input_count; ++i) {
      if (part_of(i) < 0) add("    const C x", i, " = is_inside ? ", load_text(i), " : C(0);\n");
    }
    add("    multiply_tile<Product>(operands.fused.inputs[", program_.input_count, "], operands.fused.inputs[",
        program_.input_count + 1, "], first_row, first_column, sums);\n    if (is_inside) {\n");
    for (int32_t i = 0; i < program_.input_count; ++i) {
      if (part_of(i) >= 0) add("      const C x", i, " = tile_sum<Product>(sums, ", part_of(i), ", element);\n");
    }
    add_work("      ");
    add("    }\n    __syncthreads();\n");
  }

  /// Which part of the product the input is; -1: none.
  int32_t part_of(int32_t input) const {
    for (int32_t part = 0; product_ != nullptr && part < product_->part_count; ++part) {
      if (product_->parts[part] == input) return part;
    }
    return -1;
  }

  std::string load_text(int32_t input) const {
    return concat("load_element<C>(", dtype_text(program_.inputs[input].dtype), ", operands.fused.inputs[", input,
                  "], ", position_text(program_.inputs[input]), ")");
  }

  void add_work(const char *indent) {
    for (int32_t i = 0; i < program_.instruction_count; ++i)
      add(indent, "const C v", i, " = ",
          instruction_text(program_.instructions[i], [this](int32_t number) { return register_text(number); }), ";\n");
    for (int32_t i = 0; i < program_.output_count; ++i)
      add(indent, "store_element<C>(", dtype_text(program_.outputs[i].dtype), ", operands.fused.outputs[", i, "], ",
          position_text(program_.outputs[i]), ", ", register_text(program_.outputs[i].source), ");\n");
  }

  std::string register_text(int32_t number) const {
    return number < program_.input_count ? concat("x", number) : concat("v", number - program_.input_count);
  }

  static std::string position_text(const FusedOperand &operand) {
    return concat(operand.offset, " + row * ", operand.row_stride, " + column * ", operand.column_stride);
  }

  const FusedProgram &program_;
  const FusedProduct *const product_;  // or null
  std::string text_;
};

}  // namespace

std::optional<KernelText> fused_text(const FusedProgram &program, const FusedProduct *product) {
  if (!can_be_written(program.instructions, program.instruction_count)) return std::nullopt;
  return named(FusedWriter(program, product).write());
}

}  // namespace tutti::impl::backend::gpu

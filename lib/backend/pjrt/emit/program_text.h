// SPDX-License-Identifier: Apache-2.0
//
// Writes a function in StableHLO's text form, an operation a line. Only operations of version 1.7 or older, in the
// generic form of MLIR, in one spelling: what plug-ins of several years read alike.
//
//   ProgramText text;
//   const Value x = text.argument(DType::f32, {8, 4});
//   const Value y = text.binary("add", x, text.splat(DType::f32, {8, 4}, 1.0));
//   const Value s = text.reduce(Reduction::sum, y, {0});          // f32[4]
//   std::string module = text.finish({s});
//
// Values of f16 and bf16 are best computed in f32 (widened, converted at the end): every operation rounds. Shapes are
// the caller's to get right; the plug-in's parser names what does not fit. Source: the StableHLO specification.
//
// Threads: an object belongs to one thread.
#ifndef TUTTI_BACKEND_PJRT_EMIT_PROGRAM_TEXT_H_
#define TUTTI_BACKEND_PJRT_EMIT_PROGRAM_TEXT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace tutti::impl::backend::pjrt {

using Dims = std::vector<int64_t>;

/// A value of the program: its name in the text, and its type.
struct Value {
  std::string name;
  tensor::DType dtype = tensor::DType::f32;
  Dims dims;

  bool is_absent() const { return name.empty(); }
};

/// Whether an array of such dims has no elements.
bool is_empty(const Dims &dims);

/// "tensor<8x4xf32>".
std::string type_text(tensor::DType dtype, const Dims &dims);
inline std::string type_text(const Value &value) { return type_text(value.dtype, value.dims); }

enum class Reduction { sum, product, max, min, all, any };

/// Numbers of a window's axes, in the order of the operand's axes; an empty list is all 1, of paddings all 0.
struct WindowText {
  Dims size, stride;
  Dims low, high;
};

/// As attributes of the operations that have windows.
std::string window_attributes(const WindowText &window);

/// A matrix product: axes that both have, axes that are summed over. The result's axes: batch, rest of a, rest of b.
struct ProductAxes {
  Dims batch_a, batch_b, contracted_a, contracted_b;
};

/// A two-dimensional convolution, of operands whose axes are named by letters: "b01f", "01io", "b01f".
struct ConvolutionText {
  std::string input, kernel, output;
  Dims stride = {1, 1}, low = {0, 0}, high = {0, 0};
  Dims input_dilation = {1, 1}, kernel_dilation = {1, 1};
  int64_t feature_groups = 1, batch_groups = 1;
};

class ProgramText {
 public:
  /// Multiplies f32 as exactly as the device can, unless `permits_less`.
  explicit ProgramText(bool permits_less = false) : permits_less_(permits_less) {}

  /// The next argument of the function.
  Value argument(tensor::DType dtype, const Dims &dims);
  /// The result takes the argument's memory.
  void donate(size_t argument, size_t result);

  // ---- constants ----
  /// Every element is `value`, rounded to the type; integers exactly up to 2^53.
  Value splat(tensor::DType dtype, const Dims &dims, double value);
  Value scalar(tensor::DType dtype, double value) { return splat(dtype, {}, value); }
  Value integer(tensor::DType dtype, int64_t value);
  /// The lowest and the highest value of a type, infinite for floats.
  Value lowest(tensor::DType dtype) { return neutral(Reduction::max, dtype); }
  Value highest(tensor::DType dtype) { return neutral(Reduction::min, dtype); }
  Value like(const Value &value, double number) { return splat(value.dtype, value.dims, number); }
  Value constant(const tensor::Tensor &tensor);
  Value constant(tensor::DType dtype, const Dims &dims, std::span<const double> values);

  // ---- element by element ----
  Value unary(std::string_view op, const Value &x);
  /// Operands have one type and shape.
  Value binary(std::string_view op, const Value &a, const Value &b);
  Value add(const Value &a, const Value &b) { return binary("add", a, b); }
  Value sub(const Value &a, const Value &b) { return binary("subtract", a, b); }
  Value mul(const Value &a, const Value &b) { return binary("multiply", a, b); }
  Value div(const Value &a, const Value &b) { return binary("divide", a, b); }
  Value mul(const Value &a, double b) { return mul(a, like(a, b)); }
  Value add(const Value &a, double b) { return add(a, like(a, b)); }
  /// "EQ", "NE", "LT", "LE", "GT", "GE".
  Value compare(std::string_view direction, const Value &a, const Value &b);
  Value compare(std::string_view direction, const Value &a, double b) { return compare(direction, a, like(a, b)); }
  Value select(const Value &condition, const Value &a, const Value &b);
  Value is_nan(const Value &x) { return compare("NE", x, x); }
  /// As the plug-in converts; see cast.cc for tutti's rules.
  Value convert(const Value &x, tensor::DType dtype);
  /// f32 of f16 and bf16, others as they are.
  Value widen(const Value &x);
  /// Not-a-numbers where `is_good` is false; what is no float stays.
  Value poison(const Value &is_good, const Value &x);

  // ---- shapes ----
  /// Axis i of x becomes axis axes[i].
  Value broadcast(const Value &x, const Dims &dims, const Dims &axes);
  /// By the broadcasting rules: aligned at the last axis.
  Value broadcast_to(const Value &x, const Dims &dims);
  Value reshape(const Value &x, const Dims &dims);
  Value transpose(const Value &x, const Dims &permutation);
  Value concat_parts(const std::vector<Value> &parts, size_t axis);
  Value slice(const Value &x, const Dims &begin, const Dims &limit, const Dims &strides = {});
  /// [begin, limit) of one axis.
  Value slice_axis(const Value &x, size_t axis, int64_t begin, int64_t limit);
  Value pad(const Value &x, double value, const Dims &low, const Dims &high, const Dims &interior = {});
  Value reverse(const Value &x, const Dims &axes);
  Value iota(tensor::DType dtype, const Dims &dims, size_t axis);
  Value dynamic_slice(const Value &x, std::span<const Value> begin, const Dims &sizes);
  Value dynamic_update_slice(const Value &x, const Value &part, std::span<const Value> begin);

  // ---- more elements at a time ----
  /// Over nothing: 0, 1, lowest, highest, true, false. Where maxima and minima are asked for, what is not a number may
  /// or may not win.
  Value reduce(Reduction kind, const Value &x, const Dims &axes, bool keep_dims = false);
  /// Sums, or maxima among which not-a-number wins.
  Value reduce_window(Reduction kind, const Value &x, const WindowText &window);
  Value product(const Value &a, const Value &b, const ProductAxes &axes);
  Value convolution(const Value &x, const Value &kernel, const ConvolutionText &how, const Dims &dims);
  /// Over what each of the devices that run the program has there. Maxima and minima keep what is not a number.
  Value all_reduce(Reduction kind, const Value &x, int32_t replicas);

  // ---- others, and those with regions ----
  Value op(std::string_view name, const std::vector<Value> &operands, std::string_view attributes, tensor::DType dtype,
           const Dims &dims, std::string_view regions = "");
  /// Several results, whose types `results` gives; their names are set.
  void op(std::string_view name, const std::vector<Value> &operands, std::string_view attributes,
          std::vector<Value> &results, std::string_view regions = "");
  /// "({ ^bb0(...): ... })": the text of a region whose body `write` gives from its parameters, and which returns what
  /// it gives.
  using RegionBody = std::function<std::vector<Value>(std::span<const Value> parameters)>;
  std::string region(const std::vector<Value> &parameter_types, const RegionBody &write);

  /// The whole module. `results`: of the function. `replicas`: of the module, 1 for a program of one device.
  std::string finish(std::span<const Value> results, int32_t replicas = 1) const;

 private:
  std::string next_name();
  Value literal(tensor::DType dtype, const Dims &dims, std::string_view text);
  Value neutral(Reduction kind, tensor::DType dtype);
  std::string reducer(Reduction kind, tensor::DType dtype);
  std::string nan_maximum(tensor::DType dtype);
  Value all_reduce_by_op(Reduction kind, const Value &x, int32_t replicas);
  std::string precision_text(const Value &a) const;

  const bool permits_less_;
  std::vector<Value> arguments_;
  std::vector<int64_t> aliases_;  // by argument: result, or -1
  std::string body_;
  int64_t names_ = 0;
};

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_EMIT_PROGRAM_TEXT_H_

// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/emit/program_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/text.h"

namespace tutti::impl::backend::pjrt {

using base::concat;
using tensor::DType;

namespace {

constexpr char kHexDigits[] = "0123456789ABCDEF";

std::string_view element_text(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::boolean:
      return "i1";
    case DType::i8:
      return "i8";
    case DType::i16:
      return "i16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "ui8";
    case DType::u16:
      return "ui16";
    case DType::u32:
      return "ui32";
    case DType::u64:
      return "ui64";
    default:
      return "none";
  }
}

std::string hex(uint64_t bits, int digits) {
  std::string text = "0x";
  for (int digit = digits - 1; digit >= 0; --digit)
    text.push_back(kHexDigits[(bits >> (4 * digit)) & 15]);
  return text;
}

/// A float by its bits, which say it exactly; other types as decimal numbers.
std::string number_text(DType dtype, double value) {
  switch (dtype) {
    case DType::f16:
      return hex(tensor::Half(static_cast<float>(value)).bits, 4);
    case DType::bf16:
      return hex(tensor::BFloat16(static_cast<float>(value)).bits, 4);
    case DType::f32:
      return hex(std::bit_cast<uint32_t>(static_cast<float>(value)), 8);
    case DType::f64:
      return hex(std::bit_cast<uint64_t>(value), 16);
    case DType::boolean:
      return value != 0 ? "true" : "false";
    default:
      return std::to_string(static_cast<int64_t>(value));
  }
}

std::string list(const Dims &numbers) { return concat("[", base::join(numbers, ", "), "]"); }
std::string array(const Dims &numbers) {
  return numbers.empty() ? std::string("array<i64>") : concat("array<i64: ", base::join(numbers, ", "), ">");
}

std::string padding_text(const Dims &low, const Dims &high) {
  std::vector<std::string> pairs;
  for (size_t i = 0; i < low.size(); ++i)
    pairs.push_back(list({low[i], high[i]}));
  return concat("dense<[", base::join(pairs, ", "), "]> : tensor<", low.size(), "x2xi64>");
}

std::string_view op_of(Reduction kind) {
  switch (kind) {
    case Reduction::sum:
      return "add";
    case Reduction::product:
      return "multiply";
    case Reduction::max:
      return "maximum";
    case Reduction::min:
      return "minimum";
    case Reduction::all:
      return "and";
    default:
      return "or";
  }
}

/// The lowest or highest value of an integer type.
std::string integer_limit(DType dtype, bool is_lowest) {
  std::string text;
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>)
      text = std::to_string(is_lowest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
  });
  return text;
}

/// "[b, 0, 1, f]" of "b01f".
std::string axes_text(std::string_view letters) {
  std::vector<std::string> each;
  for (const char letter : letters)
    each.emplace_back(1, letter);
  return concat("[", base::join(each, ", "), "]");
}

}  // namespace

bool is_empty(const Dims &dims) { return std::ranges::find(dims, 0) != dims.end(); }

std::string window_attributes(const WindowText &window) {
  return concat("window_dimensions = ", array(window.size), ", window_strides = ", array(window.stride),
                ", padding = ", padding_text(window.low, window.high));
}

std::string type_text(DType dtype, const Dims &dims) {
  std::string text = "tensor<";
  for (const int64_t dim : dims)
    text += concat(dim, "x");
  return text + std::string(element_text(dtype)) + ">";
}

std::string ProgramText::next_name() { return concat("%", names_++); }

Value ProgramText::argument(DType dtype, const Dims &dims) {
  arguments_.push_back({concat("%arg", arguments_.size()), dtype, dims});
  aliases_.push_back(-1);
  return arguments_.back();
}

void ProgramText::donate(size_t argument, size_t result) { aliases_[argument] = static_cast<int64_t>(result); }

// ---- constants ----

Value ProgramText::literal(DType dtype, const Dims &dims, std::string_view text) {
  return op("constant", {}, concat("value = dense<", text, "> : ", type_text(dtype, dims)), dtype, dims);
}

Value ProgramText::splat(DType dtype, const Dims &dims, double value) {
  return literal(dtype, dims, is_empty(dims) ? std::string() : number_text(dtype, value));
}

Value ProgramText::integer(DType dtype, int64_t value) {
  return literal(dtype, {}, dtype == DType::u64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value));
}

Value ProgramText::constant(const tensor::Tensor &tensor) {
  const Dims dims(tensor.shape().begin(), tensor.shape().end());
  if (tensor.elements() == 0) return splat(tensor.dtype(), dims, 0);
  if (tensor.dtype() == DType::boolean) {  // a text of bits would be packed
    const auto bytes = tensor::Tensor::from_values<uint8_t>(
        tensor.shape(), std::span(static_cast<const uint8_t *>(tensor.data()), static_cast<size_t>(tensor.elements())));
    return bytes.ok() ? compare("NE", constant(*bytes), 0) : Value();
  }
  const auto *const bytes = static_cast<const uint8_t *>(tensor.data());
  const size_t element = tensor::size_bytes(tensor.dtype());
  const auto count = static_cast<size_t>(tensor.size_bytes());
  // An element that all share is said once.
  const bool is_splat = std::memcmp(bytes, bytes + element, count - element) == 0;
  std::string text = "\"0x";
  for (size_t i = 0; i < (is_splat ? element : count); ++i) {
    text.push_back(kHexDigits[bytes[i] >> 4]);
    text.push_back(kHexDigits[bytes[i] & 15]);
  }
  text.push_back('"');
  const Value found = literal(tensor.dtype(), is_splat ? Dims{} : dims, text);
  return is_splat && !dims.empty() ? broadcast(found, dims, {}) : found;
}

Value ProgramText::constant(DType dtype, const Dims &dims, std::span<const double> values) {
  if (values.size() <= 1) return values.empty() ? splat(dtype, dims, 0) : splat(dtype, dims, values[0]);
  std::vector<std::string> texts;
  for (const double value : values)
    texts.push_back(number_text(dtype, value));
  const Value flat = literal(dtype, {static_cast<int64_t>(values.size())}, concat("[", base::join(texts, ", "), "]"));
  return reshape(flat, dims);
}

// ---- element by element ----

Value ProgramText::unary(std::string_view name, const Value &x) { return op(name, {x}, "", x.dtype, x.dims); }

Value ProgramText::binary(std::string_view name, const Value &a, const Value &b) {
  const std::vector<Value> operands = {a, b};
  return op(name, operands, "", a.dtype, a.dims);
}

Value ProgramText::compare(std::string_view direction, const Value &a, const Value &b) {
  const std::vector<Value> operands = {a, b};
  return op("compare", operands, concat("comparison_direction = #stablehlo<comparison_direction ", direction, ">"),
            DType::boolean, a.dims);
}

Value ProgramText::select(const Value &condition, const Value &a, const Value &b) {
  const std::vector<Value> operands = {condition, a, b};
  return op("select", operands, "", a.dtype, a.dims);
}

Value ProgramText::convert(const Value &x, DType dtype) {
  return x.dtype == dtype ? x : op("convert", {x}, "", dtype, x.dims);
}

Value ProgramText::widen(const Value &x) {
  return x.dtype == DType::f16 || x.dtype == DType::bf16 ? convert(x, DType::f32) : x;
}

Value ProgramText::poison(const Value &is_good, const Value &x) {
  if (!tensor::is_floating(x.dtype)) return x;
  return select(broadcast_to(is_good, x.dims), x, like(x, std::numeric_limits<double>::quiet_NaN()));
}

// ---- shapes ----

Value ProgramText::broadcast(const Value &x, const Dims &dims, const Dims &axes) {
  if (x.dims == dims) return x;
  return op("broadcast_in_dim", {x}, concat("broadcast_dimensions = ", array(axes)), x.dtype, dims);
}

Value ProgramText::broadcast_to(const Value &x, const Dims &dims) {
  Dims axes(x.dims.size());
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(dims.size() - x.dims.size()));
  return broadcast(x, dims, axes);
}

Value ProgramText::reshape(const Value &x, const Dims &dims) {
  return x.dims == dims ? x : op("reshape", {x}, "", x.dtype, dims);
}

Value ProgramText::transpose(const Value &x, const Dims &permutation) {
  Dims dims;
  for (const int64_t axis : permutation)
    dims.push_back(x.dims[static_cast<size_t>(axis)]);
  return op("transpose", {x}, concat("permutation = ", array(permutation)), x.dtype, dims);
}

Value ProgramText::concat_parts(const std::vector<Value> &parts, size_t axis) {
  Dims dims = parts.front().dims;
  dims[axis] = 0;
  for (const Value &part : parts)
    dims[axis] += part.dims[axis];
  return op("concatenate", parts, concat("dimension = ", axis, " : i64"), parts.front().dtype, dims);
}

Value ProgramText::slice(const Value &x, const Dims &begin, const Dims &limit, const Dims &strides) {
  const Dims steps = strides.empty() ? Dims(begin.size(), 1) : strides;
  Dims dims;
  for (size_t i = 0; i < begin.size(); ++i)
    dims.push_back((limit[i] - begin[i] + steps[i] - 1) / steps[i]);
  if (dims == x.dims) return x;
  return op("slice", {x},
            concat("start_indices = ", array(begin), ", limit_indices = ", array(limit), ", strides = ", array(steps)),
            x.dtype, dims);
}

Value ProgramText::slice_axis(const Value &x, size_t axis, int64_t begin, int64_t limit) {
  Dims begins(x.dims.size(), 0), limits = x.dims;
  begins[axis] = begin;
  limits[axis] = limit;
  return slice(x, begins, limits);
}

Value ProgramText::pad(const Value &x, double value, const Dims &low, const Dims &high, const Dims &interior) {
  const Dims between = interior.empty() ? Dims(low.size(), 0) : interior;
  Dims dims;
  for (size_t i = 0; i < low.size(); ++i)
    dims.push_back(low[i] + high[i] + x.dims[i] + std::max<int64_t>(x.dims[i] - 1, 0) * between[i]);
  const std::vector<Value> operands = {x, scalar(x.dtype, value)};
  return op("pad", operands,
            concat("edge_padding_low = ", array(low), ", edge_padding_high = ", array(high),
                   ", interior_padding = ", array(between)),
            x.dtype, dims);
}

Value ProgramText::reverse(const Value &x, const Dims &axes) {
  return op("reverse", {x}, concat("dimensions = ", array(axes)), x.dtype, x.dims);
}

Value ProgramText::iota(DType dtype, const Dims &dims, size_t axis) {
  return op("iota", {}, concat("iota_dimension = ", axis, " : i64"), dtype, dims);
}

Value ProgramText::dynamic_slice(const Value &x, std::span<const Value> begin, const Dims &sizes) {
  std::vector<Value> operands = {x};
  operands.insert(operands.end(), begin.begin(), begin.end());
  return op("dynamic_slice", operands, concat("slice_sizes = ", array(sizes)), x.dtype, sizes);
}

Value ProgramText::dynamic_update_slice(const Value &x, const Value &part, std::span<const Value> begin) {
  std::vector<Value> operands = {x, part};
  operands.insert(operands.end(), begin.begin(), begin.end());
  return op("dynamic_update_slice", operands, "", x.dtype, x.dims);
}

// ---- more elements at a time ----

Value ProgramText::neutral(Reduction kind, DType dtype) {
  switch (kind) {
    case Reduction::sum:
    case Reduction::any:
      return scalar(dtype, 0);
    case Reduction::product:
    case Reduction::all:
      return scalar(dtype, 1);
    default: {
      const bool is_max = kind == Reduction::max;
      if (tensor::is_integer(dtype)) return literal(dtype, {}, integer_limit(dtype, is_max));
      const double infinite = std::numeric_limits<double>::infinity();
      return scalar(dtype, is_max ? -infinite : infinite);
    }
  }
}

std::string ProgramText::reducer(Reduction kind, DType dtype) {
  const Value element{"", dtype, {}};
  return region({element, element},
                [&](std::span<const Value> of) -> std::vector<Value> { return {binary(op_of(kind), of[0], of[1])}; });
}

std::string ProgramText::nan_maximum(DType dtype) {
  const Value element{"", dtype, {}};
  return region({element, element}, [&](std::span<const Value> of) -> std::vector<Value> {
    const Value takes_first = binary("or", compare("GE", of[0], of[1]), is_nan(of[0]));
    return {select(takes_first, of[0], of[1])};
  });
}

Value ProgramText::reduce(Reduction kind, const Value &x, const Dims &axes, bool keep_dims) {
  Dims kept, with_ones = x.dims;
  for (size_t axis = 0; axis < x.dims.size(); ++axis) {
    const bool is_reduced = std::ranges::find(axes, static_cast<int64_t>(axis)) != axes.end();
    if (is_reduced) with_ones[axis] = 1;
    if (!is_reduced) kept.push_back(x.dims[axis]);
  }
  Value result = x;
  if (!axes.empty()) {
    const std::vector<Value> operands = {x, neutral(kind, x.dtype)};
    result = op("reduce", operands, concat("dimensions = ", array(axes)), x.dtype, kept, reducer(kind, x.dtype));
  }
  return keep_dims ? reshape(result, with_ones) : result;
}

Value ProgramText::reduce_window(Reduction kind, const Value &x, const WindowText &window) {
  Dims dims;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    const int64_t padded = x.dims[i] + window.low[i] + window.high[i];
    dims.push_back(padded < window.size[i] ? 0 : (padded - window.size[i]) / window.stride[i] + 1);
  }
  const std::vector<Value> operands = {x, neutral(kind, x.dtype)};
  return op("reduce_window", operands, window_attributes(window), x.dtype, dims,
            kind == Reduction::max ? nan_maximum(x.dtype) : reducer(kind, x.dtype));
}

Value ProgramText::all_reduce(Reduction kind, const Value &x, int32_t replicas) {
  const bool is_extreme = kind == Reduction::max || kind == Reduction::min;
  if (!is_extreme || !tensor::is_floating(x.dtype)) return all_reduce_by_op(kind, x, replicas);
  // Plug-ins combine devices by a single op, whose extremes may lose NaNs: these are counted beside them.
  const Value has_nan = is_nan(x);
  const Value nans = all_reduce_by_op(Reduction::sum, select(has_nan, like(x, 1), like(x, 0)), replicas);
  const Value none = broadcast_to(neutral(kind, x.dtype), x.dims);
  const Value extremes = all_reduce_by_op(kind, select(has_nan, none, x), replicas);
  return poison(compare("EQ", nans, 0), extremes);
}

Value ProgramText::all_reduce_by_op(Reduction kind, const Value &x, int32_t replicas) {
  std::vector<std::string> ranks;
  for (int32_t rank = 0; rank < replicas; ++rank)
    ranks.push_back(std::to_string(rank));
  return op("all_reduce", {x},
            concat("replica_groups = dense<[[", base::join(ranks, ", "), "]]> : tensor<1x", replicas, "xi64>"), x.dtype,
            x.dims, reducer(kind, x.dtype));
}

std::string ProgramText::precision_text(const Value &a) const {
  if (permits_less_ || a.dtype != DType::f32) return "";
  return ", precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]";
}

Value ProgramText::product(const Value &a, const Value &b, const ProductAxes &axes) {
  Dims dims;
  for (const int64_t axis : axes.batch_a)
    dims.push_back(a.dims[static_cast<size_t>(axis)]);
  const auto add_rest = [&](const Value &x, const Dims &batch, const Dims &contracted) {
    for (size_t axis = 0; axis < x.dims.size(); ++axis) {
      const auto is_this = [&](int64_t one) { return one == static_cast<int64_t>(axis); };
      if (std::ranges::none_of(batch, is_this) && std::ranges::none_of(contracted, is_this))
        dims.push_back(x.dims[axis]);
    }
  };
  add_rest(a, axes.batch_a, axes.contracted_a);
  add_rest(b, axes.batch_b, axes.contracted_b);
  const std::vector<Value> operands = {a, b};
  return op("dot_general", operands,
            concat("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = ", list(axes.batch_a),
                   ", rhs_batching_dimensions = ", list(axes.batch_b),
                   ", lhs_contracting_dimensions = ", list(axes.contracted_a),
                   ", rhs_contracting_dimensions = ", list(axes.contracted_b), ">", precision_text(a)),
            a.dtype, dims);
}

Value ProgramText::convolution(const Value &x, const Value &kernel, const ConvolutionText &how, const Dims &dims) {
  const std::vector<Value> operands = {x, kernel};
  return op("convolution", operands,
            concat("dimension_numbers = #stablehlo.conv<", axes_text(how.input), "x", axes_text(how.kernel), "->",
                   axes_text(how.output), ">, window_strides = ", array(how.stride),
                   ", padding = ", padding_text(how.low, how.high), ", lhs_dilation = ", array(how.input_dilation),
                   ", rhs_dilation = ", array(how.kernel_dilation), ", feature_group_count = ", how.feature_groups,
                   " : i64, batch_group_count = ", how.batch_groups, " : i64", precision_text(x)),
            x.dtype, dims);
}

// ---- others, and those with regions ----

void ProgramText::op(std::string_view name, const std::vector<Value> &operands, std::string_view attributes,
                     std::vector<Value> &results, std::string_view regions) {
  std::vector<std::string> names, operand_types, result_types;
  for (const Value &operand : operands) {
    names.push_back(operand.name);
    operand_types.push_back(type_text(operand));
  }
  const std::string own = next_name();
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].name = results.size() == 1 ? own : concat(own, "#", i);
    result_types.push_back(type_text(results[i]));
  }
  const std::string left = results.empty()       ? std::string()
                           : results.size() == 1 ? concat(own, " = ")
                                                 : concat(own, ":", results.size(), " = ");
  body_ += concat(left, "\"stablehlo.", name, "\"(", base::join(names, ", "), ")");
  if (!regions.empty()) body_ += concat(" (", regions, ")");
  if (!attributes.empty()) body_ += concat(" {", attributes, "}");
  body_ += concat(" : (", base::join(operand_types, ", "), ") -> (", base::join(result_types, ", "), ")\n");
}

Value ProgramText::op(std::string_view name, const std::vector<Value> &operands, std::string_view attributes,
                      DType dtype, const Dims &dims, std::string_view regions) {
  std::vector<Value> results = {{"", dtype, dims}};
  op(name, operands, attributes, results, regions);
  return results[0];
}

std::string ProgramText::region(const std::vector<Value> &parameter_types, const RegionBody &write) {
  std::string outer = std::exchange(body_, {});
  std::vector<Value> parameters = parameter_types;
  std::vector<std::string> declared;
  for (Value &parameter : parameters) {
    parameter.name = next_name();
    declared.push_back(concat(parameter.name, ": ", type_text(parameter)));
  }
  const std::vector<Value> results = write(parameters);
  std::vector<Value> none;
  op("return", results, "", none);
  const std::string inner = std::exchange(body_, std::move(outer));
  const std::string head = declared.empty() ? std::string() : concat("^bb0(", base::join(declared, ", "), "):\n");
  return concat("{\n", head, inner, "}");
}

std::string ProgramText::finish(std::span<const Value> results, int32_t replicas) const {
  std::vector<std::string> arguments, types, names;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const std::string alias = aliases_[i] < 0 ? "" : concat(" {tf.aliasing_output = ", aliases_[i], " : i32}");
    arguments.push_back(concat(arguments_[i].name, ": ", type_text(arguments_[i]), alias));
  }
  for (const Value &result : results) {
    types.push_back(type_text(result));
    names.push_back(result.name);
  }
  const std::string returned =
      names.empty() ? "return\n" : concat("return ", base::join(names, ", "), " : ", base::join(types, ", "), "\n");
  return concat("module @tutti attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = ", replicas,
                " : i32} {\nfunc.func public @main(", base::join(arguments, ", "), ") -> (", base::join(types, ", "),
                ") {\n", body_, returned, "}\n}\n");
}

}  // namespace tutti::impl::backend::pjrt

// SPDX-License-Identifier: Apache-2.0
//
// cast: floats to integers truncate towards zero and saturate, not-a-number gives 0; to boolean: x ≠ 0. What the
// operation convert makes of such numbers is the device's own affair, so it meets none.
#include <cmath>

#include "backend/pjrt/emit/op_emitters.h"

namespace tutti::impl::backend::pjrt {

using base::Status;
using tensor::DType;

namespace {

/// One above the largest value of an integer type, a power of two.
double beyond(DType dtype, bool is_signed) {
  const int bits = 8 * static_cast<int>(tensor::size_bytes(dtype));
  return std::ldexp(1.0, is_signed ? bits - 1 : bits);
}

Value float_to_integer(ProgramText &text, const Value &x, DType dtype) {
  const bool is_signed = tensor::category(dtype) == tensor::DTypeCategory::signed_integer;
  const double above = beyond(dtype, is_signed), lowest = is_signed ? -above : 0;
  const Value is_high = text.compare("GE", x, above), is_low = text.compare("LE", x, lowest);
  const Value is_inside = text.binary("and", text.compare("LT", x, above), text.compare("GT", x, lowest));
  const Value inside = text.convert(text.select(is_inside, x, text.like(x, 0)), dtype);
  const Value with_low = text.select(is_low, text.broadcast(text.lowest(dtype), x.dims, {}), inside);
  return text.select(is_high, text.broadcast(text.highest(dtype), x.dims, {}), with_low);
}

}  // namespace

Status emit_cast(NodeEmitter &node) {
  ProgramText &text = node.text();
  const DType to = node.output(0).dtype;
  const Value &x = node.input(0);
  if (x.dtype == to) {
    node.set_output(0, x);
  } else if (to == DType::boolean) {
    node.set_output(0, text.compare("NE", x, 0));
  } else if (tensor::is_floating(x.dtype) && tensor::is_integer(to)) {
    node.set_output(0, float_to_integer(text, text.widen(x), to));
  } else {
    node.set_output(0, text.convert(x, to));
  }
  return Status();
}

}  // namespace tutti::impl::backend::pjrt

// SPDX-License-Identifier: Apache-2.0
#include "backend/bounded_integers.h"

#include "base/text.h"

namespace tutti::impl::backend {

BoundedIntegers BoundedIntegers::of(const LoweredGraph &lowered, const graph::Node &node, size_t input, int64_t limit,
                                    std::string_view noun) {
  BoundedIntegers result;
  result.node_ = describe(node);
  result.noun_ = noun;
  result.dtype_ = lowered.value(node.inputs[input]).dtype;
  result.limit_ = limit;
  result.rows_ = BatchRows::of(lowered, node.inputs[input]);
  return result;
}

std::string BoundedIntegers::place(int64_t position, int64_t row_offset) const {
  if (!rows_.has_batch) return base::concat(noun_ == "label" ? "in row " : "at position ", position);
  const int64_t i = position % rows_.inner, j = position / rows_.inner % rows_.factor;
  const int64_t row = position / rows_.inner / rows_.factor % rows_.rows;
  const int64_t outer = position / rows_.inner / rows_.factor / rows_.rows;
  const std::string in_row = base::concat("in row ", row_offset + row);
  if (rows_.outer * rows_.factor * rows_.inner == 1) return in_row;
  return base::concat(in_row, ", element ", (outer * rows_.factor + j) * rows_.inner + i);
}

base::Status BoundedIntegers::error(int64_t position, int64_t value, int64_t row_offset) const {
  const std::string shown =
      dtype_ == tensor::DType::u64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
  return base::invalid_argument(node_, ": ", noun_, " ", shown, " ", place(position, row_offset), " is outside [0, ",
                                limit_, ")");
}

}  // namespace tutti::impl::backend

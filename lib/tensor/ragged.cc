// SPDX-License-Identifier: Apache-2.0
#include "tensor/ragged.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tutti::impl::tensor {

namespace {

base::Status check_splits(std::span<const int64_t> splits, int64_t items) {
  if (splits.empty() || splits.front() != 0) {
    return base::invalid_argument("row splits: expected 0 first, got ",
                                  splits.empty() ? "none" : base::concat(splits[0]));
  }
  for (size_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1]) {
      return base::invalid_argument("row splits: entry ", i, " is ", splits[i], ", less than the one before, ",
                                    splits[i - 1]);
    }
  }
  if (splits.back() == items) return base::Status();
  return base::invalid_argument("row splits: expected ", items, " (the rows of values) last, got ", splits.back());
}

// Fills `count` items of one row's shape at `out` with `padding` of that shape, or with zeros.
void pad_items(char *out, int64_t count, size_t item_bytes, const Tensor *padding) {
  for (int64_t i = 0; i < count; ++i, out += item_bytes) {
    if (padding != nullptr) {
      std::memcpy(out, padding->data(), item_bytes);
    } else {
      std::memset(out, 0, item_bytes);
    }
  }
}

}  // namespace

base::Result<RaggedTensor> RaggedTensor::make(Tensor values, Tensor row_splits) {
  if (values.empty() || values.rank() == 0) {
    return base::invalid_argument("ragged values: expected rank 1 or more, got ", values.describe());
  }
  TUTTI_ASSIGN(const std::span<const int64_t> splits, row_splits.values<int64_t>());
  if (row_splits.rank() != 1) return base::invalid_argument("row splits: expected rank 1, got ", row_splits.describe());
  TUTTI_TRY(check_splits(splits, values.rows()));
  return RaggedTensor(std::move(values), std::move(row_splits));
}

base::Result<RaggedTensor> RaggedTensor::from_rows(std::span<const Tensor> rows) {
  if (rows.empty()) return base::invalid_argument("ragged tensor: expected rows, got none");
  std::vector<int64_t> splits(1, 0);
  for (const Tensor &row : rows) {
    const Tensor &first = rows.front();
    if (row.empty() || row.rank() == 0 || row.dtype() == DType::bytes || row.dtype() != first.dtype() ||
        !(row.shape().row_shape() == first.shape().row_shape())) {
      return base::invalid_argument("ragged row ", splits.size() - 1, ": ", row.describe(), " does not fit the first, ",
                                    first.describe());
    }
    splits.push_back(splits.back() + row.rows());
  }
  TUTTI_ASSIGN(const Shape shape, rows.front().shape().row_shape().prepend(splits.back()));
  TUTTI_ASSIGN(Tensor values, Tensor::allocate(rows.front().dtype(), shape));
  char *out = values.mutable_data_as<char>();
  for (const Tensor &row : rows) {
    if (row.elements() > 0) std::memcpy(out, row.data(), static_cast<size_t>(row.size_bytes()));
    out += row.size_bytes();
  }
  TUTTI_ASSIGN(Tensor row_splits,
               Tensor::from_values<int64_t>({static_cast<int64_t>(splits.size())}, std::span<const int64_t>(splits)));
  return RaggedTensor(std::move(values), std::move(row_splits));
}

int64_t RaggedTensor::longest_row() const {
  int64_t longest = 0;
  for (int64_t i = 0; i < rows(); ++i)
    longest = std::max(longest, row_length(i));
  return longest;
}

base::Result<Tensor> RaggedTensor::row(int64_t index) const {
  if (index < 0 || index >= rows()) return base::out_of_range("row ", index, " does not lie in ", describe());
  return values_.slice_rows(splits()[index], splits()[index + 1]);
}

base::Result<RaggedTensor> RaggedTensor::slice_rows(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > rows()) {
    return base::out_of_range("rows [", begin, ", ", end, ") do not lie in ", describe());
  }
  TUTTI_ASSIGN(Tensor values, values_.slice_rows(splits()[begin], splits()[end]));
  TUTTI_ASSIGN(Tensor row_splits, Tensor::allocate(DType::i64, {end - begin + 1}));
  auto *out = row_splits.mutable_data_as<int64_t>();
  for (int64_t i = begin; i <= end; ++i)
    *out++ = splits()[i] - splits()[begin];
  return RaggedTensor(std::move(values), std::move(row_splits));
}

base::Result<Tensor> RaggedTensor::to_dense(int64_t length, const Tensor *padding) const {
  if (length < 0) length = longest_row();
  const Shape item_shape = values_.shape().row_shape();
  if (padding != nullptr && (padding->dtype() != values_.dtype() || !(padding->shape() == item_shape))) {
    return base::invalid_argument("padding: expected ", values_.dtype(), " ", item_shape, ", got ",
                                  padding->describe());
  }
  TUTTI_ASSIGN(const Shape with_length, item_shape.prepend(length));
  TUTTI_ASSIGN(const Shape shape, with_length.prepend(rows()));
  TUTTI_ASSIGN(Tensor dense, Tensor::allocate(values_.dtype(), shape));
  const auto item_bytes = static_cast<size_t>(item_shape.elements()) * size_bytes(values_.dtype());
  char *out = dense.mutable_data_as<char>();
  for (int64_t i = 0; i < rows(); ++i) {
    const int64_t kept = std::min(length, row_length(i));
    const size_t kept_bytes = static_cast<size_t>(kept) * item_bytes;
    const size_t from = static_cast<size_t>(splits()[i]) * item_bytes;
    if (kept_bytes > 0) std::memcpy(out, values_.data_as<char>() + from, kept_bytes);
    pad_items(out + kept_bytes, length - kept, item_bytes, padding);
    out += static_cast<size_t>(length) * item_bytes;
  }
  return dense;
}

std::string RaggedTensor::describe() const {
  if (values_.empty()) return "no ragged tensor";
  std::string out = base::concat("ragged ", values_.dtype(), " [", rows(), ", (0..", longest_row(), ")");
  for (const int64_t extent : values_.shape().row_shape())
    out.append(base::concat(", ", extent));
  return out + "]";
}

}  // namespace tutti::impl::tensor

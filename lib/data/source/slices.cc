// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "base/memory.h"
#include "data/dataset/stage.h"
#include "data/pipeline/fingerprint.h"
#include "data/pipeline/sources.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

// Of the dataset, which outlives its iterators' stages.
struct Slices {
  Tensor tensor;
  std::shared_ptr<const RowRanges> ranges;  // null: one row each

  int64_t size() const { return ranges != nullptr ? static_cast<int64_t>(ranges->size()) : tensor.rows(); }
};

struct Column {
  const std::byte *data;
  int64_t row_bytes;
  const Slices *slices;
};

// Rows are copied a known number of bytes at a time where that is a register's width.
template <size_t kBytes>
void gather_small(const std::byte *source, std::span<const int64_t> positions, std::byte *target) {
  for (size_t i = 0; i < positions.size(); ++i) {
    std::memcpy(target + i * kBytes, source + static_cast<size_t>(positions[i]) * kBytes, kBytes);
  }
}

void gather_rows(const Column &column, std::span<const int64_t> positions, std::byte *target) {
  constexpr size_t kAhead = 4;  // rows whose first lines are fetched early
  const auto bytes = static_cast<size_t>(column.row_bytes);
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i + kAhead < positions.size()) {
      const std::byte *later = column.data + positions[i + kAhead] * column.row_bytes;
      __builtin_prefetch(later);
      __builtin_prefetch(later + bytes / 2);
    }
    std::memcpy(target + i * bytes, column.data + positions[i] * column.row_bytes, bytes);
  }
}

void gather_column(const Column &column, std::span<const int64_t> positions, std::byte *target) {
  switch (column.row_bytes) {
    case 0:
      return;
    case 1:
      return gather_small<1>(column.data, positions, target);
    case 4:
      return gather_small<4>(column.data, positions, target);
    case 8:
      return gather_small<8>(column.data, positions, target);
    default:
      return gather_rows(column, positions, target);
  }
}

Result<Tensor> element_of(const Slices &slices, int64_t position) {
  if (slices.ranges == nullptr) return slices.tensor.row(position);
  const RowRange &range = (*slices.ranges)[static_cast<size_t>(position)];
  return slices.tensor.slice_rows(range.begin, range.begin + range.count);
}

// Views need the alignment that a batch buffer would have.

class SlicesAccess : public RandomAccess {
 public:
  SlicesAccess(const std::vector<Slices> &slices, const SlicesOrigin &origin) : slices_(slices), origin_(origin) {
    for (const Slices &one : slices_) {
      const int64_t rows = one.tensor.rows();
      columns_.push_back({one.tensor.data_as<std::byte>(), rows == 0 ? 0 : one.tensor.size_bytes() / rows, &one});
    }
  }

  int64_t size() const override { return slices_[0].size(); }
  int64_t lineage(int64_t position) const override { return position; }
  FileName file(int64_t position) const override {
    if (!origin_.names_files) return origin_.file;
    return std::make_shared<const std::string>(tensor::bytes_at(slices_[0].tensor, position));
  }

  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    for (size_t i = 0; i < columns_.size(); ++i)
      gather_column(columns_[i], positions, targets[i].data);
    return Status();
  }

  Status element(int64_t position, Element &element) override {
    element.components.resize(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      TUTTI_ASSIGN(element.components[i], element_of(*columns_[i].slices, position));
    }
    return Status();
  }

  bool lies_in_memory() const override { return true; }
  // A row comes from its position.
  void locate(std::span<int64_t> positions, std::span<const std::byte *> rows) override {
    size_t i = 0;
    for (const int64_t position : positions) {
      for (const Column &column : columns_)
        rows[i++] = column.data + position * column.row_bytes;
    }
  }

  bool view(int64_t first, int64_t count, Element &batch) override {
    batch.components.resize(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].slices->ranges != nullptr) return false;
      Result<Tensor> rows = columns_[i].slices->tensor.slice_rows(first, first + count);
      if (!rows.ok() || !base::is_aligned(rows->data())) return false;
      batch.components[i] = rows.take();
    }
    return true;
  }

  bool choose(std::span<const size_t> components) override {
    std::vector<Column> chosen;
    for (const size_t component : components)
      chosen.push_back(columns_[component]);
    columns_ = std::move(chosen);
    return true;
  }

 private:
  // The dataset's, which outlives its iterators' stages.
  const std::vector<Slices> &slices_;
  const SlicesOrigin &origin_;
  std::vector<Column> columns_;
};

class SlicesDataset : public Dataset {
 public:
  SlicesDataset(ElementSpec spec, std::vector<Slices> slices, SlicesOrigin origin)
      : Dataset("slices", std::move(spec), Cardinality::exactly(slices[0].size()), {}),
        slices_(std::move(slices)),
        origin_(std::move(origin)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return open_indexed(*this, context);
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &, Access) const override {
    return std::unique_ptr<RandomAccess>(std::make_unique<SlicesAccess>(slices_, origin_));
  }
  bool describe(Fingerprint &fingerprint) const override {
    for (const Slices &one : slices_) {
      fingerprint.add_tensor(one.tensor);
      if (one.ranges == nullptr) continue;
      fingerprint.add("ranges");
      fingerprint.add_number(one.size());
      for (const RowRange &range : *one.ranges) {
        fingerprint.add_number(range.begin);
        fingerprint.add_number(range.count);
      }
    }
    return true;
  }

 private:
  const std::vector<Slices> slices_;
  const SlicesOrigin origin_;
};

Status check_ranges(const NamedTensor &named) {
  const int64_t rows = named.tensor.rows();
  for (size_t i = 0; named.ranges != nullptr && i < named.ranges->size(); ++i) {
    const auto [begin, count] = (*named.ranges)[i];
    if (begin >= 0 && count >= 0 && begin <= rows && count <= rows - begin) continue;
    return base::invalid_argument("slices: component '", named.name, "', element ", i, ": ", count, " rows from row ",
                                  begin, " are not within the ", rows, " rows of the tensor");
  }
  return Status();
}

Status check_first_dimensions(const std::vector<NamedTensor> &tensors) {
  const NamedTensor &first = tensors[0];
  const auto elements_of = [](const NamedTensor &named) { return Slices{named.tensor, named.ranges}.size(); };
  for (const NamedTensor &named : tensors) {
    if (named.tensor.empty()) return base::invalid_argument("slices: component '", named.name, "' has no tensor");
    if (named.tensor.rank() == 0) {
      return base::invalid_argument("slices: component '", named.name, "' is a scalar; expected at least one axis");
    }
    TUTTI_TRY(check_ranges(named));
    if (elements_of(named) != elements_of(first)) {
      return base::invalid_argument("slices: component '", first.name, "' has ", elements_of(first),
                                    " rows but component '", named.name, "' has ", elements_of(named),
                                    "; expected equal first dimensions");
    }
  }
  return Status();
}

}  // namespace

Result<DatasetRef> from_slices(std::vector<NamedTensor> tensors, SlicesOrigin origin) {
  if (tensors.empty()) return base::invalid_argument("slices: expected at least one tensor");
  TUTTI_TRY(check_first_dimensions(tensors));
  ElementSpec spec;
  std::vector<Slices> slices;
  for (NamedTensor &named : tensors) {
    const tensor::Shape row = named.tensor.shape().row_shape();
    graph::Dims dims(row.begin(), row.end());
    if (named.ranges != nullptr) dims.insert(dims.begin(), unknown_dim());
    spec.components.push_back({std::move(named.name), named.role, named.tensor.dtype(), std::move(dims)});
    slices.push_back({std::move(named.tensor), std::move(named.ranges)});
  }
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<SlicesDataset>(std::move(spec), std::move(slices), std::move(origin)));
}

}  // namespace tutti::impl::data

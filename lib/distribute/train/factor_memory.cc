// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/factor_memory.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using collective::Slice;

namespace {

constexpr int64_t kAlignment = 64;
/// A multiple of so many rows is one of kAlignment bytes, whatever a row has: elements have two bytes at least.
constexpr int64_t kRowUnit = 32;

}  // namespace

int32_t FactorMemory::find(std::string_view name) const {
  for (size_t i = 0; i < factors_.size(); ++i) {
    if (factors_[i].name == name) return factors_[i].is_feature ? -1 : static_cast<int32_t>(i);
  }
  return -1;
}

int64_t FactorMemory::looking_up(const StepRows &rows, int32_t contributors) {
  std::vector<RowRange> places;
  return rows.list_places(contributors, kRowUnit, places);
}

Result<std::vector<FactorMemory::Place>> FactorMemory::place(int64_t rows, int64_t looking_up,
                                                             const graph::SymbolBindings &bindings,
                                                             int64_t &end) const {
  graph::SymbolBindings of_row = bindings;
  of_row.insert_or_assign(std::string(graph::kBatchSymbol), 1);
  std::vector<Place> places;
  for (const SharedFactor &factor : factors_) {
    Place &place = places.emplace_back(Place{end, 0});
    if (factor.is_feature) continue;
    TUTTI_ASSIGN(const std::vector<int64_t> dims, graph::evaluate(factor.dims, of_row));
    const int64_t elements = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    place.row_bytes = elements * static_cast<int64_t>(tensor::size_bytes(factor.dtype));
    const int64_t bytes = (factor.is_of_lookups ? looking_up : rows) * place.row_bytes;
    end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return places;
}

Result<int64_t> FactorMemory::bytes(int64_t rows, const graph::SymbolBindings &bindings) const {
  int64_t end = 0;
  TUTTI_TRY(place(rows, rows, bindings, end).status());
  return end;
}

void FactorMemory::list_slices() {
  slices_.clear();
  for (size_t f = 0; f < factors_.size(); ++f) {
    const std::vector<RowRange> &parts = factors_[f].is_of_lookups ? lookup_parts_ : parts_;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].rows() == 0 || places_[f].row_bytes == 0) continue;
      const auto byte_of = [&](int64_t row) { return places_[f].offset + row * places_[f].row_bytes; };
      slices_.push_back({byte_of(parts[i].begin), byte_of(parts[i].end), static_cast<int32_t>(i) % contributors_});
    }
  }
}

Status FactorMemory::clear_indices(int64_t looking_up) {
  for (size_t f = 0; f < factors_.size(); ++f) {
    const int64_t bytes = factors_[f].is_index ? looking_up * places_[f].row_bytes : 0;
    const std::vector<uint8_t> none(static_cast<size_t>(bytes), 0xff);
    if (bytes > 0) TUTTI_TRY(buffer_.write(places_[f].offset, none.data(), bytes));
  }
  return Status();
}

Status FactorMemory::reserve(const StepRows &rows, const graph::SymbolBindings &bindings, backend::Device &device) {
  std::lock_guard lock(mutex_);
  const int64_t looking_up = FactorMemory::looking_up(rows, contributors_);
  int64_t needed = 0;
  TUTTI_ASSIGN(std::vector<Place> places, place(rows.step_rows(), looking_up, bindings, needed));
  // Not again for a micro-batch of another size: what those before it left stays.
  if (rows.of_workers() == reserved_rows_ && places == places_) return Status();
  reserved_rows_.clear();
  places_ = std::move(places);
  (void)rows.list_places(contributors_, 1, parts_);
  (void)rows.list_places(contributors_, kRowUnit, lookup_parts_);
  if (needed > buffer_.size_bytes()) {
    buffer_ = backend::Buffer();
    TUTTI_ASSIGN(buffer_, device.allocate(needed, kAlignment));
  }
  bytes_ = needed;
  list_slices();
  TUTTI_TRY(clear_indices(looking_up));
  reserved_rows_ = rows.of_workers();
  return Status();
}

}  // namespace tutti::impl::distribute

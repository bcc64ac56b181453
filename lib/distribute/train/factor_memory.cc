// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/factor_memory.h"

#include <functional>
#include <numeric>
#include <utility>

namespace tutti::impl::distribute {

namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

int32_t FactorMemory::find(std::string_view name) const {
  for (size_t i = 0; i < factors_.size(); ++i) {
    if (factors_[i].name == name) return factors_[i].is_feature ? -1 : static_cast<int32_t>(i);
  }
  return -1;
}

base::Result<std::vector<FactorMemory::Place>> FactorMemory::place(int64_t rows, const graph::SymbolBindings &bindings,
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
    end += (rows * place.row_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return places;
}

base::Result<int64_t> FactorMemory::bytes(int64_t rows, const graph::SymbolBindings &bindings) const {
  int64_t end = 0;
  TUTTI_TRY(place(rows, bindings, end).status());
  return end;
}

base::Status FactorMemory::reserve(int64_t rows, const graph::SymbolBindings &bindings, backend::Device &device) {
  std::lock_guard lock(mutex_);
  int64_t needed = 0;
  TUTTI_ASSIGN(std::vector<Place> places, place(rows, bindings, needed));
  if (needed > buffer_.size_bytes()) {
    places_.clear();
    buffer_ = backend::Buffer();
    TUTTI_ASSIGN(buffer_, device.allocate(needed, kAlignment));
  }
  places_ = std::move(places);
  bytes_ = needed;
  return base::Status();
}

void FactorMemory::list_slices(const StepRows &rows, int32_t contributors,
                               std::vector<collective::Slice> &slices) const {
  slices.clear();
  for (const Place &place : places_) {
    for (int32_t m = 0; m < rows.count(); ++m) {
      for (int32_t c = 0; c < contributors; ++c) {
        const RowRange part = rows.place_in_step(m, c, contributors);
        if (part.rows() == 0 || place.row_bytes == 0) continue;
        slices.push_back({place.offset + part.begin * place.row_bytes, place.offset + part.end * place.row_bytes, c});
      }
    }
  }
}

}  // namespace tutti::impl::distribute

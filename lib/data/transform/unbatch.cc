// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/memory.h"
#include "data/dataset/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

class UnbatchStage : public Stage {
 public:
  UnbatchStage(std::unique_ptr<Stage> input, base::Ref<base::CancelToken> cancel)
      : input_(std::move(input)), cancel_(std::move(cancel)) {}

  Result<bool> next(Element &element) override {
    for (bool again = false; row_ == rows_; again = true) {
      if (again) TUTTI_TRY(base::check(cancel_.get()));
      TUTTI_ASSIGN(const bool more, pull());
      if (!more) return false;
    }
    element.components.resize(batch_.components.size());
    for (size_t i = 0; i < batch_.components.size(); ++i) {
      TUTTI_ASSIGN(element.components[i], batch_.components[i].row(row_));
    }
    element.lineage = {batch_.lineage.epoch, position_++, batch_.lineage.file};
    ++row_;
    return true;
  }
  // Runs of rows of one batch go together.
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    for (done = 0; done < count;) {
      if (row_ == rows_) {
        const Result<bool> more = pull();
        if (!more.ok() && !base::is_interrupt(more.status())) ++done;  // what failed counts as one
        TUTTI_TRY(more);
        if (!*more) break;
        if (rows_ == 0) TUTTI_TRY(base::check(cancel_.get()));
      }
      const int64_t rows = std::min(count - done, rows_ - row_);
      for (size_t i = 0; i < targets.size(); ++i) {
        const int64_t bytes = targets[i].row_bytes;
        if (bytes * rows == 0) continue;
        const auto *from = batch_.components[i].data_as<std::byte>() + row_ * bytes;
        std::memcpy(targets[i].from_row(done).data, from, static_cast<size_t>(rows * bytes));
      }
      row_ += rows;
      position_ += rows;
      done += rows;
    }
    return Status();
  }
  Lineage last_row() const override { return {batch_.lineage.epoch, position_ - 1, batch_.lineage.file}; }
  // Rows of the batch in hand; those that reach into the next one are copied by next_rows().
  bool next_view(int64_t count, Element &batch) override {
    if (row_ == rows_ && !pulled_) {
      const Result<bool> more = pull();
      if (base::is_interrupt(more.status())) return false;
      if (!more.ok() || !*more) pulled_ = more;
    }
    if (count <= 0 || rows_ - row_ < count) return false;
    batch.components.resize(batch_.components.size());
    for (size_t i = 0; i < batch_.components.size(); ++i) {
      Result<Tensor> rows = batch_.components[i].slice_rows(row_, row_ + count);
      if (!rows.ok() || reinterpret_cast<uintptr_t>(rows->data()) % base::kAlignment != 0) return false;
      batch.components[i] = rows.take();
    }
    row_ += count;
    position_ += count;
    return true;
  }
  void save(State &state) const override {
    const bool is_behind = row_ < rows_ || pulled_;  // is the input ahead of what was given out?
    state.open("unbatch");
    state.number("position", position_);
    state.number("row", row_ < rows_ ? row_ : start_row_);
    state.key("input");
    if (is_behind) {
      state.append(before_);
    } else {
      input_->save(state);
    }
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "unbatch"));
    TUTTI_ASSIGN(position_, saved_count(state, "position"));
    TUTTI_ASSIGN(start_row_, saved_count(state, "row"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  Result<bool> pull() {
    if (pulled_) {
      const Result<bool> more = *pulled_;
      pulled_.reset();
      return more;
    }
    row_ = rows_ = 0;
    before_.clear();
    input_->save(before_);
    const Result<bool> more = input_->next(batch_);
    if (base::is_interrupt(more.status())) return more;
    const int64_t first = std::exchange(start_row_, 0);
    TUTTI_TRY(more);
    if (!*more) return false;
    for (const Tensor &component : batch_.components) {
      if (component.rank() > 0 && component.rows() == batch_.rows()) continue;
      return in_element(base::invalid_argument("unbatch: components of ", batch_.components[0].describe(), " and ",
                                               component.describe(), "; expected equal first dimensions"),
                        batch_.lineage);
    }
    rows_ = batch_.rows();
    row_ = std::min(first, rows_);
    return true;
  }

  std::unique_ptr<Stage> input_;
  const base::Ref<base::CancelToken> cancel_;
  Element batch_;
  State before_;                        // of the input, before it gave the batch
  std::optional<Result<bool>> pulled_;  // what the input answered when there was no batch, and nobody has heard yet
  int64_t row_ = 0;
  int64_t rows_ = 0;
  int64_t start_row_ = 0;
  int64_t position_ = 0;
};

class UnbatchDataset : public Dataset {
 public:
  UnbatchDataset(const DatasetRef &input, ElementSpec spec, Cardinality cardinality)
      : Dataset("unbatch", std::move(spec), cardinality, {input}) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<UnbatchStage>(std::move(input), context.cancel));
  }
};

Cardinality cardinality_of_rows(const Dataset &input) {
  const Cardinality batches = input.cardinality();
  if (!batches.is_exact() || batches.value() == 0) return batches;
  const graph::Dim &rows = input.spec().components[0].dims[0];
  int64_t per_batch = 0;
  if (rows.is_constant()) {
    per_batch = rows.constant();
  } else if (input.spec().exact_batches) {
    per_batch = input.spec().batch_size;
  } else {
    return Cardinality::unknown();
  }
  int64_t product = 0;
  if (__builtin_mul_overflow(batches.value(), per_batch, &product)) return Cardinality::unknown();
  return Cardinality::exactly(product);
}

}  // namespace

Result<DatasetRef> apply_unbatch(const DatasetRef &input, const UnbatchParameters &, TransformArguments &) {
  ElementSpec spec = input->spec();
  for (ComponentSpec &component : spec.components) {
    if (component.dims.empty()) {
      return base::invalid_argument("component '", component.name, "' is a scalar; expected at least one axis");
    }
    component.dims.erase(component.dims.begin());
  }
  spec.batch_size = 0;
  spec.exact_batches = false;
  return DatasetRef(base::make_ref<UnbatchDataset>(input, std::move(spec), cardinality_of_rows(*input)));
}

}  // namespace tutti::impl::data

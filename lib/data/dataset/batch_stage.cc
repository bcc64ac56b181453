// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/batch_stage.h"

#include <utility>

#include "tensor/shape.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

Result<ElementSpec> batch_spec(const ElementSpec &rows, int64_t batch_size) {
  ElementSpec spec = rows;
  for (ComponentSpec &component : spec.components) {
    if (component.dims.size() >= static_cast<size_t>(tensor::Shape::kMaxRank)) {
      return base::invalid_argument("component '", component.name, "' already has the highest rank ",
                                    tensor::Shape::kMaxRank);
    }
    // The rows of a batch of batches are no longer the batch.
    for (graph::Dim &dim : component.dims) {
      if (!dim.mentions(graph::kBatchSymbol)) continue;
      dim = rows.exact_batches ? graph::Dim(rows.batch_size) : unknown_dim();
    }
    component.dims.insert(component.dims.begin(), graph::Dim::symbol(graph::kBatchSymbol));
  }
  spec.batch_size = batch_size;
  return spec;
}

Cardinality batches_of(Cardinality rows, int64_t batch_size, bool drop_remainder) {
  if (!rows.is_exact()) return rows;
  const int64_t whole = rows.value() / batch_size;
  const bool remainder = rows.value() % batch_size != 0;
  return Cardinality::exactly(whole + (remainder && !drop_remainder ? 1 : 0));
}

Result<bool> BatchStage::next(Element &batch) {
  batch.lineage = {epoch_, position_ + first_};
  if (!gathering_) {
    if (view(batch)) return is_wanted(rows_);
    before_.clear();
    input_->save(before_);
    gathering_ = true;
    rows_ = 0;
    error_ = Status();
  }
  TUTTI_TRY(gather());
  gathering_ = false;
  count_rows();
  if (error_.ok() && is_wanted(rows_)) error_ = join(batch);
  forget();
  TUTTI_TRY(error_);
  return is_wanted(rows_);
}

bool BatchStage::view(Element &batch) {
  if (!view_rows(batch)) return false;
  rows_ = batch.rows();
  count_rows();
  return true;
}

void BatchStage::save(State &state) const {
  state.open(kind_);
  state.number("position", position_);
  state.key("input");
  if (gathering_) {
    state.append(before_);
  } else {
    input_->save(state);
  }
  state.close();
}

Status BatchStage::restore(const JsonReader &state) {
  TUTTI_TRY(expect_kind(state, kind_));
  TUTTI_ASSIGN(position_, saved_count(state, "position"));
  TUTTI_ASSIGN(const JsonReader input, state.get("input"));
  return input_->restore(input);
}

Status ElementBatchStage::gather() {
  for (bool over = false; rows_ < batch_size_ && !over;) {
    Element element;
    const Result<bool> more = input_->next(element);
    if (base::is_interrupt(more.status())) return more.status();
    if (more.ok() && !*more) break;
    ++rows_;
    over = is_final(more.status());
    keep_worst(error_, more.status());
    if (error_.ok()) elements_.push_back(std::move(element));
  }
  return Status();
}

Status TextBatchStage::gather() {
  if (!has_begun_) {
    error_ = texts_.begin(batch_size_);
    if (!error_.ok()) return Status();
    has_begun_ = true;
  }
  while (rows_ < batch_size_) {
    const int64_t wanted = batch_size_ - rows_;
    int64_t rows = 0;
    const Status read = input_->next_texts(texts_, wanted, rows);
    rows_ += rows;
    if (base::is_interrupt(read)) return read;
    keep_worst(error_, read);
    const bool goes_on = read.ok() ? rows == wanted : rows > 0 && !is_final(read);
    if (!goes_on) break;
  }
  return Status();
}

Status TextBatchStage::join(Element &batch) {
  batch.components.resize(1);
  TUTTI_ASSIGN(batch.components[0], texts_.finish());
  return Status();
}

}  // namespace tutti::impl::data

// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/stage.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/exceptions.h"
#include "tensor/dtype.h"

namespace tutti::impl::data {

using base::Code;
using base::JsonReader;
using base::Result;
using base::Status;

std::vector<int64_t> row_bytes(const ElementSpec &spec) {
  std::vector<int64_t> bytes;
  for (const ComponentSpec &component : spec.components) {
    bytes.push_back(graph::element_count(component.dims).constant() *
                    static_cast<int64_t>(tensor::size_bytes(component.dtype)));
  }
  return bytes;
}

Status copy_to_row(const Element &element, std::span<const RowTarget> targets, int64_t row) {
  if (element.components.size() != targets.size()) return base::internal_error("row with a wrong number of components");
  for (size_t i = 0; i < targets.size(); ++i) {
    const tensor::Tensor &component = element.components[i];
    if (component.size_bytes() != targets[i].row_bytes) {
      return base::internal_error("row of ", component.size_bytes(), " bytes where ", targets[i].row_bytes, " belong");
    }
    if (targets[i].row_bytes > 0) std::memcpy(targets[i].from_row(row).data, component.data(), component.size_bytes());
  }
  return Status();
}

bool is_final(const Status &status) {
  if (base::is_interrupt(status) || base::is_out_of_memory(status)) return true;
  // What a function of the user says of one element, under whatever code, is over with that element.
  return status.code() == Code::aborted && status.error()->find_detail("element") == nullptr;
}

void keep_worst(Status &worst, Status status) {
  if (worst.ok() || base::is_interrupt(status)) worst = std::move(status);
}

std::span<const RowTarget> from_row(std::span<const RowTarget> targets, int64_t row, std::vector<RowTarget> &moved) {
  moved.assign(targets.begin(), targets.end());
  for (RowTarget &target : moved)
    target = target.from_row(row);
  return moved;
}

Status Stage::next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) {
  Status status;
  for (done = 0; done < count && status.ok();) {
    const Result<bool> more = next(scratch_);
    if (more.ok() && !*more) break;
    status = more.ok() ? copy_to_row(scratch_, targets, done) : more.status();
    if (!base::is_interrupt(status)) ++done;
  }
  scratch_.components.clear();  // lets go of buffers that a pool waits for
  return status;
}

bool Stage::next_view(int64_t, Element &) { return false; }

Status Stage::next_texts(BytesRows &, int64_t, int64_t &done) {
  done = 0;
  return base::internal_error("texts of a stage that gives none");
}

bool RandomAccess::view(int64_t, int64_t, Element &) { return false; }

bool RandomAccess::choose(std::span<const size_t>) { return false; }

Status name_failing(RandomAccess &access, int64_t epoch, std::span<const int64_t> positions, const Status &status) {
  if (is_final(status) || status.error()->find_detail("element") != nullptr) return status;
  Element element;
  for (const int64_t position : positions) {
    const Status one = access.element(position, element);
    if (is_final(one)) break;
    if (!one.ok()) return in_element(one, access.lineage_in(epoch, position));
  }
  return status;
}

Status MappedAccess::gather(std::span<int64_t> positions, std::span<const RowTarget> targets) {
  map(positions);
  return base_->gather(positions, targets);
}

Status GatherSteps::run(RandomAccess &access, int64_t count, std::span<const RowTarget> targets,
                        base::FunctionRef<void(int64_t, std::span<int64_t>)> fill, int64_t &done) {
  const int64_t step = access.rows_at_once();
  for (done = 0; done < count;) {
    if (done > 0) TUTTI_TRY(check_());
    const int64_t rows = std::min(count - done, step);
    positions_.resize(static_cast<size_t>(rows));
    fill(done, positions_);
    Status status = access.gather(positions_, done == 0 ? targets : from_row(targets, done, moved_));
    if (!status.ok()) {
      fill(done, positions_);
      status = name_failing(access, epoch_, positions_, status);
    }
    if (!base::is_interrupt(status)) done += rows;
    TUTTI_TRY(status);
  }
  return Status();
}

void MappedAccess::locate(std::span<int64_t> positions, std::span<const std::byte *> rows) {
  map(positions);
  base_->locate(positions, rows);
}

Status MappedAccess::element(int64_t position, Element &element) {
  map({&position, 1});
  return base_->element(position, element);
}

int64_t MappedAccess::lineage(int64_t position) const {
  map({&position, 1});
  return base_->lineage(position);
}

FileName MappedAccess::file(int64_t position) const {
  map({&position, 1});
  return base_->file(position);
}

void StridedAccess::map(std::span<int64_t> positions) const {
  for (int64_t &position : positions)
    position = first_ + position * step_;
}

bool StridedAccess::view(int64_t first, int64_t count, Element &batch) {
  return step_ == 1 && base().view(first_ + first, count, batch);
}

Result<bool> IndexedStage::next(Element &element) {
  if (position_ >= access_->size()) return false;
  element.lineage = access_->lineage_in(epoch_, position_);
  const int64_t position = position_;
  const Status status = access_->element(position, element);
  if (!base::is_interrupt(status)) ++position_;
  if (status.ok()) return true;
  return is_final(status) ? status : in_element(status, access_->lineage_in(epoch_, position));
}

Status IndexedStage::next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) {
  count = std::clamp<int64_t>(access_->size() - position_, 0, count);
  const auto fill = [this](int64_t first, std::span<int64_t> positions) {
    std::iota(positions.begin(), positions.end(), position_ + first);
  };
  Status status = steps_.run(*access_, count, targets, fill, done);
  position_ += done;
  return status;
}

bool IndexedStage::next_view(int64_t count, Element &batch) {
  count = std::min(count, access_->size() - position_);
  if (count <= 0 || !access_->view(position_, count, batch)) return false;
  position_ += count;
  return true;
}

void IndexedStage::save(State &state) const {
  state.open("indexed");
  state.number("position", position_);
  state.close();
}

Status IndexedStage::restore(const JsonReader &state) {
  TUTTI_TRY(expect_kind(state, "indexed"));
  TUTTI_ASSIGN(position_, saved_count(state, "position", 0, access_->size()));
  return Status();
}

Result<std::unique_ptr<Stage>> open_indexed(const Dataset &dataset, const IteratorContext &context) {
  TUTTI_ASSIGN(std::unique_ptr<RandomAccess> access, dataset.random_access(context, Dataset::Access::in_order));
  if (access == nullptr) return std::unique_ptr<Stage>();
  return std::unique_ptr<Stage>(std::make_unique<IndexedStage>(std::move(access), context));
}

}  // namespace tutti::impl::data

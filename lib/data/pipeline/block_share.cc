// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/block_share.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/dataset/stage.h"
#include "data/dataset/state.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// Positions of a share among those of all elements.
class ShareAccess : public MappedAccess {
 public:
  ShareAccess(std::unique_ptr<RandomAccess> base, const BlockShare &share, int64_t size)
      : MappedAccess(std::move(base), size), share_(share) {}

  bool view(int64_t first, int64_t count, Element &batch) override {
    const bool is_one_block = share_.rows > 0 && first / share_.rows == (first + count - 1) / share_.rows;
    return is_one_block && base().view(place_of(first), count, batch);
  }

 protected:
  void map(std::span<int64_t> positions) const override {
    for (int64_t &position : positions)
      position = place_of(position);
  }

 private:
  int64_t place_of(int64_t position) const {
    return position / share_.rows * share_.block + share_.first + position % share_.rows;
  }

  const BlockShare share_;
};

// Its state is that of a walk over all elements.
class IndexedShareStage : public Stage {
 public:
  IndexedShareStage(std::unique_ptr<RandomAccess> all, const BlockShare &share, const IteratorContext &context)
      : share_(share), all_(all->size()), own_(open(std::move(all), share, context)) {}

  Result<bool> next(Element &element) override { return own_.next(element); }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    return own_.next_rows(targets, count, done);
  }
  Lineage last_row() const override { return own_.last_row(); }
  bool next_view(int64_t count, Element &batch) override { return own_.next_view(count, batch); }

  void save(State &state) const override {
    state.open("indexed");
    state.number("position", place());
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "indexed"));
    TUTTI_ASSIGN(const int64_t place, saved_count(state, "position", 0, all_));
    const int64_t in_block = std::clamp<int64_t>(place % share_.block - share_.first, 0, share_.rows);
    own_.move_to(std::min(place / share_.block * share_.rows + in_block, own_.size()));
    return Status();
  }

 private:
  static IndexedStage open(std::unique_ptr<RandomAccess> all, const BlockShare &share, const IteratorContext &context) {
    const int64_t size = share.of_elements(all->size());
    return IndexedStage(std::make_unique<ShareAccess>(std::move(all), share, size), context);
  }
  // Where all workers are, at the end of a block of this one's.
  int64_t place() const {
    const int64_t own = own_.position();
    if (share_.rows == 0) return 0;
    if (own == own_.size()) return all_;
    const int64_t in_block = own % share_.rows;
    return own / share_.rows * share_.block + (in_block > 0 ? share_.first + in_block : 0);
  }

  const BlockShare share_;
  const int64_t all_;
  IndexedStage own_;
};

// Reads all elements and leaves out those of others. Where it is not known how many there are, and a last block may be
// nobody's, the share of a block is held until the block is complete.
class ShareStage : public Stage {
 public:
  ShareStage(std::unique_ptr<Stage> input, const BlockShare &share, Cardinality all,
             base::Ref<base::CancelToken> cancel)
      : input_(std::move(input)),
        share_(share),
        holds_(share.whole_blocks && !all.is_exact() && !all.is_infinite()),
        end_(share.whole_blocks && all.is_exact() ? all.value() / share.block * share.block : INT64_MAX),
        cancel_(std::move(cancel)) {}

  Result<bool> next(Element &element) override {
    if (share_.rows == 0) return false;
    if (holds_) return next_held(element);
    TUTTI_ASSIGN(const bool more, pass_over());
    if (!more) return false;
    Result<bool> answer = input_->next(element);
    if (!base::is_interrupt(answer.status()) && answer.value_or(true)) ++at_;
    return answer;
  }

  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    if (share_.rows == 0 || holds_) return Stage::next_rows(targets, count, done);
    for (done = 0; done < count;) {
      TUTTI_ASSIGN(const bool more, pass_over());
      if (!more) break;
      const int64_t wanted = std::min(count - done, share_.first + share_.rows - at_ % share_.block);
      int64_t rows = 0;
      const Status read = input_->next_rows(from_row(targets, done, moved_), wanted, rows);
      at_ += rows;
      done += rows;
      TUTTI_TRY(read);
      if (rows < wanted) break;
    }
    return Status();
  }
  Lineage last_row() const override { return share_.rows == 0 || holds_ ? Stage::last_row() : input_->last_row(); }

  void save(State &state) const override {
    const bool is_behind = gathering_ || served_ < held_.size();
    state.open("worker_share");
    state.number("place", is_behind ? held_place() : std::max(canonical(at_), from_));
    state.number("at", is_behind ? before_at_ : at_);
    state.key("input");
    if (is_behind) {
      state.append(before_);
    } else {
      input_->save(state);
    }
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "worker_share"));
    TUTTI_ASSIGN(from_, saved_count(state, "place"));
    TUTTI_ASSIGN(at_, saved_count(state, "at"));
    if (at_ > from_ + (from_ % share_.block == 0 ? share_.first : 0))
      return base::invalid_argument(state.path(), ": the state was saved in the middle of a batch of another worker");
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  struct Held {
    Status status;
    Element element;
  };

  bool is_own(int64_t place) const {
    const int64_t in_block = place % share_.block - share_.first;
    return place >= from_ && in_block >= 0 && in_block < share_.rows;
  }
  // Where all workers are with the same batches: at the beginning of a block, unless this one is within its rows.
  int64_t canonical(int64_t place) const {
    const int64_t in_block = place % share_.block, begin = place - in_block;
    if (in_block >= share_.first + share_.rows) return begin + share_.block;
    return in_block <= share_.first ? begin : place;
  }
  int64_t held_place() const {
    if (gathering_ || served_ == 0) return std::max(before_at_, from_);
    return held_first_ + static_cast<int64_t>(served_);
  }

  // To the next element of this worker; false at the end.
  Result<bool> pass_over() {
    while (!is_own(at_)) {
      if (at_ >= end_) return false;
      TUTTI_TRY(base::check(cancel_.get()));
      const Result<bool> more = input_->next(left_out_);
      if (more.ok() && !*more) return false;
      if (is_final(more.status())) return more.status();
      ++at_;
    }
    return at_ < end_;
  }

  Result<bool> next_held(Element &element) {
    while (gathering_ || served_ == held_.size()) {
      TUTTI_ASSIGN(const bool more, gather());
      if (!more) return false;
    }
    Held &held = held_[served_++];
    TUTTI_TRY(held.status);
    element = std::move(held.element);
    return true;
  }

  // The share of the next block; false where that is not complete. An interrupt leaves it half done.
  Result<bool> gather() {
    if (!gathering_) {
      before_.clear();
      input_->save(before_);
      before_at_ = at_;
      held_.clear();
      served_ = 0;
      gathering_ = true;
    }
    const int64_t end = (before_at_ / share_.block + 1) * share_.block;
    while (at_ < end) {
      TUTTI_TRY(base::check(cancel_.get()));
      Element element;
      const Result<bool> more = input_->next(element);
      if (is_final(more.status())) return more.status();
      if (more.ok() && !*more) return false;
      if (is_own(at_)) {
        if (held_.empty()) held_first_ = at_;
        held_.push_back({more.status(), std::move(element)});
      }
      ++at_;
    }
    gathering_ = false;
    return true;
  }

  std::unique_ptr<Stage> input_;
  const BlockShare share_;
  const bool holds_;
  const int64_t end_;  // behind the last whole block
  int64_t at_ = 0;     // elements taken from the input
  int64_t from_ = 0;   // what comes before was given by the walk that this one continues
  Element left_out_;
  std::vector<RowTarget> moved_;
  std::vector<Held> held_;  // of one block
  size_t served_ = 0;
  int64_t held_first_ = 0;  // place of the first one
  bool gathering_ = false;
  State before_;  // of the input, before that block
  int64_t before_at_ = 0;
  const base::Ref<base::CancelToken> cancel_;
};

IteratorContext in_order(const IteratorContext &context) {
  IteratorContext ordered = context;
  ordered.keeps_order = ordered.requires_order = true;
  return ordered;
}

class ShareDataset : public Dataset {
 public:
  ShareDataset(const DatasetRef &input, Cardinality cardinality, const BlockShare &share)
      : Dataset("worker_share", input->spec(), cardinality, {input}), share_(share) {}

  // No access for others: the state is to count the elements of all workers.
  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    const IteratorContext ordered = in_order(context);
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> all, inputs()[0]->random_access(ordered, Access::in_order));
    if (all != nullptr)
      return std::unique_ptr<Stage>(std::make_unique<IndexedShareStage>(std::move(all), share_, ordered));
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(ordered));
    return std::unique_ptr<Stage>(
        std::make_unique<ShareStage>(std::move(input), share_, inputs()[0]->cardinality(), ordered.cancel));
  }

 private:
  const BlockShare share_;
};

// Its state is that of the batches.
class RowShareStage : public Stage {
 public:
  RowShareStage(std::unique_ptr<Stage> input, int32_t worker, int32_t workers, base::Ref<base::CancelToken> cancel)
      : input_(std::move(input)), worker_(worker), workers_(workers), cancel_(std::move(cancel)) {}

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_ASSIGN(const bool more, input_->next(element));
      if (!more) return false;
      if (element.rows() > 0) break;
      // A batch without rows is no batch.
      TUTTI_TRY(base::check(cancel_.get()));
    }
    const BlockShare share = BlockShare::of(element.rows(), worker_, workers_);
    for (tensor::Tensor &component : element.components) {
      if (component.rank() == 0 || component.rows() != share.block) {
        return in_element(base::invalid_argument("components of a batch of ", share.block, " rows include one of ",
                                                 component.describe(), "; expected equal first dimensions"),
                          element.lineage);
      }
      TUTTI_ASSIGN(component, component.slice_rows(share.first, share.first + share.rows));
    }
    element.lineage.index += share.first;
    return true;
  }
  void save(State &state) const override { input_->save(state); }
  Status restore(const JsonReader &state) override { return input_->restore(state); }

 private:
  std::unique_ptr<Stage> input_;
  const int32_t worker_, workers_;
  const base::Ref<base::CancelToken> cancel_;
};

class RowShareDataset : public Dataset {
 public:
  RowShareDataset(const DatasetRef &batches, ElementSpec spec, int32_t worker, int32_t workers)
      : Dataset("worker_rows", std::move(spec), batches->cardinality(), {batches}),
        worker_(worker),
        workers_(workers) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    const IteratorContext ordered = in_order(context);
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(ordered));
    return std::unique_ptr<Stage>(std::make_unique<RowShareStage>(std::move(input), worker_, workers_, ordered.cancel));
  }

 private:
  const int32_t worker_, workers_;
};

}  // namespace

BlockShare BlockShare::of(int64_t block, int32_t worker, int32_t workers, bool whole_blocks) {
  const int64_t base = block / workers, larger = block % workers;
  return {block, base * worker + std::min<int64_t>(worker, larger), base + (worker < larger ? 1 : 0), whole_blocks};
}

int64_t BlockShare::of_elements(int64_t elements) const {
  const int64_t remainder = whole_blocks ? 0 : std::clamp<int64_t>(elements % block - first, 0, rows);
  return elements / block * rows + remainder;
}

DatasetRef keep_elements(const DatasetRef &input, const BlockShare &share) {
  Cardinality own = input->cardinality();
  if (own.is_exact()) own = Cardinality::exactly(share.of_elements(own.value()));
  if (share.rows == 0) own = Cardinality::exactly(0);
  return base::make_ref<ShareDataset>(input, own, share);
}

DatasetRef keep_rows(const DatasetRef &batches, int32_t worker, int32_t workers) {
  ElementSpec spec = batches->spec();
  // Of all workers the same: one with fewer rows has batches that are not full.
  spec.batch_size = (spec.batch_size + workers - 1) / workers;
  spec.exact_batches = spec.exact_batches && batches->spec().batch_size % workers == 0;
  return base::make_ref<RowShareDataset>(batches, std::move(spec), worker, workers);
}

}  // namespace tutti::impl::data

// SPDX-License-Identifier: Apache-2.0
#include "data/call/interleaving.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/random/philox.h"
#include "data/call/prefetching_stage.h"
#include "data/dataset/walk_report.h"
#include "data/thread/sleep_point.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

class TurnsStage : public Stage {
 public:
  TurnsStage(const InterleavingParameters &parameters, std::unique_ptr<DatasetSequence> datasets,
             const IteratorContext &context, StageCounters *counters)
      : parameters_(parameters),
        datasets_(std::move(datasets)),
        context_(context),
        counters_(counters),
        slots_(static_cast<size_t>(parameters.cycle_length)) {
    if (counters_ != nullptr) counters_->mark_ahead(parameters_.read_ahead);
  }

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_ASSIGN(const bool any, open_slot());
      if (!any) return false;
      const Result<bool> more = slots_[current_].walk->next(element);
      if (is_final(more.status())) return more;
      if (more.ok() && !*more) {
        close_slot();
        continue;
      }
      element.lineage.renumber(context_.epoch, position_);
      advance(1);
      return more;
    }
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    for (done = 0; done < count;) {
      const Result<bool> any = open_slot();
      if (!any.ok() && !base::is_interrupt(any.status())) ++done;  // what failed counts as one
      TUTTI_TRY(any);
      if (!*any) break;
      // Without an order each element is another choice.
      const int64_t wanted =
          context_.keeps_order ? std::min(count - done, parameters_.block_length - given_) : int64_t{1};
      int64_t rows = 0;
      const Status status = slots_[current_].walk->next_rows(from_row(targets, done, moved_), wanted, rows);
      done += rows;
      const bool ended = status.ok() && rows < wanted;
      last_slot_ = current_;
      advance(rows);
      TUTTI_TRY(status);
      if (ended) close_slot();
    }
    return Status();
  }
  Lineage last_row() const override {
    const Stage *const walk = slots_[last_slot_].walk.get();
    return {context_.epoch, position_ - 1, walk == nullptr ? nullptr : walk->last_row().file};
  }
  void save(State &state) const override;
  Status restore(const JsonReader &state) override;

 private:
  struct Slot {
    int64_t number = -1;  // of its dataset; -1 = none
    DatasetRef dataset;
    std::unique_ptr<Stage> walk;
    PrefetchedWalk *ahead = nullptr;             // the walk, when a thread prepares its elements
    std::shared_ptr<const base::Json> restored;  // the walk's state, until it is opened again
  };

  // The slot whose turn it is has a walk, if there is any.
  Result<bool> open_slot() {
    if (!reopened_) TUTTI_TRY(reopen());
    for (size_t tried = 0; slots_[current_].walk == nullptr;) {
      if (!ended_) {
        TUTTI_TRY(open_next(current_));
        continue;
      }
      if (++tried > slots_.size()) return false;
      end_turn();
    }
    if (!context_.keeps_order) TUTTI_TRY(turn_to_ready());
    return true;
  }
  // The next dataset takes a slot that has no walk, if there is one.
  Status open_next(size_t slot) {
    Result<DatasetRef> dataset = datasets_->get(next_);
    if (base::is_interrupt(dataset.status())) return dataset.status();
    if (!is_final(dataset.status())) ++next_;
    TUTTI_TRY(dataset);
    ended_ = *dataset == nullptr;
    if (ended_) --next_;
    return ended_ ? Status() : open(slot, next_ - 1, dataset.take());
  }
  // Without an order: the turn goes to the next slot that need not wait, and all of them are open meanwhile.
  Status turn_to_ready() {
    for (size_t i = 0; i < slots_.size() && !ended_; ++i) {
      const size_t slot = (current_ + i) % slots_.size();
      if (slots_[slot].walk == nullptr) TUTTI_TRY(open_next(slot));
    }
    TUTTI_ASSIGN(std::optional<size_t> ready, find_ready());
    Status failed;
    if (!ready) {
      TUTTI_TRY(arrived_.wait(context_.cancel.get(), [&] {
        const Result<std::optional<size_t>> found = find_ready();
        if (!found.ok()) failed = found.status();
        ready = found.value_or(std::nullopt);
        return ready.has_value() || !failed.ok();
      }));
    }
    TUTTI_TRY(failed);
    if (*ready != current_) given_ = 0;
    current_ = *ready;
    return Status();
  }
  // The first slot from the current one on whose walk has an answer.
  Result<std::optional<size_t>> find_ready() {
    for (size_t i = 0; i < slots_.size(); ++i) {
      const size_t number = (current_ + i) % slots_.size();
      const Slot &slot = slots_[number];
      if (slot.walk == nullptr) continue;
      if (slot.ahead == nullptr) return std::optional<size_t>(number);
      TUTTI_ASSIGN(const bool is_ready, slot.ahead->is_ready());
      if (is_ready) return std::optional<size_t>(number);
    }
    return std::optional<size_t>();
  }
  Status open(size_t slot, int64_t number, DatasetRef dataset) {
    const IteratorContext context = datasets_->context_of(number);
    const int64_t buffer = std::clamp<int64_t>(2 * parameters_.block_length, 2, 64);
    std::unique_ptr<Stage> walk;
    PrefetchedWalk *ahead = nullptr;
    if (static_cast<int64_t>(slot) < parameters_.read_ahead) {
      TUTTI_ASSIGN(std::unique_ptr<PrefetchedWalk> prefetched,
                   open_prefetched(*dataset, context, buffer, context_.keeps_order ? nullptr : &arrived_, counters_));
      ahead = prefetched.get();
      walk = std::move(prefetched);
    } else {
      TUTTI_ASSIGN(walk, dataset->walk(context));
    }
    slots_[slot].number = number;
    slots_[slot].dataset = std::move(dataset);
    slots_[slot].ahead = ahead;
    slots_[slot].walk = std::move(walk);
    return Status();
  }
  void close_slot() {
    slots_[current_].walk.reset();
    slots_[current_] = Slot();
    datasets_->forget(oldest());
    end_turn();
  }
  void end_turn() {
    given_ = 0;
    current_ = (current_ + 1) % slots_.size();
  }
  void advance(int64_t elements) {
    position_ += elements;
    given_ += elements;
    if (given_ >= parameters_.block_length) end_turn();
  }
  // The first dataset that is still needed.
  int64_t oldest() const {
    int64_t oldest = next_;
    for (const Slot &slot : slots_) {
      if (slot.number >= 0) oldest = std::min(oldest, slot.number);
    }
    return oldest;
  }
  // After restore(): asks for the datasets that were open again.
  Status reopen() {
    for (; reopen_ < next_; ++reopen_) {
      const auto wanted =
          std::find_if(slots_.begin(), slots_.end(), [&](const Slot &s) { return s.number == reopen_; });
      Result<DatasetRef> dataset = datasets_->get(reopen_);
      if (is_final(dataset.status())) return dataset.status();
      if (wanted == slots_.end()) continue;
      TUTTI_TRY(dataset);
      if (*dataset == nullptr) return base::data_loss(parameters_.kind, ": the input ends before element ", reopen_);
      const std::shared_ptr<const base::Json> state = wanted->restored;
      TUTTI_TRY(open(static_cast<size_t>(wanted - slots_.begin()), reopen_, dataset.take()));
      TUTTI_TRY(wanted->walk->restore(JsonReader(*state, parameters_.kind)));
      wanted->restored.reset();
    }
    reopened_ = true;
    datasets_->forget(oldest());
    return Status();
  }

  const InterleavingParameters parameters_;
  std::unique_ptr<DatasetSequence> datasets_;
  const IteratorContext context_;
  StageCounters *const counters_;  // null when nobody counts
  SleepPoint arrived_;             // without an order: woken with every element of a walk
  std::vector<Slot> slots_;
  size_t current_ = 0;
  int64_t given_ = 0;     // elements of this turn
  int64_t next_ = 0;      // number of the next dataset
  int64_t position_ = 0;  // elements given out
  bool ended_ = false;    // no more datasets
  bool reopened_ = true;  // false behind restore()
  int64_t reopen_ = 0;    // how far that is
  size_t last_slot_ = 0;  // that gave rows
  std::vector<RowTarget> moved_;
};

void TurnsStage::save(State &state) const {
  state.open(parameters_.kind);
  state.number("current", static_cast<int64_t>(current_));
  state.number("given", given_);
  state.number("next", next_);
  state.number("position", position_);
  state.number("ended", ended_ ? 1 : 0);
  state.number("oldest", oldest());
  state.key("datasets");
  datasets_->save(oldest(), state);
  state.key("slots");
  state.open_list();
  for (const Slot &slot : slots_) {
    state.open("slot");
    state.number("number", slot.number);
    if (slot.number >= 0) {
      state.key("walk");
      if (slot.restored != nullptr) {
        state.append(slot.restored);
      } else {
        slot.walk->save(state);
      }
    }
    state.close();
  }
  state.close();
  state.close();
}

Status TurnsStage::restore(const JsonReader &state) {
  TUTTI_TRY(expect_kind(state, parameters_.kind));
  TUTTI_ASSIGN(const int64_t current, saved_count(state, "current", 0, parameters_.cycle_length - 1));
  current_ = static_cast<size_t>(current);
  TUTTI_ASSIGN(given_, saved_count(state, "given", 0, parameters_.block_length - 1));
  TUTTI_ASSIGN(next_, saved_count(state, "next"));
  TUTTI_ASSIGN(position_, saved_count(state, "position"));
  TUTTI_ASSIGN(const int64_t ended, saved_count(state, "ended", 0, 1));
  ended_ = ended == 1;
  TUTTI_ASSIGN(reopen_, saved_count(state, "oldest", 0, next_));
  TUTTI_ASSIGN(const JsonReader datasets, state.get("datasets"));
  TUTTI_TRY(datasets_->restore(datasets, reopen_));
  TUTTI_ASSIGN(const JsonReader list, state.get("slots"));
  TUTTI_ASSIGN(const std::vector<JsonReader> slots, list.elements());
  if (slots.size() != slots_.size()) {
    return base::invalid_argument(list.path(), ": expected ", slots_.size(), " slots, got ", slots.size());
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    TUTTI_ASSIGN(const int64_t number, saved_count(slots[i], "number", -1, next_ - 1));
    if (number < 0) continue;
    if (number < reopen_) return slots[i].wrong("a dataset that can be opened again");
    TUTTI_ASSIGN(const JsonReader walk, slots[i].get("walk"));
    slots_[i].number = number;
    slots_[i].restored = std::make_shared<const base::Json>(walk.json());
  }
  reopened_ = false;
  return datasets_->is_immediate() ? reopen() : Status();
}

}  // namespace

std::unique_ptr<Stage> open_turns(const InterleavingParameters &parameters, std::unique_ptr<DatasetSequence> datasets,
                                  const IteratorContext &context, const Dataset &owner) {
  return std::make_unique<TurnsStage>(parameters, std::move(datasets), context, counters_in(context, owner));
}

IteratorContext context_of_part(const IteratorContext &context, int64_t index) {
  constexpr uint64_t kParts = 0x7061727473;  // "parts"
  IteratorContext own = context;
  if (index > 0) {
    const auto key = base::RandomKey::of(static_cast<uint64_t>(context.seed), kParts, static_cast<uint64_t>(index));
    own.seed = static_cast<int64_t>(key.value >> 1);
  }
  return own;
}

}  // namespace tutti::impl::data

// SPDX-License-Identifier: Apache-2.0
#include "data/keep/shuffle_elements.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "data/keep/reservoir.h"
#include "data/keep/shuffle_prefetch.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::RandomKey;
using base::Result;
using base::Status;

namespace {

// States of the input are taken this often at most.
constexpr int64_t kLeastSnapshotDistance = 64;
// Failed elements that are remembered, in buffers that are not larger.
constexpr int64_t kMostFailed = 64;

class ElementShuffleStage : public Stage {
 public:
  ElementShuffleStage(std::unique_ptr<Stage> input, RandomKey key, int64_t capacity,
                      base::Ref<base::CancelToken> cancel)
      : input_(std::move(input)),
        cancel_(std::move(cancel)),
        key_(key),
        capacity_(capacity),
        reservoir_(key, capacity),
        ahead_(key, capacity) {}

  Result<bool> next(Element &element) override {
    if (replay_ != Replay::done) TUTTI_TRY(replay());
    TUTTI_TRY(fill());
    if (reservoir_.empty()) return false;
    ahead_.before_draw(draws_, held_);
    const size_t slot = reservoir_.pick();
    reservoir_.remove(slot);
    std::swap(element, held_[slot]);
    std::swap(held_[slot], held_.back());
    std::swap(spare_, held_.back());
    held_.pop_back();
    ++draws_;
    return true;
  }
  void save(State &state) const override;
  Status restore(const JsonReader &state) override;

 private:
  // A state of the input before it gave the element at `position`.
  struct Snapshot {
    int64_t position;
    State state;
  };

  // Takes elements until the buffer is full. One that fails is gone, and its error comes out at once.
  Status fill() {
    while (!ended_ && reservoir_.has_room()) {
      take_snapshot();
      const Result<bool> more = input_->next(spare_);
      if (more.ok() && !*more) {
        ended_ = true;
        return Status();
      }
      if (base::is_interrupt(more.status())) return more.status();
      const int64_t position = pulled_++;
      if (!more.ok()) {
        note_failure(position);
        return more.status();
      }
      reservoir_.add(position);
      held_.push_back(std::move(spare_));
      if (reservoir_.has_room()) TUTTI_TRY(base::check(cancel_.get()));
    }
    return Status();
  }

  // A state says which elements failed, so that its draws can be made again; of many it tells the buffer instead.
  void note_failure(int64_t position) {
    if (saves_buffer_) return;
    failed_.insert(position);
    saves_buffer_ = static_cast<int64_t>(failed_.size()) > std::max(capacity_, kMostFailed);
    if (saves_buffer_) failed_.clear();
  }

  void take_snapshot() {
    if (!snapshots_.empty() && pulled_ < snapshots_.back().position + std::max(capacity_, kLeastSnapshotDistance)) {
      return;
    }
    int64_t oldest = pulled_;
    for (size_t slot = 0; slot < reservoir_.size(); ++slot)
      oldest = std::min(oldest, reservoir_.position(slot));
    while (snapshots_.size() > 1 && snapshots_[1].position <= oldest)
      snapshots_.pop_front();
    snapshots_.push_back({pulled_, {}});
    input_->save(snapshots_.back().state);
  }

  void save_buffer(State &state) const;
  Status restore_buffer(const JsonReader &state);
  Status replay();
  Status draw_again();
  void want_buffer();
  Status read_again();

  std::unique_ptr<Stage> input_;
  const base::Ref<base::CancelToken> cancel_;
  const RandomKey key_;
  const int64_t capacity_;
  Reservoir<int64_t> reservoir_;
  ShufflePrefetch ahead_;
  std::vector<Element> held_;       // by slot of the reservoir
  Element spare_;                   // for the next one, with memory of one given out
  std::deque<Snapshot> snapshots_;  // the first is from before the oldest element held
  std::set<int64_t> failed_;        // positions of elements that failed,
  bool saves_buffer_ = false;       // unless they were many
  int64_t pulled_ = 0;
  int64_t draws_ = 0;
  bool ended_ = false;

  // After restore() the first next() draws again on positions alone, then reads again what the buffer held.
  enum class Replay { done, draw, read } replay_ = Replay::done;
  int64_t read_position_ = 0;         // where reading stands
  std::map<int64_t, size_t> wanted_;  // positions to read, and their slots
};

void ElementShuffleStage::save(State &state) const {
  state.open("element_shuffle");
  state.number("draws", draws_);
  state.number("pulled", pulled_);
  state.number("ended", ended_ ? 1 : 0);
  state.number("buffer_size", capacity_);
  if (!failed_.empty()) {
    state.key("failed");
    state.open_list();
    for (const int64_t position : failed_) {
      state.open("failed");
      state.number("position", position);
      state.close();
    }
    state.close();
  }
  if (saves_buffer_) save_buffer(state);
  const bool fresh = snapshots_.empty();
  state.number("input_position", fresh ? 0 : snapshots_.front().position);
  state.key("input");
  if (fresh) {
    input_->save(state);
  } else {
    state.append(snapshots_.front().state);
  }
  state.close();
}

Status ElementShuffleStage::restore(const JsonReader &state) {
  TUTTI_TRY(expect_kind(state, "element_shuffle"));
  TUTTI_ASSIGN(draws_, saved_count(state, "draws"));
  TUTTI_ASSIGN(pulled_, saved_count(state, "pulled", draws_));
  TUTTI_ASSIGN(const int64_t ended, saved_count(state, "ended", 0, 1));
  ended_ = ended == 1;
  TUTTI_ASSIGN(const int64_t capacity, saved_count(state, "buffer_size"));
  if (capacity != capacity_) {
    return base::invalid_argument(state.path(), ": the saved shuffle has buffer_size ", capacity, ", the pipeline has ",
                                  capacity_);
  }
  if (state.has("failed")) {
    TUTTI_ASSIGN(const JsonReader list, state.get("failed"));
    TUTTI_ASSIGN(const std::vector<JsonReader> failed, list.elements());
    for (const JsonReader &entry : failed) {
      TUTTI_ASSIGN(const int64_t position, saved_count(entry, "position", 0, pulled_ - 1));
      failed_.insert(position);
    }
  }
  if (state.has("buffer")) TUTTI_TRY(restore_buffer(state));
  TUTTI_ASSIGN(const int64_t from, saved_count(state, "input_position", 0, pulled_));
  TUTTI_ASSIGN(const JsonReader input, state.get("input"));
  TUTTI_TRY(input_->restore(input));
  snapshots_.push_back({from, {}});
  input_->save(snapshots_.back().state);
  replay_ = pulled_ == 0 ? Replay::done : saves_buffer_ ? Replay::read : Replay::draw;
  if (replay_ == Replay::read) want_buffer();
  return Status();
}

void ElementShuffleStage::save_buffer(State &state) const {
  state.number("random", reservoir_.stream_position());
  state.key("buffer");
  state.open_list();
  for (size_t slot = 0; slot < reservoir_.size(); ++slot)
    state.number(reservoir_.position(slot));
  state.close();
}

Status ElementShuffleStage::restore_buffer(const JsonReader &state) {
  TUTTI_ASSIGN(const int64_t random, saved_count(state, "random"));
  TUTTI_ASSIGN(const JsonReader list, state.get("buffer"));
  TUTTI_ASSIGN(const std::vector<int64_t> positions, list.as_integers());
  const std::set<int64_t> different(positions.begin(), positions.end());
  if (static_cast<int64_t>(positions.size()) > capacity_ || different.size() != positions.size() ||
      (!positions.empty() && (*different.begin() < 0 || *different.rbegin() >= pulled_))) {
    return list.wrong(base::concat("up to ", capacity_, " different positions below ", pulled_));
  }
  for (const int64_t position : positions)
    reservoir_.add(position);
  reservoir_.go_on_from(random);
  saves_buffer_ = true;
  return Status();
}

// Goes on where an interrupt ended it; after any other error the walk is of no use.
Status ElementShuffleStage::replay() {
  if (replay_ == Replay::draw) {
    const Status status = draw_again();
    replay_ = status.ok() ? Replay::read : Replay::done;
    TUTTI_TRY(status);
  }
  Status status = read_again();
  if (!base::is_interrupt(status)) replay_ = Replay::done;
  return status;
}

Status ElementShuffleStage::draw_again() {
  int64_t added = 0;
  const auto top_up = [&] {
    for (; reservoir_.has_room() && added < pulled_; ++added) {
      if (!failed_.contains(added)) reservoir_.add(added);
    }
  };
  for (int64_t draw = 0; draw < draws_; ++draw) {
    top_up();
    if (reservoir_.empty()) return base::invalid_argument("shuffle: the saved state counts more draws than elements");
    reservoir_.remove(reservoir_.pick());
  }
  top_up();
  want_buffer();
  return Status();
}

void ElementShuffleStage::want_buffer() {
  for (size_t slot = 0; slot < reservoir_.size(); ++slot)
    wanted_[reservoir_.position(slot)] = slot;
  held_.resize(reservoir_.size());
  read_position_ = snapshots_.front().position;
}

Status ElementShuffleStage::read_again() {
  for (; read_position_ < pulled_; ++read_position_) {
    const int64_t position = read_position_;
    Element element;
    const Result<bool> more = input_->next(element);
    if (base::is_interrupt(more.status())) return more.status();
    const auto found = wanted_.find(position);
    if (is_final(more.status()) || (!more.ok() && found != wanted_.end())) {
      return more.status().wrap(base::concat("shuffle: element ", position, " cannot be read again"));
    }
    if (more.ok() && !*more) return base::data_loss("shuffle: the input ends before element ", position);
    if (found == wanted_.end()) continue;
    held_[found->second] = std::move(element);
    wanted_.erase(found);
  }
  if (wanted_.empty()) return Status();
  return base::invalid_argument("shuffle: the saved input state lies behind element ", wanted_.begin()->first);
}

}  // namespace

std::unique_ptr<Stage> open_element_shuffle(std::unique_ptr<Stage> input, RandomKey key, int64_t capacity,
                                            base::Ref<base::CancelToken> cancel) {
  return std::make_unique<ElementShuffleStage>(std::move(input), key, capacity, std::move(cancel));
}

}  // namespace tutti::impl::data

// SPDX-License-Identifier: Apache-2.0
//
// What stages have in common whose input belongs to threads in the background: each element is handed over together
// with the input's state behind it, and what save() shows is that of the element given out last.
//
// Threads: the functions here belong to the consumer; Handover objects to whoever holds them.
#ifndef TUTTI_DATA_RUN_AHEAD_H_
#define TUTTI_DATA_RUN_AHEAD_H_

#include <memory>
#include <utility>

#include "base/cancel.h"
#include "data/stage.h"

namespace tutti::impl::data {

class StageCounters;

class RunAheadStage : public Stage {
 public:
  void save(State &state) const final {
    state.open(kind_);
    state.key("input");
    if (committed_.empty()) {
      input_->save(state);
    } else {
      state.append(committed_);
    }
    state.close();
  }
  base::Status restore(const base::JsonReader &state) final {
    TUTTI_TRY(expect_kind(state, kind_));
    TUTTI_ASSIGN(const base::JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 protected:
  /// An element, an error, or the end; and the input's state behind it.
  struct Handover {
    Element element;
    base::Result<bool> more{false};
    State state;
  };

  /// `worker` is the token of the stages before this one, a worker of `cancel`, which is the iterator's.
  RunAheadStage(const char *kind, std::unique_ptr<Stage> input, base::Ref<base::CancelToken> cancel,
                base::Ref<base::CancelToken> worker)
      : input_(std::move(input)), cancel_(std::move(cancel)), worker_(std::move(worker)), kind_(kind) {}

  static bool is_last(const base::Result<bool> &more) { return more.ok() ? !*more : is_final(more.status()); }
  /// From now on the input belongs to the threads.
  void give_up_input() { input_->save(committed_); }
  bool has_ended() const { return ended_; }
  /// What every call behind the last element answers.
  base::Result<bool> last_answer() const { return final_status_.ok() ? base::Result<bool>(false) : final_status_; }
  /// Gives out what was handed over.
  base::Result<bool> give_out(Handover &from, Element &element) {
    base::Result<bool> more = std::move(from.more);
    std::swap(element, from.element);
    committed_.swap(from.state);
    if (is_last(more)) {
      ended_ = true;
      final_status_ = more.status();
    }
    return more;
  }

  const std::unique_ptr<Stage> input_;
  const base::Ref<base::CancelToken> cancel_;
  const base::Ref<base::CancelToken> worker_;

 private:
  const char *const kind_;
  State committed_;  // of the input behind the last element given out; empty as long as the input is ours
  bool ended_ = false;
  base::Status final_status_;
};

/// A walk over a dataset whose elements a thread prepares, up to buffer_size of them (0 = automatic); begun with the
/// first next(). `counters` (may be null) are those of the stage that this is part of: they get its depth, and, when
/// the context has no report, the work of the dataset.
base::Result<std::unique_ptr<Stage>> open_prefetched(const Dataset &dataset, const IteratorContext &context,
                                                     int64_t buffer_size, StageCounters *counters);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_RUN_AHEAD_H_

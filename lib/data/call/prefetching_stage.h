// SPDX-License-Identifier: Apache-2.0
//
// What stages have in common whose input belongs to threads in the background: each element is handed over together
// with the input's state behind it, and what save() shows is that of the element given out last.
//
// A stage that gives elements as they are ready, in another order than the input's, shows the input's state behind the
// elements all of which were given out, and with it which ones behind that were, so that a restored walk leaves them
// out.
//
// Threads: the functions here belong to the consumer; Handover objects to whoever holds them.
#ifndef TUTTI_DATA_CALL_PREFETCHING_STAGE_H_
#define TUTTI_DATA_CALL_PREFETCHING_STAGE_H_

#include <memory>
#include <utility>

#include "base/cancel.h"
#include "base/exceptions.h"
#include "data/dataset/stage.h"

namespace tutti::impl::data {

class SleepPoint;
class StageCounters;

/// For stages that only know the input's order: refuses the state of one that had given out elements before others that
/// lie in front of them.
inline base::Status expect_in_order(const base::JsonReader &state) {
  if (!state.has("taken_early")) return base::Status();
  return base::invalid_argument(
      state.path(), ": was saved by an iterator that did not keep the order (transform \"options\", ",
      "deterministic off); it can only be restored into an iterator that has several threads or "
      "does not keep the order either");
}

class PrefetchingStage : public Stage {
 public:
  void save(State &state) const final {
    state.open(kind_);
    state.key("input");
    if (committed_.empty()) {
      input_->save(state);
    } else {
      state.append(committed_);
    }
    save_more(state);
    state.close();
  }
  base::Status restore(const base::JsonReader &state) final {
    TUTTI_TRY(expect_kind(state, kind_));
    TUTTI_ASSIGN(const base::JsonReader input, state.get("input"));
    TUTTI_TRY(restore_more(state));
    return input_->restore(input);
  }

 protected:
  virtual void save_more(State &) const {}
  virtual base::Status restore_more(const base::JsonReader &) { return base::Status(); }

  /// An element, an error, or the end; and the input's state behind it.
  struct Handover {
    Element element;
    base::Result<bool> more{false};
    State state;
  };

  /// `worker` is the token of the stages before this one, a worker of `cancel`, which is the iterator's.
  PrefetchingStage(const char *kind, std::unique_ptr<Stage> input, base::Ref<base::CancelToken> cancel,
                   base::Ref<base::CancelToken> worker)
      : input_(std::move(input)), cancel_(std::move(cancel)), worker_(std::move(worker)), kind_(kind) {}

  static bool is_last(const base::Result<bool> &more) { return more.ok() ? !*more : is_final(more.status()); }
  /// From now on the input belongs to the threads.
  void give_up_input() { input_->save(committed_); }
  bool has_ended() const { return ended_; }
  /// What every call behind the last element answers.
  base::Result<bool> last_answer() const { return final_status_.ok() ? base::Result<bool>(false) : final_status_; }
  /// The input's next element, into `element`, and the state behind it. Of an exception an error and no state.
  void draw_input(Element &element, Handover &to) {
    const base::Status thrown = base::without_exceptions([&] {
      to.more = input_->next(element);
      to.state.clear();
      input_->save(to.state);
      return base::Status();
    });
    if (thrown.ok()) return;
    to.more = thrown;
    to.state.clear();
  }
  /// Gives out what was handed over, in the input's order.
  base::Result<bool> give_out(Handover &from, Element &element) {
    commit(from);
    return give_out_early(from, element);
  }
  /// From now on what was handed over, and all before it, has been given out.
  void commit(Handover &from) {
    if (!from.state.empty()) committed_.swap(from.state);  // an exception has left none
  }
  /// Gives out what was handed over, before something that lies before it; commit() follows when its turn has come.
  base::Result<bool> give_out_early(Handover &from, Element &element) {
    base::Result<bool> more = std::move(from.more);
    std::swap(element, from.element);
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

/// A walk over a dataset whose elements a thread prepares.
class PrefetchedWalk : public PrefetchingStage {
 public:
  /// Has next() an answer without waiting? Begins to prepare elements, if that has not begun.
  virtual base::Result<bool> is_ready() = 0;

 protected:
  using PrefetchingStage::PrefetchingStage;
};

/// A walk over a dataset whose elements a thread prepares, up to buffer_size of them (0 = automatic); begun with the
/// first next(). `arrived` (may be null) is woken with every element; it outlives the walk. `counters` (may be null)
/// are those of the stage that this is part of: they get its depth, and, when the context has no report, the work of
/// the dataset.
base::Result<std::unique_ptr<PrefetchedWalk>> open_prefetched(const Dataset &dataset, const IteratorContext &context,
                                                              int64_t buffer_size, SleepPoint *arrived,
                                                              StageCounters *counters);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_CALL_PREFETCHING_STAGE_H_

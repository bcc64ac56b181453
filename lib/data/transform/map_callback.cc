// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/thread.h"
#include "data/run_ahead.h"
#include "data/transform_parameters.h"
#include "data/worker_threads.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::Deadline;
using base::JsonReader;
using base::Ref;
using base::Result;
using base::Status;

namespace {

// One call: the user's error becomes the cause of one that says which element it was.
Status call(const MapFunction &function, const ElementSpec &spec, const Element &input, Element &output) {
  output.components.clear();
  output.lineage = input.lineage;
  const Status status = function(input, output);
  output.lineage = input.lineage;
  if (!status.ok()) {
    return status.wrap(
        base::concat("map: the function failed for element ", input.lineage.index, " of epoch ", input.lineage.epoch));
  }
  return check_element(output, spec, "map: what the function yields");
}

class MapCallbackStage : public Stage {
 public:
  MapCallbackStage(std::unique_ptr<Stage> input, const MapFunction &function, const ElementSpec &spec)
      : input_(std::move(input)), function_(function), spec_(spec) {}

  Result<bool> next(Element &element) override {
    TUTTI_ASSIGN(const bool more, input_->next(source_));
    if (!more) return false;
    TUTTI_TRY(call(function_, spec_, source_, element));
    return true;
  }
  void save(State &state) const override {
    state.open("map_callback");
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "map_callback"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  std::unique_ptr<Stage> input_;
  const MapFunction &function_;
  const ElementSpec &spec_;
  Element source_;
};

// Calls run on threads of their own, because they may block. A free thread draws the next input, one thread at a time,
// so slots of the ring are numbered in order; then it calls the function while others draw. The consumer takes slots
// out in that order and never touches the input. Each slot keeps the input's state behind its element.
class ParallelMapCallbackStage : public RunAheadStage {
 public:
  ParallelMapCallbackStage(std::unique_ptr<Stage> input, const MapFunction &function, const ElementSpec &spec,
                           int32_t parallelism, Ref<CancelToken> cancel, Ref<CancelToken> worker)
      : RunAheadStage("map_callback", std::move(input), std::move(cancel), std::move(worker)),
        function_(function),
        spec_(spec),
        parallelism_(parallelism),
        slots_(static_cast<size_t>(parallelism) * 2) {}

  ~ParallelMapCallbackStage() override {
    // Waits that a thread is in, in any stage before this one, see the token.
    worker_->cancel();
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    has_room_.notify_all();
    threads_.clear();
  }

  Result<bool> next(Element &element) override {
    if (threads_.empty()) TUTTI_TRY(start());
    if (has_ended()) return last_answer();
    Slot &slot = slot_of(taken_);
    {
      std::unique_lock lock(mutex_);
      awaited_ = &slot;
      const Status status =
          base::wait_until(finished_, lock, cancel_.get(), Deadline::never(), [&] { return slot.done; });
      awaited_ = nullptr;
      TUTTI_TRY(status);
      slot.done = false;
    }
    Result<bool> more = give_out(slot, element);
    bool is_worth_waking = false;
    {
      std::lock_guard lock(mutex_);
      ++taken_;
      is_worth_waking = drawer_sleeps_ && issued_ - taken_ <= parallelism_;
    }
    if (is_worth_waking) has_room_.notify_one();
    return more;
  }

 private:
  struct Slot : Handover {
    Element input;
    bool done = false;  // guarded by mutex_
  };
  Slot &slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  Status start() {
    give_up_input();
    for (int32_t i = 0; i < parallelism_; ++i) {
      TUTTI_ASSIGN(base::Thread thread, base::Thread::start("tutti-map", [this] { work(); }));
      threads_.push_back(std::move(thread));
    }
    return Status();
  }

  void work() {
    while (Slot *slot = draw()) {
      if (slot->more.ok() && *slot->more) {
        const Status status = call(function_, spec_, slot->input, slot->element);
        if (!status.ok()) slot->more = status;
      }
      bool is_awaited = false;
      {
        std::lock_guard lock(mutex_);
        slot->done = true;
        is_awaited = awaited_ == slot;
      }
      if (is_awaited) finished_.notify_one();
    }
  }

  // The next slot with its input in it; null when there is nothing more to draw.
  Slot *draw() {
    std::lock_guard drawing(draw_mutex_);
    {
      std::unique_lock lock(mutex_);
      drawer_sleeps_ = true;
      has_room_.wait(lock, [&] { return stopping_ || issued_ - taken_ < static_cast<int64_t>(slots_.size()); });
      drawer_sleeps_ = false;
      if (stopping_ || drawn_all_) return nullptr;
      ++issued_;
    }
    Slot &slot = slot_of(drawn_++);
    slot.more = input_->next(slot.input);
    slot.state.clear();
    input_->save(slot.state);
    drawn_all_ = is_last(slot.more);
    return &slot;
  }

  const MapFunction &function_;
  const ElementSpec &spec_;
  const int32_t parallelism_;
  std::vector<Slot> slots_;

  std::mutex draw_mutex_;   // taken before mutex_; guards the input
  int64_t drawn_ = 0;       // guarded by draw_mutex_
  bool drawn_all_ = false;  // guarded by draw_mutex_

  std::mutex mutex_;
  std::condition_variable has_room_;
  std::condition_variable finished_;
  // Guarded by mutex_:
  int64_t taken_ = 0;        // changed by the consumer alone
  int64_t issued_ = 0;       // slots handed to threads
  Slot *awaited_ = nullptr;  // what the consumer sleeps for
  bool drawer_sleeps_ = false;
  bool stopping_ = false;

  std::vector<base::Thread> threads_;  // last: joined before anything else goes
};

class MapCallbackDataset : public Dataset {
 public:
  MapCallbackDataset(const DatasetRef &input, ElementSpec spec, MapFunction function, int64_t parallelism)
      : Dataset("map_callback", std::move(spec), input->cardinality(), {input}),
        function_(std::move(function)),
        parallelism_(parallelism) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    const int32_t parallelism = context.workers->resolve(parallelism_);
    IteratorContext own = context;
    if (parallelism > 1) own.cancel = CancelToken::create_worker(context.cancel);
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->open(own));
    if (parallelism == 1) {
      return std::unique_ptr<Stage>(std::make_unique<MapCallbackStage>(std::move(input), function_, spec()));
    }
    return std::unique_ptr<Stage>(std::make_unique<ParallelMapCallbackStage>(
        std::move(input), function_, spec(), parallelism, context.cancel, std::move(own.cancel)));
  }

 private:
  MapFunction function_;
  int64_t parallelism_;
};

}  // namespace

Result<DatasetRef> apply_map_callback(const DatasetRef &input, const MapCallbackParameters &parameters,
                                      TransformArguments &arguments) {
  ElementSpec spec = arguments.output_spec.value_or(input->spec());
  TUTTI_TRY(check(spec));
  return DatasetRef(
      base::make_ref<MapCallbackDataset>(input, std::move(spec), std::move(arguments.map), parameters.parallelism));
}

}  // namespace tutti::impl::data

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/thread.h"
#include "data/run_ahead.h"
#include "data/sleep_point.h"
#include "data/transform_parameters.h"
#include "data/walk_report.h"
#include "data/worker_threads.h"

namespace tutti::impl::data {

using base::CancelToken;
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
                           int32_t parallelism, Ref<CancelToken> cancel, Ref<CancelToken> worker,
                           StageCounters *counters)
      : RunAheadStage("map_callback", std::move(input), std::move(cancel), std::move(worker)),
        function_(function),
        spec_(spec),
        parallelism_(parallelism),
        counters_(counters),
        slots_(static_cast<size_t>(parallelism) * kSlotsPerThread) {}

  ~ParallelMapCallbackStage() override {
    // Waits that a thread is in, in any stage before this one, see the token.
    worker_->cancel();
    stopping_.store(true);
    room_.wake();
    threads_.clear();
  }

  Result<bool> next(Element &element) override {
    if (has_ended()) return last_answer();
    if (threads_.empty()) TUTTI_TRY(start());
    const int64_t taken = taken_.load(std::memory_order_relaxed);
    Slot &slot = slot_of(taken);
    if (!slot.done.load()) {
      awaited_.store(&slot);
      const Status status = finished_.wait(cancel_.get(), [&] { return slot.done.load(); });
      awaited_.store(nullptr, std::memory_order_relaxed);
      TUTTI_TRY(status);
    }
    slot.done.store(false, std::memory_order_relaxed);
    Result<bool> more = give_out(slot, element);
    taken_.store(taken + 1);
    // Waking costs the consumer a system call: only when there is a good deal to do.
    if (drawn_.load() - taken - 1 <= enough_room()) room_.wake();
    return more;
  }

 private:
  static constexpr int64_t kSlotsPerThread = 4;

  struct Slot : Handover {
    Element input;
    std::atomic<bool> done{false};
  };
  Slot &slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }
  // Slots in use below which a sleeping thread draws again.
  int64_t enough_room() const { return static_cast<int64_t>(slots_.size()) / 2; }

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
        const auto start = std::chrono::steady_clock::now();
        const Status status = call(function_, spec_, slot->input, slot->element);
        if (!status.ok()) slot->more = status;
        if (counters_ != nullptr) {
          const std::chrono::nanoseconds work = std::chrono::steady_clock::now() - start;
          counters_->add_work(work.count());
        }
      }
      slot->done.store(true);
      if (awaited_.load() == slot) finished_.wake();
    }
  }

  // The next slot with its input in it; null when there is nothing more to draw.
  Slot *draw() {
    std::lock_guard drawing(draw_mutex_);
    const int64_t drawn = drawn_.load(std::memory_order_relaxed);
    if (drawn - taken_.load() >= static_cast<int64_t>(slots_.size())) {
      (void)room_.wait(nullptr, [&] { return stopping_.load() || drawn - taken_.load() <= enough_room(); });
    }
    if (stopping_.load() || drawn_all_) return nullptr;
    Slot &slot = slot_of(drawn);
    slot.more = input_->next(slot.input);
    slot.state.clear();
    input_->save(slot.state);
    drawn_all_ = is_last(slot.more);
    drawn_.store(drawn + 1);
    return &slot;
  }

  const MapFunction &function_;
  const ElementSpec &spec_;
  const int32_t parallelism_;
  StageCounters *const counters_;  // null when nobody counts
  std::vector<Slot> slots_;

  std::mutex draw_mutex_;   // guards the input
  bool drawn_all_ = false;  // guarded by draw_mutex_
  std::atomic<bool> stopping_{false};
  std::atomic<Slot *> awaited_{nullptr};       // what the consumer sleeps for
  alignas(64) std::atomic<int64_t> drawn_{0};  // changed under draw_mutex_
  alignas(64) std::atomic<int64_t> taken_{0};  // changed by the consumer alone
  SleepPoint finished_;
  SleepPoint room_;

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
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(own));
    if (parallelism == 1) {
      return std::unique_ptr<Stage>(std::make_unique<MapCallbackStage>(std::move(input), function_, spec()));
    }
    StageCounters *const counters = context.report != nullptr ? &context.report->counters_of(*this) : nullptr;
    if (counters != nullptr) counters->mark_ahead(parallelism);
    return std::unique_ptr<Stage>(std::make_unique<ParallelMapCallbackStage>(
        std::move(input), function_, spec(), parallelism, context.cancel, std::move(own.cancel), counters));
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

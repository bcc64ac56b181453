// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/thread.h"
#include "data/stage.h"
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

// Calls run on threads of their own, because they may block. The consumer draws inputs into a ring of slots and takes
// outputs out in the same order; each slot keeps the input's state behind its element.
class ParallelMapCallbackStage : public Stage {
 public:
  ParallelMapCallbackStage(std::unique_ptr<Stage> input, const MapFunction &function, const ElementSpec &spec,
                           int32_t parallelism, Ref<CancelToken> cancel)
      : input_(std::move(input)),
        function_(function),
        spec_(spec),
        parallelism_(parallelism),
        cancel_(std::move(cancel)),
        slots_(static_cast<size_t>(parallelism) * 2) {}

  ~ParallelMapCallbackStage() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    arrived_.notify_all();
    threads_.clear();
  }

  Result<bool> next(Element &element) override {
    TUTTI_TRY(draw());
    if (taken_ == drawn_) return final_status_.ok() ? Result<bool>(false) : final_status_;
    Slot &slot = slot_of(taken_);
    {
      std::unique_lock lock(mutex_);
      TUTTI_TRY(base::wait_until(finished_, lock, cancel_.get(), Deadline::never(), [&] { return slot.done; }));
    }
    ++taken_;
    std::swap(element, slot.output);
    committed_.swap(slot.state);
    TUTTI_TRY(slot.status);
    return true;
  }
  void save(State &state) const override {
    state.open("map_callback");
    state.key("input");
    if (committed_.empty()) {
      input_->save(state);
    } else {
      state.append(committed_);
    }
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "map_callback"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  struct Slot {
    Element input;
    Element output;
    Status status;
    State state;
    bool done = false;  // guarded by mutex_
  };
  Slot &slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  // Fills the ring. Only the consumer's thread touches the input.
  Status draw() {
    if (threads_.empty()) TUTTI_TRY(start());
    while (!ended_ && drawn_ - taken_ < static_cast<int64_t>(slots_.size())) {
      Slot &slot = slot_of(drawn_);
      const Result<bool> more = input_->next(slot.input);
      if (is_final(more.status()) || (more.ok() && !*more)) {
        ended_ = true;
        final_status_ = more.status();
        break;
      }
      slot.state.clear();
      input_->save(slot.state);
      slot.status = more.status();
      std::lock_guard lock(mutex_);
      slot.done = !more.ok();
      ++drawn_;
      ready_ = drawn_;
      arrived_.notify_one();
    }
    return Status();
  }

  Status start() {
    input_->save(committed_);
    for (int32_t i = 0; i < parallelism_; ++i) {
      TUTTI_ASSIGN(base::Thread thread, base::Thread::start("tutti-map", [this] { work(); }));
      threads_.push_back(std::move(thread));
    }
    return Status();
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      arrived_.wait(lock, [&] { return stopping_ || claimed_ < ready_; });
      if (stopping_) return;
      Slot &slot = slot_of(claimed_++);
      if (slot.done) continue;  // it failed before it came here
      lock.unlock();
      Status status = call(function_, spec_, slot.input, slot.output);
      lock.lock();
      slot.status = std::move(status);
      slot.done = true;
      finished_.notify_one();
    }
  }

  std::unique_ptr<Stage> input_;
  const MapFunction &function_;
  const ElementSpec &spec_;
  const int32_t parallelism_;
  Ref<CancelToken> cancel_;
  std::vector<Slot> slots_;
  State committed_;  // of the input behind the last element given out
  int64_t drawn_ = 0;
  int64_t taken_ = 0;
  bool ended_ = false;
  Status final_status_;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable finished_;
  // Guarded by mutex_:
  int64_t ready_ = 0;
  int64_t claimed_ = 0;
  bool stopping_ = false;

  std::vector<base::Thread> threads_;
};

class MapCallbackDataset : public Dataset {
 public:
  MapCallbackDataset(const DatasetRef &input, ElementSpec spec, MapFunction function, int64_t parallelism)
      : Dataset("map_callback", std::move(spec), input->cardinality(), {input}),
        function_(std::move(function)),
        parallelism_(parallelism) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->open(context));
    const int32_t parallelism = context.workers->resolve(parallelism_);
    if (parallelism == 1) {
      return std::unique_ptr<Stage>(std::make_unique<MapCallbackStage>(std::move(input), function_, spec()));
    }
    return std::unique_ptr<Stage>(
        std::make_unique<ParallelMapCallbackStage>(std::move(input), function_, spec(), parallelism, context.cancel));
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

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <utility>

#include "base/thread.h"
#include "data/call/prefetching_stage.h"
#include "data/dataset/walk_report.h"
#include "data/thread/buffer_budget.h"
#include "data/thread/sleep_point.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::Ref;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kMostAutomatic = 32;
constexpr int64_t kTimedTakes = 16;

// What the time of element `number` counts; 0 = it is not taken. The first, for which a file may be opened, stands for
// itself, of the others one stands for several.
int64_t weight_of(int64_t number) {
  if (number == 0) return 1;
  return number % kTimedTakes == 1 ? kTimedTakes : 0;
}

constexpr int64_t kSmallBytes = int64_t{1} << 20;

// Of one element, as far as the spec tells; extents that it does not tell are taken for long ones.
double expected_bytes(const ElementSpec &spec) {
  double bytes = 0;
  for (const ComponentSpec &component : spec.components) {
    double size = static_cast<double>(tensor::size_bytes(component.dtype));
    for (const graph::Dim &dim : component.dims) {
      const bool is_rows = dim.mentions(graph::kBatchSymbol);
      size *= static_cast<double>(is_rows ? spec.batch_size : dim.is_constant() ? dim.constant() : kSmallBytes);
    }
    bytes += size;
  }
  return bytes;
}

// Where an automatic ring begins: with small elements at a length at which the thread wakes now and then only.
int64_t first_limit(const ElementSpec &spec) { return expected_bytes(spec) <= kSmallBytes ? 8 : 2; }

// A ring with one producer (the background thread) and one consumer. Slots [taken_, made_) are the consumer's, the
// others the producer's.
class PrefetchStage : public PrefetchedWalk {
 public:
  struct Settings {
    int64_t buffer_size;                   // 0 = automatic,
    int64_t first;                         // beginning with so many elements,
    double expected_bytes;                 // each about so large,
    std::shared_ptr<BufferBudget> budget;  // and growing as long as this has room
    SleepPoint *arrived;                   // null when nobody else waits
    StageCounters *counters;               // null when nobody counts
    bool is_input_own_work;                // nobody else counts that
  };

  PrefetchStage(std::unique_ptr<Stage> input, const Settings &settings, Ref<CancelToken> cancel,
                Ref<CancelToken> worker)
      : PrefetchedWalk("prefetch", std::move(input), std::move(cancel), std::move(worker)),
        arrived_(settings.arrived),
        counters_(settings.counters),
        is_input_own_work_(settings.counters != nullptr && settings.is_input_own_work),
        is_automatic_(settings.buffer_size == 0),
        share_(is_automatic_ ? settings.budget : nullptr),
        slots_(static_cast<size_t>(is_automatic_ ? kMostAutomatic : settings.buffer_size)),
        limit_(is_automatic_ ? first_in_budget(settings) : settings.buffer_size) {}

  ~PrefetchStage() override {
    // Waits that the thread is in, in any stage before this one, see the token.
    worker_->cancel();
    stopping_.store(true);
    room_.wake();
  }

  Result<bool> is_ready() override {
    if (has_ended()) return true;
    if (!thread_.running()) TUTTI_TRY(start());
    return made_.load() != taken_.load(std::memory_order_relaxed);
  }
  Result<bool> next(Element &element) override {
    if (has_ended()) return last_answer();
    if (!thread_.running()) TUTTI_TRY(start());
    const int64_t taken = taken_.load(std::memory_order_relaxed);
    if (counters_ != nullptr) counters_->add_depth(made_.load(std::memory_order_relaxed) - taken);
    if (made_.load() == taken) {
      grow(taken);
      TUTTI_TRY(filled_.wait(cancel_.get(), [&] { return made_.load() != taken; }));
    }
    Handover &slot = slots_[static_cast<size_t>(taken) % slots_.size()];
    Result<bool> more = give_out(slot, element);
    if (is_automatic_) largest_bytes_ = std::max(largest_bytes_, element.size_bytes());
    slot.element.components.clear();
    taken_.store(taken + 1);
    // Waking costs the consumer a system call: only when there is a good deal to do.
    if (made_.load() - taken - 1 <= limit_.load(std::memory_order_relaxed) / 2) room_.wake();
    return more;
  }

 private:
  Status start() {
    give_up_input();
    TUTTI_ASSIGN(thread_, base::Thread::start("tutti-prefetch", [this] { produce(); }));
    return Status();
  }

  // The consumer waits although the ring had been full before: a longer ring would have helped.
  void grow(int64_t taken) {
    const int64_t limit = limit_.load(std::memory_order_relaxed);
    if (limit < static_cast<int64_t>(slots_.size()) && taken > 0 && was_full_.exchange(false)) {
      const int64_t longer = std::min<int64_t>(limit * 2, static_cast<int64_t>(slots_.size()));
      if (share_.resize(longer * largest_bytes_)) limit_.store(longer);
    }
    room_.wake();
  }
  // Where the ring begins if the budget has no room for all of `first`.
  int64_t first_in_budget(const Settings &settings) {
    int64_t first = settings.first;
    while (first > 1 && !share_.resize(static_cast<int64_t>(static_cast<double>(first) * settings.expected_bytes)))
      first /= 2;
    return first;
  }

  void draw(int64_t number, Handover &slot) {
    const int64_t weight = is_input_own_work_ ? weight_of(number) : 0;
    const int64_t begin = weight > 0 ? base::now_ns() : 0;
    draw_input(slot.element, slot);
    if (weight > 0) counters_->add_work((base::now_ns() - begin) * weight);
  }

  void produce() {
    for (int64_t made = 0;; ++made) {
      const auto has_room = [&] { return stopping_.load() || made - taken_.load() < limit_.load(); };
      if (!has_room()) {
        was_full_.store(true);
        // Half of the ring empty, so that the thread does not wake for every single slot.
        const auto has_much_room = [&] { return stopping_.load() || made - taken_.load() <= limit_.load() / 2; };
        const int64_t begin = base::now_ns();
        (void)room_.wait(nullptr, has_much_room);
        if (counters_ != nullptr) counters_->add_full(base::now_ns() - begin);
      }
      if (stopping_.load()) return;
      Handover &slot = slots_[static_cast<size_t>(made) % slots_.size()];
      draw(made, slot);
      const bool last = is_last(slot.more);
      made_.store(made + 1);
      filled_.wake();
      if (arrived_ != nullptr) arrived_->wake();
      if (last) return;
    }
  }

  SleepPoint *const arrived_;
  StageCounters *const counters_;
  const bool is_input_own_work_;
  const bool is_automatic_;
  BufferBudget::Share share_;
  int64_t largest_bytes_ = 0;  // of an element given out
  std::vector<Handover> slots_;
  std::atomic<int64_t> limit_;  // slots in use
  std::atomic<bool> was_full_{false};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<int64_t> made_{0};
  alignas(64) std::atomic<int64_t> taken_{0};
  SleepPoint filled_;
  SleepPoint room_;
  base::Thread thread_;  // last: joined before anything else goes
};

class PrefetchDataset : public Dataset {
 public:
  PrefetchDataset(const DatasetRef &input, int64_t buffer_size)
      : Dataset("prefetch", input->spec(), input->cardinality(), {input}), buffer_size_(buffer_size) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    StageCounters *const counters = counters_in(context, *this);
    if (counters != nullptr) counters->mark_ahead(1);
    TUTTI_ASSIGN(std::unique_ptr<Stage> walk, open_prefetched(*inputs()[0], context, buffer_size_, nullptr, counters));
    return walk;
  }

 private:
  int64_t buffer_size_;
};

}  // namespace

Result<std::unique_ptr<PrefetchedWalk>> open_prefetched(const Dataset &dataset, const IteratorContext &context,
                                                        int64_t buffer_size, SleepPoint *arrived,
                                                        StageCounters *counters) {
  IteratorContext own = context;
  own.cancel = CancelToken::create_worker(context.cancel);
  TUTTI_ASSIGN(std::unique_ptr<Stage> input, dataset.walk(own));
  const PrefetchStage::Settings settings{
      buffer_size, first_limit(dataset.spec()), expected_bytes(dataset.spec()), context.buffers, arrived,
      counters,    context.report == nullptr};
  return std::unique_ptr<PrefetchedWalk>(
      std::make_unique<PrefetchStage>(std::move(input), settings, context.cancel, own.cancel));
}

Result<DatasetRef> apply_prefetch(const DatasetRef &input, const PrefetchParameters &parameters, TransformArguments &) {
  return DatasetRef(base::make_ref<PrefetchDataset>(input, parameters.buffer_size));
}

}  // namespace tutti::impl::data

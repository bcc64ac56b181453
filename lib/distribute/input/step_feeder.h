// SPDX-License-Identifier: Apache-2.0
//
// The feeder: takes global batches from an iterator ahead of the step and lends them to the replicas, on a thread of
// its own, or on a replica's when reading costs less than to wake a thread.
//
// While a step runs the batches of the next `depth` steps are peeked at, which does not count; when a step is known to
// have succeeded its batches are taken. So the iterator's saved state never includes a batch that was not trained on,
// and does not depend on the depth.
//
//   replicas   wait_ready(n) -> agree -> rank 0: start(n) -> input(n) -> finish(n), or give_back(n): it comes again
//   feeder     peek -> ready(n) -> peek -> ready(n + 1) ... finished(n) -> take n -> peek -> ready(n + 1 + depth) ...
//
// A step may begin before the one before it is known to have succeeded (in_flight 2): start(n) -> start(n + 1) ->
// finish(n), or give_back(n + 1).
//
// Nothing is looked at behind the end of the input, an error or the limit. An error shows at its step, all of whose
// batches up to the failing one are then passed over. A batch without rows is none, and counts with the next one.
//
// Devices that cannot read the host's memory get the batches into their own (device_inputs.h) as soon as they are read:
// those of the next steps while the present one runs. Others find them in the host's. Replicas that read themselves,
// because that is so quick, look no further than to the next step, and do it while they would wait for another.
//
// Step numbers count from 0 since attach(). Threads: attach, allow, state, report by the session's caller while no step
// runs; the waits by the replicas; they wait for no lock. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_INPUT_STEP_FEEDER_H_
#define TUTTI_DISTRIBUTE_INPUT_STEP_FEEDER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/json.h"
#include "base/notifier.h"
#include "base/status.h"
#include "base/thread.h"
#include "data/dataset/dataset.h"
#include "distribute/input/device_inputs.h"
#include "distribute/input/input_binding.h"

namespace tutti::impl::distribute {

/// What one step trains on. Written by the feeder, read by the replicas after wait_complete().
struct StepInput {
  std::vector<data::Element> batches;   ///< `count` of them are valid; dtypes and shapes alone where devices map them
  std::vector<data::Element> unmapped;  ///< what goes into the map of the devices, where there is one
  std::vector<int64_t> rows;            ///< of each
  int32_t count = 0;                    ///< 0 = the input has ended
  int64_t step_rows = 0;
  int32_t slot = 0;            ///< of the feeder and of its DeviceInputs
  base::Status status;         ///< of reading; nothing else is valid when it is bad
  bool has_bad_batch = false;  ///< it is that of the batch behind the `count`, which is of no use
};

class StepFeeder {
 public:
  /// About what it costs to wake a thread and to hear from it.
  static constexpr int64_t kQuickNanoseconds = 20'000;

  struct Options {
    int32_t accumulation = 1;  ///< batches of a step
    int32_t depth = 1;         ///< steps that are looked at ahead of the one that began last
    int32_t in_flight = 1;     ///< steps that may have begun and not be finished
    /// Batches without rows are parts of batches of all workers, and keep their place; else they are no batches.
    bool keeps_empty = false;
    /// Reads that take less, some in a row, are then done by the replicas.
    int64_t quick_ns = kQuickNanoseconds;
  };
  static base::Result<std::unique_ptr<StepFeeder>> create(const Options &options);
  /// Interrupts a look ahead; waits for what cannot be interrupted.
  ~StepFeeder();

  /// Where batches are copied to, with memory for slots(); null (as it begins) = nowhere. Before the first attach().
  void set_device_inputs(std::unique_ptr<DeviceInputs> inputs) { device_inputs_ = std::move(inputs); }
  DeviceInputs *device_inputs() const { return device_inputs_.get(); }

  /// The steps that run, and those ahead of them.
  int32_t slots() const { return static_cast<int32_t>(slots_.size()); }

  bool has_input() const { return iterator_ != nullptr; }
  /// Replaces the input, interrupting a look ahead; steps count from 0 again. `map`: the one that the iterator has
  /// left, for the device inputs.
  /// After an error there is no input.
  base::Status attach(std::unique_ptr<data::Iterator> iterator, InputBinding binding,
                      const std::shared_ptr<const DeviceMap> &map = nullptr);
  const InputBinding &binding() const { return binding_; }
  /// State of the iterator after the steps that are finished. Interrupts a look ahead.
  base::Result<base::Json> state();
  /// What the walk has cost; null without input.
  base::Json report() const { return iterator_ != nullptr ? iterator_->report() : base::Json(); }

  /// Steps below `limit` may be read from now on. After failed() the batches of its step are passed over.
  void allow(int64_t limit);
  /// The next step nobody has started.
  int64_t next_step() const { return started_.load(std::memory_order_seq_cst); }

  /// Whether wait_ready() would not wait.
  bool is_ready(int64_t n) const { return ready_.load(std::memory_order_seq_cst) > n; }
  /// Waits until step n can be started, has ended the input or failed; false when interrupt() came first.
  bool wait_ready(int64_t n);
  /// Where replicas read themselves: reads the batches of the next step now, if nobody has; whether it did. For a
  /// replica that would wait for others.
  bool read_ahead();
  /// Step n begins: called by one replica, once.
  void start(int64_t n);
  /// Its batches are used up, as are those before: called by one replica, in the order of steps.
  void finish(int64_t n) { finished_.store(n + 1, std::memory_order_seq_cst); }
  /// The steps from n on that have begun have not happened; the next that begins is n. Called by one replica.
  void give_back(int64_t n) { started_.store(n, std::memory_order_seq_cst); }
  /// The next step does not begin, its input is bad: called by one replica, once.
  void failed() { has_failed_.store(true, std::memory_order_seq_cst); }
  const StepInput &input(int64_t n) const { return slots_[slot_of(n)]; }
  /// Steps that the replicas had to wait for, by whoever read their batches. Any thread.
  int64_t late_steps() const { return late_steps_.load(std::memory_order_relaxed); }

  /// Makes wait_ready() return false until clear_interrupt(). Any thread.
  void interrupt();
  void clear_interrupt() { interrupted_.store(false, std::memory_order_seq_cst); }

 private:
  explicit StepFeeder(const Options &options);

  /// May the thread that reads wait for it?
  enum class Reading { peek, peek_if_ready };

  /// Without a division at the depth that there mostly is.
  size_t slot_of(int64_t n) const {
    return slots_.size() == 2 ? static_cast<size_t>(n & 1) : static_cast<size_t>(n) % slots_.size();
  }
  void loop();
  bool may_look() const;
  bool may_take() const;
  /// The iterator, from a thread that may be waiting in it.
  std::unique_lock<std::mutex> interrupt_reading();
  /// On a replica's thread: takes and looks ahead where it need not wait; whether it has looked.
  bool advance_here();
  /// Takes the steps that are finished, looks ahead to one more; whether it has. The caller holds the iterator, like
  /// that of the others.
  bool advance(Reading how);
  /// At step ready_, or what is left of it. False when state() interrupted it, or it had to wait and may not.
  bool look_ahead(Reading how);
  void take();
  void try_again(bool has_been_seen);
  /// Looks at the next batch that has rows, for position looked_ of a slot.
  bool read(StepInput &slot, Reading how);
  /// What read() does but for exceptions.
  bool read_batch(StepInput &slot, Reading how);
  /// Begins to copy batch `m` of a slot to the devices; false, with the slot's status set, when that failed.
  bool begin_copies(StepInput &slot, int32_t m);
  /// Rows of batch `m`, which has been read; checks it.
  base::Result<int64_t> check(StepInput &slot, size_t m) const;
  void judge(bool has_looked, int64_t nanoseconds);

  const int32_t accumulation_;
  const int64_t depth_, quick_ns_;
  const bool keeps_empty_;
  std::mutex iterator_mutex_;  // held while the iterator is used or replaced
  std::unique_ptr<data::Iterator> iterator_;
  InputBinding binding_;
  std::shared_ptr<const DeviceMap> map_;
  std::vector<StepInput> slots_;
  std::unique_ptr<DeviceInputs> device_inputs_;  // behind the slots, whose batches its copies read
  data::Element spare_;
  bool may_be_quick_ = false;  // with this input
  int32_t quick_reads_ = 0;    // in a row
  // Of those that the iterator has shown and not given out:
  size_t queued_ = 0;   // batches of steps below ready_
  int32_t looked_ = 0;  // and of step ready_
  // Changed by who holds the iterator:
  std::atomic<bool> at_end_{false};  // step ready_ - 1 has no or bad input
  std::atomic<bool> quick_{false};   // replicas read themselves

  // Looked at over and over by those who wait, beside nothing that who reads for them writes.
  alignas(64) std::atomic<int64_t> ready_{0};
  alignas(64) std::atomic<int64_t> started_{0};
  std::atomic<int64_t> finished_{0}, complete_{0}, limit_{0};
  std::atomic<bool> interrupted_{false}, has_failed_{false}, closing_{false};
  std::atomic<int32_t> iterator_wanted_{0};  // calls that interrupt reading
  std::atomic<int64_t> late_steps_{0}, last_late_{-1};
  base::Notifier feeder_notifier_, replica_notifier_;
  int64_t spin_us_;
  base::Thread thread_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_INPUT_STEP_FEEDER_H_

// SPDX-License-Identifier: Apache-2.0
//
// The feeder: takes global batches from an iterator ahead of the step and lends them to the replicas, on a thread of
// its own, or on a replica's when reading costs less than to wake a thread.
//
// While a step runs the first batch of the next one is peeked at, which does not count; when the replicas have agreed
// to run that step it is taken, with the further micro-batches of the step. So the iterator's saved state never
// includes a batch that was not trained on.
//
//   replicas            wait_ready(n) -> agree -> rank 0: start(n) -> wait_complete(n) -> input(n) until step n + 1
//   begins feeder              peek -> ready(n) ... started(n) -> take -> complete(n) -> peek ...
//
// Devices that cannot read the host's memory get the batches into their own (device_inputs.h) as soon as they are read:
// that of the next step while the present one runs.
//
// Step numbers count from 0 since attach(). Threads: attach, allow, state, report by the session's caller while no step
// runs; the waits by the replicas; they wait for no lock. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_STEP_FEEDER_H_
#define TUTTI_DISTRIBUTE_STEP_FEEDER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/thread.h"
#include "collective/local/bell.h"
#include "data/dataset.h"
#include "distribute/device_inputs.h"
#include "distribute/input_binding.h"

namespace tutti::impl::distribute {

/// What one step trains on. Written by the feeder, read by the replicas after wait_complete().
struct StepInput {
  std::vector<data::Element> batches;   ///< `count` of them are valid; dtypes and shapes alone where devices map them
  std::vector<data::Element> unmapped;  ///< what goes into the map of the devices, where there is one
  std::vector<int64_t> rows;            ///< of each
  int32_t count = 0;                    ///< 0 = the input has ended
  int64_t step_rows = 0;
  int32_t slot = 0;     ///< of the feeder and of its DeviceInputs
  base::Status status;  ///< of reading; nothing else is valid when it is bad
};

class StepFeeder {
 public:
  static base::Result<std::unique_ptr<StepFeeder>> create(int32_t accumulation);
  /// Waits for a read in progress.
  ~StepFeeder();

  /// Where batches are copied to; null (as it begins) = nowhere. Before the first attach().
  void set_device_inputs(std::unique_ptr<DeviceInputs> inputs) { device_inputs_ = std::move(inputs); }
  DeviceInputs *device_inputs() const { return device_inputs_.get(); }

  bool has_input() const { return iterator_ != nullptr; }
  /// Replaces the input; steps count from 0 again. `map`: the one that the iterator has left, for the device inputs.
  /// After an error there is no input.
  base::Status attach(std::unique_ptr<data::Iterator> iterator, InputBinding binding,
                      const std::shared_ptr<const DeviceMap> &map = nullptr);
  const InputBinding &binding() const { return binding_; }
  /// State of the iterator after the steps that were started. Interrupts a look ahead, but waits for the rest of a step
  /// that has begun.
  base::Result<base::Json> state();
  /// What the walk has cost; null without input.
  base::Json report() const { return iterator_ != nullptr ? iterator_->report() : base::Json(); }

  /// Steps below `limit` may be read from now on.
  void allow(int64_t limit);
  /// The next step nobody has started.
  int64_t next_step() const { return started_.load(std::memory_order_seq_cst); }

  /// Waits until step n can be started, has ended the input or failed; false when interrupt() came first.
  bool wait_ready(int64_t n);
  /// Step n begins: called by one replica, once.
  void start(int64_t n);
  /// False when abandon() came first.
  bool wait_complete(int64_t n);
  const StepInput &input(int64_t n) const { return slots_[static_cast<size_t>(n % 2)]; }

  /// Makes wait_ready() return false until clear_interrupt(). Any thread.
  void interrupt();
  /// Makes wait_complete() return false too: the step is not run, though its batches may still be taken.
  void abandon();
  void clear_interrupt() {
    interrupted_.store(false, std::memory_order_seq_cst);
    abandoned_.store(false, std::memory_order_seq_cst);
  }

 private:
  explicit StepFeeder(int32_t accumulation);

  /// How a batch is read: may this thread wait for it, and is it to be taken.
  enum class Reading { peek, peek_if_ready, next };

  void loop();
  bool may_look() const;
  bool may_take() const;
  /// On a replica's thread: takes and looks ahead where it need not wait.
  void advance_here();
  /// Takes the step that has begun, looks ahead to the next one. The caller holds the iterator.
  void advance(Reading look);
  /// False when state() interrupted it, or it had to wait and may not.
  bool look_ahead(int64_t n, Reading how);
  void take(int64_t n);
  /// Reads the next batch that has rows into position `m` of a slot.
  bool read(StepInput &slot, int32_t m, Reading how);
  /// Begins to copy batch `m` of a slot to the devices; false, with the slot's status set, when that failed.
  bool begin_copies(StepInput &slot, int32_t m);
  /// Rows of batch `m`, which has been read; checks it.
  base::Result<int64_t> check(StepInput &slot, size_t m) const;
  base::Result<bool> read_batch(data::Element &batch, Reading how);
  void judge(int64_t nanoseconds);
  void publish(std::atomic<int64_t> &counter, int64_t value);

  const int32_t accumulation_;
  std::mutex iterator_mutex_;  // held while the iterator is used or replaced
  std::unique_ptr<data::Iterator> iterator_;
  InputBinding binding_;
  std::shared_ptr<const DeviceMap> map_;
  StepInput slots_[2];
  std::unique_ptr<DeviceInputs> device_inputs_;  // behind the slots, whose batches its copies read
  data::Element spare_;
  bool may_be_quick_ = false;  // with this input
  int32_t quick_reads_ = 0;    // in a row
  // Changed by who holds the iterator:
  std::atomic<bool> prepared_{false};  // step next_step() has been looked at
  std::atomic<bool> quick_{false};     // replicas read themselves

  std::atomic<int64_t> ready_{0}, started_{0}, complete_{0}, limit_{0};
  std::atomic<bool> interrupted_{false}, abandoned_{false}, closing_{false};
  std::atomic<int32_t> states_wanted_{0};  // calls of state() that want the iterator
  collective::local::Bell feeder_bell_, replica_bell_;
  int64_t spin_us_;
  base::Thread thread_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STEP_FEEDER_H_

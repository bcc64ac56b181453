// SPDX-License-Identifier: Apache-2.0
#include "distribute/step_feeder.h"

#include <algorithm>
#include <chrono>

namespace tutti::impl::distribute {

using base::Deadline;
using base::Result;
using base::Status;
using Clock = std::chrono::steady_clock;

namespace {

/// About what it costs to wake a thread and to hear from it. Reads that are quicker, so many in a row, are then done by
/// the replicas.
constexpr int64_t kQuickNanoseconds = 20'000;
constexpr int32_t kQuickReads = 4;

}  // namespace

StepFeeder::StepFeeder(int32_t accumulation)
    : accumulation_(accumulation), spin_us_(base::available_cores() > 1 ? 20 : 0) {
  for (StepInput &slot : slots_) {
    slot.batches.resize(static_cast<size_t>(accumulation));
    slot.unmapped.resize(static_cast<size_t>(accumulation));
    slot.rows.resize(static_cast<size_t>(accumulation));
    slot.slot = static_cast<int32_t>(&slot - slots_);
  }
}

Result<std::unique_ptr<StepFeeder>> StepFeeder::create(int32_t accumulation) {
  std::unique_ptr<StepFeeder> feeder(new StepFeeder(accumulation));
  StepFeeder *self = feeder.get();
  TUTTI_ASSIGN(feeder->thread_, base::Thread::start("tutti-feeder", [self] { self->loop(); }));
  return feeder;
}

StepFeeder::~StepFeeder() {
  closing_.store(true, std::memory_order_seq_cst);
  feeder_bell_.ring();
  thread_.join();
}

Status StepFeeder::attach(std::unique_ptr<data::Iterator> iterator, InputBinding binding,
                          const std::shared_ptr<const DeviceMap> &map) {
  limit_.store(0, std::memory_order_seq_cst);
  std::lock_guard lock(iterator_mutex_);
  iterator_ = nullptr;
  binding_ = std::move(binding);
  map_ = map;
  for (StepInput &slot : slots_) {
    if (device_inputs_ != nullptr) device_inputs_->settle(slot.slot);
    std::ranges::fill(slot.batches, data::Element());
    std::ranges::fill(slot.unmapped, data::Element());
    slot.status = Status();
  }
  Status status;
  if (device_inputs_ != nullptr) status = device_inputs_->set_map(map, iterator != nullptr ? iterator->seed() : 0);
  if (status.ok()) iterator_ = std::move(iterator);
  // Copies to devices shall begin while the step before runs, which replicas that read themselves cannot.
  may_be_quick_ = iterator_ != nullptr && accumulation_ == 1 && device_inputs_ == nullptr &&
                  data::runs_own_code_only(iterator_->dataset());
  quick_reads_ = 0;
  quick_.store(false, std::memory_order_seq_cst);
  ready_.store(0, std::memory_order_seq_cst);
  started_.store(0, std::memory_order_seq_cst);
  complete_.store(0, std::memory_order_seq_cst);
  prepared_.store(false, std::memory_order_seq_cst);
  feeder_bell_.ring();
  return status;
}

Result<base::Json> StepFeeder::state() {
  const int64_t started = started_.load(std::memory_order_seq_cst);
  // Batches of a step that has begun are being taken, or are left to the next step.
  feeder_bell_.ring();
  replica_bell_.wait([&] { return complete_.load(std::memory_order_seq_cst) >= started; }, 0, Deadline::never(),
                     nullptr);
  if (iterator_ == nullptr) return base::failed_precondition("no input is attached");
  states_wanted_.fetch_add(1, std::memory_order_seq_cst);
  iterator_->token().set_deadline(Deadline::after_ms(0));
  std::unique_lock lock(iterator_mutex_);
  base::Json state = iterator_->save();
  iterator_->token().set_deadline(Deadline::never());
  states_wanted_.fetch_sub(1, std::memory_order_seq_cst);
  lock.unlock();
  feeder_bell_.ring();
  return state;
}

void StepFeeder::allow(int64_t limit) {
  const int64_t ready = ready_.load(std::memory_order_seq_cst);
  if (ready > started_.load(std::memory_order_seq_cst) && !input(ready - 1).status.ok()) {
    // A batch that failed is gone; the next one is tried.
    std::lock_guard lock(iterator_mutex_);
    ready_.store(ready - 1, std::memory_order_seq_cst);
    prepared_.store(false, std::memory_order_seq_cst);
  }
  limit_.store(limit, std::memory_order_seq_cst);
  if (!quick_.load(std::memory_order_seq_cst)) feeder_bell_.ring();
}

bool StepFeeder::wait_ready(int64_t n) {
  const auto ready = [&] { return ready_.load(std::memory_order_seq_cst) > n; };
  if (!ready() && quick_.load(std::memory_order_seq_cst)) advance_here();
  replica_bell_.wait([&] { return ready() || interrupted_.load(std::memory_order_seq_cst); }, spin_us_,
                     Deadline::never(), nullptr);
  return ready() && !interrupted_.load(std::memory_order_seq_cst);
}

void StepFeeder::start(int64_t n) {
  started_.store(n + 1, std::memory_order_seq_cst);
  if (!quick_.load(std::memory_order_seq_cst)) feeder_bell_.ring();
}

bool StepFeeder::wait_complete(int64_t n) {
  // With one batch per step it is complete as soon as it is ready.
  if (accumulation_ == 1) return true;
  const auto complete = [&] { return complete_.load(std::memory_order_seq_cst) > n; };
  replica_bell_.wait([&] { return complete() || abandoned_.load(std::memory_order_seq_cst); }, spin_us_,
                     Deadline::never(), nullptr);
  return complete();
}

void StepFeeder::interrupt() {
  interrupted_.store(true, std::memory_order_seq_cst);
  replica_bell_.ring();
}

void StepFeeder::abandon() {
  abandoned_.store(true, std::memory_order_seq_cst);
  replica_bell_.ring();
}

void StepFeeder::publish(std::atomic<int64_t> &counter, int64_t value) {
  counter.store(value, std::memory_order_seq_cst);
  replica_bell_.ring();
}

// ---- reading ----

bool StepFeeder::may_look() const {
  return !prepared_.load(std::memory_order_seq_cst) &&
         complete_.load(std::memory_order_seq_cst) < limit_.load(std::memory_order_seq_cst) &&
         states_wanted_.load(std::memory_order_seq_cst) == 0;
}

bool StepFeeder::may_take() const {
  return prepared_.load(std::memory_order_seq_cst) &&
         started_.load(std::memory_order_seq_cst) > complete_.load(std::memory_order_seq_cst);
}

void StepFeeder::loop() {
  for (;;) {
    feeder_bell_.wait([&] { return closing_.load(std::memory_order_seq_cst) || may_look() || may_take(); }, 0,
                      Deadline::never(), nullptr);
    if (closing_.load(std::memory_order_seq_cst)) return;
    std::lock_guard lock(iterator_mutex_);
    advance(Reading::peek);
  }
}

void StepFeeder::advance_here() {
  std::unique_lock lock(iterator_mutex_, std::try_to_lock);
  // Whoever has it does the same.
  if (!lock.owns_lock()) return;
  base::CancelToken &token = iterator_->token();
  token.set_deadline(Deadline::after_ms(0));
  advance(Reading::peek_if_ready);
  token.set_deadline(Deadline::never());
  if (!quick_.load(std::memory_order_seq_cst)) feeder_bell_.ring();
}

void StepFeeder::advance(Reading look) {
  const auto begin = Clock::now();
  if (may_take()) {
    prepared_.store(false, std::memory_order_seq_cst);
    take(complete_.load(std::memory_order_seq_cst));
  }
  if (!may_look() || iterator_ == nullptr) return;
  prepared_.store(look_ahead(complete_.load(std::memory_order_seq_cst), look), std::memory_order_seq_cst);
  judge((Clock::now() - begin).count());
}

/// Who shall read from now on.
void StepFeeder::judge(int64_t nanoseconds) {
  const bool quick = may_be_quick_ && prepared_.load(std::memory_order_seq_cst) && nanoseconds < kQuickNanoseconds;
  quick_reads_ = quick ? quick_reads_ + 1 : 0;
  quick_.store(quick_reads_ >= kQuickReads, std::memory_order_seq_cst);
}

Result<bool> StepFeeder::read_batch(data::Element &batch, Reading how) {
  if (how == Reading::peek) return iterator_->peek(batch);
  return how == Reading::next ? iterator_->next(batch) : iterator_->peek_if_ready(batch);
}

Result<int64_t> StepFeeder::check(StepInput &slot, size_t m) const {
  if (map_ != nullptr) TUTTI_TRY(map_->describe(slot.unmapped[m], slot.batches[m]));
  return binding_.check(slot.batches[m]);
}

bool StepFeeder::read(StepInput &slot, int32_t m, Reading how) {
  const auto position = static_cast<size_t>(m);
  data::Element &batch = map_ != nullptr ? slot.unmapped[position] : slot.batches[position];
  for (;;) {
    const Result<bool> more = read_batch(batch, how);
    if (!more.ok()) {
      slot.status = more.status();
      return false;
    }
    if (!*more) return false;
    const Result<int64_t> rows = check(slot, position);
    if (!rows.ok()) {
      slot.status = rows.status();
      if (how != Reading::next) (void)iterator_->next(batch);
      return false;
    }
    slot.rows[position] = *rows;
    if (*rows > 0) return begin_copies(slot, m);
    // A batch without rows is no batch.
    if (how != Reading::next) (void)iterator_->next(batch);
  }
}

bool StepFeeder::begin_copies(StepInput &slot, int32_t m) {
  if (device_inputs_ == nullptr) return true;
  const auto position = static_cast<size_t>(m);
  const data::Element &batch = map_ != nullptr ? slot.unmapped[position] : slot.batches[position];
  slot.status = device_inputs_->begin(slot.slot, m, batch, slot.rows[position], binding_);
  return slot.status.ok();
}

bool StepFeeder::look_ahead(int64_t n, Reading how) {
  StepInput &slot = slots_[static_cast<size_t>(n % 2)];
  if (device_inputs_ != nullptr) device_inputs_->settle(slot.slot);
  slot.status = Status();
  slot.count = read(slot, 0, how) ? 1 : 0;
  const bool may_be_interrupted = how == Reading::peek_if_ready || states_wanted_.load(std::memory_order_seq_cst) > 0;
  if (base::is_interrupt(slot.status) && may_be_interrupted) return false;
  slot.step_rows = slot.count == 1 ? slot.rows[0] : 0;
  publish(ready_, n + 1);
  return true;
}

void StepFeeder::take(int64_t n) {
  StepInput &slot = slots_[static_cast<size_t>(n % 2)];
  // The replicas are reading the batch that was peeked at; the iterator gives it out into a spare element.
  (void)iterator_->next(spare_);
  for (int32_t m = 1; m < accumulation_ && read(slot, m, Reading::next); ++m) {
    slot.step_rows += slot.rows[static_cast<size_t>(m)];
    slot.count = m + 1;
  }
  publish(complete_, n + 1);
}

}  // namespace tutti::impl::distribute

// SPDX-License-Identifier: Apache-2.0
#include "distribute/input/step_feeder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/exceptions.h"

namespace tutti::impl::distribute {

using base::Deadline;
using base::Result;
using base::Status;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int32_t kQuickReads = 4;

}  // namespace

StepFeeder::StepFeeder(const Options &options)
    : accumulation_(options.accumulation),
      depth_(options.depth),
      quick_ns_(options.quick_ns),
      keeps_empty_(options.keeps_empty),
      slots_(static_cast<size_t>(options.depth + options.in_flight)),
      spin_us_(base::available_cores() > 1 ? 20 : 0) {
  for (StepInput &slot : slots_) {
    slot.batches.resize(static_cast<size_t>(accumulation_));
    slot.unmapped.resize(static_cast<size_t>(accumulation_));
    slot.rows.resize(static_cast<size_t>(accumulation_));
    slot.slot = static_cast<int32_t>(&slot - slots_.data());
  }
}

Result<std::unique_ptr<StepFeeder>> StepFeeder::create(const Options &options) {
  std::unique_ptr<StepFeeder> feeder(new StepFeeder(options));
  StepFeeder *self = feeder.get();
  TUTTI_ASSIGN(feeder->thread_, base::Thread::start("tutti-feeder", [self] { self->loop(); }));
  return feeder;
}

StepFeeder::~StepFeeder() {
  closing_.store(true, std::memory_order_seq_cst);
  if (iterator_ != nullptr) iterator_->token().set_deadline(Deadline::after_ms(0));
  feeder_notifier_.notify();
  thread_.join();
}

Status StepFeeder::attach(std::unique_ptr<data::Iterator> iterator, InputBinding binding,
                          const std::shared_ptr<const DeviceMap> &map) {
  limit_.store(0, std::memory_order_seq_cst);
  const std::unique_lock lock = interrupt_reading();
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
  if (iterator_ != nullptr) iterator_->make_room_ahead(slots_.size() * static_cast<size_t>(accumulation_));
  // Copies to devices shall begin while the step before runs, which replicas that read themselves cannot.
  may_be_quick_ = iterator_ != nullptr && accumulation_ == 1 && device_inputs_ == nullptr &&
                  data::runs_own_code_only(iterator_->dataset());
  quick_reads_ = 0;
  quick_.store(false, std::memory_order_seq_cst);
  ready_.store(0, std::memory_order_seq_cst);
  started_.store(0, std::memory_order_seq_cst);
  finished_.store(0, std::memory_order_seq_cst);
  complete_.store(0, std::memory_order_seq_cst);
  at_end_.store(false, std::memory_order_seq_cst);
  has_failed_.store(false, std::memory_order_seq_cst);
  last_late_.store(-1, std::memory_order_relaxed);
  queued_ = 0;
  looked_ = 0;
  return status;
}

std::unique_lock<std::mutex> StepFeeder::interrupt_reading() {
  iterator_wanted_.fetch_add(1, std::memory_order_seq_cst);
  if (iterator_ != nullptr) iterator_->token().set_deadline(Deadline::after_ms(0));
  std::unique_lock lock(iterator_mutex_);
  if (iterator_ != nullptr) iterator_->token().set_deadline(Deadline::never());
  iterator_wanted_.fetch_sub(1, std::memory_order_seq_cst);
  return lock;
}

Result<base::Json> StepFeeder::state() {
  if (iterator_ == nullptr) return base::failed_precondition("no input is attached");
  std::unique_lock lock = interrupt_reading();
  while (may_take())
    take();
  base::Json state = iterator_->save();
  lock.unlock();
  feeder_notifier_.notify();
  return state;
}

void StepFeeder::allow(int64_t limit) {
  const bool has_failed = has_failed_.exchange(false, std::memory_order_seq_cst);
  if (at_end_.load(std::memory_order_seq_cst)) try_again(has_failed);
  limit_.store(limit, std::memory_order_seq_cst);
  if (!quick_.load(std::memory_order_seq_cst)) feeder_notifier_.notify();
}

/// The step that the look ahead ended with, if its input is bad. A bad batch is gone, with those of its step before it,
/// as soon as the replicas have seen it; what could not be copied, or where reading was interrupted, is not.
void StepFeeder::try_again(bool has_been_seen) {
  const std::lock_guard lock(iterator_mutex_);
  const int64_t n = ready_.load(std::memory_order_seq_cst) - 1;
  const StepInput &slot = slots_[slot_of(n)];
  if (slot.status.ok() || (slot.has_bad_batch && !has_been_seen)) return;
  while (may_take())
    take();
  queued_ -= static_cast<size_t>(slot.count);
  for (int32_t m = 0; slot.has_bad_batch && m <= slot.count; ++m)
    (void)iterator_->next(spare_);
  ready_.store(n, std::memory_order_seq_cst);
  at_end_.store(false, std::memory_order_seq_cst);
}

bool StepFeeder::wait_ready(int64_t n) {
  const auto ready = [&] { return ready_.load(std::memory_order_seq_cst) > n; };
  if (!ready() && quick_.load(std::memory_order_seq_cst)) advance_here();
  if (!ready() && !quick_.load(std::memory_order_seq_cst) && last_late_.exchange(n, std::memory_order_relaxed) != n)
    late_steps_.fetch_add(1, std::memory_order_relaxed);
  replica_notifier_.wait([&] { return ready() || interrupted_.load(std::memory_order_seq_cst); }, spin_us_,
                         Deadline::never(), nullptr);
  return ready() && !interrupted_.load(std::memory_order_seq_cst);
}

bool StepFeeder::read_ahead() { return quick_.load(std::memory_order_seq_cst) && may_look() && advance_here(); }

void StepFeeder::start(int64_t n) {
  started_.store(n + 1, std::memory_order_seq_cst);
  if (!quick_.load(std::memory_order_seq_cst)) feeder_notifier_.notify();
}

void StepFeeder::interrupt() {
  interrupted_.store(true, std::memory_order_seq_cst);
  replica_notifier_.notify();
}

// ---- reading ----

bool StepFeeder::may_look() const {
  const int64_t ready = ready_.load(std::memory_order_seq_cst);
  return ready < limit_.load(std::memory_order_seq_cst) && ready < started_.load(std::memory_order_seq_cst) + depth_ &&
         !at_end_.load(std::memory_order_seq_cst) && iterator_wanted_.load(std::memory_order_seq_cst) == 0;
}

bool StepFeeder::may_take() const {
  return finished_.load(std::memory_order_seq_cst) > complete_.load(std::memory_order_seq_cst);
}

void StepFeeder::loop() {
  for (;;) {
    feeder_notifier_.wait([&] { return closing_.load(std::memory_order_seq_cst) || may_look() || may_take(); }, 0,
                          Deadline::never(), nullptr);
    if (closing_.load(std::memory_order_seq_cst)) return;
    std::lock_guard lock(iterator_mutex_);
    advance(Reading::peek);
  }
}

bool StepFeeder::advance_here() {
  std::unique_lock lock(iterator_mutex_, std::try_to_lock);
  // Whoever has it does the same.
  if (!lock.owns_lock()) return false;
  base::CancelToken &token = iterator_->token();
  token.set_deadline(Deadline::after_ms(0));
  const bool has_looked = advance(Reading::peek_if_ready);
  token.set_deadline(Deadline::never());
  if (!quick_.load(std::memory_order_seq_cst)) feeder_notifier_.notify();
  return has_looked;
}

bool StepFeeder::advance(Reading how) {
  const auto begin = Clock::now();
  while (may_take())
    take();
  if (!may_look() || iterator_ == nullptr) return false;
  const bool has_looked = look_ahead(how);
  judge(has_looked, (Clock::now() - begin).count());
  return has_looked;
}

/// Who shall read from now on.
void StepFeeder::judge(bool has_looked, int64_t nanoseconds) {
  const bool quick = may_be_quick_ && has_looked && nanoseconds < quick_ns_;
  quick_reads_ = quick ? quick_reads_ + 1 : 0;
  quick_.store(quick_reads_ >= kQuickReads, std::memory_order_seq_cst);
}

Result<int64_t> StepFeeder::check(StepInput &slot, size_t m) const {
  if (map_ != nullptr) TUTTI_TRY(map_->describe(slot.unmapped[m], slot.batches[m]));
  return binding_.check(slot.batches[m]);
}

bool StepFeeder::read(StepInput &slot, Reading how) {
  bool has_read = false;
  const Status thrown = base::without_exceptions([&] {
    has_read = read_batch(slot, how);
    return Status();
  });
  if (thrown.ok()) return has_read;
  slot.status = thrown;
  slot.has_bad_batch = false;
  return false;
}

bool StepFeeder::read_batch(StepInput &slot, Reading how) {
  const auto position = static_cast<size_t>(looked_);
  const size_t ahead = queued_ + position;
  data::Element &batch = map_ != nullptr ? slot.unmapped[position] : slot.batches[position];
  for (;;) {
    const Result<bool> more =
        how == Reading::peek ? iterator_->peek(batch, ahead) : iterator_->peek_if_ready(batch, ahead);
    slot.status = more.status();
    slot.has_bad_batch = !more.ok() && !base::is_interrupt(more.status());
    if (!more.ok() || !*more) return false;
    const Result<int64_t> rows = check(slot, position);
    if (!rows.ok()) {
      slot.status = rows.status();
      slot.has_bad_batch = true;
      return false;
    }
    slot.rows[position] = *rows;
    if (*rows > 0 || keeps_empty_) return begin_copies(slot, looked_);
    iterator_->pass_over_peeked();
  }
}

bool StepFeeder::begin_copies(StepInput &slot, int32_t m) {
  if (device_inputs_ == nullptr) return true;
  const auto position = static_cast<size_t>(m);
  const data::Element &batch = map_ != nullptr ? slot.unmapped[position] : slot.batches[position];
  slot.status = device_inputs_->begin(slot.slot, m, batch, slot.rows[position], binding_);
  return slot.status.ok();
}

bool StepFeeder::look_ahead(Reading how) {
  const int64_t n = ready_.load(std::memory_order_seq_cst);
  StepInput &slot = slots_[slot_of(n)];
  if (looked_ == 0) {
    if (device_inputs_ != nullptr) device_inputs_->settle(slot.slot);
    slot.step_rows = 0;
  }
  for (; looked_ < accumulation_ && read(slot, how); ++looked_)
    slot.step_rows += slot.rows[static_cast<size_t>(looked_)];
  const bool may_be_interrupted = how == Reading::peek_if_ready || iterator_wanted_.load(std::memory_order_seq_cst) > 0;
  if (base::is_interrupt(slot.status) && may_be_interrupted) return false;
  slot.count = looked_;
  queued_ += static_cast<size_t>(std::exchange(looked_, 0));
  at_end_.store(!slot.status.ok() || slot.count == 0, std::memory_order_seq_cst);
  ready_.store(n + 1, std::memory_order_seq_cst);
  replica_notifier_.notify();
  return true;
}

void StepFeeder::take() {
  const int64_t n = complete_.load(std::memory_order_seq_cst);
  // The replicas are reading the batches that were peeked at; the iterator gives them out into a spare element.
  const int32_t count = slots_[slot_of(n)].count;
  for (int32_t m = 0; m < count; ++m)
    (void)iterator_->next(spare_);
  queued_ -= static_cast<size_t>(count);
  complete_.store(n + 1, std::memory_order_seq_cst);
}

}  // namespace tutti::impl::distribute

// SPDX-License-Identifier: Apache-2.0
#include "collective/device/device_group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "backend/clique.h"
#include "backend/stream_hold.h"
#include "collective/device/memory_offers.h"
#include "collective/device/operation_board.h"
#include "collective/reduction.h"

namespace tutti::impl::collective::device {
namespace {

using base::Result;
using base::Status;

// A slice of the group is one of the plug-in's.
static_assert(sizeof(Slice) == sizeof(tutti_collective_slice) &&
              offsetof(Slice, owner) == offsetof(tutti_collective_slice, owner));
static_assert(static_cast<int>(Kind::all_reduce) == TUTTI_COLLECTIVE_ALL_REDUCE &&
              static_cast<int>(Kind::reduce_scatter) == TUTTI_COLLECTIVE_REDUCE_SCATTER &&
              static_cast<int>(Kind::all_gather) == TUTTI_COLLECTIVE_ALL_GATHER &&
              static_cast<int>(Kind::broadcast) == TUTTI_COLLECTIVE_BROADCAST);
static_assert(static_cast<int>(Reduction::sum) == TUTTI_REDUCTION_SUM &&
              static_cast<int>(Reduction::max) == TUTTI_REDUCTION_MAX &&
              static_cast<int>(Reduction::min) == TUTTI_REDUCTION_MIN);

/// An operation from begin() until another has its place.
struct Slot {
  Operation operation;     // its pointers until wait() has returned
  void *memory = nullptr;  // its buffer
  bool on_device = false;  // else of the group over host memory, there:
  Ticket inner = -1;       // or what announces it to other processes
  int64_t number = -1;     // among those on devices
  bool has_work = false;   // was put on the stream of collectives
  std::array<char, 48> label{};
  backend::Event ready, done;
};

/// Waits a little: an eighth of the time waited so far, 100 us at most.
void back_off(std::chrono::steady_clock::time_point begin) {
  const auto waited = std::chrono::steady_clock::now() - begin;
  const auto pause = std::min<std::chrono::nanoseconds>(waited / 8, std::chrono::microseconds(100));
  if (pause < std::chrono::microseconds(5)) return std::this_thread::yield();
  std::this_thread::sleep_for(pause);
}

tutti_collective collective_of(const Operation &from, void *memory) {
  return {.struct_size = sizeof(tutti_collective),
          .kind = static_cast<int32_t>(from.kind),
          .reduction = static_cast<int32_t>(from.reduction),
          .dtype = static_cast<int32_t>(from.dtype),
          .root = from.root,
          .memory = memory,
          .count = from.count,
          .slices = reinterpret_cast<const tutti_collective_slice *>(from.slices),
          .slice_count = from.slice_count};
}

/// How long the group over several processes has, once its deadline has passed, to say who does not come.
constexpr int64_t kNamingMs = 1500;

/// What the ranks of this process share.
struct Shared {
  Shared(std::unique_ptr<backend::Clique> connected, const Group &first, const DeviceGroupOptions &options)
      : clique(std::move(connected)),
        first_rank(first.rank()),
        spans_processes(first.size() != clique->size()),
        board(clique->size(), first_rank),
        timeout_ms(options.timeout_ms),
        alive(options.alive),
        offers(*clique, spans_processes),
        arrived(static_cast<size_t>(clique->size())) {}

  void end_operations() {
    if (signals_end()) tell_devices();
    clique->abort();
  }
  /// Of several processes `alive` tells of one replay: whether all have settled it, as its device writes it.
  bool signals_end() const { return alive != nullptr && !spans_processes; }
  /// Devices read it as they please.
  [[gnu::noinline]] void tell_devices() const { alive->store(0, std::memory_order_seq_cst); }

  const std::unique_ptr<backend::Clique> clique;
  const int32_t first_rank;
  const bool spans_processes;
  OperationBoard board;
  const int64_t timeout_ms;
  std::atomic<uint8_t> *const alive;
  std::optional<backend::StreamHold> hold;  // where a process has one device of several processes'; that rank's
  MemoryOffers offers;
  std::vector<std::atomic<int64_t>> arrived;  // at meetings of this process, by rank
};

/// Of operations that are recorded: no number.
constexpr Ticket kRecorded = -2;

class DeviceRank : public Group {
 public:
  DeviceRank(std::unique_ptr<Group> inner, std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), inner_(std::move(inner)) {}
  ~DeviceRank() override;

  Status open(backend::Device &device);

  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  int32_t parts() const override { return 1; }

  Result<Ticket> begin(const Operation &operation) override;
  Status wait(Ticket ticket) override;
  Status settle() override;
  Status settle_own() override;
  Status await_done(Ticket ticket) override;
  bool signals_end() const override { return shared_->signals_end(); }
  void register_memory(void *memory, int64_t bytes) override { shared_->offers.add(place(), *inner_, memory, bytes); }
  int64_t registered_bytes() const override { return shared_->offers.registered(place()); }
  std::string registration() const override { return shared_->offers.description(); }
  Status check_recording() override;
  Status begin_recording() override;
  Status record_settle(backend::Stream &stream) override;
  void withdraw() override {
    if (held_ != nullptr) (void)let_go(false);
  }
  RecordedOperations end_recording() override { return is_recording_ = false, recorded_; }
  Result<Ticket> replay(const RecordedOperations &operations, backend::Recording &recording,
                        backend::Stream &stream) override;
  void abort(const Status &cause) override {
    inner_->abort(cause);  // first: who finds its operation ended finds the cause, too
    shared_->end_operations();
  }
  Status error() const override { return inner_->error(); }
  void set_cancel(const base::CancelToken *token) override {
    cancel_ = token;
    inner_->set_cancel(token);
  }

 private:
  Slot &at(Ticket ticket) { return ring_[static_cast<size_t>(ticket % max_pending_operations)]; }
  /// Of this rank among those of the process.
  int32_t place() const { return rank() - shared_->first_rank; }

  /// The slot of the next operation: nobody waits for its last one any more.
  Result<Slot *> next_slot();
  Result<Ticket> record(const Operation &operation);
  Status join_recorded();
  Status announce(const Operation &operation, Slot &slot);
  /// Enqueues operations in order. Without `waits`, until the library is still busy with one.
  Status enqueue(Ticket end, bool waits);
  Status await_enqueued();
  Status await_work(Slot &slot);
  /// What was begun is done by the device.
  Status await_all();
  /// The device waits for settle() of its replay.
  Status await_held();
  Status settle_replay();
  Status let_go(bool is_settled);
  template <typename Reached>
  Status await(const Slot *slot, Reached reached);
  Status fail(const Status &error);
  [[gnu::cold]] Status give_up(const Slot *slot);

  const std::shared_ptr<Shared> shared_;
  const std::unique_ptr<Group> inner_;
  const base::CancelToken *cancel_ = nullptr;
  backend::Stream stream_;  // of collectives, in order
  std::array<Slot, max_pending_operations> ring_;
  Slot *enqueuing_ = nullptr;  // may not be on the stream yet
  Ticket begun_ = 0, enqueued_ = 0, waited_ = 0;
  Ticket done_ = -1;  // it and those before it are known to be done by the device; their slots may be others' now
  int64_t numbers_ = 0;
  bool is_recording_ = false;
  Slot *held_ = nullptr;  // the replay that waits for settle(), or may
  RecordedOperations recorded_;
  Slot recording_;  // the operation that is recorded, and how the streams fork and join
};

Status DeviceRank::open(backend::Device &device) {
  TUTTI_ASSIGN(stream_, device.create_stream());
  for (Slot &slot : ring_) {
    TUTTI_ASSIGN(slot.ready, device.create_event());
    TUTTI_ASSIGN(slot.done, device.create_event());
  }
  TUTTI_ASSIGN(recording_.ready, device.create_event());
  TUTTI_ASSIGN(recording_.done, device.create_event());
  return Status();
}

// Buffers belong to the group until its operations have ended.
DeviceRank::~DeviceRank() {
  if (stream_.handle() == nullptr) return;
  withdraw();
  if (!inner_->error().ok() || !await_done(begun_ - 1).ok()) shared_->end_operations();
  (void)stream_.synchronize();
  shared_->clique->deregister_memory(place());
}

Result<Slot *> DeviceRank::next_slot() {
  TUTTI_TRY(inner_->error());
  if (begun_ - waited_ >= max_pending_operations) {
    return base::failed_precondition("more than ", max_pending_operations, " collective operations are in flight");
  }
  // Whoever waits for an operation looks at its slot. This one's last was waited for, if only by its stream.
  TUTTI_TRY(await_done(begun_ - max_pending_operations));
  Slot &slot = at(begun_);
  // Others may not have come to what was announced by its last one, although the device has been waited for.
  if (shared_->spans_processes && slot.inner >= 0) TUTTI_TRY(inner_->wait(slot.inner));
  return &slot;
}

Result<Ticket> DeviceRank::begin(const Operation &operation) {
  if (is_recording_ && operation.stream != nullptr) return record(operation);
  TUTTI_ASSIGN(Slot *const next, next_slot());
  Slot &slot = *next;
  slot.on_device = operation.stream != nullptr && operation.kind != Kind::barrier;
  slot.has_work = false;
  if (!slot.on_device) {
    Operation on_host = operation;
    on_host.stream = nullptr;
    TUTTI_ASSIGN(slot.inner, inner_->begin(on_host));
    return begun_++;
  }
  TUTTI_TRY(check_operation(operation, size()));
  if (operation.kind == Kind::gather) {
    return base::unimplemented("gather '", operation.label, "': not of memory of devices that are connected");
  }
  slot.operation = operation;
  slot.memory = operation.buffers[0];
  std::strncpy(slot.label.data(), operation.label, slot.label.size() - 1);
  TUTTI_TRY(announce(operation, slot));
  TUTTI_TRY(slot.ready.record(*operation.stream));
  const Ticket ticket = begun_++;
  TUTTI_TRY(enqueue(begun_, false));
  return ticket;
}

Status DeviceRank::announce(const Operation &operation, Slot &slot) {
  slot.number = numbers_++;
  const Status agreed = shared_->board.post(rank(), slot.number, operation);
  if (!agreed.ok()) abort(agreed);
  if (!agreed.ok() || !shared_->spans_processes) return agreed;
  Operation announced = operation;
  announced.buffers = nullptr;
  announced.slices = nullptr;
  announced.stream = nullptr;
  announced.label = slot.label.data();  // it may be read after wait()
  TUTTI_ASSIGN(slot.inner, inner_->announce(announced));
  return Status();
}

Status DeviceRank::enqueue(Ticket end, bool waits) {
  for (; enqueued_ < end; ++enqueued_) {
    Slot &slot = at(enqueued_);
    if (!slot.on_device || slot.operation.count == 0) continue;
    if (enqueuing_ != nullptr) {
      const Result<bool> is_enqueued = shared_->clique->poll(place());
      if (!is_enqueued.ok()) return fail(is_enqueued.status());
      if (!*is_enqueued && !waits) return Status();
      TUTTI_TRY(await_enqueued());
    }
    TUTTI_TRY(stream_.wait(slot.ready));
    const Status put = shared_->clique->enqueue(place(), collective_of(slot.operation, slot.memory), stream_);
    if (!put.ok()) return fail(put);
    enqueuing_ = &slot;
    slot.has_work = true;
  }
  return Status();
}

Status DeviceRank::await_enqueued() {
  if (enqueuing_ == nullptr) return Status();
  TUTTI_TRY(await(enqueuing_, [&] { return shared_->clique->poll(place()); }));
  Slot &slot = *std::exchange(enqueuing_, nullptr);
  return slot.done.record(stream_);
}

// ---- recordings ----

Status DeviceRank::check_recording() {
  if (!shared_->spans_processes) return base::unimplemented("devices of one process are launched one by one");
  TUTTI_TRY(shared_->clique->check_recording());
  return shared_->hold ? Status() : base::unimplemented("the backend does not let streams wait for the host");
}

Status DeviceRank::begin_recording() {
  TUTTI_TRY(await_all());
  recorded_ = {};
  is_recording_ = true;
  return Status();
}

Result<Ticket> DeviceRank::record(const Operation &operation) {
  TUTTI_TRY(inner_->error());
  TUTTI_TRY(check_operation(operation, size()));
  if (operation.kind == Kind::gather || operation.kind == Kind::barrier)
    return base::unimplemented(name(operation.kind), " '", operation.label, "' cannot be recorded");
  recording_.operation = operation;
  recording_.number = numbers_ - 1;  // no rank lacks it
  std::strncpy(recording_.label.data(), operation.label, recording_.label.size() - 1);
  TUTTI_TRY(recording_.ready.record(*operation.stream));
  TUTTI_TRY(stream_.wait(recording_.ready));
  if (operation.count > 0) {
    TUTTI_TRY(shared_->clique->enqueue(place(), collective_of(operation, operation.buffers[0]), stream_));
    TUTTI_TRY(await(&recording_, [&] { return shared_->clique->poll(place()); }));
  }
  recorded_.elements += operation.count;
  ++recorded_.operations;
  return kRecorded;
}

Status DeviceRank::record_settle(backend::Stream &stream) {
  if (!is_recording_ || recorded_.settles || shared_->alive == nullptr)
    return base::failed_precondition("a recording settles once, and tells devices when it does not");
  recorded_.settles = true;
  return shared_->hold->issue(stream, shared_->alive);
}

Status DeviceRank::join_recorded() {
  if (recorded_.operations == 0) return Status();
  TUTTI_TRY(recording_.done.record(stream_));
  return recording_.operation.stream->wait(recording_.done);
}

Result<Ticket> DeviceRank::replay(const RecordedOperations &operations, backend::Recording &recording,
                                  backend::Stream &stream) {
  TUTTI_ASSIGN(Slot *const slot, next_slot());
  if (waited_ != begun_) return base::failed_precondition("some operations that were started have not been waited for");
  slot->operation = {.kind = Kind::all_reduce, .dtype = tensor::DType::u8, .count = operations.elements};
  slot->on_device = slot->has_work = true;
  std::strncpy(slot->label.data(), operations.operations == 1 ? "recorded operation" : "recorded operations",
               slot->label.size() - 1);
  slot->operation.label = slot->label.data();
  TUTTI_TRY(announce(slot->operation, *slot));
  slot->operation.stream = &stream;
  if (operations.settles) shared_->hold->expect();
  if (operations.settles) held_ = slot;
  TUTTI_TRY(recording.replay(stream));
  if (held_ == nullptr) TUTTI_TRY(slot->done.record(stream));
  enqueued_ = waited_ = ++begun_;
  return begun_ - 1;
}

Status DeviceRank::wait(Ticket ticket) {
  if (ticket == kRecorded) return join_recorded();
  if (ticket >= begun_) return base::invalid_argument("operation ", ticket, " of rank ", rank(), " was never started");
  for (; waited_ <= ticket; ++waited_) {
    Slot &slot = at(waited_);
    TUTTI_TRY(enqueue(waited_ + 1, true));
    if (!slot.on_device) {
      TUTTI_TRY(inner_->wait(slot.inner));
      continue;
    }
    if (enqueuing_ == &slot) TUTTI_TRY(await_enqueued());
    if (slot.has_work) TUTTI_TRY(slot.operation.stream->wait(slot.done));
  }
  TUTTI_TRY(enqueue(begun_, false));
  return await_done(ticket - run_ahead);
}

Status DeviceRank::await_all() {
  if (begun_ == 0) return Status();
  TUTTI_TRY(wait(begun_ - 1));
  return await_done(begun_ - 1);
}

Status DeviceRank::settle() {
  if (held_ != nullptr) return settle_replay();
  TUTTI_TRY(await_all());
  // What this rank has passed, all have, or none.
  return shared_->spans_processes ? inner_->settle() : inner_->barrier("end of operations");
}

Status DeviceRank::await_held() {
  return await(held_, [&]() -> Result<bool> {
    if (shared_->hold->has_come()) return true;
    TUTTI_TRY(shared_->clique->poll(place()).status());
    return false;
  });
}

/// Nobody but this thread lets the device go, so what all workers have settled is done whatever ends meanwhile.
Status DeviceRank::settle_replay() {
  Status settled = await_held();
  if (settled.ok()) settled = inner_->settle();
  const Status recorded = let_go(settled.ok());
  if (!settled.ok()) shared_->end_operations();
  return settled.ok() ? recorded : settled;
}

/// While the device is held this thread calls nothing of the backend (StreamHold); so the event comes now.
Status DeviceRank::let_go(bool is_settled) {
  shared_->hold->let_go(is_settled);
  Slot &slot = *std::exchange(held_, nullptr);
  return slot.done.record(*slot.operation.stream);
}

Status DeviceRank::settle_own() {
  if (!shared_->spans_processes) return settle();
  TUTTI_TRY(await_all());
  const int64_t meeting = shared_->arrived[static_cast<size_t>(place())].fetch_add(1) + 1;
  return await(nullptr, [&]() -> Result<bool> {
    return std::ranges::all_of(shared_->arrived, [&](const auto &arrived) { return arrived.load() >= meeting; });
  });
}

Status DeviceRank::await_done(Ticket ticket) {
  if (held_ != nullptr && ticket == begun_ - 1) return await_held();
  const Ticket last = std::min(ticket, enqueued_ - 1);
  Ticket work = last;
  while (work > done_ && !at(work).has_work)
    --work;
  if (work > done_) TUTTI_TRY(await_work(at(work)));
  done_ = std::max(done_, last);
  return Status();
}

Status DeviceRank::await_work(Slot &slot) {
  if (enqueuing_ == &slot) TUTTI_TRY(await_enqueued());
  TUTTI_TRY(await(&slot, [&]() -> Result<bool> {
    if (slot.done.is_done()) return true;
    TUTTI_TRY(shared_->clique->poll(place()).status());
    return false;
  }));
  const Status done = slot.done.synchronize();
  return done.ok() ? done : fail(done);
}

/// `slot`: the operation that is waited for, or null for a meeting of this process.
template <typename Reached>
Status DeviceRank::await(const Slot *slot, Reached reached) {
  base::Deadline deadline;
  std::chrono::steady_clock::time_point begin;
  for (bool is_first = true;; is_first = false) {
    const Result<bool> is_reached = reached();
    if (!is_reached.ok()) return fail(is_reached.status());
    // An operation that was ended looks like one that is done.
    if (const Status ended = inner_->error(); !ended.ok()) {
      shared_->end_operations();  // nobody may have yet who was told by another process
      return ended;
    }
    if (*is_reached) return Status();
    if (is_first) {
      begin = std::chrono::steady_clock::now();
      const int64_t naming_ms = shared_->spans_processes && shared_->timeout_ms >= 0 ? kNamingMs : 0;
      deadline = base::Deadline::after_ms(shared_->timeout_ms + naming_ms);
    }
    if (deadline.passed() || !base::check(cancel_).ok()) return give_up(slot);
    back_off(begin);
  }
}

/// Gives the group up, unless somebody has before; then his reason counts.
Status DeviceRank::fail(const Status &error) {
  TUTTI_TRY(inner_->error());
  const Status named = error.with_detail("rank", std::to_string(rank()));
  abort(named);
  return named;
}

Status DeviceRank::give_up(const Slot *slot) {
  Status cause = base::check(cancel_);
  if (cause.ok() && slot == nullptr) {
    cause = base::deadline_exceeded("rank ", rank(), " waited ", shared_->timeout_ms,
                                    " ms for the other ranks of its process");
  } else if (cause.ok()) {
    const std::string missing = shared_->board.missing(slot->number);
    const std::string what = base::concat("rank ", rank(), " waited ", shared_->timeout_ms, " ms in ",
                                          name(slot->operation.kind), " '", slot->label.data(), "' for ");
    cause = missing.empty() ? base::deadline_exceeded(what, "the devices: all ranks have begun it")
                            : base::deadline_exceeded(what, "rank ", missing).with_detail("rank", missing);
  }
  abort(cause);
  return cause;
}

}  // namespace

Status check(std::span<const backend::DeviceRef> devices, int32_t parts, const DeviceGroupOptions &options) {
  if (parts != 1) {
    return base::unimplemented("each device has ", parts, " logical replicas, whose order of additions is fixed");
  }
  return backend::Clique::check(devices, options.of_clique());
}

Result<std::vector<std::unique_ptr<Group>>> connect(std::vector<std::unique_ptr<Group>> ranks,
                                                    std::span<const backend::DeviceRef> devices,
                                                    const DeviceGroupOptions &options) {
  if (ranks.size() != devices.size()) {
    return base::invalid_argument("a group of ", ranks.size(), " ranks on ", devices.size(), " devices");
  }
  TUTTI_TRY(check(devices, ranks.empty() ? 1 : ranks.front()->parts(), options));
  TUTTI_ASSIGN(std::unique_ptr<backend::Clique> clique,
               backend::Clique::connect(devices, options.of_clique(), options.timeout_ms));
  return connect_clique(std::move(ranks), devices, std::move(clique), options);
}

Result<std::vector<std::unique_ptr<Group>>> connect_clique(std::vector<std::unique_ptr<Group>> ranks,
                                                           std::span<const backend::DeviceRef> devices,
                                                           std::unique_ptr<backend::Clique> clique,
                                                           const DeviceGroupOptions &options) {
  const auto shared = std::make_shared<Shared>(std::move(clique), *ranks.front(), options);
  if (shared->spans_processes && ranks.size() == 1 && devices.front()->backend().holds_streams()) {
    TUTTI_ASSIGN(backend::StreamHold hold, backend::StreamHold::create(*devices.front()));
    shared->hold.emplace(std::move(hold));
  }
  for (size_t r = 0; r < ranks.size(); ++r) {
    auto rank = std::make_unique<DeviceRank>(std::move(ranks[r]), shared);
    TUTTI_TRY(rank->open(*devices[r]));
    ranks[r] = std::move(rank);
  }
  return ranks;
}

}  // namespace tutti::impl::collective::device

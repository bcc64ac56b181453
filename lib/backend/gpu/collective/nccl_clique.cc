// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/collective/nccl_clique.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "backend/gpu/runtime/runtime.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// How long ending communicators may take.
constexpr int64_t kEndingMs = 10000;

Result<ncclDataType_t> nccl_type(int32_t number) {
  switch (static_cast<DType>(number)) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::u8:
    case DType::boolean:
      return ncclUint8;
    case DType::i8:
      return ncclInt8;
    case DType::u32:
      return ncclUint32;
    case DType::u64:
      return ncclUint64;
    default:
      return base::unimplemented("NCCL has no elements of dtype ", tensor::name(static_cast<DType>(number)));
  }
}

ncclRedOp_t nccl_reduction(int32_t reduction) {
  if (reduction == TUTTI_REDUCTION_MAX) return ncclMax;
  return reduction == TUTTI_REDUCTION_MIN ? ncclMin : ncclSum;
}

const char *action_of(int32_t kind) {
  switch (kind) {
    case TUTTI_COLLECTIVE_ALL_REDUCE:
      return "reducing over devices";
    case TUTTI_COLLECTIVE_REDUCE_SCATTER:
      return "reducing and scattering over devices";
    case TUTTI_COLLECTIVE_ALL_GATHER:
      return "gathering from devices";
    default:
      return "copying to all devices";
  }
}

Status disconnected() { return base::aborted("the devices were disconnected"); }

/// Rank r owns the r-th of slices of one length that follow one another: NCCL has calls for that.
bool are_even(const tutti_collective &operation, size_t ranks) {
  if (static_cast<size_t>(operation.slice_count) != ranks) return false;
  const int64_t length = operation.slices[0].end - operation.slices[0].begin;
  for (int32_t r = 0; r < operation.slice_count; ++r) {
    const tutti_collective_slice &slice = operation.slices[r];
    if (slice.owner != r || slice.end - slice.begin != length || slice.begin != operation.slices[0].begin + r * length)
      return false;
  }
  return length > 0;
}

}  // namespace

/// A rank in a call. abort() waits for its end.
class NcclClique::Call {
 public:
  Call(const NcclClique &clique, Rank &rank) : rank_(rank) {
    rank_.in_call.store(true);
    is_allowed_ = !clique.aborted_.load();
  }
  ~Call() { rank_.in_call.store(false); }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  Status check() const { return is_allowed_ ? Status() : disconnected(); }

 private:
  Rank &rank_;
  bool is_allowed_;
};

NcclClique::NcclClique(const Nccl &nccl, size_t size, const tutti_backend_host *host)
    : nccl_(nccl), host_(host), ranks_(size) {
  if (size > 1) launches_ = std::make_unique<LaunchGate::Launches>(launch_gate(), size);
}

Result<std::unique_ptr<NcclClique>> NcclClique::connect(const Nccl &nccl, std::span<const int32_t> ordinals,
                                                        int64_t timeout_ms, const tutti_backend_host *log) {
  std::unique_ptr<NcclClique> clique(new NcclClique(nccl, ordinals.size(), log));
  for (size_t r = 0; r < ordinals.size(); ++r)
    clique->ranks_[r].ordinal = ordinals[r];
  clique->rank_count_ = ordinals.size();
  clique->timeout_ms_ = timeout_ms;
  const BetweenLaunches section;
  const Status status = clique->initialize(base::Deadline::after_ms(timeout_ms));
  if (status.ok()) return clique;
  clique->abort();
  return status;
}

Result<std::unique_ptr<NcclClique>> NcclClique::join(const Nccl &nccl, std::span<const int32_t> ordinals,
                                                     const ncclUniqueId &id, int32_t first_rank, int32_t rank_count,
                                                     const tutti_backend_host *log) {
  std::unique_ptr<NcclClique> clique(new NcclClique(nccl, ordinals.size(), log));
  for (size_t r = 0; r < ordinals.size(); ++r)
    clique->ranks_[r].ordinal = ordinals[r];
  clique->first_rank_ = first_rank;
  clique->rank_count_ = static_cast<size_t>(rank_count);
  const Status status = clique->begin(id);
  if (status.ok()) return clique;
  clique->abort();
  return status;
}

Status NcclClique::initialize(base::Deadline deadline) {
  ncclUniqueId id;
  TUTTI_TRY(status_of(nccl_, nccl_.ncclGetUniqueId(&id), "connecting devices"));
  TUTTI_TRY(begin(id));
  return await_all("connecting devices", deadline);
}

Status NcclClique::begin(const ncclUniqueId &id) {
  std::vector<int32_t> ordinals;
  for (const Rank &rank : ranks_)
    ordinals.push_back(rank.ordinal);
  return connecting_.begin(nccl_, ordinals, id, first_rank_, static_cast<int32_t>(rank_count_));
}

ncclComm_t NcclClique::take(Rank &rank) const {
  if (rank.communicator == nullptr)
    rank.communicator = connecting_.communicator(static_cast<size_t>(&rank - ranks_.data()));
  return rank.communicator;
}

Result<bool> NcclClique::is_idle(Rank &rank, std::string_view action) const {
  if (take(rank) == nullptr) {
    TUTTI_TRY(connecting_.check());
    return false;
  }
  ncclResult_t state = ncclSuccess;
  TUTTI_TRY(status_of(nccl_, nccl_.ncclCommGetAsyncError(rank.communicator, &state), action));
  TUTTI_TRY(status_of(nccl_, state, action));
  return state == ncclSuccess;
}

Status NcclClique::await_all(std::string_view action, base::Deadline deadline) {
  for (size_t r = 0; r < ranks_.size();) {
    const Result<bool> idle = is_idle(ranks_[r], action);
    if (!idle.ok()) return idle.status().with_detail("rank", std::to_string(r));
    if (*idle) {
      ++r;
      continue;
    }
    if (deadline.passed()) {
      return base::deadline_exceeded(action, ": rank ", r, " (GPU ", ranks_[r].ordinal, ") was not ready in time")
          .with_detail("rank", std::to_string(r));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Status();
}

template <typename Function>
Status NcclClique::for_all(std::string_view action, Function function) {
  TUTTI_TRY(status_of(nccl_, nccl_.ncclGroupStart(), action));
  Status first;
  for (Rank &rank : ranks_) {
    Status status = status_of(gpuSetDevice(rank.ordinal), "choosing the device");
    if (status.ok()) status = status_of(nccl_, function(rank), action);
    if (first.ok()) first = status;
  }
  const Status ended = status_of(nccl_, nccl_.ncclGroupEnd(), action);
  TUTTI_TRY(first);
  TUTTI_TRY(ended);
  return await_all(action, base::Deadline::after_ms(kEndingMs));
}

/// What blocks has no such call: to destroy it is all.
Status NcclClique::finalize() {
  if (nccl_.ncclCommFinalize == nullptr) return Status();
  return for_all("disconnecting devices", [&](Rank &rank) { return nccl_.ncclCommFinalize(rank.communicator); });
}

NcclClique::~NcclClique() {
  if (!aborted_.load()) disconnect();
  await_aborting();
}

void NcclClique::disconnect() {
  const bool is_connected =
      std::all_of(ranks_.begin(), ranks_.end(), [&](Rank &rank) { return take(rank) != nullptr; });
  if (!is_connected) return abort();
  {
    const BetweenLaunches section;
    for (size_t r = 0; r < ranks_.size(); ++r)
      deregister_memory(static_cast<int32_t>(r));
  }
  if (const Status status = finalize(); !status.ok()) {
    warn(status);
    return abort();
  }
  std::vector<Rank *> all;
  for (Rank &rank : ranks_)
    all.push_back(&rank);
  await(*begin_ending(all, nccl_.ncclCommDestroy), "disconnecting devices");
}

Status NcclClique::begin_captures() {
  if (ranks_.size() > 1)
    return base::unimplemented("graphs of several GPUs of one process may wait for each other to be launched");
  if (nccl_.ncclCommInitRankConfig == nullptr)
    return base::unimplemented("operations of blocking communicators cannot be captured");
  int version = 0;
  TUTTI_TRY(status_of(nccl_, nccl_.ncclGetVersion(&version), "querying its version"));
  TUTTI_TRY(platform::check_captures(version));
  has_captures_.store(true);
  return Status();
}

Status NcclClique::enqueue(int32_t rank, const tutti_collective &operation, gpuStream_t stream) {
  Rank &self = ranks_[static_cast<size_t>(rank)];
  const Call call(*this, self);
  TUTTI_TRY(call.check());
  TUTTI_TRY(status_of(gpuSetDevice(self.ordinal), "choosing the device"));
  if (launches_ != nullptr && !launches_->begin(static_cast<size_t>(rank))) return disconnected();
  return issue(self, rank, operation, stream);
}

Status NcclClique::issue(const Rank &rank, int32_t number, const tutti_collective &operation,
                         gpuStream_t stream) const {
  TUTTI_ASSIGN(const ncclDataType_t type, nccl_type(operation.dtype));
  const auto count = static_cast<size_t>(operation.count);
  const char *const action = action_of(operation.kind);
  switch (operation.kind) {
    case TUTTI_COLLECTIVE_ALL_REDUCE:
      return status_of(nccl_,
                       nccl_.ncclAllReduce(operation.memory, operation.memory, count, type,
                                           nccl_reduction(operation.reduction), rank.communicator, stream),
                       action);
    case TUTTI_COLLECTIVE_BROADCAST:
      return status_of(nccl_,
                       nccl_.ncclBroadcast(operation.memory, operation.memory, count, type, operation.root,
                                           rank.communicator, stream),
                       action);
    case TUTTI_COLLECTIVE_REDUCE_SCATTER:
    case TUTTI_COLLECTIVE_ALL_GATHER:
      break;
    default:
      return base::unimplemented("collective operation ", operation.kind);
  }
  if (!are_even(operation, rank_count_)) return issue_slices(rank, operation, stream);
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(static_cast<DType>(operation.dtype)));
  const int64_t length = operation.slices[0].end - operation.slices[0].begin;
  char *const all = static_cast<char *>(operation.memory) + operation.slices[0].begin * bytes;
  char *const own = all + (first_rank_ + number) * length * bytes;
  if (operation.kind == TUTTI_COLLECTIVE_ALL_GATHER) {
    return status_of(nccl_, nccl_.ncclAllGather(own, all, static_cast<size_t>(length), type, rank.communicator, stream),
                     action);
  }
  return status_of(nccl_,
                   nccl_.ncclReduceScatter(all, own, static_cast<size_t>(length), type,
                                           nccl_reduction(operation.reduction), rank.communicator, stream),
                   action);
}

/// Slice by slice, as one call.
Status NcclClique::issue_slices(const Rank &rank, const tutti_collective &operation, gpuStream_t stream) const {
  TUTTI_ASSIGN(const ncclDataType_t type, nccl_type(operation.dtype));
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(static_cast<DType>(operation.dtype)));
  const char *const action = action_of(operation.kind);
  TUTTI_TRY(status_of(nccl_, nccl_.ncclGroupStart(), action));
  Status first;
  for (int32_t s = 0; s < operation.slice_count; ++s) {
    const tutti_collective_slice &slice = operation.slices[s];
    const auto count = static_cast<size_t>(slice.end - slice.begin);
    char *const memory = static_cast<char *>(operation.memory) + slice.begin * bytes;
    if (count == 0) continue;
    const Status status =
        status_of(nccl_,
                  operation.kind == TUTTI_COLLECTIVE_ALL_GATHER
                      ? nccl_.ncclBroadcast(memory, memory, count, type, slice.owner, rank.communicator, stream)
                      : nccl_.ncclReduce(memory, memory, count, type, nccl_reduction(operation.reduction), slice.owner,
                                         rank.communicator, stream),
                  action);
    if (first.ok()) first = status;
  }
  const Status ended = status_of(nccl_, nccl_.ncclGroupEnd(), action);
  return first.ok() ? ended : first;
}

Result<bool> NcclClique::poll(int32_t rank) {
  Rank &self = ranks_[static_cast<size_t>(rank)];
  const Call call(*this, self);
  TUTTI_TRY(call.check());
  TUTTI_ASSIGN(const bool idle, is_idle(self, "combining devices"));
  if (idle && launches_ != nullptr) launches_->launched(static_cast<size_t>(rank));
  return idle;
}

bool NcclClique::register_memory(int32_t rank, void *memory, size_t bytes) {
  if (nccl_.ncclCommRegister == nullptr || nccl_.ncclCommDeregister == nullptr) return false;
  Rank &self = ranks_[static_cast<size_t>(rank)];
  const BetweenLaunches section;  // before the call, for whose end abort() waits
  const Call call(*this, self);
  if (!call.check().ok()) return false;
  void *handle = nullptr;
  Status status = status_of(gpuSetDevice(self.ordinal), "choosing the device");
  if (status.ok())
    status = status_of(nccl_, nccl_.ncclCommRegister(self.communicator, memory, bytes, &handle), "registering memory");
  warn(status);
  if (handle != nullptr) self.registrations.push_back(handle);
  return handle != nullptr;  // null: the library sees no use in it
}

Status NcclClique::register_windows(void *const *memory, size_t bytes) {
  if (rank_count_ != ranks_.size()) return base::unimplemented("windows between processes are not supported");
  if (!nccl_.has_windows()) return base::unimplemented("this NCCL has no windows: they need NCCL 2.27");
  const BetweenLaunches section;
  const Status opened = open_windows(memory, bytes);
  if (opened.ok() || opened.code() == base::Code::unimplemented) return opened;
  // What went wrong may keep the communicators from anything else.
  if (const Status connected = reconnect(); !connected.ok()) {
    warn(connected);
    abort();
  }
  return opened;
}

Status NcclClique::open_windows(void *const *memory, size_t bytes) {
  constexpr int kSameOnAllRanks = 1;  // NCCL_WIN_COLL_SYMMETRIC
  TUTTI_TRY(for_all("making windows to memory", [&](Rank &rank) {
    return nccl_.ncclCommWindowRegister(rank.communicator, memory[&rank - ranks_.data()], bytes, &rank.window,
                                        kSameOnAllRanks);
  }));
  for (const Rank &rank : ranks_) {
    if (rank.window != nullptr) continue;
    TUTTI_TRY(close_windows());
    return base::unimplemented("NCCL does not support windows between these GPUs");
  }
  return Status();
}

Status NcclClique::close_windows() {
  const bool has_some = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank &rank) { return rank.window; });
  if (!has_some) return Status();
  return for_all("closing windows to memory", [&](Rank &rank) {
    void *const window = std::exchange(rank.window, nullptr);
    return window == nullptr ? ncclSuccess : nccl_.ncclCommWindowDeregister(rank.communicator, window);
  });
}

Status NcclClique::reconnect() {
  for (Rank &rank : ranks_) {
    rank.window = nullptr;
    if (rank.communicator != nullptr) warn(status_of(nccl_, nccl_.ncclCommAbort(rank.communicator), "aborting"));
    rank.communicator = nullptr;
  }
  connecting_.forget();
  return initialize(base::Deadline::after_ms(timeout_ms_));
}

void NcclClique::deregister_memory(int32_t rank) {
  Rank &self = ranks_[static_cast<size_t>(rank)];
  // What was aborted has no windows any more.
  std::optional<BetweenLaunches> section;
  if (!aborted_.load()) section.emplace();
  const bool is_last = !self.has_left.exchange(true) && ranks_left_.fetch_add(1) + 1 == ranks_.size();
  if (is_last && !aborted_.load()) warn(close_windows());
  const Call call(*this, self);
  // A communicator that was aborted has no registrations any more.
  for (void *const handle : self.registrations) {
    if (call.check().ok())
      warn(status_of(nccl_, nccl_.ncclCommDeregister(self.communicator, handle), "deregistering memory"));
  }
  self.registrations.clear();
}

void NcclClique::abort() {
  if (aborted_.exchange(true)) return;
  if (launches_ != nullptr) launches_->close();
  const base::Deadline deadline = base::Deadline::after_ms(kEndingMs);
  // Who is out of a call once stays out: the next is refused, although it looks like one for a moment.
  std::vector<char> is_out(ranks_.size(), 0);
  for (size_t r = 0; r < ranks_.size(); ++r) {
    while ((is_out[r] = ranks_[r].in_call.load() ? 0 : 1) == 0 && !deadline.passed())
      std::this_thread::yield();
  }
  connecting_.give_up();
  // NCCL keeps the memory of all until the last was aborted: one that hangs in a call goes on with what is there.
  std::vector<Rank *> out;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Rank &rank = ranks_[r];
    if (is_out[r] == 0) {
      warn(base::internal_error("aborting: a call of NCCL for GPU ", rank.ordinal, " does not return"));
    } else if (take(rank) != nullptr) {
      out.push_back(&rank);
    }
  }
  const std::shared_ptr<Ending> aborting = begin_ending(out, nccl_.ncclCommAbort);
  if (!has_captures_.load()) {
    await(*aborting, "aborting");
    if (launches_ != nullptr) launches_->end();
    return;
  }
  // NCCL waits for graphs to end, too, and whoever is to end them may be who calls this.
  const std::lock_guard lock(aborting_mutex_);
  aborting_ = aborting;
}

void NcclClique::await_aborting() {
  const std::lock_guard lock(aborting_mutex_);
  if (aborting_ != nullptr) await(*std::exchange(aborting_, nullptr), "aborting");
}

struct NcclClique::Ending {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  std::vector<std::pair<int32_t, ncclComm_t>> communicators;  // and their GPUs
  std::vector<ncclResult_t> results;
};

/// NCCL first tells the devices to end, and then may wait for ranks of other processes to do the same, of which one may
/// be stopped: then it is left to that.
std::shared_ptr<NcclClique::Ending> NcclClique::begin_ending(const std::vector<Rank *> &ranks, End function) const {
  const auto ending = std::make_shared<Ending>();
  for (const Rank *const rank : ranks)
    ending->communicators.emplace_back(rank->ordinal, rank->communicator);
  const auto end_all = [ending, function, is_whole = is_whole()] {
    // Nobody is kept waiting here for other processes.
    std::optional<BetweenLaunches> section;
    if (is_whole) section.emplace(launch_gate(), LaunchGate::Kind::ending);
    std::vector<ncclResult_t> results;
    for (const auto &[ordinal, communicator] : ending->communicators) {
      (void)gpuSetDevice(ordinal);  // NCCL goes back to the current one: no other GPU is touched for that
      results.push_back(function(communicator));
    }
    const std::lock_guard lock(ending->mutex);
    ending->results = std::move(results);
    ending->is_over = true;
    ending->changed.notify_all();
  };
  try {
    std::thread(end_all).detach();
  } catch (const std::system_error &) {
    end_all();  // the system has no thread for it
  }
  return ending;
}

void NcclClique::await(Ending &ending, std::string_view action) const {
  std::unique_lock lock(ending.mutex);
  if (!ending.changed.wait_for(lock, std::chrono::milliseconds(kEndingMs), [&] { return ending.is_over; }))
    return warn(base::deadline_exceeded(action, ": NCCL still waits for the GPUs of other processes"));
  for (const ncclResult_t result : ending.results)
    warn(status_of(nccl_, result, action));
}

void NcclClique::warn(const Status &status) const {
  if (!status.ok()) host_->log(host_->user, kWarning, status.to_string().c_str());
}

}  // namespace tutti::impl::backend::gpu

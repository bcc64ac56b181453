// SPDX-License-Identifier: Apache-2.0
//
// Communicators over emulated streams, of one process or several (world.h). Each call is a piece of work on the rank's
// stream: it arrives when all before it on that stream is done, and the last rank to arrive carries it out for all.
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "backend/gpu/nccl.h"
#include "ordered_fault.h"
#include "streams.h"
#include "tensor/half.h"
#include "world.h"

using namespace tutti_gpu_emulator;

namespace {

enum class Kind { all_reduce, reduce, broadcast, reduce_scatter, all_gather };

[[noreturn]] void give_up(const char *what) {
  std::fprintf(stderr, "emulated NCCL: %s\n", what);
  std::abort();
}

const char *name_of(Kind kind) {
  constexpr const char *kNames[] = {"all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather"};
  return kNames[static_cast<int>(kind)];
}

/// Each addition is rounded, as the library does it.
struct Bfloat16 {
  tutti::impl::tensor::BFloat16 number;
  friend Bfloat16 operator+(Bfloat16 a, Bfloat16 b) {
    return {tutti::impl::tensor::BFloat16(static_cast<float>(a.number) + static_cast<float>(b.number))};
  }
  friend bool operator>(Bfloat16 a, Bfloat16 b) { return static_cast<float>(a.number) > static_cast<float>(b.number); }
  friend bool operator!=(Bfloat16 a, Bfloat16 b) {
    return static_cast<float>(a.number) != static_cast<float>(b.number);
  }
};

/// One rank's call.
struct Call {
  Kind kind;
  const void *from;
  void *to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  int root;

  bool agrees(const Call &other) const {
    return kind == other.kind && count == other.count && type == other.type && reduction == other.reduction &&
           root == other.root;
  }
};

/// The calls of all ranks with one number.
struct Meeting {
  std::map<int, Call> calls;
  std::map<int, std::pair<std::shared_ptr<Lane>, uint64_t>> places;  // of the work on their streams
  std::map<int, bool> arrived;
  bool is_asking = false, is_done = false;
};

struct Clique {
  size_t ranks = 0;
  size_t own_ranks = 0;  // of this process
  std::shared_ptr<World> world;
  Fault fault;
  bool is_aborted = false;
  bool is_connected_at_once = false;  // all there is to connect, by the call that makes the communicators
  bool is_broken = false;             // by a registration that failed
  std::map<int64_t, Meeting> meetings;
  std::map<int, size_t> offered;  // bytes of windows, by rank, in the group of calls under way

  bool spans_processes() const { return own_ranks < ranks; }
  bool arrive(int rank, int64_t number);
  bool arrive_in_world(int rank, int64_t number);
};

size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

size_t to_count(const Meeting &meeting, size_t ranks) {
  const Call &call = meeting.calls.begin()->second;
  return call.kind == Kind::all_gather ? call.count * ranks : call.count;
}

template <typename T>
void reduce(const Meeting &meeting, size_t ranks, size_t total) {
  const Call &first = meeting.calls.begin()->second;
  std::vector<T> result(total);
  for (size_t i = 0; i < total; ++i) {
    const size_t start = i * ranks / total;  // each part of the ring begins somewhere else
    for (size_t step = 0; step < ranks; ++step) {
      const int rank = static_cast<int>((start + 1 + step) % ranks);
      const T value = static_cast<const T *>(meeting.calls.at(rank).from)[i];
      if (step == 0) {
        result[i] = value;
      } else if (first.reduction == ncclSum) {
        result[i] = static_cast<T>(result[i] + value);
      } else if (result[i] != result[i] || (first.reduction == ncclMax ? value > result[i] : result[i] > value)) {
        result[i] = value;  // a NaN is forgotten, as fmax and fmin do
      }
    }
  }
  for (const auto &[rank, call] : meeting.calls) {
    if (call.kind == Kind::reduce && rank != call.root) continue;
    const size_t begin = call.kind == Kind::reduce_scatter ? static_cast<size_t>(rank) * call.count : 0;
    std::memcpy(call.to, result.data() + begin, call.count * sizeof(T));
  }
}

void reduce_any(const Meeting &meeting, size_t ranks) {
  const Call &call = meeting.calls.begin()->second;
  const size_t total = call.kind == Kind::reduce_scatter ? call.count * ranks : call.count;
  switch (call.type) {
    case ncclFloat32:
      return reduce<float>(meeting, ranks, total);
    case ncclBfloat16:
      return reduce<Bfloat16>(meeting, ranks, total);
    case ncclFloat64:
      return reduce<double>(meeting, ranks, total);
    case ncclInt32:
      return reduce<int32_t>(meeting, ranks, total);
    case ncclInt64:
      return reduce<int64_t>(meeting, ranks, total);
    case ncclUint8:
      return reduce<uint8_t>(meeting, ranks, total);
    default:
      give_up("a reduction of a type that is not emulated");
  }
}

void copy(const Meeting &meeting) {
  const size_t bytes = meeting.calls.begin()->second.count * bytes_of(meeting.calls.begin()->second.type);
  std::map<int, std::vector<char>> sent;
  for (const auto &[rank, call] : meeting.calls)
    sent[rank].assign(static_cast<const char *>(call.from), static_cast<const char *>(call.from) + bytes);
  for (const auto &[rank, call] : meeting.calls) {
    if (call.kind == Kind::broadcast) {
      std::memcpy(call.to, sent[call.root].data(), bytes);
      continue;
    }
    for (const auto &[from, data] : sent)
      std::memcpy(static_cast<char *>(call.to) + static_cast<size_t>(from) * bytes, data.data(), bytes);
  }
}

/// A call as it is compared with those of other processes.
std::vector<char> header_of(const Call &call) {
  const int64_t words[] = {static_cast<int64_t>(call.kind), static_cast<int64_t>(call.count), call.type,
                           static_cast<int64_t>(call.reduction), call.root};
  std::vector<char> bytes(sizeof words);
  std::memcpy(bytes.data(), words, sizeof words);
  return bytes;
}

/// Ranks of other processes bring copies of what they have. One that makes another call waits for ever, as they do.
bool Clique::arrive_in_world(int rank, int64_t number) {
  const Call &own = meetings[number].calls.at(rank);
  const size_t from_count = own.kind == Kind::reduce_scatter ? own.count * ranks : own.count;
  const std::vector<char> header = header_of(own);
  if (!meetings[number].arrived[rank]) {
    const size_t length = from_count * bytes_of(own.type);
    std::vector<char> bytes(header.size() + length);
    std::copy(header.begin(), header.end(), bytes.begin());
    std::memcpy(bytes.data() + header.size(), own.from, length);
    world->give(rank, number, bytes);
    meetings[number].arrived[rank] = true;
  }
  const std::vector<std::vector<char>> brought = world->take(number);
  if (brought.empty()) return false;
  std::vector<char> unused(from_count * ranks * bytes_of(own.type));
  Meeting all;
  for (size_t r = 0; r < ranks; ++r) {
    if (brought[r].size() < header.size() || !std::equal(header.begin(), header.end(), brought[r].begin()))
      return false;
    Call &call = all.calls[static_cast<int>(r)] = own;
    call.from = brought[r].data() + header.size();
    if (static_cast<int>(r) != rank) call.to = unused.data();
  }
  if (own.kind == Kind::broadcast || own.kind == Kind::all_gather) {
    copy(all);
  } else {
    reduce_any(all, ranks);
  }
  if (number > 0) world->forget(rank, number - 1);
  write_journal("done", static_cast<size_t>(number));
  work_changed().notify_all();
  return true;
}

bool Clique::arrive(int rank, int64_t number) {
  Meeting &meeting = meetings[number];
  const bool is_late = fault.kind == "late" && rank == fault.rank && number == fault.number;
  if (meeting.is_done && !is_late) return true;
  if (is_aborted) {
    const Call &call = meeting.calls.at(rank);
    std::memset(call.to, 0xFF, to_count(meeting, ranks) * bytes_of(call.type));
    return true;
  }
  if (meeting.is_done || (rank == fault.rank && number == fault.number && !is_late)) return false;
  if (spans_processes()) return arrive_in_world(rank, number);
  meeting.arrived[rank] = true;
  if (meeting.is_asking) return false;
  meeting.is_asking = true;
  for (const auto &[other, place] : meeting.places) {
    if (!meeting.arrived.contains(other)) (void)place.first->advance_to(place.second);
  }
  meeting.is_asking = false;
  if (meeting.arrived.size() < ranks) return false;
  const Kind kind = meeting.calls.begin()->second.kind;
  if (kind == Kind::broadcast || kind == Kind::all_gather) {
    copy(meeting);
  } else {
    reduce_any(meeting, ranks);
  }
  meeting.is_done = true;
  write_journal("done", static_cast<size_t>(number));
  work_changed().notify_all();
  return !is_late;
}

std::map<std::string, std::weak_ptr<Clique>> &cliques() {
  static std::map<std::string, std::weak_ptr<Clique>> made;
  return made;
}

thread_local int group_depth = 0;
thread_local std::vector<ncclComm_t> group_members;

/// What windows may be made to.
std::set<const void *> &window_memory() {
  static std::set<const void *> memory;
  return memory;
}

}  // namespace

struct EmulatedCommunicator {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  int64_t calls = 0;                              // numbers given
  std::vector<std::pair<gpuStream_t, Call>> due;  // not yet on their streams
  int questions = 0;                              // until it is not in progress any more
  bool is_finalized = false, is_connected = false;
  std::set<const void *> registered, windows;
  void **window_due = nullptr;  // where the address goes when it is not in progress any more
  void *window = nullptr;
  std::shared_ptr<Lane> lane;
  uint64_t position = 0;  // of its last work

  EmulatedCommunicator() = default;
  EmulatedCommunicator(const EmulatedCommunicator &) = delete;
  ~EmulatedCommunicator() { clique->world->leave(rank); }

  void forget(const void *memory) {
    registered.erase(memory);
    windows.erase(memory);
    registered_memory().erase(registered_memory().find(memory));
  }
  bool is_busy() const { return questions > 0 || !due.empty(); }
  bool has_failed() const { return clique->fault.kind == "error" && clique->fault.rank == rank && calls > fault_at(); }
  int64_t fault_at() const { return clique->fault.number; }
  /// The first call of a rank waits for all, where it connects the rest.
  bool all_have_called() const {
    if (clique->is_connected_at_once) return true;
    if (clique->spans_processes()) return clique->world->all_have_reached("called");
    const auto first = clique->meetings.find(0);
    return first != clique->meetings.end() && first->second.calls.size() == clique->ranks;
  }
  void put_on_streams();
};

void EmulatedCommunicator::put_on_streams() {
  const int64_t first = calls - static_cast<int64_t>(due.size());
  for (size_t i = 0; i < due.size(); ++i) {
    const int64_t number = first + static_cast<int64_t>(i);
    issue(due[i].first, [kept = clique, r = rank, number] { return kept->arrive(r, number); });
    lane = due[i].first->lane;
    position = lane->issued;
    if (clique->spans_processes()) keep_going(lane);
    clique->meetings[number].places[rank] = {lane, position};
  }
  due.clear();
  work_changed().notify_all();
}

namespace {

ncclResult_t call(ncclComm_t communicator, gpuStream_t stream, const Call &made) {
  const std::lock_guard guard(work_lock());
  const bool same_group = group_depth > 0 && !communicator->due.empty();
  if (communicator->is_busy() && !same_group) return ncclInvalidArgument;
  if (stream->device != communicator->device) give_up("a stream of another device");
  if (stream->capture) give_up("an operation that is captured");
  if (communicator->clique->is_aborted || communicator->is_finalized) return ncclInvalidUsage;
  Meeting &meeting = communicator->clique->meetings[communicator->calls];
  if (!meeting.calls.empty() && !meeting.calls.begin()->second.agrees(made)) give_up("ranks that do not agree");
  meeting.calls[communicator->rank] = made;
  const bool is_first = communicator->calls == 0 && communicator->clique->spans_processes();
  if (is_first) communicator->clique->world->reach("called", communicator->rank);
  ++communicator->calls;
  write_journal(name_of(made.kind), made.count * bytes_of(made.type));
  communicator->due.emplace_back(stream, made);
  communicator->questions = 1;
  return ncclInProgress;
}

}  // namespace

ncclResult_t ncclGetVersion(int *version) {
  *version = ordered_fault().kind == "newer" ? 22705 : 21400;
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "an emulated error";
}
const char *ncclGetLastError(ncclComm_t) { return "as ordered"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  const std::lock_guard guard(work_lock());
  if (ordered_fault().kind == "noid") return ncclSystemError;
  std::memset(id->internal, 0, sizeof id->internal);
  const std::string folder = World::make_folder();
  std::memcpy(id->internal, folder.data(), std::min(folder.size(), sizeof id->internal - 1));
  return ncclSuccess;
}

static ncclResult_t begin(ncclComm_t *communicator, int ranks, const ncclUniqueId &id, int rank, bool is_at_once) {
  const std::string folder = id.internal;
  std::shared_ptr<Clique> clique = cliques()[folder].lock();
  if (clique == nullptr) {
    clique = std::make_shared<Clique>();
    clique->ranks = static_cast<size_t>(ranks);
    clique->fault = ordered_fault();
    clique->world = std::make_shared<World>(folder, ranks);
    clique->is_connected_at_once = is_at_once;
    cliques()[folder] = clique;
  }
  ++clique->own_ranks;
  clique->world->reach("rank", rank);
  *communicator = new EmulatedCommunicator;
  (*communicator)->clique = clique;
  (*communicator)->rank = rank;
  (*communicator)->device = current_device();
  (*communicator)->questions = 3;
  return ncclInProgress;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  const std::lock_guard guard(work_lock());
  if (config->blocking != 0 || group_depth == 0) give_up("a communicator that blocks");
  return begin(communicator, ranks, id, rank, false);
}

ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank) {
  const std::lock_guard guard(work_lock());
  if (group_depth == 0) give_up("ranks of one process that are not connected together");
  return begin(communicator, ranks, id, rank, true);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *error) {
  const std::lock_guard guard(work_lock());
  *error = ncclInProgress;
  if (communicator->clique->fault.kind == "busy") return ncclSuccess;
  if (communicator->clique->is_broken) {
    *error = ncclSystemError;
    return ncclSuccess;
  }
  if (communicator->clique->fault.kind == "refuse") {
    *error = ncclSystemError;
    return ncclSuccess;
  }
  if (communicator->has_failed()) {
    *error = ncclRemoteError;
    return ncclSuccess;
  }
  if (communicator->questions > 0) {
    --communicator->questions;
    return ncclSuccess;
  }
  if (!communicator->is_connected) {
    communicator->is_connected = communicator->clique->world->all_have_reached("rank");
    return ncclSuccess;
  }
  if (communicator->window_due != nullptr) {
    const std::string &kind = communicator->clique->fault.kind;
    communicator->clique->is_broken = kind == "badwindow";
    if (kind == "badwindow") {
      *error = ncclSystemError;
      return ncclSuccess;
    }
    // A rank without windows is enough for all to have none.
    *communicator->window_due = kind == "windowless" && communicator->rank != 0 ? nullptr : communicator->window;
    if (*communicator->window_due != nullptr) {
      communicator->registered.insert(communicator->window);
      communicator->windows.insert(communicator->window);
      registered_memory().insert(communicator->window);
    }
    communicator->window_due = nullptr;
  }
  if (!communicator->due.empty()) {
    const bool is_first = static_cast<int64_t>(communicator->due.size()) == communicator->calls;
    if (is_first && !communicator->all_have_called()) return ncclSuccess;
    communicator->put_on_streams();
  }
  *error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const std::lock_guard guard(work_lock());
  if (communicator->is_busy()) give_up("a communicator is finalized while it is busy");
  if (!communicator->registered.empty()) give_up("a communicator is finalized while memory is registered with it");
  if (communicator->lane != nullptr && communicator->lane->done < communicator->position)
    give_up("a communicator is finalized before its operations are done");
  communicator->is_finalized = true;
  communicator->questions = 2;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const std::lock_guard guard(work_lock());
  if (!communicator->is_finalized || communicator->is_busy()) give_up("a communicator is destroyed too early");
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::lock_guard guard(work_lock());
  communicator->clique->is_aborted = true;
  while (!communicator->registered.empty())
    communicator->forget(*communicator->registered.begin());
  delete communicator;
  work_changed().notify_all();
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t communicator, void *memory, size_t bytes, void **handle) {
  const std::lock_guard guard(work_lock());
  if (communicator->is_busy()) return ncclInvalidUsage;
  if (communicator->device != current_device()) give_up("memory of another device is registered");
  if (!communicator->registered.insert(memory).second) give_up("memory is registered twice");
  registered_memory().insert(memory);
  write_journal("register", bytes);
  *handle = memory;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t communicator, void *handle) {
  const std::lock_guard guard(work_lock());
  if (!communicator->registered.contains(handle)) return ncclInvalidArgument;
  communicator->forget(handle);
  write_journal("deregister", 0);
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
  const std::lock_guard guard(work_lock());
  if (gpuMalloc(memory, bytes) != gpuSuccess) return ncclSystemError;
  window_memory().insert(*memory);
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void *memory) {
  const std::lock_guard guard(work_lock());
  if (window_memory().erase(memory) == 0) give_up("memory of another allocator is freed");
  return gpuFree(memory) == gpuSuccess ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t communicator, void *memory, size_t bytes, void **window, int flags) {
  const std::lock_guard guard(work_lock());
  if (group_depth == 0) give_up("one process makes windows of all its GPUs in one group of calls");
  if (!window_memory().contains(memory) || flags != 1) return ncclInvalidArgument;
  if (communicator->is_busy() || communicator->calls > 0) return ncclInvalidUsage;
  if (communicator->device != current_device()) give_up("a window to memory of another device");
  communicator->clique->offered[communicator->rank] = bytes;
  communicator->window_due = window;
  communicator->window = memory;
  communicator->questions = 2;
  group_members.push_back(communicator);
  write_journal("window", bytes);
  return ncclInProgress;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t communicator, void *window) {
  const std::lock_guard guard(work_lock());
  if (group_depth == 0) give_up("a window is closed by one rank alone");
  if (!communicator->windows.contains(window)) return ncclInvalidArgument;
  if (communicator->lane != nullptr && communicator->lane->done < communicator->position)
    give_up("a window is closed before the operations are done");
  communicator->forget(window);
  write_journal("window_end", 0);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group_depth-- == 0) return ncclInvalidUsage;
  const std::lock_guard guard(work_lock());
  if (group_depth == 0 && !group_members.empty()) {
    std::map<int, size_t> &offered = group_members.front()->clique->offered;
    if (offered.size() != group_members.front()->clique->ranks) give_up("a rank makes no window");
    for (const auto &[rank, bytes] : offered) {
      if (bytes != offered.begin()->second) give_up("windows of different size");
    }
    offered.clear();
    group_members.clear();
  }
  return ncclInProgress;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t communicator, gpuStream_t stream) {
  return call(communicator, stream, {Kind::all_reduce, from, to, count, type, reduction, 0});
}
ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t reduction, int root,
                        ncclComm_t communicator, gpuStream_t stream) {
  return call(communicator, stream, {Kind::reduce, from, to, count, type, reduction, root});
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, gpuStream_t stream) {
  return call(communicator, stream, {Kind::broadcast, from, to, count, type, ncclSum, root});
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                               ncclComm_t communicator, gpuStream_t stream) {
  return call(communicator, stream, {Kind::reduce_scatter, from, to, count, type, reduction, 0});
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           gpuStream_t stream) {
  return call(communicator, stream, {Kind::all_gather, from, to, count, type, ncclSum, 0});
}

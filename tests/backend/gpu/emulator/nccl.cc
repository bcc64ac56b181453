// SPDX-License-Identifier: Apache-2.0
//
// Communicators over emulated streams, of one process or several (world.h). Each call is a piece of work on the rank's
// stream: it arrives when all before it on that stream is done, and the last rank to arrive carries it out for all.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "backend/gpu/collective/nccl.h"
#include "driver.h"
#include "host_call.h"
#include "nccl_calls.h"
#include "ordered_fault.h"
#include "streams.h"
#include "world.h"

using namespace tutti_gpu_emulator;

namespace {

struct Clique {
  size_t ranks = 0;
  size_t own_ranks = 0;  // of this process
  std::shared_ptr<World> world;
  Fault fault;
  bool is_aborted = false;
  bool is_connected_at_once = false;  // all there is to connect, by the call that makes the communicators
  bool is_broken = false;             // by a registration that failed
  std::map<int64_t, Meeting> meetings;
  std::map<int, int64_t> calls;                                    // numbers given, by rank
  std::map<int, std::pair<std::shared_ptr<Lane>, uint64_t>> last;  // work on a stream, by rank
  std::map<int, size_t> offered;  // bytes of windows, by rank, in the group of calls under way

  bool spans_processes() const { return own_ranks < ranks; }
  /// A rank's call is the next work on a stream.
  void place(int rank, int64_t number, const std::shared_ptr<Lane> &lane);
  bool arrive(int rank, int64_t number);
  bool is_slow(int rank, int64_t number);
  bool arrive_in_world(int rank, int64_t number);
};

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
    if (!has_header(brought[r], header)) return false;
    Call &call = all.calls[static_cast<int>(r)] = own;
    call.from = brought[r].data() + header.size();
    if (static_cast<int>(r) != rank) call.to = unused.data();
  }
  carry_out(all, ranks);
  if (number > 0) world->forget(rank, number - 1);
  write_journal("done", static_cast<size_t>(number));
  work_changed().notify_all();
  return true;
}

bool Clique::is_slow(int rank, int64_t number) {
  if (fault.kind != "slow" || rank != fault.rank) return false;
  const auto now = std::chrono::steady_clock::now();
  const auto begun = meetings[number].begun.emplace(rank, now).first->second;
  return now < begun + std::chrono::milliseconds(fault.number);
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
  const bool is_stopped = fault.kind == "stall" || fault.kind == "error";
  const bool never_arrives = is_stopped && rank == fault.rank && number == fault.number;
  if (meeting.is_done || never_arrives || is_slow(rank, number)) return false;
  if (spans_processes()) return arrive_in_world(rank, number);
  meeting.arrived[rank] = true;
  if (meeting.is_asking) return false;
  meeting.is_asking = true;
  for (const auto &[other, place] : meeting.places) {
    if (!meeting.arrived.contains(other)) (void)place.first->advance_to(place.second);
  }
  meeting.is_asking = false;
  if (meeting.arrived.size() < ranks) return false;
  carry_out(meeting, ranks);
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
  std::vector<std::pair<gpuStream_t, Call>> due;  // not yet on their streams
  std::chrono::steady_clock::time_point called_at;
  int64_t captured = 0;  // calls
  std::shared_ptr<int> in_graphs = std::make_shared<int>();
  int questions = 0;  // until it is not in progress any more
  bool is_finalized = false, is_connected = false;
  std::map<const void *, size_t> registered;  // bytes, those of windows included
  std::set<const void *> windows;
  void **window_due = nullptr;  // where the address goes when it is not in progress any more
  void *window = nullptr;
  size_t window_bytes = 0;

  EmulatedCommunicator() = default;
  EmulatedCommunicator(const EmulatedCommunicator &) = delete;
  ~EmulatedCommunicator() { clique->world->leave(rank); }

  void forget(const void *memory) {
    registered.erase(memory);
    windows.erase(memory);
    registered_memory().erase(registered_memory().find(memory));
  }
  bool is_busy() const { return questions > 0 || !due.empty(); }
  bool has_failed() const {
    return clique->fault.kind == "error" && clique->fault.rank == rank && calls() > fault_at();
  }
  int64_t fault_at() const { return clique->fault.number; }
  int64_t calls() const { return clique->calls[rank]; }
  /// Of those that are not in graphs.
  bool are_done() const {
    const auto last = clique->last.find(rank);
    return last == clique->last.end() || last->second.first->done >= last->second.second;
  }
  bool lags() const {
    return clique->fault.kind == "lag" && clique->fault.rank == rank &&
           std::chrono::steady_clock::now() < called_at + std::chrono::milliseconds(fault_at());
  }
  bool is_in_graphs() const { return in_graphs.use_count() > 1; }
  int64_t place_of(const Call &made) const;
  /// The first call of a rank waits for all, where it connects the rest.
  bool all_have_called() const {
    if (clique->is_connected_at_once) return true;
    if (clique->spans_processes()) return clique->world->all_have_reached("called");
    const auto first = clique->meetings.find(0);
    return first != clique->meetings.end() && first->second.calls.size() == clique->ranks;
  }
  void put_on_streams();
};

void Clique::place(int rank, int64_t number, const std::shared_ptr<Lane> &lane) {
  last[rank] = meetings[number].places[rank] = {lane, lane->issued + 1};
  if (spans_processes()) keep_going(lane);
  if (fault.kind != "slow") return;
  for (const std::weak_ptr<Lane> &known : known_lanes())
    if (const std::shared_ptr<Lane> one = known.lock()) keep_going(one);
}

/// Of all that a call in place reads and writes.
int64_t EmulatedCommunicator::place_of(const Call &made) const {
  const auto begin = std::min(reinterpret_cast<uintptr_t>(made.from), reinterpret_cast<uintptr_t>(made.to));
  const bool is_sliced = made.kind == Kind::all_gather || made.kind == Kind::reduce_scatter;
  const size_t bytes = made.count * bytes_of(made.type) * (is_sliced ? clique->ranks : 1);
  for (const auto &[memory, length] : registered) {
    const auto first = reinterpret_cast<uintptr_t>(memory);
    if (begin < first || begin >= first + length) continue;
    if (begin + bytes > first + length) give_up("an operation goes beyond memory that is registered");
    return static_cast<int64_t>(begin - first);
  }
  return -1;
}

void EmulatedCommunicator::put_on_streams() {
  const int64_t waiting = std::ranges::count_if(due, [](const auto &one) { return one.second.captured == 0; });
  int64_t number = calls() - waiting;
  for (const auto &[stream, made] : due) {
    if (made.captured == 0) {
      clique->place(rank, number, stream->lane);
      issue(stream, [kept = clique, r = rank, n = number++] { return kept->arrive(r, n); });
      continue;
    }
    // Each launch of the graph is another operation.
    add_to_capture(*stream,
                   [kept = clique, r = rank, one = made, token = in_graphs](const std::shared_ptr<Lane> &lane) {
                     const int64_t next = kept->calls[r]++;
                     kept->meetings[next].calls[r] = one;
                     write_journal(name_of(one.kind), one.count * bytes_of(one.type));
                     kept->place(r, next, lane);
                     return Work([kept, r, next, token] { return kept->arrive(r, next); });
                   });
  }
  due.clear();
  work_changed().notify_all();
}

namespace {

std::string name_of_captured(int64_t number) { return "captured" + std::to_string(number); }

/// All ranks do it together: they agree about memory then.
ncclResult_t capture(ncclComm_t communicator, gpuStream_t stream, Call made) {
  Clique &clique = *communicator->clique;
  if (clique.own_ranks > 1) give_up("operations of several GPUs of a process are captured");
  if (communicator->calls() == 0) give_up("the first operation is captured");
  made.captured = ++communicator->captured;
  clique.world->reach(name_of_captured(made.captured).c_str(), communicator->rank);
  const bool is_refused = clique.fault.kind == "uncapturable" && clique.fault.rank == communicator->rank;
  if (is_refused && made.captured > clique.fault.number) return ncclInvalidUsage;
  write_journal("captured", made.count * bytes_of(made.type));
  communicator->due.emplace_back(stream, made);
  communicator->questions = 1;
  return ncclInProgress;
}

ncclResult_t call(ncclComm_t communicator, gpuStream_t stream, Call made) {
  if (is_refused()) return ncclSystemError;
  const HostCall host;
  const std::lock_guard guard(work_lock());
  made.place = communicator->place_of(made);
  const bool same_group = group_depth > 0 && !communicator->due.empty();
  if (communicator->is_busy() && !same_group) return ncclInvalidArgument;
  if (stream->device != communicator->device) give_up("a stream of another device");
  if (communicator->clique->is_aborted || communicator->is_finalized) return ncclInvalidUsage;
  if (stream->capture) return capture(communicator, stream, made);
  Meeting &meeting = communicator->clique->meetings[communicator->calls()];
  if (!meeting.calls.empty() && !meeting.calls.begin()->second.agrees(made)) give_up("ranks that do not agree");
  meeting.calls[communicator->rank] = made;
  const bool is_first = communicator->calls() == 0 && communicator->clique->spans_processes();
  if (is_first) communicator->clique->world->reach("called", communicator->rank);
  ++communicator->clique->calls[communicator->rank];
  write_journal(name_of(made.kind), made.count * bytes_of(made.type));
  communicator->due.emplace_back(stream, made);
  communicator->called_at = std::chrono::steady_clock::now();
  communicator->questions = 1;
  return ncclInProgress;
}

}  // namespace

ncclResult_t ncclGetVersion(int *version) {
  const std::string kind = ordered_fault().kind;
  *version = kind == "newer" ? 22705 : kind == "early" ? 21400 : 22105;
  return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "an emulated error";
}
const char *ncclGetLastError(ncclComm_t) { return "as ordered"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (is_refused()) return ncclSystemError;
  const HostCall host;
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
  if (is_refused()) return ncclSystemError;
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (config->blocking != 0 || group_depth == 0) give_up("a communicator that blocks");
  return begin(communicator, ranks, id, rank, false);
}

ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank) {
  if (is_refused()) return ncclSystemError;
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (group_depth == 0) give_up("ranks of one process that are not connected together");
  return begin(communicator, ranks, id, rank, true);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *error) {
  const HostCall host;
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
      communicator->registered[communicator->window] = communicator->window_bytes;
      communicator->windows.insert(communicator->window);
      registered_memory().insert(communicator->window);
    }
    communicator->window_due = nullptr;
  }
  if (!communicator->due.empty()) {
    const int64_t captured = communicator->due.back().second.captured;
    if (captured > 0 && !communicator->clique->world->all_have_reached(name_of_captured(captured).c_str()))
      return ncclSuccess;
    const bool is_first = static_cast<int64_t>(communicator->due.size()) == communicator->calls();
    if (captured == 0 && is_first && !communicator->all_have_called()) return ncclSuccess;
    if (communicator->lags()) return ncclSuccess;
    const TriedDriverCall launch;
    if (!launch.may_launch()) return ncclSuccess;
    communicator->put_on_streams();
  }
  *error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (communicator->is_busy()) give_up("a communicator is finalized while it is busy");
  if (!communicator->registered.empty()) give_up("a communicator is finalized while memory is registered with it");
  if (communicator->is_in_graphs()) give_up("a communicator is finalized while graphs have its operations");
  if (!communicator->are_done()) give_up("a communicator is finalized before its operations are done");
  communicator->is_finalized = true;
  communicator->questions = 2;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (!communicator->is_finalized || communicator->is_busy()) give_up("a communicator is destroyed too early");
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const HostCall host;
  std::unique_lock lock(work_lock());
  communicator->clique->is_aborted = true;
  work_changed().notify_all();
  // As the library: for ever, if need be.
  while (communicator->is_in_graphs()) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  while (!communicator->registered.empty())
    communicator->forget(communicator->registered.begin()->first);
  delete communicator;
  work_changed().notify_all();
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t communicator, void *memory, size_t bytes, void **handle) {
  if (is_refused()) return ncclSystemError;
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (communicator->is_busy()) return ncclInvalidUsage;
  if (communicator->device != current_device()) give_up("memory of another device is registered");
  *handle = nullptr;
  if (communicator->clique->fault.kind == "unregistered") return ncclSuccess;
  if (!communicator->registered.emplace(memory, bytes).second) give_up("memory is registered twice");
  registered_memory().insert(memory);
  write_journal("register", bytes);
  *handle = memory;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t communicator, void *handle) {
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (!communicator->registered.contains(handle)) return ncclInvalidArgument;
  communicator->forget(handle);
  write_journal("deregister", 0);
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
  if (is_refused()) return ncclSystemError;
  const HostCall host;
  const DriverCall call("taking memory", current_device());
  const std::lock_guard guard(work_lock());
  if (gpuMalloc(memory, bytes) != gpuSuccess) return ncclSystemError;
  window_memory().insert(*memory);
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void *memory) {
  const HostCall host;
  const DriverCall call("freeing memory", current_device());
  const std::lock_guard guard(work_lock());
  if (window_memory().erase(memory) == 0) give_up("memory of another allocator is freed");
  return gpuFree(memory) == gpuSuccess ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t communicator, void *memory, size_t bytes, void **window, int flags) {
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (group_depth == 0) give_up("one process makes windows of all its GPUs in one group of calls");
  if (!window_memory().contains(memory) || flags != 1) return ncclInvalidArgument;
  if (communicator->is_busy() || communicator->calls() > 0) return ncclInvalidUsage;
  if (communicator->device != current_device()) give_up("a window to memory of another device");
  communicator->clique->offered[communicator->rank] = bytes;
  communicator->window_due = window;
  communicator->window = memory;
  communicator->window_bytes = bytes;
  communicator->questions = 2;
  group_members.push_back(communicator);
  write_journal("window", bytes);
  return ncclInProgress;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t communicator, void *window) {
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (group_depth == 0) give_up("a window is closed by one rank alone");
  if (!communicator->windows.contains(window)) return ncclInvalidArgument;
  if (!communicator->are_done()) give_up("a window is closed before the operations are done");
  communicator->forget(window);
  write_journal("window_end", 0);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  const HostCall host;
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

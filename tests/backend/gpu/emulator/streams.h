// SPDX-License-Identifier: Apache-2.0
//
// Streams of the emulated GPU from the inside: for what is emulated on top of them (nccl.cc). Work is done under one
// lock, by the thread that waits for it; work that cannot be done yet, because other devices have not come, is asked
// again whenever something was issued.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_STREAMS_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_STREAMS_H_

#include <tutti_gpu.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace tutti_gpu_emulator {

/// True when it is done; false when it has to be asked again.
using Work = std::function<bool()>;

std::recursive_mutex &work_lock();
/// Of all streams that were made. Under work_lock().
std::vector<std::weak_ptr<struct Lane>> &known_lanes();
/// What each GPU has.
size_t memory_bytes();
/// Told when work was issued or done that others may wait for.
std::condition_variable_any &work_changed();

/// Work in order. Outlives its handle while events stand for positions in it. Under work_lock().
struct Lane {
  std::deque<Work> pending;
  uint64_t issued = 0, done = 0;
  bool is_running = false;
  int device = 0;

  void add(Work work) {
    pending.push_back(std::move(work));
    ++issued;
  }
  /// Does what it can do; true when everything up to `position` is done.
  bool advance_to(uint64_t position);
};

/// What a graph does: made anew for each launch, by which stream's lane it goes.
using LaunchedWork = std::function<Work(const std::shared_ptr<Lane> &)>;

struct Capture;

/// Puts work on a stream, or into the graph that it is being captured to.
void issue(gpuStream_t stream, Work work);
/// Waits until everything up to `position` is done.
void finish(const std::shared_ptr<Lane> &lane, uint64_t position);
/// From now on the stream's work is done though nobody waits for it, as a device does it: other processes may wait for
/// it, or the host for what it writes.
void keep_going(const std::shared_ptr<Lane> &lane);
/// The calling thread's.
int current_device();
/// Adds a line to the file that TUTTI_EMULATED_NCCL_JOURNAL names, if it does: "all_reduce 4096".
void write_journal(const char *what, size_t number);
/// Of captures (captures.cc), all under work_lock(). Adds what the stream does next.
void add_to_capture(EmulatedStream &stream, LaunchedWork work);
/// The stream goes on behind an event that was captured, and is captured as well from here on.
gpuError_t join_capture(EmulatedStream &stream, const EmulatedEvent &event);
/// From here on the capture can only be ended. Gives the error.
gpuError_t invalidate(Capture &capture, gpuError_t error);
/// Nobody may ask for a point of a graph.
gpuError_t refuse_captured(const EmulatedEvent &event);
/// What is unsafe while a stream is captured that has not allowed it.
gpuError_t refuse_unsafe();
/// Allocations that may not be freed. Under work_lock().
std::multiset<const void *> &registered_memory();

}  // namespace tutti_gpu_emulator

namespace tutti_gpu_emulator {

struct GraphNode {
  LaunchedWork at_launch;
  std::vector<size_t> after;  // nodes
};

}  // namespace tutti_gpu_emulator

struct EmulatedGraph {
  std::vector<tutti_gpu_emulator::GraphNode> nodes;
  bool is_uploaded = false;  // by the first launch at the latest
};
struct EmulatedStream {
  std::shared_ptr<tutti_gpu_emulator::Lane> lane = std::make_shared<tutti_gpu_emulator::Lane>();
  std::shared_ptr<tutti_gpu_emulator::Capture> capture;
  std::vector<size_t> tails;  // nodes of the capture that come before what is next
  int device = 0;
};
struct EmulatedEvent {
  std::shared_ptr<tutti_gpu_emulator::Lane> lane;  // null: never recorded
  uint64_t position = 0;
  bool is_timed = false;
  std::shared_ptr<int64_t> reached_ns;                   // by the device's clock; negative = not yet
  std::shared_ptr<tutti_gpu_emulator::Capture> capture;  // null unless it was captured last
  std::vector<size_t> tails;                             // there
  std::shared_ptr<int> life = std::make_shared<int>();   // for graphs that record it
};

/// One under way, or its end.
struct tutti_gpu_emulator::Capture {
  EmulatedGraph graph;
  EmulatedStream *origin = nullptr;
  std::set<EmulatedStream *> streams;  // that one, and those that joined
  bool is_invalid = false, is_over = false;
};

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_STREAMS_H_

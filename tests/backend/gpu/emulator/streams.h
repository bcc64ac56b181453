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
/// What each GPU has.
size_t memory_bytes();
/// Told when work was issued or done that others may wait for.
std::condition_variable_any &work_changed();

/// Work in order. Outlives its handle while events stand for positions in it. Under work_lock().
struct Lane {
  std::deque<Work> pending;
  uint64_t issued = 0, done = 0;
  bool is_running = false;

  void add(Work work) {
    pending.push_back(std::move(work));
    ++issued;
  }
  /// Does what it can do; true when everything up to `position` is done.
  bool advance_to(uint64_t position);
};

/// Puts work on a stream, or into the graph that it is being captured to.
void issue(gpuStream_t stream, Work work);
/// Waits until everything up to `position` is done.
void finish(const std::shared_ptr<Lane> &lane, uint64_t position);
/// The calling thread's.
int current_device();
/// Adds a line to the file that TUTTI_EMULATED_NCCL_JOURNAL names, if it does: "all_reduce 4096".
void write_journal(const char *what, size_t number);
/// Allocations that may not be freed. Under work_lock().
std::multiset<const void *> &registered_memory();

}  // namespace tutti_gpu_emulator

struct EmulatedGraph {
  std::vector<tutti_gpu_emulator::Work> work;
};
struct EmulatedStream {
  std::shared_ptr<tutti_gpu_emulator::Lane> lane = std::make_shared<tutti_gpu_emulator::Lane>();
  std::unique_ptr<EmulatedGraph> capture;
  int device = 0;
};
struct EmulatedEvent {
  std::shared_ptr<tutti_gpu_emulator::Lane> lane;  // null: never recorded
  uint64_t position = 0;
  bool is_timed = false;
  std::shared_ptr<int64_t> reached_ns;  // by the device's clock; negative = not yet
};

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_STREAMS_H_

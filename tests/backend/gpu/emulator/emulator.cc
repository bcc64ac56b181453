// SPDX-License-Identifier: Apache-2.0
//
// Streams are lists of work that is done when somebody waits; kernels run block by block (grid.h).
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver.h"
#include "grid.h"
#include "host_call.h"
#include "streams.h"

using namespace tutti_gpu_emulator;

namespace {

thread_local int device_of_thread = 0;

}  // namespace

// ---- streams ----

namespace tutti_gpu_emulator {

std::recursive_mutex &work_lock() {
  static std::recursive_mutex mutex;
  return mutex;
}

std::vector<std::weak_ptr<Lane>> &known_lanes() {
  static std::vector<std::weak_ptr<Lane>> lanes;
  return lanes;
}

std::condition_variable_any &work_changed() {
  static std::condition_variable_any changed;
  return changed;
}

namespace {

class DeviceWork {
 public:
  explicit DeviceWork(bool &is_running) : is_running_(is_running) { is_running_ = true; }
  ~DeviceWork() { is_running_ = false; }
  DeviceWork(const DeviceWork &) = delete;

 private:
  const HostCall memory_;
  bool &is_running_;
};

}  // namespace

bool Lane::advance_to(uint64_t position) {
  while (done < position) {
    if (is_running) return false;  // it waits for something that waits for it
    const bool is_done = [this] {
      const DeviceWork work(is_running);
      return pending.front()();
    }();
    if (!is_done) return false;
    pending.pop_front();
    ++done;
  }
  return true;
}

void finish(const std::shared_ptr<Lane> &lane, uint64_t position) {
  std::unique_lock lock(work_lock());
  while (!lane->advance_to(position))
    work_changed().wait(lock);
}

void issue(gpuStream_t stream, Work work) {
  const std::lock_guard guard(work_lock());
  if (stream == nullptr) {
    std::fputs("emulated GPU: work on the stream that all others wait for\n", stderr);
    std::abort();
  }
  if (stream->capture) {
    add_to_capture(*stream, [work = std::move(work)](const std::shared_ptr<Lane> &) { return work; });
  } else {
    stream->lane->add(std::move(work));
    work_changed().notify_all();
  }
}

int current_device() { return device_of_thread; }

void write_journal(const char *what, size_t number) {
  const char *const path = std::getenv("TUTTI_EMULATED_NCCL_JOURNAL");
  std::FILE *const journal = path == nullptr ? nullptr : std::fopen(path, "a");
  if (journal == nullptr) return;
  std::fprintf(journal, "%s %zu\n", what, number);
  std::fclose(journal);
}

std::multiset<const void *> &registered_memory() {
  static std::multiset<const void *> registered;
  return registered;
}

}  // namespace tutti_gpu_emulator

namespace {

/// Work that waits for nothing.
gpuError_t issue_action(gpuStream_t stream, std::function<void()> action) {
  const DriverCall call;
  issue(stream, [action = std::move(action)] {
    action();
    return true;
  });
  return gpuSuccess;
}

/// What the device's clock goes on with each launch; 0 = it is the host's.
int64_t launch_ns() {
  static const char *const wanted = std::getenv("TUTTI_EMULATED_LAUNCH_NS");
  return wanted == nullptr ? 0 : std::atoll(wanted);
}

int64_t device_ns = 0;

int64_t device_clock_ns() {
  if (launch_ns() > 0) return device_ns;
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Allocation {
  size_t bytes;
  int device;
};
std::unordered_map<void *, Allocation> &allocations() {
  static std::unordered_map<void *, Allocation> map;
  return map;
}

/// Of the calling thread's device; the lock is held.
size_t free_bytes() {
  size_t in_use = 0;
  for (const auto &[memory, allocation] : allocations())
    in_use += allocation.device == device_of_thread ? allocation.bytes : 0;
  return memory_bytes() - std::min(in_use, memory_bytes());
}

/// Tells whoever wants to know, once, that the calling thread's device is used.
void note_use() {
  static std::string told_to;
  static std::set<int> told;
  const char *const path = std::getenv("TUTTI_EMULATED_USES");
  if (path == nullptr) return;
  const std::lock_guard guard(work_lock());
  if (told_to != path) told.clear();
  told_to = path;
  if (!told.insert(device_of_thread).second) return;
  if (std::FILE *const file = std::fopen(path, "a"); file != nullptr) {
    std::fprintf(file, "%d\n", device_of_thread);
    std::fclose(file);
  }
}

}  // namespace

namespace tutti_gpu_emulator {

size_t memory_bytes() {
  const char *const wanted = std::getenv("TUTTI_EMULATED_BYTES");
  return wanted == nullptr ? size_t{4} << 30 : std::strtoull(wanted, nullptr, 10);
}

void launch(dim3 grid, dim3 block, size_t shared_bytes, gpuStream_t stream, std::function<void()> thread) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x * block.y * block.z == 0 || grid.x > INT32_MAX ||
      grid.y > 65535 || grid.z > 65535 || block.z > 64 || block.x * block.y * block.z > 1024 ||
      shared_bytes > 48 << 10) {
    std::fprintf(stderr, "emulated GPU: a launch of %u x %u x %u blocks of %u x %u x %u threads, %zu bytes shared\n",
                 grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes);
    std::abort();
  }
  issue_action(stream, [=, thread = std::move(thread)] {
    run_grid(grid, block, shared_bytes, thread);
    device_ns += launch_ns();
  });
}

}  // namespace tutti_gpu_emulator

// ---- what the host calls ----

const char *gpuGetErrorName(gpuError_t error) { return error == gpuSuccess ? "gpuSuccess" : "gpuError"; }

gpuError_t gpuGetLastError() { return gpuSuccess; }

gpuError_t gpuGetDeviceCount(int *count) {
  const char *const wanted = std::getenv("TUTTI_EMULATED_GPUS");
  *count = wanted == nullptr ? 1 : std::atoi(wanted);
  return gpuSuccess;
}

gpuError_t gpuDeviceCanAccessPeer(int *reaches, int device, int peer) {
  int count = 0;
  if (gpuGetDeviceCount(&count) != gpuSuccess || device < 0 || peer < 0 || device >= count || peer >= count)
    return gpuErrorInvalidValue;
  *reaches = device != peer && device / 2 == peer / 2 ? 1 : 0;
  return gpuSuccess;
}

gpuError_t gpuDeviceGetP2PAttribute(int *value, gpuDeviceP2PAttr attribute, int device, int peer) {
  int reaches = 0;
  const gpuError_t error = gpuDeviceCanAccessPeer(&reaches, device, peer);
  if (error != gpuSuccess || device == peer) return gpuErrorInvalidValue;
  *value = attribute == gpuDevP2PAttrPerformanceRank ? 1 - reaches : reaches;
  return gpuSuccess;
}

gpuError_t gpuDeviceGetPCIBusId(char *text, int bytes, int device) {
  const HostCall host;
  const char *const machine = std::getenv("TUTTI_EMULATED_MACHINE");
  const std::string process = std::to_string(getpid());
  std::snprintf(text, static_cast<size_t>(bytes), "%s:%d", machine == nullptr ? process.c_str() : machine, device);
  return gpuSuccess;
}

gpuError_t gpuSetDevice(int device) {
  const HostCall host;
  int count = 0;
  if (gpuGetDeviceCount(&count) != gpuSuccess || device < 0 || device >= count) return gpuErrorInvalidValue;
  device_of_thread = device;
  note_use();
  return gpuSuccess;
}

gpuError_t gpuMemGetInfo(size_t *available, size_t *total) {
  const HostCall host;
  note_use();
  const std::lock_guard guard(work_lock());
  *available = free_bytes();
  *total = memory_bytes();
  return gpuSuccess;
}

gpuError_t gpuMalloc(void **memory, size_t bytes) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  note_use();
  const DriverCall call("taking memory", device_of_thread);
  const std::lock_guard guard(work_lock());
  if (const gpuError_t refused = refuse_unsafe(); refused != gpuSuccess) return refused;
  if (bytes > free_bytes()) return gpuErrorMemoryAllocation;
  void *const made = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (made == nullptr) return gpuErrorMemoryAllocation;
  std::memset(made, 0xFF, bytes);
  allocations()[made] = {bytes, device_of_thread};
  *memory = made;
  return gpuSuccess;
}

gpuError_t gpuFree(void *memory) {
  const HostCall host;
  if (memory == nullptr) return gpuSuccess;
  const DriverCall call("freeing memory", device_of_thread);
  const std::lock_guard guard(work_lock());
  if (const gpuError_t refused = refuse_unsafe(); refused != gpuSuccess) return refused;
  const auto found = allocations().find(memory);
  if (found == allocations().end()) return gpuErrorInvalidValue;
  if (registered_memory().contains(memory)) {
    std::fputs("emulated GPU: memory is freed while it is registered\n", stderr);
    std::abort();
  }
  allocations().erase(found);
  std::free(memory);
  return gpuSuccess;
}

gpuError_t gpuHostAlloc(void **memory, size_t bytes, unsigned) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  note_use();
  const DriverCall call("locking pages", kAllDevices);
  void *const made = std::aligned_alloc(256, (std::max<size_t>(bytes, 1) + 255) / 256 * 256);
  if (made == nullptr) return gpuErrorMemoryAllocation;
  std::memset(made, 0xFF, bytes);
  *memory = made;
  return gpuSuccess;
}

gpuError_t gpuFreeHost(void *memory) {
  const HostCall host;
  const DriverCall call("unlocking pages", kAllDevices);
  std::free(memory);
  return gpuSuccess;
}

gpuError_t gpuMemcpyAsync(void *to, const void *from, size_t bytes, gpuMemcpyKind, gpuStream_t stream) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  return issue_action(stream, [=] {
    if (bytes != 0) std::memmove(to, from, bytes);
  });
}

gpuError_t gpuMemsetAsync(void *to, int value, size_t bytes, gpuStream_t stream) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  return issue_action(stream, [=] {
    if (bytes != 0) std::memset(to, value, bytes);
  });
}

gpuError_t gpuStreamCreateWithFlags(gpuStream_t *stream, unsigned) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  note_use();
  const DriverCall call("making a stream", device_of_thread);
  *stream = new EmulatedStream;
  (*stream)->device = (*stream)->lane->device = device_of_thread;
  const std::lock_guard guard(work_lock());
  std::erase_if(known_lanes(), [](const std::weak_ptr<Lane> &lane) { return lane.expired(); });
  known_lanes().push_back((*stream)->lane);
  return gpuSuccess;
}

gpuError_t gpuStreamDestroy(gpuStream_t stream) {
  const HostCall host;
  const gpuError_t error = gpuStreamSynchronize(stream);
  delete stream;
  return error;
}

gpuError_t gpuStreamSynchronize(gpuStream_t stream) {
  const HostCall host;
  std::unique_lock lock(work_lock());
  if (stream->capture) return invalidate(*stream->capture, gpuErrorStreamCaptureUnsupported);
  const std::shared_ptr<Lane> lane = stream->lane;
  const uint64_t position = lane->issued;
  write_journal("stream_synchronize", 0);
  lock.unlock();
  finish(lane, position);
  return gpuSuccess;
}

gpuError_t gpuStreamWaitEvent(gpuStream_t stream, gpuEvent_t event, unsigned) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  const DriverCall call;
  const std::lock_guard guard(work_lock());
  if (event->capture != nullptr) return join_capture(*stream, *event);
  if (event->lane == nullptr) return gpuSuccess;
  if (stream->capture) return invalidate(*stream->capture, gpuErrorStreamCaptureIsolation);
  issue(stream, [lane = event->lane, position = event->position] { return lane->advance_to(position); });
  return gpuSuccess;
}

gpuError_t gpuEventCreateWithFlags(gpuEvent_t *event, unsigned flags) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  *event = new EmulatedEvent;
  (*event)->is_timed = (flags & gpuEventDisableTiming) == 0;
  return gpuSuccess;
}

gpuError_t gpuEventDestroy(gpuEvent_t event) {
  const HostCall host;
  delete event;
  return gpuSuccess;
}

gpuError_t gpuEventRecord(gpuEvent_t event, gpuStream_t stream) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  const DriverCall driver;
  const DriverCall call;
  const std::lock_guard guard(work_lock());
  event->capture = stream->capture;
  event->tails = stream->tails;
  if (stream->capture) return gpuSuccess;
  if (event->is_timed) {
    event->reached_ns = std::make_shared<int64_t>(-1);
    issue_action(stream, [reached = event->reached_ns] { *reached = device_clock_ns(); });
  }
  event->lane = stream->lane;
  event->position = stream->lane->issued;
  return gpuSuccess;
}

gpuError_t gpuEventRecordWithFlags(gpuEvent_t event, gpuStream_t stream, unsigned flags) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  if (flags != gpuEventRecordExternal) return flags == 0 ? gpuEventRecord(event, stream) : gpuErrorInvalidValue;
  if (std::getenv("TUTTI_EMULATED_UNTIMED_GRAPHS") != nullptr) return gpuErrorNotSupported;
  const std::lock_guard guard(work_lock());
  if (stream->capture == nullptr) return gpuErrorInvalidValue;
  event->capture = nullptr;
  add_to_capture(*stream, [event, life = std::weak_ptr(event->life)](const std::shared_ptr<Lane> &lane) {
    if (life.expired()) {
      std::fputs("emulated GPU: a graph is launched after an event of it has ended\n", stderr);
      std::abort();
    }
    event->lane = lane;
    event->position = lane->issued + 1;  // the launch
    if (event->is_timed) event->reached_ns = std::make_shared<int64_t>(-1);
    return Work([reached = event->reached_ns] {
      if (reached == nullptr) return true;
      *reached = device_clock_ns();
      return true;
    });
  });
  return gpuSuccess;
}

gpuError_t gpuEventSynchronize(gpuEvent_t event) {
  const HostCall host;
  {
    const std::lock_guard guard(work_lock());
    if (event->capture != nullptr) return refuse_captured(*event);
    if (event->lane != nullptr && event->lane->done < event->position) write_journal("event_synchronize", 0);
  }
  if (event->lane != nullptr) finish(event->lane, event->position);
  return gpuSuccess;
}

gpuError_t gpuEventQuery(gpuEvent_t event) {
  const HostCall host;
  const std::lock_guard guard(work_lock());
  if (event->capture != nullptr) return refuse_captured(*event);
  if (const gpuError_t refused = refuse_unsafe(); refused != gpuSuccess) return refused;
  return event->lane == nullptr || event->lane->advance_to(event->position) ? gpuSuccess : gpuErrorNotReady;
}

gpuError_t gpuEventElapsedTime(float *milliseconds, gpuEvent_t begin, gpuEvent_t end) {
  const std::lock_guard guard(work_lock());
  if (begin->capture != nullptr || end->capture != nullptr) return gpuErrorCapturedEvent;
  if (begin->reached_ns == nullptr || end->reached_ns == nullptr) return gpuErrorInvalidValue;
  if (*begin->reached_ns < 0 || *end->reached_ns < 0) return gpuErrorNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(*end->reached_ns - *begin->reached_ns) * 1e-6);
  return gpuSuccess;
}

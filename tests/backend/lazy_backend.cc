// SPDX-License-Identifier: Apache-2.0
#include "backend/lazy_backend.h"

#include <tutti/status.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backend/host_services.h"
#include "backend/reference/reference_backend.h"

namespace tutti::testing {
namespace {

using impl::backend::ErrorSink;
using impl::base::Status;

const tutti_backend_api &reference() { return *impl::backend::reference::entry(TUTTI_BACKEND_ABI_VERSION); }

struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  LazySettings settings;
  int64_t issued = 0, done = 0, runs = 0, staged = 0;
  std::map<const char *, uint64_t> transfer_memory;  // bytes by address
};
Shared &shared() {
  static Shared state;
  return state;
}

// ---- streams ----

using Task = std::function<int32_t(tutti_error_sink *)>;

/// Held while work is issued or done: the work of a stream may wait for another's.
std::recursive_mutex &work_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

/// What a stream has to do. Shared with its events, which may outlive it.
struct Work {
  std::deque<Task> pending;
  size_t issued = 0, done = 0;
  Status failure;  // the first since somebody waited for the stream

  void add(Task task) {
    pending.push_back(std::move(task));
    ++issued;
  }
  void finish(size_t count) {
    while (done < count) {
      const Task task = std::move(pending.front());
      pending.pop_front();
      ++done;
      ErrorSink sink;
      const Status status = sink.take(task(sink.handle()));
      if (failure.ok()) failure = status;
    }
  }
};

struct LazyStream {
  std::shared_ptr<Work> work = std::make_shared<Work>();
};
struct LazyEvent {
  std::shared_ptr<Work> work;  // null before it is recorded
  size_t position = 0;
};

LazyStream *of(tutti_stream *stream) { return reinterpret_cast<LazyStream *>(stream); }
LazyEvent *of(tutti_event *event) { return reinterpret_cast<LazyEvent *>(event); }

bool is_late(Late what) {
  std::lock_guard lock(shared().mutex);
  return shared().settings.late >= what;
}

/// Is nothing on the stream that what comes now would have to wait for?
bool is_idle(tutti_stream *stream) {
  std::lock_guard lock(work_mutex());
  return of(stream)->work->pending.empty();
}

/// Does the work now or, when work of this sort is late or comes behind such, when somebody waits for the stream.
template <typename Function>
int32_t issue(tutti_stream *stream, Late sort, tutti_error_sink *sink, const Function &function) {
  if (stream == nullptr || (!is_late(sort) && is_idle(stream))) return function(sink);
  std::lock_guard lock(work_mutex());
  of(stream)->work->add(function);
  return 0;
}

int32_t stream_create(tutti_device *, tutti_stream **stream, tutti_error_sink *) {
  *stream = reinterpret_cast<tutti_stream *>(new LazyStream);
  return 0;
}
void stream_release(tutti_stream *stream) { delete of(stream); }
int32_t stream_synchronize(tutti_stream *stream, tutti_error_sink *sink) {
  std::lock_guard lock(work_mutex());
  Work &work = *of(stream)->work;
  work.finish(work.issued);
  const Status failure = std::exchange(work.failure, Status());
  if (failure.ok()) return 0;
  ErrorSink::set(sink, static_cast<int32_t>(failure.code()), std::string(failure.message()).c_str());
  return static_cast<int32_t>(failure.code());
}
int32_t stream_has_failed(tutti_stream *stream) {
  std::lock_guard lock(work_mutex());
  return of(stream)->work->failure.ok() ? 0 : 1;
}
int32_t event_synchronize(tutti_event *event, tutti_error_sink *) {
  std::lock_guard lock(work_mutex());
  if (of(event)->work != nullptr) of(event)->work->finish(of(event)->position);
  return 0;
}
int32_t stream_wait_event(tutti_stream *stream, tutti_event *event, tutti_error_sink *sink) {
  std::lock_guard lock(work_mutex());
  return issue(stream, Late::everything, sink, [recorded = *of(event)](tutti_error_sink *) {
    if (recorded.work != nullptr) recorded.work->finish(recorded.position);
    return 0;
  });
}
int32_t event_create(tutti_device *, tutti_event **event, tutti_error_sink *) {
  *event = reinterpret_cast<tutti_event *>(new LazyEvent);
  return 0;
}
void event_release(tutti_event *event) { delete of(event); }
int32_t event_record(tutti_event *event, tutti_stream *stream, tutti_error_sink *) {
  std::lock_guard lock(work_mutex());
  const std::shared_ptr<Work> work = of(stream)->work;
  *of(event) = {work, work->issued};
  return 0;
}
int32_t event_is_done(tutti_event *event) {
  std::lock_guard lock(work_mutex());
  const Work *const work = of(event)->work.get();
  return work == nullptr || work->done >= of(event)->position ? 1 : 0;
}

// ---- memory and programs ----

bool has_memory(std::function<bool(uint64_t)> LazySettings::*question, uint64_t bytes) {
  std::function<bool(uint64_t)> has;
  {
    std::lock_guard lock(shared().mutex);
    has = shared().settings.*question;
  }
  return !has || has(bytes);
}

int32_t allocate(tutti_device *device, uint64_t bytes, uint64_t alignment, tutti_device_buffer **buffer,
                 tutti_error_sink *sink) {
  if (!has_memory(&LazySettings::has_memory, bytes)) return TUTTI_RESOURCE_EXHAUSTED;
  return reference().buffer->allocate(device, bytes, alignment, buffer, sink);
}

void *no_host_pointer(tutti_device_buffer *) { return nullptr; }

/// Counts a copy that has this end in the host's memory.
void count_staged(const void *end) {
  const std::lock_guard lock(shared().mutex);
  const auto *const address = static_cast<const char *>(end);
  const auto next = shared().transfer_memory.upper_bound(address);
  if (next == shared().transfer_memory.begin()) return;
  const auto &[begin, bytes] = *std::prev(next);
  if (static_cast<uint64_t>(address - begin) < bytes) ++shared().staged;
}

int32_t write(tutti_device_buffer *buffer, uint64_t offset, const void *source, uint64_t bytes, tutti_stream *stream,
              tutti_error_sink *sink) {
  if (stream == nullptr) return reference().buffer->write(buffer, offset, source, bytes, nullptr, sink);
  count_staged(source);
  const int32_t code = issue(stream, Late::copies, sink, [=](tutti_error_sink *of_task) {
    const int32_t written = reference().buffer->write(buffer, offset, source, bytes, nullptr, of_task);
    std::lock_guard counting(shared().mutex);
    ++shared().done;
    return written;
  });
  std::lock_guard lock(shared().mutex);
  ++shared().issued;
  shared().changed.notify_all();
  return code;
}

int32_t read(tutti_device_buffer *buffer, uint64_t offset, void *destination, uint64_t bytes, tutti_stream *stream,
             tutti_error_sink *sink) {
  if (stream != nullptr) count_staged(destination);
  return issue(stream, Late::everything, sink, [=](tutti_error_sink *of_task) {
    return reference().buffer->read(buffer, offset, destination, bytes, nullptr, of_task);
  });
}

int32_t fill_zero(tutti_device_buffer *buffer, uint64_t offset, uint64_t bytes, tutti_stream *stream,
                  tutti_error_sink *sink) {
  return issue(stream, Late::everything, sink, [=](tutti_error_sink *of_task) {
    return reference().buffer->fill_zero(buffer, offset, bytes, nullptr, of_task);
  });
}

int32_t transfer_allocate(tutti_device *, uint64_t bytes, void **memory, tutti_error_sink *) {
  if (!has_memory(&LazySettings::has_transfer_memory, bytes)) return TUTTI_RESOURCE_EXHAUSTED;
  *memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (*memory == nullptr) return TUTTI_RESOURCE_EXHAUSTED;
  const std::lock_guard lock(shared().mutex);
  shared().transfer_memory[static_cast<const char *>(*memory)] = bytes;
  return 0;
}
void transfer_release(tutti_device *, void *memory, uint64_t bytes) {
  {
    const std::lock_guard lock(shared().mutex);
    shared().transfer_memory.erase(static_cast<const char *>(memory));
  }
  if (memory != nullptr) std::memset(memory, 0xff, bytes);  // for who comes too late
  std::free(memory);
}
int32_t transfer(tutti_device *, void *destination, const void *source, uint64_t bytes, tutti_stream *stream,
                 tutti_error_sink *sink) {
  return issue(stream, Late::copies, sink, [=](tutti_error_sink *) {
    if (bytes > 0) std::memcpy(destination, source, bytes);  // of nothing, the places may be null
    return 0;
  });
}
int32_t transfer_read(tutti_device *device, const void *source, void *destination, uint64_t bytes, tutti_stream *stream,
                      tutti_error_sink *sink) {
  return transfer(device, destination, source, bytes, stream, sink);
}

int32_t run(tutti_program *program, int32_t segment, const tutti_run_arguments *arguments, tutti_stream *stream,
            tutti_error_sink *sink) {
  std::function<void()> on_run;
  {
    std::lock_guard lock(shared().mutex);
    on_run = shared().settings.on_run;
  }
  if (on_run) on_run();
  return issue(stream, Late::everything, sink, [=, copy = *arguments](tutti_error_sink *of_task) {
    // What bad data leaves is no numbers; here what would be computed of them is not.
    if (!of(stream)->work->failure.ok()) return int32_t{0};
    {
      std::lock_guard counting(shared().mutex);
      ++shared().runs;
    }
    return reference().program->run(program, segment, &copy, stream, of_task);
  });
}

const tutti_stream_table kStreams = {sizeof(tutti_stream_table),
                                     stream_create,
                                     stream_release,
                                     stream_synchronize,
                                     stream_wait_event,
                                     event_create,
                                     event_release,
                                     event_record,
                                     event_synchronize,
                                     event_is_done,
                                     nullptr,
                                     nullptr,
                                     stream_has_failed,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr};
const tutti_transfer_table kTransfers = {sizeof(tutti_transfer_table), transfer_allocate, transfer_release,
                                         transfer_read, transfer};

}  // namespace

void LazyBackend::begin(LazySettings settings) {
  std::lock_guard lock(shared().mutex);
  shared().settings = std::move(settings);
  shared().issued = shared().done = shared().runs = shared().staged = 0;
}

const tutti_backend_api *LazyBackend::entry(uint32_t host_abi_version) {
  if (host_abi_version != TUTTI_BACKEND_ABI_VERSION) return nullptr;
  static tutti_buffer_table buffers = *reference().buffer;
  buffers.allocate = allocate;
  buffers.read = read;
  buffers.write = write;
  buffers.fill_zero = fill_zero;
  static tutti_buffer_table hidden = buffers;
  hidden.host_pointer = no_host_pointer;
  static tutti_program_table programs = *reference().program;
  programs.run = run;
  static tutti_backend_api with_host_memory = reference();
  with_host_memory.buffer = &buffers;
  with_host_memory.program = &programs;
  with_host_memory.stream = &kStreams;
  static tutti_backend_api without = with_host_memory;
  without.capabilities &= ~static_cast<uint64_t>(TUTTI_BACKEND_HOST_MEMORY);
  without.buffer = &hidden;
  std::lock_guard lock(shared().mutex);
  without.transfer = shared().settings.has_transfers ? &kTransfers : nullptr;
  return shared().settings.has_host_memory ? &with_host_memory : &without;
}

int64_t LazyBackend::issued() {
  std::lock_guard lock(shared().mutex);
  return shared().issued;
}

int64_t LazyBackend::done() {
  std::lock_guard lock(shared().mutex);
  return shared().done;
}

int64_t LazyBackend::staged() {
  std::lock_guard lock(shared().mutex);
  return shared().staged;
}

int64_t LazyBackend::runs() {
  std::lock_guard lock(shared().mutex);
  return shared().runs;
}

bool LazyBackend::wait_issued(int64_t count) {
  std::unique_lock lock(shared().mutex);
  return shared().changed.wait_for(lock, std::chrono::seconds(10), [&] { return shared().issued >= count; });
}

impl::base::Result<std::vector<impl::backend::DeviceRef>> open_lazy_devices(int32_t count, LazySettings settings) {
  LazyBackend::begin(std::move(settings));
  const std::string options = "{\"logical_devices\": " + std::to_string(count) + "}";
  TUTTI_ASSIGN(const impl::backend::BackendRef made, impl::backend::Backend::create(LazyBackend::entry, options, {}));
  std::vector<impl::backend::DeviceRef> devices(static_cast<size_t>(count));
  for (int32_t d = 0; d < count; ++d) {
    TUTTI_ASSIGN(devices[static_cast<size_t>(d)], made->open_device(d));
  }
  return devices;
}

}  // namespace tutti::testing

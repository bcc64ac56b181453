// SPDX-License-Identifier: Apache-2.0
#include "distribute/lazy_backend.h"

#include <tutti/status.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/reference/reference_backend.h"

namespace tutti::testing {
namespace {

const tutti_backend_api &reference() { return *impl::backend::reference::entry(TUTTI_BACKEND_ABI_VERSION); }

struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  LazySettings settings;
  int64_t issued = 0, done = 0;
};
Shared &shared() {
  static Shared state;
  return state;
}

// ---- streams ----

struct Copy {
  tutti_device_buffer *buffer;
  uint64_t offset;
  const void *source;
  uint64_t bytes;
};

/// Shared with its events, which may outlive it.
struct Work {
  std::mutex mutex;
  std::vector<Copy> copies;
  size_t done = 0;

  int32_t finish(size_t count, tutti_error_sink *sink) {
    std::lock_guard lock(mutex);
    for (; done < count; ++done) {
      const Copy &copy = copies[done];
      const int32_t code = reference().buffer->write(copy.buffer, copy.offset, copy.source, copy.bytes, nullptr, sink);
      if (code != 0) return code;
      std::lock_guard counting(shared().mutex);
      ++shared().done;
    }
    return 0;
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

int32_t stream_create(tutti_device *, tutti_stream **stream, tutti_error_sink *) {
  *stream = reinterpret_cast<tutti_stream *>(new LazyStream);
  return 0;
}
void stream_release(tutti_stream *stream) { delete of(stream); }
int32_t stream_synchronize(tutti_stream *stream, tutti_error_sink *sink) {
  Work &work = *of(stream)->work;
  size_t count = 0;
  {
    std::lock_guard lock(work.mutex);
    count = work.copies.size();
  }
  return work.finish(count, sink);
}
int32_t event_synchronize(tutti_event *event, tutti_error_sink *sink) {
  return of(event)->work == nullptr ? 0 : of(event)->work->finish(of(event)->position, sink);
}
int32_t stream_wait_event(tutti_stream *, tutti_event *event, tutti_error_sink *sink) {
  return event_synchronize(event, sink);
}
int32_t event_create(tutti_device *, tutti_event **event, tutti_error_sink *) {
  *event = reinterpret_cast<tutti_event *>(new LazyEvent);
  return 0;
}
void event_release(tutti_event *event) { delete of(event); }
int32_t event_record(tutti_event *event, tutti_stream *stream, tutti_error_sink *) {
  const std::shared_ptr<Work> work = of(stream)->work;
  std::lock_guard lock(work->mutex);
  *of(event) = {work, work->copies.size()};
  return 0;
}
int32_t event_is_done(tutti_event *event) {
  Work *const work = of(event)->work.get();
  if (work == nullptr) return 1;
  std::lock_guard lock(work->mutex);
  return work->done >= of(event)->position ? 1 : 0;
}

// ---- memory and programs ----

int32_t allocate(tutti_device *device, uint64_t bytes, uint64_t alignment, tutti_device_buffer **buffer,
                 tutti_error_sink *sink) {
  std::function<bool(uint64_t)> has_memory;
  {
    std::lock_guard lock(shared().mutex);
    has_memory = shared().settings.has_memory;
  }
  if (has_memory && !has_memory(bytes)) return TUTTI_RESOURCE_EXHAUSTED;
  return reference().buffer->allocate(device, bytes, alignment, buffer, sink);
}

int32_t write(tutti_device_buffer *buffer, uint64_t offset, const void *source, uint64_t bytes, tutti_stream *stream,
              tutti_error_sink *sink) {
  if (stream == nullptr) return reference().buffer->write(buffer, offset, source, bytes, nullptr, sink);
  Work &work = *of(stream)->work;
  {
    std::lock_guard lock(work.mutex);
    work.copies.push_back({buffer, offset, source, bytes});
  }
  std::lock_guard lock(shared().mutex);
  ++shared().issued;
  shared().changed.notify_all();
  return 0;
}

int32_t run(tutti_program *program, int32_t segment, const tutti_run_arguments *arguments, tutti_stream *stream,
            tutti_error_sink *sink) {
  std::function<void()> on_run;
  {
    std::lock_guard lock(shared().mutex);
    on_run = shared().settings.on_run;
  }
  if (on_run) on_run();
  return reference().program->run(program, segment, arguments, stream, sink);
}

const tutti_stream_table kStreams = {sizeof(tutti_stream_table), stream_create, stream_release, stream_synchronize,
                                     stream_wait_event,          event_create,  event_release,  event_record,
                                     event_synchronize,          event_is_done};

}  // namespace

void LazyBackend::begin(LazySettings settings) {
  std::lock_guard lock(shared().mutex);
  shared().settings = std::move(settings);
  shared().issued = shared().done = 0;
}

const tutti_backend_api *LazyBackend::entry(uint32_t host_abi_version) {
  if (host_abi_version != TUTTI_BACKEND_ABI_VERSION) return nullptr;
  static tutti_buffer_table buffers = *reference().buffer;
  buffers.allocate = allocate;
  buffers.write = write;
  static tutti_program_table programs = *reference().program;
  programs.run = run;
  static tutti_backend_api with_host_memory = reference();
  with_host_memory.buffer = &buffers;
  with_host_memory.program = &programs;
  with_host_memory.stream = &kStreams;
  static tutti_backend_api without = with_host_memory;
  without.capabilities &= ~static_cast<uint64_t>(TUTTI_BACKEND_HOST_MEMORY);
  std::lock_guard lock(shared().mutex);
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

bool LazyBackend::wait_issued(int64_t count) {
  std::unique_lock lock(shared().mutex);
  return shared().changed.wait_for(lock, std::chrono::seconds(10), [&] { return shared().issued >= count; });
}

}  // namespace tutti::testing

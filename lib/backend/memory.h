// SPDX-License-Identifier: Apache-2.0
//
// A device's memory (Buffer), memory of the host for copies (HostMemory) and order of work (Stream, Event). Made by
// Device (backend.h); move-only; each keeps its device alive. One object is used by one thread at a time.
//
//   TUTTI_TRY(buffer.write(0, tensor.data(), tensor.size_bytes()));
//   TUTTI_TRY(program->run(0, arguments, stream));
//   TUTTI_TRY(event.record(stream));                  // in the replica's thread
//   TUTTI_TRY(other_stream.wait(event));              // later work there starts after it
//   TUTTI_TRY(stream.synchronize());                  // the host waits
#ifndef TUTTI_BACKEND_MEMORY_H_
#define TUTTI_BACKEND_MEMORY_H_

#include <tutti/plugin/backend.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"

namespace tutti::impl::backend {

class Device;
class Stream;

/// Work on one device in order. Work may still be under way when an issuing call returns.
class Stream {
 public:
  Stream() = default;
  Stream(Stream &&other) noexcept : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Stream &operator=(Stream &&other) noexcept;
  ~Stream();

  /// Waits for everything issued so far; the first error of that work.
  base::Status synchronize();
  /// The same where issuing may have failed half-way: in any case nothing reads or writes memory of that work any more.
  /// `issued`, or where that is ok what synchronize() gives.
  base::Status finish(base::Status issued);
  /// Whether synchronize() would tell an error that is known already; false also where the backend does not say.
  bool has_failed() const;
  /// Later work on this stream starts after `event`.
  base::Status wait(class Event &event);
  /// Copies between device memory, by its address, and the host's, ordered on the stream. UNIMPLEMENTED unless the
  /// backend copies by address.
  base::Status read(const void *device_source, void *destination, int64_t bytes);
  base::Status write(void *device_destination, const void *source, int64_t bytes);
  /// From here on what is issued is written down instead, until end_recording(), which ends that in any case
  /// (record_begin of <tutti/plugin/backend.h> says what may be issued). Needs Backend::records_streams().
  base::Status begin_recording();
  base::Result<class Recording> end_recording();
  /// The device waits here for the host (stream_hold.h). Needs Backend::holds_streams().
  base::Status hold(class HostMemory &words, void *verdict);
  tutti_stream *handle() const { return handle_; }

 private:
  friend class Device;
  Stream(std::shared_ptr<Device> device, tutti_stream *handle) : device_(std::move(device)), handle_(handle) {}

  std::shared_ptr<Device> device_;
  tutti_stream *handle_ = nullptr;
};

/// Work that was issued on a stream, to be done again. Memory and programs that it names are there while it is done;
/// the stream has done it before it goes.
class Recording {
 public:
  Recording() = default;
  Recording(Recording &&other) noexcept { *this = std::move(other); }
  Recording &operator=(Recording &&other) noexcept;
  ~Recording();

  /// Once more, on a stream of the device. Programs find what Program::set_arguments() gave last.
  base::Status replay(Stream &stream);

 private:
  friend class Stream;
  Recording(std::shared_ptr<Device> device, tutti_recording *handle) : device_(std::move(device)), handle_(handle) {}

  std::shared_ptr<Device> device_;
  tutti_recording *handle_ = nullptr;
};

/// A point in a stream.
class Event {
 public:
  Event() = default;
  Event(Event &&other) noexcept : device_(std::move(other.device_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Event &operator=(Event &&other) noexcept;
  ~Event();

  /// Stands from now on for what was issued on `stream` so far.
  base::Status record(Stream &stream);
  /// The calling thread waits. An event never recorded is done.
  base::Status synchronize();
  bool is_done() const;
  /// Between two of create_timed_event() that have been recorded and reached.
  base::Result<int64_t> nanoseconds_since(const Event &begin) const;
  tutti_event *handle() const { return handle_; }

 private:
  friend class Device;
  Event(std::shared_ptr<Device> device, tutti_event *handle) : device_(std::move(device)), handle_(handle) {}

  std::shared_ptr<Device> device_;
  tutti_event *handle_ = nullptr;
};

/// Memory of the host that a device's copies reach without a detour.
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(HostMemory &&other) noexcept { *this = std::move(other); }
  HostMemory &operator=(HostMemory &&other) noexcept;
  ~HostMemory();

  int64_t size_bytes() const { return size_bytes_; }
  std::byte *data() const { return static_cast<std::byte *>(memory_); }

 private:
  friend class Device;
  HostMemory(std::shared_ptr<Device> device, void *memory, int64_t size_bytes)
      : device_(std::move(device)), memory_(memory), size_bytes_(size_bytes) {}

  std::shared_ptr<Device> device_;
  void *memory_ = nullptr;
  int64_t size_bytes_ = 0;
};

/// A range of device memory.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer &&other) noexcept;
  Buffer &operator=(Buffer &&other) noexcept;
  ~Buffer();

  bool empty() const { return handle_ == nullptr; }
  int64_t size_bytes() const { return size_bytes_; }
  /// First byte as programs take it (bind, run); arithmetic on it is allowed, dereferencing is not.
  void *device_pointer() const { return device_pointer_; }
  /// First byte for the host, or null where the host cannot reach it.
  void *host_pointer() const { return host_pointer_; }

  /// Copies and fills, checked against the size. Ordered on `stream`; null = done on return.
  base::Status read(int64_t offset, void *destination, int64_t bytes, Stream *stream = nullptr) const;
  base::Status write(int64_t offset, const void *source, int64_t bytes, Stream *stream = nullptr);
  base::Status fill_zero(int64_t offset, int64_t bytes, Stream *stream = nullptr);

 private:
  friend class Device;
  Buffer(std::shared_ptr<Device> device, tutti_device_buffer *handle, int64_t size_bytes);
  base::Status check_range(int64_t offset, int64_t bytes) const;

  std::shared_ptr<Device> device_;
  tutti_device_buffer *handle_ = nullptr;
  int64_t size_bytes_ = 0;
  void *device_pointer_ = nullptr;
  void *host_pointer_ = nullptr;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_MEMORY_H_

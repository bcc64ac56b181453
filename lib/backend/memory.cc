// SPDX-License-Identifier: Apache-2.0
#include "backend/memory.h"

#include "backend/backend.h"

namespace tutti::impl::backend {

using base::Status;

Stream &Stream::operator=(Stream &&other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Stream::~Stream() {
  if (handle_ != nullptr) device_->api().stream->release(handle_);
}

Status Stream::synchronize() {
  ErrorSink sink;
  return sink.take(device_->api().stream->synchronize(handle_, sink.handle()));
}

Status Stream::finish(Status issued) {
  Status done = synchronize();
  return issued.ok() ? done : issued;
}

bool Stream::has_failed() const {
  const tutti_stream_table &stream = *device_->api().stream;
  return stream.struct_size >= offsetof(tutti_stream_table, record_begin) && stream.has_failed != nullptr &&
         stream.has_failed(handle_) != 0;
}

Status Stream::wait(Event &event) {
  ErrorSink sink;
  return sink.take(device_->api().stream->wait_event(handle_, event.handle(), sink.handle()));
}

Status Stream::read(const void *device_source, void *destination, int64_t bytes) {
  const tutti_transfer_table *const transfer = device_->backend().transfer();
  if (transfer == nullptr) return base::unimplemented("device ", device_->name(), " does not copy by address");
  ErrorSink sink;
  return sink.take(transfer->read(device_->handle(), device_source, destination, static_cast<uint64_t>(bytes), handle_,
                                  sink.handle()));
}

Status Stream::write(void *device_destination, const void *source, int64_t bytes) {
  const tutti_transfer_table *const transfer = device_->backend().transfer();
  if (transfer == nullptr) return base::unimplemented("device ", device_->name(), " does not copy by address");
  ErrorSink sink;
  return sink.take(transfer->write(device_->handle(), device_destination, source, static_cast<uint64_t>(bytes), handle_,
                                   sink.handle()));
}

HostMemory &HostMemory::operator=(HostMemory &&other) noexcept {
  std::swap(device_, other.device_);
  std::swap(memory_, other.memory_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

HostMemory::~HostMemory() {
  if (memory_ == nullptr) return;
  device_->backend().transfer()->release(device_->handle(), memory_, static_cast<uint64_t>(size_bytes_));
}

Status Stream::begin_recording() {
  ErrorSink sink;
  return sink.take(device_->api().stream->record_begin(handle_, sink.handle()));
}

base::Result<Recording> Stream::end_recording() {
  tutti_recording *recording = nullptr;
  ErrorSink sink;
  TUTTI_TRY(sink.take(device_->api().stream->record_end(handle_, &recording, sink.handle())));
  return Recording(device_, recording);
}

Status Stream::hold(HostMemory &words, void *verdict) {
  ErrorSink sink;
  return sink.take(device_->api().stream->hold(handle_, words.data(), verdict, sink.handle()));
}

Recording &Recording::operator=(Recording &&other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Recording::~Recording() {
  if (handle_ != nullptr) device_->api().stream->recording_release(handle_);
}

Status Recording::replay(Stream &stream) {
  ErrorSink sink;
  return sink.take(device_->api().stream->replay(handle_, stream.handle(), sink.handle()));
}

Event &Event::operator=(Event &&other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ != nullptr) device_->api().stream->event_release(handle_);
}

Status Event::record(Stream &stream) {
  ErrorSink sink;
  return sink.take(device_->api().stream->event_record(handle_, stream.handle(), sink.handle()));
}

Status Event::synchronize() {
  ErrorSink sink;
  return sink.take(device_->api().stream->event_synchronize(handle_, sink.handle()));
}

base::Result<int64_t> Event::nanoseconds_since(const Event &begin) const {
  ErrorSink sink;
  int64_t nanoseconds = 0;
  TUTTI_TRY(sink.take(device_->api().stream->event_elapsed(begin.handle_, handle_, &nanoseconds, sink.handle())));
  return nanoseconds;
}

bool Event::is_done() const { return device_->api().stream->event_is_done(handle_) != 0; }

Buffer::Buffer(std::shared_ptr<Device> device, tutti_device_buffer *handle, int64_t size_bytes)
    : device_(std::move(device)), handle_(handle), size_bytes_(size_bytes) {
  device_pointer_ = device_->api().buffer->device_pointer(handle);
  host_pointer_ = device_->api().buffer->host_pointer(handle);
}

Buffer::Buffer(Buffer &&other) noexcept { *this = std::move(other); }

Buffer &Buffer::operator=(Buffer &&other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(device_pointer_, other.device_pointer_);
  std::swap(host_pointer_, other.host_pointer_);
  return *this;
}

Buffer::~Buffer() {
  if (handle_ == nullptr) return;
  device_->api().buffer->release(handle_);
  device_->backend().give_back_device_memory(size_bytes_);
}

Status Buffer::check_range(int64_t offset, int64_t bytes) const {
  if (handle_ == nullptr) return base::failed_precondition("the buffer is empty");
  if (offset >= 0 && bytes >= 0 && offset <= size_bytes_ && bytes <= size_bytes_ - offset) return Status();
  return base::out_of_range("bytes ", offset, " to ", offset + bytes, " of a buffer of ", size_bytes_);
}

Status Buffer::read(int64_t offset, void *destination, int64_t bytes, Stream *stream) const {
  TUTTI_TRY(check_range(offset, bytes));
  ErrorSink sink;
  return sink.take(device_->api().buffer->read(handle_, static_cast<uint64_t>(offset), destination,
                                               static_cast<uint64_t>(bytes),
                                               stream == nullptr ? nullptr : stream->handle(), sink.handle()));
}

Status Buffer::write(int64_t offset, const void *source, int64_t bytes, Stream *stream) {
  TUTTI_TRY(check_range(offset, bytes));
  ErrorSink sink;
  return sink.take(device_->api().buffer->write(handle_, static_cast<uint64_t>(offset), source,
                                                static_cast<uint64_t>(bytes),
                                                stream == nullptr ? nullptr : stream->handle(), sink.handle()));
}

Status Buffer::fill_zero(int64_t offset, int64_t bytes, Stream *stream) {
  TUTTI_TRY(check_range(offset, bytes));
  ErrorSink sink;
  return sink.take(device_->api().buffer->fill_zero(handle_, static_cast<uint64_t>(offset),
                                                    static_cast<uint64_t>(bytes),
                                                    stream == nullptr ? nullptr : stream->handle(), sink.handle()));
}

}  // namespace tutti::impl::backend

// SPDX-License-Identifier: Apache-2.0
#include "data/process/process_channel.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace tutti::impl::data {

using base::CancelToken;
using base::Json;
using base::Result;
using base::Status;

namespace {

// Messages of this size take one call of the system.
constexpr size_t kBufferBytes = size_t{64} << 10;
// Parts of one call.
constexpr size_t kMostParts = 64;

bool is_socket(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

bool says_closed(int error) { return error == EPIPE || error == ECONNRESET; }

uint64_t little_endian(uint64_t value) {
  return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

std::string shown(const std::byte *data, size_t size) {
  return base::quoted(std::string_view(reinterpret_cast<const char *>(data), size));
}

// Takes what was written off the parts.
std::span<iovec> behind(std::span<iovec> parts, size_t written) {
  while (!parts.empty() && written >= parts[0].iov_len) {
    written -= parts[0].iov_len;
    parts = parts.subspan(1);
  }
  if (written > 0) {
    parts[0].iov_base = static_cast<std::byte *>(parts[0].iov_base) + written;
    parts[0].iov_len -= written;
  }
  return parts;
}

}  // namespace

Result<WakeEvent> WakeEvent::create() {
  base::FileDescriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event.get() < 0) return base::status_from_errno(errno, "cannot create an event");
  return WakeEvent(std::move(event));
}

void WakeEvent::raise() const {
  const uint64_t one = 1;
  // It cannot be full in a way that matters: then it is readable.
  (void)!write(event_.get(), &one, sizeof(one));
}

void WakeEvent::clear() const {
  uint64_t count = 0;
  (void)!read(event_.get(), &count, sizeof(count));
}

ProcessChannel::ProcessChannel(int input, int output)
    : input_(input),
      output_(output),
      input_is_socket_(is_socket(input)),
      output_is_socket_(is_socket(output)),
      buffer_(kBufferBytes) {}

ProcessChannel::Guard::Guard(ProcessChannel &channel, const CancelToken *token, const WakeEvent &event)
    : channel_(channel),
      listener_(
          token, [&event] { event.raise(); }, CancelToken::Listener::Start::call_if_raised,
          CancelToken::Listener::Hears::levels_and_deadlines) {
  channel_.token_ = token;
  channel_.event_ = &event;
}

ProcessChannel::Guard::~Guard() {
  listener_.remove();
  channel_.event_->clear();
  channel_.token_ = nullptr;
  channel_.event_ = nullptr;
}

Status ProcessChannel::closed() {
  is_closed_ = true;
  return base::unavailable("the other side has closed the connection");
}

Result<int16_t> ProcessChannel::wait(int descriptor, int16_t events) {
  for (;;) {
    TUTTI_TRY(base::check(token_));
    const base::Deadline deadline = token_ == nullptr ? base::Deadline::never() : token_->deadline();
    const int timeout = deadline.is_never() ? -1 : static_cast<int>(std::min<int64_t>(deadline.remaining_ms(), 60000));
    pollfd entries[] = {{descriptor, events, 0}, {event_ == nullptr ? -1 : event_->descriptor(), POLLIN, 0}};
    const int count = poll(entries, 2, timeout);
    if (count < 0 && errno != EINTR) return base::status_from_errno(errno, "cannot wait for the other process");
    if (count > 0 && entries[1].revents != 0) event_->clear();
    if (count > 0 && entries[0].revents != 0) return entries[0].revents;
  }
}

Status ProcessChannel::wait_to_send() {
  // Who answers before the whole message was sent cannot have read it; waiting for both could last for ever.
  const bool watches = input_ == output_;
  TUTTI_ASSIGN(const int16_t ready, wait(output_, watches ? POLLOUT | POLLIN : POLLOUT));
  if (!watches || (ready & POLLIN) == 0 || (ready & POLLOUT) != 0) return Status();
  std::byte first[32];
  const ssize_t count = recv(input_, first, sizeof(first), MSG_DONTWAIT | MSG_PEEK);
  if (count == 0 || (count < 0 && says_closed(errno))) return closed();
  if (count < 0) return Status();
  return base::data_loss("expected the process to read a whole message before it writes, got ",
                         shown(first, static_cast<size_t>(count)));
}

Status ProcessChannel::send_all(std::span<iovec> parts) {
  parts = behind(parts, 0);
  while (!parts.empty()) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = std::min(parts.size(), kMostParts);
    const ssize_t written = output_is_socket_ ? sendmsg(output_, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
                                              : writev(output_, message.msg_iov, static_cast<int>(message.msg_iovlen));
    if (written >= 0) {
      parts = behind(parts, static_cast<size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TUTTI_TRY(wait_to_send());
    } else if (says_closed(errno)) {
      return closed();
    } else if (errno != EINTR) {
      return base::status_from_errno(errno, "cannot write to the other process");
    }
  }
  return Status();
}

Status ProcessChannel::send(std::string_view header, std::span<const iovec> data) {
  if (header.size() > kMostHeaderBytes) {
    return base::invalid_argument("the header of a message has ", header.size(), " bytes, expected at most ",
                                  kMostHeaderBytes);
  }
  uint64_t size = little_endian(header.size());
  std::vector<iovec> parts{{&size, sizeof(size)}, {const_cast<char *>(header.data()), header.size()}};
  parts.insert(parts.end(), data.begin(), data.end());
  return send_all(parts);
}

Result<size_t> ProcessChannel::read_some(void *data, size_t size) {
  // A pipe waits by itself, but hears no token.
  if (!input_is_socket_) TUTTI_TRY(wait(input_, POLLIN).status());
  for (;;) {
    const ssize_t count = input_is_socket_ ? recv(input_, data, size, MSG_DONTWAIT) : read(input_, data, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (says_closed(errno)) return size_t{0};
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      TUTTI_TRY(wait(input_, POLLIN).status());
    } else if (errno != EINTR) {
      return base::status_from_errno(errno, "cannot read from the other process");
    }
  }
}

Result<bool> ProcessChannel::refill() {
  if (begin_ < end_) return true;
  TUTTI_ASSIGN(const size_t count, read_some(buffer_.data(), buffer_.size()));
  begin_ = 0;
  end_ = count;
  return count > 0;
}

Status ProcessChannel::receive(void *data, size_t size) {
  auto *to = static_cast<std::byte *>(data);
  while (size > 0) {
    size_t count = std::min(size, end_ - begin_);
    if (count > 0) {
      std::memcpy(to, buffer_.data() + begin_, count);
      begin_ += count;
    } else if (size >= buffer_.size()) {
      TUTTI_ASSIGN(count, read_some(to, size));
      if (count == 0) return closed();
    } else {
      TUTTI_ASSIGN(const bool has_more, refill());
      if (!has_more) return closed();
    }
    to += count;
    size -= count;
  }
  return Status();
}

Result<bool> ProcessChannel::receive_header(Json &header) {
  TUTTI_ASSIGN(const bool has_more, refill());
  if (!has_more) {
    is_closed_ = true;
    return false;
  }
  uint64_t size = 0;
  std::byte first{};
  TUTTI_TRY(receive(&size, sizeof(size)));
  size = little_endian(size);
  const bool fits = size >= 2 && size <= kMostHeaderBytes;
  if (fits) TUTTI_TRY(receive(&first, 1));
  // Without the brace what follows could be waited for in vain.
  if (!fits || first != std::byte{'{'}) {
    std::byte seen[32];
    const uint64_t before = little_endian(size);
    std::memcpy(seen, &before, sizeof(before));
    size_t count = sizeof(before);
    if (fits) seen[count++] = first;
    const size_t more = std::min(sizeof(seen) - count, end_ - begin_);
    std::memcpy(seen + count, buffer_.data() + begin_, more);
    return base::data_loss("expected a message, got ", shown(seen, count + more),
                           " (does the process print to its standard output?)");
  }
  header_.resize(static_cast<size_t>(size));
  header_[0] = '{';
  TUTTI_TRY(receive(header_.data() + 1, header_.size() - 1));
  Result<Json> parsed = Json::parse(header_, {.max_bytes = kMostHeaderBytes, .max_depth = 16});
  if (!parsed.ok()) return parsed.status().wrap(base::Code::data_loss, "expected a header in JSON");
  header = parsed.take();
  return true;
}

}  // namespace tutti::impl::data

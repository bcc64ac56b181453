// SPDX-License-Identifier: Apache-2.0
//
// One end of the talk between a process and its worker processes. Each side writes messages:
//
//   u64   bytes of the header, little-endian
//   ...   the header, one JSON object
//   ...   the data of its tensors, one behind the other; the header says how many bytes
//
//   ProcessChannel channel(socket, socket);
//   TUTTI_TRY(channel.send(header, data));
//   TUTTI_ASSIGN(const bool has_answer, channel.receive_header(answer));   // false: the other side has closed
//   TUTTI_TRY(channel.receive(values, size));
//
// Whatever comes is bounded before memory is taken for it. After an error the channel is of no use: the two sides need
// not agree any more on where a message begins.
//
// Threads: belongs to one thread at a time.
#ifndef TUTTI_DATA_PROCESS_PROCESS_CHANNEL_H_
#define TUTTI_DATA_PROCESS_PROCESS_CHANNEL_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"

namespace tutti::impl::data {

/// An event that a token raises, in a form that poll() understands.
class WakeEvent {
 public:
  static base::Result<WakeEvent> create();
  /// Becomes readable.
  void raise() const;
  /// Is not readable any more.
  void clear() const;
  int descriptor() const { return event_.get(); }

 private:
  explicit WakeEvent(base::FileDescriptor event) : event_(std::move(event)) {}
  base::FileDescriptor event_;
};

class ProcessChannel {
 public:
  /// A longer header is taken for something else than a header.
  static constexpr uint64_t kMostHeaderBytes = uint64_t{16} << 20;

  /// Reads from one descriptor and writes to the other, or the same; they stay the caller's.
  ProcessChannel(int input, int output);

  /// Until it goes, waits end when the token says so; the event is the channel's as long. Both outlive it.
  class Guard {
   public:
    Guard(ProcessChannel &channel, const base::CancelToken *token, const WakeEvent &event);
    ~Guard();

   private:
    ProcessChannel &channel_;
    base::CancelToken::Listener listener_;
  };

  /// Writes a message. DATA_LOSS when something comes from the other side before it can have read all.
  base::Status send(std::string_view header, std::span<const iovec> data = {});
  /// Reads the header of the next message; false when the other side has closed where one would begin.
  base::Result<bool> receive_header(base::Json &header);
  /// Reads data.
  base::Status receive(void *data, size_t size);

  /// Did an error come from that the other side has closed?
  bool is_closed() const { return is_closed_; }

 private:
  base::Status send_all(std::span<iovec> parts);
  /// Sleeps until the descriptor is ready for what `events` says, and gives what poll() says of it.
  base::Result<int16_t> wait(int descriptor, int16_t events);
  base::Status wait_to_send();
  /// At least one byte, 0 when the other side has closed.
  base::Result<size_t> read_some(void *data, size_t size);
  /// Fills the buffer; false when the other side has closed.
  base::Result<bool> refill();
  base::Status closed();

  const int input_, output_;
  const bool input_is_socket_, output_is_socket_;
  const base::CancelToken *token_ = nullptr;
  const WakeEvent *event_ = nullptr;
  bool is_closed_ = false;
  std::string header_;
  // What was read and not yet asked for.
  std::vector<std::byte> buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PROCESS_PROCESS_CHANNEL_H_

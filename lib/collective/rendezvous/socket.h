// SPDX-License-Identifier: Apache-2.0
//
// TCP sockets whose every wait has a deadline and a cancel token. For the few small messages of a rendezvous.
//
//   TUTTI_ASSIGN(Socket listener, Socket::listen("localhost:2222"));
//   TUTTI_ASSIGN(Socket socket, Socket::connect("localhost:2222", {Deadline::after_ms(5000), token}));
//   TUTTI_TRY(socket.send_all(text, wait));
//
// Threads: an object is used by one thread at a time. No signal is ever raised.
#ifndef TUTTI_COLLECTIVE_RENDEZVOUS_SOCKET_H_
#define TUTTI_COLLECTIVE_RENDEZVOUS_SOCKET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/cancel.h"
#include "base/status.h"

namespace tutti::impl::collective::rendezvous {

/// When a wait ends: DEADLINE_EXCEEDED, or what the token says (null: nothing).
struct Limits {
  base::Deadline deadline;
  const base::CancelToken *cancel = nullptr;
};

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket &&other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket &operator=(Socket &&other) noexcept;
  ~Socket();

  /// Listens at "host:port"; where no interface of this machine has the host's address, at all of them. Port 0 takes a
  /// free one. UNAVAILABLE naming the address.
  static base::Result<Socket> listen(const std::string &address);
  /// One attempt. UNAVAILABLE naming the address.
  static base::Result<Socket> connect(const std::string &address, const Limits &limits);
  /// A connection that waits, or an invalid socket where there is none.
  Socket accept() const;

  bool is_valid() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// Of this side and of the other, without port: "127.0.0.1". Empty where it cannot be told.
  std::string local_host() const;
  std::string peer_host() const;
  int32_t local_port() const;

  base::Status send_all(std::string_view bytes, const Limits &limits) const;
  /// Exactly `length` bytes. UNAVAILABLE when the other side has closed the connection.
  base::Status receive_all(char *into, size_t length, const Limits &limits) const;
  /// What there is, without waiting: the number of bytes, 0 for nothing yet, -1 for a connection that has ended.
  int64_t receive_some(char *into, size_t capacity) const;
  int64_t send_some(std::string_view bytes) const;

 private:
  int descriptor_ = -1;
};

}  // namespace tutti::impl::collective::rendezvous

#endif  // TUTTI_COLLECTIVE_RENDEZVOUS_SOCKET_H_

// SPDX-License-Identifier: Apache-2.0
#include "collective/rendezvous/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace tutti::impl::collective::rendezvous {

using base::Result;
using base::Status;

namespace {

// How soon a wait notices its token.
constexpr int64_t kLongestPollMs = 20;

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo *)>;

Result<AddressList> resolve(const std::string &address, bool listens) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return base::invalid_argument("the address ", base::quoted(address), " has no port");
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = listens ? AI_PASSIVE : 0;
  addrinfo *list = nullptr;
  const int failure = getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &list);
  if (failure != 0)
    return base::unavailable("the address ", base::quoted(address), " cannot be resolved: ", gai_strerror(failure));
  return AddressList(list, freeaddrinfo);
}

Status wait_for(int descriptor, short events, const Limits &limits) {
  for (;;) {
    TUTTI_TRY(base::check(limits.cancel));
    if (limits.deadline.passed()) return base::wait_timed_out();
    pollfd poller{descriptor, events, 0};
    const int64_t remaining = std::clamp<int64_t>(limits.deadline.remaining_ms(), 1, kLongestPollMs);
    if (poll(&poller, 1, static_cast<int>(remaining)) > 0) return Status();
  }
}

Status unreachable(const std::string &address, int error_number) {
  return base::unavailable("no connection to ", address, ": ", std::string(strerror(error_number)));
}

Result<Socket> connect_to(const addrinfo &to, const std::string &address, const Limits &limits) {
  Socket socket(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_valid()) return unreachable(address, errno);
  if (::connect(socket.descriptor(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return unreachable(address, errno);
    TUTTI_TRY(wait_for(socket.descriptor(), POLLOUT, limits));
    int error_number = 0;
    socklen_t length = sizeof(error_number);
    getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error_number, &length);
    if (error_number != 0) return unreachable(address, error_number);
  }
  const int on = 1;
  setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

Result<Socket> listen_at(const sockaddr *where, socklen_t length, int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_valid()) return base::status_from_errno(errno, "socket");
  const int on = 1;
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.descriptor(), where, length) != 0) return base::status_from_errno(errno, "bind");
  if (::listen(socket.descriptor(), SOMAXCONN) != 0) return base::status_from_errno(errno, "listen");
  return socket;
}

/// The same port on all interfaces: a service of a cluster gives a machine a name whose address it does not have.
Result<Socket> listen_everywhere(const addrinfo &where) {
  if (where.ai_family == AF_INET6) {
    auto any = *reinterpret_cast<const sockaddr_in6 *>(where.ai_addr);
    any.sin6_addr = in6addr_any;
    return listen_at(reinterpret_cast<const sockaddr *>(&any), sizeof(any), AF_INET6);
  }
  auto any = *reinterpret_cast<const sockaddr_in *>(where.ai_addr);
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  return listen_at(reinterpret_cast<const sockaddr *>(&any), sizeof(any), AF_INET);
}

using NameFunction = int (*)(int, sockaddr *, socklen_t *);

std::string host_of(int descriptor, NameFunction function) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  auto *const where = reinterpret_cast<sockaddr *>(&storage);
  char host[NI_MAXHOST] = "";
  if (function(descriptor, where, &length) != 0) return std::string();
  if (getnameinfo(where, length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return std::string();
  const std::string_view name(host);
  return std::string(name.starts_with("::ffff:") ? name.substr(7) : name);
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Socket &Socket::operator=(Socket &&other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<Socket> Socket::listen(const std::string &address) {
  TUTTI_ASSIGN(const AddressList list, resolve(address, true));
  Status failure = base::unavailable("there is no such address");
  for (const addrinfo *next = list.get(); next != nullptr; next = next->ai_next) {
    Result<Socket> socket = listen_at(next->ai_addr, next->ai_addrlen, next->ai_family);
    if (!socket.ok() && errno == EADDRNOTAVAIL) socket = listen_everywhere(*next);
    if (socket.ok()) return socket;
    failure = socket.status();
  }
  return failure.wrap(base::Code::unavailable, base::concat("cannot listen at ", address));
}

Result<Socket> Socket::connect(const std::string &address, const Limits &limits) {
  TUTTI_ASSIGN(const AddressList list, resolve(address, false));
  Status failure = base::unavailable("there is no such address");
  for (const addrinfo *next = list.get(); next != nullptr; next = next->ai_next) {
    Result<Socket> socket = connect_to(*next, address, limits);
    if (socket.ok() || base::is_interrupt(socket.status())) return socket;
    failure = socket.status();
  }
  return failure;
}

Socket Socket::accept() const {
  Socket socket(accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const int on = 1;
  if (socket.is_valid()) setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

std::string Socket::local_host() const { return host_of(descriptor_, getsockname); }
std::string Socket::peer_host() const { return host_of(descriptor_, getpeername); }

int32_t Socket::local_port() const {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (getsockname(descriptor_, reinterpret_cast<sockaddr *>(&storage), &length) != 0) return -1;
  const auto &where = reinterpret_cast<const sockaddr_in &>(storage);  // the port lies at the same place in both
  return ntohs(where.sin_port);
}

int64_t Socket::send_some(std::string_view bytes) const {
  const ssize_t sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return sent;
  return would_block() ? 0 : -1;
}

int64_t Socket::receive_some(char *into, size_t capacity) const {
  const ssize_t received = recv(descriptor_, into, capacity, MSG_DONTWAIT);
  if (received > 0) return received;
  return received < 0 && would_block() ? 0 : -1;
}

Status Socket::send_all(std::string_view bytes, const Limits &limits) const {
  while (!bytes.empty()) {
    const int64_t sent = send_some(bytes);
    if (sent < 0) return base::unavailable("the connection was closed by the other side");
    bytes.remove_prefix(static_cast<size_t>(sent));
    if (!bytes.empty() && sent == 0) TUTTI_TRY(wait_for(descriptor_, POLLOUT, limits));
  }
  return Status();
}

Status Socket::receive_all(char *into, size_t length, const Limits &limits) const {
  while (length > 0) {
    const int64_t received = receive_some(into, length);
    if (received < 0) return base::unavailable("the connection was closed by the other side");
    into += received;
    length -= static_cast<size_t>(received);
    if (length > 0 && received == 0) TUTTI_TRY(wait_for(descriptor_, POLLIN, limits));
  }
  return Status();
}

}  // namespace tutti::impl::collective::rendezvous

// SPDX-License-Identifier: Apache-2.0
// Any bytes are a talk at the rendezvous of workers or end it, on both sides. The first byte says whose they are:
// 0: of somebody who has just called; 1: of one who has said the magic word, in place of a proof; 2: of a worker that
// has proved that it belongs to the job; 3: of who listens where a worker 0 is sought; 4: of a worker 0 that has
// proved itself, in place of answers.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "collective/rendezvous/store.h"
#include "collective/rendezvous/store_server.h"

using namespace tutti::impl;
using namespace tutti::impl::collective::rendezvous;
using collective::kNonceBytes;

namespace {

constexpr std::string_view kSecret = "hunter2";
constexpr int64_t kLongMs = 20000;
// After which nobody answers any more.
constexpr int kQuietMs = 2;
// The answers to so much a socket takes while nobody reads them.
constexpr size_t kMostInput = 4096;

Limits within(int64_t milliseconds) { return {base::Deadline::after_ms(milliseconds), nullptr}; }

StoreServer &server() {
  static const std::unique_ptr<StoreServer> started = [] {
    StoreServerOptions options;
    options.address = "127.0.0.1:0";
    options.build_id = "fuzz";
    options.secret = kSecret;
    options.warn = [](const std::string &line) {
      if (line.find(kSecret) != std::string::npos) std::abort();
    };
    return StoreServer::start(std::move(options)).take();
  }();
  return *started;
}

StoreOptions options_at(int32_t port) {
  StoreOptions options;
  options.addresses = {base::concat("127.0.0.1:", port)};
  options.build_id = "fuzz";
  options.secret = kSecret;
  return options;
}

/// What the other side says until it is quiet or ends the connection.
std::string drain(const Socket &socket) {
  std::string said;
  std::array<char, 4096> bytes{};
  pollfd poller{socket.descriptor(), POLLIN, 0};
  while (poll(&poller, 1, kQuietMs) > 0) {
    const int64_t received = socket.receive_some(bytes.data(), bytes.size());
    if (received < 0) break;
    said.append(bytes.data(), static_cast<size_t>(received));
  }
  return said;
}

void send_all(const Socket &socket, std::string_view bytes) { (void)socket.send_all(bytes, within(kLongMs)); }

std::string receive(const Socket &socket, size_t count) {
  std::string bytes(count, '\0');
  if (!socket.receive_all(bytes.data(), bytes.size(), within(kLongMs)).ok()) bytes.clear();
  return bytes;
}

// ---- to a server ----

void call(int stage, std::string_view bytes) {
  const Socket socket = Socket::connect(base::concat("127.0.0.1:", server().port()), within(kLongMs)).take();
  if (stage > 0) {
    send_all(socket, kMagic);
    const std::string greeting = receive(socket, kGreetingBytes), own(kNonceBytes, 'n');
    if (!std::string_view(greeting).starts_with(kServerMagic)) std::abort();
    if (stage == 2) {
      const std::string nonce = greeting.substr(kServerMagic.size());
      send_all(socket, own + collective::prove(kSecret, kClientRole, nonce, own));
      const std::string verdict = receive(socket, kVerdictBytes);
      if (verdict.empty() || verdict.front() != 1) std::abort();
    }
  }
  send_all(socket, bytes);
  const std::string said = drain(socket);
  // Who has proved nothing is told nothing but the greeting, or that it is none.
  if (stage == 0 && said.size() > kGreetingBytes + kVerdictBytes) std::abort();
  if (stage == 1 && !said.empty() && said != std::string(kVerdictBytes, '\0')) std::abort();
}

/// The server serves on.
void check_server() {
  auto store = Store::connect(options_at(server().port()), within(kLongMs));
  if (!store.ok() || !(*store)->join(within(kLongMs)).ok() || !(*store)->set("key", "value", within(kLongMs)).ok() ||
      (*store)->get("key", within(kLongMs)).value() != "value")
    std::abort();
}

// ---- to a worker ----

void answer(const Socket &socket, bool proves, std::string_view bytes) {
  const std::string magic = receive(socket, kMagic.size()), nonce(kNonceBytes, 's');
  if (proves && !magic.empty()) {
    send_all(socket, std::string(kServerMagic) + nonce);
    const std::string said = receive(socket, kAnswerBytes), theirs = said.substr(0, kNonceBytes);
    if (!collective::proves(std::string_view(said).substr(kNonceBytes), kSecret, kClientRole, nonce, theirs))
      std::abort();
    send_all(socket, "\1" + collective::prove(kSecret, kServerRole, nonce, theirs));
  }
  send_all(socket, bytes);
  shutdown(socket.descriptor(), SHUT_WR);
  (void)drain(socket);
}

void seek(bool proves, std::string_view bytes) {
  const Socket listener = Socket::listen("127.0.0.1:0").take();
  std::thread leader([&] {
    pollfd poller{listener.descriptor(), POLLIN, 0};
    if (poll(&poller, 1, kLongMs) > 0) answer(listener.accept(), proves, bytes);
  });
  // Where it proves nothing there is one attempt.
  auto store = Store::connect(options_at(listener.local_port()), within(proves ? kLongMs : 20));
  leader.join();
  if (!proves && store.ok()) std::abort();
  if (!store.ok()) return;
  (void)(*store)->join(within(kLongMs));
  (void)(*store)->set("key", "value", within(kLongMs));
  (void)(*store)->get("key", within(kLongMs));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0 || size > kMostInput) return 0;
  const std::string_view bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  const int stage = data[0] % 5;
  if (stage <= 2) call(stage, bytes);
  if (stage > 2) seek(stage == 4, bytes);
  static int count = 0;
  if (++count % 50 == 0) check_server();
  return 0;
}

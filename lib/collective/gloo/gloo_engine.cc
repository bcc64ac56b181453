// SPDX-License-Identifier: Apache-2.0
//
// The engine over Gloo's TCP transport, as a plug-in of its own: one connection for each pair of processes, addresses
// through the library's rendezvous. Of Gloo only transport/ is used; its collectives add in an order of their own.
//
// What Gloo's own thread throws ends the connection it is about (guarded_transport.h).
//
// Before 2023 each connection is waited for at a port of its own, and Gloo takes who calls there first, while the mesh
// is being made, for the other side: that one is refused then. From 2023 on all connections of a device are waited for
// at one port, and one that does not say for which it is meant is passed over; one that does is taken for the other
// side. Who uses the mesh finds out and makes another one (cluster/worker_mesh.h). What a stranger says meanwhile is
// read as heads of messages: those of an unknown kind, as most bytes are, are passed over, others end the connection.
//
// A device of one port that goes while a connection is half made ends the process: the thread that reads from it holds
// the device's last reference, and would wait for itself. So devices are kept there, for later meshes.
//
// Gloo does not tell who waits for a message that was under way when its connection ended (Pair::signalException leaves
// out what is being written and read). So every connection has a watch, a message that never comes, which is told; a
// thread now and then wakes who waits, to look at it.
//
// Gloo has a limit for each connection. That for all of them together is kept by a thread which closes the one that is
// waited for then.
//
// A wait of Gloo's that runs out closes all connections of the mesh at once (UnboundBuffer::waitRecv), and the others
// would see this process go before it has told them why. So Gloo waits for ever, and time is kept here, by that thread.
#include <gloo/common/error.h>
#include <gloo/transport/unbound_buffer.h>
#include <tutti/plugin/collective.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/build_id.h"
#include "collective/gloo/guarded_transport.h"

namespace {

using tutti::gloo_engine::make_context;
using tutti::gloo_engine::make_device;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Canonical codes of <tutti/status.h>.
constexpr int32_t kCancelled = 1, kDeadlineExceeded = 4, kInternal = 13, kUnavailable = 14;
// Gloo adds timeouts to the time of day.
constexpr int64_t kLongestWaitMs = int64_t{1000} * 3600 * 24 * 365;
// How soon the end of a wait is noticed, and that of a connection where Gloo does not tell.
constexpr milliseconds kPulse{50};
// Of the watches: no message has it.
constexpr uint64_t kWatchSlot = uint64_t{1} << 40;

milliseconds bounded(int64_t timeout_ms) {
  return milliseconds(timeout_ms < 0 ? kLongestWaitMs : std::clamp<int64_t>(timeout_ms, 1, kLongestWaitMs));
}

struct Failure {
  int32_t code;
  int32_t peer;
  std::string message;
};

}  // namespace

struct tutti_mesh {
  const tutti_engine_host *host = nullptr;
  std::shared_ptr<gloo::transport::tcp::Device> device;
  std::shared_ptr<gloo::transport::Context> context;

  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> watches;  // by rank; null for the own
  char watched = 0;

  std::mutex mutex;
  std::condition_variable closes;
  // Guarded by mutex:
  bool is_interrupted = false, is_closing = false;
  gloo::transport::UnboundBuffer *awaited = nullptr;
  bool awaits_send = false;
  std::thread pulse;

  ~tutti_mesh() {
    {
      const std::lock_guard lock(mutex);
      is_closing = true;
    }
    closes.notify_all();
    if (pulse.joinable()) pulse.join();
  }
  /// Whoever waits looks round; the caller holds the mutex.
  void wake() {
    if (awaited == nullptr) return;
    if (awaits_send) awaited->abortWaitSend();
    if (!awaits_send) awaited->abortWaitRecv();
  }
  void beat() {
    std::unique_lock lock(mutex);
    while (!closes.wait_for(lock, kPulse, [this] { return is_closing; }))
      wake();
  }
};

namespace {

using Buffers = std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>>;
enum class Direction { send, receive };

int32_t report(const tutti_engine_host *host, tutti_error_sink *sink, const Failure &failure, int32_t *failed_peer) {
  if (failed_peer != nullptr) *failed_peer = failure.peer;
  host->set_error(sink, failure.code, failure.message.c_str());
  return failure.code;
}

/// Runs `body`; exceptions become errors.
template <typename Body>
int32_t guarded(const tutti_engine_host *host, tutti_error_sink *sink, int32_t *failed_peer, Body body) noexcept {
  try {
    body();
    return 0;
  } catch (const Failure &failure) {
    return report(host, sink, failure, failed_peer);
  } catch (const std::exception &error) {
    return report(host, sink, {kInternal, -1, error.what()}, failed_peer);
  }
}

// ---- connecting ----

void write_bytes(void *user, const void *bytes, uint64_t length) {
  const auto *const first = static_cast<const char *>(bytes);
  static_cast<std::vector<char> *>(user)->assign(first, first + length);
}

std::string address_key(int32_t from, int32_t to) { return std::to_string(from) + "/" + std::to_string(to); }

/// For a mesh at an address of this machine. A process that was forked has none of its parent's threads.
std::shared_ptr<gloo::transport::tcp::Device> device_at(const char *host) {
  if (!TUTTI_GLOO_HAS_ONE_PORT) return make_device(host);
  using Place = std::pair<pid_t, std::string>;
  static std::mutex mutex;
  static auto *const kept = new std::map<Place, std::shared_ptr<gloo::transport::tcp::Device>>;  // never destroyed
  const std::lock_guard lock(mutex);
  std::shared_ptr<gloo::transport::tcp::Device> &device = (*kept)[{getpid(), host}];
  if (device == nullptr) device = make_device(host);
  return device;
}

/// Makes the listening sides and tells everybody where they are.
void publish_addresses(tutti_mesh &mesh, const tutti_connect_request &request, tutti_error_sink *sink) {
  for (int32_t peer = 0; peer < request.size; ++peer) {
    if (peer == request.rank) continue;
    const std::vector<char> bytes = mesh.context->createPair(peer)->address().bytes();
    const std::string key = address_key(request.rank, peer);
    const int32_t code = mesh.host->put(mesh.host->user, key.c_str(), bytes.data(), bytes.size(), sink);
    if (code != 0) throw Failure{code, -1, ""};
  }
}

/// Of all connections of a mesh: closes the one that is waited for when the time is over, or its peer has ended.
class ConnectingLimit {
 public:
  ConnectingLimit(const tutti_engine_host &host, milliseconds timeout)
      : host_(host), timeout_(timeout), end_(Clock::now() + timeout), thread_([this] { watch(); }) {}
  ~ConnectingLimit() {
    {
      const std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    done_.notify_all();
    thread_.join();
  }

  void connect(gloo::transport::Pair &pair, const std::vector<char> &bytes, int32_t peer) {
    begin(pair, peer);
    std::string failure;
    try {
      pair.connect(bytes);
    } catch (const std::exception &error) {
      failure = error.what();
    }
    const std::lock_guard lock(mutex_);
    awaited_ = nullptr;
    if (is_over_) throw late(peer);
    if (std::exchange(has_gone_, false)) throw Failure{kUnavailable, peer, "it has disconnected"};
    if (!failure.empty()) throw Failure{kUnavailable, peer, failure};
  }

 private:
  void begin(gloo::transport::Pair &pair, int32_t peer) {
    const std::lock_guard lock(mutex_);
    if (Clock::now() >= end_) throw late(peer);
    awaited_ = &pair;
    awaited_peer_ = peer;
  }
  Failure late(int32_t peer) const {
    return {kDeadlineExceeded, peer, "not connected in " + std::to_string(timeout_.count()) + " ms"};
  }
  void watch() {
    std::unique_lock lock(mutex_);
    while (!done_.wait_until(lock, std::min(end_, Clock::now() + kLook), [this] { return is_done_; })) {
      is_over_ = Clock::now() >= end_;
      if (!is_over_) look_for_peer(lock);
      if (awaited_ != nullptr && (is_over_ || has_gone_)) awaited_->close();
      if (is_over_) return;
    }
  }
  /// Asks the host, who may take a while, without the lock.
  void look_for_peer(std::unique_lock<std::mutex> &lock) {
    if (awaited_ == nullptr || host_.is_awaited == nullptr) return;
    const gloo::transport::Pair *const pair = awaited_;
    const int32_t peer = awaited_peer_;
    lock.unlock();
    const bool is_awaited = host_.is_awaited(host_.user, peer) != 0;
    lock.lock();
    has_gone_ = !is_awaited && awaited_ == pair;
  }

  static constexpr milliseconds kLook{200};
  const tutti_engine_host &host_;
  const milliseconds timeout_;
  const Clock::time_point end_;
  std::mutex mutex_;
  std::condition_variable done_;
  // Guarded by mutex_:
  bool is_done_ = false, is_over_ = false, has_gone_ = false;
  gloo::transport::Pair *awaited_ = nullptr;
  int32_t awaited_peer_ = -1;
  std::thread thread_;  // last: it uses the rest
};

void connect_pair(tutti_mesh &mesh, const tutti_connect_request &request, int32_t peer, ConnectingLimit &limit,
                  tutti_error_sink *sink) {
  std::vector<char> bytes;
  const std::string key = address_key(peer, request.rank);
  const int32_t code = mesh.host->get(mesh.host->user, key.c_str(), write_bytes, &bytes, sink);
  if (code != 0) throw Failure{code, peer, ""};
  limit.connect(*mesh.context->getPair(peer), bytes, peer);
}

/// All that can be, so that who waits for this process does so only until then; throws what failed first.
void connect_pairs(tutti_mesh &mesh, const tutti_connect_request &request, ConnectingLimit &limit,
                   tutti_error_sink *sink) {
  std::optional<Failure> failure;
  for (int32_t peer = 0; peer < request.size; ++peer) {
    if (peer == request.rank) continue;
    try {
      connect_pair(mesh, request, peer, limit, sink);
    } catch (const Failure &one) {
      if (one.code != kUnavailable) throw;
      if (!failure) failure = one;
    }
  }
  if (failure) throw *failure;
}

void watch_all(tutti_mesh &mesh, const tutti_connect_request &request) {
  for (int32_t peer = 0; peer < request.size; ++peer) {
    mesh.watches.emplace_back();
    if (peer == request.rank) continue;
    mesh.watches.back() = mesh.context->createUnboundBuffer(&mesh.watched, 1);
    try {
      mesh.watches.back()->recv(peer, kWatchSlot);
    } catch (const std::exception &error) {  // it has ended already
      throw Failure{kUnavailable, peer, error.what()};
    }
  }
}

/// Throws what has ended the connection, if it has ended.
void check_connection(gloo::transport::UnboundBuffer &watch) {
  watch.abortWaitRecv();
  (void)watch.waitRecv(milliseconds(kLongestWaitMs));  // interrupted already, it does not wait
}

int32_t connect(const tutti_engine_host *host, const tutti_connect_request *request, tutti_mesh **out,
                int32_t *failed_peer, tutti_error_sink *sink) {
  return guarded(host, sink, failed_peer, [&] {
    auto mesh = std::make_unique<tutti_mesh>();
    mesh->host = host;
    mesh->device = device_at(request->host);
    mesh->context = make_context(mesh->device, request->rank, request->size);
    const milliseconds timeout = bounded(request->timeout_ms);
    mesh->context->setTimeout(timeout);
    ConnectingLimit limit(*host, timeout);
    publish_addresses(*mesh, *request, sink);
    connect_pairs(*mesh, *request, limit, sink);
    watch_all(*mesh, *request);
    tutti_mesh *const self = mesh.get();
    mesh->pulse = std::thread([self] { self->beat(); });
    *out = mesh.release();
  });
}

void close(tutti_mesh *mesh) { delete mesh; }

// ---- exchanging ----

/// One wait: until it is complete, or somebody wakes it (false), which a pulse does.
bool wait_awhile(tutti_mesh &mesh, bool may_interrupt, gloo::transport::UnboundBuffer &buffer, Direction direction) {
  {
    const std::lock_guard lock(mesh.mutex);
    if (may_interrupt && mesh.is_interrupted) throw Failure{kCancelled, -1, "the exchange was interrupted"};
    mesh.awaited = &buffer;
    mesh.awaits_send = direction == Direction::send;
  }
  const auto leave = [&] {
    const std::lock_guard lock(mesh.mutex);
    mesh.awaited = nullptr;
  };
  try {
    constexpr milliseconds longest{kLongestWaitMs};
    const bool is_complete = direction == Direction::send ? buffer.waitSend(longest) : buffer.waitRecv(longest);
    leave();
    return is_complete;
  } catch (...) {
    leave();
    throw;
  }
}

/// The other side may have sent all and closed then. Twice: a wake that came too late for an earlier wait ends the next
/// one, complete or not.
bool is_complete_after_all(tutti_mesh &mesh, gloo::transport::UnboundBuffer &buffer, Direction direction) {
  try {
    return wait_awhile(mesh, false, buffer, direction) || wait_awhile(mesh, false, buffer, direction);
  } catch (const std::exception &) {
    return false;
  }
}

void wait(tutti_mesh &mesh, const tutti_exchange &exchange, const tutti_message &message,
          gloo::transport::UnboundBuffer &buffer, Direction direction, Clock::time_point end) {
  const bool may_interrupt = (exchange.flags & TUTTI_EXCHANGE_UNINTERRUPTED) == 0;
  try {
    bool is_over = false;
    while (!wait_awhile(mesh, may_interrupt, buffer, direction)) {
      check_connection(*mesh.watches[static_cast<size_t>(message.peer)]);
      if (is_over) throw Failure{kDeadlineExceeded, message.peer, "the exchange timed out"};
      is_over = Clock::now() >= end;  // one more wait, for what has come just then
    }
  } catch (const std::exception &error) {
    if (is_complete_after_all(mesh, buffer, direction)) return;
    throw Failure{kUnavailable, message.peer, error.what()};
  }
}

/// All that can be begun, so that who has gone keeps nobody else waiting; `failure` is that of the first who has gone.
Buffers begin(tutti_mesh &mesh, const tutti_message *messages, int32_t count, Direction direction,
              std::optional<Failure> &failure) {
  Buffers buffers;
  buffers.reserve(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    const tutti_message &message = messages[i];
    buffers.push_back(mesh.context->createUnboundBuffer(message.bytes, message.length));
    try {
      if (direction == Direction::send) buffers.back()->send(message.peer, message.tag);
      if (direction == Direction::receive) buffers.back()->recv(message.peer, message.tag);
    } catch (const std::exception &error) {
      if (!failure) failure = Failure{kUnavailable, message.peer, error.what()};
    }
  }
  return buffers;
}

int32_t exchange(tutti_mesh *mesh, const tutti_exchange *exchange, tutti_error_sink *sink) {
  return guarded(mesh->host, sink, exchange->failed_peer, [&] {
    const Clock::time_point end = Clock::now() + bounded(exchange->timeout_ms);
    std::optional<Failure> failure;
    const Buffers receives = begin(*mesh, exchange->receives, exchange->receive_count, Direction::receive, failure);
    const Buffers sends = begin(*mesh, exchange->sends, exchange->send_count, Direction::send, failure);
    if (failure) throw *failure;
    for (size_t i = 0; i < receives.size(); ++i)
      wait(*mesh, *exchange, exchange->receives[i], *receives[i], Direction::receive, end);
    for (size_t i = 0; i < sends.size(); ++i)
      wait(*mesh, *exchange, exchange->sends[i], *sends[i], Direction::send, end);
  });
}

void interrupt(tutti_mesh *mesh) {
  const std::lock_guard lock(mesh->mutex);
  mesh->is_interrupted = true;
  mesh->wake();
}

constexpr tutti_engine_api kApi = {
    .struct_size = sizeof(tutti_engine_api),
    .abi_version = TUTTI_ENGINE_ABI_VERSION,
    .name = "gloo",
    .version = "1",
    .build_id = tutti::impl::backend::kBuildId,
    .connect = connect,
    .close = close,
    .exchange = exchange,
    .interrupt = interrupt,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const tutti_engine_api *tutti_engine_entry(uint32_t version) {
  return version == TUTTI_ENGINE_ABI_VERSION ? &kApi : nullptr;
}

// SPDX-License-Identifier: Apache-2.0
#include "collective/gloo/guarded_transport.h"

#include <gloo/common/error.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/pair.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#if TUTTI_GLOO_HAS_ONE_PORT
#include <gloo/transport/tcp/error.h>
#include <gloo/transport/tcp/socket.h>
#endif

namespace tutti::gloo_engine {

namespace tcp = gloo::transport::tcp;

namespace {

class OpenDevice final : public tcp::Device {
 public:
  using tcp::Device::Device;
#if TUTTI_GLOO_HAS_ONE_PORT
  using tcp::Device::connect;
#endif
};

/// Gloo calls it on the device's thread when its socket has something to tell.
class GuardedPair final : public tcp::Pair {
 public:
  GuardedPair(tcp::Context *context, tcp::Device *device, int rank, std::chrono::milliseconds timeout)
      : tcp::Pair(context, device, rank, timeout) {}

  /// As Pair's does, but while the device's thread, which may be calling, still finds a guarded one.
  ~GuardedPair() override {
    leave_seat();
    const std::lock_guard lock(m_);
    if (state_ != CLOSED) tcp::Pair::changeState(CLOSED);
  }

#if TUTTI_GLOO_HAS_ONE_PORT
  /// As Pair's, but the device holds no pointer to this, only to its seat.
  void connect(const std::vector<char> &bytes) override {
    std::unique_lock lock(m_);
    throwIfException();
    state_ = CONNECTING;
    const auto called = [seat = seat_](std::shared_ptr<tcp::Socket> socket, const tcp::Error &error) {
      const std::lock_guard seat_lock(seat->mutex);
      if (seat->pair != nullptr) seat->pair->have_socket(std::move(socket), error);
    };
    static_cast<OpenDevice *>(device_)->connect(self_, tcp::Address(bytes), timeout_, called);
    waitUntilConnected(lock, true);
  }
#else
  /// As Pair's. Whoever holds the lock may wait for this thread: the events come again.
  void handleEvents(int events) override {
    const std::unique_lock lock(m_, std::try_to_lock);
    if (!lock || state_ == CLOSED) return;
    if (state_ == CONNECTED) return handleReadWrite(events);
    try {
      if (state_ == LISTENING)
        handleListening();
      else
        handleConnecting();
    } catch (...) {
      end_connection(std::current_exception());
    }
  }
#endif

 protected:
  /// Called with the lock held.
  void handleReadWrite(int events) override {
    try {
      tcp::Pair::handleReadWrite(events);
    } catch (...) {
      end_connection(std::current_exception());
    }
  }

 private:
  /// Gloo calls handleConnected and connectCallback, which may throw before they register the socket, in this state.
#if TUTTI_GLOO_HAS_ONE_PORT
  static constexpr state kUnregistered = CONNECTING;
#else
  static constexpr state kUnregistered = LISTENING;
#endif

  /// For an exception of Gloo's; the caller holds the lock.
  void end_connection(const std::exception_ptr &why) {
    if (ex_ != nullptr) return;
    if (state_ == kUnregistered && fd_ >= 0) {  // Pair would take it from the device
      ::close(fd_);
      fd_ = -1;
    }
    signalException(why);
  }

#if TUTTI_GLOO_HAS_ONE_PORT
  struct Seat {
    std::mutex mutex;
    GuardedPair *pair;  // guarded by mutex; null when it has gone
  };

  void have_socket(std::shared_ptr<tcp::Socket> socket, const tcp::Error &error) {
    {
      const std::lock_guard lock(m_);
      if (state_ != CONNECTING) return;  // closed meanwhile
    }
    try {
      connectCallback(std::move(socket), error);
    } catch (...) {
      const std::lock_guard lock(m_);
      end_connection(std::current_exception());
    }
  }

  void leave_seat() {
    const std::lock_guard lock(seat_->mutex);
    seat_->pair = nullptr;
  }

  const std::shared_ptr<Seat> seat_{new Seat { {}, this }};
#else
  void leave_seat() {}
#endif
};

class GuardedContext final : public tcp::Context {
 public:
  using tcp::Context::Context;
  std::unique_ptr<gloo::transport::Pair> &createPair(int peer) override {
    std::unique_ptr<gloo::transport::Pair> &pair = pairs_[static_cast<size_t>(peer)];
    pair = std::make_unique<GuardedPair>(this, device_.get(), peer, getTimeout());
    return pair;
  }
};

}  // namespace

std::shared_ptr<tcp::Device> make_device(const char *host) {
  tcp::attr attributes;
  attributes.hostname = host;
  return std::make_shared<OpenDevice>(tcp::CreateDeviceAttr(attributes));
}

std::shared_ptr<gloo::transport::Context> make_context(std::shared_ptr<tcp::Device> device, int rank, int size) {
  return std::make_shared<GuardedContext>(std::move(device), rank, size);
}

}  // namespace tutti::gloo_engine

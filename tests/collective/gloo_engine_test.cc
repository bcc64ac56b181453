// SPDX-License-Identifier: Apache-2.0
//
// The engine over Gloo by itself, between threads: when its waits end, and what the others see of it.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/text.h"
#include "collective/cluster/worker_exchange.h"
#include "collective/engine.h"
#include "collective/rendezvous/store.h"
#include "runtime/engine_list.h"
#include "testing.h"

namespace tutti::testing::gloo_engine_test {

namespace base = impl::base;
namespace collective = impl::collective;
namespace rendezvous = impl::collective::rendezvous;
using base::Result;
using base::Status;
using collective::EngineRef;
using collective::Mesh;
using collective::MeshOptions;
using std::chrono::milliseconds;

constexpr int64_t kLongMs = 20000;

static EngineRef engine() {
  static const EngineRef opened = impl::runtime::open_engine(getenv("TUTTI_TEST_ENGINE")).value();
  return opened;
}

/// In memory; `visit` sees what is put before the others do.
class Table : public collective::AddressTable {
 public:
  using Visit = std::function<void(Table &, std::string_view key, std::string_view bytes)>;
  explicit Table(Visit visit = {}) : visit_(std::move(visit)) {}

  void set(const std::string &key, std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    values_[key] = bytes;
    changed_.notify_all();
  }
  Status put(const char *key, std::string_view bytes) override {
    if (visit_) visit_(*this, key, bytes);
    set(key, bytes);
    return Status();
  }
  Result<std::string> get(const char *key) override {
    std::unique_lock lock(mutex_);
    const auto is_there = [&] { return values_.contains(key); };
    if (!changed_.wait_for(lock, milliseconds(kLongMs), is_there)) return base::not_found("no ", key);
    return values_[key];
  }

 private:
  const Visit visit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

using Body = std::function<Status(std::unique_ptr<Mesh> &, int32_t rank)>;

/// Each rank connects and runs the body on a thread of its own.
static std::vector<Status> run_mesh(int32_t size, int64_t timeout_ms, Table &table, const Body &body) {
  std::vector<Status> statuses(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[static_cast<size_t>(rank)] = [&]() -> Status {
        const MeshOptions options = {.rank = rank, .size = size, .host = "127.0.0.1", .timeout_ms = timeout_ms};
        TUTTI_ASSIGN(std::unique_ptr<Mesh> mesh, engine()->connect(options, table));
        return body(mesh, rank);
      }();
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  return statuses;
}

static Status receive_word(Mesh &mesh, int32_t from, int64_t timeout_ms) {
  int64_t word = 0;
  const tutti_message message = {from, 1, &word, sizeof(word)};
  return mesh.exchange({.sends = {}, .receives = {&message, 1}, .timeout_ms = timeout_ms});
}

static void assert_code(const Status &status, base::Code code) {
  if (status.code() != code) fail_msg("%s", status.to_string().c_str());
}

static int64_t milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin).count();
}

/// Rank 0 waits for rank 1 in vain. Rank 2, which waits for rank 0, hears nothing of that until rank 0 closes.
static void test_a_wait_that_runs_out_closes_nothing(void **) {
  Table table;
  std::atomic<bool> has_told{false}, has_heard{false};
  const auto statuses = run_mesh(3, kLongMs, table, [&](std::unique_ptr<Mesh> &mesh, int32_t rank) -> Status {
    if (rank == 0) {
      const auto begin = std::chrono::steady_clock::now();
      const Status late = receive_word(*mesh, 1, 200);
      const int64_t took_ms = milliseconds_since(begin);
      if (took_ms < 200) return base::internal_error("over after ", took_ms, " ms");
      std::this_thread::sleep_for(milliseconds(300));  // in which it tells the others why
      has_told = true;
      mesh.reset();
      return late;
    }
    if (rank == 2) {
      const Status gone = receive_word(*mesh, 0, kLongMs);
      has_heard = true;
      return has_told ? gone : base::internal_error("too early: ", gone.to_string());
    }
    while (!has_heard)
      std::this_thread::sleep_for(milliseconds(1));
    return Status();
  });
  assert_code(statuses[0], base::Code::deadline_exceeded);
  assert_int_equal(collective::failed_peer(statuses[0], 3).value_or(-1), 1);
  assert_code(statuses[2], base::Code::unavailable);
  assert_int_equal(collective::failed_peer(statuses[2], 3).value_or(-1), 0);
}

/// A message that came before its sender left is whole, however late it is looked for.
static void test_a_message_of_one_who_has_left(void **) {
  Table table;
  const auto statuses = run_mesh(2, kLongMs, table, [&](std::unique_ptr<Mesh> &mesh, int32_t rank) -> Status {
    std::vector<int64_t> words(1000);
    std::vector<tutti_message> messages;
    for (uint32_t i = 0; i < 1000; ++i) {
      if (rank == 1) words[i] = i * i;
      messages.push_back({1 - rank, i, &words[i], sizeof(int64_t)});
    }
    if (rank == 1) return mesh->exchange({.sends = messages, .receives = {}, .timeout_ms = kLongMs});
    TUTTI_TRY(mesh->exchange({.sends = {}, .receives = messages, .timeout_ms = kLongMs}));
    for (int64_t i = 0; i < 1000; ++i) {
      if (words[static_cast<size_t>(i)] != i * i) return base::internal_error("word ", i);
    }
    return Status();
  });
  assert_ok(statuses[0]);
  assert_ok(statuses[1]);
}

/// Worker 1 does not vote. Worker 2 has voted earlier than worker 0 begins to count, and does not take it for the one.
static void test_who_has_voted_waits_longer_than_who_counts(void **) {
  using collective::cluster::Head;
  Table table;
  const std::vector<std::string> names = {"worker 0", "worker 1", "worker 2"};
  std::atomic<int> settled{0};
  const auto statuses = run_mesh(3, kLongMs, table, [&](std::unique_ptr<Mesh> &mesh, int32_t rank) -> Status {
    const std::atomic<bool> is_dead{false};
    collective::cluster::WorkerExchange exchange(mesh.get(), rank, names, 300, is_dead);
    TUTTI_TRY(exchange.agree(Head{.kind = Head::kSettle}, {}));
    if (rank == 0) std::this_thread::sleep_for(milliseconds(50));
    const Status status = rank == 1 ? Status() : exchange.settle();
    ++settled;
    if (rank != 1) mesh.reset();
    while (settled < 3)
      std::this_thread::sleep_for(milliseconds(1));
    return status;
  });
  assert_error_contains(statuses[0], "worker 0 waited 300 ms for worker 1 in settle");
  assert_error_contains(statuses[2], "worker 0 disconnected while worker 2 was in settle");
}

/// Worker 0 hangs when it is to say what it makes of the votes. Whoever has voted waits a little longer than it was
/// told to, however much that was.
static void test_who_waits_for_a_decision_keeps_to_its_time(void **) {
  using collective::cluster::Head;
  constexpr int64_t kTimeoutMs = 2000;
  Table table;
  const std::vector<std::string> names = {"worker 0", "worker 1"};
  std::atomic<int64_t> took_ms{-1};
  const auto statuses = run_mesh(2, kLongMs, table, [&](std::unique_ptr<Mesh> &mesh, int32_t rank) -> Status {
    const std::atomic<bool> is_dead{false};
    collective::cluster::WorkerExchange exchange(mesh.get(), rank, names, kTimeoutMs, is_dead);
    TUTTI_TRY(exchange.agree(Head{.kind = Head::kSettle}, {}));
    const auto begin = std::chrono::steady_clock::now();
    const Status status = rank == 0 ? Status() : exchange.settle();
    if (rank == 1) took_ms = milliseconds_since(begin);
    while (took_ms < 0)
      std::this_thread::sleep_for(milliseconds(1));
    return status;
  });
  assert_error_contains(statuses[1], "for worker 0 in settle");
  if (took_ms < kTimeoutMs || took_ms > kTimeoutMs + 1300) fail_msg("after %d ms", static_cast<int>(took_ms));
}

/// The other side has given an address and is not there.
static void test_a_connection_that_nobody_makes(void **) {
  Table table([](Table &all, std::string_view, std::string_view bytes) {
    std::string other(bytes);
    sockaddr_in address{};
    std::memcpy(&address, other.data(), sizeof(address));
    address.sin_addr.s_addr = htonl(0x7ffffffe);  // a higher one: rank 0 is called
    std::memcpy(other.data(), &address, sizeof(address));
    all.set("1/0", other);
  });
  const auto begin = std::chrono::steady_clock::now();
  const Status status =
      engine()->connect({.rank = 0, .size = 2, .host = "127.0.0.1", .timeout_ms = 500}, table).status();
  const int64_t took_ms = milliseconds_since(begin);
  assert_code(status, base::Code::deadline_exceeded);
  assert_int_equal(collective::failed_peer(status, 2).value_or(-1), 1);
  if (took_ms < 400 || took_ms > 2000)
    fail_msg("after %d ms: %s", static_cast<int>(took_ms), status.to_string().c_str());
}

/// Connects to where a rank listens, as another rank would.
static int call(const sockaddr_in &address) {
  const int caller = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(caller >= 0);
  assert_int_equal(::connect(caller, reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
  return caller;
}

/// Rank 1 comes late, and then rank 2 does not come: that is one limit, not two.
static void test_all_connections_have_one_limit(void **) {
  if (TUTTI_GLOO_HAS_ONE_PORT) {
    print_message("this Gloo tells connections apart by numbers, so nobody can come in place of rank 1\n");
    test_skip();
  }
  constexpr int64_t kTimeoutMs = 2500;  // on a busy machine the late one is later still
  std::map<std::string, sockaddr_in, std::less<>> listening;
  int caller = -1;
  std::thread late;
  Table table([&](Table &all, std::string_view key, std::string_view bytes) {
    std::string other(bytes);
    sockaddr_in address{};
    std::memcpy(&address, other.data(), sizeof(address));
    listening.emplace(key, address);
    address.sin_addr.s_addr = htonl(0x7ffffffe);  // a higher one: rank 0 is called
    std::memcpy(other.data(), &address, sizeof(address));
    all.set(std::string(key.substr(2)) + "/0", other);
    if (key != "0/2") return;
    late = std::thread([&] {
      std::this_thread::sleep_for(milliseconds(kTimeoutMs * 6 / 10));
      caller = call(listening.find("0/1")->second);
    });
  });
  const auto begin = std::chrono::steady_clock::now();
  const Status status =
      engine()->connect({.rank = 0, .size = 3, .host = "127.0.0.1", .timeout_ms = kTimeoutMs}, table).status();
  const int64_t took_ms = milliseconds_since(begin);
  late.join();
  close(caller);
  assert_code(status, base::Code::deadline_exceeded);
  assert_error_contains(status, "not connected in 2500 ms");
  assert_int_equal(collective::failed_peer(status, 3).value_or(-1), 2);
  if (took_ms < kTimeoutMs || took_ms >= kTimeoutMs * 16 / 10)
    fail_msg("after %d ms: %s", static_cast<int>(took_ms), status.to_string().c_str());
}

/// A worker looks for its worker 0 at a port that has become one of Gloo's. It is told that no rendezvous is there, and
/// the others get an error at most.
static void test_a_rendezvous_that_is_sought_at_a_port_of_gloo(void **) {
  std::mutex mutex;
  std::vector<Status> sought;
  Table table([&](Table &, std::string_view, std::string_view bytes) {
    sockaddr_in address{};
    std::memcpy(&address, bytes.data(), sizeof(address));
    rendezvous::StoreOptions options;
    options.addresses = {base::concat("127.0.0.1:", ntohs(address.sin_port)), ""};
    options.rank = 1;
    options.build_id = "0.1.0 of a build whose name is longer than the head of a message of Gloo";
    const Status status = rendezvous::Store::connect(options, {base::Deadline::after_ms(200)}).status();
    const std::lock_guard lock(mutex);
    sought.push_back(status);
  });
  const auto statuses = run_mesh(2, 1000, table, [](std::unique_ptr<Mesh> &mesh, int32_t rank) -> Status {
    return receive_word(*mesh, 1 - rank, 500);
  });
  for (const Status &status : statuses)
    assert_false(status.ok());
  assert_int_equal(sought.size(), 2);
  for (const Status &status : sought)
    assert_error_contains(status, "does not use the rendezvous protocol");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_wait_that_runs_out_closes_nothing),
    cmocka_unit_test(test_a_message_of_one_who_has_left),
    cmocka_unit_test(test_who_has_voted_waits_longer_than_who_counts),
    cmocka_unit_test(test_who_waits_for_a_decision_keeps_to_its_time),
    cmocka_unit_test(test_a_connection_that_nobody_makes),
    cmocka_unit_test(test_all_connections_have_one_limit),
    cmocka_unit_test(test_a_rendezvous_that_is_sought_at_a_port_of_gloo),
};

static int run_all(int, char **) {
  // The library calls an engine on threads that have signals blocked.
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::gloo_engine_test

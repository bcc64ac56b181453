// SPDX-License-Identifier: Apache-2.0
//
// How workers connect with each other, between threads, when others call at their ports first.
#include "collective/cluster/worker_mesh.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
#include "collective/shared_table.h"
#include "runtime/engine_list.h"
#include "testing.h"

namespace tutti::testing::worker_mesh_test {

namespace base = impl::base;
namespace collective = impl::collective;
using base::Deadline;
using base::Result;
using base::Status;
using collective::EngineRef;
using collective::Mesh;
using collective::cluster::ClusterGroupOptions;
using std::chrono::milliseconds;

static EngineRef engine() {
  static const EngineRef opened = impl::runtime::open_engine(getenv("TUTTI_TEST_ENGINE")).value();
  return opened;
}

/// In memory; `visit` sees what is put before the others do.
class Table : public collective::SharedTable {
 public:
  using Visit = std::function<void(std::string_view key, std::string_view value)>;
  explicit Table(Visit visit = {}) : visit_(std::move(visit)) {}

  Status put(std::string_view key, std::string_view value, Deadline, bool only_if_absent) override {
    if (visit_) visit_(key, value);
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = values_.try_emplace(std::string(key), value);
    if (!is_new && !only_if_absent) place->second = value;
    changed_.notify_all();
    return Status();
  }
  using SharedTable::find;
  Result<std::string> find(std::string_view key, Deadline deadline, int64_t) override {
    std::unique_lock lock(mutex_);
    const auto is_there = [&] { return values_.find(key) != values_.end(); };
    const Status status = base::wait_until(changed_, lock, nullptr, deadline, is_there);
    return status.ok() ? Result<std::string>(values_.find(key)->second) : base::not_found("no ", key);
  }

 private:
  const Visit visit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
};

/// announces: a message of a kind for which nobody waits. resets: it is gone before the worker asks who it is.
enum class Manner { silent, rubbish, closes, waits_and_closes, resets, announces };

/// The head of a message of Gloo's: its whole length, kind, slot, offset, length of the data, and offset there.
static std::string head_of_message() {
  const std::array<uint64_t, 6> head = {48 + 8, 1, 4711, 0, 8, 0};
  return std::string(reinterpret_cast<const char *>(head.data()), sizeof(head));
}

/// Who calls at ports of workers as soon as these are open, before a worker can.
class Stranger {
 public:
  Stranger(Manner manner, int32_t attempts, std::string only = "")
      : manner_(manner), attempts_(attempts), only_(std::move(only)) {}
  ~Stranger() {
    for (const int caller : callers_)
      close(caller);
  }

  /// Keys of addresses are "1/mesh/<attempt>/<worker>/<peer>".
  void visit(std::string_view key, std::string_view value) {
    const std::vector<std::string> parts = base::split(key, '/');
    if (parts.size() != 5 || !base::parse_integer(parts[3]) || base::parse_integer(parts[2]).value_or(0) > attempts_)
      return;
    if (!only_.empty() && parts[3] + "/" + parts[4] != only_) return;
    sockaddr_in address{};
    if (value.size() < sizeof(address)) return;
    std::memcpy(&address, value.data(), sizeof(address));
    const int caller = socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(caller, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0) ++calls;
    // Where all connections come in at one port, for which it is meant stands behind the address, and is said first.
    const std::string_view number = value.substr(std::min(value.size(), sizeof(sockaddr_storage)));
    if (knows(manner_)) (void)send(caller, number.data(), std::min(number.size(), sizeof(uint64_t)), MSG_NOSIGNAL);
    if (manner_ == Manner::announces) {
      const std::string head = head_of_message();
      (void)send(caller, head.data(), head.size(), MSG_NOSIGNAL);
    }
    if (manner_ == Manner::resets) {
      const linger at_once = {.l_onoff = 1, .l_linger = 0};
      (void)setsockopt(caller, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    if (manner_ == Manner::rubbish) {
      std::string rubbish = "GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n";
      for (int i = 0; i < 4096; ++i)
        rubbish += static_cast<char>(i * 37 + 11);
      (void)send(caller, rubbish.data(), rubbish.size(), MSG_NOSIGNAL);
    }
    if (manner_ == Manner::waits_and_closes) std::this_thread::sleep_for(milliseconds(50));
    if (manner_ == Manner::closes || manner_ == Manner::waits_and_closes || manner_ == Manner::resets) {
      close(caller);
      return;
    }
    const std::lock_guard lock(mutex_);
    callers_.push_back(caller);
  }

  std::atomic<int> calls{0};

 private:
  static bool knows(Manner manner) { return manner == Manner::resets || manner == Manner::announces; }

  const Manner manner_;
  const int32_t attempts_;
  const std::string only_;
  std::mutex mutex_;
  std::vector<int> callers_;
};

struct Meeting {
  std::vector<Status> statuses;
  std::vector<std::string> warnings;
  int64_t took_ms = 0;
};

struct Told {
  int32_t workers = 3;
  int64_t timeout_ms = 12000;
  std::vector<std::string> secrets = {"secret", "secret", "secret"};
  std::string host = "127.0.0.1";
  int32_t missing = -1;
};

/// Each with each other: what one sends arrives.
static Status talk(Mesh &mesh, int32_t worker, int32_t workers) {
  std::vector<int32_t> words(static_cast<size_t>(workers), -1);
  std::vector<tutti_message> sends, receives;
  int32_t own = worker;
  for (int32_t w = 0; w < workers; ++w) {
    if (w == worker) continue;
    sends.push_back({w, 0, &own, sizeof(own)});
    receives.push_back({w, 0, &words[static_cast<size_t>(w)], sizeof(own)});
  }
  TUTTI_TRY(mesh.exchange({.sends = sends, .receives = receives, .timeout_ms = 20000}));
  for (int32_t w = 0; w < workers; ++w) {
    if (w != worker && words[static_cast<size_t>(w)] != w) return base::internal_error("got ", words[0], " of ", w);
  }
  return Status();
}

static Meeting meet(const std::shared_ptr<Table> &table, const Told &told) {
  Meeting meeting;
  meeting.statuses.resize(static_cast<size_t>(told.workers));
  std::mutex mutex;
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (int32_t worker = 0; worker < told.workers; ++worker) {
    if (worker == told.missing) continue;
    threads.emplace_back([&, worker] {
      ClusterGroupOptions options;
      options.engine = engine();
      options.table = table;
      options.key_prefix = "1/";
      for (int32_t w = 0; w < told.workers; ++w) {
        options.hosts.push_back(told.host);
        options.names.push_back(base::concat("worker ", w));
      }
      options.worker = worker;
      options.timeout_ms = told.timeout_ms;
      options.secret = told.secrets[static_cast<size_t>(worker)];
      options.warn = [&](const std::string &line) {
        const std::lock_guard lock(mutex);
        meeting.warnings.push_back(line);
      };
      meeting.statuses[static_cast<size_t>(worker)] = [&]() -> Status {
        TUTTI_ASSIGN(const std::unique_ptr<Mesh> mesh, collective::cluster::connect_mesh(options, "mesh"));
        TUTTI_TRY(talk(*mesh, worker, told.workers));
        // The others have heard this one.
        TUTTI_TRY(table->put(base::concat("heard/", worker), "", Deadline::never(), false));
        for (int32_t w = 0; w < told.workers; ++w)
          TUTTI_TRY(table->find(base::concat("heard/", w), Deadline::after_ms(20000)).status());
        return Status();
      }();
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  meeting.took_ms = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin).count();
  return meeting;
}

static Meeting meet_with(Stranger &stranger, const Told &told) {
  return meet(
      std::make_shared<Table>([&](std::string_view key, std::string_view value) { stranger.visit(key, value); }), told);
}

static void assert_all_connected(const Meeting &meeting) {
  for (const Status &status : meeting.statuses)
    assert_ok(status);
}

static void test_workers_connect(void **) {
  const Meeting meeting = meet(std::make_shared<Table>(), {});
  assert_all_connected(meeting);
  assert_int_equal(meeting.warnings.size(), 0);
}

static void test_strangers_at_all_ports(void **) {
  for (const Manner manner : {Manner::silent, Manner::rubbish, Manner::closes, Manner::waits_and_closes}) {
    for (const int32_t attempts : {1, 2}) {
      Stranger stranger(manner, attempts);
      const Meeting meeting = meet_with(stranger, {});
      assert_all_connected(meeting);
      assert_true(stranger.calls >= 6);
      for (const std::string &line : meeting.warnings)
        assert_contains(line.c_str(), "all workers connect again");
      assert_true(meeting.took_ms < 15000);
    }
  }
}

/// One connection is enough, whoever of the two is called and whoever calls.
static void test_a_stranger_at_one_port(void **) {
  for (const Manner manner : {Manner::silent, Manner::rubbish, Manner::closes}) {
    for (const char *port : {"0/1", "1/0", "1/2", "2/1"}) {
      Stranger stranger(manner, 1, port);
      const Meeting meeting = meet_with(stranger, {});
      assert_all_connected(meeting);
      assert_int_equal(stranger.calls, 1);
      assert_true(meeting.took_ms < 15000);
    }
  }
}

/// What Gloo throws on its own thread ends a connection, not the process.
static void assert_connected_in_spite_of(Manner manner) {
  for (int i = 0; i < 20; ++i) {
    Stranger stranger(manner, 1);
    const Meeting meeting = meet_with(stranger, {});
    assert_all_connected(meeting);
    assert_true(stranger.calls >= 6);
  }
}

/// Whether one is gone before Gloo asks who it is, is a matter of luck: some of many are.
static void test_strangers_that_reset(void **) { assert_connected_in_spite_of(Manner::resets); }

static void test_strangers_that_announce_a_message(void **) { assert_connected_in_spite_of(Manner::announces); }

/// It ends within the time that was given, or after some attempts. Where all connections come in at one port, a
/// stranger takes nobody's place.
static void test_strangers_that_always_come_first(void **) {
  Stranger stranger(Manner::silent, 1000000);
  const Meeting meeting = meet_with(stranger, {.timeout_ms = 3000});
  if (TUTTI_GLOO_HAS_ONE_PORT) return assert_all_connected(meeting);
  for (const Status &status : meeting.statuses)
    assert_error_contains(status, "connect");
  assert_true(meeting.warnings.size() >= 2);
  if (meeting.took_ms > 12000) fail_msg("%d ms", static_cast<int>(meeting.took_ms));
}

static void test_who_does_not_know_the_secret(void **) {
  const Meeting meeting =
      meet(std::make_shared<Table>(), {.timeout_ms = 1500, .secrets = {"secret", "other", "secret"}});
  for (const size_t w : {size_t{0}, size_t{2}})
    assert_error_contains(meeting.statuses[w], "in place of worker 1");
  assert_error_contains(meeting.statuses[0], "does not know the secret");
  assert_error_contains(meeting.statuses[1], "has not proved that it belongs to the job");
  for (const Status &status : meeting.statuses)
    assert_true(status.to_string().find("other'") == std::string::npos);
}

static void test_a_worker_that_does_not_come(void **) {
  const Meeting meeting = meet(std::make_shared<Table>(), {.timeout_ms = 1500, .missing = 2});
  for (const size_t w : {size_t{0}, size_t{1}})
    assert_error_contains(meeting.statuses[w], "worker 2");
  assert_true(meeting.took_ms >= 1000 && meeting.took_ms < 10000);
}

/// Nobody tries again what cannot become better.
static void test_a_worker_that_has_ended(void **) {
  const auto table = std::make_shared<Table>();
  assert_ok(table->put("1/gone/2", "", Deadline::never(), false));
  const Meeting meeting = meet(table, {.timeout_ms = 8000, .missing = 2});
  for (const size_t w : {size_t{0}, size_t{1}})
    assert_error_contains(meeting.statuses[w], "worker 2");
  assert_int_equal(meeting.warnings.size(), 0);
  const Meeting nowhere = meet(std::make_shared<Table>(), {.timeout_ms = 20000, .host = "203.0.113.7"});
  for (const Status &status : nowhere.statuses)
    assert_error_contains(status, "cannot connect to the other workers");
  assert_true(nowhere.took_ms < 15000);
  assert_int_equal(nowhere.warnings.size(), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_workers_connect),
    cmocka_unit_test(test_strangers_at_all_ports),
    cmocka_unit_test(test_a_stranger_at_one_port),
    cmocka_unit_test(test_strangers_that_reset),
    cmocka_unit_test(test_strangers_that_announce_a_message),
    cmocka_unit_test(test_strangers_that_always_come_first),
    cmocka_unit_test(test_who_does_not_know_the_secret),
    cmocka_unit_test(test_a_worker_that_does_not_come),
    cmocka_unit_test(test_a_worker_that_has_ended),
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

}  // namespace tutti::testing::worker_mesh_test

// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "collective/rendezvous/store.h"
#include "collective/rendezvous/store_server.h"
#include "testing.h"

namespace tutti::testing::rendezvous_test {

using impl::base::CancelToken;
using impl::base::Deadline;
using impl::base::Result;
using impl::base::Status;
using impl::collective::kNonceBytes;
using impl::collective::kProofBytes;
using namespace impl::collective::rendezvous;

constexpr int64_t kLongMs = 30000;

static Limits within(int64_t milliseconds) { return {Deadline::after_ms(milliseconds), nullptr}; }

static std::unique_ptr<StoreServer> start_server(int32_t world_size) {
  StoreServerOptions options;
  options.address = "127.0.0.1:0";
  options.world_size = world_size;
  options.build_id = "build 1";
  options.hello_timeout_ms = 200;
  return assert_ok_value(StoreServer::start(options));
}

static StoreOptions options_of(int32_t port, int32_t rank, int32_t world_size) {
  StoreOptions options;
  options.addresses.resize(static_cast<size_t>(world_size));
  options.addresses[0] = impl::base::concat("127.0.0.1:", port);
  options.rank = rank;
  options.build_id = "build 1";
  return options;
}

/// Each rank connects, joins and runs the body on a thread.
static std::vector<Status> run_workers(int32_t port, int32_t count,
                                       const std::function<Status(Store &, const Gathering &, int32_t)> &body) {
  std::vector<Status> statuses(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[static_cast<size_t>(rank)] = [&]() -> Status {
        TUTTI_ASSIGN(auto store, Store::connect(options_of(port, rank, count), within(kLongMs)));
        TUTTI_ASSIGN(const Gathering all, store->join(within(kLongMs)));
        return body(*store, all, rank);
      }();
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  return statuses;
}

static void test_values_reach_everybody(void **) {
  const auto server = start_server(3);
  for (uint32_t round = 1; round <= 3; ++round) {
    const auto statuses =
        run_workers(server->port(), 3, [&](Store &store, const Gathering &all, int32_t rank) -> Status {
          if (all.number != round || all.members.size() != 3)
            return impl::base::internal_error("gathering ", all.number);
          for (const Gathering::Member &member : all.members) {
            if (member.host != "127.0.0.1") return impl::base::internal_error("host ", member.host);
          }
          const std::string prefix = impl::base::concat(all.number, "/");
          const std::string bytes(static_cast<size_t>(100000 * rank + 1), static_cast<char>('a' + rank));
          TUTTI_TRY(store.set(impl::base::concat(prefix, rank), bytes, within(kLongMs)));
          for (int32_t other = 2; other >= 0; --other) {
            TUTTI_ASSIGN(const std::string got, store.get(impl::base::concat(prefix, other), within(kLongMs)));
            const std::string expected(static_cast<size_t>(100000 * other + 1), static_cast<char>('a' + other));
            if (got != expected) return impl::base::internal_error("worker ", rank, " got ", got.size(), " bytes");
          }
          return Status();
        });
    for (const Status &status : statuses)
      assert_ok(status);
  }
}

static void test_who_has_gone_is_known(void **) {
  const auto server = start_server(2);
  const auto statuses = run_workers(server->port(), 2, [&](Store &store, const Gathering &, int32_t rank) -> Status {
    if (rank == 1) {
      // One that has only asked is not missed; this one is when its connection ends.
      TUTTI_ASSIGN(auto other, Store::connect(options_of(server->port(), 0, 2), within(kLongMs)));
      other.reset();
      return store.get("end", within(kLongMs)).status();
    }
    const bool is_there = store.get("1/gone/1", within(200)).code() == impl::base::Code::not_found;
    TUTTI_TRY(store.set("end", "", within(kLongMs)));
    TUTTI_TRY(store.get("1/gone/1", within(kLongMs)));
    if (store.get("1/gone/0", within(0)).ok()) return impl::base::internal_error("worker 0 has gone");
    return is_there ? Status() : impl::base::internal_error("worker 1 has gone too early");
  });
  assert_ok(statuses[0]);
  assert_ok(statuses[1]);
}

static void test_the_first_value_stays(void **) {
  const auto server = start_server(1);
  const auto store = assert_ok_value(Store::connect(options_of(server->port(), 0, 1), within(kLongMs)));
  assert_ok(store->set("cause", "first", within(kLongMs), true));
  assert_ok(store->set("cause", "second", within(kLongMs), true));
  assert_string_equal(assert_ok_value(store->get("cause", within(0))).c_str(), "first");
  assert_ok(store->set("cause", "third", within(kLongMs)));
  assert_string_equal(assert_ok_value(store->get("cause", within(0))).c_str(), "third");
  assert_error_contains(store->get("nothing", within(20)), "timed out waiting for the key 'nothing'");
  assert_error_contains(store->set("large", std::string(kMostBytes, 'x'), within(kLongMs)), "at most 1048576");
  // 64 MiB and no more, for all.
  Status full;
  for (int i = 0; i < 80 && full.ok(); ++i)
    full = store->set(std::to_string(i), std::string(kMostBytes - 100, 'x'), within(kLongMs));
  assert_error_contains(full, "has no room for more values");
}

static void test_a_missing_worker_is_named(void **) {
  const auto server = start_server(3);
  StoreOptions options = options_of(server->port(), 0, 3);
  options.addresses[2] = "far.example:2222";
  const auto store = assert_ok_value(Store::connect(options, within(kLongMs)));
  const Status late = store->join(within(50)).status();
  assert_error_contains(late, "worker 0 timed out waiting for worker 1, worker 2 (far.example:2222)");
  assert_int_equal(static_cast<int>(late.code()), static_cast<int>(impl::base::Code::deadline_exceeded));
  // The connection is still good.
  assert_ok(store->set("a", "b", within(kLongMs)));
}

/// Waits end one after the other: who had waited beside one is not missing for it, who had left before is.
static void test_only_those_that_are_missing_are_named(void **) {
  const auto server = start_server(3);
  const auto first = assert_ok_value(Store::connect(options_of(server->port(), 0, 3), within(kLongMs)));
  const auto second = assert_ok_value(Store::connect(options_of(server->port(), 1, 3), within(kLongMs)));
  Status early;
  std::thread joining([&] { early = first->join(within(300)).status(); });
  const Status late = second->join(within(700)).status();
  joining.join();
  assert_string_equal(early.error()->find_detail("rank")->c_str(), "2");
  assert_string_equal(late.error()->find_detail("rank")->c_str(), "2");
  const Status alone = second->join(within(50)).status();
  assert_string_equal(alone.error()->find_detail("rank")->c_str(), "0, 2");
}

static void test_an_unreachable_leader_is_named(void **) {
  int32_t port = 0;
  {
    const auto server = start_server(2);
    port = server->port();
  }
  const auto began = Deadline::Clock::now();
  const Status status = Store::connect(options_of(port, 1, 2), within(150)).status();
  assert_error_contains(status, impl::base::concat("worker 0 (127.0.0.1:", port, ") cannot be reached by worker 1"));
  assert_error_contains(status, "refused");
  assert_true(Deadline::Clock::now() - began < std::chrono::seconds(20));
  StoreOptions nowhere = options_of(1, 1, 2);
  nowhere.addresses[0] = "no.such.host.invalid:1";
  assert_error_contains(Store::connect(nowhere, within(50)), "cannot be resolved");
}

static void test_a_leader_that_begins_later(void **) {
  int32_t port = 0;
  {
    const auto server = start_server(1);
    port = server->port();
  }
  std::unique_ptr<StoreServer> server;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    StoreServerOptions options;
    options.address = impl::base::concat("127.0.0.1:", port);
    options.build_id = "build 1";
    auto started = StoreServer::start(options);
    if (started.ok()) server = started.take();
  });
  const auto store = Store::connect(options_of(port, 0, 1), within(kLongMs));
  later.join();
  assert_ok(store);
}

static void test_who_does_not_belong_is_turned_away(void **) {
  const auto server = start_server(2);
  const auto connect = [&](auto change) {
    StoreOptions options = options_of(server->port(), 1, 2);
    change(options);
    return Store::connect(options, within(kLongMs)).status();
  };
  assert_error_contains(connect([](StoreOptions &o) { o.build_id = "build 2"; }), "has build id 'build 2'");
  assert_error_contains(connect([](StoreOptions &o) { o.addresses.resize(3); }),
                        "worker 1 expects 3 workers, but worker 0 expects 2");
  assert_error_contains(connect([](StoreOptions &o) { o.rank = 2; }), "there is no worker 2");
  // Worker 0 is told whom it waits for in vain, and why.
  const auto leader = assert_ok_value(Store::connect(options_of(server->port(), 0, 2), within(kLongMs)));
  const Status late = leader->join(within(50)).status();
  assert_error_contains(late, "worker 1 (rejected: worker 1 expects 3 workers");
  StoreOptions other = options_of(server->port(), 1, 2);
  other.replicas = 4;
  const auto worker = assert_ok_value(Store::connect(other, within(kLongMs)));
  std::thread joining([&] { (void)worker->join(within(kLongMs)); });
  const Status uneven = leader->join(within(kLongMs)).status();
  joining.join();
  assert_error_contains(uneven, "worker 1 trains on 4 devices and worker 0");
}

static void test_two_processes_with_one_number(void **) {
  const auto server = start_server(2);
  const auto first = assert_ok_value(Store::connect(options_of(server->port(), 1, 2), within(kLongMs)));
  Status displaced;
  std::thread joining([&] { displaced = first->join(within(kLongMs)).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto second = assert_ok_value(Store::connect(options_of(server->port(), 1, 2), within(kLongMs)));
  assert_error_contains(second->join(within(200)), "timed out waiting for worker 0");
  joining.join();
  assert_error_contains(displaced, "another process has joined as worker 1");
}

static void test_cancel_ends_the_waits(void **) {
  const auto server = start_server(2);
  const auto token = CancelToken::create();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    token->cancel();
  });
  const auto store = assert_ok_value(Store::connect(options_of(server->port(), 0, 2), within(kLongMs)));
  const Status status = store->join({Deadline::never(), token.get()}).status();
  canceller.join();
  assert_int_equal(static_cast<int>(status.code()), static_cast<int>(impl::base::Code::cancelled));
  assert_int_equal(
      static_cast<int>(Store::connect(options_of(1, 0, 2), {Deadline::never(), token.get()}).status().code()),
      static_cast<int>(impl::base::Code::cancelled));
}

/// What the server sends back until it closes the connection.
static std::string answers_of(const Socket &socket) {
  std::string answer;
  char byte = 0;
  while (socket.receive_all(&byte, 1, within(3000)).ok())
    answer.push_back(byte);
  return answer;
}

static Socket call(int32_t port) {
  return assert_ok_value(Socket::connect(impl::base::concat("127.0.0.1:", port), within(kLongMs)));
}

static std::string send_raw(int32_t port, const std::string &bytes) {
  const Socket socket = call(port);
  (void)socket.send_all(bytes, within(kLongMs));
  return answers_of(socket);
}

/// The server's nonce.
static std::string greet(const Socket &socket) {
  std::array<char, kGreetingBytes> greeting{};
  assert_ok(socket.send_all(kMagic, within(kLongMs)));
  assert_ok(socket.receive_all(greeting.data(), greeting.size(), within(kLongMs)));
  const std::string said(greeting.data(), greeting.size());
  assert_true(said.starts_with(kServerMagic));
  return said.substr(kServerMagic.size());
}

/// Bytes of somebody who has proved to belong to the job.
static std::string send_proved(int32_t port, const std::string &bytes) {
  const Socket socket = call(port);
  const std::string nonce = greet(socket), own(kNonceBytes, 'n');
  assert_ok(socket.send_all(own + impl::collective::prove("", kClientRole, nonce, own), within(kLongMs)));
  std::array<char, kVerdictBytes> verdict{};
  assert_ok(socket.receive_all(verdict.data(), verdict.size(), within(kLongMs)));
  assert_int_equal(verdict[0], 1);
  (void)socket.send_all(bytes, within(kLongMs));
  return answers_of(socket);
}

static std::string hello_body(uint32_t version) {
  std::string body;
  for (const uint32_t number : {version, 2u, 1u, 1u})
    put_u32(body, number);
  put_text(body, "build 1");
  return body;
}

static void assert_serves(int32_t port) {
  const auto statuses = run_workers(port, 2, [](Store &, const Gathering &, int32_t) { return Status(); });
  for (const Status &status : statuses)
    assert_ok(status);
}

static void test_hostile_bytes_waste_time_only(void **) {
  const auto server = start_server(2);
  const std::string hello = frame(MessageType::hello, hello_body(kProtocolVersion));
  std::vector<std::string> cases = {
      "",
      std::string(100000, '\xff'),
      frame(MessageType::hello, "short"),
      frame(MessageType::set, "without a greeting"),
      hello + frame(MessageType::hello, hello_body(kProtocolVersion)),
      hello + frame(MessageType::get, ""),
      hello + frame(MessageType::join, ""),
      hello + frame(MessageType::set, std::string("\xff\xff\xff\x7f", 4)),
      hello + frame(MessageType::late, "an answer"),
      hello + std::string("\x02\0\0\0\xff\xff\xff\xff", 8),
  };
  // Every shortened and every bent frame of a good conversation.
  std::string set_body;
  put_text(set_body, "key");
  const std::string good = hello + frame(MessageType::set, set_body + "value");
  for (size_t i = 0; i < good.size(); i += 3) {
    std::string bent = good;
    bent[i] = static_cast<char>(bent[i] ^ 0x81);
    cases.push_back(bent + std::string(64, '\0'));
  }
  for (const std::string &bytes : cases)
    (void)send_proved(server->port(), bytes);
  assert_true(send_proved(server->port(), frame(MessageType::hello, hello_body(9))).find("version 9") !=
              std::string::npos);
  assert_serves(server->port());
}

// ---- who belongs to the job ----

struct Warnings {
  std::mutex mutex;
  std::vector<std::string> lines;

  std::vector<std::string> take() {
    const std::lock_guard lock(mutex);
    return lines;
  }
};

static std::unique_ptr<StoreServer> start_warning_server(const std::string &secret, int64_t hello_timeout_ms,
                                                         Warnings &warnings) {
  StoreServerOptions options;
  options.address = "127.0.0.1:0";
  options.world_size = 2;
  options.build_id = "build 1";
  options.secret = secret;
  options.hello_timeout_ms = hello_timeout_ms;
  options.warn = [&warnings](const std::string &line) {
    const std::lock_guard lock(warnings.mutex);
    warnings.lines.push_back(line);
  };
  return assert_ok_value(StoreServer::start(options));
}

static Status connect_with(int32_t port, const std::string &secret) {
  StoreOptions options = options_of(port, 1, 2);
  options.secret = secret;
  return Store::connect(options, within(kLongMs)).status();
}

static void assert_without(const std::string &text, const char *secret) {
  if (text.find(secret) != std::string::npos) fail_msg("the secret is in: %s", text.c_str());
}

static void test_another_secret_is_turned_away(void **) {
  Warnings warnings;
  const auto server = start_warning_server("correct horse", kLongMs, warnings);
  const std::string address = impl::base::concat("127.0.0.1:", server->port());
  assert_ok(connect_with(server->port(), "correct horse"));
  for (const std::string secret : {"correct hors", "", "battery staple"}) {
    const auto began = Deadline::Clock::now();
    const Status status = connect_with(server->port(), secret);
    assert_int_equal(static_cast<int>(status.code()), static_cast<int>(impl::base::Code::failed_precondition));
    assert_error_contains(status, "worker 0 at " + address + " has a different job secret than worker 1");
    assert_error_contains(status, secret.empty() ? "worker 1, which has none" : "TUTTI_JOB_SECRET");
    assert_true(Deadline::Clock::now() - began < std::chrono::seconds(10));  // it does not try again
    assert_without(status.to_string(), "horse");
    assert_without(status.to_string(), "battery");
  }
  // Worker 0 is told why it waits in vain.
  StoreOptions leader = options_of(server->port(), 0, 2);
  leader.secret = "correct horse";
  const Status late = assert_ok_value(Store::connect(leader, within(kLongMs)))->join(within(50)).status();
  assert_error_contains(
      late, "timed out waiting for worker 1; a process at 127.0.0.1 was rejected because it has a different job");
  assert_without(late.to_string(), "horse");
  assert_int_equal(warnings.take().size(), 1);
  assert_contains(warnings.take()[0].c_str(), "from 127.0.0.1 was dropped: it has a different job secret");
}

/// Somebody else listens where worker 0 is sought, and says yes to everybody.
static void test_a_server_proves_itself(void **) {
  const Socket listener = assert_ok_value(Socket::listen("127.0.0.1:0"));
  std::thread impostor([&] {
    Socket socket;
    while (!socket.is_valid()) {
      socket = listener.accept();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::array<char, kMagic.size() + kAnswerBytes> said{};
    (void)socket.receive_all(said.data(), kMagic.size(), within(kLongMs));
    (void)socket.send_all(std::string(kServerMagic) + std::string(kNonceBytes, 'x'), within(kLongMs));
    (void)socket.receive_all(said.data(), kAnswerBytes, within(kLongMs));
    // What the client has said, sent back, is no proof.
    (void)socket.send_all("\1" + std::string(said.data() + kNonceBytes, kProofBytes), within(kLongMs));
  });
  const Status status = connect_with(listener.local_port(), "secret");
  impostor.join();
  assert_error_contains(
      status, impl::base::concat("the process that listens at 127.0.0.1:", listener.local_port(), " has a different"));
}

/// What a worker has said once does not let anybody in who has heard it.
static void test_a_proof_is_good_once(void **) {
  const auto server = start_server(2);
  const Socket first = call(server->port()), second = call(server->port());
  const std::string own(kNonceBytes, 'n');
  const std::string proof = own + impl::collective::prove("", kClientRole, greet(first), own);
  (void)greet(second);
  for (const Socket *socket : {&first, &second}) {
    assert_ok(socket->send_all(proof, within(kLongMs)));
    std::array<char, kVerdictBytes> verdict{};
    assert_ok(socket->receive_all(verdict.data(), verdict.size(), within(kLongMs)));
    assert_int_equal(verdict[0], socket == &first ? 1 : 0);
  }
  assert_string_equal(answers_of(second).c_str(), "");  // closed
}

static void test_who_proves_nothing_is_dropped(void **) {
  Warnings warnings;
  const auto server = start_warning_server("", 300, warnings);
  const std::string magic(kMagic), hello = frame(MessageType::hello, hello_body(kProtocolVersion));
  std::string set_body;
  put_text(set_body, "key");
  const std::string set = frame(MessageType::set, set_body + "value");
  const std::string cases[] = {"",
                               "GET / HTTP/1.1\r\n\r\n",
                               magic,
                               magic.substr(0, 3),
                               magic + hello + set,
                               magic + std::string(100000, '\xff'),
                               std::string(100000, '\0')};
  for (const std::string &bytes : cases) {
    const std::string answer = send_raw(server->port(), bytes);
    assert_true(answer.size() <= kGreetingBytes);
  }
  // Words of the job that come before they are asked for, or without a proof, or cut.
  for (const std::string &bytes : {set, std::string(kAnswerBytes, 'x'), std::string(kAnswerBytes - 1, 'x')}) {
    const Socket socket = call(server->port());
    (void)greet(socket);
    (void)socket.send_all(bytes, within(kLongMs));
    const std::string answer = answers_of(socket);
    assert_true(answer.empty() || answer == std::string(kVerdictBytes, '\0'));
  }
  const auto store = assert_ok_value(Store::connect(options_of(server->port(), 0, 2), within(kLongMs)));
  assert_error_contains(store->get("key", within(0)), "timed out waiting");
  assert_int_equal(warnings.take().size(), 1);  // all are of one address
  assert_serves(server->port());
}

/// However many connections others keep open, and for however long.
static void test_idle_strangers_keep_nobody_out(void **) {
  Warnings warnings;
  const auto server = start_warning_server("", 60000, warnings);
  std::vector<Socket> idle;
  for (int i = 0; i < 100; ++i)
    idle.push_back(call(server->port()));
  const auto began = Deadline::Clock::now();
  assert_serves(server->port());
  assert_true(Deadline::Clock::now() - began < std::chrono::seconds(20));
}

static void test_strangers_are_told_once(void **) {
  std::vector<std::string> lines;
  Strangers strangers([&](const std::string &line) { lines.push_back(line); });
  for (int i = 0; i < 1000; ++i)
    strangers.dropped("192.0.2.1", "does this");
  strangers.dropped("192.0.2.2", "does that");
  assert_int_equal(lines.size(), 2);
  assert_string_equal(lines[1].c_str(), "a connection to the rendezvous from 192.0.2.2 was dropped: it does that");
  for (int i = 0; i < 3000; ++i)
    strangers.dropped(impl::base::concat("203.0.", i / 250, ".", i % 250), "does this");
  assert_int_equal(lines.size(), Strangers::kMostLines);
  Strangers({}).dropped("192.0.2.1", "nobody listens");
}

static void test_a_flood_of_connections(void **) {
  const auto server = start_server(2);
  std::vector<Socket> flood;
  for (int i = 0; i < 100; ++i) {
    auto socket = Socket::connect(impl::base::concat("127.0.0.1:", server->port()), within(kLongMs));
    if (socket.ok()) flood.push_back(socket.take());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // nobody of them has greeted in time
  const auto statuses = run_workers(server->port(), 2, [](Store &, const Gathering &, int32_t) { return Status(); });
  for (const Status &status : statuses)
    assert_ok(status);
}

/// A process of its own that serves a rendezvous.
struct Leader {
  pid_t process = -1;
  int32_t port = 0;
};

static Leader fork_leader() {
  int port_pipe[2];
  assert_int_equal(pipe(port_pipe), 0);
  Leader leader;
  leader.process = fork();
  if (leader.process == 0) {
    StoreServerOptions options;
    options.address = "127.0.0.1:0";
    options.world_size = 2;
    options.build_id = "build 1";
    auto server = StoreServer::start(options);
    const int32_t port = server.ok() ? (*server)->port() : 0;
    if (write(port_pipe[1], &port, sizeof(port)) != sizeof(port)) _exit(1);
    for (int i = 0; i < 600; ++i)
      usleep(100000);
    _exit(0);
  }
  assert_int_equal(read(port_pipe[0], &leader.port, sizeof(leader.port)), sizeof(leader.port));
  close(port_pipe[0]);
  close(port_pipe[1]);
  return leader;
}

static void end(const Leader &leader) {
  kill(leader.process, SIGKILL);
  waitpid(leader.process, nullptr, 0);
}

static void test_a_leader_that_dies(void **) {
  const Leader leader = fork_leader();
  const auto store = assert_ok_value(Store::connect(options_of(leader.port, 1, 2), within(kLongMs)));
  std::thread killer([&] {
    usleep(100000);
    end(leader);
  });
  const Status status = store->join(within(kLongMs)).status();
  killer.join();
  assert_error_contains(status, impl::base::concat("worker 0 (127.0.0.1:", leader.port, ")"));
  assert_error_contains(status, "closed by the other side");
}

/// Its machine answers, and it does not.
static void test_a_leader_that_is_stopped(void **) {
  const Leader leader = fork_leader();
  const auto getter = assert_ok_value(Store::connect(options_of(leader.port, 1, 2), within(kLongMs)));
  const auto joiner = assert_ok_value(Store::connect(options_of(leader.port, 1, 2), within(kLongMs)));
  kill(leader.process, SIGSTOP);
  const auto began = Deadline::Clock::now();
  const Status late = getter->get("key", within(100), 200).status();
  const auto got = Deadline::Clock::now();
  const Status alone = joiner->join(within(200)).status();
  const auto joined = Deadline::Clock::now();
  end(leader);
  for (const Status &status : {late, alone})
    assert_error_contains(
        status, impl::base::concat("has lost the connection to the rendezvous of worker 0 (127.0.0.1:", leader.port));
  assert_true(got - began >= std::chrono::milliseconds(300) && got - began < std::chrono::milliseconds(3000));
  assert_true(joined - got >= std::chrono::milliseconds(200) && joined - got < std::chrono::milliseconds(4000));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_leader_that_dies),  // forks: before there are threads
    cmocka_unit_test(test_a_leader_that_is_stopped),
    cmocka_unit_test(test_values_reach_everybody),
    cmocka_unit_test(test_who_has_gone_is_known),
    cmocka_unit_test(test_the_first_value_stays),
    cmocka_unit_test(test_a_missing_worker_is_named),
    cmocka_unit_test(test_only_those_that_are_missing_are_named),
    cmocka_unit_test(test_an_unreachable_leader_is_named),
    cmocka_unit_test(test_a_leader_that_begins_later),
    cmocka_unit_test(test_who_does_not_belong_is_turned_away),
    cmocka_unit_test(test_two_processes_with_one_number),
    cmocka_unit_test(test_cancel_ends_the_waits),
    cmocka_unit_test(test_hostile_bytes_waste_time_only),
    cmocka_unit_test(test_a_flood_of_connections),
    cmocka_unit_test(test_another_secret_is_turned_away),
    cmocka_unit_test(test_a_server_proves_itself),
    cmocka_unit_test(test_a_proof_is_good_once),
    cmocka_unit_test(test_who_proves_nothing_is_dropped),
    cmocka_unit_test(test_idle_strangers_keep_nobody_out),
    cmocka_unit_test(test_strangers_are_told_once),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::rendezvous_test

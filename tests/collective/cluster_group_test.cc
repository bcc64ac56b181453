// SPDX-License-Identifier: Apache-2.0
#include "collective/cluster/cluster_group.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collective/rendezvous/store.h"
#include "collective/rendezvous/store_server.h"
#include "conformance/group_conformance.h"
#include "runtime/engine_list.h"
#include "testing.h"

namespace tutti::testing::cluster_group_test {

using impl::base::Deadline;
using impl::collective::EngineRef;
using impl::collective::SharedTable;
using impl::collective::cluster::ClusterGroup;
using impl::collective::cluster::ClusterGroupOptions;
using impl::collective::rendezvous::Gathering;
using impl::collective::rendezvous::Limits;
using impl::collective::rendezvous::Store;
using impl::collective::rendezvous::StoreOptions;
using impl::collective::rendezvous::StoreServer;
using impl::collective::rendezvous::StoreServerOptions;

constexpr int64_t kLongMs = 60000;

static bool adds_in_order() { return std::strcmp(getenv("TUTTI_TEST_ORDER"), "in_order") == 0; }
static int32_t replicas_of(int32_t size) {
  const int32_t replicas = std::atoi(getenv("TUTTI_TEST_REPLICAS"));
  return size % replicas == 0 ? replicas : 1;
}
/// Of all groups that are made.
static EngineRef &engine() {
  static EngineRef opened = impl::runtime::open_engine(getenv("TUTTI_TEST_ENGINE")).value();
  return opened;
}
/// The servers live as long as the program: groups may outlive the calls that make them.
static std::vector<std::unique_ptr<StoreServer>> servers;

/// A worker's table as its group sees it.
using Wrap = std::function<std::shared_ptr<SharedTable>(int32_t worker, std::shared_ptr<SharedTable>)>;

static Result<Groups> connect_worker(int32_t port, int32_t worker, int32_t workers, int32_t replicas, int32_t parts,
                                     int64_t timeout_ms, const Wrap &wrap) {
  StoreOptions store_options;
  store_options.addresses.assign(static_cast<size_t>(workers), "");
  store_options.addresses[0] = impl::base::concat("127.0.0.1:", port);
  store_options.rank = worker;
  store_options.replicas = replicas;
  const Limits limits{Deadline::after_ms(kLongMs)};
  ClusterGroupOptions options;
  options.engine = engine();
  TUTTI_ASSIGN(std::unique_ptr<Store> store, Store::connect(store_options, limits));
  TUTTI_ASSIGN(const Gathering all, store->join(limits));
  options.table = std::move(store);
  if (wrap) options.table = wrap(worker, options.table);
  options.key_prefix = impl::base::concat(all.number, "/");
  for (int32_t w = 0; w < workers; ++w) {
    options.hosts.push_back(all.members[static_cast<size_t>(w)].host);
    options.names.push_back(impl::base::concat("worker ", w, " (", options.hosts.back(), ")"));
  }
  options.worker = worker;
  options.replicas = replicas;
  options.parts = parts;
  options.timeout_ms = timeout_ms;
  options.in_order = adds_in_order();
  return ClusterGroup::create(std::move(options));
}

static Result<Groups> connect_all(int32_t workers, int32_t replicas, int32_t parts, int64_t timeout_ms,
                                  const Wrap &wrap = {}) {
  StoreServerOptions server_options;
  server_options.address = "127.0.0.1:0";
  server_options.world_size = workers;
  TUTTI_ASSIGN(auto server, StoreServer::start(server_options));
  const int32_t port = server->port();
  servers.push_back(std::move(server));
  std::vector<Result<Groups>> made;
  for (int32_t w = 0; w < workers; ++w)
    made.emplace_back(Groups());
  std::vector<std::thread> threads;
  for (int32_t w = 0; w < workers; ++w) {
    threads.emplace_back(
        [&, w] { made[static_cast<size_t>(w)] = connect_worker(port, w, workers, replicas, parts, timeout_ms, wrap); });
  }
  for (std::thread &thread : threads)
    thread.join();
  Groups all;
  for (auto &ranks : made) {
    TUTTI_TRY(ranks);
    for (auto &rank : *ranks)
      all.push_back(std::move(rank));
  }
  return all;
}

static Result<Groups> make_groups(int32_t size, int32_t parts) {
  const int32_t replicas = replicas_of(size);
  return connect_all(size / replicas, replicas, parts, kLongMs);
}

static void test_who_does_not_come_is_named(void **) {
  Groups groups = assert_ok_value(connect_all(3, 1, 1, 300));
  const std::vector<Status> statuses =
      run_ranks(groups, [](Group &group) { return group.rank() == 2 ? Status() : group.barrier("meeting"); });
  for (const size_t r : {size_t{0}, size_t{1}}) {
    assert_error_contains(statuses[r], "worker 2 (127.0.0.1)");
    assert_error_contains(statuses[r], "meeting");
  }
}

/// An engine whose worker 1 hangs in its second exchange behind the two of the proof, having sent what worker 2 waits
/// for and not what worker 0 does; worker 0 is slow to hear that its time is over.
namespace half_sent {

static const tutti_engine_api *real = nullptr;
static thread_local int32_t worker = -1, exchanges = 0;  // of the mesh of this thread

static int32_t connect(const tutti_engine_host *host, const tutti_connect_request *request, tutti_mesh **mesh,
                       int32_t *failed_peer, tutti_error_sink *sink) {
  worker = request->rank;
  exchanges = 0;
  return real->connect(host, request, mesh, failed_peer, sink);
}

static int32_t exchange(tutti_mesh *mesh, const tutti_exchange *request, tutti_error_sink *sink) {
  const bool is_second = ++exchanges == 4;
  tutti_exchange changed = *request;
  std::vector<tutti_message> sends(request->sends, request->sends + request->send_count);
  if (is_second && worker == 1) {
    std::erase_if(sends, [](const tutti_message &message) { return message.peer == 0; });
    changed.sends = sends.data();
    changed.send_count = static_cast<int32_t>(sends.size());
  }
  const int32_t code = real->exchange(mesh, &changed, sink);
  if (is_second && worker != 2) std::this_thread::sleep_for(std::chrono::milliseconds(worker == 1 ? 2500 : 200));
  return code;
}

static EngineRef open() {
  void *const library = dlopen(getenv("TUTTI_TEST_ENGINE"), RTLD_NOW | RTLD_LOCAL);
  const auto entry = reinterpret_cast<tutti_engine_entry_function>(dlsym(library, "tutti_engine_entry"));
  real = entry(TUTTI_ENGINE_ABI_VERSION);
  static tutti_engine_api api = *real;
  api.connect = connect;
  api.exchange = exchange;
  return impl::collective::Engine::create([](uint32_t) -> const tutti_engine_api * { return &api; }, "").value();
}

}  // namespace half_sent

/// By worker 2, too, which waits for worker 0 where that waits for worker 1.
static void test_who_hangs_is_named_by_all(void **) {
  const EngineRef usual = std::exchange(engine(), half_sent::open());
  Groups groups = assert_ok_value(connect_all(3, 1, 1, 600));
  engine() = usual;
  const std::vector<Status> statuses = run_ranks(groups, [](Group &group) {
    TUTTI_TRY(group.barrier("begin"));
    TUTTI_TRY(group.barrier("one"));
    return group.barrier("another");
  });
  for (const size_t r : {size_t{0}, size_t{2}})
    assert_error_contains(statuses[r], "waited 600 ms for worker 1 (127.0.0.1)");
}

static void test_a_replica_that_does_not_come_is_named(void **) {
  Groups groups = assert_ok_value(connect_all(2, 2, 1, 300));
  const std::vector<Status> statuses =
      run_ranks(groups, [](Group &group) { return group.rank() == 3 ? Status() : group.barrier("meeting"); });
  assert_error_contains(statuses[2], "for rank 3");
  // Worker 0 waits for worker 1, which says the same.
  for (const size_t r : {size_t{0}, size_t{1}})
    assert_error_contains(statuses[r], "for rank 3");
}

static void test_who_leaves_is_named(void **) {
  Groups groups = assert_ok_value(connect_all(3, 1, 1, kLongMs));
  const std::vector<Status> statuses = run_ranks(groups, [&](Group &group) {
    TUTTI_TRY(group.barrier("begin"));
    if (group.rank() == 1) {
      groups[1].reset();
      return Status();
    }
    const Status status = group.barrier("end");
    return status.ok() ? impl::base::internal_error("passed") : status;
  });
  assert_ok(statuses[1]);
  for (const size_t r : {size_t{0}, size_t{2}})
    assert_error_contains(statuses[r], "worker 1 (127.0.0.1)");
}

/// Worker 2 says no last words, like one that was killed; worker 0 looks for those of others before it says any.
class WordsOfOthers : public SharedTable {
 public:
  WordsOfOthers(int32_t worker, std::shared_ptr<SharedTable> table) : worker_(worker), table_(std::move(table)) {}

  Status put(std::string_view key, std::string_view value, Deadline deadline, bool only_if_absent) override {
    const bool is_last_word = key.find("cause") != key.npos || key.find("heard") != key.npos;
    return worker_ == 2 && is_last_word ? Status() : table_->put(key, value, deadline, only_if_absent);
  }
  using SharedTable::find;
  Result<std::string> find(std::string_view key, Deadline deadline, int64_t patience_ms) override {
    const bool waits = worker_ == 0 && key.find("cause") != key.npos;
    return table_->find(key, waits ? Deadline::after_ms(kLongMs) : deadline, patience_ms);
  }

 private:
  const int32_t worker_;
  const std::shared_ptr<SharedTable> table_;
};

/// Worker 0 learns from worker 1 that worker 2 has gone, and does not wait for it.
static void check_that_nobody_waits_for_who_has_gone(std::chrono::milliseconds late) {
  Groups groups =
      assert_ok_value(connect_all(3, 1, 1, kLongMs, [](int32_t worker, const std::shared_ptr<SharedTable> &table) {
        return std::make_shared<WordsOfOthers>(worker, table);
      }));
  const std::vector<Status> statuses = run_ranks(groups, [&](Group &group) {
    TUTTI_TRY(group.barrier("begin"));
    if (group.rank() == 2) return groups[2].reset(), Status();
    if (group.rank() == 0) std::this_thread::sleep_for(late);
    return group.barrier("end");
  });
  assert_error_contains(statuses[0], "aborted by worker 1");
  assert_error_contains(statuses[0], "worker 2 (127.0.0.1) disconnected");
  assert_error_contains(statuses[1], "worker 2 (127.0.0.1) disconnected");
  const auto begin = std::chrono::steady_clock::now();
  groups[0].reset();
  assert_true(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
}

static void test_nobody_waits_for_who_has_gone(void **) {
  check_that_nobody_waits_for_who_has_gone(std::chrono::milliseconds(0));
}

/// What worker 0 has for worker 1 arrives, whoever else has gone before worker 0 sends it.
static void test_who_has_gone_keeps_nobody_else_waiting(void **) {
  check_that_nobody_waits_for_who_has_gone(std::chrono::milliseconds(300));
}

/// Worker 1 finds nobody who would say why worker 2 has gone, for worker 0 hangs: it does not wait for that.
class MuteTable : public SharedTable {
 public:
  MuteTable(int32_t worker, std::shared_ptr<SharedTable> table) : worker_(worker), table_(std::move(table)) {}

  Status put(std::string_view key, std::string_view value, Deadline deadline, bool only_if_absent) override {
    return table_->put(key, value, deadline, only_if_absent);
  }
  using SharedTable::find;
  Result<std::string> find(std::string_view key, Deadline deadline, int64_t patience_ms) override {
    if (worker_ != 1 || key.find("cause") == key.npos) return table_->find(key, deadline, patience_ms);
    std::this_thread::sleep_for(std::chrono::milliseconds(patience_ms));
    return impl::base::unavailable("worker 0 does not answer");
  }

 private:
  const int32_t worker_;
  const std::shared_ptr<SharedTable> table_;
};

static void test_a_cause_that_cannot_be_had_keeps_nobody_waiting(void **) {
  Groups groups =
      assert_ok_value(connect_all(3, 1, 1, kLongMs, [](int32_t worker, const std::shared_ptr<SharedTable> &table) {
        return std::make_shared<MuteTable>(worker, table);
      }));
  std::chrono::steady_clock::time_point begin, told;
  const std::vector<Status> statuses = run_ranks(groups, [&](Group &group) {
    TUTTI_TRY(group.barrier("begin"));
    if (group.rank() == 2) begin = std::chrono::steady_clock::now();
    if (group.rank() == 2) return groups[2].reset(), Status();
    const Status status = group.barrier("end");
    if (group.rank() == 1) told = std::chrono::steady_clock::now();
    return status;
  });
  assert_error_contains(statuses[1], "worker 2 (127.0.0.1) disconnected");
  assert_true(told - begin < std::chrono::milliseconds(3500));
}

/// The table may end with worker 0: it stays until worker 2 has asked why.
static void test_the_cause_is_there_for_who_asks_late(void **) {
  Groups groups = assert_ok_value(connect_all(3, 1, 1, kLongMs));
  assert_all_ok(run_ranks(groups, [](Group &group) { return group.barrier("begin"); }));
  groups[1]->abort(impl::base::data_loss("the disk is gone"));
  assert_error_contains(groups[0]->barrier("end"), "the disk is gone");
  std::atomic<bool> has_left{false};
  std::thread leaving([&] {
    groups[0].reset();
    has_left = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const bool is_too_early = has_left;
  const Status late = groups[2]->barrier("end");
  const auto begin = std::chrono::steady_clock::now();
  leaving.join();
  assert_true(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
  assert_false(is_too_early);
  assert_error_contains(late, "the disk is gone");
}

/// Sums of one process and of several have the same bits where the order is kept.
static void test_the_same_bits_on_all_workers(void **) {
  Groups groups = assert_ok_value(connect_all(3, 2, 1, kLongMs));
  for (const int64_t count : {int64_t{5}, int64_t{30}, int64_t{33}, int64_t{5000}, int64_t{300001}}) {
    std::vector<std::vector<float>> results(groups.size());
    assert_all_ok(run_ranks(groups, [&](Group &group) {
      RankBuffers buffers(group, count);
      TUTTI_TRY(group.all_reduce(buffers.pointers, count, DType::f32, Reduction::sum, "sum"));
      results[static_cast<size_t>(group.rank())] = buffers.values[0];
      return Status();
    }));
    for (const auto &result : results)
      assert_true(result == results[0]);
  }
}

static void test_an_engine_that_is_not_there(void **) {
  assert_error_contains(impl::runtime::open_engine("glo"), "did you mean 'gloo'");
  assert_error_contains(impl::runtime::open_engine("/no/such/tutti-gloo.so"), "there is no plug-in");
  assert_error_contains(impl::runtime::open_engine("/no/such/tutti-gloo.so"),
                        "over Gloo, which this installation lacks");
  assert_error_contains(impl::runtime::open_engine("/"), "over Gloo, which cannot be used here");
  EngineRef refused;
  assert_error_contains(
      impl::collective::Engine::create([](uint32_t) -> const tutti_engine_api * { return nullptr; }, ""),
      "refuses plug-in interface");
  static tutti_engine_api api{};
  const auto entry = [](uint32_t) -> const tutti_engine_api * { return &api; };
  assert_error_contains(impl::collective::Engine::create(entry, ""), "table has 0 bytes");
  api.struct_size = sizeof(api);
  assert_error_contains(impl::collective::Engine::create(entry, ""), "built for plug-in interface version 0");
  api.abi_version = TUTTI_ENGINE_ABI_VERSION;
  api.name = "strange";
  api.build_id = "other";
  assert_error_contains(impl::collective::Engine::create(entry, "mine"), "has build id 'other'");
  // Of another project, and with fields that were appended later.
  api.build_id = "";
  api.struct_size = sizeof(api) + sizeof(void *);
  assert_ok(impl::collective::Engine::create(entry, "mine"));
}

static const struct CMUnitTest tests[] = {
    TUTTI_GROUP_CONFORMANCE_TESTS,
    cmocka_unit_test(test_who_does_not_come_is_named),
    cmocka_unit_test(test_who_hangs_is_named_by_all),
    cmocka_unit_test(test_a_replica_that_does_not_come_is_named),
    cmocka_unit_test(test_who_leaves_is_named),
    cmocka_unit_test(test_nobody_waits_for_who_has_gone),
    cmocka_unit_test(test_who_has_gone_keeps_nobody_else_waiting),
    cmocka_unit_test(test_a_cause_that_cannot_be_had_keeps_nobody_waiting),
    cmocka_unit_test(test_the_cause_is_there_for_who_asks_late),
    cmocka_unit_test(test_the_same_bits_on_all_workers),
    cmocka_unit_test(test_an_engine_that_is_not_there),
};

static int run_all(int, char **) {
  group_factory = make_groups;
  group_traits.adds_in_order = adds_in_order();
  group_traits.hears_at_once = false;
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::cluster_group_test

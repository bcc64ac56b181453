// SPDX-License-Identifier: Apache-2.0
//
// Devices of several processes in one group: sums against those of plain loops, and that whoever dies, hangs, gives up
// or has chosen differently is named with its address on all others, within the time. Workers are processes with
// emulated GPUs of their own, whose NCCL meets over processes as the library does and tells nobody of one that ends.
// With TUTTI_TEST_REAL_GPUS they share the GPUs of this machine; what an NCCL must be ordered to do is left out then.
#include "collective/device/connected_workers.h"
#include "backend/gpu/emulator/nccl_folder.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"
#include "base/text.h"
#include "collective/cluster/cluster_group.h"
#include "collective/rendezvous/store.h"
#include "collective/rendezvous/store_server.h"
#include "conformance/group_conformance.h"
#include "gpus_needed.h"
#include "recorded_operations.h"
#include "registered_memory.h"
#include "runtime/backend_list.h"
#include "runtime/engine_list.h"
#include "tensor/half.h"
#include "testing.h"
#include "worker_processes.h"

namespace tutti::testing {

namespace backend = impl::backend;
namespace base = impl::base;
namespace collective = impl::collective;
namespace rendezvous = impl::collective::rendezvous;
using collective::Kind;
using collective::device::WorkersConnection;

constexpr int64_t kLongMs = 60000, kShortMs = 2000;
constexpr int64_t kCount = 300;

static bool has_real_gpus() { return getenv("TUTTI_TEST_REAL_GPUS") != nullptr; }

// ---- a worker ----

/// What makes a worker other than the rest; the first word of a scenario names it.
struct Trait {
  const char *scenario;
  const char *fault;     ///< of worker 1's NCCL, or null
  int64_t timeout_ms;    ///< of all
  bool is_demanded;      ///< by worker 0
  const char *declined;  ///< why worker 1 does not want to
};
constexpr Trait kTraits[] = {
    {"missing", "missing", kLongMs, false, nullptr},
    {"newer", "newer", kLongMs, false, nullptr},
    {"same_gpu", nullptr, kLongMs, false, nullptr},
    {"old_plugin", nullptr, kLongMs, false, nullptr},
    {"declined", nullptr, kLongMs, false, "all_reduce is host"},
    {"demanded", "missing", kLongMs, true, nullptr},
    {"demanded_declined", nullptr, kLongMs, true, "all_reduce is host"},
    {"refuse", "refuse", kLongMs, false, nullptr},
    {"busy", "busy", kShortMs, false, nullptr},
    {"stop_connecting", "busy", kShortMs, false, nullptr},
    {"kill_connecting", "busy", kLongMs, false, nullptr},
    {"kill_behind_device", "stall 1 5", kLongMs, false, nullptr},
    {"stop_behind_device", "stall 1 5", kShortMs, false, nullptr},
    {"stall", "stall 1 5", kShortMs, false, nullptr},
    {"stop", nullptr, kShortMs, false, nullptr},
    {"unregistered", "unregistered", kLongMs, false, nullptr},
};

static Trait trait_of(const std::string &scenario) {
  for (const Trait &trait : kTraits) {
    if (scenario == trait.scenario) return trait;
  }
  return {"", nullptr, kLongMs, false, nullptr};
}

/// The plug-in as it was before it connected processes.
static const tutti_backend_api *old_entry(uint32_t version) {
  static tutti_backend_api api;
  static tutti_collective_table table;
  void *const plugin = dlopen(getenv("TUTTI_TEST_BACKEND"), RTLD_NOW | RTLD_LOCAL);
  const auto entry = reinterpret_cast<tutti_backend_entry_function>(dlsym(plugin, TUTTI_BACKEND_ENTRY_NAME));
  api = *entry(version);
  table = *api.collective;
  table.struct_size = offsetof(tutti_collective_table, describe);
  api.collective = &table;
  return &api;
}

/// A worker's groups, and what it takes to connect their devices.
struct Worker {
  std::unique_ptr<rendezvous::StoreServer> server;
  std::vector<backend::DeviceRef> devices;
  Groups ranks;
  collective::device::WorkersOptions options;
  int64_t timeout_ms = kLongMs;
  std::string library;

  /// Those whose threads may touch a device go first.
  ~Worker() { ranks.clear(); }
};

static Status meet(const WorkerCall &call, int devices, Worker &worker) {
  const Trait trait = trait_of(call.scenario);
  worker.timeout_ms = trait.timeout_ms;
  if (call.worker == 1 && trait.fault != nullptr) setenv("TUTTI_EMULATED_NCCL", trait.fault, 1);
  if (call.scenario == "same_gpu") setenv("TUTTI_EMULATED_MACHINE", "one", 1);
  const std::string options = has_real_gpus() ? "{}" : base::concat("{\"logical_devices\": ", devices, "}");
  const bool is_old = call.scenario == "old_plugin" && call.worker == 1;
  TUTTI_ASSIGN(const backend::BackendRef opened,
               is_old ? backend::Backend::create(old_entry, options, {})
                      : impl::runtime::open_backend(getenv("TUTTI_TEST_BACKEND"), options, {}));
  const int first = has_real_gpus() && call.scenario != "same_gpu" ? call.worker * devices : 0;
  for (int d = first; d < first + devices; ++d) {
    TUTTI_ASSIGN(backend::DeviceRef device, opened->open_device(d));
    worker.devices.push_back(std::move(device));
  }
  rendezvous::StoreOptions store_options;
  store_options.addresses.assign(static_cast<size_t>(call.workers), "");
  store_options.addresses[0] = call.address;
  store_options.rank = call.worker;
  store_options.replicas = devices;
  if (call.worker == 0) {
    rendezvous::StoreServerOptions server;
    server.address = call.address;
    server.world_size = call.workers;
    TUTTI_ASSIGN(worker.server, rendezvous::StoreServer::start(server));
  }
  const rendezvous::Limits limits{base::Deadline::after_ms(kLongMs)};
  TUTTI_ASSIGN(std::unique_ptr<rendezvous::Store> store, rendezvous::Store::connect(store_options, limits));
  TUTTI_ASSIGN(const rendezvous::Gathering all, store->join(limits));
  collective::cluster::ClusterGroupOptions group;
  TUTTI_ASSIGN(group.engine, impl::runtime::open_engine(getenv("TUTTI_TEST_ENGINE")));
  group.table = std::move(store);
  group.key_prefix = base::concat(all.number, "/");
  for (const rendezvous::Gathering::Member &member : all.members) {
    group.names.push_back(base::concat("worker ", group.hosts.size(), " (", member.host, ")"));
    group.hosts.push_back(member.host);
  }
  group.worker = call.worker;
  group.replicas = devices;
  group.timeout_ms = trait.timeout_ms;
  worker.options = {.table = group.table,
                    .key_prefix = group.key_prefix,
                    .names = group.names,
                    .worker = call.worker,
                    .own = trait.declined != nullptr && call.worker == 1 ? base::unavailable(trait.declined) : Status(),
                    .is_demanded = trait.is_demanded && call.worker == 0};
  TUTTI_ASSIGN(worker.ranks, collective::cluster::ClusterGroup::create(std::move(group)));
  return Status();
}

/// Ends or stops this process after a while, from outside.
static void signal_later(int signal, int milliseconds) {
  const pid_t self = getpid();
  if (fork() != 0) return;
  usleep(static_cast<useconds_t>(milliseconds) * 1000);
  kill(self, signal);
  _exit(0);
}

static Result<WorkersConnection> connect(const WorkerCall &call, Worker &worker) {
  if (call.worker == 1 && call.scenario == "stop_connecting") signal_later(SIGSTOP, 300);
  if (call.worker == 1 && call.scenario == "kill_connecting") signal_later(SIGKILL, 300);
  return collective::device::connect_workers(worker.ranks, worker.devices, {.timeout_ms = worker.timeout_ms},
                                             worker.options);
}

static double number_of(double value) { return value; }
static double number_of(impl::tensor::BFloat16 value) { return static_cast<float>(value); }

/// Small whole numbers, whose sums are exact in every dtype.
static double whole(int32_t rank, int64_t i) { return static_cast<double>((rank * 3 + i * 5) % 7); }

/// All operations on so many elements of a dtype, against loops.
template <typename T>
static Status check_dtype(Group &group, Memory &memory, DType dtype, int64_t count) {
  const int32_t size = group.size();
  const auto fill = [&] {
    std::vector<T> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(T(static_cast<float>(whole(group.rank(), i))));
    return memory.write(values);
  };
  const auto check = [&](const char *what, int64_t begin, int64_t end, auto expected) -> Status {
    TUTTI_TRY(group.settle());
    TUTTI_ASSIGN(const std::vector<T> values, memory.read<T>(count));
    for (int64_t i = begin; i < end; ++i) {
      const double got = number_of(values[static_cast<size_t>(i)]);
      if (got != expected(i))
        return base::internal_error(what, " of ", count, " ", impl::tensor::name(dtype), ": element ", i, " is ", got,
                                    ", expected ", expected(i));
    }
    return Status();
  };
  const bool reduces = dtype != DType::u8;
  for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min}) {
    if (!reduces) break;
    TUTTI_TRY(fill());
    Operation operation = memory.operation(Kind::all_reduce, dtype, count);
    operation.reduction = reduction;
    TUTTI_TRY(group.run(operation));
    TUTTI_TRY(check("all_reduce", 0, count, [&](int64_t i) {
      double total = whole(0, i);
      for (int32_t r = 1; r < size; ++r) {
        const double next = whole(r, i);
        total = reduction == Reduction::sum   ? total + next
                : reduction == Reduction::max ? std::max(total, next)
                                              : std::min(total, next);
      }
      return total;
    }));
  }
  for (int32_t root = 0; root < size; ++root) {
    TUTTI_TRY(fill());
    Operation operation = memory.operation(Kind::broadcast, dtype, count);
    operation.root = root;
    TUTTI_TRY(group.run(operation));
    TUTTI_TRY(check("broadcast", 0, count, [&](int64_t i) { return whole(root, i); }));
  }
  std::vector<Slice> even, uneven;
  for (int32_t r = 0; r < size; ++r) {
    even.push_back({r * (count / size), (r + 1) * (count / size), r});
    uneven.push_back({count * r / size, count * (r + 1) / size, size - 1 - r});
  }
  for (const std::vector<Slice> &slices : {even, uneven}) {
    TUTTI_TRY(fill());
    Operation operation = memory.operation(Kind::reduce_scatter, dtype, count);
    operation.slices = slices.data();
    operation.slice_count = size;
    if (reduces) TUTTI_TRY(group.run(operation));
    operation.kind = Kind::all_gather;
    TUTTI_TRY(group.run(operation));
    TUTTI_TRY(check("reduce_scatter", slices.front().begin, slices.back().end, [&](int64_t i) {
      double total = 0;
      if (!reduces) {
        const auto slice =
            std::ranges::find_if(slices, [&](const Slice &one) { return i >= one.begin && i < one.end; });
        return whole(slice->owner, i);
      }
      for (int32_t r = 0; r < size; ++r)
        total += whole(r, i);
      return total;
    }));
  }
  return Status();
}

/// The bits of a sum that depends on the order, as text; and words of the host between operations of devices.
static Status check_rank(Group &group, backend::Device &device, std::string &bits) {
  TUTTI_ASSIGN(Memory memory, Memory::make(device, 5000 * 8));
  for (const int64_t count : {int64_t{4}, int64_t{7}, int64_t{301}, int64_t{4099}}) {
    TUTTI_TRY(check_dtype<float>(group, memory, DType::f32, count));
    TUTTI_TRY(check_dtype<double>(group, memory, DType::f64, count));
    TUTTI_TRY(check_dtype<int32_t>(group, memory, DType::i32, count));
    TUTTI_TRY(check_dtype<int64_t>(group, memory, DType::i64, count));
    TUTTI_TRY(check_dtype<uint8_t>(group, memory, DType::u8, count));
    TUTTI_TRY(check_dtype<impl::tensor::BFloat16>(group, memory, DType::bf16, count));
  }
  TUTTI_TRY(memory.write(RankBuffers(group, kCount).values.front()));
  TUTTI_TRY(group.run(memory.operation(Kind::all_reduce, DType::f32, kCount)));
  TUTTI_TRY(group.settle());
  TUTTI_ASSIGN(const std::vector<float> sums, memory.read<float>(kCount));
  for (int64_t i = 0; i < kCount; ++i) {
    const float sum = sums[static_cast<size_t>(i)], expected = ordered_sum(group.size(), i);
    if (std::abs(sum - expected) > 1e-6f * expected) return differs("sum", i, sum, expected);
    char word[32];
    snprintf(word, sizeof word, " %a", static_cast<double>(sum));
    bits += word;
  }
  // Far ahead of the device, with words of the host in between, and meetings of the own process.
  for (int round = 0; round < 3 * collective::max_pending_operations; ++round) {
    Operation largest = memory.operation(Kind::all_reduce, DType::f32, kCount);
    largest.reduction = Reduction::max;
    TUTTI_TRY(group.run(largest));
    if (round % 17 == 0) TUTTI_TRY(group.settle_own());
    if (round % 50 != 0) continue;
    int64_t word = group.rank() + round;
    void *const pointer = &word;
    TUTTI_TRY(group.all_reduce({&pointer, 1}, 1, DType::i64, Reduction::max, "word"));
    if (word != group.size() - 1 + round) return base::internal_error("word ", word, " in round ", round);
  }
  TUTTI_TRY(group.settle());
  if (group.signals_end()) return base::internal_error("workers cannot give each other their weights");
  TUTTI_ASSIGN(const std::vector<float> kept, memory.read<float>(kCount));
  return kept == sums ? Status() : base::internal_error("the largest of equal sums is another one");
}

static Result<std::string> check_recordings(Worker &worker) {
  const std::vector<Status> statuses = run_ranks(worker.ranks, [&](Group &group) {
    return check_recordings_of(group, *worker.devices[static_cast<size_t>(group.rank()) % worker.ranks.size()]);
  });
  std::string text;
  for (const Status &status : statuses)
    text += base::concat("| ", status.ok() ? "recorded" : status.to_string());
  return text;
}

static Result<std::string> check_registered(Worker &worker) {
  const TemporaryDirectory directory;
  const std::string journal = directory / "journal";
  setenv("TUTTI_EMULATED_NCCL_JOURNAL", journal.c_str(), 1);
  return register_and_sum(worker.ranks, worker.devices, journal);
}

static Result<std::string> check_sums(Worker &worker) {
  std::vector<std::string> bits(worker.ranks.size());
  const std::vector<Status> statuses = run_ranks(worker.ranks, [&](Group &group) {
    const auto r = static_cast<size_t>(group.rank()) % worker.ranks.size();
    return check_rank(group, *worker.devices[r], bits[r]);
  });
  for (const Status &status : statuses)
    TUTTI_TRY(status);
  for (const std::string &of_rank : bits) {
    if (of_rank != bits.front()) return base::internal_error("ranks of a worker have other bits");
  }
  return base::concat(worker.library, bits.front());
}

/// Sums without end; at the fifth worker 1 does what the scenario says. Gives the first error, and how long it took.
static Result<std::string> sum_on(const WorkerCall &call, Worker &worker) {
  const auto token = base::CancelToken::create();
  std::vector<Memory> memories(worker.ranks.size());
  std::atomic<int64_t> last_ms{base::now_ns() / 1000000};
  const std::vector<Status> statuses = run_ranks(worker.ranks, [&](Group &group) -> Status {
    const size_t r = static_cast<size_t>(group.rank()) % worker.ranks.size();
    Memory &memory = memories[r];
    TUTTI_ASSIGN(memory, Memory::make(*worker.devices[r], kCount * 4));
    TUTTI_TRY(memory.write(std::vector<float>(kCount, 0.0f)));
    group.set_cancel(token.get());
    for (int round = 0;; ++round) {
      const bool acts = round == 5 && call.worker == 1 && r == 0;
      if (acts && call.scenario == "kill") raise(SIGKILL);
      if (acts && call.scenario == "stop") signal_later(SIGSTOP, 0);
      if (acts && call.scenario == "kill_behind_device") signal_later(SIGKILL, 300);
      if (acts && call.scenario == "stop_behind_device") signal_later(SIGSTOP, 300);
      if (acts && call.scenario == "abort") group.abort(base::data_loss("the disk is gone"));
      if (acts && call.scenario == "cancel") token->cancel();
      Operation sum = memory.operation(Kind::all_reduce, DType::f32, kCount);
      if (acts && call.scenario == "other_operation") sum.count = 10;
      Status status = group.run(sum);
      if (status.ok()) status = group.settle();
      if (!status.ok()) {
        (void)memory.stream.synchronize();  // never a hang: what was under way has been ended
        return status;
      }
      last_ms = base::now_ns() / 1000000;
    }
  });
  const int64_t took_ms = base::now_ns() / 1000000 - last_ms;
  worker.ranks.clear();  // the memory is theirs after an error
  std::string text = base::concat("took ", took_ms, " ms");
  for (const Status &status : statuses)
    text += base::concat(" | ", status.to_string());
  return text;
}

static Result<std::string> run_scenario(const WorkerCall &call) {
  const int devices = call.scenario.ends_with("_2") ? 2 : 1;
  const auto begin_ns = base::now_ns();
  Worker worker;
  TUTTI_TRY(meet(call, devices, worker));
  if (call.worker == 0 && call.scenario == "noid") setenv("TUTTI_EMULATED_NCCL", "noid", 1);
  const Result<WorkersConnection> made = connect(call, worker);
  const int64_t took_ms = (base::now_ns() - begin_ns) / 1000000;
  if (!made.ok()) return base::concat("took ", took_ms, " ms | refused: ", made.status().to_string());
  if (!made->unconnected.ok()) {
    // The group over host memory is as good as before.
    const Status barrier = worker.ranks.front()->barrier("go on");
    return base::concat("took ", took_ms, " ms | ", made->unconnected.to_string(), barrier.ok() ? " | goes on" : "");
  }
  worker.library = made->library;
  if (call.scenario.starts_with("recorded")) return check_recordings(worker);
  if (call.scenario.find("registered") != std::string::npos) return check_registered(worker);
  return call.scenario.starts_with("sums") ? check_sums(worker) : sum_on(call, worker);
}

static int run_as_worker(char **arguments) {
  const WorkerCall call = worker_call(arguments);
  const Result<std::string> text = run_scenario(call);
  std::ofstream(call.file) << (text.ok() ? *text : text.status().to_string());
  if (!text.ok()) fprintf(stderr, "worker %d: %s\n", call.worker, text.status().to_string().c_str());
  return text.ok() ? 0 : 1;
}

// ---- what all must come to ----

static int64_t took_ms(const std::string &text) {
  long long ms = -1;
  return sscanf(text.c_str(), "took %lld ms", &ms) == 1 ? ms : -1;
}

static void check_sums_of(const char *scenario, int count) {
  Workers workers(scenario, count);
  workers.wait();
  for (int w = 0; w < count; ++w) {
    assert_string_equal(workers.output(w).c_str(), workers.output(0).c_str());
    assert_contains(workers.output(w).c_str(), "NCCL 2.");
    assert_int_equal(workers.code(w), 0);
  }
}

static void test_sums_of_two_workers(void **) { check_sums_of("sums_1", 2); }
static void test_sums_of_three_workers(void **) { check_sums_of("sums_1", 3); }
static void test_sums_of_pairs(void **) { check_sums_of("sums_2", 2); }

static bool has_blocking_communicators() { return strstr(getenv("TUTTI_TEST_BACKEND"), "blocking") != nullptr; }

static void test_recordings(void **) {
  const bool blocks = has_blocking_communicators();
  const struct {
    const char *scenario;
    int count;
    const char *expected;
  } cases[] = {
      {"recorded_1", 2, blocks ? "blocking communicators cannot be captured" : "| recorded"},
      {"recorded_1", 3, blocks ? "blocking communicators cannot be captured" : "| recorded"},
      {"recorded_2", 2, "graphs of several GPUs of one process"},
  };
  for (const auto &c : cases) {
    Workers workers(c.scenario, c.count);
    workers.wait();
    for (int w = 0; w < c.count; ++w) {
      assert_contains(workers.output(w).c_str(), c.expected);
      assert_int_equal(workers.code(w), 0);
    }
  }
}

/// By all workers or by none.
static void check_registered_by(const char *scenario, int count, const std::string &first, const std::string &others) {
  Workers workers(scenario, count);
  workers.wait();
  for (int w = 0; w < count; ++w) {
    assert_string_equal(workers.output(w).c_str(), (w == 1 ? others : first).c_str());
    assert_int_equal(workers.code(w), 0);
  }
}

static void test_memory_is_registered(void **) {
  const std::string none = "0 bytes, not registered: windows between processes are not supported";
  if (has_blocking_communicators()) {
    const std::string text = base::concat(none, " | registered 0, not any more 0");
    return check_registered_by("registered_1", 2, text, text);
  }
  const std::string each = base::concat(
      kRegistered * 4, " bytes, registered, without windows: windows between processes are not supported | ");
  const std::string one = base::concat(each, "registered 1, not any more 1");
  check_registered_by("registered_1", 2, one, one);
  check_registered_by("registered_1", 3, one, one);
  const std::string two = base::concat(each, each, "registered 2, not any more 2");
  check_registered_by("registered_2", 2, two, two);
  check_registered_by(
      "unregistered", 3,
      base::concat(none, ", and another process does not register its memory | registered 1, not any more 1"),
      base::concat(none, " | registered 0, not any more 0"));
}

/// All workers but `silent`, which may have been stopped, say all of `expected`, within `most_ms`.
static void check_told(const char *scenario, int count, int silent, int64_t most_ms,
                       const std::vector<const char *> &expected) {
  Workers workers(scenario, count);
  silent < 0 ? workers.wait() : workers.wait_without(silent);
  for (int w = 0; w < count; ++w) {
    if (w == silent) continue;
    const std::string text = workers.output(w);
    for (const char *word : expected)
      assert_contains(text.c_str(), word);
    if (took_ms(text) < 0 || took_ms(text) > most_ms) fail_msg("%s: too late: %s", scenario, text.c_str());
    assert_int_equal(workers.code(w), 0);
  }
}

constexpr int64_t kSoonMs = 10000;  // where the deadline is a minute

static void test_a_worker_that_dies_is_named(void **) {
  check_told("kill", has_real_gpus() ? 2 : 3, 1, kSoonMs, {"worker 1 (127.0.0.1)", "disconnected"});
  if (has_real_gpus()) return;
  // While the others wait for devices only: no operation of the host tells them.
  check_told("kill_behind_device", 3, 1, kSoonMs, {"worker 1 (127.0.0.1)", "disconnected"});
  check_told("kill_connecting", 3, 1, kSoonMs, {"worker 1 (127.0.0.1)", "disconnected", "refused"});
}

static void test_a_worker_that_hangs_is_named(void **) {
  if (has_real_gpus()) return check_told("stop", 2, 1, kShortMs + 4000, {"worker 1 (127.0.0.1)", "waited 2000 ms"});
  for (const char *scenario : {"stop", "stop_behind_device", "stop_connecting"})
    check_told(scenario, 3, 1, kShortMs + 4000, {"worker 1 (127.0.0.1)", "waited 2000 ms"});
}

static void test_a_worker_that_gives_up_is_named(void **) {
  const int count = has_real_gpus() ? 2 : 3;
  check_told("abort", count, 1, kSoonMs, {"worker 1 (127.0.0.1)", "the disk is gone"});
  check_told("cancel", count, 1, kSoonMs, {"worker 1 (127.0.0.1)", "CANCELLED"});
}

static void test_devices_that_hang(void **) {
  check_told("stall", 2, -1, kShortMs + 4000, {"2000 ms in all_reduce 'bucket 7' for the devices"});
}

static void test_another_operation_is_found(void **) {
  check_told("other_operation", 2, -1, kSoonMs,
             {"worker 1 (127.0.0.1)", "all_reduce 'bucket 7' of 10 f32 elements on devices",
              "all_reduce 'bucket 7' of 300 f32 elements on devices"});
}

static void test_workers_that_do_not_fit_go_on_without(void **) {
  check_told("missing", 3, -1, kSoonMs, {"worker 1 (127.0.0.1) reports: there is no emulated NCCL", "goes on"});
  check_told(
      "newer", 3, -1, kSoonMs,
      {"worker 1 (127.0.0.1) has emulated NCCL 2.27.5 and worker 0 (127.0.0.1) has emulated NCCL 2.21.5", "goes on"});
  check_told("same_gpu", 2, -1, kSoonMs,
             {"device 0 of worker 1 (127.0.0.1) and device 0 of worker 0 (127.0.0.1) are the same", "goes on"});
  check_told("old_plugin", 2, -1, kSoonMs,
             {"worker 1 (127.0.0.1) reports: the plug-in of backend 'emulated' is too old", "goes on"});
  check_told("declined", 2, -1, kSoonMs, {"worker 1 (127.0.0.1) reports: all_reduce is host", "goes on"});
}

static void test_a_demand_that_cannot_be_met_is_refused_by_all(void **) {
  for (const char *scenario : {"demanded", "demanded_declined"})
    check_told(scenario, 2, -1, kSoonMs,
               {"refused", "worker 0 (127.0.0.1) asks for connected devices", "worker 1 (127.0.0.1) reports"});
}

static void test_what_fails_while_connecting_is_refused_by_all(void **) {
  check_told("refuse", 3, -1, kSoonMs,
             {"refused", "worker 1 (127.0.0.1) could not connect its devices", "NCCL says an emulated error"});
  check_told("noid", 3, -1, kSoonMs,
             {"refused", "worker 0 (127.0.0.1) could not connect its devices", "NCCL says an emulated error"});
  check_told("busy", 3, -1, kShortMs + 4000,
             {"refused", "worker 1 (127.0.0.1) could not connect its devices", "not ready in 2000 ms"});
}

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::test_sums_of_two_workers),
    cmocka_unit_test(tutti::testing::test_sums_of_three_workers),
    cmocka_unit_test(tutti::testing::test_sums_of_pairs),
    cmocka_unit_test(tutti::testing::test_recordings),
    cmocka_unit_test(tutti::testing::test_memory_is_registered),
    cmocka_unit_test(tutti::testing::test_a_worker_that_dies_is_named),
    cmocka_unit_test(tutti::testing::test_a_worker_that_hangs_is_named),
    cmocka_unit_test(tutti::testing::test_a_worker_that_gives_up_is_named),
    cmocka_unit_test(tutti::testing::test_devices_that_hang),
    cmocka_unit_test(tutti::testing::test_another_operation_is_found),
    cmocka_unit_test(tutti::testing::test_workers_that_do_not_fit_go_on_without),
    cmocka_unit_test(tutti::testing::test_a_demand_that_cannot_be_met_is_refused_by_all),
    cmocka_unit_test(tutti::testing::test_what_fails_while_connecting_is_refused_by_all),
};

/// Those for which two GPUs are enough, and a library that does what it does.
static const struct CMUnitTest tests_of_real_gpus[] = {
    cmocka_unit_test(tutti::testing::test_sums_of_two_workers),
    cmocka_unit_test(tutti::testing::test_a_worker_that_dies_is_named),
    cmocka_unit_test(tutti::testing::test_a_worker_that_hangs_is_named),
    cmocka_unit_test(tutti::testing::test_a_worker_that_gives_up_is_named),
    cmocka_unit_test(tutti::testing::test_another_operation_is_found),
};

int main(int count, char **arguments) {
  if (tutti::testing::is_worker(count)) return tutti::testing::run_as_worker(arguments);
  if (tutti::testing::has_real_gpus()) {
    if (!tutti::testing::has_enough_gpus(getenv("TUTTI_TEST_BACKEND"), 2)) return 77;
    return cmocka_run_group_tests(tests_of_real_gpus, nullptr, nullptr);
  }
  const tutti::testing::NcclFolder folder;
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

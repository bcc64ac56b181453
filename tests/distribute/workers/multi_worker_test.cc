// SPDX-License-Identifier: Apache-2.0
//
// Training in several processes against training in one with as many replicas: equal weights, the same bits on all
// workers; and what happens when one stops, fails, dies or does not fit.
#include "distribute/strategy/multi_worker_strategy.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backend/backend.h"
#include "base/text.h"
#include "distribute/training_case.h"
#include "distribute/worker_strategy.h"
#include "gpus_needed.h"
#include "testing.h"
#include "worker_processes.h"

namespace tutti::testing {

using impl::backend::Level;

struct Case {
  const char *name;
  int devices = 1;
  NetworkCase network;
  int64_t rows = 64, batch = 16;
  int32_t accumulation = 1;
  Level level = Level::fast;
  bool own_input = false;
  int64_t bucket_bytes = 0;  ///< 0: as ever
};

static NetworkCase network_of(DType dtype, Optimizer optimizer, Loss loss, bool batch_norm, bool dropout,
                              double clip = 0) {
  NetworkCase network;
  network.dtype = dtype;
  network.optimizer = optimizer;
  network.loss = loss;
  network.batch_norm = batch_norm;
  network.dropout = dropout;
  network.clip = clip;
  if (optimizer == Optimizer::adam) network.learning_rate = 0.01;
  return network;
}

/// Whose gradients do not fit into one small message.
static NetworkCase wide_network() {
  NetworkCase network = network_of(DType::f64, Optimizer::adam, Loss::mean, true, false);
  network.features = 40;
  network.hidden = 300;
  return network;
}

static const std::vector<Case> &cases() {
  static const std::vector<Case> all = {
      {"sgd", 1, network_of(DType::f64, Optimizer::sgd, Loss::mean, false, false)},
      {"uneven", 2, network_of(DType::f64, Optimizer::adam, Loss::weighted_mean_with_penalty, true, true, 0.1), 61, 7},
      {"clipped_pairs", 2, network_of(DType::f64, Optimizer::sgd, Loss::mean, false, false, 0.1), 61, 7},
      {"penalty", 2, network_of(DType::f64, Optimizer::sgd, Loss::weighted_mean_with_penalty, false, false, 0), 61, 7},
      {"accumulated", 1, network_of(DType::f64, Optimizer::momentum, Loss::weighted_mean, false, true), 70, 9, 3},
      {"fewer_rows", 2, network_of(DType::f64, Optimizer::sgd, Loss::sum, true, false), 10, 3},
      {"wide", 2, wide_network(), 40, 16},
      {"many_buckets", 1, network_of(DType::f64, Optimizer::adam, Loss::mean, true, false), 40, 16, 1, Level::fast,
       false, 100},
      {"invariant", 1, network_of(DType::f32, Optimizer::adam, Loss::weighted_mean, false, true), 37, 11, 1,
       Level::invariant},
      {"own", 1, network_of(DType::f64, Optimizer::adam, Loss::weighted_mean_with_penalty, true, true), 0, 5, 1,
       Level::fast, true},
      {"own_pairs", 2, network_of(DType::f64, Optimizer::momentum, Loss::mean, false, true), 0, 5, 1, Level::fast,
       true},
  };
  return all;
}

static const Case *find_case(const std::string &name) {
  const auto found = std::ranges::find_if(cases(), [&](const Case &known) { return name == known.name; });
  return found == cases().end() ? nullptr : &*found;
}

static TrainerOptions options_of(const Case &c, int32_t replicas) {
  TrainerOptions options;
  options.seed = 7;
  options.accumulation = c.accumulation;
  options.level = c.level;
  options.logical_replicas = std::max(replicas, 6);
  options.collective_timeout_ms = 60000;
  if (c.bucket_bytes > 0) options.bucket_bytes = c.bucket_bytes;
  return options;
}

// ---- workers ----

/// Every number of the model to the last bit.
static Result<std::string> numbers_of(Trainer &trainer) {
  std::string text;
  for (const auto &variable : trainer.model().variables) {
    TUTTI_ASSIGN(const Tensor value, trainer.get_variable(variable.name));
    text += variable.name;
    for (int64_t i = 0; i < value.elements(); ++i) {
      const double number = value.dtype() == DType::f64 ? value.data_as<double>()[i] : value.data_as<float>()[i];
      char word[32];
      snprintf(word, sizeof word, " %a", number);
      text += word;
    }
    text += "\n";
  }
  return text;
}

/// Several GPUs, which are emulated: they are connected over processes. Real ones are the same for all workers, and so
/// are not.
static bool has_gpus() { return getenv("TUTTI_EMULATED_GPUS") != nullptr; }

/// How gradients are added up is what the case needs: by the devices, where these are GPUs, in registered memory.
static Status check_connection(const Trainer &trainer, const Case &c, int workers) {
  const std::string described = trainer.describe().dump();
  const bool is_connected =
      described.find(base::concat("connected devices of ", workers, " workers, by ")) != std::string::npos;
  const bool is_registered = trainer.describe().find("registered_bytes")->integer() > 0;
  if (is_connected == (has_gpus() && c.level != Level::invariant) && is_registered == is_connected) return Status();
  return base::internal_error(c.name, ": ", described);
}

static Result<std::string> train_case(const WorkerCall &call, const Case &c) {
  TUTTI_ASSIGN(const Model model, build_network(c.network));
  TUTTI_ASSIGN(const StrategyRef strategy, worker_strategy(call, c.devices, c.own_input, 60000));
  TUTTI_ASSIGN(auto trainer, Trainer::open(model, strategy, options_of(c, strategy->replicas_in_all())));
  TUTTI_TRY(trainer->initialize());
  TUTTI_TRY(check_connection(*trainer, c, call.workers));
  TUTTI_TRY(trainer->check_workers({"case"}, nullptr));
  const NetworkCase &network = c.network;
  const auto rows =
      c.own_input ? make_listed_rows(own_rows(call.worker), network.features, network.classes, network.dtype, c.batch)
                  : make_rows(c.rows, network.features, network.classes, network.dtype, c.batch);
  TUTTI_ASSIGN(auto iterator, rows->make_iterator({}));
  TUTTI_TRY(trainer->attach_input(std::move(iterator)));
  // Workers ask for runs of different lengths; the shortest ends that of all.
  std::string losses;
  distribute::RunReport report;
  int64_t examples = 0;
  do {
    TUTTI_ASSIGN(report, trainer->run(call.worker == 0 ? 2 : 3 + call.worker, nullptr));
    examples += report.examples;
    for (const double loss : trainer->loss_history())
      losses += base::concat(" ", loss);
  } while (report.reason == distribute::StopReason::steps_done);
  TUTTI_ASSIGN(const bool identical, trainer->replicas_are_identical());
  TUTTI_ASSIGN(const std::string numbers, numbers_of(*trainer));
  return base::concat("step ", trainer->step(), " examples ", examples, " identical ", identical, "\n", numbers);
}

constexpr int64_t kFreezeTimeoutMs = 3000;

/// Of a clock that all processes share.
static int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// Trains without end on one batch; what happens at step 5 is the scenario's.
static Result<std::string> train_on(const WorkerCall &call) {
  const bool dies_anywhere = call.scenario.starts_with("kill_after_");
  const NetworkCase network =
      dies_anywhere ? wide_network() : network_of(DType::f32, Optimizer::adam, Loss::mean, true, false);
  const bool misfit = call.scenario == "misfit" && call.worker == 1;
  WorkerCall told = call;
  if (misfit) told.workers = 3;
  NetworkCase built = network;
  if (call.scenario == "other_model" && call.worker == 1) built.hidden = 9;
  if (call.scenario == "other_rate" && call.worker == 1) built.learning_rate = 0.25;
  TUTTI_ASSIGN(const Model model, build_network(built));
  TUTTI_ASSIGN(const StrategyRef strategy, worker_strategy(told, 2, false, call.scenario == "misfit" ? 6000 : 60000));
  TrainerOptions options;
  options.seed = call.scenario == "other_seed" ? call.worker : 0;
  options.collective_timeout_ms = call.scenario == "hang"      ? 4000
                                  : call.scenario == "freezes" ? kFreezeTimeoutMs
                                                               : 60000;
  TUTTI_ASSIGN(auto trainer, Trainer::open(model, strategy, options));
  TUTTI_TRY(trainer->initialize());
  TUTTI_TRY(trainer->check_workers(
      {"rows: all", call.scenario == "other_settings" ? base::concat("order: ", call.worker) : "order"}, nullptr));
  const int64_t rows = call.scenario == "other_rows" ? 20 + call.worker : 20;
  TUTTI_ASSIGN(auto iterator,
               make_endless_batch(rows, network.features, network.classes, network.dtype)->make_iterator({}));
  TUTTI_TRY(trainer->attach_input(std::move(iterator)));
  TUTTI_ASSIGN(distribute::RunReport report, trainer->run(5, nullptr));
  const auto token = base::CancelToken::create();
  if (call.scenario == "freezes") std::ofstream(call.file) << "trains";
  if (call.worker == 1) {
    if (call.scenario == "kill") raise(SIGKILL);
    if (call.scenario == "hang") sleep(9);
    if (call.scenario == "stop") token->stop();
    if (call.scenario == "stop_between") TUTTI_TRY(trainer->stop_workers(nullptr));
    if (call.scenario == "leave") trainer->leave_workers(base::data_loss("the disk is gone"));
  }
  if (call.worker == 1 && dies_anywhere) {
    std::thread([milliseconds = std::atoi(call.scenario.c_str() + 11)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      raise(SIGKILL);
    }).detach();
  }
  std::thread canceller;
  if (call.worker == 1 && call.scenario == "cancel") {
    canceller = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      token->cancel();
    });
  }
  std::string outcome = "stopped";
  if (call.scenario != "stop_between" || call.worker != 1) {
    const auto ran = trainer->run(-1, token.get());
    outcome =
        ran.ok() ? (ran->reason == distribute::StopReason::stopped ? "stopped" : "other") : ran.status().to_string();
  }
  if (canceller.joinable()) canceller.join();
  if (call.scenario == "freezes") outcome = base::concat("at ", now_ms(), " ", outcome);
  return base::concat("step ", trainer->step(), " ", outcome);
}

/// Worker 1 has no library that connects its GPUs, or does not want it; how gradients are added up then.
static Result<std::string> describe_unconnected(const WorkerCall &call) {
  if (call.worker == 1 && call.scenario != "unconnected_by_choice") setenv("TUTTI_EMULATED_NCCL", "missing", 1);
  TrainerOptions options;
  if (call.worker == 1 && call.scenario == "unconnected_by_choice")
    options.all_reduce = distribute::AllReduceChoice::host;
  if (call.worker == 0 && call.scenario == "unconnected_on_demand")
    options.all_reduce = distribute::AllReduceChoice::device;
  TUTTI_ASSIGN(const Model model, build_network({}));
  TUTTI_ASSIGN(const StrategyRef strategy, worker_strategy(call, 1, false, 60000));
  TUTTI_ASSIGN(auto trainer, Trainer::open(model, strategy, options));
  return trainer->describe().dump();
}

static int run_as_worker(char **arguments) {
  const WorkerCall call = worker_call(arguments);
  const Case *const c = find_case(call.scenario);
  const bool is_unconnected = call.scenario.starts_with("unconnected");
  const Result<std::string> text = c != nullptr     ? train_case(call, *c)
                                   : is_unconnected ? describe_unconnected(call)
                                                    : train_on(call);
  std::ofstream(call.file) << (text.ok() ? *text : text.status().to_string());
  if (!text.ok()) fprintf(stderr, "worker %d: %s\n", call.worker, text.status().to_string().c_str());
  return text.ok() ? 0 : 1;
}

// ---- the same in one process ----

/// The global batches of workers that have their own rows.
static std::vector<std::vector<int64_t>> global_batches(int workers, int64_t batch) {
  std::vector<std::vector<int64_t>> batches;
  for (size_t b = 0;; ++b) {
    std::vector<int64_t> rows;
    for (int w = 0; w < workers; ++w) {
      const std::vector<int64_t> own = own_rows(w);
      const size_t begin = std::min(own.size(), b * static_cast<size_t>(batch));
      const size_t end = std::min(own.size(), begin + static_cast<size_t>(batch));
      rows.insert(rows.end(), own.begin() + static_cast<int64_t>(begin), own.begin() + static_cast<int64_t>(end));
    }
    if (rows.empty()) return batches;
    batches.push_back(std::move(rows));
  }
}

/// One batch after the other as steps of `accumulation`, on one device: what P1 is measured by.
static std::string train_alone(const Case &c, int workers, int replicas) {
  const Model model = assert_ok_value(build_network(c.network));
  TrainerOptions options = options_of(c, replicas);
  auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  const NetworkCase &network = c.network;
  int64_t examples = 0;
  const auto run = [&](const impl::data::DatasetRef &rows) {
    assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
    examples += assert_ok_value(trainer->run(-1, nullptr)).examples;
  };
  if (!c.own_input) {
    run(make_rows(c.rows, network.features, network.classes, network.dtype, c.batch));
  } else {
    const auto batches = global_batches(workers, c.batch);
    assert_int_equal(c.accumulation, 1);
    for (const auto &rows : batches)
      run(make_listed_rows(rows, network.features, network.classes, network.dtype, 1000));
  }
  return base::concat("step ", trainer->step(), " examples ", examples, " identical true\n",
                      assert_ok_value(numbers_of(*trainer)));
}

/// The largest difference of two texts of numbers_of(), relative to the largest number of each variable. One that is as
/// good as zero everywhere has no scale of its own.
static double difference(const std::string &a, const std::string &b) {
  std::istringstream left(a), right(b);
  std::string line, other;
  double largest = 0;
  while (std::getline(left, line) && std::getline(right, other)) {
    std::istringstream words(line), others(other);
    std::string word, reference;
    double error = 0, scale = 0;
    while (words >> word && others >> reference) {
      const double x = strtod(word.c_str(), nullptr), y = strtod(reference.c_str(), nullptr);
      error = std::max(error, std::abs(x - y));
      scale = std::max(scale, std::abs(y));
    }
    if (scale > 1e-6) largest = std::max(largest, error / scale);
  }
  return largest;
}

static void check_case(const Case &c, int count) {
  Workers workers(c.name, count);
  workers.wait();
  const std::string alone = train_alone(c, count, count * c.devices);
  for (int w = 0; w < count; ++w) {
    assert_int_equal(workers.code(w), 0);
    const std::string text = workers.output(w);
    assert_string_equal(text.c_str(), workers.output(0).c_str());
    // Steps, rows and that replicas are identical.
    assert_string_equal(text.substr(0, text.find('\n')).c_str(), alone.substr(0, alone.find('\n')).c_str());
    const double error = difference(text, alone);
    if (c.level == Level::invariant) {
      assert_string_equal(text.c_str(), alone.c_str());
    } else if (!(error <= (c.network.dtype == DType::f64 ? 1e-8 : 2e-4))) {
      fail_msg("%s on %d workers: difference %g", c.name, count, error);
    }
  }
}

/// A process takes seconds to begin on a real GPU: there three workers train but the cases that are about their number.
static void check_cases(int count) {
  for (const Case &c : cases()) {
    if (count == 2 || !has_test_backend_libraries() || c.own_input || c.rows < c.batch * count) check_case(c, count);
  }
}

static void test_two_workers_equal_one_process(void **) { check_cases(2); }
static void test_three_workers_equal_one_process(void **) { check_cases(3); }

// ---- what goes wrong ----

static void test_a_killed_worker_is_named(void **) {
  Workers workers("kill", 3);
  workers.wait();
  assert_int_equal(workers.code(1), 128 + SIGKILL);
  for (const int w : {0, 2}) {
    assert_int_equal(workers.code(w), 0);
    assert_contains(workers.output(w).c_str(), "step 5");
    assert_contains(workers.output(w).c_str(), "worker 1 (127.0.0.1)");
  }
}

/// At whatever it was: between messages, in the middle of one.
static void test_a_worker_killed_anywhere_is_named(void **) {
  const int step = has_test_backend_libraries() ? 3 : 1;
  for (int i = 0; i < 8; i += step) {
    const auto begin = std::chrono::steady_clock::now();
    Workers workers("kill_after_" + std::to_string(5 + 17 * i), 3);
    workers.wait();
    for (const int w : {0, 2}) {
      assert_int_equal(workers.code(w), 0);
      assert_contains(workers.output(w).c_str(), "worker 1 (127.0.0.1)");
    }
    assert_true(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));  // the run's own limit is 60
  }
}

static void test_a_worker_that_hangs_is_named(void **) {
  Workers workers("hang", 2);
  workers.wait_without(1);  // which would look for the other for a minute
  assert_contains(workers.output(0).c_str(), "worker 1 (127.0.0.1)");
  assert_contains(workers.output(0).c_str(), "waited 4000 ms");
}

/// A worker is stopped, as a debugger does it, wherever it is just then. The others are to know at most a second after
/// the limit that was given; on a busy machine it takes longer.
static void check_that_a_frozen_worker_is_named(int frozen, int count, int64_t wait_ms) {
  Workers workers("freezes", count);
  for (int w = 0; w < count; ++w) {
    for (int i = 0; i < 4000 && workers.output(w) != "trains"; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    assert_string_equal(workers.output(w).c_str(), "trains");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
  const int64_t begin_ms = now_ms();
  workers.send(frozen, SIGSTOP);
  workers.wait_without(frozen);
  const int64_t ended_ms = now_ms() - begin_ms;
  if (ended_ms > kFreezeTimeoutMs + 8000) fail_msg("ended after %d ms", static_cast<int>(ended_ms));
  for (int w = 0; w < count; ++w) {
    if (w == frozen) continue;
    const std::string text = workers.output(w);
    assert_contains(text.c_str(), base::concat("worker ", frozen, " (127.0.0.1").c_str());
    const size_t at = text.find(" at ");
    assert_true(at != std::string::npos);
    const int64_t took_ms = strtoll(text.c_str() + at + 4, nullptr, 10) - begin_ms;
    if (took_ms > kFreezeTimeoutMs + 2500) fail_msg("after %d ms: %s", static_cast<int>(took_ms), text.c_str());
  }
}

static void test_a_frozen_worker_is_named_in_time(void **) {
  for (int i = 0; i < 3; ++i) {
    check_that_a_frozen_worker_is_named(0, 2 + i % 2, 50 + 7 * i);
    check_that_a_frozen_worker_is_named(1, 3, 50 + 11 * i);
  }
}

/// Somebody calls at the first ports that workers listen at as soon as they do, and is silent, talks or hangs up.
static std::vector<int> call_at_ports(Workers &workers, size_t count) {
  std::vector<int> callers;
  std::set<int> called;
  while (workers.any_runs() && called.size() < count) {
    for (const int port : workers.listening_ports()) {
      if (called.size() == count || !called.insert(port).second) continue;
      const int caller = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      (void)!connect(caller, reinterpret_cast<const sockaddr *>(&address), sizeof(address));
      const std::string_view talk = "GET / HTTP/1.1\r\nHost: somewhere.example\r\nAccept: */*\r\n\r\n";
      if (called.size() % 3 == 1) (void)!send(caller, talk.data(), talk.size(), MSG_NOSIGNAL);
      if (called.size() % 3 == 2) close(caller);
      if (called.size() % 3 != 2) callers.push_back(caller);
    }
  }
  return callers;
}

static void test_who_calls_at_all_ports_disturbs_nobody(void **) {
  for (int i = 0; i < 4; ++i) {
    Workers workers("sgd", 3);
    const std::vector<int> callers = call_at_ports(workers, 8);
    workers.wait();
    for (const int caller : callers)
      close(caller);
    for (int w = 0; w < 3; ++w) {
      assert_int_equal(workers.code(w), 0);
      assert_string_equal(workers.output(w).c_str(), workers.output(0).c_str());
    }
  }
}

static void test_a_stop_takes_effect_everywhere(void **) {
  for (const char *scenario : {"stop", "stop_between"}) {
    Workers workers(scenario, 3);
    workers.wait();
    for (int w = 0; w < 3; ++w) {
      assert_int_equal(workers.code(w), 0);
      assert_contains(workers.output(w).c_str(), "stopped");
      assert_string_equal(workers.output(w).c_str(), workers.output(0).c_str());
    }
  }
}

static void test_a_cancel_takes_effect_everywhere(void **) {
  Workers workers("cancel", 2);
  workers.wait();
  const std::string stopped = workers.output(0), cancelled = workers.output(1);
  assert_contains(stopped.c_str(), "stopped");
  assert_contains(cancelled.c_str(), "CANCELLED");
  const size_t end = stopped.find(' ', 5);
  assert_string_equal(stopped.substr(0, end).c_str(), cancelled.substr(0, end).c_str());
}

static void test_a_worker_that_gives_up_tells_why(void **) {
  Workers workers("leave", 2);
  workers.wait();
  assert_contains(workers.output(0).c_str(), "worker 1 (127.0.0.1)");
  assert_contains(workers.output(0).c_str(), "the disk is gone");
}

static void test_ways_to_add_up_that_workers_have_not_are_refused(void **) {
  const Model model = assert_ok_value(build_network({}));
  const auto opened = [&](distribute::AllReduceChoice choice) {
    TrainerOptions options;
    options.all_reduce = choice;
    const StrategyRef strategy = assert_ok_value(worker_strategy(
        {.scenario = "", .worker = 0, .workers = 1, .address = "127.0.0.1:1", .file = ""}, 2, false, 1000));
    return Trainer::open(model, strategy, options);
  };
  assert_error_contains(opened(distribute::AllReduceChoice::ring), "automatic, device or host");
  const bool are_real = has_test_backend_libraries() && gpus_of(getenv("TUTTI_TEST_BACKEND")) > 1;
  if (has_gpus() || are_real) return assert_ok(opened(distribute::AllReduceChoice::device).status());
  assert_error_contains(opened(distribute::AllReduceChoice::device),
                        "all_reduce asks for connected devices, but they cannot be connected");
}

/// All come to the same, and know of whom.
static void test_workers_whose_gpus_cannot_be_connected(void **) {
  if (!has_gpus()) return;  // others have nothing to connect
  const struct {
    const char *scenario, *expected;
    int code;
  } cases[] = {
      {"unconnected", "copies on the host, and messages between workers: worker 1 (127.0.0.1) reports: there is no", 0},
      {"unconnected_by_choice", "worker 1 (127.0.0.1) reports: all_reduce is host", 0},
      {"unconnected_on_demand", "asks for connected devices, but they cannot be connected", 1},
  };
  for (const auto &c : cases) {
    Workers workers(c.scenario, 2);
    workers.wait();
    for (int w = 0; w < 2; ++w) {
      assert_contains(workers.output(w).c_str(), c.expected);
      assert_contains(workers.output(w).c_str(), "worker 1 (127.0.0.1) reports");
      assert_int_equal(workers.code(w), c.code);
    }
  }
}

static void test_what_does_not_fit_is_refused(void **) {
  const struct {
    const char *scenario, *expected;
  } refused[] = {
      {"misfit", "worker 1 expects 3 workers, but worker 0 expects 2"},
      {"other_model", "worker 1"},
      {"other_seed", "worker 1 begins with different weights"},
      {"other_rate", "worker 1 begins with a different model or different run settings than worker 0: the first"},
      {"other_rate", "0.25"},
      {"other_settings", "the first difference is order: 1; on worker 0: order: 0"},
      {"other_rows", "worker 1 has read 21 rows for step 1, but worker 0 has read 20"},
  };
  for (const auto &c : refused) {
    Workers workers(c.scenario, 2);
    workers.wait();
    for (int w = 0; w < 2; ++w) {
      assert_int_equal(workers.code(w), 1);
      assert_contains(workers.output(w).c_str(), c.expected);
    }
  }
}

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::test_two_workers_equal_one_process),
    cmocka_unit_test(tutti::testing::test_three_workers_equal_one_process),
    cmocka_unit_test(tutti::testing::test_a_killed_worker_is_named),
    cmocka_unit_test(tutti::testing::test_a_worker_killed_anywhere_is_named),
    cmocka_unit_test(tutti::testing::test_a_worker_that_hangs_is_named),
    cmocka_unit_test(tutti::testing::test_a_frozen_worker_is_named_in_time),
    cmocka_unit_test(tutti::testing::test_who_calls_at_all_ports_disturbs_nobody),
    cmocka_unit_test(tutti::testing::test_a_stop_takes_effect_everywhere),
    cmocka_unit_test(tutti::testing::test_a_cancel_takes_effect_everywhere),
    cmocka_unit_test(tutti::testing::test_a_worker_that_gives_up_tells_why),
    cmocka_unit_test(tutti::testing::test_ways_to_add_up_that_workers_have_not_are_refused),
    cmocka_unit_test(tutti::testing::test_workers_whose_gpus_cannot_be_connected),
    cmocka_unit_test(tutti::testing::test_what_does_not_fit_is_refused),
};

int main(int count, char **arguments) {
  if (tutti::testing::is_worker(count)) return tutti::testing::run_as_worker(arguments);
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

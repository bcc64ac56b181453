// SPDX-License-Identifier: Apache-2.0
//
// Workers with one GPU each, whose steps are launched at once, with the operations between them and the update: the
// same bits as in pieces, one launch for a step, and whoever dies, hangs, gives up or has bad data in the middle of a
// launch is named in time, with the weights of one step on all others. Emulated GPUs, whose streams are strict about
// what is captured; on two real ones (TUTTI_TEST_REAL_GPUS) what needs no faults.
#include "distribute/train/recorded_steps.h"
#include "backend/gpu/emulator/nccl_folder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "base/temporary_directory.h"
#include "base/text.h"
#include "data/pipeline/pipeline.h"
#include "distribute/recorded_cases.h"
#include "distribute/training_case.h"
#include "distribute/worker_strategy.h"
#include "gpus_needed.h"
#include "runtime/backend_list.h"
#include "testing.h"
#include "worker_processes.h"

namespace tutti::testing {

namespace data = impl::data;
using distribute::RunReport;
using impl::backend::Level;

// ---- workers ----

constexpr int64_t kConnectMs = 60000;

/// Every number of the model to the last bit.
static Result<std::string> numbers_of(Trainer &trainer) {
  std::string text;
  for (const auto &variable : trainer.model().variables) {
    TUTTI_ASSIGN(const Tensor value, trainer.get_variable(variable.name));
    for (const double number : to_doubles(value)) {
      char word[32];
      snprintf(word, sizeof word, " %a", number);
      text += word;
    }
  }
  return text;
}

static std::string how_of(const Trainer &trainer) {
  const auto described = trainer.describe();
  return base::concat(described.find("steps")->string(), "; memory: ", described.find("registration")->string());
}

/// What the device was asked for in a run.
struct Asked {
  std::map<std::string, int64_t> counts;
  std::string describe() const {
    std::string text;
    for (const auto &[what, count] : counts)
      text += base::concat(" ", what, " ", count);
    return text;
  }
};

static Result<Asked> asked_for(Trainer &trainer, int64_t steps) {
  const TemporaryDirectory directory;
  const std::string path = directory / "journal";
  setenv("TUTTI_EMULATED_NCCL_JOURNAL", path.c_str(), 1);
  const Status ran = trainer.run(steps, nullptr).status();
  unsetenv("TUTTI_EMULATED_NCCL_JOURNAL");
  TUTTI_TRY(ran);
  TUTTI_ASSIGN(const std::string text, base::read_file(path));
  std::istringstream lines(text);
  Asked asked;
  std::string what;
  for (int64_t number = 0; lines >> what >> number;)
    ++asked.counts[what];
  return asked;
}

/// One GPU for each worker. Emulated ones are all the same machine's first.
static Result<StrategyRef> strategy_of(const WorkerCall &call, bool own_input) {
  if (!has_real_gpus()) return worker_strategy(call, 1, own_input, kConnectMs);
  TUTTI_ASSIGN(
      const impl::backend::BackendRef backend,
      impl::runtime::open_backend(getenv("TUTTI_TEST_BACKEND"), base::concat("{\"gpus\": [", call.worker, "]}"), {}));
  return worker_strategy_on(call, {{backend, 0}}, own_input, kConnectMs);
}

static Result<std::unique_ptr<Trainer>> open_trainer(const WorkerCall &call, const NetworkCase &network, bool own_input,
                                                     TrainerOptions options) {
  TUTTI_ASSIGN(const Model model, build_network(network));
  TUTTI_ASSIGN(const StrategyRef strategy, strategy_of(call, own_input));
  options.seed = 7;
  TUTTI_ASSIGN(auto trainer, Trainer::open(model, strategy, options));
  TUTTI_TRY(trainer->initialize());
  TUTTI_TRY(trainer->check_workers({"case"}, nullptr));
  return trainer;
}

/// Three passes, whose last batches are smaller.
static Result<std::string> train_case(const WorkerCall &call, const Case &c) {
  TrainerOptions options;
  options.accumulation = c.accumulation;
  options.bucket_bytes = c.bucket_bytes;
  options.collective_timeout_ms = 60000;
  TUTTI_ASSIGN(auto trainer, open_trainer(call, c.network, c.own_input, options));
  std::string losses;
  for (int pass = 0; pass < 3; ++pass) {
    const auto rows = c.own_input ? make_listed_rows(own_rows(call.worker), c.network.features, c.network.classes,
                                                     c.network.dtype, c.batch)
                                  : make_rows(c.rows, c.network.features, c.network.classes, c.network.dtype, c.batch);
    TUTTI_ASSIGN(auto iterator, rows->make_iterator({}));
    TUTTI_TRY(trainer->attach_input(std::move(iterator)));
    TUTTI_TRY(trainer->run(-1, nullptr).status());
    for (const double loss : trainer->loss_history())
      losses += base::concat(" ", loss);
  }
  TUTTI_ASSIGN(const std::string numbers, numbers_of(*trainer));
  return base::concat(how_of(*trainer), "\nstep ", trainer->step(), losses, numbers);
}

/// Batches of 8 rows without end; batch `bad` has a label that is none.
static Result<std::unique_ptr<data::Iterator>> endless_rows(const NetworkCase &network, int64_t bad) {
  const auto rows = make_rows(80000, network.features, network.classes, network.dtype, 8);
  data::TransformArguments arguments;
  arguments.map = [bad](const data::Element &input, data::Element &output) {
    output = input;
    if (input.lineage.index / 8 != bad) return Status();
    TUTTI_ASSIGN(output.components[1], output.components[1].clone());
    for (int64_t row = 0; row < output.components[1].elements(); ++row)
      output.components[1].mutable_data_as<int32_t>()[row] = 99;
    return Status();
  };
  data::Pipeline pipeline(rows);
  pipeline.apply("map_callback", {}, std::move(arguments));
  TUTTI_ASSIGN(const auto built, pipeline.build());
  return built->make_iterator({});
}

/// With small buckets, and nothing that goes wrong.
static Result<std::unique_ptr<Trainer>> open_endless(const WorkerCall &call, int32_t accumulation = 1) {
  TrainerOptions options;
  options.bucket_bytes = 100;
  options.accumulation = accumulation;
  const NetworkCase network;
  TUTTI_ASSIGN(auto trainer, open_trainer(call, network, false, options));
  TUTTI_ASSIGN(auto iterator, endless_rows(network, -1));
  TUTTI_TRY(trainer->attach_input(std::move(iterator)));
  return trainer;
}

static Result<std::string> count_launches(const WorkerCall &call, int32_t accumulation) {
  TUTTI_ASSIGN(const auto trainer, open_endless(call, accumulation));
  TUTTI_TRY(trainer->run(3, nullptr).status());
  TUTTI_ASSIGN(const Asked asked, asked_for(*trainer, 10));
  return base::concat("buckets ", trainer->describe().find("buckets")->dump(), asked.describe());
}

constexpr int64_t kShortMs = 2000, kLongMs = 60000;
constexpr int kStalled = 100;  // an operation of a step that is launched

/// "late_": worker 1 comes late to where updates wait, when the others have.
static std::string what_of(const std::string &scenario) {
  return scenario.starts_with("late_") ? scenario.substr(5) : scenario;
}

/// What holds worker 1 up in the middle of a launch.
static void order_fault(const std::string &scenario) {
  if (scenario.starts_with("late_")) {
    setenv("TUTTI_EMULATED_LATE_QUESTION", "20 4000", 1);
  } else if (scenario != "bad_data") {
    const char *const kind = scenario == "error" ? "error 1 " : "stall 1 ";
    setenv("TUTTI_EMULATED_NCCL", base::concat(kind, kStalled).c_str(), 1);
  }
}

/// What happens to worker 1 in the middle of a launch; then all say where they are and go on, if they can.
static Result<std::string> train_on(const WorkerCall &call) {
  const std::string scenario = what_of(call.scenario);
  const bool is_it = call.worker == 1;
  if (is_it) order_fault(call.scenario);
  TrainerOptions options;
  options.bucket_bytes = 100;
  options.collective_timeout_ms = scenario == "stall" || scenario == "stop" ? kShortMs : kLongMs;
  options.cancel_grace_ms = 500;
  const NetworkCase network;
  TUTTI_ASSIGN(auto trainer, open_trainer(call, network, false, options));
  TUTTI_ASSIGN(auto iterator, endless_rows(network, scenario == "bad_data" && is_it ? 20 : -1));
  TUTTI_TRY(trainer->attach_input(std::move(iterator)));
  const auto token = base::CancelToken::create();
  std::thread later;
  if (is_it && scenario != "stall" && scenario != "bad_data" && scenario != "error") {
    later = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(scenario == "stop" ? 400 : 1500));
      if (scenario == "kill") raise(SIGKILL);
      if (scenario == "stop") raise(SIGSTOP);
      if (scenario == "cancel") token->cancel();
      if (scenario == "leave") trainer->leave_workers(base::data_loss("the disk is gone"));
    });
  }
  const auto begin = std::chrono::steady_clock::now();
  const Status failed = trainer->run(200, token.get()).status();
  const auto took_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
  if (later.joinable()) later.join();
  TUTTI_ASSIGN(std::string text, numbers_of(*trainer));
  text = base::concat("step ", trainer->step(), text, "\ntook ", took_ms, " ms\n", failed.to_string());
  if (scenario != "stall" && scenario != "cancel") return text;
  unsetenv("TUTTI_EMULATED_NCCL");
  unsetenv("TUTTI_EMULATED_LATE_QUESTION");
  const int64_t left = 60 - trainer->step();
  TUTTI_TRY(trainer->run(left, nullptr).status());
  TUTTI_ASSIGN(const std::string numbers, numbers_of(*trainer));
  return base::concat(text, "\n", how_of(*trainer), "\nend ", trainer->step(), numbers);
}

/// What a worker tells of the times of steps whose operations between workers are slow on worker 1.
static Result<std::string> train_slowly(const WorkerCall &call) {
  setenv("TUTTI_EMULATED_NCCL", "slow 1 5", 1);
  TUTTI_ASSIGN(const auto trainer, open_endless(call));
  TUTTI_TRY(trainer->run(3, nullptr).status());  // programs are made, and the step is recorded
  TUTTI_ASSIGN(const RunReport report, trainer->run(40, nullptr));
  const auto shares = distribute::shares_of(report.times, {}, call.workers);
  return base::concat(how_of(*trainer), "\ncounted ", shares.steps, " communication ", shares.communication, "\n",
                      shares.warning());
}

/// As train_undisturbed(), while another thread of the process takes and frees memory of the GPU, for which the driver
/// waits in both.
static Result<std::string> train_beside_others(const WorkerCall &call) {
  setenv("TUTTI_EMULATED_DRIVER", "waits", 1);
  TUTTI_ASSIGN(const auto trainer, open_endless(call));
  TUTTI_ASSIGN(const impl::backend::BackendRef backend,
               impl::runtime::open_backend(getenv("TUTTI_TEST_BACKEND"), "{}", {}));
  TUTTI_ASSIGN(const impl::backend::DeviceRef device, backend->open_device(0));
  std::atomic<bool> is_over{false};
  Status taken;
  int64_t times = 0;
  std::thread other([&] {
    for (; !is_over.load() && taken.ok(); ++times)
      taken = device->allocate(4096).status();
  });
  const Status ran = trainer->run(60, nullptr).status();
  is_over.store(true);
  other.join();
  TUTTI_TRY(ran);
  TUTTI_TRY(taken);
  if (times < 20) return base::internal_error("memory was taken ", times, " times");
  TUTTI_ASSIGN(const std::string numbers, numbers_of(*trainer));
  return base::concat(how_of(*trainer), "\nend ", trainer->step(), numbers);
}

/// As train_on(), if nothing happens.
static Result<std::string> train_undisturbed(const WorkerCall &call) {
  TUTTI_ASSIGN(const auto trainer, open_endless(call));
  TUTTI_TRY(trainer->run(60, nullptr).status());
  TUTTI_ASSIGN(const std::string numbers, numbers_of(*trainer));
  return base::concat("end ", trainer->step(), numbers);
}

static Result<std::string> run_scenario(const WorkerCall &call) {
  WorkerCall told = call;
  const size_t colon = call.scenario.find(':');
  const std::string fault = colon == std::string::npos ? "" : call.scenario.substr(colon + 1);
  told.scenario = call.scenario.substr(0, colon);
  if (call.worker == 1 && fault == "declined") setenv("TUTTI_RECORD_STEPS", "0", 1);
  if (call.worker == 1 && fault != "declined" && !fault.empty()) setenv("TUTTI_EMULATED_NCCL", fault.c_str(), 1);
  const auto found = std::ranges::find_if(cases(), [&](const Case &known) { return told.scenario == known.name; });
  if (found != cases().end()) return train_case(told, *found);
  if (told.scenario == "launches") return count_launches(told, 1);
  if (told.scenario == "launches_of_three") return count_launches(told, 3);
  if (told.scenario == "beside") return train_beside_others(told);
  if (told.scenario == "slow") return train_slowly(told);
  return told.scenario == "undisturbed" ? train_undisturbed(told) : train_on(told);
}

static int run_as_worker(char **arguments) {
  const WorkerCall call = worker_call(arguments);
  const Result<std::string> text = run_scenario(call);
  std::ofstream(call.file) << (text.ok() ? *text : text.status().to_string());
  if (!text.ok()) fprintf(stderr, "worker %d: %s\n", call.worker, text.status().to_string().c_str());
  return text.ok() ? 0 : 1;
}

// ---- what they come to ----

static std::vector<std::string> outputs_of(const std::string &scenario, int count) {
  Workers workers(scenario, count);
  workers.wait();
  std::vector<std::string> outputs;
  for (int w = 0; w < count; ++w) {
    if (workers.code(w) != 0) fail_msg("%s: worker %d ends with %d", scenario.c_str(), w, workers.code(w));
    outputs.push_back(workers.output(w));
  }
  return outputs;
}

static std::vector<std::string> outputs_in_pieces(const std::string &scenario, int count) {
  setenv("TUTTI_RECORD_STEPS", "0", 1);
  std::vector<std::string> outputs = outputs_of(scenario, count);
  unsetenv("TUTTI_RECORD_STEPS");
  return outputs;
}

static std::string first_line(const std::string &text) { return text.substr(0, text.find('\n')); }
static std::string rest(const std::string &text) { return text.substr(text.find('\n') + 1); }

/// Bit by bit. Libraries of real GPUs are tried, so two processes may add in different orders.
static void check_same(const std::string &text, const std::string &reference) {
  if (!has_real_gpus()) return assert_string_equal(text.c_str(), reference.c_str());
  std::istringstream words(text), others(reference);
  std::string word, other;
  while (words >> word && others >> other) {
    char *end = nullptr;
    const double x = strtod(word.c_str(), &end), y = strtod(other.c_str(), nullptr);
    if (*end != '\0') assert_string_equal(word.c_str(), other.c_str());
    if (!(std::abs(x - y) <= 1e-3 * std::max(1.0, std::abs(y)))) fail_msg("%s and not %s", word.c_str(), other.c_str());
  }
  assert_true(words.eof() && (others >> other).eof());
}

static void check_case(const Case &c, int count) {
  const std::vector<std::string> recorded = outputs_of(c.name, count), pieces = outputs_in_pieces(c.name, count);
  for (size_t w = 0; w < recorded.size(); ++w) {
    assert_contains(first_line(pieces[w]).c_str(), "in pieces: ");
    const bool is_one_program = count == 1 && c.accumulation == 1 && c.network.clip == 0;
    assert_contains(first_line(recorded[w]).c_str(), is_one_program
                                                         ? "in pieces: a step is one program, launched at once"
                                                         : "launched at once, updates included: ");
    check_same(rest(recorded[w]), rest(pieces[w]));
    assert_string_equal(rest(recorded[w]).c_str(), rest(recorded[0]).c_str());
  }
}

static void check_cases(int count) {
  for (const Case &c : cases())
    check_case(c, count);
}

static void test_one_worker_gives_the_same_bits(void **) { check_cases(1); }
static void test_two_workers_give_the_same_bits(void **) { check_cases(2); }
static void test_three_workers_give_the_same_bits(void **) { check_cases(3); }

/// Batches of two sizes, which all workers have alike: of each one recording.
static void test_each_combination_is_recorded_once(void **) {
  for (const std::string &text : outputs_of("plain", 2))
    assert_contains(first_line(text).c_str(), "included: 2 recorded");
}

static void check_launches(const char *scenario, int count, int64_t micro_batches) {
  for (const std::string &text : outputs_of(scenario, count)) {
    std::istringstream words(text);
    std::map<std::string, int64_t> counts;
    std::string what;
    for (int64_t number = 0; words >> what >> number;)
      counts[what] = number;
    assert_true(count == 1 || counts["buckets"] > 2);
    assert_int_equal(counts["graph_launch"], 10);
    assert_int_equal(counts["all_reduce"], count == 1 ? 0 : 10 * counts["buckets"]);
    assert_int_equal(counts["captured"], 0);
  }
  for (const std::string &text : outputs_in_pieces(scenario, count)) {
    if (count > 1 || micro_batches > 1) assert_null(strstr(text.c_str(), "graph_launch 10 "));
  }
}

static void test_a_step_is_one_launch(void **) {
  check_launches("launches", 2, 1);
  check_launches("launches_of_three", 2, 3);
  check_launches("launches", 1, 1);
  check_launches("launches_of_three", 1, 3);
}

static void test_others_may_wait_for_the_gpu(void **) {
  const std::string undisturbed = outputs_of("undisturbed", 2)[0];
  for (const std::string &text : outputs_of("beside", 2)) {
    assert_contains(first_line(text).c_str(), "launched at once");
    assert_string_equal(rest(text).c_str(), undisturbed.c_str());
  }
}

/// Of steps that are launched at once the library registers what nobody has.
static void test_what_is_registered_is_told(void **) {
  const char *const by_itself = "does it itself";
  for (const std::string &text : outputs_of("plain", 2)) {
    assert_contains(first_line(text).c_str(), "included: 2 recorded; memory: registered, without windows: ");
    assert_null(strstr(text.c_str(), by_itself));
  }
  setenv("TUTTI_EMULATED_NCCL", "unregistered", 1);
  for (const std::string &text : outputs_of("plain", 2)) {
    assert_contains(first_line(text).c_str(), "included: 2 recorded; memory: not registered: ");
    assert_contains(first_line(text).c_str(), by_itself);
  }
  for (const std::string &text : outputs_in_pieces("plain", 2)) {
    assert_contains(first_line(text).c_str(), "memory: not registered: ");
    assert_null(strstr(text.c_str(), by_itself));
  }
  unsetenv("TUTTI_EMULATED_NCCL");
}

struct Told {
  long long counted = 0;
  double communication = 0;
};

static Told told_of_times(const std::string &text) {
  Told told;
  assert_int_equal(sscanf(rest(text).c_str(), "counted %lld communication %lf", &told.counted, &told.communication), 2);
  assert_contains(text.c_str(), "2 replicas train at ");
  assert_contains(text.c_str(), " % of their time is spent on communication");
  return told;
}

static void test_waits_in_a_launch_are_told(void **) {
  const std::vector<std::string> pieces = outputs_in_pieces("slow", 2), recorded = outputs_of("slow", 2);
  for (size_t w = 0; w < 2; ++w) {
    const Told in_pieces = told_of_times(pieces[w]), at_once = told_of_times(recorded[w]);
    assert_true(in_pieces.communication > 0.5);
    if (std::abs(in_pieces.communication - at_once.communication) > 0.2)
      fail_msg("in pieces: %s\nat once: %s", pieces[w].c_str(), recorded[w].c_str());
    assert_int_equal(at_once.counted, 40);
    assert_contains(first_line(recorded[w]).c_str(), "included: 1 recorded");
  }
}

static void test_what_is_not_captured_runs_in_pieces(void **) {
  const struct {
    const char *fault, *first, *second;
  } all[] = {
      {"early", "included: 0 recorded", "in pieces: this emulated NCCL is not captured"},
      {"declined", "included: 0 recorded", "in pieces: TUTTI_RECORD_STEPS is 0"},
      {"uncapturable 1 0", "in pieces: another worker could not record a step", "in pieces: reducing over devices"},
      {"uncapturable 1 2", "in pieces: another worker could not record a step", "in pieces: reducing over devices"},
  };
  const std::vector<std::string> pieces = outputs_in_pieces("normalised", 2);
  for (const auto &c : all) {
    if (std::string(c.fault) == "early") continue;  // workers of different libraries are not connected
    const std::vector<std::string> outputs = outputs_of(base::concat("normalised:", c.fault), 2);
    assert_contains(first_line(outputs[0]).c_str(), c.first);
    assert_contains(first_line(outputs[1]).c_str(), c.second);
    for (const std::string &text : outputs)
      assert_string_equal(rest(text).c_str(), rest(pieces[0]).c_str());
  }
  setenv("TUTTI_EMULATED_NCCL", "early", 1);
  for (const std::string &text : outputs_of("normalised", 2)) {
    assert_contains(first_line(text).c_str(), "in pieces: this emulated NCCL is not captured");
    assert_string_equal(rest(text).c_str(), rest(pieces[0]).c_str());
  }
  unsetenv("TUTTI_EMULATED_NCCL");
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  for (const std::string &text : outputs_of("normalised", 2)) {
    assert_contains(first_line(text).c_str(), "in pieces: CUDA_LAUNCH_BLOCKING or HIP_LAUNCH_BLOCKING is set");
    assert_string_equal(rest(text).c_str(), rest(pieces[0]).c_str());
  }
  unsetenv("CUDA_LAUNCH_BLOCKING");
  setenv("TUTTI_EMULATED_UNTIMED_GRAPHS", "1", 1);
  for (const std::string &text : outputs_of("normalised", 2)) {
    assert_contains(first_line(text).c_str(), "in pieces: events of recordings do not support timing");
    assert_string_equal(rest(text).c_str(), rest(pieces[0]).c_str());
  }
  unsetenv("TUTTI_EMULATED_UNTIMED_GRAPHS");
}

/// Workers of which number 1 does something: the others name it, with these words, in time, and are at one step.
static void check_told(const char *scenario, int count, bool is_heard, int64_t most_ms,
                       const std::vector<const char *> &expected) {
  Workers workers(scenario, count);
  if (is_heard) workers.wait();
  if (!is_heard) workers.wait_without(1);
  for (int w = 0; w < count; ++w) {
    if (w == 1 && !is_heard) continue;
    const std::string text = workers.output(w);
    if (workers.code(w) != 0) fail_msg("%s: worker %d: %s", scenario, w, text.c_str());
    for (const char *word : expected)
      assert_contains(text.c_str(), word);
    assert_string_equal(first_line(text).c_str(), first_line(workers.output(0)).c_str());
    long long took_ms = -1;
    assert_int_equal(sscanf(rest(text).c_str(), "took %lld ms", &took_ms), 1);
    if (took_ms > most_ms) fail_msg("%s: worker %d takes too long: %s", scenario, w, text.c_str());
  }
}

static void test_a_worker_that_dies_in_a_launch_is_named(void **) {
  check_told("kill", 3, false, 12000, {"worker 1 (127.0.0.1)"});
}

static void test_a_worker_that_hangs_in_a_launch_is_named(void **) {
  check_told("stop", 3, false, 12000, {"worker 1 (127.0.0.1)"});
}

static void test_a_worker_that_gives_up_in_a_launch_is_named(void **) {
  check_told("leave", 3, true, 12000, {"the disk is gone"});
  check_told("error", 3, true, 12000, {"NCCL says remote process exited"});
}

static void test_bad_data_in_a_launch_are_named(void **) { check_told("bad_data", 3, true, 12000, {"step 20", "99"}); }

/// Between the gradients and the update, where one has all of them and another not yet.
static void test_nobody_updates_where_a_worker_is_missing(void **) {
  check_told("late_kill", 3, false, 12000, {"worker 1 (127.0.0.1)"});
  check_told("late_stop", 3, false, 12000, {"worker 1 (127.0.0.1)"});
  check_told("late_leave", 3, true, 12000, {"the disk is gone"});
}

/// Who waited too long, or is cancelled, goes on where it was.
static void test_workers_go_on_after_a_launch_was_ended(void **) {
  const std::string undisturbed = outputs_of("undisturbed", 2)[0];
  const struct {
    const char *scenario, *expected;
  } all[] = {{"stall", "waited 2000 ms in all_reduce 'recorded operations' for the devices"},
             {"cancel", "CANCELLED"},
             {"late_stall", "waited 2000 ms"},
             {"late_cancel", "CANCELLED"}};
  for (const auto &c : all) {
    for (const std::string &text : outputs_of(c.scenario, 2)) {
      assert_contains(text.c_str(), c.expected);
      assert_contains(text.c_str(), "launched at once");
      assert_string_equal(text.substr(text.find("\nend ") + 1).c_str(), undisturbed.c_str());
    }
  }
}

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::test_one_worker_gives_the_same_bits),
    cmocka_unit_test(tutti::testing::test_two_workers_give_the_same_bits),
    cmocka_unit_test(tutti::testing::test_three_workers_give_the_same_bits),
    cmocka_unit_test(tutti::testing::test_each_combination_is_recorded_once),
    cmocka_unit_test(tutti::testing::test_a_step_is_one_launch),
    cmocka_unit_test(tutti::testing::test_others_may_wait_for_the_gpu),
    cmocka_unit_test(tutti::testing::test_what_is_registered_is_told),
    cmocka_unit_test(tutti::testing::test_waits_in_a_launch_are_told),
    cmocka_unit_test(tutti::testing::test_what_is_not_captured_runs_in_pieces),
    cmocka_unit_test(tutti::testing::test_a_worker_that_dies_in_a_launch_is_named),
    cmocka_unit_test(tutti::testing::test_a_worker_that_hangs_in_a_launch_is_named),
    cmocka_unit_test(tutti::testing::test_a_worker_that_gives_up_in_a_launch_is_named),
    cmocka_unit_test(tutti::testing::test_bad_data_in_a_launch_are_named),
    cmocka_unit_test(tutti::testing::test_nobody_updates_where_a_worker_is_missing),
    cmocka_unit_test(tutti::testing::test_workers_go_on_after_a_launch_was_ended),
};

static const struct CMUnitTest tests_of_one_real_gpu[] = {
    cmocka_unit_test(tutti::testing::test_one_worker_gives_the_same_bits),
};

static const struct CMUnitTest tests_of_two_real_gpus[] = {
    cmocka_unit_test(tutti::testing::test_two_workers_give_the_same_bits),
    cmocka_unit_test(tutti::testing::test_each_combination_is_recorded_once),
};

int main(int count, char **arguments) {
  if (tutti::testing::is_worker(count)) return tutti::testing::run_as_worker(arguments);
  if (tutti::testing::has_real_gpus()) {
    const int32_t gpus = tutti::testing::gpus_of(getenv("TUTTI_TEST_BACKEND"));
    if (gpus == 0) return 77;
    const int failed = cmocka_run_group_tests(tests_of_one_real_gpu, nullptr, nullptr);
    if (gpus == 1) return failed;
    return failed + cmocka_run_group_tests(tests_of_two_real_gpus, nullptr, nullptr);
  }
  const tutti::testing::NcclFolder folder;
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: Apache-2.0
//
// Kills a training process with SIGKILL at random instants and starts it again until it is done: the final checkpoint
// must have the bytes of a run that nobody disturbed. Alone, and as one of two workers: then the victim is drawn, and
// the other one must end by itself. The input is shuffled, mapped with random numbers and read ahead: most kills fall
// into the middle of a pass. Its summaries must be readable after each kill, and have each step once, as in that run.
//
//   kill_test [KILLS [SEED [WORKERS]]]        (default 5 kills of one process; of two, TUTTI_TEST_ENGINE is the path of
//                                              what connects them)
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "base/trace.h"
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "data/graph/backend_graph_runner.h"
#include "distribute/strategy/multi_worker_strategy.h"
#include "estimator/small_training.h"
#include "free_port.h"
#include "monitor/event_decoder.h"
#include "runtime/engine_list.h"
#include "testing.h"

extern char **environ;

using namespace tutti::impl;
using namespace tutti::impl::estimator;
using checkpoint::TemporaryDirectory;

namespace {

constexpr int64_t kRows = 60, kBatch = 7, kPasses = 4, kSteps = 36;
// For the other workers to come, who may have been killed before, and for whoever lost another to say so.
constexpr int64_t kMeetMs = 5000, kEndMs = 30000;

int64_t kills_wanted = 5;
uint32_t seed = 1;

// Was the child killed after it was done, before it could say so? The same call again would ask for more passes.
bool is_done(const std::string &model_dir) {
  const auto newest = checkpoint::read_newest_checkpoint(model_dir, {}, base::Logger());
  return newest.ok() && newest->manifest.step == kSteps &&
         base::JsonReader(newest->manifest.run, "run").get_boolean("finished", false).value_or(false);
}

// ---- what a child does ----

// How it ends.
constexpr int kDone = 0, kLostAnother = 1, kWrong = 2;

// The features with noise of their own in each pass.
data::DatasetRef noisy_dataset() {
  graph::GraphBuilder b;
  const graph::Dims rows{graph::GraphBuilder::batch(), 4};
  const graph::ValueId x = b.input("x", tensor::DType::f32, rows);
  const graph::ValueId noise =
      b.op("random_uniform", std::initializer_list<graph::ValueId>{}, {{"dims", rows}, {"low", -0.1}, {"high", 0.1}});
  b.set_result("x", b.add(x, noise));
  b.set_result("y", b.input("y", tensor::DType::f32, {graph::GraphBuilder::batch(), 1}));
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(assert_ok_value(b.finish_graph()));
  arguments.labels = {"y"};
  data::Pipeline pipeline(small_dataset(kRows, 1));
  pipeline.apply("unbatch").shuffle(kRows).apply("map", {}, std::move(arguments)).batch(kBatch).apply("prefetch");
  return assert_ok_value(pipeline.build());
}

// The strategy of worker `worker` of so many, which meet at the address; alone, two devices.
base::Result<distribute::StrategyRef> strategy_of(int worker, int workers, const std::string &address) {
  if (workers == 1) return replicas_under_test(2);
  TUTTI_ASSIGN(const distribute::StrategyRef one, replicas_under_test(1));
  TUTTI_ASSIGN(distribute::Cluster cluster, distribute::Cluster::with_leader(address, workers, worker));
  distribute::MultiWorkerOptions options;
  options.open_engine = [] { return runtime::open_engine(getenv("TUTTI_TEST_ENGINE")); };
  options.build_id = backend::build_id();
  options.connect_timeout_ms = kMeetMs;
  return distribute::multi_worker(std::move(cluster), one->devices(), std::move(options));
}

int train_in(const std::string &model_dir, int worker, int workers, const std::string &address) {
  if (is_done(model_dir)) return kDone;
  RunConfig config;
  config.model_dir = model_dir;
  config.save_checkpoints_steps = 2;
  config.keep_checkpoint_max = 3;
  config.save_summary_steps = 1;
  config.summary_flush_secs = 0;
  config.level = backend::Level::repeatable;
  const backend::BackendRef host = assert_ok_value(runtime::open_backend("reference", "{}", {}));
  Environment environment;
  environment.graphs = data::BackendGraphRunner::create(assert_ok_value(host->open_device(0)));
  const auto estimator =
      Estimator::create(small_model_function(), config, assert_ok_value(strategy_of(worker, workers, address)),
                        environment, hooks::standing_hooks(config, nullptr));
  if (!estimator.ok()) return kWrong;
  TrainRequest request;
  request.dataset = noisy_dataset();
  request.epochs = kPasses;
  const auto trained = (*estimator)->train(request);
  if (trained.ok()) return trained->step == kSteps ? kDone : kWrong;
  const bool is_of_another =
      trained.code() == base::Code::unavailable || trained.code() == base::Code::deadline_exceeded;
  fprintf(stderr, "worker %d: %s\n", worker, trained.status().to_string().c_str());
  return workers > 1 && is_of_another ? kLostAnother : kWrong;
}

// ---- children ----

class Children {
 public:
  // One process for each worker, all of which train in the directory.
  Children(const std::string &model_dir, int workers) : pids_(static_cast<size_t>(workers)) {
    const std::string address = "127.0.0.1:" + std::to_string(free_port());
    for (int worker = 0; worker < workers; ++worker) {
      std::string words[] = {"/proc/self/exe",        "--train", model_dir, std::to_string(worker),
                             std::to_string(workers), address};
      char *arguments[std::size(words) + 1] = {};
      for (size_t i = 0; i < std::size(words); ++i)
        arguments[i] = words[i].data();
      assert_int_equal(
          posix_spawn(&pids_[static_cast<size_t>(worker)], words[0].c_str(), nullptr, nullptr, arguments, environ), 0);
    }
  }
  void kill_one(size_t worker) { kill(pids_[worker], SIGKILL); }
  // How worker `worker` ended: its exit code, -1 when it was killed. Fails when it runs on.
  int wait_for(size_t worker) {
    int status = 0;
    for (int64_t waited = 0; waitpid(pids_[worker], &status, WNOHANG) == 0; ++waited) {
      if (waited == kEndMs) kill(pids_[worker], SIGKILL);
      assert_true(waited <= kEndMs);
      usleep(1000);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::vector<pid_t> pids_;
};

enum class End { done, killed, failed };

// Runs all workers and kills `victim` after so long; none when that is negative.
End run_children(const std::string &model_dir, int workers, size_t victim, int64_t after_us) {
  Children children(model_dir, workers);
  if (after_us >= 0) {
    usleep(static_cast<useconds_t>(after_us));
    children.kill_one(victim);
  }
  const int of_victim = children.wait_for(victim);
  bool all_done = of_victim == kDone;
  for (size_t worker = 0; worker < static_cast<size_t>(workers); ++worker) {
    if (worker == victim) continue;
    const int code = children.wait_for(worker);
    // Beside one that was killed it may have been done, or says that the other has gone.
    if (code != kDone && (code != kLostAnother || of_victim != -1)) {
      print_error("worker %zu ended with %d, worker %zu with %d, to be killed after %lld us\n", worker, code, victim,
                  of_victim, static_cast<long long>(after_us));
      return End::failed;
    }
    all_done &= code == kDone;
  }
  if (all_done) return End::done;
  return of_victim == -1 ? End::killed : End::failed;
}

void assert_same_files(const std::string &a, const std::string &b) {
  const auto names = assert_ok_value(base::list_directory(a));
  assert_true(names == assert_ok_value(base::list_directory(b)));
  for (const std::string &name : names) {
    const std::string left = assert_ok_value(base::read_file(a + "/" + name));
    const std::string right = assert_ok_value(base::read_file(b + "/" + name));
    if (left != right) print_error("%s differs\n", name.c_str());
    assert_true(left == right);
  }
}

// Nothing half-done is left, and every name is a good checkpoint.
void check_directory(const std::string &model_dir) {
  // One killed after its last checkpoint may have left what that replaced, which the next training would remove.
  assert_ok(checkpoint::remove_unfinished(model_dir));
  for (const std::string &name : assert_ok_value(base::list_directory(model_dir))) {
    if (name == "training.lock" || name == "run.jsonl" || name.starts_with("events.out.tfevents.")) continue;
    assert_ok(checkpoint::read_checkpoint(model_dir + "/" + name, {}));
  }
}

// The losses that TensorBoard shows.
std::vector<std::pair<int64_t, double>> losses_in(const std::string &model_dir) {
  using namespace tutti::testing;
  return curve(shown_events(decode_event_folder(model_dir, Tail::may_be_cut)), "loss");
}

void kill_and_go_on(int workers) {
  TemporaryDirectory whole;
  const int64_t began = base::now_ns();
  assert_true(run_children(whole.path(), workers, 0, -1) == End::done);
  const auto whole_us = static_cast<uint64_t>((base::now_ns() - began) / 1000);
  const std::string last = "/checkpoint-" + std::to_string(kSteps);
  const auto losses = losses_in(whole.path());
  assert_int_equal(losses.size(), kSteps);
  std::mt19937 random(seed);
  int64_t kills = 0, finished = 0;
  // A machine that is faster now than it was may finish before each kill: bounded.
  for (int64_t attempt = 0; kills < kills_wanted && attempt < 20 * kills_wanted; ++finished) {
    TemporaryDirectory split;
    End end = End::killed;
    for (; end == End::killed && kills < kills_wanted; ++attempt) {
      const size_t victim = random() % static_cast<size_t>(workers);
      end = run_children(split.path(), workers, victim, static_cast<int64_t>(random() % (whole_us + 1)));
      if (end == End::killed) ++kills;
      (void)losses_in(split.path());
    }
    if (end == End::killed) end = run_children(split.path(), workers, 0, -1);
    assert_true(end == End::done);
    assert_same_files(whole.path() + last, split.path() + last);
    check_directory(split.path());
    assert_true(losses_in(split.path()) == losses);
  }
  assert_true(kills > 0);
  print_message("%d workers: %d kills, %d runs, all with the same final bytes\n", workers, static_cast<int>(kills),
                static_cast<int>(finished));
}

void test_one_process(void **) { kill_and_go_on(1); }

void test_two_workers(void **) { kill_and_go_on(2); }

}  // namespace

int main(int count, char **arguments) {
  if (count == 6 && std::string(arguments[1]) == "--train")
    return train_in(arguments[2], atoi(arguments[3]), atoi(arguments[4]), arguments[5]);
  if (count > 1) kills_wanted = atoll(arguments[1]);
  if (count > 2) seed = static_cast<uint32_t>(atoll(arguments[2]));
  const int workers = count > 3 ? atoi(arguments[3]) : 1;
  (void)replicas_under_test(1);  // where there is no such device this is skipped, not only in the child
  const CMUnitTest alone[] = {cmocka_unit_test(test_one_process)};
  const CMUnitTest in_pairs[] = {cmocka_unit_test(test_two_workers)};
  return workers == 2 ? cmocka_run_group_tests(in_pairs, nullptr, nullptr)
                      : cmocka_run_group_tests(alone, nullptr, nullptr);
}

// SPDX-License-Identifier: Apache-2.0
//
// Kills a training process with SIGKILL at random instants and starts it again until it is done: the final checkpoint
// must have the bytes of a run that nobody disturbed.
//
//   kill_test [KILLS [SEED]]        (default 5 kills)
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <string>

#include "base/trace.h"
#include "checkpoint/checkpoint_testing.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "estimator/small_training.h"
#include "testing.h"

extern char **environ;

using namespace tutti::impl;
using namespace tutti::impl::estimator;
using checkpoint::TemporaryDirectory;

namespace {

int64_t kills_wanted = 5;
uint32_t seed = 1;

// Was the child killed after it was done, before it could say so? The same call again would ask for more passes.
bool is_done(const std::string &model_dir) {
  const auto newest = checkpoint::read_newest_checkpoint(model_dir, {}, base::Logger());
  return newest.ok() && newest->manifest.step == 36 &&
         base::JsonReader(newest->manifest.run, "run").get_boolean("finished", false).value_or(false);
}

// What the child does.
int train_in(const std::string &model_dir) {
  if (is_done(model_dir)) return 0;
  RunConfig config;
  config.model_dir = model_dir;
  config.save_checkpoints_steps = 2;
  config.keep_checkpoint_max = 3;
  config.level = backend::Level::repeatable;
  TrainRequest request;
  request.dataset = small_dataset(60, 7, true);
  request.epochs = 4;
  const auto estimator = small_estimator(2, config);
  if (!estimator.ok()) return 2;
  const auto trained = (*estimator)->train(request);
  if (!trained.ok()) fprintf(stderr, "%s\n", trained.status().to_string().c_str());
  return trained.ok() && trained->step == 36 ? 0 : 1;
}

// Runs the child; kills it after `after_us` microseconds unless that is negative. The exit code, or -1 when killed.
int run_child(const std::string &model_dir, int64_t after_us) {
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0) return 3;
  program[length] = '\0';
  std::string flag = "--train", directory = model_dir;
  char *arguments[] = {program, flag.data(), directory.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program, nullptr, nullptr, arguments, environ) != 0) return 3;
  if (after_us >= 0) {
    usleep(static_cast<useconds_t>(after_us));
    kill(child, SIGKILL);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 3;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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

void test_kill_and_go_on(void **) {
  TemporaryDirectory whole;
  const int64_t began = base::now_ns();
  assert_int_equal(run_child(whole.path(), -1), 0);
  const int64_t whole_us = (base::now_ns() - began) / 1000;
  std::mt19937 random(seed);
  int64_t kills = 0, finished = 0;
  // A machine that is faster now than it was may finish before each kill: bounded.
  for (int64_t attempt = 0; kills < kills_wanted && attempt < 20 * kills_wanted; ++finished) {
    TemporaryDirectory split;
    int code = -1;
    for (; code == -1 && kills < kills_wanted; ++attempt) {
      code = run_child(split.path(), static_cast<int64_t>(random() % static_cast<uint64_t>(whole_us + 1)));
      if (code == -1) ++kills;
    }
    if (code == -1) code = run_child(split.path(), -1);
    assert_int_equal(code, 0);
    assert_same_files(whole.path() + "/checkpoint-36", split.path() + "/checkpoint-36");
    // One killed after its last checkpoint may have left what that replaced, which the next training would remove.
    assert_ok(checkpoint::remove_unfinished(split.path()));
    // Nothing half-done is left, and every name is a good checkpoint.
    for (const std::string &name : assert_ok_value(base::list_directory(split.path()))) {
      if (name == "training.lock") continue;
      assert_ok(checkpoint::read_checkpoint(split.path() + "/" + name, {}));
    }
  }
  assert_true(kills > 0);
  print_message("%d kills, %d runs, all with the same final bytes\n", static_cast<int>(kills),
                static_cast<int>(finished));
}

}  // namespace

int main(int argument_count, char **arguments) {
  if (argument_count == 3 && std::string(arguments[1]) == "--train") return train_in(arguments[2]);
  if (argument_count > 1) kills_wanted = atoll(arguments[1]);
  if (argument_count > 2) seed = static_cast<uint32_t>(atoll(arguments[2]));
  (void)replicas_under_test(1);  // where there is no such device this is skipped, not only in the child
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_kill_and_go_on),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

/* SPDX-License-Identifier: Apache-2.0
 * Trainings of several workers that are killed and continue on another number of workers. */
#include <signal.h>
#include <stdio.h>

#include "worker_training.h"

static const int changes[][2] = {{1, 2}, {2, 1}, {2, 3}};
enum { CHANGES = sizeof changes / sizeof *changes };

static void kill_and_go_on(const char *kill_scenario, const char *go_on_scenario, const char *directory, int before,
                           int after, struct trained *all) {
  int codes[MOST_WORKERS];
  run_trainings(kill_scenario, directory, before, codes, all);
  assert_int_equal(codes[before - 1], 128 + SIGKILL);
  run_well(go_on_scenario, directory, after, all);
}

static void test_a_killed_training_continues_on_another_number_of_workers(void **state) {
  (void)state;
  static const char *const scenarios[][3] = {{"whole:memory:kill", "whole:memory:go_on", "memory"},
                                             {"whole:files:kill", "whole:files:go_on", "files"},
                                             {"data:memory:kill", "data:memory:go_on", "memory"},
                                             {"data:files:kill", "data:files:go_on", "files"}};
  for (int i = 0; i < 4; i++) {
    for (int c = 0; c < CHANGES; c++) {
      char directory[64], before[24] = "", after[24] = "", line[2][100];
      make_files(directory);
      static struct trained all[MOST_WORKERS], alone;
      train_alone(2, scenarios[i][2], "train", directory, "", &alone);
      kill_and_go_on(scenarios[i][0], scenarios[i][1], directory, changes[c][0], changes[c][1], all);
      const int *change = changes[c];
      if (change[0] > 1) snprintf(before, sizeof before, "%d workers, ", change[0]);
      if (change[1] > 1) snprintf(after, sizeof after, "%d workers, ", change[1]);
      snprintf(line[0], sizeof line[0], "the checkpoint was trained on %s%d x reference", before, 2 * change[0]);
      snprintf(line[1], sizeof line[1], "continues from the same state on %s%d x reference", after, 2 * change[1]);
      for (int w = 0; w < changes[c][1]; w++) {
        assert_same_training(&all[w], &alone);
        /* From the middle of a pass, not from its beginning. */
        assert_true(all[w].examples < EPOCHS * ROWS - ROWS && all[w].examples % ROWS != 0);
        assert_contains(all[w].log, line[0]);
        assert_contains(all[w].log, line[1]);
        assert_null(strstr(all[w].log, "begins a new pass"));
      }
      remove_directory(directory);
    }
  }
}

/* From workers to one process, and from workers that read all to such as do not. */
static void test_a_killed_training_continues_with_another_strategy(void **state) {
  (void)state;
  char directory[64], model_dir[80];
  static struct trained all[MOST_WORKERS], alone, after;
  make_files(directory);
  snprintf(model_dir, sizeof model_dir, "%s/model", directory);
  train_alone(2, "memory", "train", directory, "", &alone);
  int codes[MOST_WORKERS];
  run_trainings("whole:memory:kill", directory, 2, codes, all);
  train_alone(3, "memory", "go_on", directory, model_dir, &after);
  assert_same_training(&after, &alone);
  remove_directory(directory);
  make_files(directory);
  kill_and_go_on("whole:memory:kill", "data:memory:go_on", directory, 2, 3, all);
  assert_same_training(&all[0], &alone);
  assert_null(strstr(all[0].log, "begins a new pass"));
  remove_directory(directory);
}

/* As many workers continue where they were; others begin a new pass, and say so. */
static void test_a_killed_training_on_files_continues(void **state) {
  (void)state;
  char directory[64];
  static struct trained all[MOST_WORKERS], whole[MOST_WORKERS];
  make_files(directory);
  run_well("file:files:train", directory, 2, whole);
  remove_directory(directory);
  make_files(directory);
  kill_and_go_on("file:files:kill", "file:files:go_on", directory, 2, 2, all);
  for (int w = 0; w < 2; w++) {
    assert_same_training(&all[w], &whole[w]);
    assert_true(all[w].examples < EPOCHS * ROWS - ROWS && all[w].examples % ROWS != 0);
    assert_null(strstr(all[w].log, "begins a new pass"));
  }
  remove_directory(directory);
  for (int c = 0; c < CHANGES; c++) {
    char line[160];
    make_files(directory);
    kill_and_go_on("file:files:kill", "file:files:go_on", directory, changes[c][0], changes[c][1], all);
    snprintf(line, sizeof line,
             "the input begins a new pass: the dataset was divided by files among %d workers before, and now among %d",
             changes[c][0], changes[c][1]);
    for (int w = 0; w < changes[c][1]; w++) {
      assert_contains(all[w].log, line);
      assert_int_equal(all[w].reason, TUTTI_REASON_EPOCHS);
      /* The pass that was begun counts as one. */
      assert_int_equal(all[w].examples, ROWS);
    }
    assert_seen(all, changes[c][1], 1);
    remove_directory(directory);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_killed_training_continues_on_another_number_of_workers),
    cmocka_unit_test(test_a_killed_training_continues_with_another_strategy),
    cmocka_unit_test(test_a_killed_training_on_files_continues),
};

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS) return train_as_worker(arguments[1], arguments[2]);
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}

/* SPDX-License-Identifier: Apache-2.0
 * The hooks that the library brings: progress on standard error, on terminals and off them, and files of metrics. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <unistd.h>

#include "estimator_fixtures.h"

enum { STEPS = 6, MOST = 8192 };

static tutti_hooks *progress_hooks(int32_t style) {
  tutti_hooks *hooks = NULL;
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add_progress(hooks, style, &err));
  return hooks;
}

static void train_with(tutti_hooks *hooks) {
  tutti_dataset *dataset = toy_dataset(32, 8, 0), *test = toy_dataset(32, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_options *options = make_options("train", "{\"steps\": 6}");
  assert_ok(tutti_estimator_train_and_evaluate(estimator, dataset, test, 3, options, hooks, NULL, NULL, &err));
  tutti_options_unref(options);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset), tutti_dataset_unref(test);
}

/* What a training wrote to standard error, which was `file` meanwhile. */
static void write_to(int file, int32_t style) {
  tutti_hooks *hooks = progress_hooks(style);
  fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  assert_true(kept >= 0 && dup2(file, STDERR_FILENO) >= 0);
  train_with(hooks);
  assert_true(dup2(kept, STDERR_FILENO) >= 0);
  close(kept);
  tutti_hooks_unref(hooks);
}

static const char *text_in_file(int32_t style) {
  static char text[MOST];
  FILE *file = tmpfile();
  assert_non_null(file);
  write_to(fileno(file), style);
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  return text;
}

static const char *text_on_terminal(int32_t style) {
  static char text[MOST];
  int terminal = -1, program = -1;
  const struct winsize size = {.ws_row = 24, .ws_col = 100};
  assert_int_equal(openpty(&terminal, &program, NULL, NULL, &size), 0);
  write_to(program, style);
  close(program);
  /* A terminal hands on what was written in parts: all of them are read, until nobody is left who writes. */
  size_t length = 0;
  for (ssize_t part; (part = read(terminal, text + length, sizeof text - 1 - length)) > 0;)
    length += (size_t)part;
  close(terminal);
  size_t kept = 0; /* a terminal makes two characters of a line end */
  for (size_t i = 0; i < length; i++)
    if (text[i] != '\r' || i + 1 == length || text[i + 1] != '\n') text[kept++] = text[i];
  text[kept] = 0;
  return text;
}

static void assert_is_bar(const char *text) {
  assert_non_null(strstr(text, "\r\033[Kstep 1/6 ["));
  assert_non_null(strstr(text, "\r\033[Kevaluation at step 3: loss "));
  assert_non_null(strstr(text, "evaluation at step 6: loss "));
  assert_non_null(strstr(text, "step 6/6 ["));
  assert_non_null(strstr(text, "] 100%  loss "));
  assert_int_equal(text[strlen(text) - 1], '\n');
}

static void assert_is_lines(const char *text) {
  assert_null(strchr(text, '\r'));
  assert_null(strchr(text, '\033'));
  assert_true(strncmp(text, "step 1 of 6 (16%): loss ", 24) == 0);
  assert_non_null(strstr(text, "\nevaluation at step 3: loss "));
  assert_non_null(strstr(text, "accuracy "));
  assert_non_null(strstr(text, "\nstep 6 of 6 (100%): loss "));
  assert_non_null(strstr(text, " examples/s, in 0:0"));
}

static void test_progress_in_files(void **state) {
  (void)state;
  setenv("TERM", "xterm", 1);
  assert_is_lines(text_in_file(TUTTI_PROGRESS_AUTO));
  assert_is_bar(text_in_file(TUTTI_PROGRESS_BAR));
}

/* A root without /dev/pts has none. */
static int has_terminals(void) {
  int terminal = -1, program = -1;
  if (openpty(&terminal, &program, NULL, NULL, NULL) != 0) {
    print_message("left out: no terminal can be opened here: %s\n", strerror(errno));
    return 0;
  }
  close(program), close(terminal);
  return 1;
}

static void test_progress_on_terminals(void **state) {
  (void)state;
  if (!has_terminals()) test_skip();
  setenv("TERM", "xterm", 1);
  assert_is_bar(text_on_terminal(TUTTI_PROGRESS_AUTO));
  assert_is_lines(text_on_terminal(TUTTI_PROGRESS_LINES));
  setenv("TERM", "dumb", 1);
  assert_is_lines(text_on_terminal(TUTTI_PROGRESS_AUTO));
  unsetenv("TERM");
  assert_is_lines(text_on_terminal(TUTTI_PROGRESS_AUTO));
}

static int lines_with(const char *path, const char *words) {
  char line[1024];
  int count = 0;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL)
    count += strstr(line, words) != NULL;
  fclose(file);
  return count;
}

/* Four steps, the checkpoint at step 3, then killed: what is in the file of later steps is written once. */
static void test_metrics_of_a_resumed_training(void **state) {
  (void)state;
  char folder[] = "/tmp/tutti-metrics-XXXXXX", path[64], run[256];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/metrics", folder);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s/model\", \"save_checkpoints_steps\": 3}", folder);
  static const int32_t formats[] = {TUTTI_METRICS_CSV, TUTTI_METRICS_JSON_LINES};
  static const char *const steps[] = {"step,", "\"event\":\"step\""}, *const ends[] = {"end,", "\"event\":\"end\""};
  for (int i = 0; i < 2; i++) {
    for (int64_t goal = 4; goal <= 6; goal += 2) {
      tutti_hooks *hooks = NULL;
      assert_ok(tutti_hooks_create(&hooks, &err));
      assert_ok(tutti_hooks_add_metrics_file(hooks, path, formats[i], 1, &err));
      tutti_dataset *dataset = toy_dataset(32, 8, 0);
      tutti_estimator *estimator = toy_estimator(run);
      char json[64];
      snprintf(json, sizeof json, "{\"max_steps\": %d}", (int)goal);
      tutti_options *options = make_options("train", json);
      assert_ok(tutti_estimator_train(estimator, dataset, options, hooks, NULL, NULL, &err));
      tutti_options_unref(options), tutti_hooks_unref(hooks);
      tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
    }
    assert_int_equal(lines_with(path, steps[i]), 6 + (i == 0)); /* and the header, which ends in other words */
    assert_int_equal(lines_with(path, ends[i]), 2);
    assert_int_equal(lines_with(path, "accuracy"), i == 0 ? 1 : 8);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s/*", folder);
    assert_int_equal(system(command), 0);
  }
  assert_int_equal(rmdir(folder), 0);
}

/* The same without a hook, by run options. */
static void test_metrics_file_as_an_option(void **state) {
  (void)state;
  char folder[] = "/tmp/tutti-metrics-XXXXXX";
  assert_non_null(mkdtemp(folder));
  static const char *const names[] = {"metrics.csv", "metrics.jsonl"};
  static const char *const steps[] = {"step,", "\"event\":\"step\""};
  for (int i = 0; i < 2; i++) {
    char path[64], run[256];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    snprintf(run, sizeof run, "{\"metrics_file\": \"%s\", \"metrics_file_steps\": 2}", path);
    tutti_dataset *dataset = toy_dataset(32, 8, 0);
    tutti_estimator *estimator = toy_estimator(run);
    tutti_options *options = make_options("train", "{\"max_steps\": 6}");
    assert_ok(tutti_estimator_train(estimator, dataset, options, NULL, NULL, NULL, &err));
    assert_int_equal(lines_with(path, steps[i]), 3 + (i == 0)); /* and the header */
    assert_int_equal(lines_with(path, "accuracy"), i == 0 ? 1 : 4);
    tutti_options_unref(options), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
    assert_int_equal(remove(path), 0);
  }
  assert_int_equal(rmdir(folder), 0);
}

static void test_mistakes(void **state) {
  (void)state;
  tutti_hooks *hooks = NULL;
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "argument 'style'", tutti_hooks_add_progress(hooks, 3, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "got -1", tutti_hooks_add_progress(hooks, -1, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'path'", tutti_hooks_add_metrics_file(hooks, NULL, TUTTI_METRICS_CSV, 1, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "argument 'format'", tutti_hooks_add_metrics_file(hooks, "x", 0, 1, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "got -1", tutti_hooks_add_metrics_file(hooks, "x", TUTTI_METRICS_CSV, -1, &err));
  assert_ok(tutti_hooks_add_metrics_file(hooks, "/no/such/folder/x", TUTTI_METRICS_CSV, 1, &err));
  tutti_dataset *dataset = toy_dataset(32, 8, 0);
  tutti_estimator *estimator = toy_estimator(NULL);
  assert_error(TUTTI_NOT_FOUND, "/no/such/folder/x",
               tutti_estimator_train(estimator, dataset, NULL, hooks, NULL, NULL, &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_hooks_unref(hooks);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_progress_in_files),
    cmocka_unit_test(test_progress_on_terminals),
    cmocka_unit_test(test_metrics_of_a_resumed_training),
    cmocka_unit_test(test_metrics_file_as_an_option),
    cmocka_unit_test(test_mistakes),
};
CAPI_TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_fixtures.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

int worker_tested(void) { return atoi(getenv("WORKER_TESTED")); }
int devices_tested(void) { return atoi(getenv("DEVICES_TESTED")); }

int32_t join_workers(const char *cluster, tutti_context **context, tutti_strategy **strategy, tutti_error **err) {
  const char *backends = getenv("BACKENDS_TESTED");
  char json[160];
  snprintf(json, sizeof json, "{\"logical_devices\": %d, \"backend\": \"%s\"}", devices_tested(),
           backends != NULL ? backends : "reference");
  tutti_options *devices = make_options("context", json), *options = make_options("cluster", cluster);
  int32_t code = tutti_context_create(devices, context, err);
  if (code == TUTTI_OK) code = tutti_strategy_create_multi_worker_from_environment(*context, options, strategy, err);
  tutti_options_unref(devices);
  tutti_options_unref(options);
  return code;
}

void use_backends(const char *backends) {
  if (backends == NULL) {
    unsetenv("BACKENDS_TESTED");
  } else {
    setenv("BACKENDS_TESTED", backends, 1);
  }
}

int32_t read_numbers(tutti_estimator *estimator, const char *variable, float *numbers, size_t most, tutti_error **err) {
  tutti_tensor *tensor = NULL;
  const int32_t code = tutti_estimator_read_variable(estimator, variable, &tensor, err);
  if (code == TUTTI_OK) {
    const size_t bytes = (size_t)tutti_tensor_get_size_bytes(tensor), room = most * sizeof *numbers;
    memcpy(numbers, tutti_tensor_get_data(tensor), bytes < room ? bytes : room);
  }
  tutti_tensor_unref(tensor);
  return code;
}

int leave_answer(const char *directory, const void *answer, size_t size, int32_t code) {
  char path[200];
  snprintf(path, sizeof path, "%s/%d", directory, worker_tested());
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(answer, size, 1, file) != 1 || fclose(file) != 0) return 3;
  return code == TUTTI_OK ? 0 : 1;
}

int link_plugins(char folder[64], const char *pjrt, const char *gloo) {
  const char *const names[] = {"tutti-pjrt.so", "tutti-gloo.so"}, *const paths[] = {pjrt, gloo};
  make_directory(folder);
  for (int i = 0; i < 2; i++) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    if (symlink(paths[i], path) != 0) return 1;
  }
  return setenv("TUTTI_PLUGIN_PATH", folder, 1);
}

static void wait_for(const pid_t *children, int count, int *codes) {
  const time_t end = time(NULL) + WORKER_LIMIT_SECONDS;
  for (int w = 0; w < count; w++) {
    int status = 0;
    while (waitpid(children[w], &status, WNOHANG) == 0) {
      sleep_microseconds(2000);
      if (time(NULL) > end) kill(children[w], SIGKILL);
    }
    codes[w] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

static void read_answer(const char *directory, int worker, void *answer, size_t size) {
  char path[200];
  snprintf(path, sizeof path, "%s/%d", directory, worker);
  memset(answer, 0, size);
  FILE *file = fopen(path, "rb");
  if (file == NULL) return;
  assert_int_equal(fread(answer, size, 1, file), 1);
  fclose(file);
  remove(path);
}

void run_workers(const char *scenario, const char *directory, int count, int devices, int *codes, void *answers,
                 size_t size) {
  pid_t children[MOST_WORKERS];
  char config[300], addresses[120] = "", number[16];
  for (int w = 0; w < count; w++)
    snprintf(addresses + strlen(addresses), sizeof addresses - strlen(addresses), "%s\"127.0.0.1:%d\"",
             w > 0 ? ", " : "", free_port());
  snprintf(number, sizeof number, "%d", devices);
  setenv("DEVICES_TESTED", number, 1);
  for (int w = 0; w < count; w++) {
    snprintf(config, sizeof config,
             "{\"cluster\": {\"worker\": [%s]}, \"task\": {\"type\": \"worker\", \"index\": %d}}", addresses, w);
    snprintf(number, sizeof number, "%d", w);
    setenv("TF_CONFIG", config, 1);
    setenv("WORKER_TESTED", number, 1);
    char *arguments[WORKER_ARGUMENTS + 1] = {(char *)"worker", (char *)scenario, (char *)directory, NULL};
    assert_int_equal(posix_spawn(&children[w], "/proc/self/exe", NULL, NULL, arguments, environ), 0);
  }
  unsetenv("TF_CONFIG");
  wait_for(children, count, codes);
  for (int w = 0; w < count; w++)
    read_answer(directory, w, (char *)answers + (size_t)w * size, size);
}

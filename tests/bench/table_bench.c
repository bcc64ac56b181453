/* SPDX-License-Identifier: Apache-2.0
 * Steps of a model that looks rows of a table up: how long they take where an optimizer updates these rows alone, and
 * where it updates all. Processor time of the process, of the fastest of several runs; one thread.
 *
 *   table_bench ROWS WIDTH EXAMPLES LOOKUPS [PEER]     # LOOKUPS of each example; PEER: a command that does the same in
 *                                                      # PyTorch (table_peer.py), and prints lines of the same form */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "step_timing.h"

struct settings {
  int64_t rows, width, examples, lookups;
  const char *optimizer;
};

static void set_optimizer(tutti_graph *g, const char *name) {
  const tutti_value rate = tutti_schedule_constant(g, 0.01);
  tutti_optimizer_adam_attrs lazy = {.lazy = 1};
  tutti_optimizer_sgd_attrs decay = {.weight_decay = 1e-9};
  if (strcmp(name, "adam, lazy") == 0) tutti_optimizer_adam(g, rate, &lazy);
  if (strcmp(name, "adam") == 0) tutti_optimizer_adam(g, rate, NULL);
  if (strcmp(name, "adagrad") == 0) tutti_optimizer_adagrad(g, rate, NULL);
  if (strcmp(name, "sgd") == 0) tutti_optimizer_sgd(g, rate, NULL);
  if (strcmp(name, "sgd, all rows") == 0) tutti_optimizer_sgd(g, rate, &decay);
}

/* The mean square of the sums of the rows that an example looks up. */
static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct settings *settings = user;
  const int64_t dims[] = {settings->rows, settings->width}, one = 1;
  tutti_value table = tutti_graph_variable(g, "table", TUTTI_DTYPE_F32, dims, 2, "constant", 0.5, 1);
  tutti_reduce_sum_attrs along = {.axes = &one, .axes_count = 1};
  tutti_value bag = tutti_reduce_sum(g, tutti_gather(g, table, tutti_graph_get_feature(g, "ids"), NULL), &along);
  tutti_graph_set_output(g, "bag", bag);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_square(g, bag), NULL));
  set_optimizer(g, settings->optimizer);
  return tutti_graph_check(g, err);
}

static tutti_dataset *make_data(tutti_context *context, const struct settings *settings) {
  const int64_t dims[] = {settings->examples, settings->lookups}, count = settings->examples * settings->lookups;
  int32_t *const ids = malloc((size_t)count * sizeof *ids);
  uint64_t state = 1;
  for (int64_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids[i] = (int32_t)((state >> 33) % (uint64_t)settings->rows);
  }
  tutti_error *err = NULL;
  tutti_tensor *tensor = NULL;
  must(tutti_tensor_from_data(TUTTI_DTYPE_I32, dims, 2, ids, count * (int64_t)sizeof *ids, &tensor, &err), err);
  free(ids);
  return same_batch(context, "ids", tensor);
}

int main(int count, char **arguments) {
  static const char *const optimizers[] = {"adam, lazy", "adam", "sgd", "sgd, all rows", "adagrad"};
  if (count < 5) {
    fprintf(stderr, "usage: table_bench ROWS WIDTH EXAMPLES LOOKUPS [PEER]\n");
    return 2;
  }
  struct settings settings = {atoll(arguments[1]), atoll(arguments[2]), atoll(arguments[3]), atoll(arguments[4]), NULL};
  tutti_context *context = one_thread();
  printf("%lld x %lld, %lld examples with %lld lookups each; ms of processor time a step\n", (long long)settings.rows,
         (long long)settings.width, (long long)settings.examples, (long long)settings.lookups);
  for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
    settings.optimizer = optimizers[i];
    printf("tutti    %-14s %10.3f\n", settings.optimizer,
           step_ms(context, model, &settings, make_data(context, &settings), 5, 10));
    fflush(stdout);
  }
  tutti_context_unref(context);
  if (count < 6) return 0;
  char command[1024];
  snprintf(command, sizeof command, "%s %s %s %s %s", arguments[5], arguments[1], arguments[2], arguments[3],
           arguments[4]);
  return system(command) == 0 ? 0 : 1;
}

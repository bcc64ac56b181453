/* SPDX-License-Identifier: Apache-2.0
 *
 * Trainings of several workers, and of one process, on the same rows. Such a test program starts itself as workers,
 * "<program> INPUT:SOURCE:ACTION DIRECTORY":
 *   INPUT    the option worker_input
 *   SOURCE   "files": lines of files in the directory, which are made rows behind a shuffle; "memory": the same rows by
 *            position
 *   ACTION   "train"; "both" evaluates while it trains; "part" trains on the part that the strategy gives; "kill" ends
 *            the last worker at KILL_STEP; "go_on" continues; "evaluate" evaluates what is in model_dir
 * Workers save into DIRECTORY/model. */
#ifndef TUTTI_TESTS_CAPI_WORKER_TRAINING_H_
#define TUTTI_TESTS_CAPI_WORKER_TRAINING_H_

#include <stdatomic.h>

#include "dataset_fixtures.h"
#include "worker_fixtures.h"

enum { FILES = 7, ROWS = 61, BATCH = 8, EPOCHS = 3, KILL_STEP = 12, SAVE_STEPS = 3 };

/* What a worker leaves, and what one process has. */
struct trained {
  int32_t code, reason;
  int64_t step, steps, examples;
  double loss, accuracy; /* of an evaluation behind it */
  atomic_int seen[ROWS]; /* how often this process mapped each row in the training */
  float kernel[32];
  char error[400], log[2000];
};

/* The lines of a file: the numbers of its rows. */
void text_of_file(int file, char text[200]);
/* A line, as a number. */
int number_at(const tutti_tensor *lines, int64_t index);
/* A new directory with the files. */
void make_files(char directory[64]);

/* What main() is in a worker; its exit status. */
int train_as_worker(const char *scenario, const char *directory);
/* Workers with two devices each. */
void run_trainings(const char *scenario, const char *directory, int count, int *codes, struct trained *all);
/* The same, without an error, and with the same weights on all. */
void run_well(const char *scenario, const char *directory, int count, struct trained *all);
/* One process with so many replicas. */
void train_alone(int replicas, const char *source, const char *action, const char *directory, const char *model_dir,
                 struct trained *trained);

void assert_same_training(const struct trained *got, const struct trained *expected);
/* How often all workers together have mapped each row while they trained. */
void assert_seen(const struct trained *all, int count, int times);

#endif /* TUTTI_TESTS_CAPI_WORKER_TRAINING_H_ */

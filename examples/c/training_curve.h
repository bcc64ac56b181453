/* SPDX-License-Identifier: Apache-2.0
 * Collects points (step, loss) and draws them as an SVG picture. */
#ifndef TUTTI_EXAMPLES_TRAINING_CURVE_H_
#define TUTTI_EXAMPLES_TRAINING_CURVE_H_

enum { TRAINING_CURVE_CAPACITY = 4096 };

struct training_curve {
  double step[TRAINING_CURVE_CAPACITY], loss[TRAINING_CURVE_CAPACITY];
  int count;
};

/* Adds a point; points beyond the capacity are dropped. */
void training_curve_add(struct training_curve *curve, double step, double loss);

/* Writes the picture. Returns 0, or -1 when there are no points or the file cannot be written. */
int training_curve_write(const struct training_curve *curve, const char *path);

#endif /* TUTTI_EXAMPLES_TRAINING_CURVE_H_ */

/* SPDX-License-Identifier: Apache-2.0 */
#include "training_curve.h"

#include <stdio.h>

enum { WIDTH = 720, HEIGHT = 360, MARGIN = 50 };

void training_curve_add(struct training_curve *curve, double step, double loss) {
  if (curve->count == TRAINING_CURVE_CAPACITY) return;
  curve->step[curve->count] = step;
  curve->loss[curve->count++] = loss;
}

static double highest(const double *values, int count) {
  double result = values[0];
  for (int i = 1; i < count; i++)
    if (values[i] > result) result = values[i];
  return result > 0 ? result : 1;
}

static void write_grid(FILE *file, double top) {
  for (int i = 0; i <= 4; i++) {
    double y = HEIGHT - MARGIN - i * (HEIGHT - 2.0 * MARGIN) / 4;
    fprintf(file, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>", MARGIN, y, WIDTH - MARGIN, y);
    fprintf(file, "<text x='8' y='%.1f'>%.2f</text>\n", y + 4, top * i / 4);
  }
}

int training_curve_write(const struct training_curve *curve, const char *path) {
  if (curve->count == 0) return -1;
  FILE *file = fopen(path, "w");
  if (file == NULL) return -1;
  double right = highest(curve->step, curve->count), top = highest(curve->loss, curve->count);
  fprintf(file,
          "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' font-size='12'>\n",
          WIDTH, HEIGHT);
  fprintf(file, "<rect width='100%%' height='100%%' fill='white'/><text x='%d' y='24'>training loss</text>\n", MARGIN);
  write_grid(file, top);
  fprintf(file, "<polyline fill='none' stroke='#06c' stroke-width='1.5' points='");
  for (int i = 0; i < curve->count; i++)
    fprintf(file, "%.1f,%.1f ", MARGIN + curve->step[i] / right * (WIDTH - 2.0 * MARGIN),
            HEIGHT - MARGIN - curve->loss[i] / top * (HEIGHT - 2.0 * MARGIN));
  fprintf(file, "'/>\n<text x='%d' y='%d'>step %.0f</text>\n</svg>\n", WIDTH - MARGIN - 60, HEIGHT - 20, right);
  return fclose(file) == 0 ? 0 : -1;
}

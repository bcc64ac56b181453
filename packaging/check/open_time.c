/* SPDX-License-Identifier: Apache-2.0
 * open_time LIBRARY [BEFORE...]: how long dlopen() of a library takes in a process that has just begun, and how long the
 * processor works for it, in microseconds; with other libraries that are opened before, and not counted. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static double now_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int is_opened(const char *library) {
  const void *const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == NULL) fprintf(stderr, "open_time: %s\n", dlerror());
  return opened != NULL;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  for (int i = 2; i < argc; i++)
    if (!is_opened(argv[i])) return 1;
  const double begin = now_us(CLOCK_MONOTONIC), work_begin = now_us(CLOCK_PROCESS_CPUTIME_ID);
  if (!is_opened(argv[1])) return 1;
  const double work_end = now_us(CLOCK_PROCESS_CPUTIME_ID), end = now_us(CLOCK_MONOTONIC);
  printf("%.0f %.0f\n", end - begin, work_end - work_begin);
  return 0;
}

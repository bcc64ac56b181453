/* SPDX-License-Identifier: Apache-2.0
 * open_time LIBRARY: how long dlopen() takes in a process that has just begun, and how long the processor works for it, in
 * microseconds. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static double now_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const double begin = now_us(CLOCK_MONOTONIC), work_begin = now_us(CLOCK_PROCESS_CPUTIME_ID);
  const void *const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  const double work_end = now_us(CLOCK_PROCESS_CPUTIME_ID), end = now_us(CLOCK_MONOTONIC);
  if (library == NULL) fprintf(stderr, "open_time: %s\n", dlerror());
  printf("%.0f %.0f\n", end - begin, work_end - work_begin);
  return library == NULL;
}

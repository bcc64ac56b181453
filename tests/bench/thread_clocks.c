/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* clocks */

#include "thread_clocks.h"

#include <dirent.h>
#include <stdlib.h>
#include <time.h>

/* As pthread_getcpuclockid makes it of a thread's number. */
static clockid_t clock_of(int thread) { return (clockid_t)(~(unsigned)thread << 3 | 6u); }

void thread_clocks_read(struct thread_clocks *clocks) {
  clocks->count = 0;
  DIR *threads = opendir("/proc/self/task");
  if (threads == NULL) return;
  for (const struct dirent *entry = readdir(threads); entry != NULL && clocks->count < THREAD_CLOCKS_MOST;
       entry = readdir(threads)) {
    const int thread = atoi(entry->d_name);
    struct timespec now;
    if (thread <= 0 || clock_gettime(clock_of(thread), &now) != 0) continue;
    clocks->ids[clocks->count] = thread;
    clocks->seconds[clocks->count++] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
  }
  closedir(threads);
}

double thread_clocks_most_since(const struct thread_clocks *before) {
  struct thread_clocks now;
  thread_clocks_read(&now);
  double most = -1;
  for (int i = 0; i < now.count; i++) {
    double taken = now.seconds[i];
    for (int j = 0; j < before->count; j++)
      if (before->ids[j] == now.ids[i]) taken -= before->seconds[j];
    if (taken > most) most = taken;
  }
  return most;
}

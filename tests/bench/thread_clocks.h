/* SPDX-License-Identifier: Apache-2.0
 *
 * What each thread of this process has taken of the processors, by the clock that CLOCK_THREAD_CPUTIME_ID is for the
 * calling one. Linux. Threads: any.
 */
#ifndef TUTTI_TESTS_BENCH_THREAD_CLOCKS_H_
#define TUTTI_TESTS_BENCH_THREAD_CLOCKS_H_

enum { THREAD_CLOCKS_MOST = 1024 };

/* Of the first so many threads. */
struct thread_clocks {
  int count;
  int ids[THREAD_CLOCKS_MOST];
  double seconds[THREAD_CLOCKS_MOST];
};

/* Reads all clocks as they are now. */
void thread_clocks_read(struct thread_clocks *clocks);

/* Seconds that the thread which has taken most since then has taken; -1 where clocks of threads cannot be read. One
 * that waits in a loop instead of sleeping takes what it waits. */
double thread_clocks_most_since(const struct thread_clocks *before);

#endif /* TUTTI_TESTS_BENCH_THREAD_CLOCKS_H_ */

/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a language that a tensor borrows, until nobody in the library needs it any more.
 *
 * A language hands over a token, a number > 0 behind which it keeps the memory where it is. The library gives memory
 * back on whatever thread drops the last reference, maybe inside its locks or while the process ends: that is C code
 * which puts the token on a list. A thread of the language waits for the list, so that memory goes as soon as it can
 * without the library ever entering the language.
 *
 * Threads  Every function is safe from any thread.
 */
#ifndef TUTTI_BINDINGS_LENT_MEMORY_H_
#define TUTTI_BINDINGS_LENT_MEMORY_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <tutti/tensor.h>

struct tutti_lent_memory {
  int64_t token;
  struct tutti_lent_memory *next;
};

static pthread_mutex_t tutti_lent_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t tutti_lent_changed = PTHREAD_COND_INITIALIZER;
static struct tutti_lent_memory *tutti_lent_returned; /* the tokens that the library is done with */
static bool tutti_lent_closed;

static inline void tutti_lent_release(void *user) {
  struct tutti_lent_memory *memory = user;
  pthread_mutex_lock(&tutti_lent_mutex);
  memory->next = tutti_lent_returned;
  tutti_lent_returned = memory;
  pthread_cond_signal(&tutti_lent_changed);
  pthread_mutex_unlock(&tutti_lent_mutex);
}

/* tutti_tensor_take_memory with a token. The token comes back in every case but for want of memory for it. */
static inline int32_t tutti_swig_tensor_take_memory(int64_t token, int32_t dtype, const int64_t *dims, int64_t rank,
                                                    const void *data, int64_t size_bytes, tutti_tensor **out,
                                                    tutti_error **err) {
  struct tutti_lent_memory *memory = malloc(sizeof *memory);
  if (memory == NULL) {
    tutti_error_create(TUTTI_RESOURCE_EXHAUSTED, "tutti", "no memory for a tensor", NULL, err, NULL);
    return TUTTI_RESOURCE_EXHAUSTED;
  }
  memory->token = token;
  return tutti_tensor_take_memory(dtype, dims, rank, data, size_bytes, tutti_lent_release, memory, out, err);
}

/* Waits until the library is done with some memory; gives its token, each exactly once. 0 once the list is closed. */
static inline int64_t tutti_swig_memory_take_returned(void) {
  pthread_mutex_lock(&tutti_lent_mutex);
  while (tutti_lent_returned == NULL && !tutti_lent_closed)
    pthread_cond_wait(&tutti_lent_changed, &tutti_lent_mutex);
  struct tutti_lent_memory *memory = tutti_lent_closed ? NULL : tutti_lent_returned;
  int64_t token = memory != NULL ? memory->token : 0;
  if (memory != NULL) tutti_lent_returned = memory->next;
  pthread_mutex_unlock(&tutti_lent_mutex);
  free(memory);
  return token;
}

/* The process ends: who waits goes, and no memory is given back any more. */
static inline void tutti_swig_memory_close(void) {
  pthread_mutex_lock(&tutti_lent_mutex);
  tutti_lent_closed = true;
  pthread_cond_broadcast(&tutti_lent_changed);
  pthread_mutex_unlock(&tutti_lent_mutex);
}

#endif /* TUTTI_BINDINGS_LENT_MEMORY_H_ */

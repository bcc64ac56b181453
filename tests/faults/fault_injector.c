/* SPDX-License-Identifier: Apache-2.0
 * A library to preload: lets the n-th call of a kind fail, once, as a system under pressure does.
 *
 *   TUTTI_FAULT=KIND:N     which call; 0 only counts
 *   TUTTI_FAULT_COUNT=PATH where the count of that kind is written at the end, and below it the number of the first
 *                          call from each place: of those that have the same functions above them
 *   TUTTI_FAULT_ABORT=1    the process ends at that call instead, for a debugger to tell where it is
 *
 * Kinds: malloc (calloc, realloc and aligned ones, too), open, read, write, fsync, rename, mmap, thread; driver: calls
 * of the emulated GPU's run-time library, which ask fault_injector_driver_call() whether to fail. Calls count
 * from fault_injector_begin() on, which the program finds by dlsym(), to fault_injector_end(); those of a thread do not
 * between fault_injector_pause(1) and fault_injector_pause(0). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum kind { NONE, MALLOC, OPEN, READ, WRITE, FSYNC, RENAME, MMAP, THREAD, DRIVER };
static const char *const kNames[] = {"",      "malloc", "open", "read",   "write",
                                     "fsync", "rename", "mmap", "thread", "driver"};

static enum kind failing;
static long fails_at;
static atomic_long count;
static atomic_bool counting;
static __thread int pauses __attribute__((tls_model("initial-exec")));

/* Places that calls came from, by a hash of their stacks. Where the table is full, more are not told apart. */
enum { PLACES = 1 << 18, STACK_DEPTH = 10 };
static atomic_ulong places[PLACES];
static long first_calls[PLACES];

static void note_place(long number) {
  void *stack[STACK_DEPTH];
  pauses++;
  const int depth = backtrace(stack, STACK_DEPTH);
  pauses--;
  unsigned long hash = 14695981039346656037UL; /* FNV-1a, by words */
  for (int i = 0; i < depth; i++)
    hash = (hash ^ (unsigned long)stack[i]) * 1099511628211UL;
  hash |= 1; /* 0 is a free entry */
  for (unsigned long i = 0; i < PLACES; i++) {
    const unsigned long at = ((hash >> 20) + i) % PLACES;
    unsigned long found = 0;
    if (atomic_compare_exchange_strong(&places[at], &found, hash)) first_calls[at] = number;
    if (found == 0 || found == hash) return;
  }
}

static int fails(enum kind kind) {
  if (kind != failing || pauses > 0 || !atomic_load_explicit(&counting, memory_order_relaxed)) return 0;
  const long number = atomic_fetch_add(&count, 1) + 1;
  if (fails_at == 0) note_place(number);
  if (number == fails_at && getenv("TUTTI_FAULT_ABORT") != NULL) abort();
  return number == fails_at;
}

EXPORTED void fault_injector_pause(int is_wanted) { pauses += is_wanted ? 1 : -1; }

EXPORTED int fault_injector_driver_call(void) { return fails(DRIVER); }

EXPORTED void fault_injector_begin(void) { atomic_store(&counting, 1); }

EXPORTED void fault_injector_end(void) {
  atomic_store(&counting, 0);
  const char *path = getenv("TUTTI_FAULT_COUNT");
  FILE *file = path != NULL ? fopen(path, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%ld\n", atomic_load(&count));
  for (long i = 0; i < PLACES; i++)
    if (first_calls[i] > 0) fprintf(file, "%ld\n", first_calls[i]);
  fclose(file);
}

__attribute__((constructor)) static void read_environment(void) {
  const char *text = getenv("TUTTI_FAULT");
  for (enum kind kind = MALLOC; text != NULL && kind <= DRIVER; kind++) {
    const size_t length = strlen(kNames[kind]);
    if (strncmp(text, kNames[kind], length) != 0 || text[length] != ':') continue;
    failing = kind;
    fails_at = atol(text + length + 1);
  }
  void *stack[1];
  backtrace(stack, 1); /* the first one loads a library */
}

/* dlsym() itself allocates: the allocator's own names do not need it. AddressSanitizer is one, too, and looks for what
 * is left behind; operator new: failing_new.cc. */
#ifdef HAS_ADDRESS_SANITIZER
#define ALLOCATOR(name) __interceptor_##name
#else
#define ALLOCATOR(name) __libc_##name
#endif
extern void *ALLOCATOR(malloc)(size_t);
extern void *ALLOCATOR(calloc)(size_t, size_t);
extern void *ALLOCATOR(realloc)(void *, size_t);
extern void *ALLOCATOR(memalign)(size_t, size_t);

static void *no_memory(void) {
  errno = ENOMEM;
  return NULL;
}

EXPORTED void *malloc(size_t size) { return fails(MALLOC) ? no_memory() : ALLOCATOR(malloc)(size); }
EXPORTED void *calloc(size_t n, size_t size) { return fails(MALLOC) ? no_memory() : ALLOCATOR(calloc)(n, size); }
EXPORTED void *realloc(void *old, size_t size) { return fails(MALLOC) ? no_memory() : ALLOCATOR(realloc)(old, size); }
EXPORTED void *memalign(size_t alignment, size_t size) {
  return fails(MALLOC) ? no_memory() : ALLOCATOR(memalign)(alignment, size);
}
EXPORTED void *aligned_alloc(size_t alignment, size_t size) {
  return fails(MALLOC) ? no_memory() : ALLOCATOR(memalign)(alignment, size);
}
EXPORTED int posix_memalign(void **out, size_t alignment, size_t size) {
  void *made = fails(MALLOC) ? NULL : ALLOCATOR(memalign)(alignment, size);
  if (made == NULL) return ENOMEM;
  *out = made;
  return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int failed(int number) {
  errno = number;
  return -1;
}

EXPORTED int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return fails(OPEN) ? failed(EMFILE) : REAL(open)(path, flags, mode);
}
EXPORTED int open64(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return fails(OPEN) ? failed(EMFILE) : REAL(open64)(path, flags, mode);
}
EXPORTED int openat(int folder, const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return fails(OPEN) ? failed(EMFILE) : REAL(openat)(folder, path, flags, mode);
}
EXPORTED ssize_t read(int file, void *to, size_t size) {
  return fails(READ) ? failed(EIO) : REAL(read)(file, to, size);
}
EXPORTED ssize_t pread(int file, void *to, size_t size, off_t at) {
  return fails(READ) ? failed(EIO) : REAL(pread)(file, to, size, at);
}
EXPORTED ssize_t pread64(int file, void *to, size_t size, off64_t at) {
  return fails(READ) ? failed(EIO) : REAL(pread64)(file, to, size, at);
}
EXPORTED ssize_t write(int file, const void *from, size_t size) {
  return fails(WRITE) ? failed(ENOSPC) : REAL(write)(file, from, size);
}
EXPORTED ssize_t pwrite(int file, const void *from, size_t size, off_t at) {
  return fails(WRITE) ? failed(ENOSPC) : REAL(pwrite)(file, from, size, at);
}
EXPORTED ssize_t pwrite64(int file, const void *from, size_t size, off64_t at) {
  return fails(WRITE) ? failed(ENOSPC) : REAL(pwrite64)(file, from, size, at);
}
EXPORTED ssize_t writev(int file, const struct iovec *parts, int n) {
  return fails(WRITE) ? failed(ENOSPC) : REAL(writev)(file, parts, n);
}
EXPORTED int fsync(int file) { return fails(FSYNC) ? failed(EIO) : REAL(fsync)(file); }
EXPORTED int fdatasync(int file) { return fails(FSYNC) ? failed(EIO) : REAL(fdatasync)(file); }
EXPORTED int rename(const char *from, const char *to) { return fails(RENAME) ? failed(EIO) : REAL(rename)(from, to); }
EXPORTED int renameat(int a, const char *from, int b, const char *to) {
  return fails(RENAME) ? failed(EIO) : REAL(renameat)(a, from, b, to);
}
EXPORTED int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  return fails(RENAME) ? failed(EIO) : REAL(renameat2)(a, from, b, to, flags);
}
EXPORTED void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
  if (fails(MMAP)) return no_memory(), MAP_FAILED;
  return REAL(mmap)(at, size, protection, flags, file, offset);
}
EXPORTED void *mmap64(void *at, size_t size, int protection, int flags, int file, off64_t offset) {
  if (fails(MMAP)) return no_memory(), MAP_FAILED;
  return REAL(mmap64)(at, size, protection, flags, file, offset);
}
EXPORTED int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*start)(void *), void *user) {
  return fails(THREAD) ? EAGAIN : REAL(pthread_create)(out, attributes, start, user);
}

/* SPDX-License-Identifier: Apache-2.0
 * Loading the library at run time, by a program that is not linked with it: what it costs, that it can be closed and
 * opened again, and that it starts nothing by itself.
 *
 *   load_test LIBTUTTI [LARGEST_BYTES]       LARGEST_BYTES 0 = do not check the size */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "testing.h"

static const char *library;
static long long largest_bytes;

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* Time of this process alone: other programs on the machine do not count. */
static double processor_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static long long resident_bytes(void) {
  long long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%lld %lld", &pages, &resident) != 2) resident = 0;
  if (file != NULL) fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

static int count_threads(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return 1;
  for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks))
    count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* POSIX says that a function pointer fits into the void * of dlsym; C does not. */
static void *open_and_ask_version(const char **version) {
  const char *(*get_version)(void) = NULL;
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    print_error("%s\n", dlerror());
    return NULL;
  }
  void *symbol = dlsym(handle, "tutti_version");
  memcpy(&get_version, &symbol, sizeof symbol);
  *version = get_version != NULL ? get_version() : NULL;
  return handle;
}

/* The promise is 10 ms and 8 MB in a release build on a quiet machine. Times are not asserted but for something being
 * very wrong: a second of processor time. The dependencies, the kernel library among them, are linked and so loaded
 * here; they start nothing and allocate next to nothing before the first context. */
static void test_load(void **state) {
  (void)state;
  int threads = count_threads();
  long long resident = resident_bytes();
  double begin = now_ms(), begin_processor = processor_ms();
  const char *version = NULL;
  void *handle = open_and_ask_version(&version);
  double processor = processor_ms() - begin_processor;
  long long grown = resident_bytes() - resident;
  print_message("loading: %.1f ms of the processor (%.1f ms on the clock), %.1f MiB resident with all dependencies\n",
                processor, now_ms() - begin, (double)grown / 1048576);
  assert_non_null(handle);
  assert_true(processor < 1000);
  if (largest_bytes > 0) assert_true(grown < 64LL * 1048576);
  assert_non_null(version);
  assert_int_equal(count_threads(), threads); /* the first context starts the first thread */
  for (int i = 0; i < 3; i++) {
    assert_int_equal(dlclose(handle), 0);
    handle = open_and_ask_version(&version);
    assert_non_null(handle);
  }
  assert_int_equal(dlclose(handle), 0);
}

/* What each dependency adds, loaded one after the other by a new process. */
static void load_in_turn(const char *const *names, int count) {
  for (int i = 0; i < count; i++) {
    double begin = processor_ms();
    long long resident = resident_bytes();
    void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    printf("  %-24s %6.2f ms %7.2f MiB%s\n", i + 1 < count ? names[i] : "the library itself", processor_ms() - begin,
           (double)(resident_bytes() - resident) / 1048576, handle == NULL ? "  not there" : "");
  }
}

static void test_parts(void **state) {
  (void)state;
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    execl("/proc/self/exe", "load_test", "parts", library, (char *)NULL);
    _exit(9);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* What of the file is loaded: its size when stripped, but for a few tables. */
static long long loaded_bytes(void) {
  FILE *file = fopen(library, "rb");
  assert_non_null(file);
  Elf64_Ehdr header;
  assert_int_equal(fread(&header, sizeof header, 1, file), 1);
  assert_memory_equal(header.e_ident, ELFMAG, SELFMAG);
  long long bytes = 0;
  assert_int_equal(fseek(file, (long)header.e_phoff, SEEK_SET), 0);
  for (int i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    assert_int_equal(fread(&segment, sizeof segment, 1, file), 1);
    if (segment.p_type == PT_LOAD) bytes += (long long)segment.p_filesz;
  }
  fclose(file);
  return bytes;
}

static void test_size(void **state) {
  (void)state;
  long long bytes = loaded_bytes();
  print_message("library without symbols: %.2f MiB\n", (double)bytes / 1048576);
  if (largest_bytes > 0) assert_true(bytes <= largest_bytes);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_load), cmocka_unit_test(test_parts),
                                          cmocka_unit_test(test_size)};

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  if (argc == 3 && strcmp(argv[1], "parts") == 0) {
    const char *const names[] = {"libstdc++.so.6", "libz.so.1", "libgomp.so.1", "libhwy.so.1", "libdnnl.so.2", argv[2]};
    load_in_turn(names, sizeof names / sizeof *names);
    return 0;
  }
  library = argv[1];
  largest_bytes = argc > 2 ? atoll(argv[2]) : 0;
  return cmocka_run_group_tests(tests, NULL, NULL);
}

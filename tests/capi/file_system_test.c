/* SPDX-License-Identifier: Apache-2.0
 *
 * File systems of the host: files in memory behind the scheme "mem", and all that can go wrong with them. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataset_fixtures.h"

static const struct {
  const char *path, *contents;
} files[] = {
    {"mem://a/1.txt", "one\ntwo\n"},
    {"mem://a/2.txt", "three\nfour"},
    {"mem://a/empty.txt", ""},
    {"mem://cat/1.png", "miau"},
    {"mem://dog/1.png", "wau"},
    {"mem://long.txt",
     "a line that is long enough to come in many pieces\nanother one, of which the same is true, and more so\nshort\n"},
};
enum { FILES = sizeof files / sizeof *files };

/* A file system that does what the test asks for. */
struct memory {
  int64_t most_bytes; /* of one read; 0 = all */
  int32_t open_code;  /* what the functions return instead of working */
  int32_t read_code;
  int32_t list_code;
  int64_t fail_offset;  /* read_code counts from here on */
  int64_t claimed;      /* bytes that a read says it gave; 0 = the truth */
  int64_t claimed_size; /* of a file; 0 = the truth */
  int is_silent;        /* fails without an error */
  atomic_int waits;     /* reads wait until they are told to end */
  int open_waits, list_waits;
  const char *version; /* of each file; NULL = there is none */
  const char *instead; /* what all files hold; NULL = the truth */
  atomic_int opened, closed, reads, destroyed, told_to_end;
};

static int32_t fail_with(const struct memory *memory, int32_t code, const char *text, tutti_error **error) {
  return memory->is_silent ? code : tutti_error_set(error, code, text);
}

static int32_t wait_until_told(struct memory *memory, tutti_cancel *cancel, tutti_error **error) {
  for (int i = 0; i < 10000; i++) {
    if (tutti_cancel_get_state(cancel) != TUTTI_CANCEL_NONE) {
      memory->told_to_end++;
      return tutti_error_set(error, TUTTI_CANCELLED, "told to end");
    }
    sleep_microseconds(1000);
  }
  return tutti_error_set(error, TUTTI_INTERNAL, "nobody ends this wait");
}

static const char *contents_of(const struct memory *memory, int file) {
  return memory->instead != NULL ? memory->instead : files[file].contents;
}

static int32_t memory_open(void *user, const char *path, tutti_cancel *cancel, void **file, int64_t *size_bytes,
                           tutti_error **error) {
  struct memory *memory = user;
  if (memory->open_waits) return wait_until_told(memory, cancel, error);
  if (memory->open_code != 0) return fail_with(memory, memory->open_code, "no key", error);
  for (int i = 0; i < FILES; i++) {
    if (strcmp(files[i].path, path) != 0) continue;
    *file = (void *)(uintptr_t)(i + 1);
    *size_bytes = memory->claimed_size != 0 ? memory->claimed_size : (int64_t)strlen(contents_of(memory, i));
    memory->opened++;
    return TUTTI_OK;
  }
  return fail_with(memory, TUTTI_NOT_FOUND, "no such object", error);
}

static int32_t memory_read(void *user, void *file, int64_t offset, void *target, int64_t size, tutti_cancel *cancel,
                           int64_t *read_bytes, tutti_error **error) {
  struct memory *memory = user;
  memory->reads++;
  if (memory->read_code != 0 && offset + size > memory->fail_offset)
    return fail_with(memory, memory->read_code, "the disk is gone", error);
  for (int i = 0; memory->waits; i++) {
    if (tutti_cancel_get_state(cancel) != TUTTI_CANCEL_NONE) {
      memory->told_to_end++;
      return tutti_error_set(error, TUTTI_CANCELLED, "told to end");
    }
    if (i > 10000) return tutti_error_set(error, TUTTI_INTERNAL, "nobody ends this read");
    sleep_microseconds(1000);
  }
  const char *contents = contents_of(memory, (int)(uintptr_t)file - 1);
  int64_t length = (int64_t)strlen(contents), most = length - offset < size ? length - offset : size;
  if (memory->most_bytes != 0 && most > memory->most_bytes) most = memory->most_bytes;
  if (most < 0) most = 0;
  memcpy(target, contents + offset, (size_t)most);
  *read_bytes = memory->claimed != 0 ? memory->claimed : most;
  return TUTTI_OK;
}

static void memory_close(void *user, void *file) {
  (void)file;
  ((struct memory *)user)->closed++;
}

static const char *memory_version(void *user, void *file) {
  (void)file;
  return ((struct memory *)user)->version;
}

/* Directories are what stands before a "/" in the names. */
static int32_t memory_list(void *user, const char *directory, tutti_cancel *cancel, tutti_list_fn add, void *listing,
                           tutti_error **error) {
  struct memory *memory = user;
  if (memory->list_waits) return wait_until_told(memory, cancel, error);
  if (memory->list_code == -1) {
    add(listing, "a/b", 0);
    add(listing, NULL, 0);
    return TUTTI_OK;
  }
  if (memory->list_code != 0) return fail_with(memory, memory->list_code, "no right to look", error);
  size_t length = strlen(directory);
  int found = 0;
  /* From the last to the first, and directories as often as they have files: the library orders them. */
  for (int i = FILES; i-- > 0;) {
    const char *rest = files[i].path + length;
    if (strncmp(files[i].path, directory, length) != 0 || (directory[length - 1] != '/' && *rest++ != '/')) continue;
    char name[64];
    size_t end = strcspn(rest, "/");
    snprintf(name, sizeof name, "%.*s", (int)end, rest);
    add(listing, name, rest[end] == '/');
    found = 1;
  }
  return found ? TUTTI_OK : fail_with(memory, TUTTI_NOT_FOUND, "no such folder", error);
}

static void memory_destroy(void *user) { ((struct memory *)user)->destroyed++; }

static const tutti_file_system functions = {
    .struct_size = sizeof functions,
    .open = memory_open,
    .read = memory_read,
    .close = memory_close,
    .list = memory_list,
    .version = memory_version,
};

static tutti_context *new_context(struct memory *memory) {
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(NULL, &context, &err));
  assert_ok(tutti_context_add_file_system(context, "mem", &functions, memory, memory_destroy, &err));
  return context;
}

/* Lines of files; the context is dropped, so the last use of the file system is that of the dataset. */
static tutti_pipeline *lines_of(tutti_context *context, const char *path) {
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_context_unref(context);
  tutti_source_text_lines(pipeline, &path, 1, NULL);
  return pipeline;
}

static void assert_lines_error(int32_t code, const char *needle, tutti_context *context, const char *path) {
  tutti_pipeline *pipeline = lines_of(context, path);
  assert_build_error(code, needle, pipeline);
}

/* All texts of the first component, with commas; ends at an error, which is handed out. */
static const char *texts_until_error(tutti_dataset *dataset, tutti_error **error) {
  static char all[512];
  size_t used = 0;
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (uint8_t more = 0;;) {
    if (tutti_iterator_next(iterator, NULL, &more, error) != TUTTI_OK || !more) break;
    tutti_tensor *text = tutti_iterator_get_component(iterator, 0);
    used += (size_t)snprintf(all + used, sizeof all - used, "%.*s,", (int)tutti_tensor_get_element_size(text, 0),
                             (const char *)tutti_tensor_get_element_data(text, 0));
  }
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  all[used] = 0;
  return all;
}

static void assert_texts(const char *expected, tutti_dataset *dataset) {
  tutti_error *error = NULL;
  assert_string_equal(texts_until_error(dataset, &error), expected);
  assert_null(error);
}

static void assert_all_closed(const struct memory *memory) {
  assert_int_equal(memory->opened, memory->closed);
  assert_int_equal(memory->destroyed, 1);
}

static void test_sources_read_through_it(void **state) {
  (void)state;
  struct memory memory = {0};
  assert_texts("one,two,three,four,", build(lines_of(new_context(&memory), "mem://a/*.txt")));
  assert_all_closed(&memory);
  memory = (struct memory){.most_bytes = 3};
  assert_texts("one,two,three,four,", build(lines_of(new_context(&memory), "mem://**/[12].txt")));
  assert_all_closed(&memory);
  assert_true(memory.reads > 6);

  memory = (struct memory){.most_bytes = 1};
  tutti_context *context = new_context(&memory);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_context_unref(context);
  tutti_pipeline_begin(pipeline, "image_folder", 1);
  tutti_pipeline_set_string(pipeline, "path", "mem://");
  tutti_pipeline_end(pipeline);
  assert_texts("miau,wau,", build(pipeline));
  assert_all_closed(&memory);
}

static void test_mistakes(void **state) {
  (void)state;
  struct memory memory = {0};
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(NULL, &context, &err));
  tutti_file_system broken = functions;
  broken.read = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "'read' of the file system is NULL",
               tutti_context_add_file_system(context, "mem", &broken, &memory, memory_destroy, &err));
  assert_int_equal(memory.destroyed, 1);
  broken = functions;
  broken.struct_size = 8;
  assert_error(TUTTI_INVALID_ARGUMENT, "struct_size",
               tutti_context_add_file_system(context, "mem", &broken, &memory, memory_destroy, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'functions' is NULL",
               tutti_context_add_file_system(context, "mem", NULL, &memory, memory_destroy, &err));
  const char *bad[] = {"", "Mem", "3s", "a b", "mem://"};
  for (int i = 0; i < 5; i++)
    assert_error(TUTTI_INVALID_ARGUMENT, "scheme",
                 tutti_context_add_file_system(context, bad[i], &functions, &memory, memory_destroy, &err));
  assert_ok(tutti_context_add_file_system(context, "mem", &functions, &memory, memory_destroy, &err));
  assert_error(TUTTI_ALREADY_EXISTS, "'mem://' already",
               tutti_context_add_file_system(context, "mem", &functions, &memory, memory_destroy, &err));
  assert_int_equal(memory.destroyed, 9);
  assert_error(TUTTI_NOT_FOUND, "tutti-none.so", tutti_context_load_file_system(context, "none", NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "not absolute", tutti_context_load_file_system(context, "./x", NULL, &err));
  assert_error(TUTTI_UNAVAILABLE, "cannot be loaded",
               tutti_context_load_file_system(context, "/proc/self/status", NULL, &err));

  /* A field that the host's header did not have is absent: paths are no patterns then. */
  broken = functions;
  broken.struct_size = offsetof(tutti_file_system, list);
  assert_ok(tutti_context_add_file_system(context, "flat", &broken, &memory, memory_destroy, &err));
  tutti_context_ref(context);
  assert_lines_error(TUTTI_NOT_FOUND, "flat://a/*.txt", context, "flat://a/*.txt");
  assert_lines_error(TUTTI_UNIMPLEMENTED, "'other://'", context, "other://x");
  assert_int_equal(memory.destroyed, 11);
}

static void test_functions_that_fail(void **state) {
  (void)state;
  struct memory memory = {.open_code = TUTTI_PERMISSION_DENIED};
  assert_lines_error(TUTTI_PERMISSION_DENIED, "no key", new_context(&memory), "mem://a/1.txt");
  assert_all_closed(&memory);
  memory = (struct memory){.open_code = TUTTI_UNAVAILABLE, .is_silent = 1};
  assert_lines_error(TUTTI_UNAVAILABLE, "cannot open 'mem://a/1.txt'", new_context(&memory), "mem://a/1.txt");
  memory = (struct memory){.list_code = TUTTI_PERMISSION_DENIED};
  assert_lines_error(TUTTI_PERMISSION_DENIED, "cannot list 'mem://a'", new_context(&memory), "mem://a/*");
  memory = (struct memory){.list_code = -1};
  assert_lines_error(TUTTI_INVALID_ARGUMENT, "expected the name of a file", new_context(&memory), "mem://*");
  memory = (struct memory){.claimed_size = -5};
  assert_lines_error(TUTTI_INVALID_ARGUMENT, "reports the size -5", new_context(&memory), "mem://a/1.txt");
  assert_all_closed(&memory);
  memory = (struct memory){0};
  assert_lines_error(TUTTI_NOT_FOUND, "no such object", new_context(&memory), "mem://a/3.txt");
}

/* The error of a walk over long.txt, after what could be read. */
static void check_walk_error(struct memory *memory, const char *before, int32_t code, const char *const *needles) {
  tutti_error *error = NULL;
  const char *texts = texts_until_error(build(lines_of(new_context(memory), "mem://long.txt")), &error);
  assert_string_equal(texts, before);
  assert_non_null(error);
  assert_int_equal(tutti_error_get_code(error), code);
  for (; *needles != NULL; needles++) {
    if (strstr(tutti_error_get_text(error), *needles) == NULL) fail_msg("%s", tutti_error_get_text(error));
  }
  tutti_error_unref(error);
  assert_all_closed(memory);
}

static void test_reads_that_fail(void **state) {
  (void)state;
  const char *const at_once[] = {"cannot read", "at offset 0 of 'mem://long.txt'", "the disk is gone", NULL};
  struct memory memory = {.read_code = TUTTI_DATA_LOSS};
  check_walk_error(&memory, "", TUTTI_DATA_LOSS, at_once);
  const char *const too_much[] = {"at offset 0 of 'mem://long.txt'", "reports that it read 100000 bytes", NULL};
  memory = (struct memory){.claimed = 100000};
  check_walk_error(&memory, "", TUTTI_INVALID_ARGUMENT, too_much);
  const char *const negative[] = {"reports that it read -1 bytes", NULL};
  memory = (struct memory){.claimed = -1};
  check_walk_error(&memory, "", TUTTI_INVALID_ARGUMENT, negative);
  /* A host's own CANCELLED is an error like any other while nobody has cancelled. */
  const char *const own[] = {"the disk is gone", NULL};
  memory = (struct memory){.read_code = TUTTI_CANCELLED};
  check_walk_error(&memory, "", TUTTI_CANCELLED, own);
  /* What was read before the file ended too early is delivered. */
  const char *const early[] = {"the file ends there, but its size was 5000", NULL};
  memory = (struct memory){.claimed_size = 5000};
  check_walk_error(&memory,
                   "a line that is long enough to come in many pieces,"
                   "another one, of which the same is true, and more so,short,",
                   TUTTI_DATA_LOSS, early);
}

/* Lines of a file behind a cache in a file of this machine. */
static tutti_pipeline *cached(struct memory *memory, const char *path, const char *key) {
  tutti_pipeline *pipeline = lines_of(new_context(memory), "mem://a/1.txt");
  tutti_pipeline_cache(pipeline, &(tutti_pipeline_cache_attrs){.path = path, .key = key});
  return pipeline;
}

/* What is cached of a file is used as long as its version is the same, and not at all where there is none. */
static void test_caches_ask_for_versions(void **state) {
  (void)state;
  char path[] = "/tmp/tutti_file_system_test_XXXXXX";
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  close(descriptor);
  unlink(path);
  struct memory memory = {0};
  tutti_pipeline *pipeline = cached(&memory, path, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "changes in the results of 'mem://a/1.txt' cannot be detected", pipeline);
  memory.version = "";
  pipeline = cached(&memory, path, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "the parameter 'key'", pipeline);

  memory.version = "first";
  assert_texts("one,two,", build(cached(&memory, path, NULL)));
  memory.instead = "six\nten\n"; /* as many bytes */
  assert_texts("one,two,", build(cached(&memory, path, NULL)));
  memory.version = "second";
  assert_texts("six,ten,", build(cached(&memory, path, NULL)));
  /* The key stands for what changes where no version does. */
  memory.version = NULL;
  assert_texts("six,ten,", build(cached(&memory, path, "1")));
  memory.instead = NULL;
  assert_texts("six,ten,", build(cached(&memory, path, "1")));
  assert_texts("one,two,", build(cached(&memory, path, "2")));
  unlink(path);
}

/* A read that waits is told when the call is over, and the next call goes on where the walk stood. */
static void check_slow_read(int by_deadline) {
  struct memory memory = {.most_bytes = 7};
  tutti_dataset *dataset = build(lines_of(new_context(&memory), "mem://long.txt"));
  tutti_iterator *iterator = NULL;
  tutti_cancel *cancel = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (int line = 0; line < 3; line++) {
    memory.waits = line < 2;
    if (line < 2) {
      assert_ok(tutti_cancel_create(&cancel, &err));
      assert_ok(tutti_cancel_set_deadline(cancel, by_deadline ? 20 : 60000, &err));
      if (!by_deadline) assert_ok(tutti_cancel_request(cancel, TUTTI_CANCEL_CANCEL, &err));
      assert_error(by_deadline ? TUTTI_DEADLINE_EXCEEDED : TUTTI_CANCELLED, "",
                   tutti_iterator_next(iterator, cancel, &more, &err));
      tutti_cancel_unref(cancel);
      memory.waits = 0;
    }
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_int_equal(more, 1);
    const char *begin[] = {"a line", "another", "short"};
    assert_memory_equal(tutti_tensor_get_element_data(tutti_iterator_get_component(iterator, 0), 0), begin[line], 5);
  }
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_int_equal(more, 0);
  assert_int_equal(memory.told_to_end, by_deadline ? 2 : 0);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  assert_all_closed(&memory);
}

static void test_slow_reads_end_in_time(void **state) {
  (void)state;
  check_slow_read(1);
  check_slow_read(0);
}

/* Walks with read-ahead threads that are left in the middle of a read. */
static void test_walks_are_left(void **state) {
  (void)state;
  struct memory memory = {.most_bytes = 7};
  tutti_pipeline *pipeline = lines_of(new_context(&memory), "mem://long.txt");
  tutti_pipeline_prefetch(pipeline, NULL);
  tutti_dataset *dataset = build(pipeline);
  memory.waits = 1;
  tutti_iterator *iterator = NULL;
  tutti_cancel *cancel = NULL;
  uint8_t more = 0;
  assert_ok(tutti_cancel_create(&cancel, &err));
  assert_ok(tutti_cancel_set_deadline(cancel, 20, &err));
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_error(TUTTI_DEADLINE_EXCEEDED, "", tutti_iterator_next(iterator, cancel, &more, &err));
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  tutti_cancel_unref(cancel);
  for (int i = 0; i < 5000 && memory.destroyed == 0; i++)
    sleep_microseconds(1000);
  assert_all_closed(&memory);
}

/* What a pipeline does while it is written, with a file system that does not answer. */
static void write_lines(tutti_pipeline *pipeline, struct memory *memory) {
  const char *path = "mem://a/1.txt";
  memory->open_waits = 1;
  tutti_source_text_lines(pipeline, &path, 1, NULL);
}

static void write_pattern(tutti_pipeline *pipeline, struct memory *memory) {
  const char *path = "mem://**/*.txt";
  memory->list_waits = 1;
  tutti_source_files(pipeline, &path, 1, NULL);
}

static void write_image_folder(tutti_pipeline *pipeline, struct memory *memory) {
  memory->list_waits = 1;
  tutti_source_image_folder(pipeline, "mem://", NULL);
}

static void write_csv(tutti_pipeline *pipeline, struct memory *memory) {
  const char *path = "mem://a/1.txt";
  memory->waits = 1;
  tutti_source_csv(pipeline, &path, 1, NULL); /* the columns are those of the header */
}

static void write_npy(tutti_pipeline *pipeline, struct memory *memory) {
  const char *array = "x=mem://a/1.txt";
  memory->waits = 1;
  tutti_source_npy(pipeline, &array, 1, NULL);
}

static void write_npz(tutti_pipeline *pipeline, struct memory *memory) {
  memory->waits = 1;
  tutti_source_npz(pipeline, "mem://a/1.txt", NULL);
}

static void write_fixed_records(tutti_pipeline *pipeline, struct memory *memory) {
  const char *path = "mem://a/1.txt", *field = "x: u8";
  tutti_source_fixed_records_attrs attrs = {.fields = &field, .fields_count = 1};
  memory->waits = 1;
  tutti_source_fixed_records(pipeline, &path, 1, &attrs);
}

static void write_idx(tutti_pipeline *pipeline, struct memory *memory) {
  memory->waits = 1;
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, "mem://a/1.txt");
}

static void write_file_cache(tutti_pipeline *pipeline, struct memory *memory) {
  write_lines(pipeline, &(struct memory){0});
  memory->open_waits = 1; /* by now the source has seen its file; the cache asks again */
  tutti_pipeline_cache(pipeline, &(tutti_pipeline_cache_attrs){.path = "never-written.elements"});
}

static void test_hanging_builds_end_in_time(void **state) {
  (void)state;
  void (*const writes[])(tutti_pipeline *, struct memory *) = {
      write_lines, write_pattern, write_image_folder, write_csv,           write_npy,
      write_npz,   write_idx,     write_file_cache,   write_fixed_records,
  };
  for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
    for (int by_deadline = 0; by_deadline < 2; by_deadline++) {
      struct memory memory = {0};
      tutti_context *context = new_context(&memory);
      tutti_pipeline *pipeline = NULL;
      tutti_cancel *cancel = NULL;
      assert_ok(tutti_pipeline_create(context, &pipeline, &err));
      assert_ok(tutti_cancel_create(&cancel, &err));
      tutti_pipeline_set_cancel(pipeline, cancel);
      tutti_context_unref(context);
      assert_ok(tutti_cancel_set_deadline(cancel, by_deadline ? 20 : 60000, &err));
      if (!by_deadline) assert_ok(tutti_cancel_request(cancel, TUTTI_CANCEL_CANCEL, &err));
      writes[i](pipeline, &memory);
      tutti_cancel_unref(cancel);
      assert_build_error(by_deadline ? TUTTI_DEADLINE_EXCEEDED : TUTTI_CANCELLED, "", pipeline);
      assert_int_equal(memory.told_to_end, by_deadline);
      assert_all_closed(&memory);
    }
  }
}

/* The token is that of the build alone. */
static void test_walks_do_not_follow_the_token_of_the_build(void **state) {
  (void)state;
  struct memory memory = {0};
  tutti_context *context = new_context(&memory);
  tutti_pipeline *pipeline = NULL;
  tutti_cancel *cancel = NULL;
  const char *path = "mem://a/*.txt";
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  assert_ok(tutti_cancel_create(&cancel, &err));
  tutti_context_unref(context);
  tutti_pipeline_set_cancel(pipeline, cancel);
  tutti_source_text_lines(pipeline, &path, 1, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_ok(tutti_cancel_request(cancel, TUTTI_CANCEL_CANCEL, &err));
  tutti_cancel_unref(cancel);
  assert_texts("one,two,three,four,", dataset);
  assert_all_closed(&memory);
  pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_set_cancel(pipeline, (tutti_cancel *)pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "cancel", pipeline);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sources_read_through_it),
    cmocka_unit_test(test_mistakes),
    cmocka_unit_test(test_functions_that_fail),
    cmocka_unit_test(test_reads_that_fail),
    cmocka_unit_test(test_caches_ask_for_versions),
    cmocka_unit_test(test_slow_reads_end_in_time),
    cmocka_unit_test(test_walks_are_left),
    cmocka_unit_test(test_hanging_builds_end_in_time),
    cmocka_unit_test(test_walks_do_not_follow_the_token_of_the_build),
};
CAPI_TEST_MAIN(tests)

/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "released_fixtures.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

void for_each_release(const char *name, void (*check)(const char *release)) {
  const char *testdata = getenv("TUTTI_TESTDATA");
  if (testdata == NULL) test_skip();
  char folder[512], release[1024], path[1536];
  int count = 0;
  join_path(folder, sizeof folder, testdata, "released");
  DIR *releases = opendir(folder);
  assert_non_null(releases);
  for (struct dirent *entry = readdir(releases); entry != NULL; entry = readdir(releases)) {
    struct stat status;
    join_path(release, sizeof release, folder, entry->d_name);
    join_path(path, sizeof path, release, name);
    if (entry->d_name[0] == '.' || stat(path, &status) != 0) continue;
    check(release);
    count++;
  }
  closedir(releases);
  assert_true(count >= 1);
}

char *read_bytes(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) print_error("cannot open %s\n", path);
  assert_non_null(file);
  char *bytes = malloc(1 << 20);
  assert_non_null(bytes);
  *size = fread(bytes, 1, (1 << 20) - 1, file);
  assert_true(feof(file));
  bytes[*size] = 0;
  fclose(file);
  return bytes;
}

void write_bytes(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

void copy_folder(const char *from, const char *to) {
  assert_int_equal(mkdir(to, 0755), 0);
  DIR *entries = opendir(from);
  assert_non_null(entries);
  for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    char source[1536], target[1536];
    size_t size;
    if (entry->d_name[0] == '.') continue;
    join_path(source, sizeof source, from, entry->d_name);
    join_path(target, sizeof target, to, entry->d_name);
    char *bytes = read_bytes(source, &size);
    write_bytes(target, bytes, size);
    free(bytes);
  }
  closedir(entries);
}

void replace_in_file(const char *path, const char *from, const char *to) {
  size_t size;
  char *bytes = read_bytes(path, &size), *found = strstr(bytes, from);
  if (found == NULL) print_error("'%s' is not in %s\n", from, path);
  assert_non_null(found);
  assert_int_equal(strlen(from), strlen(to));
  memcpy(found, to, strlen(to));
  write_bytes(path, bytes, size);
  free(bytes);
}

uint32_t checksum_of(const char *bytes, size_t size) {
  uint32_t sum = 0xffffffffu;
  for (size_t i = 0; i < size; i++) {
    sum ^= (uint8_t)bytes[i];
    for (int bit = 0; bit < 8; bit++)
      sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~sum;
}

int run_or_write(int argc, char **argv, const struct CMUnitTest *tests, size_t count, CMUnitTestFunction write) {
  if (argc == 3 && strcmp(argv[1], "write") == 0) {
    const struct CMUnitTest writing[] = {cmocka_unit_test_prestate(write, argv[2])};
    return cmocka_run_group_tests(writing, NULL, NULL);
  }
  return _cmocka_run_group_tests("released files", tests, count, remember_live_objects, assert_nothing_left);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of released files share. Each release has a folder of its own, tests/testdata/released/<release>, with
 * what its library wrote; packaging/abi/README.md tells how they are made. */
#ifndef TUTTI_TESTS_CAPI_RELEASED_FIXTURES_H_
#define TUTTI_TESTS_CAPI_RELEASED_FIXTURES_H_

#include "capi_testing.h"

/* Calls `check` with the folder of each release that has `name` in it. There is at least one. */
void for_each_release(const char *name, void (*check)(const char *release));

/* A whole file, which the caller frees, with a zero behind its bytes; and the reverse. */
char *read_bytes(const char *path, size_t *size);
void write_bytes(const char *path, const void *bytes, size_t size);

/* Copies a folder of files; `to` is made. */
void copy_folder(const char *from, const char *to);

/* Replaces the first `from` in a file by `to`, of the same length; the test fails when there is none. */
void replace_in_file(const char *path, const char *from, const char *to);

/* The checksum of files, worked out bit by bit (RFC 3720, appendix B.4). */
uint32_t checksum_of(const char *bytes, size_t size);

/* The main program: the tests, or, for "write DIRECTORY", `write` with the directory. */
int run_or_write(int argc, char **argv, const struct CMUnitTest *tests, size_t count, CMUnitTestFunction write);

#endif /* TUTTI_TESTS_CAPI_RELEASED_FIXTURES_H_ */

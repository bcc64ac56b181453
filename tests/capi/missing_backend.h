/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of backends that this machine may lack, from C or C++:
 *
 *   if (is_missing(plugin)) return TEST_IS_SKIPPED;
 */
#ifndef TUTTI_TESTS_CAPI_MISSING_BACKEND_H_
#define TUTTI_TESTS_CAPI_MISSING_BACKEND_H_

#ifdef __cplusplus
extern "C" {
#endif

enum { TEST_IS_SKIPPED = 77 };

/* Whether this machine lacks what a backend (a name, or a path of a plug-in) needs; says so. */
int is_missing(const char *backend);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_TESTS_CAPI_MISSING_BACKEND_H_ */

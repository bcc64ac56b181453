/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes and errors, and the conventions of the whole C interface.
 *
 * Handles    Every object is an opaque handle (tutti_graph *, tutti_dataset *, ...). It counts references atomically:
 *            tutti_T_ref adds a reference, tutti_T_unref drops one, tutti_T_unref(NULL) does nothing. References may be
 *            dropped in any order. A handle that is NULL, of another type, already dropped or not from this library
 *            is TUTTI_INVALID_ARGUMENT, never a crash.
 * Results    A function that can fail returns an int32_t code, 0 = TUTTI_OK, and takes `tutti_error **err` last. err
 *            may be NULL; otherwise *err is set only on failure and the caller owns it. Output handles are NULL after a
 *            failure, other outputs are unchanged, and there is nothing to clean up.
 * Ownership  _create, _open, _from_ and _take_ return a reference to the caller; _get_ lends: the result is valid while
 *            its object lives (or until the next changing call on it, if the function says so).
 * Arguments  Inputs, then tutti_cancel * if the call can wait (NULL = wait indefinitely), then outputs, then err.
 * Text       UTF-8, zero-terminated. Counts and sizes are int64_t, truth values uint8_t, enumerations int32_t.
 * Threads    Dataset, strategy, sealed graph and error are immutable and may be shared. Other objects may be used from
 *            any thread, one call at a time, unless a function says more. No state is kept per thread.
 * Processes  A process that was forked from one that uses the library does not have its threads. In it, _unref and the
 *            release functions of exported objects (Arrow, DLPack) do nothing and return immediately; every function
 *            with `err` is TUTTI_FAILED_PRECONDITION; getters may return the values for a wrong handle. The parent is
 *            not affected. Programs that are executed (exec, posix_spawn) start normally.
 */
#ifndef TUTTI_STATUS_H_
#define TUTTI_STATUS_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The canonical codes, as gRPC and Abseil number them. */
#define TUTTI_OK 0
#define TUTTI_CANCELLED 1
#define TUTTI_UNKNOWN 2
#define TUTTI_INVALID_ARGUMENT 3
#define TUTTI_DEADLINE_EXCEEDED 4
#define TUTTI_NOT_FOUND 5
#define TUTTI_ALREADY_EXISTS 6
#define TUTTI_PERMISSION_DENIED 7
#define TUTTI_RESOURCE_EXHAUSTED 8
#define TUTTI_FAILED_PRECONDITION 9
#define TUTTI_ABORTED 10
#define TUTTI_OUT_OF_RANGE 11
#define TUTTI_UNIMPLEMENTED 12
#define TUTTI_INTERNAL 13
#define TUTTI_UNAVAILABLE 14
#define TUTTI_DATA_LOSS 15
#define TUTTI_UNAUTHENTICATED 16

/* An error: code, domain ("tutti", "user", "io", ...), message, named details and the error that caused it. Immutable.
 */
typedef struct tutti_error tutti_error;

/* The name of a code, such as "INVALID_ARGUMENT"; "UNKNOWN" for a number that is not a code. Never NULL; always valid.
 */
TUTTI_API const char *tutti_code_get_name(int32_t code);

TUTTI_API void tutti_error_ref(tutti_error *error);
TUTTI_API void tutti_error_unref(tutti_error *error);

/* The code; TUTTI_INVALID_ARGUMENT when `error` is not an error handle. */
TUTTI_API int32_t tutti_error_get_code(const tutti_error *error);

/* A number with a meaning in the domain of the error (an errno, a code of a library); 0 = none. */
TUTTI_API int64_t tutti_error_get_subcode(const tutti_error *error);

/* The origin of the error: "tutti", "user" for errors of callbacks, or a library. Empty when `error` is not an error
 * handle. */
TUTTI_API const char *tutti_error_get_domain(const tutti_error *error);

/* One line that says what was wrong, without the causes. */
TUTTI_API const char *tutti_error_get_message(const tutti_error *error);

/* The complete error on one line: code, message and every cause, outermost first. */
TUTTI_API const char *tutti_error_get_text(const tutti_error *error);

/* The complete error as JSON on one line, for logs: code (its name), domain, message, and where there are any, subcode,
 * details (an object of texts) and cause (an error). Empty when `error` is not an error handle. */
TUTTI_API const char *tutti_error_get_json(const tutti_error *error);

/* The error that led to this one, lent; NULL when there is none. */
TUTTI_API tutti_error *tutti_error_get_cause(const tutti_error *error);

/* Details are pairs of text such as ("node", "dense_1/matmul") or ("step", "120"). Index out of range gives NULL. */
TUTTI_API int64_t tutti_error_get_detail_count(const tutti_error *error);
TUTTI_API const char *tutti_error_get_detail_key(const tutti_error *error, int64_t index);
TUTTI_API const char *tutti_error_get_detail_value(const tutti_error *error, int64_t index);

/* Creates an error, for callbacks that must report one. `domain` NULL means "user"; `cause` may be NULL and is not
 * consumed. `code` must not be TUTTI_OK. */
TUTTI_API int32_t tutti_error_create(int32_t code, const char *domain, const char *message, const tutti_error *cause,
                                     tutti_error **out, tutti_error **err);

/* Shorthand for callbacks: stores a new error of domain "user" in *err (when err is not NULL) and returns `code`. */
TUTTI_API int32_t tutti_error_set(tutti_error **err, int32_t code, const char *message);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_STATUS_H_ */

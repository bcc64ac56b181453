/* SPDX-License-Identifier: Apache-2.0
 *
 * Options: named, typed values checked against a schema.
 *
 * A schema ("context", "run", "train", "predictor", "cluster") lists the keys of one kind of call, each with type,
 * default, bounds and documentation. Setters do not report errors: the first wrong key, type or bound is stored and
 * reported by the call that uses the options, with the most similar key that exists. Calls copy the options, so an
 * object can be changed and used again.
 *
 * Threads: one call at a time.
 */
#ifndef TUTTI_OPTIONS_H_
#define TUTTI_OPTIONS_H_

#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_options tutti_options;

#define TUTTI_OPTION_BOOL 1
#define TUTTI_OPTION_I64 2
#define TUTTI_OPTION_F64 3
#define TUTTI_OPTION_STRING 4

/* Empty options of a schema; TUTTI_NOT_FOUND, which names the schemas, for an unknown schema. */
TUTTI_API int32_t tutti_options_create(const char *schema, tutti_options **out, tutti_error **err);
TUTTI_API void tutti_options_ref(tutti_options *options);
TUTTI_API void tutti_options_unref(tutti_options *options);

TUTTI_API void tutti_options_set_bool(tutti_options *options, const char *key, uint8_t value);
TUTTI_API void tutti_options_set_i64(tutti_options *options, const char *key, int64_t value);
TUTTI_API void tutti_options_set_f64(tutti_options *options, const char *key, double value);
/* The text is copied. */
TUTTI_API void tutti_options_set_string(tutti_options *options, const char *key, const char *value);
/* Sets every member of a JSON object, such as {"seed": 7, "model_dir": "out"}. */
TUTTI_API void tutti_options_set_json(tutti_options *options, const char *text);

/* Sets each key that has an environment variable (member "environment" of its description) which is set and not empty,
 * unless the key was set before. Schema "context": pjrt_plugin from TPU_LIBRARY_PATH; "cluster": job_secret from
 * TUTTI_JOB_SECRET. Nothing happens in a set-user-ID program. */
TUTTI_API void tutti_options_set_from_environment(tutti_options *options);

/* The first error of a setter, or TUTTI_OK. */
TUTTI_API int32_t tutti_options_check(const tutti_options *options, tutti_error **err);

/* A JSON object of all keys with the effective value and its origin ("set", "environment" or "default"); "(hidden)" for
 * a secret that was set. Valid until the options change. NULL when `options` is not an options handle. */
TUTTI_API const char *tutti_options_get_json(tutti_options *options);

/* The keys of a schema: their number, and a JSON object {key, type, default, minimum, maximum, documentation} for each,
 * with secret = true for a key whose value is hidden. The text is valid as long as the library is loaded. */
TUTTI_API int64_t tutti_options_count_keys(const char *schema);
TUTTI_API const char *tutti_options_describe_key(const char *schema, int64_t index);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_OPTIONS_H_ */

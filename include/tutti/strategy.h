/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategies: on which devices a model runs. The model that training gives does not depend on the strategy, for any
 * number of replicas and any batch size (up to floating-point rounding); only the time it takes does.
 *
 * Threads: immutable; may be shared.
 */
#ifndef TUTTI_STRATEGY_H_
#define TUTTI_STRATEGY_H_

#include <tutti/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_strategy tutti_strategy;

/* Everything on one device, such as "cpu:0"; NULL = the context's first. */
TUTTI_API int32_t tutti_strategy_create_one_device(tutti_context *context, const char *device, tutti_strategy **out,
                                                   tutti_error **err);

/* One replica per device, kept equal. `count` 0 = every device of the context. Naming a device twice is an error. */
TUTTI_API int32_t tutti_strategy_create_mirrored(tutti_context *context, const char *const *devices, int64_t count,
                                                 tutti_strategy **out, tutti_error **err);

TUTTI_API void tutti_strategy_ref(tutti_strategy *strategy);
TUTTI_API void tutti_strategy_unref(tutti_strategy *strategy);

/* The number of replicas; -1 when `strategy` is not a strategy handle. */
TUTTI_API int64_t tutti_strategy_get_replica_count(const tutti_strategy *strategy);
/* For input that is divided among processes: how many inputs the run reads, and the number of the one that this process
 * reads; -1 when `strategy` is not a strategy handle. What a process reads is shared among all of its replicas, so
 *   tutti_pipeline_shard(pipeline, tutti_strategy_get_input_pipeline_count(strategy),
 *                        tutti_strategy_get_input_pipeline_id(strategy));
 * before shuffle and batch gives each element to exactly one process, for any number of devices. Do not shard by the
 * number of replicas: with several of them in a process, elements would be lost. The strategies of this version run in
 * one process: 1 and 0. */
TUTTI_API int64_t tutti_strategy_get_input_pipeline_count(const tutti_strategy *strategy);
TUTTI_API int64_t tutti_strategy_get_input_pipeline_id(const tutti_strategy *strategy);
/* The device of a replica; NULL when out of range. */
TUTTI_API const char *tutti_strategy_get_device(const tutti_strategy *strategy, int64_t replica);

/* A context, lent, whose default strategy is this one: what is made from it uses the strategy without being told. */
TUTTI_API tutti_context *tutti_strategy_get_context(tutti_strategy *strategy);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_STRATEGY_H_ */

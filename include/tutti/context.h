/* SPDX-License-Identifier: Apache-2.0
 *
 * A context owns devices, threads, memory budgets and the log sink. Objects made from it belong to it and must not be
 * mixed with objects of another. Where a function takes a context, NULL means the default one, made on first use: its
 * devices are the machine's GPUs, "cuda:0", "cuda:1", ..., where a backend for them is installed and can be used and a
 * device node of the driver is there (TUTTI_GPU_NODE in the environment names another to look for), else every CPU
 * core, "cpu:0", "cpu:1", ... With the option backend "cuda,cpu" a context has the devices of both. That is not the
 * default: beside GPUs processors add little to what they predict, take the cores from the input pipeline for it, and
 * make the last digits of a row depend on who computed it.
 *
 * Threads: every function is safe from any thread.
 */
#ifndef TUTTI_CONTEXT_H_
#define TUTTI_CONTEXT_H_

#include <tutti/cancel.h>
#include <tutti/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_context tutti_context;

#define TUTTI_LOG_DEBUG 1
#define TUTTI_LOG_INFO 2
#define TUTTI_LOG_WARNING 3
#define TUTTI_LOG_ERROR 4

/* Receives one line of log, without a newline. `text` is valid during the call. May be called from any thread of the
 * library, one call at a time; must not call back into the library. */
typedef void (*tutti_log_fn)(void *user, int32_t severity, const char *text);

/* Frees a callback's user pointer; called exactly once, also when the registration fails. */
typedef void (*tutti_destroy_fn)(void *user);

/* Options of schema "context" (NULL = defaults): backend, plugin, logical_devices, gpus, threads, plan_cache,
 * gpu_memory_fraction, gpu_uses_host_memory, memory_bytes.
 * What needs more than memory_bytes, or than gpu_memory_fraction of a GPU, fails with TUTTI_RESOURCE_EXHAUSTED, which
 * names the need and the budget, and leaves the rest as it was. Nothing is set aside: memory of devices is taken when
 * something needs it and given back to them, not to the context, when nothing does any more: what an estimator trained
 * with, and the weights of a predictor, at the latest with its last handle. Room for intermediate results keeps, until
 * then, the size of the largest batch. What drivers and libraries of kernels take for themselves is not counted, and
 * may stay until the process ends.
 * `threads` (0 = the cores that the process may use by its affinity mask and control group) bounds what one call keeps
 * busy: each device has one thread, and up to threads_per_replica if all devices can have as many; the rest, one at
 * least, is for the input pipeline. */
TUTTI_API int32_t tutti_context_create(const tutti_options *options, tutti_context **out, tutti_error **err);
TUTTI_API void tutti_context_ref(tutti_context *context);
TUTTI_API void tutti_context_unref(tutti_context *context);

/* Sends the context's log to `log` (NULL = nowhere, the default); replaces the sink before. */
TUTTI_API int32_t tutti_context_set_log(tutti_context *context, tutti_log_fn log, void *user, tutti_destroy_fn destroy,
                                        int32_t minimum_severity, tutti_error **err);

/* The devices of the context; -1 when `context` is not a context handle. NULL = the default context. */
TUTTI_API int64_t tutti_context_get_device_count(tutti_context *context);

/* A device's name, such as "cpu:0", as strategies take it; NULL when the index is out of range. */
TUTTI_API const char *tutti_context_get_device_name(tutti_context *context, int64_t index);

/* A JSON object about a device: name, backend, kind, memory_bytes (0 = not limited), description, reaches (names of the
 * devices whose memory it reads without the host's help; none where all share the host's), links (of each of these on
 * another GPU, as {"cuda:1": {"rank": 0, "atomics": true}, ...}: 0 for the fastest kind of connection that there is in
 * the machine, more for slower ones, and whether atomic operations work across it), pci (its address on the bus) and
 * numa_node where these are known, memory (the name of its memory; devices with equal ones share it), libraries (what
 * its backend makes use of, as {"cuDNN": "9.19.0", ...}: by name a version, or "is missing: " and why; the first call
 * loads them). NULL as above. */
TUTTI_API const char *tutti_context_describe_device(tutti_context *context, int64_t index);

/* Starts to record what trainings, evaluations and predictions of the context do, from their next step or batch on:
 * each kernel with the time that it takes on its device, the steps, and what they wait for. A batch that is evaluated,
 * or the part of one that a device predicts, is a step. Steps are slower meanwhile: GPUs get kernels one by one.
 * `trace_path` (NULL or "" = none) is the file that tutti_context_stop_profile writes the trace to, for Perfetto or
 * chrome://tracing. TUTTI_FAILED_PRECONDITION while a profile is running already. */
TUTTI_API int32_t tutti_context_start_profile(tutti_context *context, const char *trace_path, tutti_error **err);
/* Ends it and reports as JSON: {"seconds", "steps", "devices": [{"device", "utilisation", "idle", "kernels"}, ...],
 * "replicas": [{"replica", "steps", "step_ms", "compute_ms", "input_ms", "communication_ms", "host_ms"}, ...],
 * "layers": [{"layer", "forward_ms", "backward_ms", "update_ms", "share"}, ...], "forgotten", "text"}: shares of the
 * time from the first to the last recorded step, means over steps, the dearest layer first, the events that did not
 * fit into memory, and all of it as a table for people. Lent until the next call for the context.
 * TUTTI_FAILED_PRECONDITION when no profile runs. */
TUTTI_API int32_t tutti_context_stop_profile(tutti_context *context, const char **out, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_CONTEXT_H_ */

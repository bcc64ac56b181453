/* SPDX-License-Identifier: Apache-2.0
 *
 * A context owns devices, threads, memory budgets and the log sink. Objects created from it belong to it and must not
 * be mixed with objects of another context. If a function takes a context, NULL means the default context, which is
 * created on first use. Its devices are the GPUs of the machine, "cuda:0", "cuda:1", ..., if a backend for them is
 * installed and usable and a device node of the driver exists (the environment variable TUTTI_GPU_NODE names another
 * node to check), otherwise every CPU core, "cpu:0", "cpu:1", ... With the option backend "cuda,cpu" a context has the
 * devices of both. That is not the default: next to GPUs, CPUs add little to predictions, take cores from the input
 * pipeline, and make the last digits of a row depend on the device that computed it.
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

/* Receives one line of the log, without a newline. `text` is valid during the call. May be called from any thread of
 * the library, one call at a time; must not call the library. */
typedef void (*tutti_log_fn)(void *user, int32_t severity, const char *text);

/* Frees a callback's user pointer; called exactly once, also when the registration fails. */
typedef void (*tutti_destroy_fn)(void *user);

/* Options of schema "context" (NULL = defaults): backend, plugin, logical_devices, gpus, threads, plan_cache,
 * gpu_memory_fraction, allow_growth, gpu_uses_host_memory, pjrt_plugin, pjrt_topology,
 * memory_bytes, log_level.
 * An operation that needs more than memory_bytes, or than gpu_memory_fraction of a GPU, fails with
 * TUTTI_RESOURCE_EXHAUSTED, which names the needed size and the budget, and changes nothing else. No memory is reserved
 * in advance: device memory is allocated on demand, and returned to the devices when it is no longer needed. The memory
 * of a training, and the weights of a predictor, are returned at the latest with the last handle. Until then the
 * buffers for intermediate results keep the size for the largest batch. Memory that drivers and kernel libraries
 * allocate is not counted, and may stay allocated until the process ends.
 * `threads` (0 = the cores that the affinity mask and the control group of the process allow) limits the threads that
 * one call keeps busy: each device has one thread, and up to threads_per_replica if that is possible for all devices;
 * the other threads, at least one, are for the input pipeline. */
TUTTI_API int32_t tutti_context_create(const tutti_options *options, tutti_context **out, tutti_error **err);
TUTTI_API void tutti_context_ref(tutti_context *context);
TUTTI_API void tutti_context_unref(tutti_context *context);

/* Sends the log of the context to `log` (NULL = nowhere); replaces the previous sink. Without this call it goes
 * nowhere, or to standard error as the option log_level, or the environment variable TUTTI_LOG (debug, info, warning,
 * error, none), says. */
TUTTI_API int32_t tutti_context_set_log(tutti_context *context, tutti_log_fn log, void *user, tutti_destroy_fn destroy,
                                        int32_t minimum_severity, tutti_error **err);

/* The number of devices of the context; -1 when `context` is not a context handle. NULL = the default context. */
TUTTI_API int64_t tutti_context_get_device_count(tutti_context *context);

/* The name of a device, such as "cpu:0", as used by strategies; NULL when the index is out of range. */
TUTTI_API const char *tutti_context_get_device_name(tutti_context *context, int64_t index);

/* A JSON object that describes a device: name, backend, kind, memory_bytes (0 = not limited), description, reaches
 * (names of the devices whose memory it reads without the host; empty if all devices use host memory), links (for each
 * of these on another GPU, as {"cuda:1": {"rank": 0, "atomics": true}, ...}: rank 0 is the fastest kind of connection
 * in the machine, higher ranks are slower; atomics: whether atomic operations work across the link), pci (its address
 * on the bus) and numa_node if known, memory (the name of its memory; devices with the same name share it), libraries
 * (the libraries that its backend uses, as {"cuDNN": "9.19.0", ...}: a version, or "is missing: " and the reason; the
 * first call loads them). NULL as above. */
TUTTI_API const char *tutti_context_describe_device(tutti_context *context, int64_t index);

/* Starts a profile of the trainings, evaluations and predictions of the context, from their next step or batch on: each
 * kernel with its time on the device, the steps, and their waits. A batch that is evaluated, or the part of one that a
 * device predicts, is a step. Steps are slower meanwhile, since GPU kernels are launched one by one. `trace_path` (NULL
 * or "" = none) is where tutti_context_stop_profile writes the trace: a file for Perfetto or chrome://tracing; or a
 * directory (one that is there, or a path that ends in "/") that TensorBoard reads: its profile plug-in and the program
 * xprof find DIRECTORY/plugins/profile/TIME/HOST.xplane.pb, with steps, waits for input and the time of each op. A path
 * that ends in ".xplane.pb" is such a file itself. TUTTI_FAILED_PRECONDITION if a profile is already running. */
TUTTI_API int32_t tutti_context_start_profile(tutti_context *context, const char *trace_path, tutti_error **err);
/* Ends the profile and reports as JSON: {"seconds", "steps", "devices": [{"device", "utilisation", "idle", "kernels"},
 * ...], "replicas": [{"replica", "steps", "step_ms", "compute_ms", "input_ms", "communication_ms", "host_ms"}, ...],
 * "layers": [{"layer", "forward_ms", "backward_ms", "update_ms", "share"}, ...], "forgotten", "text"}: shares of the
 * time from the first to the last recorded step, means over steps, the most expensive layer first, the number of events
 * that did not fit into memory, and everything as a table for people. Written into the folder of a run as profile.json,
 * the command "tutti report" shows it. Lent until the next call for the context.
 * TUTTI_FAILED_PRECONDITION if no profile is running. */
TUTTI_API int32_t tutti_context_stop_profile(tutti_context *context, const char **out, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_CONTEXT_H_ */

// SPDX-License-Identifier: Apache-2.0
//
// The C tables between tutti and a backend (the code that runs graphs on one kind of device). For people who write a
// backend; programs that train or predict include <tutti/tutti.h> instead.
//
// A backend is one entry function that returns one table of functions. The same entry is linked in or found with
// dlopen() in a shared module that exports nothing but `tutti_backend_entry`.
//
// Life of a program, in calls:
//
//   api = tutti_backend_entry(TUTTI_BACKEND_ABI_VERSION)
//   api->create(host, options, &backend)
//     api->device->open(backend, 0, "{}", &device)
//       api->buffer->allocate(device, bytes, alignment, &buffer)          // arenas, workspace, inputs, outputs
//       api->stream->create(device, &stream)
//       api->layout->plan(device, request, write, user)                   // optional: layouts of state entries
//       api->executable->compile(request, &executable)                    // once per graph and shape
//       api->executable->describe(executable, write, user)                // how much of what bind and run need
//         api->program->bind(executable, bind_request, &program)          // once per device slot
//           for segment in 0 .. external_count:
//             api->program->run(program, segment, arguments, stream)
//             the host runs external node `segment`, unless it was the last segment
//         api->program->release(program)
//       api->executable->release(executable)
//     api->device->close(device)
//   api->destroy(backend)
//
// Conventions
//  * Every struct begins with `struct_size`, set by the side that fills it. Fields are only appended; one beyond it is
//    absent and has its documented default. A table pointer or function marked (optional) may be NULL.
//  * A fallible function returns 0 or a canonical code (tutti_error_code, <tutti/status.h>), takes a sink last, and
//    hands code and text to host->set_error(sink, ...). On failure outputs stay untouched and nothing is released.
//  * Text is UTF-8; going in NUL terminated, coming out handed to a tutti_text_writer; borrowed for that one call.
//  * `release`, `close`, `destroy` accept NULL. Children are released before their parents.
//  * Handles may be used from any thread. compile, describe, allocate and open may run concurrently; one stream and one
//    program are used by one thread at a time. Different programs of one executable may run at the same time.
//  * No exception, allocator, type or thread-local state of either side crosses.
#ifndef TUTTI_PLUGIN_BACKEND_H_
#define TUTTI_PLUGIN_BACKEND_H_

#include <stdint.h>
#include <tutti/plugin/clique.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Version of the tables below. Raised when a field changes meaning; appended fields do not raise it.
#define TUTTI_BACKEND_ABI_VERSION 1u

/// Name of the one symbol that a plug-in exports.
#define TUTTI_BACKEND_ENTRY_NAME "tutti_backend_entry"

typedef struct tutti_backend tutti_backend;
typedef struct tutti_device tutti_device;
typedef struct tutti_device_buffer tutti_device_buffer;
typedef struct tutti_stream tutti_stream;
typedef struct tutti_event tutti_event;
typedef struct tutti_executable tutti_executable;
typedef struct tutti_program tutti_program;
typedef struct tutti_recording tutti_recording;

/// Where one call puts its error; owned by the caller of the call and valid until it returns.
typedef struct tutti_error_sink tutti_error_sink;

/// Takes `length` bytes of text (not NUL terminated); called once per call that takes a writer.
typedef void (*tutti_text_writer)(void *user, const char *text, uint64_t length);

// ---- Services of the host ------------------------------------------------------------------------------------------

/// What the host does for a backend. Lent to `create`, valid until `destroy` has returned. For any thread.
typedef struct tutti_backend_host {
  uint64_t struct_size;
  void *user;  ///< first argument of the functions below that take `user`

  /// `bytes` of host memory aligned to `alignment` (a power of two), or NULL. Counted against the memory budget.
  void *(*allocate)(void *user, uint64_t bytes, uint64_t alignment);
  /// Gives memory of allocate back; `bytes` as then. NULL is a no-op.
  void (*release)(void *user, void *memory, uint64_t bytes);

  /// One log line. severity: 0 debug, 1 info, 2 warning, 3 error.
  void (*log)(void *user, int32_t severity, const char *message);

  /// Begins a named span of the trace and returns its number; 0 when tracing is off. `name` is copied.
  uint64_t (*trace_begin)(void *user, const char *name);
  void (*trace_end)(void *user, uint64_t span);

  /// Threads that the backend may keep busy in addition to the calling one.
  int32_t (*thread_budget)(void *user);

  /// Nonzero once the token of the current request was cancelled. `cancel` may be NULL (never cancelled).
  int32_t (*is_cancelled)(void *user, const void *cancel);

  /// Fills an error sink. `message` is copied. A second call on the same sink is ignored.
  void (*set_error)(tutti_error_sink *sink, int32_t code, const char *message);
  /// The number of a row of the trace for a device; equal names have one row. `name` is copied.
  int32_t (*trace_track)(void *user, const char *name);
  /// A span on such a row that has ended, by CLOCK_MONOTONIC. `category`: "kernel", "copy" for what only moves data.
  void (*trace_record)(void *user, int32_t track, const char *category, const char *name, int64_t begin_ns,
                       int64_t duration_ns);
  /// (optional; appended, both or none) What the processes of a job tell each other, by key; NULL for a process alone.
  /// Keys and values are bytes. shared_get waits so long for the key, and not at all for 0. Both return 0 or a status
  /// code, such as NOT_FOUND for a key that is not there in time; shared_get writes the value, and both, where they
  /// fail, one sentence why.
  int32_t (*shared_put)(void *user, const char *key, uint64_t key_length, const char *value, uint64_t value_length,
                        tutti_text_writer write, void *write_user);
  int32_t (*shared_get)(void *user, const char *key, uint64_t key_length, int64_t timeout_ms, tutti_text_writer write,
                        void *write_user);
} tutti_backend_host;

// ---- Devices, memory, order ----------------------------------------------------------------------------------------

/// Devices of a backend. Logical devices are devices to all above: "cpu:0" and "cpu:1" may be the same silicon.
typedef struct tutti_device_table {
  uint64_t struct_size;
  /// Number of devices, numbered from 0. May be 0 (no such hardware here).
  int32_t (*count)(tutti_backend *backend);
  /// Writes {"name": "cpu:0", "kind": "cpu", "memory_bytes": ..., "description": "..."} without opening the device.
  /// Devices of equal "kind" run each other's executables. "reaches": names of those whose memory it reads directly.
  /// "memory": the name of its memory, which others may share. (optional) "links": of devices on other silicon that it
  /// reaches, {"cuda:1": {"rank": 0 for the fastest kind of connection, more for slower ones, "atomics": whether atomic
  /// operations work across it}, ...}; "pci": its address on the bus; "numa_node": whose memory is nearest, or -1;
  /// "only_compiles": true of a device that is not here, for which programs are compiled, and none runs.
  int32_t (*describe)(tutti_backend *backend, int32_t index, tutti_text_writer write, void *user,
                      tutti_error_sink *sink);
  /// Opens device `index`. `options_json` is an object of backend-defined settings; an unknown key is an error.
  int32_t (*open)(tutti_backend *backend, int32_t index, const char *options_json, tutti_device **device,
                  tutti_error_sink *sink);
  void (*close)(tutti_device *device);
  /// (optional; appended) Bytes of its memory that may be allocated now, or -1 if that cannot be told.
  int64_t (*available_bytes)(tutti_device *device);
  /// (optional; appended) Writes an object of the libraries that the backend makes use of: by name a version, or "is
  /// missing: " and one sentence. Opens them, but no device.
  int32_t (*libraries)(tutti_backend *backend, tutti_text_writer write, void *user, tutti_error_sink *sink);
} tutti_device_table;

/// Memory of a device. Copies are ordered on `stream`; stream NULL means done when the call returns.
typedef struct tutti_buffer_table {
  uint64_t struct_size;
  /// `bytes` may be 0. `alignment` is a power of two up to 4096. Contents are undefined.
  int32_t (*allocate)(tutti_device *device, uint64_t bytes, uint64_t alignment, tutti_device_buffer **buffer,
                      tutti_error_sink *sink);
  void (*release)(tutti_device_buffer *buffer);

  /// First byte as programs of the device take it (bind, run).
  void *(*device_pointer)(tutti_device_buffer *buffer);
  /// First byte as the host may read and write it, or NULL where it may not.
  void *(*host_pointer)(tutti_device_buffer *buffer);
  int32_t (*read)(tutti_device_buffer *buffer, uint64_t offset, void *destination, uint64_t bytes, tutti_stream *stream,
                  tutti_error_sink *sink);
  int32_t (*write)(tutti_device_buffer *buffer, uint64_t offset, const void *source, uint64_t bytes,
                   tutti_stream *stream, tutti_error_sink *sink);
  int32_t (*fill_zero)(tutti_device_buffer *buffer, uint64_t offset, uint64_t bytes, tutti_stream *stream,
                       tutti_error_sink *sink);
  /// (optional; appended) The same of memory for register_windows of tutti_collective_table, where there is such.
  int32_t (*allocate_shared)(tutti_device *device, uint64_t bytes, uint64_t alignment, tutti_device_buffer **buffer,
                             tutti_error_sink *sink);
} tutti_buffer_table;

/// Streams (work in order) and events (points in a stream): real objects also where work is done at once.
typedef struct tutti_stream_table {
  uint64_t struct_size;
  int32_t (*create)(tutti_device *device, tutti_stream **stream, tutti_error_sink *sink);
  void (*release)(tutti_stream *stream);
  /// Waits until everything issued on the stream is done; returns the first error of that work.
  int32_t (*synchronize)(tutti_stream *stream, tutti_error_sink *sink);
  /// Later work on `stream` starts after `event`.
  int32_t (*wait_event)(tutti_stream *stream, tutti_event *event, tutti_error_sink *sink);
  int32_t (*event_create)(tutti_device *device, tutti_event **event, tutti_error_sink *sink);
  void (*event_release)(tutti_event *event);
  /// The event now stands for what has been issued on `stream` so far.
  int32_t (*event_record)(tutti_event *event, tutti_stream *stream, tutti_error_sink *sink);
  /// The calling thread waits for the event. An event never recorded is done.
  int32_t (*event_synchronize)(tutti_event *event, tutti_error_sink *sink);
  /// 1 when reached, else 0.
  int32_t (*event_is_done)(tutti_event *event);
  /// (optional) An event that knows when it is reached.
  int32_t (*event_create_timed)(tutti_device *device, tutti_event **event, tutti_error_sink *sink);
  /// (optional) Nanoseconds of the device's clock between two such events, which have been reached.
  int32_t (*event_elapsed)(tutti_event *begin, tutti_event *end, int64_t *nanoseconds, tutti_error_sink *sink);
  /// (optional) 1 when what synchronize() will tell is known to be an error already, else 0. Waits for nothing.
  int32_t (*has_failed)(tutti_stream *stream);
  /// (optional; appended, as are the next three and set_arguments of programs: all or none) From here on work that is
  /// issued on the stream is not done but written down, and that of streams which wait for an event recorded on it; it
  /// waits for them again before record_end. Meanwhile only that is done to these streams and events: programs run, an
  /// event is recorded or waited for, an operation of a clique is enqueued (record_check). Where such events stand no
  /// thread may ask or wait for, until they are recorded on a stream that does not record; but one of
  /// event_create_timed that is recorded on this very stream is reached anew by each replay, which it outlives, and no
  /// stream waits for it. UNIMPLEMENTED by event_record, and nothing written down, where that cannot be.
  int32_t (*record_begin)(tutti_stream *stream, tutti_error_sink *sink);
  /// Ends that in any case. What was written down goes with memory and programs that it names: while it is done again
  /// they are there, and the programs run nowhere else.
  int32_t (*record_end)(tutti_stream *stream, tutti_recording **recording, tutti_error_sink *sink);
  /// Does it once more, in order with what else is issued on the stream.
  int32_t (*replay)(tutti_recording *recording, tutti_stream *stream, tutti_error_sink *sink);
  /// The stream has done the last replay.
  void (*recording_release)(tutti_recording *recording);
  /// (optional; appended) The stream waits here for the host, recorded or not. `words`: three of 32 bits in memory of
  /// tutti_transfer_table, 0 at first, and of no other stream. The device adds 1 to the first when it comes here, for
  /// the n-th time (modulo 2^32), and goes on when the second is n or, modulo 2^32, less than 2^31 more. Then it writes
  /// to the byte `verdict`, of such memory, too, or NULL, whether the third is: 1 or 0. What is before it on the stream
  /// is done when it comes, and what the device has written to memory of the host is there. While it waits, or may, the
  /// thread that lets it go calls nothing of the backend, which may wait for the device on behalf of another thread.
  /// UNIMPLEMENTED where launches wait for their end.
  int32_t (*hold)(tutti_stream *stream, void *words, void *verdict, tutti_error_sink *sink);
} tutti_stream_table;

/// Copies by address, and memory of the host that copies like best (optional table). A backend without
/// TUTTI_BACKEND_HOST_MEMORY needs it to train on several devices, whose results are then combined on the host.
typedef struct tutti_transfer_table {
  uint64_t struct_size;
  /// `bytes` of page-locked host memory aligned to 64, which copies reach without a detour, and programs of any device
  /// as the host has left it before they begin. Contents are undefined. RESOURCE_EXHAUSTED when there is none.
  int32_t (*allocate)(tutti_device *device, uint64_t bytes, void **memory, tutti_error_sink *sink);
  /// Gives memory of allocate back; `bytes` as then. NULL is a no-op.
  void (*release)(tutti_device *device, void *memory, uint64_t bytes);

  /// Copies from device memory, any address within a buffer of the device, to the host's, ordered on `stream`.
  int32_t (*read)(tutti_device *device, const void *source, void *destination, uint64_t bytes, tutti_stream *stream,
                  tutti_error_sink *sink);
  /// The other way round.
  int32_t (*write)(tutti_device *device, void *destination, const void *source, uint64_t bytes, tutti_stream *stream,
                   tutti_error_sink *sink);
} tutti_transfer_table;

// ---- Compiling -----------------------------------------------------------------------------------------------------

/// How exactly results repeat (tutti_compile_request.level).
enum {
  TUTTI_LEVEL_FAST = 1,        ///< whatever is fastest
  TUTTI_LEVEL_REPEATABLE = 2,  ///< bit-identical run to run
  TUTTI_LEVEL_INVARIANT = 3,   ///< and independent of the number of replicas
};

/// A graph to compile, with everything that is fixed before: shapes and where state lies. All pointers are borrowed for
/// the call.
typedef struct tutti_compile_request {
  uint64_t struct_size;

  /// The serialised graph (JSON text of lib/graph/serialize.h).
  const char *graph_text;

  /// Values of the graph's symbols: {"batch": 32, "slice.dense/kernel": 4096}. A missing symbol is an error.
  const char *bindings_json;

  /// Where state_read and state_write find their entries:
  ///   {"arenas": ["weights", "slots", ...],
  ///    "entries": [{"name": "weight/dense/kernel", "arena": 0, "offset": 4096, "storage_bytes": 1605632,
  ///                 "dtype": "f32", "dims": [784, 512], "layout": "",
  ///                 "slice_offset": 0, "slice_length": 401408}, ...]}
  /// `arena` indexes "arenas" and tutti_bind_request.arenas; offsets are bytes. "layout" "" is row-major, anything else
  /// a name that this backend's layout->plan gave. A value with the entry's dims stands for the whole entry in that
  /// layout. A 1-D value whose dimension is the symbol "slice.<variable>", or one whose first of several dimensions is
  /// "rows.<variable>", stands for the flat elements [slice_offset, slice_offset + slice_length) of the entry's storage
  /// whatever its layout: it lies at offset + slice_offset * dtype size. Both slice fields are optional: 0 and all.
  /// A segment never reads an entry after it wrote it, except an update that reads and writes the same elements.
  const char *state_json;

  int32_t level;    ///< TUTTI_LEVEL_*
  int32_t threads;  ///< threads each program of this executable may use, the calling one included; 0 = 1

  /// The kind of device to compile for: one device; or several, by rank, where the backend lowers collectives.
  tutti_device *const *devices;
  int32_t device_count;
  int32_t flags;       ///< TUTTI_COMPILE_*
  const void *cancel;  ///< for host->is_cancelled; may be NULL
} tutti_compile_request;

enum {
  /// A trace span with the node's name for every kernel; those by a device's clock come when its stream is synchronized
  TUTTI_COMPILE_DEBUG_NAMES = 1,
  /// Permissions at TUTTI_LEVEL_FAST: factors of f32 convolutions and matrix products may be rounded to this where that
  /// was known to be faster; sums, results of the graph and state stay f32. BF16, F16: what lies between products may
  /// be stored so, too, but for statistics of normalisations and what leads to losses. TF32 is never stored.
  TUTTI_COMPILE_BF16_WHERE_FASTER = 2,
  TUTTI_COMPILE_TF32_WHERE_FASTER = 4,
  TUTTI_COMPILE_F16_WHERE_FASTER = 8,
  /// Where rows of the batch stand alone, the bits of a row's results do not depend on how many rows there are: not on
  /// the value of the symbol "batch". Predictions have it at TUTTI_LEVEL_INVARIANT, programs of training do not: their
  /// shapes are the same for any number of replicas, so kernels may be chosen by them.
  TUTTI_COMPILE_ROW_INVARIANT = 16,
};

/// State layouts (optional table; absent = everything is row-major).
typedef struct tutti_layout_table {
  uint64_t struct_size;

  /// Proposes layouts for the entries that the request's graph reads: writes
  ///   [{"name": "weight/conv/kernel", "layout": "...", "storage_bytes": ..., "alignment": ...}, ...]
  /// Entries left out are row-major. In the request offsets and layouts are not yet known (0 and "").
  int32_t (*plan)(const tutti_compile_request *request, tutti_text_writer write, void *user, tutti_error_sink *sink);

  /// Copies between canonical row-major `canonical` and `storage` in the named layout. Padding is written as zero. Both
  /// are host memory. `dtype` is a tutti dtype number (<tutti/tensor.h>).
  int32_t (*pack)(tutti_backend *backend, const char *layout, int32_t dtype, const int64_t *dims, int32_t rank,
                  const void *canonical, void *storage, uint64_t storage_bytes, tutti_error_sink *sink);
  int32_t (*unpack)(tutti_backend *backend, const char *layout, int32_t dtype, const int64_t *dims, int32_t rank,
                    const void *storage, uint64_t storage_bytes, void *canonical, tutti_error_sink *sink);
} tutti_layout_table;

/// Executables: a compiled graph for one set of shapes; immutable, without memory or state.
typedef struct tutti_executable_table {
  uint64_t struct_size;

  /// Compiles. Errors name the node, the op, the dtype and the device. A value of zero elements costs nothing and is
  /// legal everywhere; sums over nothing are zero.
  int32_t (*compile)(const tutti_compile_request *request, tutti_executable **executable, tutti_error_sink *sink);
  void (*release)(tutti_executable *executable);

  /// Writes
  ///   {"inputs":  [{"name", "dtype", "dims", "bytes"}, ...],     order of run_arguments.inputs
  ///    "outputs": [{"name", "dtype", "dims", "bytes"}, ...],     order of run_arguments.outputs
  ///    "workspace_bytes", "workspace_alignment",
  ///    "externals": [{"kind": "all_reduce_sum" | "all_reduce_max" | "all_reduce_min", "label",
  ///                   "arena": index or -1 = workspace, "offset", "elements", "dtype"}, ...],
  ///    "report": {...}}
  /// There is one segment more than externals: the host runs external i, in place, between segments i and i + 1. One of
  /// no elements is a mark: from there on the host may change what state_write has written before, but for updates, and
  /// values that were written keep what they are. The report is for people and tests: {"kernels": [{"node", "op",
  /// "kernel", "layout", "bytes"}, ...], "workspace_lower_bound_bytes", ...}; the last two of a kernel may be missing.
  int32_t (*describe)(tutti_executable *executable, tutti_text_writer write, void *user, tutti_error_sink *sink);
} tutti_executable_table;

// ---- Running -------------------------------------------------------------------------------------------------------

/// What a program is bound to. Pointers are device pointers; the memory belongs to the host, outlives the program and
/// may be shared by programs that never run at the same time (workspace) or agree on its use (arenas).
typedef struct tutti_bind_request {
  uint64_t struct_size;
  tutti_device *device;
  void *const *arenas;  ///< base of each arena of the state table, aligned to 64; NULL where nothing is used of it
  int32_t arena_count;
  void *workspace;  ///< workspace_bytes, aligned to workspace_alignment; NULL if workspace_bytes is 0
} tutti_bind_request;

/// Index of each run scalar in tutti_run_arguments.scalars.
enum {
  TUTTI_RUN_STEP = 0,           ///< completed optimizer steps
  TUTTI_RUN_BATCH_COUNTER = 1,  ///< micro-batches seen since training began: keys random ops
  TUTTI_RUN_ROW_OFFSET = 2,     ///< first row of this replica in the global batch
  TUTTI_RUN_LOCAL_ROWS = 3,     ///< rows of this replica in this micro-batch
  TUTTI_RUN_STEP_ROWS = 4,      ///< rows of the whole step: all replicas, all micro-batches
  TUTTI_RUN_FIRST_FLAG = 5,     ///< 1 on rank 0 in its first micro-batch of a step, else 0
  TUTTI_RUN_SEED = 6,           ///< seed of the random ops
  TUTTI_RUN_ITERATION = 7,      ///< number of this update, from 1
  /// 0. Where errors in the data come to light with the stream, the device makes 1 of it as soon as it finds one.
  TUTTI_RUN_DATA_FAULTS = 8,
  TUTTI_RUN_SCALAR_COUNT = 9,
};

/// Arguments of one run; all pointers are borrowed until the stream has passed the run.
typedef struct tutti_run_arguments {
  uint64_t struct_size;
  const void *const *inputs;  ///< device pointers, aligned to 64, in the order of the description
  void *const *outputs;       ///< device pointers, aligned to 64; an output must not overlap an input or an arena
  const int64_t *scalars;     ///< TUTTI_RUN_SCALAR_COUNT values in host memory
} tutti_run_arguments;

/// Programs: an executable bound to memory.
typedef struct tutti_program_table {
  uint64_t struct_size;
  int32_t (*bind)(tutti_executable *executable, const tutti_bind_request *request, tutti_program **program,
                  tutti_error_sink *sink);
  void (*release)(tutti_program *program);

  /// Issues segment `segment` on `stream`. Allocates nothing, looks nothing up and takes no lock. All segments of one
  /// pass get the same arguments. Errors in the data (a label outside its range) are INVALID_ARGUMENT naming node, row
  /// and value, here or from the stream's synchronize; in the second case the floating-point values that were computed
  /// from such data are not numbers, so that later work which asks whether a loss is finite learns of it.
  int32_t (*run)(tutti_program *program, int32_t segment, const tutti_run_arguments *arguments, tutti_stream *stream,
                 tutti_error_sink *sink);
  /// (optional; appended) A run on a stream that records takes no notice of its arguments: a replay finds those that
  /// this gave last, in order with what else is issued on the stream. `pass`: counts, from 0, the passes of the program
  /// that one recording has. A program in several recordings has the same arguments in all.
  int32_t (*set_arguments)(tutti_program *program, int32_t pass, const tutti_run_arguments *arguments,
                           tutti_stream *stream, tutti_error_sink *sink);
} tutti_program_table;

// ---- The table -----------------------------------------------------------------------------------------------------

/// tutti_backend_api.capabilities
enum {
  /// May be given a graph uncut, with several devices in the request: their programs then do its collectives
  /// themselves. Such an executable describes one external, of no elements. Segment 0 of each device's program takes
  /// the arguments of the run, from any thread and without waiting for others; the work begins when all have come.
  /// Segment 1, which the host runs when it knows that, gives the results: if some have not come it fails, and this
  /// device's run has not happened, so that all devices run or none.
  TUTTI_BACKEND_LOWERS_COLLECTIVES = 1,
  /// Device pointers are host pointers, and memory of one device is usable from all others of the backend.
  TUTTI_BACKEND_HOST_MEMORY = 2,
  TUTTI_BACKEND_REGIONS = 4,  ///< runs call, custom_gradient and fusion regions; else the host inlines them first
  /// The same op may be rounded otherwise in another program: what has to have the host's bits is left to the host.
  TUTTI_BACKEND_ROUNDS_FREELY = 8,
};

typedef struct tutti_backend_api {
  uint64_t struct_size;
  uint32_t abi_version;   ///< TUTTI_BACKEND_ABI_VERSION the backend was compiled with
  const char *name;       ///< "reference", "cpu", ...: first part of device names
  const char *version;    ///< of the backend, for people
  const char *build_id;   ///< in-tree backends: the library's own id, which must match; others: ""
  uint64_t capabilities;  ///< TUTTI_BACKEND_* bits

  /// Makes an instance. `options_json`: {"logical_devices": 2, ...}; an unknown key is an error. Must be quick; fails
  /// with UNAVAILABLE and one sentence when hardware or a driver is missing.
  int32_t (*create)(const tutti_backend_host *host, const char *options_json, tutti_backend **backend,
                    tutti_error_sink *sink);
  void (*destroy)(tutti_backend *backend);

  const tutti_device_table *device;
  const tutti_buffer_table *buffer;
  const tutti_stream_table *stream;
  const tutti_layout_table *layout;  ///< (optional)
  const tutti_executable_table *executable;
  const tutti_program_table *program;

  // Appended:
  const tutti_transfer_table *transfer;      ///< (optional)
  const tutti_collective_table *collective;  ///< (optional)
} tutti_backend_api;

/// The entry: the table, static for the life of the process, or NULL if the backend cannot work with a host of that
/// version.
typedef const tutti_backend_api *(*tutti_backend_entry_function)(uint32_t host_abi_version);

#ifdef __cplusplus
}
#endif

#endif  // TUTTI_PLUGIN_BACKEND_H_

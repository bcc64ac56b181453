// SPDX-License-Identifier: Apache-2.0
//
// The C table of a backend that connects its devices: operations of many devices on their own memory, by what carries
// them from one to the other. Part of <tutti/plugin/backend.h>, whose conventions hold.
#ifndef TUTTI_PLUGIN_CLIQUE_H_
#define TUTTI_PLUGIN_CLIQUE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_device tutti_device;
typedef struct tutti_stream tutti_stream;
typedef struct tutti_clique tutti_clique;
typedef struct tutti_error_sink tutti_error_sink;

/// Takes `length` bytes of text (not NUL terminated); called once per call that takes a writer.
typedef void (*tutti_text_writer)(void *user, const char *text, uint64_t length);

/// Operations that all ranks of a clique do together (tutti_collective.kind).
enum {
  TUTTI_COLLECTIVE_ALL_REDUCE = 1,      ///< `memory` becomes the reduction over all ranks
  TUTTI_COLLECTIVE_REDUCE_SCATTER = 2,  ///< the rank's own slices become it; the rest is left undefined
  TUTTI_COLLECTIVE_ALL_GATHER = 3,      ///< all slices become those of their owners
  TUTTI_COLLECTIVE_BROADCAST = 4,       ///< `memory` becomes the root's
};

/// tutti_collective.reduction
enum { TUTTI_REDUCTION_SUM = 1, TUTTI_REDUCTION_MAX = 2, TUTTI_REDUCTION_MIN = 3 };

/// Bits for check and connect.
enum {
  TUTTI_CLIQUE_REPEATABLE = 1,  ///< the same bits in every run on the same devices; the order is the backend's choice
};

/// Elements [begin, end) that belong to rank `owner`.
typedef struct tutti_collective_slice {
  int64_t begin;
  int64_t end;
  int32_t owner;
} tutti_collective_slice;

/// One operation as one rank sees it; everything but the address is equal on all ranks.
typedef struct tutti_collective {
  uint64_t struct_size;
  int32_t kind;       ///< TUTTI_COLLECTIVE_*
  int32_t reduction;  ///< TUTTI_REDUCTION_*; of the first two kinds
  int32_t dtype;      ///< a tutti dtype number (<tutti/tensor.h>)
  int32_t root;       ///< broadcast: the rank that gives
  void *memory;       ///< of the rank's device, worked on in place
  int64_t count;      ///< elements, at least 1
  /// reduce_scatter and all_gather: ascending, without overlap; need not cover everything. Borrowed for the call.
  const tutti_collective_slice *slices;
  int32_t slice_count;
} tutti_collective;

/// The devices of one process as ranks of a clique that other processes have ranks of, too.
typedef struct tutti_clique_request {
  uint64_t struct_size;
  tutti_device *const *devices;  ///< of this process, in order of ranks
  int32_t count;
  int32_t flags;
  int32_t first_rank;  ///< that of devices[0]
  int32_t rank_count;  ///< of all processes
  const char *id;      ///< the text of create_id
} tutti_clique_request;

/// Devices that combine their memory without the host's (optional table): a clique has a rank for each device, and
/// operations of a rank are work on a stream of its device. All ranks enqueue the same operations in the same order,
/// each from a thread of its own. Without the table the library combines in memory of the host.
///
///   check(devices, n, flags) -> connect(devices, n, flags, ms, &clique)
///   thread of rank r:  enqueue(clique, r, &operation, stream) ; poll(clique, r, &is_enqueued) until it is ; ...
///   release(clique)    when the streams are done; or abort(clique) in between, after which they end soon
///
/// Of several processes, which compare what describe() writes before: one calls create_id, all call join with that
/// text, and poll each rank until it is 1. The ranks of their calls are counted from 0 in each process; owners of
/// slices and roots are ranks among all. abort() ends what is under way in the own process.
typedef struct tutti_collective_table {
  uint64_t struct_size;
  /// 0 when the devices, in order of ranks, can be connected with these flags. Else UNAVAILABLE or UNIMPLEMENTED and
  /// why: a library is missing, two are one GPU, a guarantee cannot be given. Opens libraries, but connects nothing.
  int32_t (*check)(tutti_device *const *devices, int32_t count, int32_t flags, tutti_error_sink *sink);
  /// Connects them. DEADLINE_EXCEEDED after `timeout_ms` (negative = never). No rank has work that waits for another.
  int32_t (*connect)(tutti_device *const *devices, int32_t count, int32_t flags, int64_t timeout_ms,
                     tutti_clique **clique, tutti_error_sink *sink);
  /// Puts an operation on `stream`, a stream of the rank's device. Never waits for other ranks: what is not on the
  /// stream when it returns (poll) is put there in the background, as soon as the others have come. The operation
  /// before it is enqueued. ABORTED after abort. The first rank of an operation may wait for what no operation may be
  /// half enqueued for, such as memory that is taken for another program.
  int32_t (*enqueue)(tutti_clique *clique, int32_t rank, const tutti_collective *operation, tutti_stream *stream,
                     tutti_error_sink *sink);
  /// *is_enqueued = 1 when the rank's last operation is on its stream, so that events may be recorded behind it, else
  /// 0. An error that came to light since, also of an operation that its device is busy with, is returned.
  int32_t (*poll)(tutti_clique *clique, int32_t rank, int32_t *is_enqueued, tutti_error_sink *sink);
  /// Ends what is under way on all ranks, from any thread, also while ranks are in their calls. Streams end their
  /// operations soon; what these leave in memory is undefined. A second call, and NULL, is a no-op.
  void (*abort)(tutti_clique *clique);
  /// No rank is in a call, and the streams have done what was enqueued. NULL is a no-op.
  void (*release)(tutti_clique *clique);
  /// (optional; appended) Before the first operation: many will be on this memory of the rank. 1 if that helps, or 0.
  int32_t (*register_memory)(tutti_clique *clique, int32_t rank, void *memory, uint64_t bytes);
  /// (optional; appended) All of the rank's, before the memory is freed; its operations are done, or were aborted.
  /// Windows end with the last rank's call: memory of all stays until then.
  void (*deregister_memory)(tutti_clique *clique, int32_t rank);
  /// (optional; appended) Before the first operation, for all ranks: many will be on these bytes of each, at the same
  /// place in them; memory[r] is rank r's, of allocate_shared. Fails, without a trace, where that makes nothing faster.
  int32_t (*register_windows)(tutti_clique *clique, void *const *memory, uint64_t bytes, tutti_error_sink *sink);
  /// (optional; appended, as are the next two: all or none) Writes {"library": "NCCL 2.21.5", "devices": ["...", ...]}
  /// of devices of one process: a name that is the same where processes can be connected, and for each device one that
  /// no other has, on whatever machine. Errors as of check().
  int32_t (*describe)(tutti_device *const *devices, int32_t count, int32_t flags, tutti_text_writer write, void *user,
                      tutti_error_sink *sink);
  /// Writes what join() needs in all processes, once for each clique. It may listen for them from then on.
  int32_t (*create_id)(tutti_device *device, tutti_text_writer write, void *user, tutti_error_sink *sink);
  /// Begins to connect devices of several processes, and waits for none: poll() tells when a rank is connected. No
  /// windows are made between processes.
  int32_t (*join)(const tutti_clique_request *request, tutti_clique **clique, tutti_error_sink *sink);
  /// (optional; appended) 0: from here on operations of this process's only rank may be enqueued on a stream that
  /// records or has joined one that does, by all ranks of the clique the same, but for the first operation. poll() as
  /// ever, before anything else is written down. Replays are operations, too, of all ranks and in one order, each of
  /// what was enqueued by all together. Recordings go before the clique is released; if it is aborted, soon after.
  /// Else why not.
  int32_t (*record_check)(tutti_clique *clique, tutti_error_sink *sink);
} tutti_collective_table;

#ifdef __cplusplus
}
#endif

#endif  // TUTTI_PLUGIN_CLIQUE_H_

// SPDX-License-Identifier: Apache-2.0
//
// The C table between tutti and a collective engine: what moves bytes between the processes of a cluster (TCP, MPI,
// verbs). For people who write an engine; programs that train include <tutti/tutti.h> instead.
//
// An engine is one entry function that returns one table. It lies in a shared module that exports nothing but
// `tutti_engine_entry` and is found with dlopen(). The engine carries messages between pairs of processes; sums, their
// order and agreement on what comes next are the library's.
//
// Life of a mesh, in calls:
//
//   api = tutti_engine_entry(TUTTI_ENGINE_ABI_VERSION)
//   api->connect(host, request, &mesh)         // all ranks; addresses go through host->put and host->get
//     api->exchange(mesh, exchange)            // any number of times, by one thread
//     api->interrupt(mesh)                     // from any other thread: ends the exchange under way, and later ones
//   api->close(mesh)
//
// Conventions
//  * Every struct begins with `struct_size`, set by the side that fills it. Fields are only appended; one beyond it is
//    absent and has its documented default.
//  * A fallible function returns 0 or a canonical code (tutti_error_code, <tutti/status.h>), takes a sink last, and
//    hands code and text to host->set_error(sink, ...). On failure outputs stay untouched.
//  * connect, exchange and close are called from one thread, which has all signals blocked; threads that the engine
//    starts inherit that. Meshes of one process are independent.
//  * No exception, allocator, type or thread-local state of either side crosses.
#ifndef TUTTI_PLUGIN_COLLECTIVE_H_
#define TUTTI_PLUGIN_COLLECTIVE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Version of the tables below. Raised when a field changes meaning; appended fields do not raise it.
#define TUTTI_ENGINE_ABI_VERSION 1u

/// Name of the one symbol that a plug-in exports.
#define TUTTI_ENGINE_ENTRY_NAME "tutti_engine_entry"

/// The connections of one process to all others of its cluster.
typedef struct tutti_mesh tutti_mesh;

/// Where one call puts its error; owned by the caller of the call and valid until it returns.
typedef struct tutti_error_sink tutti_error_sink;

/// Takes `length` bytes; called once.
typedef void (*tutti_bytes_writer)(void *user, const void *bytes, uint64_t length);

/// What the host does for an engine. Lent to `connect`, valid until `close` has returned.
typedef struct tutti_engine_host {
  uint64_t struct_size;
  void *user;  ///< first argument of put, get and is_awaited

  /// A table that all ranks of the mesh share, for addresses and the like; only within `connect`. `key` is
  /// NUL terminated text. get waits for the key, as long as connect may take.
  int32_t (*put)(void *user, const char *key, const void *bytes, uint64_t length, tutti_error_sink *sink);
  int32_t (*get)(void *user, const char *key, tutti_bytes_writer write, void *writer_user, tutti_error_sink *sink);

  /// Fills an error sink. `message` is copied. A second call on the same sink is ignored.
  void (*set_error)(tutti_error_sink *sink, int32_t code, const char *message);

  /// Is it worth waiting for the rank any longer? 0 once it is known to have ended. Any thread, only within `connect`:
  /// asked some times a second while one waits for its connection; it may take seconds where worker 0 hangs. May be
  /// absent.
  int32_t (*is_awaited)(void *user, int32_t peer);
} tutti_engine_host;

typedef struct tutti_connect_request {
  uint64_t struct_size;
  int32_t rank;        ///< of this process
  int32_t size;        ///< number of processes, 2 or more
  const char *host;    ///< name or address at which the others reach this process; borrowed
  int64_t timeout_ms;  ///< for all of connect
} tutti_connect_request;

/// One message. Both sides give the same number of bytes.
typedef struct tutti_message {
  int32_t peer;  ///< rank of the other side, never the own
  uint32_t tag;  ///< messages between two ranks with the same tag arrive in the order in which they were given
  void *bytes;   ///< only read, for what is sent
  uint64_t length;
} tutti_message;

/// tutti_exchange.flags
enum {
  TUTTI_EXCHANGE_UNINTERRUPTED = 1,  ///< interrupt() has no effect on it
};

/// Messages that are under way together. An exchange is over when all have been received and none of the memory is used
/// any more.
typedef struct tutti_exchange {
  uint64_t struct_size;
  const tutti_message *sends;
  const tutti_message *receives;
  int32_t send_count;
  int32_t receive_count;
  int64_t timeout_ms;
  uint64_t flags;
  /// Set when the exchange fails: the rank it has failed with, or -1 where that cannot be told.
  int32_t *failed_peer;
} tutti_exchange;

typedef struct tutti_engine_api {
  uint64_t struct_size;
  uint32_t abi_version;  ///< TUTTI_ENGINE_ABI_VERSION the engine was compiled with
  const char *name;      ///< "gloo", ...
  const char *version;   ///< of the engine, for people
  const char *build_id;  ///< in-tree engines: the library's own id, which must match; others: ""

  /// Connects this process with all others, which call it too. `failed_peer`: as in an exchange.
  int32_t (*connect)(const tutti_engine_host *host, const tutti_connect_request *request, tutti_mesh **mesh,
                     int32_t *failed_peer, tutti_error_sink *sink);
  /// Ends all connections, so that the other sides' exchanges fail at once. NULL is a no-op.
  void (*close)(tutti_mesh *mesh);
  /// UNAVAILABLE when a connection has ended, DEADLINE_EXCEEDED, or CANCELLED after interrupt(). Any failure leaves a
  /// mesh that can only be closed.
  int32_t (*exchange)(tutti_mesh *mesh, const tutti_exchange *exchange, tutti_error_sink *sink);
  void (*interrupt)(tutti_mesh *mesh);
} tutti_engine_api;

/// The entry: the table, static for the life of the process, or NULL if the engine cannot work with a host of that
/// version.
typedef const tutti_engine_api *(*tutti_engine_entry_function)(uint32_t host_abi_version);

#ifdef __cplusplus
}
#endif

#endif  // TUTTI_PLUGIN_COLLECTIVE_H_

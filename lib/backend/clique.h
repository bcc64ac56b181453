// SPDX-License-Identifier: Apache-2.0
//
// Devices that combine their memory directly, where their backend connects them: a rank for each, whose operations are
// work on a stream of its device (tutti_collective_table of <tutti/plugin/backend.h>).
//
//   TUTTI_TRY(Clique::check(devices, {}));                              // or one sentence why not
//   TUTTI_ASSIGN(std::unique_ptr<Clique> clique, Clique::connect(devices, {}, 60000));
//   TUTTI_TRY(clique->enqueue(rank, operation, stream));                // in the thread of the rank
//   TUTTI_ASSIGN(const bool is_enqueued, clique->poll(rank));           // until it is: then event.record(stream)
//
// Devices of several processes: each describes its own, and if these fit (who calls this sees to it), one makes an id,
// which all get, and all join. Ranks of calls stay those of the own process.
//
//   TUTTI_ASSIGN(const CliqueDescription own, Clique::describe(devices, {}));
//   TUTTI_ASSIGN(const std::string id, Clique::create_id(*devices.front()));             // in one process
//   TUTTI_ASSIGN(auto clique, Clique::join(devices, {}, {.id = id, .first_rank = 2, .rank_count = 4}));
//   TUTTI_ASSIGN(const bool is_connected, clique->poll(rank));          // until all are
//
// Threads: the calls of one rank come from one thread at a time; abort() from any.
#ifndef TUTTI_BACKEND_CLIQUE_H_
#define TUTTI_BACKEND_CLIQUE_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"

namespace tutti::impl::backend {

struct CliqueOptions {
  /// The same bits in every run on these devices.
  bool repeatable = false;
};

/// Devices of this process, as others need to know them.
struct CliqueDescription {
  std::string library;               ///< which connects them, and its version: the same in all processes
  std::vector<std::string> devices;  ///< each of another name, wherever it is
};

/// Where the devices of this process are in a clique of several.
struct CliquePlace {
  std::string id;
  int32_t first_rank = 0, rank_count = 1;
};

class Clique {
 public:
  /// Ok when the backend connects these devices, in order of ranks; else UNAVAILABLE or UNIMPLEMENTED and why not.
  static base::Status check(std::span<const DeviceRef> devices, const CliqueOptions &options);
  /// DEADLINE_EXCEEDED after `timeout_ms`, negative = never. The devices have passed check().
  static base::Result<std::unique_ptr<Clique>> connect(std::span<const DeviceRef> devices, const CliqueOptions &options,
                                                       int64_t timeout_ms);
  /// As check(); UNIMPLEMENTED naming the backend when its plug-in connects devices of one process only.
  static base::Result<CliqueDescription> describe(std::span<const DeviceRef> devices, const CliqueOptions &options);
  static base::Result<std::string> create_id(Device &device);
  /// Begins to connect; no operation before poll() of each rank has said that it is done. describe() has succeeded.
  static base::Result<std::unique_ptr<Clique>> join(std::span<const DeviceRef> devices, const CliqueOptions &options,
                                                    const CliquePlace &place);
  /// The streams have done what was enqueued, or the clique was aborted.
  ~Clique();
  Clique(const Clique &) = delete;
  Clique &operator=(const Clique &) = delete;

  /// Ranks of this process.
  int32_t size() const { return static_cast<int32_t>(devices_.size()); }

  /// Puts an operation on a stream of the rank's device, never waiting for other ranks. The one before is enqueued.
  base::Status enqueue(int32_t rank, const tutti_collective &operation, Stream &stream);
  /// Is the rank's last operation on its stream, for events to be recorded behind it? Or an error that came to light.
  base::Result<bool> poll(int32_t rank);
  /// Tells that operations of the rank will often be on this memory of its device, before the first of them and until
  /// deregister_memory(). False where the backend gains nothing by it.
  bool register_memory(int32_t rank, void *memory, int64_t bytes);
  /// For all ranks at once: the same of these bytes of each, of Device::allocate_shared(), if the devices then read
  /// each other's memory directly; else why not.
  base::Status register_windows(std::span<void *const> memory, int64_t bytes);
  /// All of the rank's, before it is freed; that of windows not before all ranks have come here. Its operations are
  /// done, or the clique was aborted.
  void deregister_memory(int32_t rank);
  /// Ok when operations of the one rank of this process may be recorded with the streams that they are put on, by all
  /// ranks together; else why not. Recordings go before the clique does, and soon after abort().
  base::Status check_recording();
  /// Ends what is under way on all ranks; what it leaves in memory is undefined.
  void abort() { table_->abort(handle_); }

 private:
  bool registers_memory() const;
  Clique(std::span<const DeviceRef> devices, const tutti_collective_table *table, tutti_clique *handle)
      : devices_(devices.begin(), devices.end()), table_(table), handle_(handle) {}

  const std::vector<DeviceRef> devices_;
  const tutti_collective_table *const table_;
  tutti_clique *const handle_;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_CLIQUE_H_

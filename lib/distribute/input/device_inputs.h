// SPDX-License-Identifier: Apache-2.0
//
// Batches in the memory of devices: the rows of each contributor are copied there ahead of the step, on a stream of
// their own, so that the copy of the next step's batch goes on while the devices compute the present one. Where the
// backend has memory of the host for it (page-locked), they go by way of that: the feeder puts them there and goes on,
// and the device fetches them by itself.
//
//   feeder     settle(slot) -> batch read -> begin(slot, batch, ...)          while the step before runs
//   replica    wait(replica, slot, batch, stream) -> rows(...) -> program     the stream waits, not the thread
//
// Where the walk has left its map to the devices (device_map.h), what goes into the map is copied, and the map issued
// behind the copies: rows() are what comes out.
//
// There is memory for the slots of the feeder: one step under way, the others ahead. It grows to the largest batch and
// is kept; what the first batches need all slots get at once, so that equal ones allocate nothing in mid-run.
//
// Threads: begin and settle by whoever holds the feeder's iterator; wait and rows by the replica, between the feeder's
// wait_ready() and its next step; counters by anybody. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_INPUT_DEVICE_INPUTS_H_
#define TUTTI_DISTRIBUTE_INPUT_DEVICE_INPUTS_H_

#include <atomic>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "data/element/element.h"
#include "distribute/input/device_input_counters.h"
#include "distribute/input/device_map.h"
#include "distribute/input/input_binding.h"

namespace tutti::impl::distribute {

class DeviceInputs {
 public:
  /// A replica: its device, and the number of its first contributor among all.
  struct Target {
    backend::DeviceRef device;
    int32_t first_contributor = 0;
  };

  /// Memory for so many steps, of up to so many batches each.
  struct Room {
    int32_t slots = 2;
    int32_t batches = 1;
  };

  /// Each replica has `parts` of the `contributors`.
  static base::Result<std::unique_ptr<DeviceInputs>> create(const std::vector<Target> &targets, int32_t parts,
                                                            int32_t contributors, Room room);
  /// Waits for copies that are under way.
  ~DeviceInputs();

  /// For a new input, whose slots are used in order, while nothing is being copied: from now on elements are what goes
  /// into this map (null: what the contributors train on), with random numbers of this seed.
  base::Status set_map(const std::shared_ptr<const DeviceMap> &map, int64_t seed);
  /// Begins to copy what the contributors train on of batch `batch` of a slot, which is settled. The element must stay
  /// until settle().
  /// After an error nothing is being copied for the batch.
  base::Status begin(int32_t slot, int32_t batch, const data::Element &element, int64_t rows,
                     const InputBinding &binding);
  /// Waits until no copy reads a batch of the slot.
  void settle(int32_t slot);

  /// What is issued on `stream` from now on comes after the copies of the batch.
  base::Status wait(size_t replica, int32_t slot, int32_t batch, backend::Stream &stream);
  /// First row of a component for part `part` of a replica, as its programs take it.
  const void *rows(size_t replica, int32_t slot, int32_t batch, size_t part, int32_t component) const;

  DeviceInputCounters counters() const;

 private:
  /// Memory for one batch: for each part and component.
  struct Batch {
    std::vector<std::vector<backend::Buffer>> parts;
    backend::HostMemory staging;   // empty where copies read the element
    int64_t staged = 0;            // bytes of it that are in use
    std::vector<MapRun> map_runs;  // by part
    backend::Event copied;
    bool is_under_way = false;  // between begin() and settle()
  };
  struct Replica {
    Target target;
    backend::Stream stream;
    std::vector<std::vector<Batch>> slots;
    std::unique_ptr<MappedRows> mapped;  // null without a map
  };

  DeviceInputs(int32_t parts, int32_t contributors) : parts_(parts), contributors_(contributors) {}

  base::Status copy(Replica &replica, Batch &batch, const data::Element &element, int64_t rows,
                    const InputBinding &binding);
  /// Memory for a batch, its staging memory included.
  base::Status reserve(const Replica &replica, Batch &batch, const data::Element &element, int64_t rows,
                       const InputBinding &binding);
  base::Status copy_part(Replica &replica, Batch &batch, size_t part, const data::Element &element, RowRange range,
                         int32_t component);
  /// The same through the replica's map.
  base::Status map_part(Replica &replica, Batch &batch, size_t part, const data::Element &element, RowRange range);
  base::Status copy_bytes(Replica &replica, Batch &batch, backend::Buffer &to, int64_t offset, const void *from,
                          int64_t bytes);
  /// Where a copy may read so many bytes from: in the staging memory, where there is any.
  const void *stage(Batch &batch, const void *rows, int64_t bytes);
  /// Staging memory of the batch for all of the replica's rows.
  void reserve_staging(const Replica &replica, Batch &batch, const data::Element &element, int64_t rows,
                       const InputBinding &binding);

  /// Memory for at least so many bytes; what it held is lost where it grows.
  static base::Status reserve_bytes(const Target &target, std::vector<backend::Buffer> &buffers, int32_t component,
                                    int64_t bytes);

  const int32_t parts_, contributors_;
  /// Slots that this input has used. The others get memory with each batch until then: devices that combine must not
  /// wait for an allocation in the middle of the first step.
  size_t used_slots_ = 0;
  std::vector<Replica> replicas_;
  bool has_staging_ = true;  // false from the first time on that there is no memory for it
  std::shared_ptr<const DeviceMap> map_;
  int64_t seed_ = 0;  // of the map
  std::atomic<int64_t> batches_{0}, bytes_{0}, staged_bytes_{0}, in_time_{0}, mapped_{0};
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_INPUT_DEVICE_INPUTS_H_

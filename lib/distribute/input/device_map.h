// SPDX-License-Identifier: Apache-2.0
//
// The last map of a pipeline, run by the devices that take its batches. What goes into it is copied, not what comes
// out: images of u8, not of f32; what is random is drawn by the host and copied, too.
//
//   maps.leave(dataset, inputs, contributors, *device, context)       before the walk: may devices do it? then left_map
//   maps.find(*iterator) -> map                                       of the walk that was made with that context
//   MappedRows::create(map, device) -> run(seed, raw, range, ...)     copies and map, issued on a stream
//
// A map is compiled once, for as many rows as a device gets of a whole batch; of a smaller part the rows that are not
// there are computed with what lies in their places, and not read. So nothing is compiled or allocated in mid-run.
//
// Threads: a DeviceMap is immutable; DeviceMaps may be used from any thread, MappedRows from one at a time.
// Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_INPUT_DEVICE_MAP_H_
#define TUTTI_DISTRIBUTE_INPUT_DEVICE_MAP_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"
#include "base/thread.h"
#include "data/call/device_graph.h"
#include "data/dataset/dataset.h"
#include "distribute/input/copy_staging.h"
#include "distribute/input/input_binding.h"
#include "graph/model.h"
#include "tensor/buffer.h"

namespace tutti::impl::distribute {

class DeviceMap {
 public:
  /// For the components of the map's elements that `binding` takes, and up to `capacity` rows on a device; at level
  /// invariant the bits of a row do not depend on it. UNIMPLEMENTED with the reason where the device cannot do it.
  static base::Result<std::shared_ptr<const DeviceMap>> create(const data::DatasetRef &map, const InputBinding &binding,
                                                               int64_t capacity, backend::Device &device,
                                                               backend::Level level);

  const data::Dataset &dataset() const { return *dataset_; }
  int64_t capacity() const { return capacity_; }
  const data::DeviceGraph &graph() const { return graph_; }
  const backend::ExecutableRef &executable() const { return executable_; }
  /// Components of the map's elements that pass through it: where from, -1 for others.
  const std::vector<int32_t> &passed() const { return passed_; }

  /// What the map makes of an element: tensors with dtype and shape alone, no contents. INVALID_ARGUMENT where the
  /// element is not what the dataset's spec says.
  base::Status describe(const data::Element &raw, data::Element &mapped) const;

 private:
  data::DatasetRef dataset_;
  int64_t capacity_ = 0;
  data::DeviceGraph graph_;
  backend::ExecutableRef executable_;
  std::vector<int32_t> passed_;
  base::Ref<tensor::Buffer> nothing_;  // of described tensors: no memory, as large as one likes
};

/// What a map that was issued reads until it is done.
struct MapRun {
  std::vector<std::byte> draws;
  std::vector<void *> outputs;
  backend::RunScalars scalars;
};

/// A map on one device: the memory of its inputs, and its program.
class MappedRows {
 public:
  /// Puts so many bytes into a buffer of the device: at once, or in the course of a stream.
  using Copy =
      base::FunctionRef<base::Status(backend::Buffer &buffer, int64_t offset, const void *from, int64_t bytes)>;

  static base::Result<std::unique_ptr<MappedRows>> create(std::shared_ptr<const DeviceMap> map,
                                                          const backend::DeviceRef &device);

  const DeviceMap &map() const { return *map_; }
  /// Upper bound of the bytes that run() copies for so many rows, each copy aligned.
  int64_t copied_bytes(const data::Element &raw, int64_t rows) const;
  /// Memory for what the map gives, by component; of what passes through for `rows` rows.
  base::Status reserve(const data::Element &raw, int64_t rows, std::vector<backend::Buffer> &results) const;
  /// Copies rows [begin, end) of a batch, and issues the map, into `results` as reserve() made them. `kept` stays as it
  /// is, like the element, until the stream has come past.
  base::Status run(int64_t seed, const data::Element &raw, RowRange range, std::vector<backend::Buffer> &results,
                   MapRun &kept, Copy copy, backend::Stream &stream);

 private:
  explicit MappedRows(std::shared_ptr<const DeviceMap> map, backend::DeviceRef device)
      : map_(std::move(map)), device_(std::move(device)) {}
  base::Status allocate();
  base::Status copy_inputs(const data::GraphScalars &scalars, const data::Element &raw, RowRange range,
                           std::vector<std::byte> &draws, Copy copy);
  base::Status copy_rows(const data::Element &raw, int32_t component, RowRange range, int64_t rotation,
                         backend::Buffer &to, Copy copy) const;

  const std::shared_ptr<const DeviceMap> map_;
  const backend::DeviceRef device_;
  backend::Buffer workspace_;
  backend::Program program_;
  std::vector<backend::Buffer> inputs_;       // as the graph's
  std::vector<const void *> input_pointers_;  // as the program's, like the next
  std::vector<int32_t> output_components_;    // of the map's elements
};

/// What StagedIo is to programs (staged_io.h): rows of an element in host memory, mapped, in memory of the device
/// that is kept from call to call. Another map than the last costs its memory anew.
class MappedLane {
 public:
  /// Pointers to the mapped rows, by component; valid when the stream has come here, until the next call, before which
  /// the stream is waited for.
  base::Status run(const std::shared_ptr<const DeviceMap> &map, int64_t seed, const data::Element &raw, RowRange range,
                   const backend::DeviceRef &device, backend::Stream &stream);
  const void *rows(int32_t component) const { return results_[static_cast<size_t>(component)].device_pointer(); }

 private:
  std::unique_ptr<MappedRows> mapped_;
  std::vector<backend::Buffer> results_;
  MapRun kept_;
  CopyStaging staging_;
};

/// Why a map that asks for devices is not left to those of several kinds, which would have to share its batches; empty
/// where no map asks.
std::string keep_map(const data::Dataset &dataset);

/// The maps that walks have left, or may leave: the last one is kept between the two.
class DeviceMaps {
 public:
  /// Sets context.left_map where the dataset's last map asks for devices and `device` can do it for a model of these
  /// inputs, whose batches are split among so many contributors. Else the reason; empty where no map asks.
  std::string leave(const data::Dataset &dataset, const std::vector<graph::InputSpec> &inputs, int32_t contributors,
                    backend::Device &device, backend::Level level, data::IteratorContext &context);
  /// The map that a walk has left; null where it has left none. FAILED_PRECONDITION where it was not left to these
  /// devices.
  base::Result<std::shared_ptr<const DeviceMap>> find(const data::Iterator &iterator);

 private:
  std::mutex mutex_;
  std::shared_ptr<const DeviceMap> last_;  // guarded by mutex_
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_INPUT_DEVICE_MAP_H_

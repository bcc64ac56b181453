// SPDX-License-Identifier: Apache-2.0
//
// Executables and programs of devices behind PJRT. An executable has the texts of its segments and, by device, what the
// plug-in has compiled from them. A program knows the pieces of memory that its arguments and results are; a run
// collects the arrays, issues a segment, and puts the results in their places.
//
// An executable for several devices is one program, which they run together (shared_launch.h): segment 0 of a device's
// program brings its arrays, segment 1 takes its results.
//
// Threads: an executable may be used from any thread, a program by one at a time.
#ifndef TUTTI_BACKEND_PJRT_PROGRAM_PJRT_EXECUTABLE_H_
#define TUTTI_BACKEND_PJRT_PROGRAM_PJRT_EXECUTABLE_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/pjrt/interface/pjrt_client.h"
#include "backend/pjrt/memory/memory_map.h"
#include "backend/pjrt/memory/pjrt_stream.h"
#include "backend/pjrt/program/segment_program.h"
#include "backend/pjrt/program/shared_launch.h"
#include "base/status.h"

namespace tutti::impl::backend::pjrt {

/// Compiled segments, in order.
using LoadedSegments = std::vector<std::shared_ptr<const LoadedProgram>>;

class PjrtExecutable {
 public:
  /// Compiles for one device (`may_donate`: donation_probe.h), and others of the client get their own when a program is
  /// bound to them; or for several together.
  static base::Result<std::shared_ptr<PjrtExecutable>> compile(const tutti_compile_request &request,
                                                               const tutti_backend_host *host, ClientRef client,
                                                               std::vector<size_t> devices, bool may_donate);

  const tutti_backend_host *host() const { return host_; }
  const LoweredGraph &lowered() const { return lowered_; }
  const SegmentedProgram &program() const { return program_; }
  const ClientRef &client() const { return client_; }
  /// Each segment is a span of the trace, and waited for.
  bool has_trace() const { return has_trace_; }
  base::Result<std::shared_ptr<const LoadedSegments>> loaded(size_t device);
  /// Null unless it is for several devices.
  SharedLaunch *launch() { return launch_.has_value() ? &*launch_ : nullptr; }
  /// Of a device that it was compiled for together with others. INVALID_ARGUMENT for others.
  base::Result<size_t> place_of(size_t device) const;
  std::string describe();
  /// What a fault of a run means; OK where its number is 0.
  base::Status fault_status(const int64_t *fault, int64_t row_offset) const;

 private:
  PjrtExecutable(LoweredGraph lowered, const tutti_backend_host *host, ClientRef client)
      : lowered_(std::move(lowered)), host_(host), client_(std::move(client)) {}

  bool has_trace_ = false;
  const LoweredGraph lowered_;
  const tutti_backend_host *const host_;
  const ClientRef client_;
  std::vector<size_t> devices_;  // those that it was compiled for
  std::optional<SharedLaunch> launch_;
  SegmentedProgram program_;
  std::mutex mutex_;
  std::map<size_t, std::shared_ptr<const LoadedSegments>> loaded_;  // guarded by mutex_; by device
};

class PjrtProgram {
 public:
  static base::Result<std::unique_ptr<PjrtProgram>> bind(std::shared_ptr<PjrtExecutable> executable, MemoryMap &map,
                                                         size_t device, const tutti_bind_request &request);
  ~PjrtProgram();

  base::Status run(int32_t segment, const tutti_run_arguments &arguments, StreamState &stream);
  const tutti_backend_host *host() const { return executable_->host(); }

 private:
  /// A piece, and where it is looked up again when it was cut.
  struct Place {
    const void *address = nullptr;
    tensor::DType dtype = tensor::DType::u8;
    std::vector<int64_t> dims;
    PieceRef piece;
    DeviceArray from_host;  ///< where it lies in memory of the host: its array on the device
  };
  struct Target {
    Place &place;
    const void *address;
  };

  PjrtProgram(std::shared_ptr<PjrtExecutable> executable, MemoryMap &map, size_t device)
      : executable_(std::move(executable)), map_(map), device_(device) {}
  base::Result<Place> place_of(const SegmentPort &port, const tutti_bind_request &request) const;
  base::Status refresh(Place &place, const void *address);
  static int64_t bytes_of(const Place &place);
  Target target_of(const SegmentPort &port, const tutti_run_arguments &arguments);
  base::Result<abi::Buffer *> argument(const SegmentPort &port, const tutti_run_arguments &arguments);
  /// Collects what a segment runs with.
  base::Status bring(const SegmentText &segment, const tutti_run_arguments &arguments);
  base::Status execute(const LoadedProgram &program, size_t number, std::span<DeviceRun *const> runs);
  /// Puts its results in their places.
  base::Status take(const SegmentText &segment, const tutti_run_arguments &arguments, StreamState &stream);
  base::Status run_together(int32_t number, const tutti_run_arguments &arguments, StreamState &stream);
  base::Status upload_scalars(const tutti_run_arguments &arguments);
  base::Status put_result(const SegmentPort &port, DeviceArray array, const tutti_run_arguments &arguments,
                          StreamState &stream);
  base::Status watch_fault(const tutti_run_arguments &arguments, StreamState &stream);

  const std::shared_ptr<PjrtExecutable> executable_;
  MemoryMap &map_;
  const size_t device_;
  std::shared_ptr<const LoadedSegments> loaded_;
  std::map<int32_t, Place> state_, externals_;  // by index
  std::vector<Place> inputs_, outputs_;
  std::vector<DeviceArray> carried_;
  DeviceArray scalars_, fault_;
  size_t place_ = 0;  // of the device, where several run together
  DeviceRun run_;
};

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_PROGRAM_PJRT_EXECUTABLE_H_

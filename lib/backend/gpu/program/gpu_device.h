// SPDX-License-Identifier: Apache-2.0
//
// Backends, devices, memory, streams and events of a GPU platform behind the C tables. A logical device is a device to
// everybody above; several may lie on one GPU.
//
// Threads: as <tutti/plugin/backend.h> says.
#ifndef TUTTI_BACKEND_GPU_PROGRAM_GPU_DEVICE_H_
#define TUTTI_BACKEND_GPU_PROGRAM_GPU_DEVICE_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/bounded_integers.h"
#include "backend/gpu/device/faults.h"
#include "backend/gpu/fusion/recomputed_norms.h"
#include "backend/gpu/generated/generated_kernels.h"
#include "backend/gpu/library/library.h"
#include "backend/gpu/runtime/device_times.h"
#include "backend/gpu/runtime/gpu_memory.h"
#include "backend/gpu/runtime/runtime.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// What a tutti_backend handle points to.
struct GpuBackend {
  const tutti_backend_host *host = nullptr;
  std::vector<int32_t> ordinals;       ///< GPU of each logical device
  int64_t memory_limit = 0;            ///< bytes each logical device may hold; 0 = what the GPU has
  std::map<int32_t, GpuShare> shares;  ///< by GPU
  bool uses_host_memory = false;       ///< for what does not fit into a GPU's
  bool replays_graphs = true;          ///< false: kernels are launched one by one, for looking at errors
  GenerateKernels generate_kernels = GenerateKernels::automatic;
  int64_t recompute_from_bytes = kLeastRecomputedBytes;  ///< recomputed_norms.h
  std::string cache_folder;                              ///< "" = nothing is kept

  static GpuBackend &of(tutti_backend *handle) { return *reinterpret_cast<GpuBackend *>(handle); }
  std::string device_name(int32_t index) const;
  /// What a logical device may have at most of its GPU, which has `gpu_bytes`.
  int64_t bytes_of(int32_t index, int64_t gpu_bytes) const;
};

/// What a tutti_device handle points to.
struct GpuDevice {
  GpuBackend *backend = nullptr;
  int32_t index = 0;
  int32_t ordinal = 0;
  std::unique_ptr<Library> library;  ///< null where the platform has none
  std::unique_ptr<KernelGenerator> generator;
  std::string description;                               ///< of the GPU
  bool multiplies_bf16 = false, multiplies_f16 = false;  ///< faster than f32
  std::unique_ptr<GpuMemory> memory;
  std::mutex copies_mutex;
  gpuStream_t copies = nullptr;  ///< for copies that are done when they return; guarded by copies_mutex

  static base::Result<std::unique_ptr<GpuDevice>> open(GpuBackend &backend, int32_t index);
  ~GpuDevice();
  static GpuDevice &of(tutti_device *handle) { return *reinterpret_cast<GpuDevice *>(handle); }
  const tutti_backend_host *host() const { return backend->host; }
  std::string name() const { return backend->device_name(index); }
  /// The calling thread's launches and allocations go to this device from now on.
  base::Status make_current() const;
  /// Memory of the device. RESOURCE_EXHAUSTED names what is needed and what there is.
  base::Result<void *> allocate(int64_t bytes);
  base::Result<void *> allocate_shared(int64_t bytes);
  void release(void *pointer, int64_t bytes);
};

/// The record of one program with what its faults are about. Kept by the program and by streams that it ran on.
class FaultState {
 public:
  static base::Result<std::shared_ptr<FaultState>> create(std::vector<BoundedIntegers> bounds);
  ~FaultState();
  FaultState(const FaultState &) = delete;
  FaultState &operator=(const FaultState &) = delete;

  FaultRecord *record() const { return record_; }
  /// Whether there is a fault, or is about to be one. Any time.
  bool is_claimed() const;
  /// Ok, or the fault in the record, which is empty afterwards. No kernel that reports to it may be running.
  base::Status take();

 private:
  explicit FaultState(std::vector<BoundedIntegers> bounds) : bounds_(std::move(bounds)) {}

  std::vector<BoundedIntegers> bounds_;
  FaultRecord *record_ = nullptr;
};

/// What a tutti_stream handle points to.
struct GpuStream {
  GpuDevice *device = nullptr;
  gpuStream_t stream = nullptr;
  /// Of programs that ran since the stream was synchronized last.
  std::vector<std::shared_ptr<FaultState>> faults;
  /// Null until a program with a trace runs.
  std::unique_ptr<DeviceTimes> times;
  bool is_recording = false;  ///< gpu_recording.h
  int64_t recording = 0;      ///< number in this process of the last that it began
  int64_t step = 0;           ///< of the arguments that a program was given last for a recording

  static GpuStream &of(tutti_stream *handle) { return *reinterpret_cast<GpuStream *>(handle); }
  void note(const std::shared_ptr<FaultState> &state);
  /// Times of what is issued from now on; made where there are none.
  base::Result<DeviceTimes *> measured();
  base::Status synchronize();
};

extern const tutti_device_table kDeviceTable;
extern const tutti_buffer_table kBufferTable;
extern const tutti_stream_table kStreamTable;
extern const tutti_transfer_table kTransferTable;

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_PROGRAM_GPU_DEVICE_H_

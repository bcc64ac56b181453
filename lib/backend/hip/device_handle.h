// SPDX-License-Identifier: Apache-2.0
//
// rocBLAS's handle for one GPU, opened when the first kernel asks. Logical devices on one GPU share it.
//
//   TUTTI_ASSIGN(std::shared_ptr<DeviceHandle> device, DeviceHandle::of(ordinal));
//   const DeviceHandle::Use use(*device);                            // while it lives, this thread alone uses it
//   if (const Rocblas *rocblas = device->rocblas(use)) rocblas->set_stream(device->handle(), stream);
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_HIP_DEVICE_HANDLE_H_
#define TUTTI_BACKEND_HIP_DEVICE_HANDLE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/gpu/runtime/relaxed_capture.h"
#include "backend/hip/rocblas.h"
#include "base/status.h"

namespace tutti::impl::backend::hip {

class DeviceHandle {
 public:
  /// The exclusive use of the handle. The library may allocate and load modules meanwhile, even while this thread
  /// captures a stream.
  class Use {
   public:
    explicit Use(DeviceHandle &device) : guard_(device.mutex_) {}

   private:
    const std::lock_guard<std::mutex> guard_;
    const gpu::RelaxedCapture may_load_;
  };

  /// That of a GPU. The device is current.
  static base::Result<std::shared_ptr<DeviceHandle>> of(int32_t ordinal);
  /// That of the calling thread's current device.
  static base::Result<std::shared_ptr<DeviceHandle>> of_current_device();
  ~DeviceHandle();
  DeviceHandle(const DeviceHandle &) = delete;
  DeviceHandle &operator=(const DeviceHandle &) = delete;

  /// The library, with a handle from now on; null where it is missing or cannot be used.
  const Rocblas *rocblas(const Use &use);
  rocblas_handle handle() const { return handle_; }
  /// What was opened, or why not, if it was asked for.
  std::string describe();
  /// Why not, if it was asked for in vain.
  std::vector<std::string> missing();

 private:
  explicit DeviceHandle(int32_t ordinal) : ordinal_(ordinal) {}
  base::Status open();

  std::mutex mutex_;
  const int32_t ordinal_;
  const Rocblas *rocblas_ = nullptr;
  rocblas_handle handle_ = nullptr;
  std::string text_;  // empty: not asked for yet
};

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_DEVICE_HANDLE_H_

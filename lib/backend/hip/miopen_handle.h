// SPDX-License-Identifier: Apache-2.0
//
// MIOpen's handle for one GPU, opened when the first kernel asks. Logical devices on one GPU share it.
//
//   TUTTI_ASSIGN(std::shared_ptr<MiopenHandle> device, MiopenHandle::of(ordinal));
//   const MiopenHandle::Use use(*device);                            // while it lives, this thread alone uses it
//   if (const Miopen *miopen = device->miopen(use)) TUTTI_TRY(device->set_stream(use, stream));
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_HIP_MIOPEN_HANDLE_H_
#define TUTTI_BACKEND_HIP_MIOPEN_HANDLE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/gpu/runtime/relaxed_capture.h"
#include "backend/hip/miopen.h"
#include "base/status.h"

namespace tutti::impl::backend::hip {

class MiopenHandle {
 public:
  /// The exclusive use of the handle. The library may allocate and load modules meanwhile, even while this thread
  /// captures a stream.
  class Use {
   public:
    explicit Use(MiopenHandle &device) : guard_(device.mutex_) {}

   private:
    const std::lock_guard<std::mutex> guard_;
    const gpu::RelaxedCapture may_load_;
  };

  /// That of a GPU. The device is current.
  static base::Result<std::shared_ptr<MiopenHandle>> of(int32_t ordinal);
  /// That of the calling thread's current device.
  static base::Result<std::shared_ptr<MiopenHandle>> of_current_device();
  ~MiopenHandle();
  MiopenHandle(const MiopenHandle &) = delete;
  MiopenHandle &operator=(const MiopenHandle &) = delete;

  int32_t ordinal() const { return ordinal_; }
  /// The library, with a handle from now on; null where it is missing or cannot be used.
  const Miopen *miopen(const Use &use);
  /// With miopen() only.
  miopenHandle_t handle() const { return handle_; }
  const std::string &version() const { return version_; }
  /// Later calls go to that stream. The handle is told where it is another than before: that costs it much.
  base::Status set_stream(const Use &use, hipStream_t stream);
  /// What was opened, or why not, if it was asked for.
  std::string describe();
  /// Why not, if it was asked for in vain.
  std::vector<std::string> missing();

 private:
  explicit MiopenHandle(int32_t ordinal) : ordinal_(ordinal) {}
  base::Status open();

  std::mutex mutex_;
  const int32_t ordinal_;
  const Miopen *miopen_ = nullptr;
  miopenHandle_t handle_ = nullptr;
  std::optional<hipStream_t> stream_;
  std::string version_;
  std::string text_;  // empty: not asked for yet
};

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_MIOPEN_HANDLE_H_

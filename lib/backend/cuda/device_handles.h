// SPDX-License-Identifier: Apache-2.0
//
// What the libraries keep for one GPU: a handle each, opened when the first kernel asks. Logical devices on one GPU
// share them.
//
//   TUTTI_ASSIGN(std::shared_ptr<DeviceHandles> handles, DeviceHandles::of(ordinal));
//   const DeviceHandles::Use use(*handles);               // while it lives, this thread alone uses the handles
//   if (const CublasLt *lt = handles->cublaslt(use)) lt->cublasLtMatmul(handles->cublaslt_handle(), ...);
//   if (const Cudnn *cudnn = handles->cudnn(use)) TUTTI_TRY(handles->issue_cudnn_on(use, stream));
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_CUDA_DEVICE_HANDLES_H_
#define TUTTI_BACKEND_CUDA_DEVICE_HANDLES_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/cudnn_plan.h"
#include "backend/cuda/dynamic_library.h"
#include "backend/gpu/runtime/relaxed_capture.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

class DeviceHandles {
 public:
  /// The exclusive use of the handles. Libraries may allocate and load modules meanwhile, even while this thread
  /// captures a stream.
  class Use {
   public:
    explicit Use(DeviceHandles &handles) : handles_(handles), guard_(handles.mutex_) {}
    ~Use() { handles_.leave_stream(); }
    Use(const Use &) = delete;
    Use &operator=(const Use &) = delete;

   private:
    DeviceHandles &handles_;
    const std::lock_guard<std::mutex> guard_;
    const gpu::RelaxedCapture may_load_;
  };

  /// Those of a GPU, which stay for as long as the process does. The device is current.
  static base::Result<std::shared_ptr<DeviceHandles>> of(int32_t ordinal);
  /// Those of the calling thread's current device.
  static base::Result<std::shared_ptr<DeviceHandles>> of_current_device();
  DeviceHandles(const DeviceHandles &) = delete;
  DeviceHandles &operator=(const DeviceHandles &) = delete;

  /// The library, with a handle from now on; null where it is missing or cannot be used.
  const CublasLt *cublaslt(const Use &use);
  cublasLtHandle_t cublaslt_handle() const { return cublaslt_handle_; }
  const Cudnn *cudnn(const Use &use);
  cudnnHandle_t cudnn_handle() const { return cudnn_handle_; }
  /// What cuDNN does goes to the stream for as long as `use` lives, once it is open.
  base::Status issue_cudnn_on(const Use &use, cudaStream_t stream);
  /// What cuDNN makes plans for, once it is open.
  CudnnDevice cudnn_device(const Use &) const { return {cudnn_handle_, nullptr, kept_plans_.get()}; }
  /// What could not be opened is asked for again: it may be there by now, or memory for it.
  void ask_again();
  /// Plans that took long to make are kept there from now on.
  void keep_plans(std::shared_ptr<const gpu::LibraryPlanCache> kept);
  /// Not there any more, as whoever it reports to may be gone; if others are kept by now, they stay.
  void drop_plans(const std::shared_ptr<const gpu::LibraryPlanCache> &kept);

  int32_t ordinal() const { return ordinal_; }
  /// Bytes of memory that products should have, by NVIDIA's advice for the generation.
  int64_t product_scratch_bytes() const { return product_scratch_bytes_; }
  /// What was opened, or why not, of the libraries that were asked for.
  std::string describe();
  /// Why not, of those that were asked for in vain.
  std::vector<std::string> missing();

 private:
  explicit DeviceHandles(int32_t ordinal) : ordinal_(ordinal) {}
  base::Status open_cublaslt();
  base::Status open_cudnn();
  void leave_stream();

  std::mutex mutex_;
  const int32_t ordinal_;
  int64_t product_scratch_bytes_ = 0;
  const CublasLt *cublaslt_ = nullptr;
  cublasLtHandle_t cublaslt_handle_ = nullptr;
  std::string cublaslt_text_;  // empty: not asked for yet
  const Cudnn *cudnn_ = nullptr;
  cudnnHandle_t cudnn_handle_ = nullptr;
  // The handle's between uses, when other streams may go: cuDNN asks the stream that it has while it makes plans.
  cudaStream_t resting_stream_ = nullptr;
  bool is_resting_ = true;
  std::string cudnn_text_;
  std::shared_ptr<const gpu::LibraryPlanCache> kept_plans_;
};

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_DEVICE_HANDLES_H_

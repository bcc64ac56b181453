// SPDX-License-Identifier: Apache-2.0
//
// The kernels that NVIDIA's libraries have: matrix products (cuBLASLt), convolutions (cuDNN, and cuBLASLt for those of
// one pixel), with or without what surrounds them, and attention (cuDNN). What they do not take, or where they are
// missing, the kernels of gpu/ do.
//
// Threads: a library is used by one thread at a time.
#ifndef TUTTI_BACKEND_CUDA_CUDA_LIBRARY_H_
#define TUTTI_BACKEND_CUDA_CUDA_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/device_handles.h"
#include "backend/gpu/library/library.h"
#include "base/status.h"

namespace tutti::impl::backend::cuda {

class CudaLibrary final : public gpu::Library {
 public:
  /// Plans that took long to make are kept in `kept`; null: nowhere.
  static base::Result<std::unique_ptr<gpu::Library>> open(int32_t ordinal,
                                                          std::shared_ptr<const gpu::LibraryPlanCache> kept = nullptr);
  ~CudaLibrary() override;

  base::Result<gpu::Kernel> find(gpu::KernelRequest &request) override;
  bool has_channel_sums() const override { return true; }
  std::string describe() const override { return handles_->describe(); }
  std::vector<std::string> missing() const override { return handles_->missing(); }

 private:
  CudaLibrary(std::shared_ptr<DeviceHandles> handles, std::shared_ptr<const gpu::LibraryPlanCache> kept)
      : handles_(std::move(handles)), kept_(std::move(kept)) {}

  const std::shared_ptr<DeviceHandles> handles_;
  const std::shared_ptr<const gpu::LibraryPlanCache> kept_;
};

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_CUDA_LIBRARY_H_

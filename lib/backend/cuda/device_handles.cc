// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/device_handles.h"

#include <map>
#include <utility>

#include "backend/gpu/runtime/runtime.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using gpu::status_of;

namespace {

constexpr int64_t kMebibyte = 1 << 20;

/// By compute capability, from NVIDIA's documentation of cuBLAS ("cublasSetWorkspace").
int64_t advised_product_scratch(int major) {
  if (major == 9 || major == 10) return 32 * kMebibyte;
  return (major == 12 ? 12 : 4) * kMebibyte;
}

}  // namespace

Result<std::shared_ptr<DeviceHandles>> DeviceHandles::of(int32_t ordinal) {
  // Never destroyed: programs may be released while the process ends. Nor are the handles: to open cuDNN takes long.
  struct Opened {
    std::mutex mutex;
    std::map<int32_t, std::shared_ptr<DeviceHandles>> by_ordinal;
  };
  static auto *const opened = new Opened;
  const std::lock_guard guard(opened->mutex);
  std::shared_ptr<DeviceHandles> &handles = opened->by_ordinal[ordinal];
  if (handles != nullptr) return handles;
  int major = 0;
  TUTTI_TRY(
      status_of(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal), "asking what a device is"));
  handles.reset(new DeviceHandles(ordinal));
  handles->product_scratch_bytes_ = advised_product_scratch(major);
  return handles;
}

Result<std::shared_ptr<DeviceHandles>> DeviceHandles::of_current_device() {
  int ordinal = 0;
  TUTTI_TRY(status_of(cudaGetDevice(&ordinal), "asking for the current device"));
  return of(ordinal);
}

Status DeviceHandles::open_cublaslt() {
  TUTTI_ASSIGN(const CublasLt *const lt, cuda::cublaslt());
  TUTTI_TRY(cuda::status_of(*lt, lt->cublasLtCreate(&cublaslt_handle_), "opening it"));
  cublaslt_ = lt;
  cublaslt_text_ = "cuBLASLt " + version_of(*lt);
  return Status();
}

Status DeviceHandles::open_cudnn() {
  TUTTI_ASSIGN(const Cudnn *const cudnn, cuda::cudnn());
  if (resting_stream_ == nullptr)
    TUTTI_TRY(status_of(cudaStreamCreateWithFlags(&resting_stream_, cudaStreamNonBlocking), "making a stream"));
  if (cudnn_handle_ == nullptr) TUTTI_TRY(cuda::status_of(*cudnn, cudnn->cudnnCreate(&cudnn_handle_), "opening it"));
  TUTTI_TRY(cuda::status_of(*cudnn, cudnn->cudnnSetStream(cudnn_handle_, resting_stream_), "choosing a stream"));
  cudnn_ = cudnn;
  cudnn_text_ = "cuDNN " + version_of(*cudnn);
  return Status();
}

const CublasLt *DeviceHandles::cublaslt(const Use &) {
  if (!cublaslt_text_.empty()) return cublaslt_;
  const Status status = open_cublaslt();
  if (!status.ok()) cublaslt_text_ = "cuBLASLt is missing: " + status.message();
  return cublaslt_;
}

const Cudnn *DeviceHandles::cudnn(const Use &) {
  if (!cudnn_text_.empty()) return cudnn_;
  const Status status = open_cudnn();
  if (!status.ok()) cudnn_text_ = "cuDNN is missing: " + status.message();
  return cudnn_;
}

Status DeviceHandles::issue_cudnn_on(const Use &, cudaStream_t stream) {
  is_resting_ = false;
  return cuda::status_of(*cudnn_, cudnn_->cudnnSetStream(cudnn_handle_, stream), "choosing a stream");
}

void DeviceHandles::leave_stream() {
  if (is_resting_) return;
  is_resting_ = true;
  (void)cudnn_->cudnnSetStream(cudnn_handle_, resting_stream_);
}

void DeviceHandles::ask_again() {
  const std::lock_guard guard(mutex_);
  if (cublaslt_ == nullptr) cublaslt_text_.clear();
  if (cudnn_ == nullptr) cudnn_text_.clear();
}

void DeviceHandles::keep_plans(std::shared_ptr<const gpu::LibraryPlanCache> kept) {
  const std::lock_guard guard(mutex_);
  kept_plans_ = std::move(kept);
}

void DeviceHandles::drop_plans(const std::shared_ptr<const gpu::LibraryPlanCache> &kept) {
  const std::lock_guard guard(mutex_);
  if (kept_plans_ == kept) kept_plans_ = nullptr;
}

std::string DeviceHandles::describe() {
  const std::lock_guard guard(mutex_);
  if (cublaslt_text_.empty() || cudnn_text_.empty()) return cublaslt_text_ + cudnn_text_;
  return cublaslt_text_ + "; " + cudnn_text_;
}

std::vector<std::string> DeviceHandles::missing() {
  const std::lock_guard guard(mutex_);
  std::vector<std::string> texts;
  if (cublaslt_ == nullptr && !cublaslt_text_.empty()) texts.push_back(cublaslt_text_);
  if (cudnn_ == nullptr && !cudnn_text_.empty()) texts.push_back(cudnn_text_);
  return texts;
}

}  // namespace tutti::impl::backend::cuda

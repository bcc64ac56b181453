// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/device_handle.h"

#include "backend/gpu/runtime/runtime.h"
#include "backend/gpu/runtime/shared_by_device.h"

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;

Result<std::shared_ptr<DeviceHandle>> DeviceHandle::of(int32_t ordinal) {
  // Never destroyed: programs may be released while the process ends.
  static auto *const table = new gpu::SharedByDevice<DeviceHandle>;
  return table->get(ordinal, [&]() -> Result<std::unique_ptr<DeviceHandle>> {
    return std::unique_ptr<DeviceHandle>(new DeviceHandle(ordinal));
  });
}

Result<std::shared_ptr<DeviceHandle>> DeviceHandle::of_current_device() {
  int ordinal = 0;
  TUTTI_TRY(gpu::status_of(hipGetDevice(&ordinal), "asking for the current device"));
  return of(ordinal);
}

DeviceHandle::~DeviceHandle() {
  if (handle_ == nullptr) return;
  (void)hipSetDevice(ordinal_);
  (void)rocblas_->destroy_handle(handle_);
}

Status DeviceHandle::open() {
  TUTTI_ASSIGN(const Rocblas *const opened, hip::rocblas());
  TUTTI_TRY(status_of(*opened, opened->create_handle(&handle_), "opening it"));
  rocblas_ = opened;
  // Else sums of parts may be added in any order.
  TUTTI_TRY(status_of(*opened, opened->set_atomics_mode(handle_, rocblas_atomics_not_allowed), "opening it"));
  char version[64] = "";
  TUTTI_TRY(status_of(*opened, opened->get_version_string(version, sizeof(version)), "querying its version"));
  text_ = base::concat("rocBLAS ", static_cast<const char *>(version));
  return Status();
}

const Rocblas *DeviceHandle::rocblas(const Use &) {
  if (!text_.empty()) return rocblas_;
  const Status status = open();
  if (status.ok()) return rocblas_;
  if (handle_ != nullptr) (void)rocblas_->destroy_handle(handle_);
  handle_ = nullptr;
  rocblas_ = nullptr;
  text_ = "rocBLAS is missing: " + status.message();
  return nullptr;
}

std::string DeviceHandle::describe() {
  const std::lock_guard guard(mutex_);
  return text_;
}

std::vector<std::string> DeviceHandle::missing() {
  const std::lock_guard guard(mutex_);
  if (rocblas_ != nullptr || text_.empty()) return {};
  return {text_};
}

}  // namespace tutti::impl::backend::hip

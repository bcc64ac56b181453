// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/miopen_handle.h"

#include "backend/gpu/runtime/runtime.h"
#include "backend/gpu/runtime/shared_by_device.h"

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;

Result<std::shared_ptr<MiopenHandle>> MiopenHandle::of(int32_t ordinal) {
  // Never destroyed: programs may be released while the process ends.
  static auto *const table = new gpu::SharedByDevice<MiopenHandle>;
  return table->get(ordinal, [&]() -> Result<std::unique_ptr<MiopenHandle>> {
    return std::unique_ptr<MiopenHandle>(new MiopenHandle(ordinal));
  });
}

Result<std::shared_ptr<MiopenHandle>> MiopenHandle::of_current_device() {
  int ordinal = 0;
  TUTTI_TRY(gpu::status_of(hipGetDevice(&ordinal), "asking for the current device"));
  return of(ordinal);
}

MiopenHandle::~MiopenHandle() {
  if (handle_ == nullptr) return;
  (void)hipSetDevice(ordinal_);
  (void)miopen_->miopenDestroy(handle_);
}

Status MiopenHandle::open() {
  TUTTI_ASSIGN(const Miopen *const opened, hip::miopen());
  TUTTI_ASSIGN(version_, version_of(*opened));
  TUTTI_TRY(status_of(*opened, opened->miopenCreate(&handle_), "opening it"));
  miopen_ = opened;
  text_ = "MIOpen " + version_;
  return Status();
}

const Miopen *MiopenHandle::miopen(const Use &) {
  if (!text_.empty()) return miopen_;
  const Status status = open();
  if (!status.ok()) text_ = "MIOpen is missing: " + status.message();
  return miopen_;
}

Status MiopenHandle::set_stream(const Use &, hipStream_t stream) {
  if (stream_ == stream) return Status();
  stream_.reset();
  TUTTI_TRY(status_of(*miopen_, miopen_->miopenSetStream(handle_, stream), "choosing a stream"));
  stream_ = stream;
  return Status();
}

std::string MiopenHandle::describe() {
  const std::lock_guard guard(mutex_);
  return text_;
}

std::vector<std::string> MiopenHandle::missing() {
  const std::lock_guard guard(mutex_);
  if (miopen_ != nullptr || text_.empty()) return {};
  return {text_};
}

}  // namespace tutti::impl::backend::hip

// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/miopen.h"

namespace tutti::impl::backend::hip {

using base::Result;
using base::Status;

namespace {

base::Code code_of(miopenStatus_t status) {
  switch (status) {
    case miopenStatusAllocFailed:
      return base::Code::resource_exhausted;
    case miopenStatusNotImplemented:
    case miopenStatusUnsupportedOp:
      return base::Code::unimplemented;
    default:
      return base::Code::internal;
  }
}

}  // namespace

Result<std::string> version_of(const Miopen &miopen) {
  size_t major = 0, minor = 0, patch = 0;
  TUTTI_TRY(status_of(miopen, miopen.miopenGetVersion(&major, &minor, &patch), "querying its version"));
  return base::concat(major, ".", minor, ".", patch);
}

Status status_of(const Miopen &miopen, miopenStatus_t status, std::string_view action) {
  if (status == miopenStatusSuccess) return Status();
  return Status(code_of(status), base::concat(action, ": MIOpen says ", miopen.miopenGetErrorString(status)));
}

}  // namespace tutti::impl::backend::hip

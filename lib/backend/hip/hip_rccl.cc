// SPDX-License-Identifier: Apache-2.0
//
// RCCL, opened when GPUs are connected for the first time.
#include "backend/gpu/collective/nccl.h"
#include "backend/gpu/runtime/opened_library.h"
#include "backend/hip/same_runtime.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;
using base::Status;

namespace {
Result<Nccl> load() {
  TUTTI_ASSIGN(const Nccl nccl, open_nccl("librccl.so.1", "/opt/rocm/lib"));
  TUTTI_TRY(hip::check_same_runtime(reinterpret_cast<const void *>(nccl.ncclGetVersion)));
  return nccl;
}
}  // namespace

Result<const Nccl *> nccl() {
  Result<const Nccl *> opened = loaded_once<Nccl, load>();
  return opened.ok() ? opened : opened.status().wrap("GPUs cannot be connected without RCCL");
}

const char *nccl_name() { return "RCCL"; }

Status check_sums_repeat() {
  return base::unavailable("it has not been verified that sums of RCCL are bit-identical from run to run");
}

Status check_captures(int) { return base::unimplemented("capturing operations of RCCL is not supported"); }

}  // namespace tutti::impl::backend::gpu::platform

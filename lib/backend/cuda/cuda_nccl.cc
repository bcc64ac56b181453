// SPDX-License-Identifier: Apache-2.0
//
// NCCL of CUDA, opened when GPUs are connected for the first time.
#include <cstdlib>
#include <string_view>

#include "backend/gpu/collective/nccl.h"
#include "backend/gpu/runtime/opened_library.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;
using base::Status;

namespace {
/// NVLink switches, by NCCL's own variable.
bool may_switches_add_from_environment() {
  const char *const value = secure_getenv("NCCL_NVLS_ENABLE");
  return value == nullptr || std::string_view(value) != "0";
}

Result<Nccl> load() { return open_nccl("libnccl.so.2", TUTTI_GPU_TOOLKIT "/lib64"); }
}  // namespace

Result<const Nccl *> nccl() {
  Result<const Nccl *> opened = loaded_once<Nccl, load>();
  return opened.ok() ? opened : opened.status().wrap("GPUs cannot be connected without NCCL");
}

const char *nccl_name() { return "NCCL"; }

Status check_sums_repeat() {
  if (!may_switches_add_from_environment()) return Status();
  return base::unavailable(
      "sums of NCCL may differ from run to run where NVLink switches add them up: set the environment variable "
      "NCCL_NVLS_ENABLE to 0 before the process starts");
}

// It can since 2.9. Communicators that do not block are younger, so the least is set with some distance; not tried.
Status check_captures(int version) {
  constexpr int kLeast = 21800;
  if (version >= kLeast) return Status();
  return base::unimplemented("capturing operations needs NCCL 2.18, and this is ", version / 10000, ".",
                             version / 100 % 100);
}

}  // namespace tutti::impl::backend::gpu::platform

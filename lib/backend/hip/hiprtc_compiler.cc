// SPDX-License-Identifier: Apache-2.0
//
// hipRTC, opened on first use: a library of its own, or before HIP 6 a part of the runtime, which is there.
#include <tutti_gpu.h>

#include "backend/gpu/generated/rtc.h"
#include "backend/gpu/generated/rtc_compiler.h"
#include "backend/gpu/runtime/opened_library.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;

namespace {

constexpr const char *kFolder = "/opt/rocm/lib";

Result<Rtc> load_hiprtc() {
  Result<Rtc> own = open_rtc(base::concat("libhiprtc.so.", HIP_VERSION_MAJOR), kFolder);
  if (own.ok()) return own;
  Result<Rtc> in_runtime = open_rtc(base::concat("libamdhip64.so.", HIP_VERSION_MAJOR), kFolder);
  return in_runtime.ok() ? in_runtime : own;
}

/// hipRTC gives the same version for years; the runtime that it comes with has its own. 0: it does not say.
int runtime_version() {
  decltype(&::hipRuntimeGetVersion) get_version = nullptr;
  int version = 0;
  if (const auto runtime = OpenedLibrary::open(base::concat("libamdhip64.so.", HIP_VERSION_MAJOR), kFolder);
      runtime.ok())
    runtime->find_optional(get_version, "hipRuntimeGetVersion");
  return get_version != nullptr && get_version(&version) == hipSuccess ? version : 0;
}

}  // namespace

Result<std::shared_ptr<const RunTimeCompiler>> open_rtc_compiler(const std::string &architecture, bool is_strict) {
  TUTTI_ASSIGN(const Rtc *const hiprtc, (loaded_once<Rtc, load_hiprtc>()));
  // Like device_elementwise.cu: a product and a sum are two instructions, each rounded.
  std::vector<std::string> options = {"--offload-arch=" + architecture, "-std=c++20", "-O3", "-ffp-contract=off"};
  if (is_strict) options.push_back("-Wall");
  return make_rtc_compiler(*hiprtc,
                           {base::concat(architecture, ", HIP ", runtime_version()), std::move(options), is_strict});
}

}  // namespace tutti::impl::backend::gpu::platform

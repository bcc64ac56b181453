// SPDX-License-Identifier: Apache-2.0
//
// NVRTC, opened on first use as the libraries of dynamic_library.h are: of the toolkit's major version, or of an
// earlier one whose machine code drivers take as well.
#include <cuda_runtime_api.h>

#include "backend/gpu/generated/rtc.h"
#include "backend/gpu/generated/rtc_compiler.h"
#include "backend/gpu/runtime/opened_library.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;

namespace {

/// The oldest whose machine code is worth having.
constexpr int kOldestMajor = 12;

/// As where nvcc compiles the same functions: comparisons that are idle for some types of a template.
constexpr const char *kIdleComparisons = "--diag-suppress=186";

/// NVRTC opens a library of its own by name when it compiles, and finds it where the loader looks or once it is there:
/// so it is opened from the toolkit, too. Where it is missing, compiling says so.
void open_other_half(const Rtc &nvrtc) {
  int major = 0, minor = 0;
  if (nvrtc.version(&major, &minor) != rtcSuccess) return;
  const std::string file = base::concat("libnvrtc-builtins.so.", major, ".", minor);
  (void)OpenedLibrary::open(file, TUTTI_GPU_TOOLKIT "/lib64");
}

Result<Rtc> load_version(int major) {
  TUTTI_ASSIGN(const Rtc opened, open_rtc(base::concat("libnvrtc.so.", major), TUTTI_GPU_TOOLKIT "/lib64"));
  open_other_half(opened);
  return opened;
}

Result<Rtc> load_nvrtc() {
  Result<Rtc> newest = load_version(CUDART_VERSION / 1000);
  for (int major = CUDART_VERSION / 1000 - 1; !newest.ok() && major >= kOldestMajor; --major) {
    Result<Rtc> older = load_version(major);
    if (older.ok()) return older;
  }
  return newest;
}

}  // namespace

Result<std::shared_ptr<const RunTimeCompiler>> open_rtc_compiler(const std::string &architecture, bool is_strict) {
  TUTTI_ASSIGN(const Rtc *const nvrtc, (loaded_once<Rtc, load_nvrtc>()));
  // Like device_elementwise.cu: a product and a sum are two instructions, each rounded.
  std::vector<std::string> options = {"--gpu-architecture=" + architecture, "--std=c++20", "--fmad=false",
                                      kIdleComparisons};
  return make_rtc_compiler(*nvrtc, {architecture, std::move(options), is_strict});
}

}  // namespace tutti::impl::backend::gpu::platform

// SPDX-License-Identifier: Apache-2.0
//
// Where the toolkit lacks NVRTC's header, or is older than CUDA 12.8 and cannot load kernels without the driver.
#include "backend/gpu/generated/rtc_compiler.h"

namespace tutti::impl::backend::gpu::platform {

base::Result<std::shared_ptr<const RunTimeCompiler>> open_rtc_compiler(const std::string &, bool) {
  return base::unavailable("this plug-in was built without NVRTC: it needs nvrtc.h and CUDA 12.8");
}

}  // namespace tutti::impl::backend::gpu::platform

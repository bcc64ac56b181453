// SPDX-License-Identifier: Apache-2.0
//
// NVRTC and hipRTC as compilers of kernels at run time (run_time_compiler.h). What is compiled needs neither a GPU nor
// a driver; what is loaded does.
//
//   TUTTI_ASSIGN(const auto compiler, platform::open_rtc_compiler("sm_90"));
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_GPU_GENERATED_RTC_COMPILER_H_
#define TUTTI_BACKEND_GPU_GENERATED_RTC_COMPILER_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/gpu/generated/run_time_compiler.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

struct Rtc;

struct RtcTarget {
  std::string name;                  ///< "sm_90", and what else tells compilers of one version apart
  std::vector<std::string> options;  ///< of the compiler
  bool is_strict = false;            ///< warnings are errors, for tests
};

/// `rtc` lives as long as the process.
base::Result<std::shared_ptr<const RunTimeCompiler>> make_rtc_compiler(const Rtc &rtc, RtcTarget target);

namespace platform {

/// For an architecture by its name. UNAVAILABLE where the library is missing.
base::Result<std::shared_ptr<const RunTimeCompiler>> open_rtc_compiler(const std::string &architecture,
                                                                       bool is_strict = false);

/// The kernels of these names in machine code, on the current device already and on any other when they are launched
/// there first.
base::Result<std::vector<std::shared_ptr<const GeneratedKernel>>> load_kernels(const std::string &image,
                                                                               std::span<const std::string> names);

}  // namespace platform
}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_RTC_COMPILER_H_

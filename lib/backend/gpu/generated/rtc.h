// SPDX-License-Identifier: Apache-2.0
//
// NVRTC, or hipRTC, which has the same interface: <tutti_rtc.h> of each platform includes its header and gives it the
// names of here, as <tutti_gpu.h> does. Opened when a kernel is compiled for the first time; a plug-in works without.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_GPU_GENERATED_RTC_H_
#define TUTTI_BACKEND_GPU_GENERATED_RTC_H_

#include <tutti_rtc.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

struct Rtc {
  decltype(&::rtcVersion) version = nullptr;
  decltype(&::rtcGetErrorString) get_error_string = nullptr;
  decltype(&::rtcCreateProgram) create_program = nullptr;
  decltype(&::rtcDestroyProgram) destroy_program = nullptr;
  decltype(&::rtcCompileProgram) compile_program = nullptr;
  decltype(&::rtcGetProgramLogSize) get_program_log_size = nullptr;
  decltype(&::rtcGetProgramLog) get_program_log = nullptr;
  decltype(&::rtcGetCodeSize) get_code_size = nullptr;
  decltype(&::rtcGetCode) get_code = nullptr;
};

/// The functions of a shared library, looked for where the loader looks, then in `folder`; never closed. UNAVAILABLE
/// and what is missing.
base::Result<Rtc> open_rtc(const std::string &file, const std::string &folder);

/// Ok, or what the library says while `action` ("compiling kernels").
base::Status status_of(const Rtc &rtc, rtcResult result, std::string_view action);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_RTC_H_

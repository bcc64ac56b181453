// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/generated/rtc.h"
#include "backend/gpu/runtime/opened_library.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

/// The platform's name of a function: "nvrtcVersion" of rtcVersion.
#define TUTTI_NAME(function) TUTTI_TEXT(function)
#define TUTTI_TEXT(name) #name

Result<Rtc> open_rtc(const std::string &file, const std::string &folder) {
  TUTTI_ASSIGN(OpenedLibrary library, OpenedLibrary::open(file, folder));
  Rtc rtc;
  library.find(rtc.version, TUTTI_NAME(rtcVersion));
  library.find(rtc.get_error_string, TUTTI_NAME(rtcGetErrorString));
  library.find(rtc.create_program, TUTTI_NAME(rtcCreateProgram));
  library.find(rtc.destroy_program, TUTTI_NAME(rtcDestroyProgram));
  library.find(rtc.compile_program, TUTTI_NAME(rtcCompileProgram));
  library.find(rtc.get_program_log_size, TUTTI_NAME(rtcGetProgramLogSize));
  library.find(rtc.get_program_log, TUTTI_NAME(rtcGetProgramLog));
  library.find(rtc.get_code_size, TUTTI_NAME(rtcGetCodeSize));
  library.find(rtc.get_code, TUTTI_NAME(rtcGetCode));
  TUTTI_TRY(library.all_found(file));
  return rtc;
}

Status status_of(const Rtc &rtc, rtcResult result, std::string_view action) {
  if (result == rtcSuccess) return Status();
  return Status(result == rtcErrorOutOfMemory ? base::Code::resource_exhausted : base::Code::internal,
                base::concat(action, ": ", TUTTI_RTC_NAME, " says ", rtc.get_error_string(result)));
}

}  // namespace tutti::impl::backend::gpu

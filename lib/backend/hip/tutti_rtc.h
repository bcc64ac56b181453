// SPDX-License-Identifier: Apache-2.0
//
// The names of hipRTC for lib/backend/gpu/.
#ifndef TUTTI_BACKEND_HIP_TUTTI_RTC_H_
#define TUTTI_BACKEND_HIP_TUTTI_RTC_H_

#include <hip/hiprtc.h>

#define TUTTI_RTC_NAME "hipRTC"
#define rtcResult hiprtcResult
#define rtcSuccess HIPRTC_SUCCESS
#define rtcErrorOutOfMemory HIPRTC_ERROR_OUT_OF_MEMORY
#define rtcProgram hiprtcProgram
#define rtcVersion hiprtcVersion
#define rtcGetErrorString hiprtcGetErrorString
#define rtcCreateProgram hiprtcCreateProgram
#define rtcDestroyProgram hiprtcDestroyProgram
#define rtcCompileProgram hiprtcCompileProgram
#define rtcGetProgramLogSize hiprtcGetProgramLogSize
#define rtcGetProgramLog hiprtcGetProgramLog
#define rtcGetCodeSize hiprtcGetCodeSize
#define rtcGetCode hiprtcGetCode

#endif  // TUTTI_BACKEND_HIP_TUTTI_RTC_H_

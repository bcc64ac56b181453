// SPDX-License-Identifier: Apache-2.0
//
// The names of NVRTC for lib/backend/gpu/.
#ifndef TUTTI_BACKEND_CUDA_TUTTI_RTC_H_
#define TUTTI_BACKEND_CUDA_TUTTI_RTC_H_

#include <nvrtc.h>

#define TUTTI_RTC_NAME "NVRTC"
#define rtcResult nvrtcResult
#define rtcSuccess NVRTC_SUCCESS
#define rtcErrorOutOfMemory NVRTC_ERROR_OUT_OF_MEMORY
#define rtcProgram nvrtcProgram
#define rtcVersion nvrtcVersion
#define rtcGetErrorString nvrtcGetErrorString
#define rtcCreateProgram nvrtcCreateProgram
#define rtcDestroyProgram nvrtcDestroyProgram
#define rtcCompileProgram nvrtcCompileProgram
#define rtcGetProgramLogSize nvrtcGetProgramLogSize
#define rtcGetProgramLog nvrtcGetProgramLog
#define rtcGetCodeSize nvrtcGetCUBINSize
#define rtcGetCode nvrtcGetCUBIN

#endif  // TUTTI_BACKEND_CUDA_TUTTI_RTC_H_

// SPDX-License-Identifier: Apache-2.0
//
// NVRTC, opened on first use as the libraries of dynamic_library.h are: of the toolkit's major version, or of an
// earlier one whose machine code drivers take as well.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_CUDA_NVRTC_LIBRARY_H_
#define TUTTI_BACKEND_CUDA_NVRTC_LIBRARY_H_

#include <nvrtc.h>

#include <string_view>

#include "base/status.h"

namespace tutti::impl::backend::cuda {

struct Nvrtc {
  decltype(&::nvrtcVersion) nvrtcVersion = nullptr;
  decltype(&::nvrtcGetErrorString) nvrtcGetErrorString = nullptr;
  decltype(&::nvrtcCreateProgram) nvrtcCreateProgram = nullptr;
  decltype(&::nvrtcDestroyProgram) nvrtcDestroyProgram = nullptr;
  decltype(&::nvrtcCompileProgram) nvrtcCompileProgram = nullptr;
  decltype(&::nvrtcGetProgramLogSize) nvrtcGetProgramLogSize = nullptr;
  decltype(&::nvrtcGetProgramLog) nvrtcGetProgramLog = nullptr;
  decltype(&::nvrtcGetCUBINSize) nvrtcGetCUBINSize = nullptr;
  decltype(&::nvrtcGetCUBIN) nvrtcGetCUBIN = nullptr;
};

/// The functions for the life of the process, or UNAVAILABLE.
base::Result<const Nvrtc *> nvrtc();

/// Ok, or what NVRTC says while `action` ("compiling kernels").
base::Status status_of(const Nvrtc &nvrtc, nvrtcResult result, std::string_view action);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_NVRTC_LIBRARY_H_

// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/nvrtc_library.h"

#include <cuda_runtime_api.h>

#include "backend/gpu/opened_library.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;

namespace {

/// The oldest whose machine code is worth having.
constexpr int kOldestMajor = 12;

/// NVRTC opens a library of its own by name when it compiles, and finds it where the loader looks or once it is there:
/// so it is opened from the toolkit, too. Where it is missing, compiling says so.
void open_other_half(const Nvrtc &nvrtc) {
  int major = 0, minor = 0;
  if (nvrtc.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) return;
  const std::string file = base::concat("libnvrtc-builtins.so.", major, ".", minor);
  (void)gpu::OpenedLibrary::open(file, TUTTI_GPU_TOOLKIT "/lib64");
}

Result<Nvrtc> load_version(int major) {
  const std::string file = base::concat("libnvrtc.so.", major);
  TUTTI_ASSIGN(gpu::OpenedLibrary library, gpu::OpenedLibrary::open(file, TUTTI_GPU_TOOLKIT "/lib64"));
  Nvrtc made;
  library.find(made.nvrtcVersion, "nvrtcVersion");
  library.find(made.nvrtcGetErrorString, "nvrtcGetErrorString");
  library.find(made.nvrtcCreateProgram, "nvrtcCreateProgram");
  library.find(made.nvrtcDestroyProgram, "nvrtcDestroyProgram");
  library.find(made.nvrtcCompileProgram, "nvrtcCompileProgram");
  library.find(made.nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize");
  library.find(made.nvrtcGetProgramLog, "nvrtcGetProgramLog");
  library.find(made.nvrtcGetCUBINSize, "nvrtcGetCUBINSize");
  library.find(made.nvrtcGetCUBIN, "nvrtcGetCUBIN");
  TUTTI_TRY(library.all_found(file));
  open_other_half(made);
  return made;
}

Result<Nvrtc> load_nvrtc() {
  Result<Nvrtc> newest = load_version(CUDART_VERSION / 1000);
  for (int major = CUDART_VERSION / 1000 - 1; !newest.ok() && major >= kOldestMajor; --major) {
    Result<Nvrtc> older = load_version(major);
    if (older.ok()) return older;
  }
  return newest;
}

}  // namespace

Result<const Nvrtc *> nvrtc() { return gpu::loaded_once<Nvrtc, load_nvrtc>(); }

Status status_of(const Nvrtc &nvrtc, nvrtcResult result, std::string_view action) {
  if (result == NVRTC_SUCCESS) return Status();
  return Status(result == NVRTC_ERROR_OUT_OF_MEMORY ? base::Code::resource_exhausted : base::Code::internal,
                base::concat(action, ": NVRTC says ", nvrtc.nvrtcGetErrorString(result)));
}

}  // namespace tutti::impl::backend::cuda

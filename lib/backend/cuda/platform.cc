// SPDX-License-Identifier: Apache-2.0
//
// CUDA as a platform of gpu/.
#include "backend/gpu/generated/platform.h"

#include <fstream>
#include <string>
#include <utility>

#include "backend/cuda/cuda_library.h"
#include "backend/cuda/fill_nodes.h"
#include "backend/gpu/generated/rtc_compiler.h"
#include "backend/gpu/runtime/runtime.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;
using base::Status;

namespace {

/// "13.0" for 13000.
std::string version_text(int version) { return base::concat(version / 1000, ".", version % 1000 / 10); }

/// "580.65.06, for CUDA up to 13.0".
std::string driver_text() {
  int cuda = 0;
  if (cudaDriverGetVersion(&cuda) != cudaSuccess || cuda == 0) return "is missing: libcuda.so.1 cannot be loaded";
  std::string release;
  std::getline(std::ifstream("/sys/module/nvidia/version"), release);
  return base::concat(release, release.empty() ? "" : ", ", "for CUDA up to ", version_text(cuda));
}

Status missing_driver() {
  int driver = 0;
  // 0 is what it says where there is none.
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return base::unavailable("there is no NVIDIA driver: libcuda.so.1 is not installed or cannot be loaded");
  return base::unavailable("the NVIDIA driver is too old: it supports CUDA ", version_text(driver), ", and ",
                           version_text(CUDART_VERSION), " is needed");
}

}  // namespace

const char *name() { return "cuda"; }

Status check() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return Status();
  (void)cudaGetLastError();  // it would be reported by the next launch
  if (error == cudaErrorInsufficientDriver) return missing_driver();
  if (error == cudaSuccess || error == cudaErrorNoDevice)
    return base::unavailable("there is no NVIDIA GPU, or the environment variable CUDA_VISIBLE_DEVICES hides it");
  return base::unavailable("CUDA cannot be used: ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

const char *architectures() { return TUTTI_GPU_ARCHITECTURES; }

Result<DeviceFacts> describe(int32_t ordinal) {
  cudaDeviceProp properties;
  TUTTI_TRY(status_of(cudaGetDeviceProperties(&properties, ordinal), "asking what a device is"));
  DeviceFacts facts;
  facts.kind = base::concat("cuda sm_", properties.major, properties.minor);
  facts.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  facts.multiplies_bf16 = properties.major >= 8;
  facts.multiplies_f16 = properties.major >= 7;
  int driver = 0;
  TUTTI_TRY(status_of(cudaDriverGetVersion(&driver), "asking for the driver's version"));
  facts.description = base::concat(static_cast<const char *>(properties.name), ", compute capability ",
                                   properties.major, ".", properties.minor, ", ", properties.multiProcessorCount,
                                   " multiprocessors, ", facts.memory_bytes >> 20, " MiB, CUDA ",
                                   version_text(CUDART_VERSION), " on a driver for up to ", version_text(driver));
  return facts;
}

std::vector<std::pair<std::string, std::string>> describe_libraries() {
  const auto text_of = [](const auto &library) {
    return library.ok() ? cuda::version_of(**library) : base::concat("is missing: ", library.status().message());
  };
  return {{"CUDA", version_text(CUDART_VERSION)},
          {"driver", driver_text()},
          {"cuBLASLt", text_of(cuda::cublaslt())},
          {"cuDNN", text_of(cuda::cudnn())}};
}

Result<std::unique_ptr<Library>> open_library(int32_t ordinal, std::shared_ptr<const LibraryPlanCache> kept) {
  return cuda::CudaLibrary::open(ordinal, std::move(kept));
}

bool generates_kernels() { return true; }

Result<std::shared_ptr<const RunTimeCompiler>> open_compiler(int32_t ordinal) {
  int major = 0, minor = 0;
  TUTTI_TRY(status_of(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal), "asking for a GPU"));
  TUTTI_TRY(status_of(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal), "asking for a GPU"));
  return open_rtc_compiler(base::concat("sm_", major, minor));
}

void simplify(gpuGraph_t graph) { (void)cuda::replace_fills(graph); }

}  // namespace tutti::impl::backend::gpu::platform

// SPDX-License-Identifier: Apache-2.0
//
// Machine code as kernels, through the runtime: the driver is not linked.
#include "backend/gpu/generated/rtc_compiler.h"
#include "backend/gpu/runtime/relaxed_capture.h"
#include "backend/gpu/runtime/runtime.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;

namespace {

/// The library that it is of is never unloaded.
class LoadedKernel final : public GeneratedKernel {
 public:
  explicit LoadedKernel(cudaKernel_t kernel) : kernel_(kernel) {}

  gpuError_t launch(const GeneratedOperands &operands, unsigned blocks, size_t shared_bytes,
                    gpuStream_t stream) const override {
    const RelaxedCapture may_load;
    GeneratedOperands copy = operands;
    void *arguments[] = {&copy};
    // The runtime takes a cudaKernel_t in place of a function.
    return cudaLaunchKernel(static_cast<const void *>(kernel_), dim3(blocks), dim3(kBlockThreads), arguments,
                            shared_bytes, stream);
  }

 private:
  cudaKernel_t kernel_;
};

}  // namespace

Result<std::vector<std::shared_ptr<const GeneratedKernel>>> load_kernels(const std::string &image,
                                                                         std::span<const std::string> names) {
  cudaLibrary_t library = nullptr;
  TUTTI_TRY(status_of(cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                      "loading generated kernels"));
  std::vector<std::shared_ptr<const GeneratedKernel>> kernels;
  for (const std::string &name : names) {
    cudaKernel_t kernel = nullptr;
    TUTTI_TRY(status_of(cudaLibraryGetKernel(&kernel, library, name.c_str()), "looking for a generated kernel"));
    cudaFuncAttributes attributes;  // asking for them puts the kernel on the device
    TUTTI_TRY(
        status_of(cudaFuncGetAttributes(&attributes, static_cast<const void *>(kernel)), "loading a generated kernel"));
    kernels.push_back(std::make_shared<LoadedKernel>(kernel));
  }
  return kernels;
}

}  // namespace tutti::impl::backend::gpu::platform

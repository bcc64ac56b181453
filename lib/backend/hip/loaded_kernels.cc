// SPDX-License-Identifier: Apache-2.0
//
// Machine code as kernels. HIP loads it for one device at a time.
#include <map>
#include <mutex>

#include "backend/gpu/generated/rtc_compiler.h"
#include "backend/gpu/runtime/relaxed_capture.h"
#include "backend/gpu/runtime/runtime.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;
using base::Status;

namespace {

/// Machine code on the devices that asked for it so far. Its modules are never unloaded.
class Image {
 public:
  explicit Image(std::string code) : code_(std::move(code)) {}

  /// The kernel of this name on the current device.
  hipError_t find(const std::string &name, hipFunction_t *function) {
    int device = 0;
    if (const hipError_t error = hipGetDevice(&device); error != hipSuccess) return error;
    const std::lock_guard<std::mutex> guard(mutex_);
    hipModule_t &module = modules_[device];
    if (module == nullptr) {
      const RelaxedCapture may_load;
      if (const hipError_t error = hipModuleLoadData(&module, code_.data()); error != hipSuccess) return error;
    }
    return hipModuleGetFunction(function, module, name.c_str());
  }

 private:
  const std::string code_;
  std::mutex mutex_;
  std::map<int, hipModule_t> modules_;
};

class LoadedKernel final : public GeneratedKernel {
 public:
  LoadedKernel(std::shared_ptr<Image> image, std::string name) : image_(std::move(image)), name_(std::move(name)) {}

  gpuError_t launch(const GeneratedOperands &operands, unsigned blocks, size_t shared_bytes,
                    gpuStream_t stream) const override {
    hipFunction_t function = nullptr;
    if (const hipError_t error = image_->find(name_, &function); error != hipSuccess) return error;
    GeneratedOperands copy = operands;
    void *arguments[] = {&copy};
    return hipModuleLaunchKernel(function, blocks, 1, 1, kBlockThreads, 1, 1, static_cast<unsigned>(shared_bytes),
                                 stream, arguments, nullptr);
  }

 private:
  const std::shared_ptr<Image> image_;
  const std::string name_;
};

}  // namespace

Result<std::vector<std::shared_ptr<const GeneratedKernel>>> load_kernels(const std::string &image,
                                                                         std::span<const std::string> names) {
  const auto loaded = std::make_shared<Image>(image);
  std::vector<std::shared_ptr<const GeneratedKernel>> kernels;
  for (const std::string &name : names) {
    hipFunction_t function = nullptr;
    TUTTI_TRY(status_of(loaded->find(name, &function), "loading a generated kernel"));
    kernels.push_back(std::make_shared<LoadedKernel>(loaded, name));
  }
  return kernels;
}

}  // namespace tutti::impl::backend::gpu::platform

// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/nvrtc_compiler.h"

#include <vector>

#include "backend/cuda/loaded_kernels.h"
#include "backend/cuda/nvrtc_library.h"
#include "backend/gpu/generated_headers.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;

namespace {

/// As where nvcc compiles the same functions: comparisons that are idle for some types of a template.
constexpr const char *kIdleComparisons = "--diag-suppress=186";

/// A program of NVRTC while it lives.
class Program {
 public:
  Program(const Nvrtc &nvrtc, const std::string &text) : nvrtc_(nvrtc) {
    std::vector<const char *> names, texts;
    for (const gpu::GeneratedHeader &header : gpu::generated_headers()) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    result_ = nvrtc_.nvrtcCreateProgram(&program_, text.c_str(), "generated.cu", static_cast<int>(names.size()),
                                        texts.data(), names.data());
  }
  ~Program() {
    if (program_ != nullptr) (void)nvrtc_.nvrtcDestroyProgram(&program_);
  }
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  Status compile(const std::vector<const char *> &options) {
    TUTTI_TRY(status_of(nvrtc_, result_, "reading a text"));
    result_ = nvrtc_.nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data());
    const Status status = status_of(nvrtc_, result_, "compiling kernels");
    return status.ok() ? Status() : status.wrap(log());
  }

  /// Errors and warnings; empty: there are none.
  std::string log() const {
    size_t bytes = 0;
    if (nvrtc_.nvrtcGetProgramLogSize(program_, &bytes) != NVRTC_SUCCESS || bytes <= 1) return "";
    std::string text(bytes, '\0');
    if (nvrtc_.nvrtcGetProgramLog(program_, text.data()) != NVRTC_SUCCESS) return "";
    text.resize(bytes - 1);
    return text;
  }

  Result<std::string> image() const {
    size_t bytes = 0;
    TUTTI_TRY(status_of(nvrtc_, nvrtc_.nvrtcGetCUBINSize(program_, &bytes), "asking for machine code"));
    std::string image(bytes, '\0');
    TUTTI_TRY(status_of(nvrtc_, nvrtc_.nvrtcGetCUBIN(program_, image.data()), "asking for machine code"));
    return image;
  }

 private:
  const Nvrtc &nvrtc_;
  nvrtcProgram program_ = nullptr;
  nvrtcResult result_;
};

class NvrtcCompiler final : public gpu::RunTimeCompiler {
 public:
  NvrtcCompiler(const Nvrtc &nvrtc, int32_t architecture, bool is_strict, std::string signature)
      : nvrtc_(nvrtc),
        architecture_(base::concat("--gpu-architecture=sm_", architecture)),
        signature_(std::move(signature)),
        is_strict_(is_strict) {}

  std::string signature() const override { return signature_; }

  Result<std::string> compile(const std::string &text) const override {
    Program program(nvrtc_, text);
    // As device_elementwise.cu is: a product and a sum are two instructions, each rounded.
    TUTTI_TRY(program.compile({architecture_.c_str(), "--std=c++20", "--fmad=false", kIdleComparisons}));
    if (is_strict_ && !program.log().empty()) return base::failed_precondition("NVRTC warns: ", program.log());
    return program.image();
  }

  Result<std::vector<std::shared_ptr<const gpu::GeneratedKernel>>> load(
      const std::string &image, std::span<const std::string> names) const override {
    return load_kernels(image, names);
  }

 private:
  const Nvrtc &nvrtc_;
  const std::string architecture_, signature_;
  const bool is_strict_;
};

}  // namespace

Result<std::shared_ptr<const gpu::RunTimeCompiler>> open_nvrtc(int32_t architecture, bool is_strict) {
  TUTTI_ASSIGN(const Nvrtc *const library, nvrtc());
  int major = 0, minor = 0;
  TUTTI_TRY(status_of(*library, library->nvrtcVersion(&major, &minor), "asking for the version"));
  return std::shared_ptr<const gpu::RunTimeCompiler>(std::make_shared<NvrtcCompiler>(
      *library, architecture, is_strict, base::concat("NVRTC ", major, ".", minor, ", sm_", architecture)));
}

}  // namespace tutti::impl::backend::cuda

// SPDX-License-Identifier: Apache-2.0
//
// A platform's compiler of kernels at run time: text to machine code, machine code to kernels that can be launched.
// Kernels take one argument, GeneratedOperands, by value. They are compiled while a graph is, never while a program
// runs.
//
//   TUTTI_ASSIGN(const std::string image, compiler.compile(text));
//   TUTTI_ASSIGN(const auto kernels, compiler.load(image, names));
//   TUTTI_TRY(status_of(kernels[0]->launch(operands, blocks, 0, stream), "launching elementwise work"));
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BACKEND_GPU_GENERATED_RUN_TIME_COMPILER_H_
#define TUTTI_BACKEND_GPU_GENERATED_RUN_TIME_COMPILER_H_

#include <tutti_gpu.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/gpu/device/generated_operands.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// A kernel on every device of the kind that it was compiled for. Lives as long as the process.
class GeneratedKernel {
 public:
  virtual ~GeneratedKernel() = default;

  /// On the current device, with blocks of kBlockThreads; the stream may be captured.
  virtual gpuError_t launch(const GeneratedOperands &operands, unsigned blocks, size_t shared_bytes,
                            gpuStream_t stream) const = 0;
};

class RunTimeCompiler {
 public:
  virtual ~RunTimeCompiler() = default;

  /// Which compiler, of which version, makes code for what: "NVRTC 13.0, sm_90". Equal signatures give equal code.
  virtual std::string signature() const = 0;
  /// Machine code of a text that has any number of kernels; it may include the headers of generated_headers.h. An error
  /// has what the compiler said.
  virtual base::Result<std::string> compile(const std::string &text) const = 0;
  /// The kernels of these names. A device of the kind is current.
  virtual base::Result<std::vector<std::shared_ptr<const GeneratedKernel>>> load(
      const std::string &image, std::span<const std::string> names) const = 0;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_RUN_TIME_COMPILER_H_

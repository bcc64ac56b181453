// SPDX-License-Identifier: Apache-2.0
//
// What a compiled program of the CPU backend is made of: kernels that are called one after the other with a table of
// pointers.
//
//   class Kernel: made once at compile time, immutable, shared by all programs of the executable.
//   class KernelState: what a kernel needs for each program (handles of a library, for example); made by bind.
//   struct RunContext: the pointers and scalars of one run.
//
// A kernel addresses memory through buffer numbers: context.buffers[number]. Running allocates nothing, looks nothing
// up and takes no lock.
#ifndef TUTTI_BACKEND_CPU_KERNEL_H_
#define TUTTI_BACKEND_CPU_KERNEL_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace tutti::impl::backend::cpu {

/// Index into the table of pointers of a program; -1 = absent.
using BufferId = int32_t;

/// What belongs to one kernel in one program.
class KernelState {
 public:
  virtual ~KernelState() = default;
};

struct RunContext {
  void *const *buffers = nullptr;
  const int64_t *scalars = nullptr;  ///< TUTTI_RUN_* values
  tutti_stream *stream = nullptr;
  const tutti_backend_host *host = nullptr;
  tutti_error_sink *sink = nullptr;

  const float *in(BufferId id) const { return static_cast<const float *>(buffers[id]); }
  float *out(BufferId id) const { return static_cast<float *>(buffers[id]); }
  /// Null for an absent buffer.
  const float *in_or_null(BufferId id) const { return id < 0 ? nullptr : in(id); }
  /// Reports an error; the code to return.
  [[gnu::cold]] int32_t fail(const base::Status &status) const {
    host->set_error(sink, static_cast<int32_t>(status.code()), status.message().c_str());
    return static_cast<int32_t>(status.code());
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Null when the kernel keeps nothing for a program.
  virtual base::Result<std::unique_ptr<KernelState>> make_state() const { return std::unique_ptr<KernelState>(); }
  /// 0, or the code of an error that was reported.
  virtual int32_t run(const RunContext &context, KernelState *state) const = 0;
};

/// A kernel from a function of the context that returns an error code or nothing.
template <typename Function>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(Function function) : function_(std::move(function)) {}

  int32_t run(const RunContext &context, KernelState *) const override {
    if constexpr (std::is_void_v<decltype(function_(context))>) {
      function_(context);
      return 0;
    } else {
      return function_(context);
    }
  }

 private:
  Function function_;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_H_

// SPDX-License-Identifier: Apache-2.0
//
// Kernels that a platform's libraries bring (cuBLASLt, cuDNN, rocBLAS, ...): asked for each node before the kernels of
// this folder.
#ifndef TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_H_
#define TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_H_

#include <string>
#include <vector>

#include "backend/gpu/kernel/kernel.h"
#include "backend/gpu/runtime/launch_gate.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

class Library {
 public:
  virtual ~Library() = default;

  /// A kernel for the node and its name, or an empty one where the library has nothing for it. Library kernels are
  /// called as others are: while a stream is captured, by one thread at a time for each device.
  virtual base::Result<Kernel> find(KernelRequest &request) = 0;

  /// May there be a convolution that gives the sums of its results (norm_sources.h)?
  virtual bool has_channel_sums() const { return false; }

  /// Names and versions, for people.
  virtual std::string describe() const = 0;
  /// "cuDNN is missing: ..." for each library that kernels were asked for in vain so far.
  virtual std::vector<std::string> missing() const { return {}; }
};

/// Library::find() where it is asked: handles, plans and trials take memory and load code.
inline base::Result<Kernel> find_between_launches(Library &library, KernelRequest &request) {
  const BetweenLaunches section;
  return library.find(request);
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_LIBRARY_LIBRARY_H_

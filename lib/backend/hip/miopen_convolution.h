// SPDX-License-Identifier: Apache-2.0
//
// One pass of a convolution of images NHWC as MIOpen's immediate mode has it: solutions, of which one is compiled for a
// handle, then issued without anything being looked for.
//
//   TUTTI_ASSIGN(auto convolution, MiopenConvolution::make(miopen, shape, pass, must_repeat));
//   TUTTI_ASSIGN(auto solutions, convolution.solutions(handle, most_scratch));    // best estimate first
//   TUTTI_TRY(convolution.compile(handle, solutions[0]));
//   TUTTI_TRY(convolution.issue(handle, solutions[0], {x, kernel, y}, scratch));
//
// Kernels are [filters, height, width, channels / groups] (library_convolution_steps.h).
//
// Threads: calls with one handle are made one at a time.
#ifndef TUTTI_BACKEND_HIP_MIOPEN_CONVOLUTION_H_
#define TUTTI_BACKEND_HIP_MIOPEN_CONVOLUTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/gpu/library/library_convolution.h"
#include "backend/hip/miopen.h"
#include "base/status.h"

namespace tutti::impl::backend::hip {

/// `id` is the same in every version.
struct MiopenSolution {
  uint64_t id = 0;
  int64_t scratch_bytes = 0;
};

class MiopenConvolution {
 public:
  /// UNIMPLEMENTED and the reason where MIOpen has no such convolution. `must_repeat`: the same bits every time.
  static base::Result<MiopenConvolution> make(const Miopen &miopen, const gpu::ConvolutionShape &shape,
                                              gpu::ConvolutionPass pass, bool must_repeat);

  /// What it has on the handle's GPU, best estimate first, within that memory. Without products of whole matrices,
  /// whose memory is the handle's and would be shared by programs that run at the same time, and without plain loops.
  base::Result<std::vector<MiopenSolution>> solutions(miopenHandle_t handle, int64_t most_scratch) const;
  /// Makes its code for the handle: this may take seconds.
  base::Status compile(miopenHandle_t handle, const MiopenSolution &solution) const;
  /// Puts it on the handle's stream. `tensors` are x, kernel and y, of which the pass writes one.
  base::Status issue(miopenHandle_t handle, const MiopenSolution &solution, const std::array<void *, 3> &tensors,
                     void *scratch) const;

 private:
  using TensorDescriptor = std::shared_ptr<miopenTensorDescriptor>;
  using WindowDescriptor = std::shared_ptr<miopenConvolutionDescriptor>;

  explicit MiopenConvolution(const Miopen &miopen) : miopen_(&miopen) {}
  base::Result<TensorDescriptor> tensor(const gpu::ConvolutionShape &shape, const std::array<int64_t, 4> &dims) const;
  base::Status add_window(const gpu::ConvolutionShape &shape, bool must_repeat);
  miopenTensorDescriptor_t descriptor(size_t place) const { return descriptors_[order_[place]].get(); }

  const Miopen *miopen_;
  const MiopenPass *pass_ = nullptr;
  std::array<size_t, 3> order_{};                  // in which the pass names x (0), kernel (1) and y (2)
  std::array<TensorDescriptor, 3> descriptors_{};  // x, kernel, y
  WindowDescriptor window_;
};

}  // namespace tutti::impl::backend::hip

#endif  // TUTTI_BACKEND_HIP_MIOPEN_CONVOLUTION_H_

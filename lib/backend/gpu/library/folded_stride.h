// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of few channels with a stride of two, as the first of networks for images have them, by libraries whose
// kernels for matrix units want many channels: the library is asked for one of 16 channels without a stride, of an
// image whose pixels are squares of two by two (device_fold.h). On an H200 cuDNN takes 1.8 ms for the first convolution
// of ResNet-50 of 256 images as it is, and 0.7 so; its gradient of the kernel 1.1 and 0.5. A kernel of an odd size has
// zeros beside it then: where x is not finite, more of y is not finite than by the definition.
//
//   FoldedStride fold(shape, pass);                    // then ask the library for fold.shape()
//   fold.reserve(request);
//   return Kernel([fold](const Frame &frame) -> Status {
//     TUTTI_ASSIGN(void *const x, fold.image(frame, frame.input(0)));
//     TUTTI_TRY(fold.to_filters_first(kernel, frame.input(1), frame.stream()));       // forward: in front,
//     ...
//     return fold.to_filters_last(frame.output(0), kernel, frame.stream());           // kernel gradient: behind
//   });
//
// Threads: immutable once it has its scratch memory.
#ifndef TUTTI_BACKEND_GPU_LIBRARY_FOLDED_STRIDE_H_
#define TUTTI_BACKEND_GPU_LIBRARY_FOLDED_STRIDE_H_

#include <cstdint>

#include "backend/gpu/device/device_fold.h"
#include "backend/gpu/kernel/kernel.h"
#include "backend/gpu/library/library_convolution.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

class FoldedStride {
 public:
  FoldedStride(const ConvolutionShape &own, ConvolutionPass pass);
  /// Folds nothing.
  static FoldedStride none(const ConvolutionShape &own) { return {own, ConvolutionPass::input_gradient}; }

  bool is_needed() const { return is_needed_; }
  /// What the library is asked for; the own one where nothing is folded.
  const ConvolutionShape &shape() const { return folded_; }
  /// Scratch memory for the folded image, if there is one.
  void reserve(KernelRequest &request);

  /// The library's x: `x` itself, or the folded one, written by this call.
  base::Result<void *> image(const Frame &frame, const void *x) const;
  /// Where something is folded.
  base::Status fold_image(void *to, const void *x, gpuStream_t stream) const;
  /// The kernel in the library's order, and back.
  base::Status to_filters_first(void *to, const void *from, gpuStream_t stream) const;
  base::Status to_filters_last(void *to, const void *from, gpuStream_t stream) const;

 private:
  ConvolutionShape own_, folded_;
  StrideFold fold_{};
  bool is_needed_ = false;
  int64_t scratch_at_ = 0;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_LIBRARY_FOLDED_STRIDE_H_

// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by libraries that pad both sides of an axis alike, or compute other paddings wrongly (cuDNN's engines
// differ in that): where the sides differ, the library works on a larger x, in scratch memory, in which the difference
// is zeros (evenly_padded()).
//
//   EvenPadding padding(shape);                        // then ask the library for padding.shape()
//   padding.reserve(request);
//   return Kernel([padding](const Frame &frame) -> Status {
//     TUTTI_ASSIGN(void *const x, padding.widen(frame, frame.input(0)));     // forward and kernel gradient: in front
//     ...
//     void *const dx = padding.gradient(frame, frame.output(0));             // input gradient: what to write to,
//     ...
//     return padding.narrow(frame, frame.output(0));                         // and behind
//   });
//
// Threads: immutable once it has its scratch memory.
#ifndef TUTTI_BACKEND_GPU_LIBRARY_EVEN_PADDING_H_
#define TUTTI_BACKEND_GPU_LIBRARY_EVEN_PADDING_H_

#include <cstdint>

#include "backend/gpu/kernel/kernel.h"
#include "backend/gpu/library/library_convolution.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

class EvenPadding {
 public:
  explicit EvenPadding(const ConvolutionShape &own) : own_(own), even_(evenly_padded(own)) {}

  /// What the library is asked for.
  const ConvolutionShape &shape() const { return even_; }
  /// Is the library's x another one?
  bool is_needed() const { return even_.x != own_.x; }
  /// Scratch memory for the library's x, if that is another one.
  void reserve(KernelRequest &request);

  /// The library's x: `x` itself, or zeros with `x` in them, written by this call.
  base::Result<void *> widen(const Frame &frame, const void *x) const;
  /// Where the library writes the gradient of its x: `dx`, or scratch memory.
  void *gradient(const Frame &frame, void *dx) const;
  /// Behind the library: takes `dx` out of that, if it is not there yet.
  base::Status narrow(const Frame &frame, void *dx) const;

 private:
  /// Of what is in front of x on an axis (1 height, 2 width) of the library's.
  int64_t zeros_before(size_t axis) const { return own_.pad_before[axis - 1] - even_.pad_before[axis - 1]; }

  ConvolutionShape own_, even_;
  int64_t scratch_at_ = 0;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_LIBRARY_EVEN_PADDING_H_

// SPDX-License-Identifier: Apache-2.0
//
// While it lives the thread that made it may allocate and load modules, although a stream is captured: libraries and
// code that is loaded late do so.
//
//   const RelaxedCapture may_load;
//   library.issue(stream);
//
// Threads: of one thread. Several in a row, and one within another, restore what was before.
#ifndef TUTTI_BACKEND_GPU_RUNTIME_RELAXED_CAPTURE_H_
#define TUTTI_BACKEND_GPU_RUNTIME_RELAXED_CAPTURE_H_

#include <tutti_gpu.h>

namespace tutti::impl::backend::gpu {

class RelaxedCapture {
 public:
  RelaxedCapture() { (void)gpuThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { (void)gpuThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

 private:
  gpuStreamCaptureMode mode_ = gpuStreamCaptureModeRelaxed;  // from now on, then: that of before
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_RELAXED_CAPTURE_H_

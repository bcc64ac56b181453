// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose results are normalised: a library may compute the sums that the normalisation wants while it
// stores them. The convolution then waits for the turn of the normalisation, and one call computes both, with what
// follows (product_epilogues.h). Where several devices share the statistics of a batch, it waits for the moments.
#ifndef TUTTI_BACKEND_GPU_FUSION_NORM_SOURCES_H_
#define TUTTI_BACKEND_GPU_FUSION_NORM_SOURCES_H_

#include <cstdint>
#include <functional>
#include <map>

#include "backend/gpu/device/device_batch_norm.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/kernel/kernel.h"
#include "backend/lowered_graph.h"

namespace tutti::impl::backend::gpu {

/// By step of a batch_norm_training or batch_norm_moments: the conv2d, without a bias, that makes its x, whose result
/// nobody reads before. `is_alone(step)`: its kernel computes nothing else, at its own turn.
std::map<int32_t, int32_t> find_norm_sources(const LoweredGraph &lowered,
                                             const std::function<bool(int32_t step)> &is_alone);

/// The call of both, and of the tail if it is not null: inputs are those of the normalisation, what the tail reads,
/// those of the convolution; outputs the root's or the normalisation's, the statistics, the convolution's. No kernel
/// where the library cannot, or is slower so.
base::Result<KernelCall> make_norm_call(const LoweredGraph &lowered, int32_t norm, int32_t source,
                                        const ProductEpilogue *tail, Library &library, AlgorithmTrials &trials,
                                        std::vector<BoundedIntegers> &faults, int64_t *scratch_bytes);

/// Where the sums of squares begin behind the sums of so many channels, in elements: aligned to 16 bytes, as libraries
/// want what they store.
constexpr int64_t squares_at(int64_t channels) { return (channels + 3) / 4 * 4; }

/// What is left to do in such a call when the library has the sums of the convolution's results: the normalisation and
/// what follows it, or the moments. It knows where in the frame the operands are.
class NormOfSums {
 public:
  /// Reserves its scratch memory.
  static base::Result<NormOfSums> make(KernelRequest &request);

  const void *image(const Frame &frame) const { return frame.input(image_); }
  const void *kernel(const Frame &frame) const { return frame.input(image_ + 1); }
  void *result(const Frame &frame) const { return frame.output(result_); }
  /// Where the library stores them: of f32, a sum for each channel and, at squares_at(), the sums of squares.
  float *sums(const Frame &frame) const { return frame.scratch_as<float>(sums_at_); }
  base::Status issue(const Frame &frame) const;

 private:
  explicit NormOfSums(const KernelRequest &request) : tail_(request) {}

  KeptEpilogue tail_;
  BatchNormWork work_{};  // without pointers
  bool is_of_moments_ = false;
  int32_t image_ = 0, result_ = 0;  // among inputs, among outputs
  int64_t sums_at_ = 0, scratch_at_ = 0;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FUSION_NORM_SOURCES_H_

// SPDX-License-Identifier: Apache-2.0
//
// The passes of batch normalisation over an image (simd_norm.h), cut into parts for the threads of a program. Sums are
// cut by the shape alone, so that they are the same for any number of threads: by blocks of channels where there are
// many, else by stretches of rows whose sums are added up in order.
//
//   const ChannelParts parts = ChannelParts::make(shape, l.threads());
//   const BufferId scratch = l.scratch(parts.scratch_bytes());
//   l.emit("...", [=](const RunContext &c) { parts.moments(c, scratch, x, sum, squares); parts.apply(...); });
//
// Immutable once made.
#ifndef TUTTI_BACKEND_CPU_KERNEL_CHANNEL_PARTS_H_
#define TUTTI_BACKEND_CPU_KERNEL_CHANNEL_PARTS_H_

#include <cstdint>

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/simd/simd_norm.h"

namespace tutti::impl::backend::cpu {

class ChannelParts {
 public:
  static ChannelParts make(const ChannelShape &shape, int32_t threads);

  /// For the sums; 0 when they need none.
  int64_t scratch_bytes() const;

  // As the functions of simd_norm.h; `scratch` may be -1 when scratch_bytes() is 0.
  void moments(const RunContext &c, BufferId scratch, const float *x, double *sum, double *sum_squares) const;
  void apply(const RunContext &c, const float *x, const float *a, const float *b, const float *other, bool relu,
             float *y) const;
  void gradient_moments(const RunContext &c, BufferId scratch, const float *dy, const float *x, const float *mean,
                        const ChannelMask &mask, double *sum_dy, double *sum_dy_xc) const;
  void gradient_apply(const RunContext &c, const float *dy, const float *x, const float *mean, const float *a,
                      const float *slope, const float *shift, const ChannelMask &mask, float *dx) const;

 private:
  enum class By : uint8_t { rows, pieces, blocks };
  /// Part of the image: its shape, where it begins in memory, and its first channel.
  struct View {
    ChannelShape shape;
    int64_t at = 0;
    int64_t channel = 0;
  };
  View view(By by, Range range) const;
  /// Calls function(view, sums of the first kind, of the second) for each part and adds up what they give.
  template <typename Function>
  void sum_parts(const RunContext &c, BufferId scratch, double *first, double *second, const Function &function) const;

  ChannelShape shape_;
  By sums_by_ = By::rows, apply_by_ = By::rows;
  Parts sums_, apply_;
};

/// An image in groups of channels. Who walks an image twice does so group by group: a group is small enough for the
/// second walk to find in a cache what the first one has read. All groups are alike; they depend on the shape alone.
class ChannelGroups {
 public:
  static ChannelGroups make(const ChannelShape &shape, int32_t threads);

  /// Of one group.
  const ChannelParts &parts() const { return parts_; }
  int64_t channels() const { return channels_; }
  /// Calls function(first channel, where the group begins in memory) for each group.
  template <typename Function>
  void for_each(const Function &function) const {
    for (int64_t i = 0; i < count_; ++i)
      function(i * channels_, i * stride_);
  }

 private:
  ChannelParts parts_;
  int64_t count_ = 1, channels_ = 0, stride_ = 0;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_CHANNEL_PARTS_H_

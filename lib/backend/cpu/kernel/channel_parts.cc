// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel/channel_parts.h"

#include <algorithm>

namespace tutti::impl::backend::cpu {

namespace {

/// Parts that sums are cut into at most, whatever the threads.
constexpr int32_t kMostSums = 16;
/// Blocks of channels from which sums are cut by them.
constexpr int64_t kManyBlocks = 8;
/// Rows that are worth sums of their own.
constexpr int64_t kSumRows = 512;
/// Elements of a group of channels: about half of a usual second-level cache, so that two images fit.
constexpr int64_t kGroupElements = 96 << 10;

const float *moved(const float *pointer, int64_t by) { return pointer == nullptr ? nullptr : pointer + by; }

ChannelMask moved(const ChannelMask &mask, int64_t by) { return {moved(mask.a, by), moved(mask.b, by)}; }

}  // namespace

ChannelParts ChannelParts::make(const ChannelShape &shape, int32_t threads) {
  ChannelParts made;
  made.shape_ = shape;
  const int64_t block = shape.count() * shape.width;
  const int64_t piece = shape.rows * shape.channels();
  if (shape.blocks >= kManyBlocks) {
    made.sums_by_ = By::blocks;
    made.sums_ = Parts(shape.blocks, grain_of(block), kMostSums, 1);
  } else if (shape.pieces > 1) {
    made.sums_by_ = By::pieces;
    const int64_t images = (kSumRows + shape.rows - 1) / std::max<int64_t>(shape.rows, 1);
    made.sums_ = Parts(shape.pieces, std::max(grain_of(piece), images), kMostSums, 1);
  } else if (shape.blocks == 1) {
    made.sums_ = Parts(shape.rows, std::max(grain_of(shape.width), kSumRows), kMostSums, 1);
  }
  if (shape.pieces > 1) {
    made.apply_by_ = By::pieces;
    made.apply_ = Parts(shape.pieces, grain_of(2 * piece), threads);
  } else if (shape.blocks > 1) {
    made.apply_by_ = By::blocks;
    made.apply_ = Parts(shape.blocks, grain_of(2 * block), threads);
  } else {
    made.apply_ = Parts(shape.rows, grain_of(2 * shape.width), threads);
  }
  return made;
}

int64_t ChannelParts::scratch_bytes() const {
  if (sums_.count() == 1 || sums_by_ == By::blocks) return 0;
  return sums_.count() * 2 * shape_.channels() * static_cast<int64_t>(sizeof(double));
}

ChannelParts::View ChannelParts::view(By by, Range range) const {
  View view{shape_};
  switch (by) {
    case By::rows:
      view.shape.rows = range.size();
      view.at = range.begin * shape_.width;
      break;
    case By::pieces:
      view.shape.pieces = range.size();
      view.at = range.begin * shape_.piece_stride;
      break;
    case By::blocks:
      view.shape.blocks = range.size();
      view.at = range.begin * shape_.block_stride;
      view.channel = range.begin * shape_.width;
      break;
  }
  return view;
}

template <typename Function>
void ChannelParts::sum_parts(const RunContext &c, BufferId scratch, double *first, double *second,
                             const Function &function) const {
  if (sums_.count() == 1) return function(View{shape_}, first, second);
  const int64_t channels = shape_.channels();
  double *partial = sums_by_ == By::blocks ? nullptr : static_cast<double *>(c.buffers[scratch]);
  c.for_each(sums_.count(), [&](int32_t part, int32_t) {
    const View of_part = view(sums_by_, sums_[part]);
    if (partial == nullptr) return function(of_part, first + of_part.channel, second + of_part.channel);
    double *own = partial + part * 2 * channels;
    function(of_part, own, own + channels);
  });
  if (partial == nullptr) return;
  for (int64_t i = 0; i < channels; ++i)
    first[i] = second[i] = 0;
  for (int32_t part = 0; part < sums_.count(); ++part) {
    const double *from = partial + part * 2 * channels;
    for (int64_t i = 0; i < channels; ++i) {
      first[i] += from[i];
      second[i] += from[channels + i];
    }
  }
}

ChannelGroups ChannelGroups::make(const ChannelShape &shape, int32_t threads) {
  ChannelGroups made;
  const int64_t block = shape.count() * shape.width;
  int64_t blocks = shape.blocks;
  if (shape.pieces > 1) {
    while (blocks > 1 && (shape.blocks % blocks != 0 || blocks * block > kGroupElements))
      --blocks;
  }
  ChannelShape group = shape;
  group.blocks = blocks;
  made.count_ = blocks > 0 ? shape.blocks / blocks : 1;
  made.channels_ = group.channels();
  made.stride_ = blocks * shape.block_stride;
  made.parts_ = ChannelParts::make(group, threads);
  return made;
}

void ChannelParts::moments(const RunContext &c, BufferId scratch, const float *x, double *sum,
                           double *sum_squares) const {
  sum_parts(c, scratch, sum, sum_squares, [&](const View &part, double *first, double *second) {
    channel_moments(part.shape, x + part.at, first, second);
  });
}

void ChannelParts::gradient_moments(const RunContext &c, BufferId scratch, const float *dy, const float *x,
                                    const float *mean, const ChannelMask &mask, double *sum_dy,
                                    double *sum_dy_xc) const {
  sum_parts(c, scratch, sum_dy, sum_dy_xc, [&](const View &part, double *first, double *second) {
    channel_gradient_moments(part.shape, dy + part.at, x + part.at, mean + part.channel, moved(mask, part.channel),
                             first, second);
  });
}

void ChannelParts::apply(const RunContext &c, const float *x, const float *a, const float *b, const float *other,
                         bool relu, float *y) const {
  c.for_parts(apply_, [&](Range range) {
    const View part = view(apply_by_, range);
    channel_apply(part.shape, x + part.at, a + part.channel, b + part.channel, moved(other, part.at), relu,
                  y + part.at);
  });
}

void ChannelParts::gradient_apply(const RunContext &c, const float *dy, const float *x, const float *mean,
                                  const float *a, const float *slope, const float *shift, const ChannelMask &mask,
                                  float *dx) const {
  c.for_parts(apply_, [&](Range range) {
    const View part = view(apply_by_, range);
    const int64_t channel = part.channel;
    channel_gradient_apply(part.shape, dy + part.at, x + part.at, mean + channel, a + channel, slope + channel,
                           shift + channel, moved(mask, channel), dx + part.at);
  });
}

}  // namespace tutti::impl::backend::cpu

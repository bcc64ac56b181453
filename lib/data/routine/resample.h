// SPDX-License-Identifier: Apache-2.0
//
// Images under another size. Every method but nearest is separable: a result row is a weighted sum of input rows, then
// each of its pixels one of that row's. Weights are f32 and sum to 1.
//
//   Resampler resampler;                                         // keeps its tables while sizes repeat
//   resampler.run({pixels, 480, 640, 3, 640 * 3}, {Method::bilinear, 224, 224}, result);
//
// With scale = input / output, an output pixel i has its centre at (i + 0.5) · scale of the input:
//   bilinear            two pixels around centre − 0.5, at the border the last one
//   bilinear_antialias  triangle of half width max(scale, 1) around the centre (Pillow's and TensorFlow's)
//   area                the mean over [i · scale, (i + 1) · scale)
//   nearest             the pixel that holds the centre
//
// Threads: a Resampler belongs to one thread.
#ifndef TUTTI_DATA_ROUTINE_RESAMPLE_H_
#define TUTTI_DATA_ROUTINE_RESAMPLE_H_

#include <cstdint>
#include <vector>

namespace tutti::impl::data {

/// An image in memory, or a part of one.
template <typename T>
struct ImageView {
  const T *pixels = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t row_elements = 0;  ///< from one row to the next

  const T *row(int64_t index) const { return pixels + index * row_elements; }
};

enum class ResizeMethod { bilinear, nearest, area, bilinear_antialias };

struct Resizing {
  ResizeMethod method = ResizeMethod::bilinear;
  int64_t height = 0;
  int64_t width = 0;
  bool mirrors = false;  ///< columns in reverse order
};

/// For each output index `taps` weights for the input indices from its start on.
struct ResampleAxis {
  int64_t taps = 0;
  std::vector<int32_t> starts;
  std::vector<float> weights;

  /// Replaces what was there; input and output at least 1.
  void set(ResizeMethod method, int64_t input, int64_t output);
};

class Resampler {
 public:
  /// `from` has at least one pixel; `to` has room for height · width · channels elements. T, R: uint8_t or float.
  template <typename T, typename R>
  void run(const ImageView<T> &from, const Resizing &resizing, R *to);

 private:
  void set_axes(int64_t height, int64_t width, const Resizing &resizing);

  Resizing last_;
  int64_t last_height_ = 0, last_width_ = 0;
  ResampleAxis vertical_, horizontal_;
  std::vector<float> line_;
};

extern template void Resampler::run(const ImageView<uint8_t> &, const Resizing &, uint8_t *);
extern template void Resampler::run(const ImageView<uint8_t> &, const Resizing &, float *);
extern template void Resampler::run(const ImageView<float> &, const Resizing &, float *);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ROUTINE_RESAMPLE_H_

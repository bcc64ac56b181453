// SPDX-License-Identifier: Apache-2.0
//
// Colours of single images in f32 with 1 as the brightest, and their conversion from and to u8: the arithmetic of
// tf.image.adjust_*. Changes are made in place.
//
// Threads: pure functions.
#ifndef TUTTI_DATA_ROUTINE_COLOR_H_
#define TUTTI_DATA_ROUTINE_COLOR_H_

#include <cstdint>

namespace tutti::impl::data {

/// x / 255.
void bytes_to_floats(const uint8_t *x, int64_t count, float *y);
/// x · 255.5 without its fraction, limited to 0 and 255; NaN gives 0.
void floats_to_bytes(const float *x, int64_t count, uint8_t *y);

void add_brightness(float *x, int64_t count, float delta);
/// (x − mean) · factor + mean, for each channel.
void scale_contrast(float *x, int64_t pixels, int64_t channels, float factor);
/// Three channels: saturation times factor, limited to [0, 1], and hue plus delta (part of the circle).
void change_saturation_and_hue(float *x, int64_t pixels, float factor, float delta);

/// y = x · scale[channel] + offset[channel].
void scale_channels(const uint8_t *x, int64_t pixels, int64_t channels, const float *scale, const float *offset,
                    float *y);
void scale_channels(const float *x, int64_t pixels, int64_t channels, const float *scale, const float *offset,
                    float *y);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ROUTINE_COLOR_H_

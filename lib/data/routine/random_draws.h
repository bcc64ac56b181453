// SPDX-License-Identifier: Apache-2.0
//
// What random image ops draw for one row, apart from what they do with it: kernels of the Routine draw where they work,
// maps on devices before (device_graph.h). Each takes the stream of the row from its beginning.
//
// Threads: pure functions.
#ifndef TUTTI_DATA_ROUTINE_RANDOM_DRAWS_H_
#define TUTTI_DATA_ROUTINE_RANDOM_DRAWS_H_

#include <cstdint>

#include "base/random/philox.h"
#include "data/graph/pixel_window.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

/// The place of a random crop, counted from `padding` pixels outside of the image; it has one.
PixelWindow random_place(const PixelSize &image, const graph::ops::RandomCropAttributes &attributes,
                         base::RandomStream &random);
/// Has an image of this size a part as large as wanted?
bool has_random_place(const PixelSize &image, const graph::ops::RandomCropAttributes &attributes);

/// Is the image mirrored?
bool random_flips(double probability, base::RandomStream &random);

/// The part of an image, which has pixels, that random_cutout covers; may be empty.
PixelWindow random_cutout_part(const PixelSize &image, const graph::ops::RandomCutoutAttributes &attributes,
                               base::RandomStream &random);

/// The partner of row i is row (i + rotation) % rows, where row 0 draws the rotation. First in the stream of any row.
int64_t random_rotation(base::RandomStream &random, int64_t rows);
/// λ, by Beta(alpha, alpha).
double beta_variate(double alpha, base::RandomStream &random);
/// A rectangle with a share of the image's area and its aspect ratio; what lies outside of the image is cut off.
PixelWindow random_rectangle(const PixelSize &image, double share, base::RandomStream &random);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ROUTINE_RANDOM_DRAWS_H_

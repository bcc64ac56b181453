// SPDX-License-Identifier: Apache-2.0
//
// Random windows in images, as Inception's preprocessing chooses them (Szegedy et al., "Going deeper with
// convolutions", 2014, section 6) and torchvision's RandomResizedCrop does: an area evenly, an aspect ratio evenly by
// its logarithm, up to ten times until the window fits; then the largest window in the middle whose aspect ratio is
// within the bounds.
//
// Threads: pure but for the stream.
#ifndef TUTTI_DATA_ROUTINE_RANDOM_WINDOW_H_
#define TUTTI_DATA_ROUTINE_RANDOM_WINDOW_H_

#include <vector>

#include "base/random/philox.h"
#include "data/routine/image_file.h"

namespace tutti::impl::data {

struct WindowBounds {
  double least_area = 0.08, most_area = 1;            ///< shares of the image
  double least_aspect = 0.75, most_aspect = 4.0 / 3;  ///< width / height
};

/// `size` has at least one pixel. Takes up to 40 words of the stream.
PixelWindow random_window(const PixelSize &size, const WindowBounds &bounds, base::RandomStream &random);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ROUTINE_RANDOM_WINDOW_H_

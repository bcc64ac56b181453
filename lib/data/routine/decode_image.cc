// SPDX-License-Identifier: Apache-2.0
//
// Image files as pixels, straight into the memory of the result.
#include <optional>

#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::ops::DecodeJpegAttributes;
using tensor::Shape;

namespace {

JpegSettings settings_of(const DecodeJpegAttributes &attributes) {
  JpegSettings settings;
  settings.channels = static_cast<int32_t>(attributes.channels);
  settings.ratio = static_cast<int32_t>(attributes.ratio);
  settings.minimum_height = attributes.minimum_height;
  settings.minimum_width = attributes.minimum_width;
  settings.has_fancy_upsampling = attributes.fancy_upsampling;
  settings.has_fast_dct = attributes.dct == DecodeJpegAttributes::Dct::fast;
  settings.maximum_pixels = attributes.maximum_pixels;
  return settings;
}

// All files of one value become one value, so they must give equally large images; a single example has one file.
Status decode_files(RoutineFrame &frame, int64_t channels, const auto &open, const auto &read) {
  const RoutineValue &files = frame.input(0);
  PixelSize size;
  uint8_t *pixels = nullptr;
  if (files.shape.elements() == 0) {
    TUTTI_ASSIGN(const Shape shape, append_image(files.shape, 0, 0, channels));
    return base::status_of(frame.output(0, shape));
  }
  for (int64_t i = 0; i < files.shape.elements(); ++i) {
    TUTTI_ASSIGN(const PixelSize whole, open(files.text(i)));
    const PixelWindow window =
        frame.has_input(1) ? window_at(frame.input(1), i) : PixelWindow{0, 0, whole.height, whole.width};
    TUTTI_TRY(check_window(window, whole));
    if (i == 0) {
      size = {window.height, window.width};
      TUTTI_ASSIGN(const Shape shape, append_image(files.shape, size.height, size.width, channels));
      TUTTI_ASSIGN(pixels, frame.output_as<uint8_t>(0, shape));
    } else if (window.height != size.height || window.width != size.width) {
      return base::invalid_argument("image ", i, " has ", window.height, " x ", window.width, " pixels, image 0 has ",
                                    size.height, " x ", size.width, "; decode single examples instead");
    }
    TUTTI_TRY(read(window, pixels + i * size.height * size.width * channels));
  }
  return Status();
}

}  // namespace

Result<RoutineKernel> make_decode_jpeg(const RoutineNode &node) {
  TUTTI_ASSIGN(const DecodeJpegAttributes attributes, DecodeJpegAttributes::from(node.node));
  return RoutineKernel([settings = settings_of(attributes)](RoutineFrame &frame) -> Status {
    auto &reader = frame.state<JpegReader>();
    return decode_files(
        frame, settings.channels, [&](std::string_view contents) { return reader.open(contents, settings); },
        [&](const PixelWindow &window, uint8_t *pixels) { return reader.read(window, pixels); });
  });
}

}  // namespace tutti::impl::data

// SPDX-License-Identifier: Apache-2.0
//
// Image files as pixels, straight into the memory of the result. Of a JPEG file whose image is only cropped, no more
// than that part becomes pixels; the rest is still read for damage, so errors are those of the whole image.
#include <optional>

#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::ops::DecodeImageAttributes;
using graph::ops::DecodeJpegAttributes;
using graph::ops::DecodePngAttributes;
using tensor::Shape;

namespace {

struct ImageReaders {
  JpegReader jpeg;
  PngReader png;
};

Status neither(std::string_view contents) {
  return base::invalid_argument("a file of ", contents.size(), " bytes is neither a JPEG nor a PNG file");
}

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

// What of a file becomes an image, and which part of that image anyone reads.
struct Wanted {
  PixelWindow image;
  PixelWindow part;  // in pixels of the file
  JpegReader::Rest rest;
};

Wanted whole_image(const RoutineFrame &frame, const PixelSize &size, int64_t row) {
  const PixelWindow whole{0, 0, size.height, size.width};
  const PixelWindow part = frame.window_read(size, row);
  return {whole, check_window(part, size).ok() ? part : whole, JpegReader::Rest::checked};
}

Status read_jpeg(JpegReader &reader, const Wanted &wanted, int32_t channels, uint8_t *pixels) {
  const int64_t row_bytes = wanted.image.width * channels;
  const int64_t top = wanted.part.top - wanted.image.top, left = wanted.part.left - wanted.image.left;
  return reader.read(wanted.part, pixels + top * row_bytes + left * channels, row_bytes, wanted.rest);
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
    Wanted wanted = whole_image(frame, whole, i);
    if (frame.has_input(1)) {
      const PixelWindow given = window_at(frame.input(1), i);
      TUTTI_TRY(check_window(given, whole));
      wanted = {given, given, JpegReader::Rest::ignored};
    }
    const PixelWindow &window = wanted.image;
    if (i == 0) {
      size = {window.height, window.width};
      TUTTI_ASSIGN(const Shape shape, append_image(files.shape, size.height, size.width, channels));
      TUTTI_ASSIGN(pixels, frame.output_as<uint8_t>(0, shape));
    } else if (window.height != size.height || window.width != size.width) {
      return base::invalid_argument("image ", i, " has ", window.height, " x ", window.width, " pixels, image 0 has ",
                                    size.height, " x ", size.width, "; decode single examples instead");
    }
    TUTTI_TRY(read(wanted, pixels + i * size.height * size.width * channels));
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
        [&](const Wanted &wanted, uint8_t *pixels) { return read_jpeg(reader, wanted, settings.channels, pixels); });
  });
}

Result<RoutineKernel> make_decode_png(const RoutineNode &node) {
  TUTTI_ASSIGN(const DecodePngAttributes attributes, DecodePngAttributes::from(node.node));
  const auto channels = static_cast<int32_t>(attributes.channels);
  return RoutineKernel([channels, most = attributes.maximum_pixels](RoutineFrame &frame) -> Status {
    auto &reader = frame.state<PngReader>();
    return decode_files(
        frame, channels, [&](std::string_view contents) { return reader.open(contents, most); },
        [&](const Wanted &, uint8_t *pixels) { return reader.read(channels, pixels); });
  });
}

Result<RoutineKernel> make_decode_image(const RoutineNode &node) {
  TUTTI_ASSIGN(const DecodeImageAttributes attributes, DecodeImageAttributes::from(node.node));
  JpegSettings settings;
  settings.channels = static_cast<int32_t>(attributes.channels);
  settings.maximum_pixels = attributes.maximum_pixels;
  return RoutineKernel([settings](RoutineFrame &frame) -> Status {
    auto &readers = frame.state<ImageReaders>();
    bool has_jpeg = false;
    return decode_files(
        frame, settings.channels,
        [&](std::string_view contents) -> Result<PixelSize> {
          has_jpeg = is_jpeg(contents);
          if (has_jpeg) return readers.jpeg.open(contents, settings);
          if (is_png(contents)) return readers.png.open(contents, settings.maximum_pixels);
          return neither(contents);
        },
        [&](const Wanted &wanted, uint8_t *pixels) {
          return has_jpeg ? read_jpeg(readers.jpeg, wanted, settings.channels, pixels)
                          : readers.png.read(settings.channels, pixels);
        });
  });
}

Result<RoutineKernel> make_image_size(const RoutineNode &) {
  return RoutineKernel([](RoutineFrame &frame) -> Status {
    auto &readers = frame.state<ImageReaders>();
    JpegSettings settings;
    settings.maximum_pixels = INT64_MAX;
    const RoutineValue &files = frame.input(0);
    TUTTI_ASSIGN(const Shape shape, append_axis(files.shape, 2));
    TUTTI_ASSIGN(int64_t *const sizes, frame.output_as<int64_t>(0, shape));
    for (int64_t i = 0; i < files.shape.elements(); ++i) {
      const std::string_view contents = files.text(i);
      Result<PixelSize> size = neither(contents);
      if (is_jpeg(contents)) size = readers.jpeg.open(contents, settings);
      if (is_png(contents)) size = readers.png.open(contents, settings.maximum_pixels);
      TUTTI_TRY(size);
      sizes[2 * i] = size->height;
      sizes[2 * i + 1] = size->width;
    }
    return Status();
  });
}

}  // namespace tutti::impl::data

// SPDX-License-Identifier: Apache-2.0
#include "monitor/shown_summary.h"

#include <algorithm>
#include <cstring>

#include "data/routine/image_file.h"
#include "monitor/tensor_numbers.h"

namespace tutti::impl::monitor {

using base::Result;
using base::Status;
using graph::SummaryKind;
using tensor::Tensor;

namespace {

/// As TensorFlow rounds colours: a 256th of the range for each.
uint8_t color_of(double number) {
  return number > 0 ? static_cast<uint8_t>(std::min(number * 255.5, 255.0)) : uint8_t{0};
}

Result<std::vector<uint8_t>> colors_of(const Tensor &images) {
  std::vector<uint8_t> colors(static_cast<size_t>(images.elements()));
  if (images.dtype() == tensor::DType::u8) {
    std::memcpy(colors.data(), images.data(), colors.size());
    return colors;
  }
  TUTTI_ASSIGN(const std::vector<double> numbers, numbers_of(images));
  std::ranges::transform(numbers, colors.begin(), color_of);
  return colors;
}

template <typename T>
Status append(std::vector<Tensor> &to, tensor::DType dtype, std::span<const T> elements) {
  const tensor::Shape shape({static_cast<int64_t>(elements.size())});
  TUTTI_ASSIGN(Tensor vector,
               Tensor::copy_of(dtype, shape, elements.data(), static_cast<int64_t>(elements.size_bytes())));
  to.push_back(std::move(vector));
  return Status();
}

/// The next of what another process sent; null where it is something else.
const Tensor *next(std::span<const Tensor> &from, tensor::DType dtype, int64_t least) {
  if (from.empty() || from.front().dtype() != dtype || from.front().elements() < least) return nullptr;
  const Tensor *const tensor = &from.front();
  from = from.subspan(1);
  return tensor;
}

Status no_such_tensor() { return base::internal_error("another worker sent something else than its summaries"); }

}  // namespace

Status check_images(const Tensor &images) {
  const int64_t channels = images.rank() == 4 ? images.shape()[3] : 0;
  const bool has_colors = images.dtype() == tensor::DType::u8 || tensor::is_floating(images.dtype());
  if (has_colors && (channels == 1 || channels == 3 || channels == 4)) return Status();
  return base::invalid_argument(
      "expected images [images, height, width, 1, 3 or 4 channels] of u8, or of floating "
      "point numbers from 0 to 1, got ",
      images.describe());
}

Result<std::vector<std::string>> png_files(const Tensor &images, int64_t most) {
  const std::span<const int64_t> dims = images.shape().extents();
  std::vector<std::string> files;
  const int64_t pixels = dims[1] * dims[2], bytes = pixels * dims[3];
  if (bytes == 0 || most <= 0) return files;
  TUTTI_ASSIGN(const Tensor first, images.slice_rows(0, std::min(dims[0], most)));
  TUTTI_ASSIGN(const std::vector<uint8_t> colors, colors_of(first));
  for (int64_t i = 0; i < first.rows(); ++i) {
    TUTTI_ASSIGN(std::string file,
                 data::write_png(colors.data() + i * bytes, {dims[1], dims[2]}, static_cast<int32_t>(dims[3])));
    files.push_back(std::move(file));
  }
  return files;
}

Status ShownSummary::add(const Tensor &piece) {
  switch (spec.kind) {
    case SummaryKind::scalar: {
      TUTTI_ASSIGN(const std::vector<double> numbers, numbers_of(piece));
      number = numbers.front();
      break;
    }
    case SummaryKind::histogram:
      return histogram.add(piece);
    case SummaryKind::image: {
      const std::span<const int64_t> dims = piece.shape().extents();
      if (!images.empty() && (dims[1] != height || dims[2] != width)) break;
      TUTTI_ASSIGN(std::vector<std::string> more,
                   png_files(piece, spec.most_images - static_cast<int64_t>(images.size())));
      height = dims[1];
      width = dims[2];
      images.insert(images.end(), more.begin(), more.end());
      break;
    }
    case SummaryKind::text:
      break;
  }
  return Status();
}

void ShownSummary::write(Summary &summary) const {
  switch (spec.kind) {
    case SummaryKind::scalar:
      return summary.add_scalar(spec.name, number);
    case SummaryKind::histogram:
      return summary.add_histogram(spec.name, histogram);
    case SummaryKind::image:
      if (!images.empty()) summary.add_images(spec.name, height, width, images);
      return;
    case SummaryKind::text:
      return summary.add_text(spec.name, spec.text);
  }
}

Status ShownSummary::put(std::vector<Tensor> &to) const {
  if (spec.kind == SummaryKind::histogram) {
    const std::vector<double> state = histogram.state();
    TUTTI_TRY(append<double>(to, tensor::DType::f64, state));
  }
  if (spec.kind != SummaryKind::image) return Status();
  const int64_t head[] = {static_cast<int64_t>(images.size()), height, width};
  TUTTI_TRY(append<int64_t>(to, tensor::DType::i64, head));
  for (const std::string &image : images)
    TUTTI_TRY(append<char>(to, tensor::DType::u8, image));
  return Status();
}

Status ShownSummary::take(std::span<const Tensor> &from) {
  if (spec.kind == SummaryKind::histogram) {
    const Tensor *const state = next(from, tensor::DType::f64, 1);
    if (state == nullptr) return no_such_tensor();
    TUTTI_ASSIGN(const Histogram other, Histogram::from_state({static_cast<const double *>(state->data()),
                                                               static_cast<size_t>(state->elements())}));
    histogram.add(other);
  }
  if (spec.kind != SummaryKind::image) return Status();
  const Tensor *const head = next(from, tensor::DType::i64, 3);
  if (head == nullptr) return no_such_tensor();
  const auto *const sizes = static_cast<const int64_t *>(head->data());
  if (images.empty()) {
    height = sizes[1];
    width = sizes[2];
  }
  const bool fits = sizes[1] == height && sizes[2] == width;
  for (int64_t i = 0; i < sizes[0]; ++i) {
    const Tensor *const file = next(from, tensor::DType::u8, 1);
    if (file == nullptr) return no_such_tensor();
    if (fits && static_cast<int64_t>(images.size()) < spec.most_images)
      images.emplace_back(static_cast<const char *>(file->data()), static_cast<size_t>(file->elements()));
  }
  return Status();
}

}  // namespace tutti::impl::monitor

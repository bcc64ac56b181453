// SPDX-License-Identifier: Apache-2.0
#include "monitor/summary.h"

#include <bit>
#include <cstdint>

#include "monitor/event_messages.h"

namespace tutti::impl::monitor {

using protozero::pbf_builder;

namespace {

void add_metadata(pbf_builder<message::Value> &value, std::string_view plugin, message::DataClass data_class,
                  std::string_view content = {}) {
  pbf_builder<message::Metadata> metadata(value, message::Value::metadata);
  {
    pbf_builder<message::PluginData> data(metadata, message::Metadata::plugin_data);
    data.add_string(message::PluginData::plugin_name, plugin.data(), plugin.size());
    if (!content.empty()) data.add_bytes(message::PluginData::content, content.data(), content.size());
  }
  metadata.add_enum(message::Metadata::data_class, static_cast<int32_t>(data_class));
}

pbf_builder<message::Value> begin_value(pbf_builder<message::Summary> &summary, std::string_view tag) {
  pbf_builder<message::Value> entry(summary, message::Summary::value);
  message::add_text(entry, message::Value::tag, tag);
  return entry;
}

/// `add_elements(tensor)` does so.
template <typename Function>
void add_tensor(pbf_builder<message::Value> &entry, message::DataType dtype, std::span<const int64_t> dims,
                Function &&add_elements) {
  pbf_builder<message::Tensor> tensor(entry, message::Value::tensor);
  tensor.add_enum(message::Tensor::dtype, static_cast<int32_t>(dtype));
  {
    pbf_builder<message::Shape> shape(tensor, message::Tensor::shape);
    for (const int64_t size : dims) {
      pbf_builder<message::Dim> dim(shape, message::Shape::dim);
      dim.add_int64(message::Dim::size, size);
    }
  }
  add_elements(tensor);
}

}  // namespace

ScalarTag::ScalarTag(std::string_view tag) {
  {
    pbf_builder<message::Summary> summary(form_);
    pbf_builder<message::Value> entry = begin_value(summary, tag);
    entry.add_float(message::Value::simple_value, 0);
  }
  form_.resize(form_.size() - sizeof(float));
}

void Summary::add_scalar(std::string_view tag, double value) { add_scalar(ScalarTag(tag), value); }

void Summary::add_scalar(const ScalarTag &tag, double value) {
  // As protocol buffers store it: little-endian.
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const char bytes[] = {static_cast<char>(bits), static_cast<char>(bits >> 8), static_cast<char>(bits >> 16),
                        static_cast<char>(bits >> 24)};
  message_.append(tag.form_).append(bytes, sizeof(bytes));
}

void Summary::add_histogram(std::string_view tag, const Histogram &histogram) {
  pbf_builder<message::Summary> summary(message_);
  pbf_builder<message::Value> entry = begin_value(summary, tag);
  entry.add_message(message::Value::histo, histogram.message());
}

void Summary::add_plugin_content(std::string_view tag, std::string_view plugin, std::string_view content) {
  pbf_builder<message::Summary> summary(message_);
  pbf_builder<message::Value> entry = begin_value(summary, tag);
  // A value there must be: the number 0, without a dimension.
  const float zero = 0;
  add_tensor(entry, message::DataType::f32, {},
             [&](auto &tensor) { tensor.add_float(message::Tensor::float_val, zero); });
  add_metadata(entry, plugin, message::DataClass::tensor, content);
}

void Summary::add_matrix(std::string_view tag, std::string_view plugin, std::string_view content, int64_t rows,
                         std::span<const float> elements) {
  pbf_builder<message::Summary> summary(message_);
  pbf_builder<message::Value> entry = begin_value(summary, tag);
  const int64_t dims[] = {rows, static_cast<int64_t>(elements.size()) / rows};
  add_tensor(entry, message::DataType::f32, dims, [&](auto &tensor) {
    tensor.add_packed_float(message::Tensor::float_val, elements.begin(), elements.end());
  });
  add_metadata(entry, plugin, message::DataClass::tensor, content);
}

void Summary::add_images(std::string_view tag, int64_t height, int64_t width, std::span<const std::string> files) {
  pbf_builder<message::Summary> summary(message_);
  pbf_builder<message::Value> entry = begin_value(summary, tag);
  const int64_t dims[] = {static_cast<int64_t>(files.size()) + 2};
  add_tensor(entry, message::DataType::string, dims, [&](auto &tensor) {
    tensor.add_bytes(message::Tensor::string_val, std::to_string(width));
    tensor.add_bytes(message::Tensor::string_val, std::to_string(height));
    for (const std::string &file : files)
      tensor.add_bytes(message::Tensor::string_val, file);
  });
  add_metadata(entry, "images", message::DataClass::blob_sequence);
}

void Summary::add_text(std::string_view tag, std::string_view text) {
  pbf_builder<message::Summary> summary(message_);
  pbf_builder<message::Value> entry = begin_value(summary, tag);
  const int64_t dims[] = {1};
  add_tensor(entry, message::DataType::string, dims,
             [&](auto &tensor) { tensor.add_bytes(message::Tensor::string_val, message::as_utf8(text)); });
  add_metadata(entry, "text", message::DataClass::tensor);
}

}  // namespace tutti::impl::monitor

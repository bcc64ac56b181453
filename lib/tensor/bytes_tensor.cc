// SPDX-License-Identifier: Apache-2.0
#include "tensor/bytes_tensor.h"

#include <cstring>

namespace tutti::impl::tensor {

namespace {

// Lays out as many texts as the shape has elements; text(i) gives each.
template <typename TextAt>
base::Result<Tensor> lay_out(const Shape &shape, size_t count, TextAt text_at) {
  if (static_cast<int64_t>(count) != shape.elements()) {
    return base::invalid_argument("bytes tensor ", shape, " needs ", shape.elements(), " texts, got ", count);
  }
  const size_t offsets_bytes = (count + 1) * sizeof(int64_t);
  size_t total = offsets_bytes;
  for (size_t i = 0; i < count; ++i)
    total += text_at(i).size();
  TUTTI_ASSIGN(Ref<Buffer> buffer, Buffer::allocate(static_cast<int64_t>(total)));
  auto *offsets = static_cast<int64_t *>(buffer->data());
  char *start = static_cast<char *>(buffer->data());
  size_t at = offsets_bytes;
  for (size_t i = 0; i < count; ++i) {
    offsets[i] = static_cast<int64_t>(at);
    const std::string_view text = text_at(i);
    if (!text.empty()) std::memcpy(start + at, text.data(), text.size());
    at += text.size();
  }
  offsets[count] = static_cast<int64_t>(at);
  return Tensor::from_buffer(DType::bytes, shape, std::move(buffer));
}

}  // namespace

base::Result<Tensor> make_bytes_tensor(const Shape &shape, std::span<const std::string_view> texts) {
  return lay_out(shape, texts.size(), [texts](size_t i) { return texts[i]; });
}

base::Result<Tensor> make_bytes_tensor(const Shape &shape, std::initializer_list<std::string_view> texts) {
  return make_bytes_tensor(shape, std::span<const std::string_view>(texts.begin(), texts.size()));
}

base::Result<Tensor> make_bytes_tensor(const Shape &shape, const std::vector<std::string> &texts) {
  return lay_out(shape, texts.size(), [&texts](size_t i) { return std::string_view(texts[i]); });
}

base::Result<Tensor> make_bytes_tensor(const Shape &shape, std::span<const int64_t> offsets, std::string_view data) {
  if (offsets.empty()) return base::invalid_argument("bytes tensor ", shape, ": expected offsets, got none");
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t least = i == 0 ? 0 : offsets[i - 1];
    if (offsets[i] < least || static_cast<uint64_t>(offsets[i]) > data.size()) {
      return base::invalid_argument("bytes tensor ", shape, ": offset ", i, " is ", offsets[i], ", expected ", least,
                                    " to ", data.size());
    }
  }
  return lay_out(shape, offsets.size() - 1, [&](size_t i) {
    return data.substr(static_cast<size_t>(offsets[i]), static_cast<size_t>(offsets[i + 1] - offsets[i]));
  });
}

std::string_view bytes_at(const Tensor &tensor, int64_t index) {
  const int64_t *offsets = tensor.data_as<int64_t>();
  const char *start = static_cast<const char *>(tensor.buffer()->data());
  return {start + offsets[index], static_cast<size_t>(offsets[index + 1] - offsets[index])};
}

base::Result<std::vector<std::string_view>> bytes_values(const Tensor &tensor) {
  if (tensor.empty() || tensor.dtype() != DType::bytes) {
    return base::invalid_argument("expected a tensor of bytes, got ", tensor.describe());
  }
  std::vector<std::string_view> texts(static_cast<size_t>(tensor.elements()));
  for (size_t i = 0; i < texts.size(); ++i)
    texts[i] = bytes_at(tensor, static_cast<int64_t>(i));
  return texts;
}

int64_t bytes_total(const Tensor &tensor) {
  const int64_t *offsets = tensor.data_as<int64_t>();
  return offsets[tensor.elements()] - offsets[0];
}

base::Status check_bytes_layout(const Shape &shape, const Buffer &buffer, int64_t offset_bytes) {
  const int64_t count = shape.elements() + 1;
  if (offset_bytes < 0 || buffer.size_bytes() < offset_bytes || (buffer.size_bytes() - offset_bytes) / 8 < count) {
    return base::out_of_range("bytes tensor ", shape, ": ", count, " offsets at ", offset_bytes,
                              " do not lie in a buffer of ", buffer.size_bytes(), " bytes");
  }
  const auto *offsets = reinterpret_cast<const int64_t *>(static_cast<const char *>(buffer.data()) + offset_bytes);
  int64_t least = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (offsets[i] < least || offsets[i] > buffer.size_bytes()) {
      return base::invalid_argument("bytes tensor ", shape, ": offset ", i, " is ", offsets[i], ", expected ", least,
                                    " to ", buffer.size_bytes());
    }
    least = offsets[i];
  }
  return base::Status();
}

}  // namespace tutti::impl::tensor

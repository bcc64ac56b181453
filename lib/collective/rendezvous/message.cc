// SPDX-License-Identifier: Apache-2.0
#include "collective/rendezvous/message.h"

namespace tutti::impl::collective::rendezvous {

void put_u32(std::string &body, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8)
    body.push_back(static_cast<char>(value >> shift));
}

void put_text(std::string &body, std::string_view text) {
  put_u32(body, static_cast<uint32_t>(text.size()));
  body.append(text);
}

std::string frame(MessageType type, std::string_view body) {
  std::string bytes;
  bytes.reserve(FrameHead::kBytes + body.size());
  put_u32(bytes, static_cast<uint32_t>(type));
  put_text(bytes, body);
  return bytes;
}

std::optional<uint32_t> BodyReader::u32() {
  if (rest_.size() < 4) return std::nullopt;
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  rest_.remove_prefix(4);
  return value;
}

std::optional<std::string_view> BodyReader::text() {
  const auto length = u32();
  if (!length || *length > rest_.size()) return std::nullopt;
  const std::string_view text = rest_.substr(0, *length);
  rest_.remove_prefix(*length);
  return text;
}

std::optional<FrameHead> parse_head(std::string_view bytes) {
  BodyReader reader(bytes);
  const auto type = reader.u32(), length = reader.u32();
  if (!type || !length || *length > kMostBytes) return std::nullopt;
  if (*type < static_cast<uint32_t>(MessageType::hello) || *type > static_cast<uint32_t>(MessageType::refused)) {
    return std::nullopt;
  }
  return FrameHead{static_cast<MessageType>(*type), *length};
}

}  // namespace tutti::impl::collective::rendezvous

// SPDX-License-Identifier: Apache-2.0
#include "graph/base64.h"

#include <array>
#include <cstdint>

namespace tutti::impl::graph {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> values{};
  for (int8_t &value : values)
    value = -1;
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return values;
}();

uint32_t byte_at(std::string_view bytes, size_t index) {
  return index < bytes.size() ? static_cast<unsigned char>(bytes[index]) : 0;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t group = byte_at(bytes, i) << 16 | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2);
    for (size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

base::Result<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0)
    return base::invalid_argument("base64 text has ", text.size(), " characters, which is not a multiple of 4");
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const size_t padding = !last ? 0 : text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const int8_t value = k + padding >= 4 ? int8_t{0} : kValues[static_cast<unsigned char>(text[i + k])];
      if (value < 0) return base::invalid_argument("base64 text has a wrong character at ", i + k);
      group = group << 6 | static_cast<uint32_t>(value);
    }
    for (size_t k = 0; k + padding < 3; ++k)
      bytes += static_cast<char>(group >> (16 - 8 * k) & 255);
    if ((group & ((1u << 8 * padding) - 1)) != 0) return base::invalid_argument("base64 text has bits after its end");
  }
  return bytes;
}

}  // namespace tutti::impl::graph

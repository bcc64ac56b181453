// SPDX-License-Identifier: Apache-2.0
#include "tool/tar_parts.h"

#include <array>
#include <cstdlib>
#include <fstream>

namespace tutti::tool {

namespace {

constexpr size_t kBlock = 512;
using Header = std::array<char, kBlock>;

std::string field(const Header &header, size_t offset, size_t size) {
  const std::string text(header.data() + offset, size);
  return text.substr(0, text.find('\0'));
}

std::string path_of(const Header &header) {
  const std::string prefix = field(header, 345, 155), name = field(header, 0, 100);
  return prefix.empty() ? name : prefix + "/" + name;
}

}  // namespace

std::vector<std::string> find_tar_parts(const std::string &path) {
  std::vector<std::string> parts;
  std::ifstream file(path, std::ios::binary);
  std::string sample;
  for (Header header; file.read(header.data(), kBlock) && field(header, 257, 5) == "ustar";) {
    const auto size = std::strtoull(field(header, 124, 12).c_str(), nullptr, 8);
    file.seekg(static_cast<std::streamoff>((size + kBlock - 1) / kBlock * kBlock), std::ios::cur);
    const char type = header[156];
    if (type != '0' && type != '\0') continue;
    const std::string name = path_of(header);
    const size_t dot = name.find('.', name.rfind('/') == std::string::npos ? 0 : name.rfind('/'));
    if (dot == std::string::npos) continue;
    if (!parts.empty() && name.substr(0, dot) != sample) break;
    sample = name.substr(0, dot);
    parts.push_back(name.substr(dot + 1) + ": bytes");
  }
  return parts;
}

}  // namespace tutti::tool

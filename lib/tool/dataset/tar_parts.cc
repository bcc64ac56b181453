// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/tar_parts.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace tutti::tool {

namespace {

constexpr size_t kBlock = 512;
constexpr uint64_t kLongestName = 1 << 16;

std::string field(std::string_view header, size_t offset, size_t size) {
  const std::string_view text = header.substr(offset, size);
  return std::string(text.substr(0, text.find('\0')));
}

std::string path_of(std::string_view header) {
  const std::string prefix = header.substr(257, 6) == std::string_view("ustar", 6) ? field(header, 345, 155) : "";
  const std::string name = field(header, 0, 100);
  return prefix.empty() ? name : prefix + "/" + name;
}

/// Of a pax header, records "LENGTH KEY=VALUE\n".
std::string path_in(std::string_view records) {
  const size_t key = records.find(" path=");
  if (key == std::string_view::npos) return "";
  const std::string_view path = records.substr(key + 6);
  return std::string(path.substr(0, path.find('\n')));
}

/// The file of an archive that comes next.
class TarFiles {
 public:
  explicit TarFiles(const Dataset &blocks) : blocks_(blocks) {}

  bool next(std::string &path) {
    std::string long_path;
    for (std::string header; read(header) && header.compare(257, 5, "ustar") == 0;) {
      const auto size = std::strtoull(field(header, 124, 12).c_str(), nullptr, 8);
      const char type = header[156];
      const bool is_name = (type == 'L' || type == 'x') && size <= kLongestName;
      std::string contents, block;
      for (uint64_t left = size; left > 0; left -= std::min<uint64_t>(left, kBlock)) {
        if (!read(block)) return false;
        if (is_name) contents += block.substr(0, static_cast<size_t>(std::min<uint64_t>(left, kBlock)));
      }
      if (is_name) {
        long_path = type == 'L' ? contents.substr(0, contents.find('\0')) : path_in(contents);
      } else if (type == '0' || type == '\0' || type == '7') {
        path = long_path.empty() ? path_of(header) : long_path;
        return true;
      } else {
        long_path.clear();
      }
    }
    return false;
  }

 private:
  bool read(std::string &block) {
    if (!blocks_.next()) return false;
    const Tensor record = blocks_.component(0);
    block.assign(static_cast<const char *>(tutti_tensor_get_element_data(record, 0)),
                 static_cast<size_t>(tutti_tensor_get_element_size(record, 0)));
    return block.size() == kBlock;
  }

  Iterator blocks_;
};

}  // namespace

std::vector<std::string> find_tar_parts(const Dataset &blocks) {
  std::vector<std::string> parts;
  std::string path, sample;
  for (TarFiles files(blocks); files.next(path);) {
    const size_t name = path.rfind('/') + 1;  // 0 without a slash
    const size_t dot = path.find('.', name);
    if (dot == std::string::npos || dot == name || dot + 1 == path.size()) continue;
    if (!parts.empty() && path.substr(0, dot) != sample) break;
    sample = path.substr(0, dot);
    std::string part = path.substr(dot + 1) + ": bytes";
    for (char &c : part) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    parts.push_back(part);
  }
  return parts;
}

}  // namespace tutti::tool

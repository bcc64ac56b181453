// SPDX-License-Identifier: Apache-2.0
#include "runtime/tpu_chips.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace tutti::impl::runtime {
namespace {

constexpr std::string_view kGoogle = "0x1ae0";
constexpr int64_t kLongestIdentifier = 1 << 16;

struct Kind {
  std::string_view device, name;
};
constexpr std::array<Kind, 6> kKinds = {{{"0x0027", "TPU v2 or v3"},
                                         {"0x005e", "TPU v4"},
                                         {"0x0062", "TPU v5p"},
                                         {"0x0063", "TPU v5e"},
                                         {"0x006f", "TPU v6e"},
                                         {"0x0076", "TPU7x"}}};

/// What a file of a device says, such as its vendor; empty where it cannot be read.
std::string identifier(const std::string &device, std::string_view file) {
  const auto text = base::read_file(base::concat(device, "/", file), kLongestIdentifier);
  return text.ok() ? std::string(base::trim(*text)) : std::string();
}

}  // namespace

std::string describe_tpu_chips(const std::string &folder) {
  const auto devices = base::list_directory(folder);
  if (!devices.ok()) return "";
  std::array<int64_t, kKinds.size()> counts{};
  for (const std::string &name : *devices) {
    const std::string device = base::concat(folder, "/", name);
    if (identifier(device, "vendor") != kGoogle) continue;
    const std::string id = identifier(device, "device");
    const auto kind = std::ranges::find(kKinds, std::string_view(id), &Kind::device);
    if (kind != kKinds.end()) ++counts[static_cast<size_t>(kind - kKinds.begin())];
  }
  std::vector<std::string> found;
  for (size_t k = 0; k < kKinds.size(); ++k) {
    if (counts[k] > 0) found.push_back(base::concat(counts[k], counts[k] == 1 ? " chip " : " chips ", kKinds[k].name));
  }
  return base::join(found, ", ");
}

}  // namespace tutti::impl::runtime

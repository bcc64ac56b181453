// SPDX-License-Identifier: Apache-2.0
#include "base/limits/cgroup.h"

#include <algorithm>
#include <fstream>

namespace tutti::impl::base {

namespace {

using LimitOf = int64_t (*)(const std::string &folder, bool is_version_2);

int64_t lesser(int64_t one, int64_t other) {
  if (one <= 0 || other <= 0) return std::max<int64_t>({one, other, 0});
  return std::min(one, other);
}

/// Of a group and those above it.
int64_t least_limit(const std::string &root, std::string group, bool is_version_2, LimitOf limit_of) {
  int64_t least = 0;
  for (;;) {
    if (group == "/") group.clear();
    least = lesser(least, limit_of(root + group, is_version_2));
    if (group.empty()) return least;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

bool names(const std::string &controllers, const std::string &controller) {
  return ("," + controllers + ",").find("," + controller + ",") != std::string::npos;
}

}  // namespace

/// Lines of /proc/self/cgroup are "number:controllers:path"; version 2 is number 0 without controllers.
int64_t least_limit_of_groups(const std::string &controller, LimitOf limit_of) {
  std::ifstream groups("/proc/self/cgroup");
  int64_t least = 0;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) least = lesser(least, least_limit("/sys/fs/cgroup", path, true, limit_of));
    if (names(controllers, controller)) {
      least = lesser(least, least_limit("/sys/fs/cgroup/" + controller, path, false, limit_of));
    }
  }
  return least;
}

}  // namespace tutti::impl::base

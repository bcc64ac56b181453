// SPDX-License-Identifier: Apache-2.0
//
// Cores of the affinity mask, fewer when a control group limits processor time: cpu.max of cgroup v2 (the kernel's
// Documentation/admin-guide/cgroup-v2.rst) of the process's group and those above it, cpu.cfs_quota_us of v1.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/thread.h"

namespace tutti::impl::base {

namespace {

/// Cores that a quota of so much time in each period comes to, rounded up; 0 = no limit.
int32_t cores_of_quota(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int32_t>(std::clamp((quota + period - 1) / period, 1.0, 1e6));
}

/// "200000 100000" or "max 100000".
int32_t limit_of_v2(const std::string &group) {
  std::ifstream file("/sys/fs/cgroup" + group + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota.empty() || quota[0] < '0' || quota[0] > '9') return 0;
  return cores_of_quota(std::stod(quota), period);
}

int32_t limit_of_v1(const std::string &group) {
  double quota = 0, period = 0;
  std::ifstream quota_file("/sys/fs/cgroup/cpu" + group + "/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu" + group + "/cpu.cfs_period_us");
  if (!(quota_file >> quota) || !(period_file >> period)) return 0;
  return cores_of_quota(quota, period);
}

/// The least limit of a group and those above it.
int32_t least_limit(std::string group, int32_t (*limit_of)(const std::string &)) {
  int32_t least = 0;
  for (;;) {
    if (group == "/") group.clear();
    const int32_t limit = limit_of(group);
    if (limit > 0) least = least == 0 ? limit : std::min(least, limit);
    if (group.empty()) return least;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

bool has_cpu_controller(const std::string &controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

/// Lines are "number:controllers:path"; version 2 is number 0 without controllers.
int32_t cores_of_group() {
  std::ifstream groups("/proc/self/cgroup");
  int32_t least = 0;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    int32_t limit = 0;
    if (controllers.empty()) limit = least_limit(path, limit_of_v2);
    if (has_cpu_controller(controllers)) limit = least_limit(path, limit_of_v1);
    if (limit > 0) least = least == 0 ? limit : std::min(least, limit);
  }
  return least;
}

int32_t cores_of_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

int32_t available_cores() {
  static const int32_t limit = cores_of_group();
  const int32_t cores = cores_of_mask();
  return limit > 0 ? std::min(limit, cores) : cores;
}

}  // namespace tutti::impl::base

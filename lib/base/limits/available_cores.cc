// SPDX-License-Identifier: Apache-2.0
//
// Cores of the affinity mask, fewer when a control group limits processor time.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/limits/cgroup.h"
#include "base/thread.h"

namespace tutti::impl::base {

namespace {

/// Cores that a quota of so much time in each period comes to, rounded up; 0 = no limit.
int64_t cores_of_quota(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int64_t>(std::clamp((quota + period - 1) / period, 1.0, 1e6));
}

/// cpu.max holds "200000 100000" or "max 100000".
int64_t limit_of(const std::string &folder, bool is_version_2) {
  double period = 0;
  if (is_version_2) {
    std::ifstream file(folder + "/cpu.max");
    std::string quota;
    if (!(file >> quota >> period) || quota.empty() || quota[0] < '0' || quota[0] > '9') return 0;
    return cores_of_quota(std::stod(quota), period);
  }
  double quota = 0;
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
  if (!(quota_file >> quota) || !(period_file >> period)) return 0;
  return cores_of_quota(quota, period);
}

int32_t cores_of_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

int32_t available_cores() {
  static const int32_t limit = static_cast<int32_t>(least_limit_of_groups("cpu", limit_of));
  const int32_t cores = cores_of_mask();
  return limit > 0 ? std::min(limit, cores) : cores;
}

}  // namespace tutti::impl::base

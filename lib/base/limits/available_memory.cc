// SPDX-License-Identifier: Apache-2.0
//
// What the system calls available (proc(5), MemAvailable), less where a control group or a resource limit leaves
// less. Files that a group has read count as its memory until others need it, so those not used lately are taken
// off, as for MemAvailable.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/limits/cgroup.h"
#include "base/memory.h"

namespace tutti::impl::base {

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// The number behind a word in a file of lines "word number"; 0 when it is not there.
int64_t number_behind(const std::string &path, const std::string &wanted) {
  std::ifstream file(path);
  std::string word, rest;
  for (int64_t value = 0; file >> word >> value; std::getline(file, rest)) {
    if (word == wanted) return value;
  }
  return 0;
}

/// What a group leaves, at least 1; 0 = it has no limit.
int64_t left_by_group(const std::string &folder, bool is_version_2) {
  std::ifstream limit_file(folder + (is_version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
  std::ifstream used_file(folder + (is_version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
  int64_t limit = 0, used = 0;
  if (!(limit_file >> limit) || !(used_file >> used)) return 0;  // "max" is no number
  const int64_t idle_files =
      number_behind(folder + "/memory.stat", is_version_2 ? "inactive_file" : "total_inactive_file");
  return std::max<int64_t>(1, limit - std::max<int64_t>(0, used - idle_files));
}

/// What is left of a resource limit, of which so many pages are used.
int64_t left_of(int resource, int64_t used_pages) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur >= kNoLimit) return kNoLimit;
  return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - used_pages * sysconf(_SC_PAGESIZE));
}

/// proc(5), statm: pages of the address space in the first place, of data and stacks in the sixth.
int64_t left_of_process() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0, shared = 0, text = 0, libraries = 0, data = 0;
  if (!(file >> all >> resident >> shared >> text >> libraries >> data)) return kNoLimit;
  return std::min(left_of(RLIMIT_AS, all), left_of(RLIMIT_DATA, data));
}

}  // namespace

int64_t available_memory() {
  int64_t bytes = number_behind("/proc/meminfo", "MemAvailable:") * 1024;
  if (bytes <= 0) bytes = sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
  if (const int64_t left = least_limit_of_groups("memory", left_by_group); left > 0) bytes = std::min(bytes, left);
  return std::min(bytes, left_of_process());
}

}  // namespace tutti::impl::base

// SPDX-License-Identifier: Apache-2.0
//
// Limits that control groups set for the process: of each group it belongs to and those above it, version 2 (the
// kernel's Documentation/admin-guide/cgroup-v2.rst) and version 1.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_BASE_LIMITS_CGROUP_H_
#define TUTTI_BASE_LIMITS_CGROUP_H_

#include <cstdint>
#include <string>

namespace tutti::impl::base {

/// The least of what `limit_of` gives for a group's folder, over the groups of a controller ("cpu", "memory"); 0 = no
/// group has a limit. `limit_of` is told the folder and whether it is of version 2, and answers 0 for none.
int64_t least_limit_of_groups(const std::string &controller,
                              int64_t (*limit_of)(const std::string &folder, bool is_version_2));

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_LIMITS_CGROUP_H_

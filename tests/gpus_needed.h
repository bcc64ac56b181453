// SPDX-License-Identifier: Apache-2.0
//
// For tests that need several real GPUs:
//
//   if (!has_enough_gpus(plug_in, 2)) return 77;     // "skipped: 2 GPUs are needed, 1 is here"
//
// tests/gpu/run.sh knows these words: a test that says them is skipped there, while one that is skipped for any other
// reason has failed.
#ifndef TUTTI_TESTS_GPUS_NEEDED_H_
#define TUTTI_TESTS_GPUS_NEEDED_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "backend/backend.h"
#include "runtime/backend_list.h"

namespace tutti::testing {

/// How many GPUs a backend drives; 0, and says why, where it cannot be opened.
inline int32_t gpus_of(const std::string &backend) {
  const auto opened = impl::runtime::open_backend(backend, "{}", {});
  if (opened.ok()) return (*opened)->device_count();
  std::printf("skipped: %s\n", opened.status().to_string().c_str());
  return 0;
}

/// Whether it drives so many; else says so.
inline bool has_enough_gpus(const std::string &backend, int32_t needed) {
  const int32_t count = gpus_of(backend);
  if (count > 0 && count < needed) {
    std::printf("skipped: %d GPUs are needed, %d %s here\n", static_cast<int>(needed), static_cast<int>(count),
                count == 1 ? "is" : "are");
  }
  return count >= needed;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_GPUS_NEEDED_H_

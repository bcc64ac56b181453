// SPDX-License-Identifier: Apache-2.0
//
// A tool that watches ranges: lines "begin NAME NUMBER" and "end" in the file that TUTTI_EMULATED_RANGES of the
// environment names, when it is set.
#include "backend/gpu/runtime/ranges.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

namespace tutti::impl::backend::gpu {

namespace {

std::mutex mutex;

/// Null when nobody watches. Under the mutex.
std::FILE *lines() {
  static const char *const path = std::getenv("TUTTI_EMULATED_RANGES");
  static std::FILE *const file = path == nullptr ? nullptr : std::fopen(path, "w");
  return file;
}

}  // namespace

RangeName register_range(const std::string &text) {
  const std::lock_guard guard(mutex);
  static std::set<std::string> *const names = new std::set<std::string>;
  return lines() == nullptr ? nullptr : const_cast<std::string *>(&*names->insert(text).first);
}

void begin_range(RangeName name, int64_t number) {
  const std::lock_guard guard(mutex);
  std::fprintf(lines(), "begin %s %" PRId64 "\n", static_cast<const std::string *>(name)->c_str(), number);
  std::fflush(lines());
}

void end_range() {
  const std::lock_guard guard(mutex);
  std::fputs("end\n", lines());
  std::fflush(lines());
}

const char *describe_ranges() { return "emulated"; }

}  // namespace tutti::impl::backend::gpu

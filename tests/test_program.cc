// SPDX-License-Identifier: Apache-2.0
//
// main() of a program of tests that are written in C++: runs the source that the first argument names, or its only one.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "testing.h"

namespace tutti::testing {
namespace {

using Run = int (*)(int, char **);

// By name. A function, since the sources come to it before main().
std::map<std::string, Run, std::less<>> &sources() {
  static std::map<std::string, Run, std::less<>> all;
  return all;
}

std::string_view name_of(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  for (const std::string_view end : {".cc", "_test"})
    if (file.ends_with(end)) file.remove_suffix(end.size());
  return file;
}

// Whether the test is limited to AVX2 on a processor that has nothing newer.
bool limits_nothing() {
#if defined(__x86_64__)
  const char *limit = std::getenv("DNNL_MAX_CPU_ISA");
  return limit != nullptr && std::string_view(limit) == "AVX2" && !__builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

}  // namespace

TestSource::TestSource(const char *file, int (*run)(int, char **)) {
  if (sources().emplace(name_of(file), run).second) return;
  std::fprintf(stderr, "two sources of this program are named '%s'\n", file);
  std::abort();
}

}  // namespace tutti::testing

int main(int count, char **arguments) {
  using tutti::testing::sources;
  if (tutti::testing::limits_nothing()) {
    std::puts("this processor has no instructions beyond AVX2: the test without the limit is the same");
    return 77;
  }
  if (sources().size() == 1) return sources().begin()->second(count, arguments);
  const auto named = sources().find(count > 1 ? arguments[1] : "");
  if (named == sources().end()) {
    std::fprintf(stderr, "usage: %s TEST [ARGUMENT ...], where TEST is one of\n", arguments[0]);
    for (const auto &[name, run] : sources())
      std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  arguments[1] = arguments[0];
  return named->second(count - 1, arguments + 1);
}

// SPDX-License-Identifier: Apache-2.0
#include "monitor/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "base/text.h"

namespace tutti::impl::monitor {

// proc(5), statm: pages of the address space, then those of it that are resident.
int64_t resident_bytes() {
  const std::string text = base::read_file("/proc/self/statm").value_or(std::string());
  const std::vector<std::string> numbers = base::split(text, ' ');
  const auto pages = numbers.size() < 2 ? std::nullopt : base::parse_integer(numbers[1]);
  return pages ? *pages * sysconf(_SC_PAGESIZE) : 0;
}

// getrusage(2): in KiB.
int64_t most_resident_bytes() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} * 1024 : 0;
}

}  // namespace tutti::impl::monitor

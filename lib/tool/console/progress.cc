// SPDX-License-Identifier: Apache-2.0
#include "tool/console/progress.h"

#include <unistd.h>

#include <cstdio>

#include "tool/console/table.h"

namespace tutti::tool {

Progress::Progress(int64_t total) : total_(total), is_shown_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (has_line_) std::fputs("\r\033[K", stderr);
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

void Progress::at(int64_t elements) {
  if (!is_shown_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(200);
  const double speed = static_cast<double>(elements) / seconds();
  std::string line = with_commas(elements);
  if (total_ > 0) {
    line += " of " + with_commas(total_) + " elements, " + std::to_string(100 * elements / total_) + " %, " +
            readable(static_cast<double>(total_ - elements) / speed) + " s left";
  } else {
    line += " elements";
  }
  std::fprintf(stderr, "\r\033[K%s, %s a second", line.c_str(), readable(speed).c_str());
  has_line_ = true;
}

}  // namespace tutti::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/arguments.h"

#include <cstdlib>

namespace tutti::tool {

std::string Arguments::value_after(const std::string &option) {
  if (done()) throw UsageError{option + " takes a value"};
  return take();
}

int64_t Arguments::number_after(const std::string &option) {
  const std::string text = value_after(option);
  char *end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0) throw UsageError{option + " takes a number, got '" + text + "'"};
  return value;
}

bool is_option(const std::string &word) { return word.compare(0, 2, "--") == 0; }

}  // namespace tutti::tool

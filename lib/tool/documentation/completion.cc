// SPDX-License-Identifier: Apache-2.0
#include "tool/documentation/completion.h"

#include <algorithm>

namespace tutti::tool {

std::string short_description(const std::string &description) {
  return description.substr(
      0, std::min({description.find('\n'), description.find("; "), description.find(". "), description.find(": ")}));
}

bool takes_file(const OptionText &option) { return option.value.compare(0, 4, "FILE") == 0; }

std::string word_list(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace tutti::tool

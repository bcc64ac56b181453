// SPDX-License-Identifier: Apache-2.0
#include "base/name_suggestions.h"

#include "base/text.h"

namespace tutti::impl::base {

std::string but_there_are(std::string_view name, std::span<const std::string> known, KnownNames form) {
  constexpr size_t kMostBytes = 400;
  if (known.empty()) return "; none are known";
  std::string text = did_you_mean(name, known) + "; known: ";
  const size_t begin = text.size();
  for (size_t i = 0; i < known.size(); ++i) {
    const bool is_long = text.size() - begin + known[i].size() > kMostBytes;
    if (is_long && i > 0) return concat(text, " and ", known.size() - i, " more");
    if (i > 0) text += ", ";
    text += form == KnownNames::quoted ? quoted(known[i], kMostBytes) : known[i];
  }
  return text;
}

Status check_utf8(std::string_view what, std::string_view name) {
  if (is_utf8(name)) return Status();
  return invalid_argument(what, " ", quoted(name, 400),
                          " is not UTF-8, as the files and reports that contain it must be");
}

}  // namespace tutti::impl::base

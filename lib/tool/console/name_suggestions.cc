// SPDX-License-Identifier: Apache-2.0
#include "tool/console/name_suggestions.h"

#include <algorithm>
#include <numeric>

namespace tutti::tool {

namespace {

/// Of Levenshtein: letters put in, left out or replaced.
size_t edit_distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(const std::string &name, const std::vector<std::string> &names) {
  const std::string *nearest = nullptr;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string &candidate : names) {
    const size_t distance = edit_distance(name, candidate);
    if (distance >= least || distance >= std::max(name.size(), candidate.size())) continue;
    least = distance;
    nearest = &candidate;
  }
  return nearest == nullptr ? "" : ", did you mean '" + *nearest + "'?";
}

std::string nearest_or_all(const std::string &name, const std::vector<std::string> &names) {
  const std::string meant = did_you_mean(name, names);
  return !meant.empty() ? meant : "; known: " + (names.empty() ? "none" : listed(names));
}

bool is_among(const std::string &name, const std::vector<std::string> &names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string alternatives(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_last = i + 1 == names.size();
    text += (i == 0 ? "" : is_last ? " or " : ", ") + names[i];
  }
  return text;
}

}  // namespace tutti::tool

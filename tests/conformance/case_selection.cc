// SPDX-License-Identifier: Apache-2.0
#include "case_selection.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

namespace tutti::impl::conformance {

namespace {

std::vector<std::string> words_of(const char *variable) {
  const char *const text = std::getenv(variable);
  std::istringstream in(text == nullptr ? "" : text);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, ',');)
    words.push_back(word);
  return words;
}

int64_t number_of(const char *variable, int64_t otherwise) {
  const char *const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

int64_t largest_input(const OpCase &one) {
  int64_t largest = 0;
  for (const Operand &input : one.inputs) {
    int64_t elements = 1;
    for (const int64_t dim : input.dims)
      elements *= dim;
    largest = std::max(largest, elements);
  }
  return largest;
}

}  // namespace

std::vector<OpCase> selected(std::vector<OpCase> cases) {
  const std::vector<std::string> ops = words_of("TUTTI_TESTED_OPS");
  const int64_t most_elements = number_of("TUTTI_TESTED_MOST_ELEMENTS", INT64_MAX);
  const int64_t per_op = number_of("TUTTI_TESTED_CASES_PER_OP", INT64_MAX);
  std::erase_if(cases, [&](const OpCase &one) {
    const bool is_named =
        ops.empty() || std::ranges::any_of(ops, [&](const std::string &op) { return one.op.starts_with(op); });
    return !is_named || largest_input(one) > most_elements;
  });
  std::map<std::string, int64_t> counts, positions;
  for (const OpCase &one : cases)
    ++counts[one.op];
  std::erase_if(cases, [&](const OpCase &one) {
    const int64_t count = counts[one.op], position = positions[one.op]++;
    if (count <= per_op) return false;
    // Of `count` in `per_op` equal stretches the first of each.
    return position * per_op / count == (position - 1) * per_op / count && position > 0;
  });
  return cases;
}

}  // namespace tutti::impl::conformance

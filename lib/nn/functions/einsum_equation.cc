// SPDX-License-Identifier: Apache-2.0
#include "nn/functions/einsum_equation.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace tutti::impl::nn {
namespace {

using base::invalid_argument;
using base::Result;

constexpr std::string_view kDots = "...";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// One term: its letters, and where '...' is among them.
struct Term {
  Labels letters;
  std::optional<size_t> dots;
};

Result<Term> parse_term(std::string_view text) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_letter(text[i])) {
      term.letters.push_back(text[i]);
    } else if (text.substr(i).starts_with(kDots) && !term.dots) {
      term.dots = term.letters.size();
      i += kDots.size() - 1;
    } else {
      return invalid_argument("'", text, "' is no list of letters with one '...' at most");
    }
  }
  return term;
}

std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> terms;
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    terms.push_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  terms.push_back(text);
  return terms;
}

/// The letters with labels for `count` axes in place of '...'.
Labels labels_of(const Term &term, size_t count) {
  Labels labels = term.letters;
  for (size_t i = 0; i < count; ++i)
    labels.insert(labels.begin() + static_cast<std::ptrdiff_t>(term.dots.value_or(0) + i),
                  kEllipsis + static_cast<Label>(count - 1 - i));
  return labels;
}

/// Without '->': the letters that stand there once, behind '...'.
Labels implied(const std::vector<Labels> &operands, size_t dots) {
  std::vector<int> seen(kEllipsis, 0);
  for (const Labels &labels : operands) {
    for (const Label label : labels) {
      if (label < kEllipsis) ++seen[static_cast<size_t>(label)];
    }
  }
  Labels result = labels_of({{}, 0}, dots);
  for (Label label = 0; label < kEllipsis; ++label) {
    if (seen[static_cast<size_t>(label)] == 1) result.push_back(label);
  }
  return result;
}

base::Status check_result(const EinsumEquation &equation) {
  for (const Label label : equation.result) {
    if (std::ranges::count(equation.result, label) > 1)
      return invalid_argument("the result has '", to_text(label), "' twice");
    const bool is_known = std::ranges::any_of(
        equation.operands, [&](const Labels &labels) { return std::ranges::find(labels, label) != labels.end(); });
    if (!is_known) return invalid_argument("the result has '", to_text(label), "', which no operand has");
  }
  return {};
}

}  // namespace

std::string to_text(Label label) {
  return label < kEllipsis ? std::string(1, static_cast<char>(label)) : std::string(kDots);
}

Result<EinsumEquation> parse_equation(std::string_view text, const std::vector<size_t> &ranks) {
  std::string dense(text);
  std::erase(dense, ' ');
  const std::string_view all = dense;
  const size_t arrow = all.find("->");
  const std::vector<std::string_view> terms = split_terms(all.substr(0, arrow));
  if (terms.size() != ranks.size())
    return invalid_argument("'", text, "' has ", terms.size(), " operands, got ", ranks.size());
  EinsumEquation equation;
  size_t most_dots = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    TUTTI_ASSIGN(const Term term, parse_term(terms[i]));
    const size_t letters = term.letters.size();
    if (letters > ranks[i] || (!term.dots && letters < ranks[i]))
      return invalid_argument("'", terms[i], "' does not fit operand ", i, ", which has rank ", ranks[i]);
    equation.operands.push_back(labels_of(term, ranks[i] - letters));
    most_dots = std::max(most_dots, ranks[i] - letters);
  }
  if (arrow == std::string_view::npos) {
    equation.result = implied(equation.operands, most_dots);
  } else {
    TUTTI_ASSIGN(const Term term, parse_term(all.substr(arrow + 2)));
    equation.result = labels_of(term, term.dots ? most_dots : 0);
  }
  TUTTI_TRY(check_result(equation));
  return equation;
}

}  // namespace tutti::impl::nn

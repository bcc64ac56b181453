// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "graph/dim_expression.h"

namespace tutti::impl::graph {
namespace {

std::string_view operator_name(DimAtom::Kind kind) {
  switch (kind) {
    case DimAtom::Kind::floor_divide:
      return "floordiv";
    case DimAtom::Kind::ceil_divide:
      return "ceildiv";
    case DimAtom::Kind::maximum:
      return "max";
    default:
      return "min";
  }
}

std::string text_of(const DimAtom &atom) {
  if (atom.kind == DimAtom::Kind::symbol) return atom.symbol;
  return base::concat("(", operator_name(atom.kind), " ", atom.left.to_code(), " ", atom.right.to_code(), ")");
}

std::string text_of(const std::vector<DimAtomPointer> &factors, int64_t coefficient) {
  if (factors.empty()) return base::concat(coefficient);
  if (factors.size() == 1 && coefficient == 1) return text_of(*factors[0]);
  std::string text = "(mul";
  if (coefficient != 1) text += base::concat(" ", coefficient);
  for (const DimAtomPointer &factor : factors)
    text += " " + text_of(*factor);
  return text + ")";
}

// In parentheses unless it can stand beside a product or quotient sign as it is.
std::string operand(const Dim &dim) {
  const std::string text = dim.to_string();
  return is_dim_symbol(text) || dim.is_constant() ? text : base::concat("(", text, ")");
}

std::string formula_of(const DimAtom &atom) {
  switch (atom.kind) {
    case DimAtom::Kind::symbol:
      return atom.symbol;
    case DimAtom::Kind::floor_divide:
      return base::concat("floor(", operand(atom.left), " / ", operand(atom.right), ")");
    case DimAtom::Kind::ceil_divide:
      return base::concat("ceil(", operand(atom.left), " / ", operand(atom.right), ")");
    case DimAtom::Kind::maximum:
      return base::concat("max(", atom.left.to_string(), ", ", atom.right.to_string(), ")");
    case DimAtom::Kind::minimum:
      return base::concat("min(", atom.left.to_string(), ", ", atom.right.to_string(), ")");
  }
  return "";
}

std::string formula_of(const std::vector<DimAtomPointer> &factors, int64_t coefficient) {
  if (factors.empty()) return base::concat(coefficient);
  std::string text = coefficient == 1 ? "" : base::concat(coefficient);
  for (const DimAtomPointer &factor : factors)
    text += base::concat(text.empty() ? "" : "*", formula_of(*factor));
  return text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  base::Result<Dim> parse_all() {
    TUTTI_ASSIGN(Dim dim, parse(0));
    skip_spaces();
    if (position_ != text_.size()) return wrong("the end");
    if (!dim.is_representable()) return base::invalid_argument("dimension '", text_, "' has no bounded exact form");
    return dim;
  }

 private:
  base::Result<Dim> parse(int depth) {
    if (depth > 2 * kMaximumDimDepth)
      return base::invalid_argument("dimension nests deeper than ", 2 * kMaximumDimDepth);
    skip_spaces();
    if (position_ < text_.size() && text_[position_] == '(') {
      ++position_;
      return parse_operation(depth);
    }
    const std::string_view word = next_word();
    if (const auto number = base::parse_integer(word)) return Dim(*number);
    if (is_dim_symbol(word)) return Dim::symbol(word);
    return wrong("a number, a symbol or '('");
  }

  base::Result<Dim> parse_operation(int depth) {
    const std::string_view operation = next_word();
    std::vector<Dim> operands;
    while (true) {
      skip_spaces();
      if (position_ >= text_.size()) return wrong("')'");
      if (text_[position_] == ')') break;
      if (operands.size() >= kMaximumDimTerms) return base::invalid_argument("dimension has too many operands");
      TUTTI_ASSIGN(Dim operand, parse(depth + 1));
      operands.push_back(std::move(operand));
    }
    ++position_;
    return apply(operation, operands);
  }

  base::Result<Dim> apply(std::string_view operation, const std::vector<Dim> &operands) const {
    using Function = Dim (*)(const Dim &, const Dim &);
    static constexpr std::pair<std::string_view, Function> kOperations[] = {
        {"add", [](const Dim &a, const Dim &b) { return a + b; }},
        {"sub", [](const Dim &a, const Dim &b) { return a - b; }},
        {"mul", [](const Dim &a, const Dim &b) { return a * b; }},
        {"floordiv", [](const Dim &a, const Dim &b) { return floor_divide(a, b); }},
        {"ceildiv", [](const Dim &a, const Dim &b) { return ceil_divide(a, b); }},
        {"max", [](const Dim &a, const Dim &b) { return maximum(a, b); }},
        {"min", [](const Dim &a, const Dim &b) { return minimum(a, b); }},
    };
    for (const auto &[name, function] : kOperations) {
      if (name != operation) continue;
      if (operands.size() < 2) return base::invalid_argument("dimension operator '", name, "' needs two operands");
      if (operation.ends_with("div") && operands.size() != 2) {
        return base::invalid_argument("dimension operator '", name, "' takes two operands, got ", operands.size());
      }
      Dim result = operands[0];
      for (size_t i = 1; i < operands.size(); ++i)
        result = function(result, operands[i]);
      return result;
    }
    return base::invalid_argument("unknown dimension operator ", base::quoted(operation));
  }

  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ')
      ++position_;
  }

  std::string_view next_word() {
    skip_spaces();
    const size_t begin = position_;
    while (position_ < text_.size() && text_[position_] != ' ' && text_[position_] != '(' && text_[position_] != ')') {
      ++position_;
    }
    return text_.substr(begin, position_ - begin);
  }

  base::Status wrong(std::string_view expected) const {
    return base::invalid_argument("dimension ", base::quoted(text_), ": expected ", expected, " at position ",
                                  position_);
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

std::string Dim::to_code() const {
  if (expression_ == nullptr) return base::concat(constant_);
  if (!is_representable()) return "(unrepresentable)";
  std::vector<std::string> positive, negative;
  for (const DimTerm &term : expression_->terms) {
    // The smallest number has no positive counterpart: it stays an added term.
    const bool subtract = term.coefficient < 0 && term.coefficient != INT64_MIN;
    (subtract ? negative : positive).push_back(text_of(term.factors, subtract ? -term.coefficient : term.coefficient));
  }
  std::string sum = positive.empty()       ? "0"
                    : positive.size() == 1 ? positive[0]
                                           : "(add " + base::join(positive, " ") + ")";
  return negative.empty() ? sum : base::concat("(sub ", sum, " ", base::join(negative, " "), ")");
}

std::string Dim::to_string() const {
  if (expression_ == nullptr) return base::concat(constant_);
  if (!is_representable()) return "(unrepresentable)";
  std::string added, subtracted;
  for (const DimTerm &term : expression_->terms) {
    // The smallest number has no positive counterpart: it stays an added term.
    const bool subtract = term.coefficient < 0 && term.coefficient != INT64_MIN;
    const std::string text = formula_of(term.factors, subtract ? -term.coefficient : term.coefficient);
    if (subtract) {
      subtracted += " - " + text;
    } else {
      added += added.empty() ? text : " + " + text;
    }
  }
  return (added.empty() ? "0" : added) + subtracted;
}

base::Result<Dim> Dim::parse(std::string_view text) {
  if (text.size() > kMaximumDimText)
    return base::invalid_argument("dimension text of ", text.size(), " bytes is too long");
  return Parser(text).parse_all();
}

std::string to_string(const Dims &dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) text += ", ";
    text += dims[i].to_string();
  }
  return text + "]";
}

}  // namespace tutti::impl::graph

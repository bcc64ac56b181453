// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/map_expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

constexpr int kDeepest = 100;
constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool goes_on_name(char c) { return begins_name(c) || is_digit(c) || c == '/' || c == '.' || c == '-'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Parser {
 public:
  explicit Parser(const std::string &source) : source_(source) {}

  MapStatement statement() {
    MapStatement statement;
    statement.source = source_;
    if (!begins_name(peek())) fail("expected the name of a component, as in NAME = EXPRESSION");
    statement.target = name();
    if (!accept('=')) fail("expected '=' after '" + statement.target + "'");
    statement.value = expression(0);
    if (peek() != '\0') fail("expected the end, got " + here());
    return statement;
  }

 private:
  Expression expression(int depth) {
    if (depth > kDeepest) fail("the expression is nested too deeply");
    Expression found;
    const char first = peek();
    found.at = at_;
    if (first == '"' || first == '\'') {
      found.kind = Expression::Kind::text;
      found.text = text();
    } else if (first == '[') {
      found.kind = Expression::Kind::list;
      ++at_;
      while_in(']', found.arguments, depth);
    } else if (is_digit(first) || first == '-' || first == '+' || first == '.') {
      read_number(found);
    } else if (begins_name(first)) {
      read_named(found, depth);
    } else {
      fail("expected an op, a component, a number, a text in quotes or a list, got " + here());
    }
    return found;
  }

  void read_named(Expression &found, int depth) {
    found.text = name();
    if (accept('(')) {
      found.kind = Expression::Kind::call;
      if (!accept(')')) read_arguments(found, depth);
    } else if (found.text == "true" || found.text == "false") {
      found.kind = Expression::Kind::boolean;
      found.is_true = found.text == "true";
    }
  }

  void read_arguments(Expression &call, int depth) {
    do {
      peek();
      const size_t begin = at_;
      if (begins_name(peek())) {
        Keyword keyword{name(), begin, {}};
        if (accept('=')) {
          keyword.value = expression(depth + 1);
          call.keywords.push_back(std::move(keyword));
          continue;
        }
        at_ = begin;
      }
      call.arguments.push_back(expression(depth + 1));
    } while (accept(','));
    if (!accept(')')) fail("expected ',' or ')' in the arguments of " + call.text + ", got " + here());
  }

  void while_in(char close, std::vector<Expression> &elements, int depth) {
    if (accept(close)) return;
    do {
      elements.push_back(expression(depth + 1));
    } while (accept(','));
    if (!accept(close)) fail("expected ',' or ']' in the list, got " + here());
  }

  void read_number(Expression &found) {
    found.kind = Expression::Kind::number;
    found.number = number(found.is_integer);
    if (!accept('/')) return;
    bool is_integer = false;
    peek();
    const size_t below = at_;
    const double divisor = number(is_integer);
    if (divisor == 0) {
      at_ = below;
      fail("division by 0");
    }
    found.number /= divisor;
    found.is_integer = false;
  }

  double number(bool &is_integer) {
    size_t begin = at_;
    if (peek() == '+') begin = ++at_;
    const char *const first = source_.c_str() + begin, *const end = source_.c_str() + source_.size();
    double value = 0;
    const auto [last, error] = std::from_chars(first, end, value);
    const bool ends_well = last == end || !goes_on_name(*last) || *last == '/';
    if (error != std::errc() || !std::isfinite(value) || !ends_well) fail("expected a number, got " + here());
    is_integer = std::none_of(first, last, [](char c) { return c == '.' || c == 'e' || c == 'E'; }) &&
                 std::fabs(value) <= kExactIntegers;
    at_ = begin + static_cast<size_t>(last - first);
    return value;
  }

  std::string text() {
    const size_t begin = at_;
    const char quote = source_[at_++];
    std::string found;
    for (; at_ < source_.size() && source_[at_] != quote; ++at_)
      found += source_[at_] == '\\' ? escaped() : source_[at_];
    if (at_ == source_.size()) {
      at_ = begin;
      fail("the text has no closing quote");
    }
    ++at_;
    return found;
  }

  char escaped() {
    const char letter = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
    if (letter != 'n' && letter != 't' && letter != '\\' && letter != '"' && letter != '\'')
      fail("expected \\n, \\t, \\\\, \\\" or \\'");
    ++at_;
    return letter == 'n' ? '\n' : letter == 't' ? '\t' : letter;
  }

  std::string name() {
    const size_t begin = at_;
    while (at_ < source_.size() && goes_on_name(source_[at_]))
      ++at_;
    return source_.substr(begin, at_ - begin);
  }

  /// What comes behind white space; 0 at the end.
  char peek() {
    while (at_ < source_.size() && is_space(source_[at_]))
      ++at_;
    return at_ < source_.size() ? source_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  /// What stands at the place, for messages.
  std::string here() {
    if (peek() == '\0') return "the end";
    const size_t begin = at_;
    const std::string word = begins_name(source_[at_]) ? name() : source_.substr(at_, 1);
    at_ = begin;
    return "'" + word + "'";
  }
  [[noreturn]] void fail(const std::string &what) const { fail_at(source_, at_, what); }

  const std::string &source_;
  size_t at_ = 0;
};

}  // namespace

MapStatement parse_map(const std::string &source) { return Parser(source).statement(); }

void fail_at(const std::string &source, size_t at, const std::string &what) {
  const size_t before = source.substr(0, at).rfind('\n');
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::string line = source.substr(begin, source.find('\n', at) - begin);
  // Bytes that go on a letter of UTF-8 take no place; tabs stay, so that the mark is below its letter.
  std::string mark;
  for (const char c : line.substr(0, at - begin)) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) mark += c == '\t' ? '\t' : ' ';
  }
  throw UsageError{"--map: " + what + "\n  " + line + "\n  " + mark + "^", false};
}

}  // namespace tutti::tool

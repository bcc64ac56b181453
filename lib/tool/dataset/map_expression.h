// SPDX-License-Identifier: Apache-2.0
//
// Maps as a command line writes them: NAME = EXPRESSION.
//
//   image = resize(decode_image(image), size=[224, 224], method="area")
//   image = normalize_image(image, mean=[0.485, 0.456, 0.406], stddev=[0.229, 0.224, 0.225], scale=1/255)
//
//   statement   NAME '=' expression
//   expression  OP '(' argument, ... ')' | NAME | number | text | 'true' | 'false' | '[' expression, ... ']'
//   argument    expression | ATTRIBUTE '=' expression
//   number      as in C, or a fraction of two of them: 1/255
//   text        in double or single quotes, with \n \t \\ \" \'
//
// Names are letters, digits and _ / . - with no digit in front. What ops there are and what they take: map_graph.h.
#ifndef TUTTI_TOOL_DATASET_MAP_EXPRESSION_H_
#define TUTTI_TOOL_DATASET_MAP_EXPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::tool {

struct Keyword;

struct Expression {
  enum class Kind { name, call, number, text, boolean, list };

  Kind kind = Kind::name;
  size_t at = 0;     // where it begins in the statement's text
  std::string text;  // the name, the op, or the text itself
  double number = 0;
  bool is_integer = false;  // of a number: written without a point, exponent or fraction, and within 2^53
  bool is_true = false;
  std::vector<Expression> arguments;  // of a call, by position; of a list
  std::vector<Keyword> keywords;

  bool is_literal() const { return kind != Kind::name && kind != Kind::call; }
};

struct Keyword {
  std::string name;
  size_t at = 0;
  Expression value;
};

struct MapStatement {
  std::string source;  // as it was given
  std::string target;
  Expression value;
};

/// Throws UsageError that shows the place and says what was expected there.
MapStatement parse_map(const std::string &source);

/// Throws UsageError: what is wrong, the line of the source, and a mark below the place.
[[noreturn]] void fail_at(const std::string &source, size_t at, const std::string &what);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_MAP_EXPRESSION_H_

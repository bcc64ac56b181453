// SPDX-License-Identifier: Apache-2.0
//
// The words of a command line, one after the other.
//
//   Arguments arguments(words);
//   while (!arguments.done()) {
//     const std::string word = arguments.take();
//     if (word == "--rows") rows = arguments.number_after(word);
//     else ...
//   }
#ifndef TUTTI_TOOL_ARGUMENTS_H_
#define TUTTI_TOOL_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::tool {

/// Wrong arguments: `text` says how.
struct UsageError {
  std::string text;
  bool wants_usage = true;  // printed behind it
};

class Arguments {
 public:
  explicit Arguments(std::vector<std::string> words) : words_(std::move(words)) {}

  bool done() const { return next_ == words_.size(); }
  std::string take() { return words_[next_++]; }
  /// The word behind an option.
  std::string value_after(const std::string &option);
  /// The same as a number, at least 0.
  int64_t number_after(const std::string &option);

 private:
  std::vector<std::string> words_;
  size_t next_ = 0;
};

/// Does the word look like an option?
bool is_option(const std::string &word);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_ARGUMENTS_H_

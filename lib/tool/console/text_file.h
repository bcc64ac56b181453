// SPDX-License-Identifier: Apache-2.0
//
// A file of text that gets its name when it is complete: until then, and for good if close() never comes, it is called
// PATH.part, which goes with the object.
#ifndef TUTTI_TOOL_CONSOLE_TEXT_FILE_H_
#define TUTTI_TOOL_CONSOLE_TEXT_FILE_H_

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace tutti::tool {

class TextFile {
 public:
  /// Throws std::runtime_error when it cannot be written, as all functions do.
  explicit TextFile(const std::string &path);
  ~TextFile();
  TextFile(const TextFile &) = delete;
  TextFile &operator=(const TextFile &) = delete;

  void write(std::string_view text);
  void close();

 private:
  std::string temporary() const { return path_ + ".part"; }
  [[noreturn]] void fail() const;

  const std::string path_;
  std::unique_ptr<FILE, int (*)(FILE *)> file_;
};

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONSOLE_TEXT_FILE_H_

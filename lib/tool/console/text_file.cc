// SPDX-License-Identifier: Apache-2.0
#include "tool/console/text_file.h"

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace tutti::tool {

TextFile::TextFile(const std::string &path) : path_(path), file_(nullptr, std::fclose) {
  file_.reset(std::fopen(temporary().c_str(), "w"));
  if (file_ == nullptr) fail();
}

TextFile::~TextFile() {
  if (file_ != nullptr) std::remove(temporary().c_str());
}

void TextFile::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) fail();
}

void TextFile::close() {
  if (std::fclose(file_.release()) != 0 || std::rename(temporary().c_str(), path_.c_str()) != 0) fail();
}

void TextFile::fail() const {
  throw std::runtime_error("cannot write '" + path_ + "': " + std::generic_category().message(errno));
}

}  // namespace tutti::tool

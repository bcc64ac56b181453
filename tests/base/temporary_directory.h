// SPDX-License-Identifier: Apache-2.0
//
// A fresh directory for a test, removed with all it holds when the object ends.
#ifndef TUTTI_TESTS_BASE_TEMPORARY_DIRECTORY_H_
#define TUTTI_TESTS_BASE_TEMPORARY_DIRECTORY_H_

#include <stdlib.h>

#include <string>

#include "base/file.h"

namespace tutti::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char *base = getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/tutti-test-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) abort();
  }
  ~TemporaryDirectory() {
    (void)impl::base::remove_tree(impl::base::parent_directory(path_), impl::base::base_name(path_));
  }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

  const std::string &path() const { return path_; }
  /// The path of a file in it.
  std::string operator/(const std::string &name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BASE_TEMPORARY_DIRECTORY_H_

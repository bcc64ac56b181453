// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace tutti::impl::base {

namespace {

/// The loader gives no code: it sets errno where it asks for memory, and ends its sentence with the system's words.
bool lacks_memory(int error_number, std::string_view sentence) {
  return error_number == ENOMEM || sentence.find(std::strerror(ENOMEM)) != std::string_view::npos ||
         sentence.find("out of memory") != std::string_view::npos;
}

}  // namespace

Result<void *> open_shared_library(const std::string &path) {
  errno = 0;
  void *const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const int error_number = errno;
  const char *const reason = dlerror();
  const std::string sentence = reason != nullptr ? reason : "it cannot be loaded";
  if (lacks_memory(error_number, sentence)) return resource_exhausted("out of memory: ", sentence);
  return unavailable(sentence);
}

}  // namespace tutti::impl::base

// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>
#include <signal.h>

#include <array>
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

/// Signals are the program's: what a library sets as it is loaded would take them from it. UCX, by way of MPI and Gloo,
/// ends the process at the signals by which a Java machine works.
class SignalHandlers {
 public:
  SignalHandlers() {
    for (int number = 1; number < NSIG; ++number)
      is_known_[static_cast<size_t>(number)] = sigaction(number, nullptr, &before_[static_cast<size_t>(number)]) == 0;
  }
  SignalHandlers(const SignalHandlers &) = delete;
  SignalHandlers &operator=(const SignalHandlers &) = delete;
  ~SignalHandlers() {
    for (int number = 1; number < NSIG; ++number) {
      const struct sigaction &before = before_[static_cast<size_t>(number)];
      struct sigaction now {};
      if (!is_known_[static_cast<size_t>(number)] || sigaction(number, nullptr, &now) != 0) continue;
      if (now.sa_sigaction != before.sa_sigaction || now.sa_flags != before.sa_flags)
        (void)sigaction(number, &before, nullptr);
    }
  }

 private:
  std::array<struct sigaction, NSIG> before_{};
  std::array<bool, NSIG> is_known_{};
};

}  // namespace

Result<void *> open_shared_library(const std::string &path) {
  const SignalHandlers handlers;
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

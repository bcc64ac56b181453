// SPDX-License-Identifier: Apache-2.0
#include "backend/cache_folder.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace tutti::impl::backend {

using base::Result;
using base::Status;

namespace {

/// An absolute path in a variable; "" for none.
std::string path_from_environment(const char *variable) {
  const char *value = secure_getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

Result<std::string> plan_cache_folder(std::string_view option) {
  if (option == "off") return std::string();
  if (option.empty()) return plan_cache_folder_from_environment();
  if (option.front() != '/') {
    return base::invalid_argument("plan_cache is '", option, "', expected an absolute path, 'off' or nothing");
  }
  return std::string(option);
}

std::string plan_cache_folder_from_environment() {
  if (secure_getenv("TUTTI_CACHE_DIR") != nullptr) return path_from_environment("TUTTI_CACHE_DIR");
  const std::string base = path_from_environment("XDG_CACHE_HOME");
  if (!base.empty()) return base + "/tutti";
  const std::string home = path_from_environment("HOME");
  return home.empty() ? "" : home + "/.cache/tutti";
}

Status make_private_folder(const std::string &folder) {
  if (base::is_directory(folder)) return Status();
  TUTTI_TRY(base::make_directories(folder));
  ::chmod(folder.c_str(), 0700);
  return Status();
}

Status make_private_file(const std::string &path) {
  if (::chmod(path.c_str(), 0600) == 0) return Status();
  return base::failed_precondition("'", path, "' cannot be made private");
}

Status check_private_file(const std::string &path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return base::not_found("there is no file '", path, "'");
  if (file.st_uid != ::geteuid() || (file.st_mode & 022) != 0)
    return base::failed_precondition("'", path, "' is another user's, or others may write to it");
  return Status();
}

}  // namespace tutti::impl::backend

// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/file.h"
#include "base/file_system_call.h"

namespace tutti::impl::base {

namespace {

// No tree of the library is nearly as deep; a hostile one must not use up the descriptors.
constexpr int kDeepestTree = 64;

// The error of a path at which something else was expected to be a directory, itself or the one that it is in.
Status not_a_directory(std::string path) {
  struct stat information;
  while (::stat(path.c_str(), &information) != 0 && path.rfind('/') != std::string::npos && path.rfind('/') > 0)
    path.resize(path.rfind('/'));
  const bool is_file = ::stat(path.c_str(), &information) == 0 && S_ISREG(information.st_mode);
  errno = ENOTDIR;
  const Status plain = file_error("cannot use as a directory", path);
  if (!is_file) return plain;
  return Status(plain.code(), concat(base::quoted(path, 400), " is a file, expected a directory"))
      .with_domain("errno", ENOTDIR)
      .with_detail("path", path);
}

using Directory = std::unique_ptr<DIR, int (*)(DIR *)>;

// Takes over `file`, a directory's descriptor or -1.
Result<Directory> read_directory(int file, const std::string &path) {
  DIR *opened = file < 0 ? nullptr : fdopendir(file);
  if (opened == nullptr) {
    Status status = errno == ENOTDIR ? not_a_directory(path) : file_error("cannot read directory", path);
    if (file >= 0) ::close(file);
    return status;
  }
  return Directory(opened, closedir);
}

// All names but "." and "..", in the system's order.
Result<std::vector<std::string>> names_in(DIR *directory, const std::string &path) {
  std::vector<std::string> names;
  errno = 0;
  while (const dirent *entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return file_error("cannot read directory", path);
  return names;
}

// Removes `name` below the open directory `parent`, never following a link.
Status remove_entry(int parent, const std::string &name, const std::string &path, int depth) {
  if (::unlinkat(parent, name.c_str(), 0) == 0) return Status();
  // Linux says EISDIR for a directory, POSIX EPERM.
  if (errno != EISDIR && errno != EPERM) return file_error("cannot remove", path);
  if (depth > kDeepestTree) return failed_precondition("cannot remove ", base::quoted(path, 400), ": nested too deep");
  const int file = ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  TUTTI_ASSIGN(const Directory directory, read_directory(file, path));
  TUTTI_ASSIGN(const std::vector<std::string> names, names_in(directory.get(), path));
  for (const std::string &child : names) {
    TUTTI_TRY(remove_entry(dirfd(directory.get()), child, concat(path, "/", child), depth + 1));
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) return file_error("cannot remove", path);
  return Status();
}

}  // namespace

bool path_exists(const std::string &path) {
  struct stat information;
  return ::stat(path.c_str(), &information) == 0;
}

bool is_directory(const std::string &path) {
  struct stat information;
  return ::stat(path.c_str(), &information) == 0 && S_ISDIR(information.st_mode);
}

Status make_directories(const std::string &path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0777) != 0 && (errno != EEXIST || !is_directory(part))) {
      // An ancestor on a read-only file system is fine as long as it is there.
      const int error_number = errno;
      if (!is_directory(part)) {
        if (error_number == EEXIST || error_number == ENOTDIR) return not_a_directory(part);
        errno = error_number;
        return file_error("cannot make directory", part);
      }
    }
    if (end == std::string::npos) return Status();
  }
}

Result<std::vector<std::string>> list_directory(const std::string &path) {
  TUTTI_ASSIGN(const Directory directory, read_directory(open_call(path, O_RDONLY | O_DIRECTORY), path));
  TUTTI_ASSIGN(std::vector<std::string> names, names_in(directory.get(), path));
  std::sort(names.begin(), names.end());
  return names;
}

Status sync_directory(const std::string &path) {
  const FileDescriptor directory(open_call(path, O_RDONLY | O_DIRECTORY));
  if (directory.get() < 0) return file_error("cannot open directory", path);
  if (sync_call(directory.get()) == 0) return Status();
  // Some network file systems know no sync of directories.
  return errno == EINVAL ? Status() : file_error("cannot sync directory", path);
}

Status rename_synced(const std::string &from, const std::string &to) {
  if (rename_call(from, to) != 0) return file_error(concat("cannot rename ", base::quoted(from, 400), " to"), to);
  const std::string old_parent = parent_directory(from), new_parent = parent_directory(to);
  TUTTI_TRY(sync_directory(new_parent));
  return old_parent == new_parent ? Status() : sync_directory(old_parent);
}

Status remove_file(const std::string &path) {
  return ::unlink(path.c_str()) == 0 ? Status() : file_error("cannot remove", path);
}

Status remove_tree(const std::string &parent, std::string_view child) {
  TUTTI_ASSIGN(const std::string path, child_path(parent, child));
  const FileDescriptor directory(open_call(parent, O_RDONLY | O_DIRECTORY));
  if (directory.get() < 0) return file_error("cannot open directory", parent);
  return remove_entry(directory.get(), std::string(child), path, 0);
}

bool is_plain_name(std::string_view name) {
  constexpr size_t kLongest = 255;
  if (name.empty() || name.size() > kLongest || name == "." || name == "..") return false;
  return std::none_of(name.begin(), name.end(),
                      [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

Result<std::string> child_path(std::string_view directory, std::string_view name) {
  if (!is_plain_name(name)) {
    return invalid_argument("expected a plain file name in ", base::quoted(directory, 400), ", got ",
                            base::quoted(name, 400));
  }
  return concat(directory, directory.ends_with('/') ? "" : "/", name);
}

std::string parent_directory(std::string_view path) {
  const size_t at = path.rfind('/');
  if (at == std::string_view::npos) return ".";
  return std::string(path.substr(0, at == 0 ? 1 : at));
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

}  // namespace tutti::impl::base

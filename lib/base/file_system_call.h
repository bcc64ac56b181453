// SPDX-License-Identifier: Apache-2.0
//
// The system calls of file.cc and directory.cc that tests can make fail (fail_file_operation in file.h). Private to
// these sources. Each returns -1 with errno set on failure and is repeated when interrupted by a signal.
#ifndef TUTTI_BASE_FILE_SYSTEM_CALL_H_
#define TUTTI_BASE_FILE_SYSTEM_CALL_H_

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace tutti::impl::base {

int open_call(const std::string &path, int flags, unsigned mode = 0666);
/// At most 1 GiB at a time.
ssize_t write_call(int file, const void *data, size_t size);
int sync_call(int file);
int rename_call(const std::string &from, const std::string &to);

/// The status for errno: "<action> '<path>': <reason>", with the path as a detail.
Status file_error(std::string_view action, const std::string &path);

/// All of it, however many calls that takes.
Status write_all(int file, const void *data, size_t size, const std::string &path);
Status sync_file(int file, const std::string &path);

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_FILE_SYSTEM_CALL_H_

// SPDX-License-Identifier: Apache-2.0
#include "base/file_system_call.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace tutti::impl::base {

namespace {

struct PlannedFailure {
  std::atomic<int64_t> countdown{0};  // 0 = off; the call that takes it from 1 to 0 fails
  std::atomic<int> error_number{0};
};

std::array<PlannedFailure, 4> planned_failures;

bool fails_as_planned(FileOperation operation) {
  PlannedFailure &plan = planned_failures[static_cast<size_t>(operation)];
  int64_t count = plan.countdown.load(std::memory_order_relaxed);
  while (count > 0 && !plan.countdown.compare_exchange_weak(count, count - 1, std::memory_order_acquire)) {
  }
  if (count != 1) return false;
  errno = plan.error_number.load(std::memory_order_relaxed);
  return true;
}

template <typename Function>
auto repeat_if_interrupted(Function function) {
  auto answer = function();
  while (answer == -1 && errno == EINTR)
    answer = function();
  return answer;
}

}  // namespace

void fail_file_operation(FileOperation operation, int64_t n, int error_number) {
  PlannedFailure &plan = planned_failures[static_cast<size_t>(operation)];
  plan.error_number.store(error_number, std::memory_order_relaxed);
  plan.countdown.store(n, std::memory_order_release);
}

int open_call(const std::string &path, int flags, unsigned mode) {
  if (fails_as_planned(FileOperation::open)) return -1;
  return repeat_if_interrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
}

ssize_t write_call(int file, const void *data, size_t size) {
  if (fails_as_planned(FileOperation::write)) return -1;
  const size_t most = std::min(size, size_t{1} << 30);
  return repeat_if_interrupted([&] { return ::write(file, data, most); });
}

int sync_call(int file) {
  if (fails_as_planned(FileOperation::sync)) return -1;
  return repeat_if_interrupted([&] { return ::fsync(file); });
}

int rename_call(const std::string &from, const std::string &to) {
  if (fails_as_planned(FileOperation::rename)) return -1;
  return ::rename(from.c_str(), to.c_str());
}

Status file_error(std::string_view action, const std::string &path) {
  const int error_number = errno;
  return status_from_errno(error_number, concat(action, " ", base::quoted(path, 400))).with_detail("path", path);
}

Status write_all(int file, const void *data, size_t size, const std::string &path) {
  const char *bytes = static_cast<const char *>(data);
  while (size > 0) {
    const ssize_t written = write_call(file, bytes, size);
    if (written < 0) return file_error("cannot write", path);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return Status();
}

Status sync_file(int file, const std::string &path) {
  return sync_call(file) == 0 ? Status() : file_error("cannot sync file", path);
}

}  // namespace tutti::impl::base

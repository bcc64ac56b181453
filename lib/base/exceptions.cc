// SPDX-License-Identifier: Apache-2.0
#include "base/exceptions.h"

#include <new>
#include <system_error>

namespace tutti::impl::base {

namespace {

/// One for all, never destroyed. Its texts are short enough to lie inside of strings.
const ErrorPointer &shared_error() noexcept {
  alignas(Error) static char error[sizeof(Error)];
  alignas(ErrorPointer) static char pointer[sizeof(ErrorPointer)];
  static const ErrorPointer *const made =
      new (pointer) ErrorPointer(ErrorPointer::adopt(new (error) Error(Code::resource_exhausted, "out of memory")));
  return *made;
}

bool is_exhausted(const std::system_error &error) {
  const std::error_code &code = error.code();
  return code == std::errc::resource_unavailable_try_again || code == std::errc::not_enough_memory ||
         code == std::errc::too_many_files_open || code == std::errc::no_space_on_device;
}

Status described() {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return out_of_memory();
  } catch (const std::system_error &error) {
    return Status(is_exhausted(error) ? Code::resource_exhausted : Code::internal, error.what());
  } catch (const std::exception &error) {
    return Status(Code::internal, error.what());
  } catch (...) {
    return Status(Code::internal, "unknown exception");
  }
}

}  // namespace

Status out_of_memory() noexcept { return Status::from_error(shared_error()); }

bool is_out_of_memory(const Status &status) {
  if (status.code() != Code::resource_exhausted) return false;
  const Error &root = *status.root_cause();
  return root.code() == Code::resource_exhausted && root.message() == shared_error()->message();
}

Status status_of_exception() noexcept {
  try {
    return described();
  } catch (...) {
    return out_of_memory();
  }
}

}  // namespace tutti::impl::base

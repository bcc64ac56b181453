// SPDX-License-Identifier: Apache-2.0
//
// What exceptions are as a Status; and copies that run out of memory in the middle.
#include "base/exceptions.h"

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "base/json.h"
#include "base/safe_variant.h"
#include "testing.h"

namespace exceptions_test {

using namespace tutti::impl;
using base::Status;

namespace {

template <typename Exception>
Status status_of(Exception &&exception) {
  return base::without_exceptions([&]() -> Status { throw exception; });
}

void test_codes(void **) {
  assert_string_equal(status_of(std::bad_alloc()).to_string().c_str(), "RESOURCE_EXHAUSTED: out of memory");
  assert_string_equal(status_of(std::runtime_error("odd")).to_string().c_str(), "INTERNAL: odd");
  assert_string_equal(status_of(7).to_string().c_str(), "INTERNAL: unknown exception");
  const auto refused = std::make_error_code(std::errc::resource_unavailable_try_again);
  assert_true(status_of(std::system_error(refused, "thread")).code() == base::Code::resource_exhausted);
  const auto forbidden = std::make_error_code(std::errc::permission_denied);
  assert_true(status_of(std::system_error(forbidden, "thread")).code() == base::Code::internal);
  assert_ok(base::without_exceptions([] { return Status(); }));
}

/// One error for all: it is counted like any other and never goes.
void test_out_of_memory_is_shared(void **) {
  const base::Error *error = nullptr;
  {
    const Status first = base::out_of_memory(), second = base::out_of_memory();
    assert_ptr_equal(first.error().get(), second.error().get());
    error = first.error().get();
  }
  assert_ptr_equal(base::out_of_memory().error().get(), error);
  assert_true(error->code() == base::Code::resource_exhausted);
}

/// Throws when it is copied; moved without an exception, as strings and vectors are.
struct Refusing {
  Refusing() = default;
  Refusing(const Refusing &) { throw std::bad_alloc(); }
  Refusing(Refusing &&) noexcept = default;
  Refusing &operator=(const Refusing &) { throw std::bad_alloc(); }
  Refusing &operator=(Refusing &&) noexcept = default;
};

/// A vector is what libstdc++ believes to be always there.
using Copied = base::SafeVariant<bool, std::string, std::vector<Refusing>>;

void test_a_copy_that_throws_leaves_nothing(void **) {
  std::vector<Refusing> refusing;
  refusing.emplace_back();
  const Copied original(std::move(refusing));
  for (int i = 0; i < 3; ++i)
    assert_true(base::without_exceptions([&] {
                  const Copied copy(original);
                  return Status();
                }).code() == base::Code::resource_exhausted);
  Copied target(std::string("a text that is longer than a string has room for inside"));
  assert_false(base::without_exceptions([&] {
                 target = original;
                 return Status();
               }).ok());
  assert_string_equal(std::get<std::string>(target).c_str(), "a text that is longer than a string has room for inside");
  const Copied moved(std::move(target)), again(moved);
  assert_true(std::get<std::string>(again) == std::get<std::string>(moved));
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_codes),
    cmocka_unit_test(test_out_of_memory_is_shared),
    cmocka_unit_test(test_a_copy_that_throws_leaves_nothing),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace exceptions_test

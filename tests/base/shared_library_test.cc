// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>

#include <csignal>

#include "base/file.h"
#include "temporary_directory.h"
#include "testing.h"

// Want of memory: tests/faults.
namespace shared_library_test {

using namespace tutti::impl::base;
using tutti::testing::TemporaryDirectory;

namespace {

void opens_what_the_loader_finds(void **) {
  void *const handle = assert_ok_value(open_shared_library("libm.so.6"));
  assert_non_null(dlsym(handle, "cos"));
  assert_int_equal(dlclose(handle), 0);
}

void says_what_cannot_be_opened(void **) {
  const Result<void *> missing = open_shared_library("libtutti-of-nobody.so.7");
  assert_true(missing.status().code() == Code::unavailable);
  assert_error_contains(missing, "libtutti-of-nobody.so.7: cannot open shared object file");

  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/words.so";
  assert_ok(write_file_synced(path, "words"));
  const Result<void *> words = open_shared_library(path);
  assert_true(words.status().code() == Code::unavailable);
  assert_error_contains(words, "words.so");
}

void handler_of_the_program(int) {}

void signals_stay_the_programs(void **) {
#ifdef __SANITIZE_THREAD__
  test_skip();  // it puts handlers of its own in front
#endif
  assert_true(std::signal(SIGUSR2, handler_of_the_program) != SIG_ERR);
  struct sigaction fault {};
  assert_int_equal(sigaction(SIGSEGV, nullptr, &fault), 0);
  void *const handle = assert_ok_value(open_shared_library(TUTTI_SIGNAL_SETTER));
  assert_non_null(dlsym(handle, "tutti_signal_setter"));
  assert_true(std::signal(SIGUSR2, SIG_DFL) == handler_of_the_program);
  struct sigaction after {};
  assert_int_equal(sigaction(SIGSEGV, nullptr, &after), 0);
  assert_true(after.sa_handler == fault.sa_handler);
  assert_int_equal(dlclose(handle), 0);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(opens_what_the_loader_finds),
    cmocka_unit_test(says_what_cannot_be_opened),
    cmocka_unit_test(signals_stay_the_programs),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace shared_library_test

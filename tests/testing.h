// SPDX-License-Identifier: Apache-2.0
//
// What every test includes, from C or C++: cmocka, with the headers it wants before it and under C linkage.
//
// Include it after all other headers: cmocka's assertions are macros with short names. The two that clash with ordinary
// C++ members, fail() and skip(), are taken away in C++; use fail_msg() and test_skip().
//
// A failing cmocka assertion leaves the test function by longjmp and runs no destructor: assert in the test function
// only, never inside a callback or on another thread.
//
// C++ adds, for anything shaped like base::Status or base::Result:
//
//   assert_ok(graph.seal());                              // prints the status when it is an error
//   auto tensor = assert_ok_value(make_tensor(shape));    // the value moved out of a Result
//   assert_error_contains(parse("x"), "expected a number");
#ifndef TUTTI_TESTS_TESTING_H_
#define TUTTI_TESTS_TESTING_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

/// Runs an array of CMUnitTest: `TEST_MAIN(tests)` after the array's definition. In C that is the whole program; a C++
/// program may have several such sources (below).
#ifndef __cplusplus
#define TEST_MAIN(tests) \
  int main(void) { return cmocka_run_group_tests(tests, NULL, NULL); }
#else
#define TEST_MAIN(tests)                                                                 \
  static int run_all(int, char **) { return cmocka_run_group_tests(tests, NULL, NULL); } \
  TEST_SOURCE(run_all)
/// For a source with work of its own before its tests: `run` is like main(), with the arguments of its test.
#define TEST_SOURCE(run) static const ::tutti::testing::TestSource test_source(__FILE__, run);
#endif

/// Ends the test as skipped. A whole program is skipped by returning 77 from main instead.
#define test_skip() _skip(__FILE__, __LINE__)

/// Fails unless `needle` occurs in `text`, and prints both.
#define assert_contains(text, needle) test_assert_contains((text), (needle), __FILE__, __LINE__)

static inline void test_assert_contains(const char *text, const char *needle, const char *file, int line) {
  if (text != NULL && strstr(text, needle) != NULL) return;
  print_error("expected a text with \"%s\", got \"%s\"\n", needle, text != NULL ? text : "(null)");
  _fail(file, line);
}

#ifdef __cplusplus
#undef fail
#undef skip
#undef fail_msg
/// As cmocka's, whose own spelling calls the macro taken away above.
#define fail_msg(...)                   \
  do {                                  \
    print_error("ERROR: " __VA_ARGS__); \
    print_error("\n");                  \
    _fail(__FILE__, __LINE__);          \
  } while (0)

#include <string>
#include <utility>

namespace tutti::testing {

/// A source of tests in its program, whose main() is in test_program.cc. Where there are several, the first argument
/// names the one to run: "batch" is batch_test.cc. Each is in a namespace of its own, as they may be compiled together.
struct TestSource {
  TestSource(const char *file, int (*run)(int, char **));
};

/// The status inside a Result, or the status itself.
template <typename T>
decltype(auto) status_of(const T &outcome) {
  if constexpr (requires { outcome.status(); }) {
    return outcome.status();
  } else {
    return (outcome);
  }
}

/// The text of a status, with its causes where the type can print them.
template <typename T>
std::string text_of(const T &status) {
  if constexpr (requires { std::string(status.to_string()); }) {
    return std::string(status.to_string());
  } else {
    return std::string(status.message());
  }
}

template <typename T>
void check_ok(const T &outcome, const char *expression, const char *file, int line) {
  if (outcome.ok()) return;
  print_error("%s: %s\n", expression, text_of(status_of(outcome)).c_str());
  _fail(file, line);
}

template <typename T>
auto checked_value(T &&result, const char *expression, const char *file, int line) {
  check_ok(result, expression, file, line);
  return std::move(result).value();
}

template <typename T>
void check_error(const T &outcome, const std::string &needle, const char *file, int line) {
  if (outcome.ok()) {
    print_error("expected an error with \"%s\", got success\n", needle.c_str());
    _fail(file, line);
  }
  test_assert_contains(text_of(status_of(outcome)).c_str(), needle.c_str(), file, line);
}

}  // namespace tutti::testing

#define assert_ok(expression) ::tutti::testing::check_ok((expression), #expression, __FILE__, __LINE__)
#define assert_ok_value(expression) ::tutti::testing::checked_value((expression), #expression, __FILE__, __LINE__)
#define assert_error_contains(expression, needle) \
  ::tutti::testing::check_error((expression), (needle), __FILE__, __LINE__)
#endif

#endif  // TUTTI_TESTS_TESTING_H_

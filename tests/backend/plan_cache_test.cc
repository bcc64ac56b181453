// SPDX-License-Identifier: Apache-2.0
//
// The plan cache on disk: what was stored comes back, versions keep out of each other's way, and whatever is wrong with
// a file costs nothing but its times.
#include "backend/plan_cache.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <string>

#include "backend/cache_folder.h"
#include "base/file.h"
#include "base/temporary_directory.h"
#include "testing.h"

namespace {

using tutti::impl::backend::plan_cache_folder;
using tutti::impl::backend::PlanCache;
using tutti::impl::backend::RunTime;
using tutti::impl::backend::TimesByShape;
using tutti::testing::TemporaryDirectory;
namespace base = tutti::impl::base;

TimesByShape sample(const std::string &shape, double seconds) {
  return {{shape, {{"direct", RunTime{seconds, seconds / 4}}, {"none", std::nullopt}}}};
}

void what_was_stored_comes_back(void **) {
  const TemporaryDirectory directory;
  const PlanCache cache(directory / "a/b", {"cpu", "some processor", "1"});
  assert_true(assert_ok_value(cache.load()).empty());
  assert_ok(cache.store(sample("x", 0.1 + 0.2)));
  assert_true(assert_ok_value(cache.load()) == sample("x", 0.1 + 0.2));
  struct stat information {};
  assert_int_equal(stat((directory / "a/b").c_str(), &information), 0);
  assert_int_equal(information.st_mode & 0777, 0700);
  // More is added; what is stored again is replaced.
  assert_ok(cache.store(sample("y", 2.0)));
  assert_ok(cache.store(sample("x", 3.0)));
  TimesByShape both = sample("x", 3.0);
  both.merge(sample("y", 2.0));
  assert_true(assert_ok_value(cache.load()) == both);
}

void versions_and_processors_are_apart(void **) {
  const TemporaryDirectory directory;
  const PlanCache one(directory.path(), {"cpu", "a processor", "1"}),
      two(directory.path(), {"cpu", "a processor", "2"});
  const PlanCache other(directory.path(), {"cpu", "another processor", "1"});
  assert_ok(one.store(sample("x", 1.0)));
  assert_ok(two.store(sample("x", 2.0)));
  assert_true(assert_ok_value(one.load()) == sample("x", 1.0));
  assert_true(assert_ok_value(two.load()) == sample("x", 2.0));
  assert_string_equal(one.path().c_str(), two.path().c_str());
  assert_string_not_equal(one.path().c_str(), other.path().c_str());
  assert_true(assert_ok_value(other.load()).empty());
  const PlanCache gpu(directory.path(), {"gpu", "a processor", "1"});
  assert_string_not_equal(one.path().c_str(), gpu.path().c_str());
  assert_true(assert_ok_value(gpu.load()).empty());
  // Versions that nobody asks for any more do not pile up.
  for (int i = 3; i < 40; ++i)
    assert_ok(PlanCache(directory.path(), {"cpu", "a processor", std::to_string(i)}).store(sample("x", 1.0)));
  assert_true(assert_ok_value(base::file_size_bytes(one.path())) < 2000);
}

void replace_in_file(const std::string &path, const std::string &from, const std::string &to) {
  std::string text = assert_ok_value(base::read_file(path));
  const size_t at = text.find(from);
  assert_true(at != std::string::npos);
  text.replace(at, from.size(), to);
  assert_ok(base::write_file_atomically(path, text));
}

void damaged_and_foreign_files_are_no_files(void **) {
  const TemporaryDirectory directory;
  const PlanCache cache(directory.path(), {"cpu", "a processor", "1"});
  const struct {
    const char *from, *to, *error;
  } damages[] = {
      {"{", "[", "line"},
      {"0.25", "0.5", "checksum"},
      {"\"format\": 2", "\"format\": 1", "format"},
      {"a processor", "a processor!", "another processor"},
      {"\"checksum\"", "\"sum\"", "checksum"},
  };
  for (const auto &damage : damages) {
    assert_ok(cache.store(sample("x", 0.25)));
    assert_ok(cache.load());
    replace_in_file(cache.path(), damage.from, damage.to);
    assert_error_contains(cache.load(), damage.error);
    // It is replaced by the next one to write.
    assert_ok(cache.store(sample("x", 0.25)));
    assert_true(assert_ok_value(cache.load()) == sample("x", 0.25));
  }
  assert_ok(base::write_file_atomically(cache.path(), ""));
  assert_error_contains(cache.load(), "");
}

void times_make_sense(void **) {
  const TemporaryDirectory directory;
  const PlanCache cache(directory.path(), {"cpu", "a processor", "1"});
  for (const double wrong : {0.0, -1.0, 1e9}) {
    assert_ok(cache.store(sample("x", wrong)));
    assert_error_contains(cache.load(), "seconds");
  }
}

void fixed_parts_are_parts(void **) {
  const TemporaryDirectory directory;
  const PlanCache cache(directory.path(), {"cpu", "a processor", "1"});
  for (const RunTime wrong : {RunTime{1, 2}, RunTime{1, -1}}) {
    assert_ok(cache.store({{"x", {{"direct", wrong}}}}));
    assert_error_contains(cache.load(), "seconds");
  }
  assert_true((RunTime{3, 1}.scaled(2) == RunTime{5, 1}));
}

void folders_that_cannot_be_written_are_an_error(void **) {
  const TemporaryDirectory directory;
  assert_ok(base::write_file_atomically(directory / "file", "text"));
  assert_error_contains(PlanCache(directory / "file/folder", {"cpu", "p", "1"}).store(sample("x", 1.0)), "file");
}

void folders_come_from_option_and_environment(void **) {
  assert_string_equal(assert_ok_value(plan_cache_folder("/some/where")).c_str(), "/some/where");
  assert_string_equal(assert_ok_value(plan_cache_folder("off")).c_str(), "");
  assert_error_contains(plan_cache_folder("here"), "absolute");
  assert_int_equal(setenv("TUTTI_CACHE_DIR", "/cache/of/tutti", 1), 0);
  assert_int_equal(setenv("XDG_CACHE_HOME", "/cache", 1), 0);
  assert_int_equal(setenv("HOME", "/a/home", 1), 0);
  assert_string_equal(assert_ok_value(plan_cache_folder("")).c_str(), "/cache/of/tutti");
  assert_int_equal(setenv("TUTTI_CACHE_DIR", "off", 1), 0);
  assert_string_equal(assert_ok_value(plan_cache_folder("")).c_str(), "");
  assert_int_equal(unsetenv("TUTTI_CACHE_DIR"), 0);
  assert_string_equal(assert_ok_value(plan_cache_folder("")).c_str(), "/cache/tutti");
  assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
  assert_string_equal(assert_ok_value(plan_cache_folder("")).c_str(), "/a/home/.cache/tutti");
  assert_int_equal(unsetenv("HOME"), 0);
  assert_string_equal(assert_ok_value(plan_cache_folder("")).c_str(), "");
}

void nothing_is_kept_when_it_is_off(void **) {
  const PlanCache cache("", {"cpu", "p", "1"});
  assert_true(cache.is_off());
  assert_ok(cache.store(sample("x", 1.0)));
  assert_true(assert_ok_value(cache.load()).empty());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(what_was_stored_comes_back),
      cmocka_unit_test(versions_and_processors_are_apart),
      cmocka_unit_test(damaged_and_foreign_files_are_no_files),
      cmocka_unit_test(times_make_sense),
      cmocka_unit_test(fixed_parts_are_parts),
      cmocka_unit_test(folders_that_cannot_be_written_are_an_error),
      cmocka_unit_test(nothing_is_kept_when_it_is_off),
      cmocka_unit_test(folders_come_from_option_and_environment),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

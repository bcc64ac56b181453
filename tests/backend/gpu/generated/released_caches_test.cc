// SPDX-License-Identifier: Apache-2.0
//
// Caches that releases have written (tests/testdata/released/<release>/caches): times of kernels, and machine code.
// Later libraries share the folder with them: each finds its own part of a file, and leaves that of the others. What
// cannot be read is as good as none.
//
//   gpu_part_tests released_caches write DIRECTORY      writes them for a new release
#include <stdlib.h>

#include <set>
#include <string>
#include <vector>

#include "backend/gpu/generated/kernel_cache.h"
#include "backend/plan_cache.h"
#include "base/file.h"
#include "base/temporary_directory.h"
#include "testing.h"

namespace released_caches_test {

using namespace tutti::impl;
using backend::PlanCache;
using backend::RunTime;
using backend::TimesByShape;
using backend::gpu::KernelCache;
using tutti::testing::TemporaryDirectory;

namespace {

const char *const kProcessor = "a processor with 4 cores";

PlanCache cache_of(const std::string &folder, const std::string &version) {
  return PlanCache(folder, {"cpu", kProcessor, version});
}

// What was measured: powers of two, so that they are written as they are.
TimesByShape times() {
  return {{"conv 8x3x32x32 forward, 4 threads", {{"direct", RunTime{0.25, 0.0625}}, {"winograd", std::nullopt}}},
          {"product 64x128x256, 1 thread", {{"packed", RunTime{0.0009765625, 0}}}}};
}

const std::string kKey = "a compiler 1.0, a device\nheaders 0123\nkernel void f() {}\n";
const std::string kImage("\x7f machine\0code\n", 15);

// A copy of each release's folder, since that of the sources may be another user's, and caches are written.
std::vector<std::string> copies(const TemporaryDirectory &directory) {
  const char *testdata = getenv("TUTTI_TESTDATA");
  if (testdata == nullptr) test_skip();
  const std::string releases = base::concat(testdata, "/released");
  std::vector<std::string> made;
  for (const std::string &release : assert_ok_value(base::list_directory(releases))) {
    const std::string from = base::concat(releases, "/", release, "/caches"), to = directory / release;
    if (!base::is_directory(from)) continue;
    assert_ok(base::make_directories(to));
    for (const std::string &name : assert_ok_value(base::list_directory(from)))
      assert_ok(base::write_file_atomically(to + "/" + name, assert_ok_value(base::read_file(from + "/" + name))));
    made.push_back(to);
  }
  assert_true(!made.empty());
  return made;
}

void replace_in_file(const std::string &path, const std::string &from, const std::string &to) {
  std::string text = assert_ok_value(base::read_file(path));
  const size_t at = text.find(from);
  assert_true(at != std::string::npos);
  assert_ok(base::write_file_atomically(path, text.replace(at, from.size(), to)));
}

void times_are_read(void **) {
  const TemporaryDirectory directory;
  for (const std::string &folder : copies(directory)) {
    const PlanCache written = cache_of(folder, "0.1.0 / oneDNN 3.0.0"), now = cache_of(folder, "a later build");
    assert_true(assert_ok_value(written.load()) == times());
    // Another build takes none of them, and keeps them when it writes its own.
    assert_true(assert_ok_value(now.load()).empty());
    assert_ok(now.store({{"a shape", {{"a kernel", RunTime{1, 0.5}}}}}));
    assert_int_equal(assert_ok_value(now.load()).size(), 1);
    assert_true(assert_ok_value(written.load()) == times());
  }
}

void times_of_a_newer_format_are_none(void **) {
  const TemporaryDirectory directory;
  for (const std::string &folder : copies(directory)) {
    const PlanCache cache = cache_of(folder, "0.1.0 / oneDNN 3.0.0");
    replace_in_file(cache.path(), "\"format\": 2", "\"format\": 3");
    std::set<std::string> loaded;
    std::string said;
    assert_true(cache.load_once(loaded, [&](const std::string &line) { said += line; }).empty());
    assert_contains(said.c_str(), base::concat("'", cache.path(), "' is not used").c_str());
    assert_contains(said.c_str(), "format is 3, expected 2");
    assert_ok(cache.store(times()));
    assert_true(assert_ok_value(cache.load()) == times());
  }
}

void machine_code_is_read(void **) {
  const TemporaryDirectory directory;
  for (const std::string &folder : copies(directory)) {
    const KernelCache cache(folder);
    assert_true(assert_ok_value(cache.load(kKey)) == kImage);
    assert_int_equal(cache.load(kKey + "of a later build").status().code(), base::Code::not_found);
    replace_in_file(cache.path(kKey), "\"format\":1", "\"format\":2");
    assert_error_contains(cache.load(kKey), base::concat("'", cache.path(kKey), "' has format 2, expected 1"));
  }
}

int write(const std::string &directory) {
  const std::string folder = directory + "/caches";
  const bool is_written =
      cache_of(folder, "0.1.0 / oneDNN 3.0.0").store(times()).ok() && KernelCache(folder).store(kKey, kImage).ok();
  return is_written ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

static int run_all(int argument_count, char **arguments) {
  if (argument_count == 3 && std::string_view(arguments[1]) == "write") return write(arguments[2]);
  const CMUnitTest tests[] = {
      cmocka_unit_test(times_are_read),
      cmocka_unit_test(times_of_a_newer_format_are_none),
      cmocka_unit_test(machine_code_is_read),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace released_caches_test

// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "base/file.h"
#include "base/temporary_directory.h"
#include "testing.h"

namespace directory_test {

using namespace tutti::impl::base;
using tutti::testing::TemporaryDirectory;

namespace {

void making_and_listing(void **) {
  const TemporaryDirectory directory;
  assert_ok(make_directories(directory / "x/y/z"));
  assert_ok(make_directories(directory / "x/y/z"));
  assert_true(is_directory(directory / "x/y/z"));
  assert_ok(write_file_synced(directory / "x/b", ""));
  assert_ok(write_file_synced(directory / "x/a", ""));
  const std::vector<std::string> names = assert_ok_value(list_directory(directory / "x"));
  assert_int_equal(names.size(), 3);
  assert_string_equal(names[0].c_str(), "a");
  assert_string_equal(names[2].c_str(), "y");
  for (const char *place : {"x/a/c", "x/a", "x/a/c/d"})
    assert_error_contains(make_directories(directory / place), "/x/a' is a file, expected a directory");
  for (const char *place : {"x/a/c", "x/a"})
    assert_error_contains(list_directory(directory / place).status(), "/x/a' is a file, expected a directory");
  assert_true(list_directory(directory / "none").code() == Code::not_found);
}

void renaming(void **) {
  const TemporaryDirectory directory;
  assert_ok(make_directories(directory / "sub"));
  assert_ok(write_file_synced(directory / "a", "1"));
  assert_ok(rename_synced(directory / "a", directory / "sub/b"));
  assert_false(path_exists(directory / "a"));
  assert_true(assert_ok_value(read_file(directory / "sub/b")) == "1");
  const Status status = rename_synced(directory / "a", directory / "c");
  assert_true(status.code() == Code::not_found);
  assert_contains(status.message().c_str(), "/a' to '");
  assert_ok(remove_file(directory / "sub/b"));
  assert_true(remove_file(directory / "sub/b").code() == Code::not_found);
}

void trees_are_removed_and_links_not_followed(void **) {
  const TemporaryDirectory directory;
  assert_ok(make_directories(directory / "keep"));
  assert_ok(write_file_synced(directory / "keep/file", "1"));
  assert_ok(make_directories(directory / "tree/a/b/c"));
  assert_ok(write_file_synced(directory / "tree/a/file", "1"));
  assert_int_equal(symlink((directory / "keep").c_str(), (directory / "tree/link").c_str()), 0);
  assert_ok(remove_tree(directory.path(), "tree"));
  assert_false(path_exists(directory / "tree"));
  assert_true(path_exists(directory / "keep/file"));
  assert_int_equal(symlink((directory / "keep").c_str(), (directory / "link").c_str()), 0);
  assert_ok(remove_tree(directory.path(), "link"));
  assert_true(path_exists(directory / "keep/file"));
  assert_true(remove_tree(directory.path(), "tree").code() == Code::not_found);
  for (const char *bad : {"", ".", "..", "a/b", "/etc", "../keep", "a\nb"}) {
    assert_true(remove_tree(directory.path(), bad).code() == Code::invalid_argument);
  }
  assert_true(path_exists(directory / "keep/file"));
}

void only_plain_names(void **) {
  for (const char *good : {"a", "weights.safetensors", "...", "a b", "gr\xc3\xbcn"})
    assert_true(is_plain_name(good));
  assert_false(is_plain_name(std::string_view("a\0b", 3)));
  assert_false(is_plain_name(std::string(256, 'a')));
  assert_string_equal(assert_ok_value(child_path("run", "a")).c_str(), "run/a");
  assert_string_equal(assert_ok_value(child_path("/", "a")).c_str(), "/a");
  assert_error_contains(child_path("run", "../x"), "expected a plain file name in 'run', got '../x'");
  assert_string_equal(parent_directory("a/b/c").c_str(), "a/b");
  assert_string_equal(parent_directory("/a").c_str(), "/");
  assert_string_equal(parent_directory("a").c_str(), ".");
  assert_string_equal(base_name("a/b").c_str(), "b");
  assert_string_equal(base_name("b").c_str(), "b");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(making_and_listing),
    cmocka_unit_test(renaming),
    cmocka_unit_test(trees_are_removed_and_links_not_followed),
    cmocka_unit_test(only_plain_names),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace directory_test

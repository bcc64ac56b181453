// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"
#include "sample_files.h"

namespace text_lines_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;

namespace {

using Strings = std::vector<std::string>;

Strings lines_of(const std::string &contents, graph::Attributes attributes = {}) {
  const TemporaryDirectory folder;
  write_bytes(folder / "f", contents);
  attributes.insert_or_assign("paths", Strings{folder / "f"});
  return texts_of(assert_ok_value(begin_with("text_lines", attributes).build()));
}

void lines_end_in_every_way(void **) {
  assert_true(lines_of("").empty());
  assert_true((lines_of("\n") == Strings{""}));
  assert_true((lines_of("a") == Strings{"a"}));
  assert_true((lines_of("a\n") == Strings{"a"}));
  assert_true((lines_of("a\r\nb\r\n\r\nc\r") == Strings{"a", "b", "", "c\r"}));
  assert_true((lines_of("a\rb\r\r\n\n") == Strings{"a\rb\r", ""}));
  assert_true((lines_of(std::string("\0\xff\n\0", 4)) == Strings{std::string("\0\xff", 2), std::string(1, '\0')}));
  assert_true((lines_of("\xef\xbb\xbfthe first\n\xef\xbb\xbfsecond\n") == Strings{"the first", "\xef\xbb\xbfsecond"}));
  assert_true(lines_of("\xef\xbb\xbf").empty());
  assert_true((lines_of("\xef\xbb") == Strings{"\xef\xbb"}));
  const std::string wide(1000000, 'w');
  assert_true((lines_of("a\n" + wide + "\nb") == Strings{"a", wide, "b"}));
}

void options_are_heard(void **) {
  assert_true((lines_of("head\nhead\na\nb", {{"skip_lines", int64_t{2}}}) == Strings{"a", "b"}));
  assert_true(lines_of("head", {{"skip_lines", int64_t{2}}}).empty());
  const std::string packed = assert_ok_value(base::gzip("a\nb\n"));
  assert_true((lines_of(packed) == Strings{"a", "b"}));
  assert_true((lines_of(packed, {{"compression", std::string("gzip")}}) == Strings{"a", "b"}));
  assert_int_equal(lines_of(packed, {{"compression", std::string("none")}}).size(), 1);
  const TemporaryDirectory folder;
  write_bytes(folder / "1", "x");
  write_bytes(folder / "2", "y");
  const Strings paths{folder / "2", folder / "?"};
  const DatasetRef dataset =
      assert_ok_value(begin_with("text_lines", {{"paths", paths}, {"name", std::string("line")}}).build());
  assert_string_equal(dataset->spec().to_string().c_str(), "(line: bytes[])");
  assert_true(dataset->cardinality().is_unknown());
  assert_true((texts_of(dataset) == Strings{"y", "x", "y"}));
}

void mistakes_are_told(void **) {
  const auto begin = [](graph::Attributes attributes) { return begin_with("text_lines", attributes).build(); };
  assert_error_contains(begin({}), "parameter 'paths' is missing");
  assert_error_contains(begin({{"paths", std::string("x")}}), "parameter 'paths': expected strings, got string");
  assert_error_contains(begin({{"paths", Strings{}}}), "expected paths of files, got none");
  assert_error_contains(begin({{"paths", Strings{"/no/such/file"}}}), "/no/such/file");
  assert_error_contains(begin({{"paths", Strings{"/no/such/*"}}}), "no file matches the pattern '/no/such/*'");
  assert_error_contains(begin({{"paths", Strings{"x"}}, {"compression", std::string("zip")}}), "compression: expected");
  // A file that is gone when its turn comes costs one element.
  const TemporaryDirectory folder;
  for (const char *name : {"1", "2", "3"})
    write_bytes(folder / name, name);
  const DatasetRef dataset = assert_ok_value(begin({{"paths", Strings{folder / "*"}}}));
  assert_ok(base::remove_file(folder / "2"));
  const Strings texts = texts_of(dataset);
  assert_int_equal(texts.size(), 3);
  assert_contains(texts[1].c_str(), "!NOT_FOUND");
  assert_contains(texts[1].c_str(), "element=1");
  assert_string_equal(texts[2].c_str(), "3");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lines_end_in_every_way),
    cmocka_unit_test(options_are_heard),
    cmocka_unit_test(mistakes_are_told),
};
TEST_MAIN(tests)

}  // namespace text_lines_test

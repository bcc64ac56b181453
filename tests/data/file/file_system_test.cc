// SPDX-License-Identifier: Apache-2.0
#include "data/file/file_system.h"

#include "base/gzip.h"
#include "data/file/byte_stream.h"
#include "sample_files.h"

namespace file_system_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::ByteStream;
using data::Compression;

namespace {

void names_match_patterns(void **) {
  struct {
    const char *pattern, *name;
    bool matches;
  } const cases[] = {
      {"*", "a", true},
      {"*", "", true},
      {"*", ".hidden", false},
      {".*", ".hidden", true},
      {"a*b", "ab", true},
      {"a*b", "axxb", true},
      {"a*b", "axxbc", false},
      {"a*b*c", "a-b-b-c", true},
      {"?", "a", true},
      {"?", "", false},
      {"??", "a", false},
      {"[abc]", "b", true},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"[!a-c]x", "dx", true},
      {"[]]", "]", true},
      {"[a-]", "-", true},
      {"[", "[", true},
      {"[a", "[a", true},
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"x[\\]]", "x]", true},
      {"*.txt", "a.txt.gz", false},
      {"", "", true},
      {"*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
  };
  for (const auto &one : cases) {
    if (data::matches_pattern(one.pattern, one.name) != one.matches) fail_msg("%s on %s", one.pattern, one.name);
  }
}

void patterns_become_files_in_order(void **) {
  const TemporaryDirectory folder;
  assert_ok(base::make_directories(folder / "b/deep"));
  assert_ok(base::make_directories(folder / "a"));
  for (const char *name : {"b/2.txt", "b/10.txt", "a/1.txt", "b/deep/3.txt", "b/.hidden.txt", "b/x.csv", "[odd].txt"})
    write_bytes(folder / name, "");
  const auto expand = [&](std::vector<std::string> patterns) {
    for (std::string &pattern : patterns)
      pattern = folder / pattern;
    std::string text;
    for (const std::string &path : assert_ok_value(data::expand_paths(patterns)))
      text += path.substr(folder.path().size() + 1) + " ";
    return text;
  };
  assert_string_equal(expand({"b/*.txt"}).c_str(), "b/10.txt b/2.txt ");
  assert_string_equal(expand({"*/*.txt"}).c_str(), "a/1.txt b/10.txt b/2.txt ");
  assert_string_equal(expand({"**/*.txt"}).c_str(), "[odd].txt a/1.txt b/10.txt b/2.txt b/deep/3.txt ");
  assert_string_equal(expand({"b/**/[0-9].txt"}).c_str(), "b/2.txt b/deep/3.txt ");
  assert_string_equal(expand({"b/x.csv", "a/*", "b/x.csv"}).c_str(), "b/x.csv a/1.txt b/x.csv ");
  assert_string_equal(expand({"\\[odd\\].txt"}).c_str(), "[odd].txt ");
  assert_string_equal(expand({"not-there"}).c_str(), "not-there ");
  for (const char *nothing : {"b/*.tx", "c/*", "b/x.csv/*", "*/deep"}) {
    const auto expanded = data::expand_paths({folder / nothing});
    assert_error_contains(expanded, "no file matches the pattern");
    assert_error_contains(expanded, nothing);
    assert_int_equal(static_cast<int>(expanded.code()), static_cast<int>(base::Code::not_found));
  }
  assert_error_contains(data::expand_paths({}), "got none");
  assert_error_contains(data::expand_paths({""}), "an empty text");
  assert_error_contains(data::expand_paths({"store://bucket/*"}), "there is no file system for 'store://'");
}

void files_are_read_by_position(void **) {
  const TemporaryDirectory folder;
  write_bytes(folder / "a", "0123456789");
  const auto file = assert_ok_value(data::open_file(folder / "a"));
  char piece[4];
  assert_int_equal(file->size_bytes(), 10);
  assert_int_equal(assert_ok_value(file->read_at(8, piece)), 2);
  assert_memory_equal(piece, "89", 2);
  const auto contents = assert_ok_value(file->contents());
  assert_int_equal(contents->size_bytes(), 10);
  assert_memory_equal(contents->data(), "0123456789", 10);
  const auto memory = data::memory_file("0123", "m");
  assert_int_equal(assert_ok_value(memory->read_at(3, piece)), 1);
  assert_int_equal(assert_ok_value(memory->read_at(9, piece)), 0);
  assert_memory_equal(assert_ok_value(memory->contents())->data(), "0123", 4);
  assert_error_contains(data::open_file(folder / "none"), "none");
  assert_error_contains(data::open_file(folder.path()), "is a directory, expected a regular file");
}

// "run[1]" is a pattern that does not match itself.
void names_with_brackets_are_found(void **) {
  const TemporaryDirectory folder;
  for (const char *name : {"run[1]", "run1", "data[2]", "data2"})
    assert_ok(base::make_directories(folder / name));
  for (const char *name :
       {"run[1]/p.csv", "run[1]/q[0].csv", "run[1]/q0.csv", "run1/p.csv", "run1/r.csv", "data2/p.csv"})
    write_bytes(folder / name, "");
  const auto expand = [&](const char *pattern) {
    const auto paths = data::expand_paths({folder / pattern});
    if (!paths.ok()) return std::string("none");
    return base::join(*paths, " ");
  };
  assert_true(expand("run[1]/p.csv") == folder / "run[1]/p.csv");
  assert_true(expand("run[1]/q[0].csv") == folder / "run[1]/q[0].csv");
  assert_true(expand("run[1]/p*") == folder / "run[1]/p.csv");
  assert_true(expand("**/q[0].csv") == folder / "run[1]/q[0].csv");
  // Where nothing comes of the name, it is a pattern.
  assert_true(expand("run[1]/r.csv") == folder / "run1/r.csv");
  assert_true(expand("data[2]/p.csv") == folder / "data2/p.csv");
  assert_true(expand("run[1]/x.csv") == "none");
  assert_true(expand("run\\[1]/p.csv") == folder / "run[1]/p.csv");
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += base::concat(i, i % 3 == 0 ? "\r\n" : "\n");
  return text;
}

// Two million bytes: many buffers.
void contents_come_through_the_buffer(void **) {
  const std::string text = numbers(300000);
  for (const std::string &bytes : {text, assert_ok_value(base::gzip(text))}) {
    ByteStream stream = assert_ok_value(ByteStream::open(data::memory_file(bytes, "n"), Compression::automatic));
    assert_int_equal(stream.is_compressed(), bytes.size() < text.size());
    std::string_view line;
    for (int i = 0; i < 300000; ++i) {
      assert_true(assert_ok_value(stream.read_line(line)));
      if (line != base::concat(i)) fail_msg("line %d is %s", i, std::string(line).c_str());
    }
    assert_false(assert_ok_value(stream.read_line(line)));
    assert_int_equal(stream.offset(), text.size());
    assert_true(stream.most_left() < (int64_t{2} << 20));

    ByteStream other = assert_ok_value(ByteStream::open(data::memory_file(bytes, "n"), Compression::automatic));
    assert_ok(other.move_to(1000000));
    std::string rest(text.size() - 1000000, ' ');
    assert_true(assert_ok_value(other.peek(600000)).substr(0, 600000) == text.substr(1000000, 600000));
    assert_int_equal(assert_ok_value(other.read(rest.data(), 700000)), 700000);
    assert_int_equal(assert_ok_value(other.read(rest.data() + 700000, 5000000)), text.size() - 1700000);
    assert_true(rest == text.substr(1000000));
    assert_error_contains(other.move_to(5000000), "ends before offset 5000000");
  }
}

// What precedes the damage is given out first.
void damage_comes_after_the_good_prefix(void **) {
  const std::string text = numbers(100000);
  const std::string packed = assert_ok_value(base::gzip(text));
  std::string flipped = packed;
  flipped[packed.size() / 2] = static_cast<char>(flipped[packed.size() / 2] ^ 0x55);
  for (const std::string &bytes : {packed.substr(0, packed.size() / 2), packed.substr(0, packed.size() - 1), flipped}) {
    ByteStream stream = assert_ok_value(ByteStream::open(data::memory_file(bytes, "n.gz"), Compression::gzip));
    int64_t lines = 0;
    base::Result<bool> more = true;
    for (std::string_view line; more.ok() && *more; lines += more.ok() && *more ? 1 : 0)
      more = stream.read_line(line);
    assert_error_contains(more, "cannot read file 'n.gz' beyond offset ");
    assert_int_equal(static_cast<int>(more.code()), static_cast<int>(base::Code::data_loss));
    assert_true(stream.has_failed());
    assert_in_range(lines, 40000, 100000);
  }
  assert_error_contains(ByteStream::open(data::memory_file(text, "n"), Compression::gzip), "expected a gzip stream");
  assert_error_contains(ByteStream::open(data::memory_file(text, "n"), Compression::zlib), "expected a zlib stream");
  // A hundred megabytes of zeros in a hundred kilobytes are deflate at its best, and allowed.
  const std::string zeros = assert_ok_value(base::gzip(std::string(20000000, '\0')));
  ByteStream stream = assert_ok_value(ByteStream::open(data::memory_file(zeros, "z"), Compression::automatic));
  assert_ok(stream.move_to(20000000));
  assert_error_contains(data::parse_compression("bzip"), "expected auto, none, gzip or zlib, got 'bzip'");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_match_patterns),
    cmocka_unit_test(names_with_brackets_are_found),
    cmocka_unit_test(patterns_become_files_in_order),
    cmocka_unit_test(files_are_read_by_position),
    cmocka_unit_test(contents_come_through_the_buffer),
    cmocka_unit_test(damage_comes_after_the_good_prefix),
};
TEST_MAIN(tests)

}  // namespace file_system_test

// SPDX-License-Identifier: Apache-2.0
//
// Small compressed files that say a lot: what a record may hold is limited, to the byte, wherever the file is read.
#include <cstdio>
#include <functional>

#include "base/gzip.h"
#include "base/random/philox.h"
#include "data/format/record.h"
#include "sample_files.h"

namespace record_limit_test {

using namespace tutti::impl;
using namespace tutti::testing;

namespace {

using Strings = std::vector<std::string>;

std::string tar_member(const std::string &path, const std::string &contents) {
  std::string header(512, '\0');
  header.replace(0, path.size(), path);
  char octal[16];
  std::snprintf(octal, sizeof(octal), "%011zo", contents.size());
  header.replace(124, 11, octal);
  header.replace(148, 8, "        ");
  header[156] = '0';
  unsigned sum = 0;
  for (const char c : header)
    sum += static_cast<unsigned char>(c);
  std::snprintf(octal, sizeof(octal), "%06o", sum);
  header.replace(148, 7, octal, 7);
  return header + contents + std::string((512 - contents.size() % 512) % 512, '\0');
}

std::string record(const std::string &folder, const std::string &contents) {
  data::RecordWriter writer = assert_ok_value(data::RecordWriter::create(folder + "/record", data::Compression::none));
  assert_ok(writer.write(contents));
  assert_ok(writer.close());
  return assert_ok_value(base::read_file(folder + "/record"));
}

struct Format {
  const char *source;
  graph::Attributes attributes;
  // The bytes that make one element of a text, and how many of them count.
  std::function<std::string(const std::string &)> make;
  size_t beside;
  std::string head = "";
};

std::vector<Format> formats(const std::string &folder) {
  return {
      {"text_lines", {}, [](const std::string &text) { return text + "\n"; }, 0},
      {"csv", {}, [](const std::string &text) { return text + "\n"; }, 1, "x\n"},
      {"csv", {}, [](const std::string &text) { return "\"" + text + "\"\n"; }, 3, "x\n"},
      {"tfrecord", {}, [=](const std::string &text) { return record(folder, text); }, 0},
      {"tar",
       {{"parts", Strings{"x: bytes"}}},
       [number = 0](const std::string &text) mutable { return tar_member(base::concat(++number, ".x"), text); },
       512},
  };
}

// So that the compressed file is large enough for a thread that reads ahead.
std::string noise(size_t size) {
  base::RandomStream random(base::RandomKey::of(1, 2, 3));
  std::string text;
  for (size_t i = 0; i < size; ++i)
    text.push_back(static_cast<char>('a' + random.next() % 26));
  return text;
}

void records_of_compressed_files_have_a_limit(void **) {
  const TemporaryDirectory folder;
  constexpr size_t kMost = 3 << 20;
  const std::string first = noise(1 << 20), last = noise(100);
  for (const Format &format : formats(folder.path())) {
    for (const size_t size : {kMost - 1, kMost, kMost + 1, size_t{9} << 20}) {
      const std::string text(size - format.beside, 'z');
      const std::string bytes = format.head + format.make(first) + format.make(text) + format.make(last);
      write_bytes(folder / "plain", bytes);
      write_bytes(folder / "packed", assert_ok_value(base::gzip(bytes, 1)));
      graph::Attributes attributes = format.attributes;
      attributes["maximum_record_bytes"] = static_cast<int64_t>(kMost);
      const auto walk = [&](const char *name) {
        attributes["paths"] = Strings{folder / name};
        return texts_of(assert_ok_value(begin_with(format.source, attributes).build()));
      };
      assert_true((walk("plain") == Strings{first, text, last}));
      const Strings got = walk("packed");
      if (size <= kMost) {
        assert_true((got == Strings{first, text, last}));
        continue;
      }
      assert_int_equal(got.size(), 2);
      assert_true(got[0] == first);
      assert_contains(got[1].c_str(), "!DATA_LOSS: ");
      const size_t offset = bytes.size() - format.make(text).size() - format.make(last).size();
      assert_contains(got[1].c_str(),
                      base::concat("file '", folder / "packed", "': the record at offset ", offset,
                                   " of the decompressed data is larger than maximum_record_bytes = 3145728 bytes")
                          .c_str());
    }
  }
}

// The error of a CSV file: when its columns are asked for, and when they are known.
std::string error_of(const std::string &path, bool knows_columns) {
  graph::Attributes attributes{{"paths", Strings{path}}, {"maximum_record_bytes", int64_t{1} << 20}};
  if (knows_columns) attributes["columns"] = Strings{"x: bytes"};
  const auto dataset = begin_with("csv", attributes).build();
  return dataset.ok() ? base::join(texts_of(dataset.value()), "|") : dataset.status().to_string();
}

// A line of column names of 2 GiB, of which the file has 10 MB; one of the limit is read.
void headers_of_compressed_files_have_a_limit(void **) {
  const TemporaryDirectory folder;
  const std::string megabyte(1 << 20, 'z'), part = assert_ok_value(base::gzip(std::string(8 << 20, 'z'), 1));
  std::string packed;
  for (int i = 0; i < 256; ++i)
    packed += part;
  write_bytes(folder / "long", packed + assert_ok_value(base::gzip("\n1\n", 1)));
  write_bytes(folder / "longer", assert_ok_value(base::gzip("x," + megabyte.substr(2) + "\n1,2\n", 1)));
  write_bytes(folder / "limit", assert_ok_value(base::gzip("x," + megabyte.substr(3) + "\n1,2\n", 1)));
  for (const bool knows_columns : {false, true}) {
    for (const char *name : {"long", "longer"})
      assert_contains(error_of(folder / name, knows_columns).c_str(),
                      base::concat("file '", folder / name,
                                   "': the record at offset 0 of the decompressed data is "
                                   "larger than maximum_record_bytes = 1048576 bytes")
                          .c_str());
    assert_string_equal(error_of(folder / "limit", knows_columns).c_str(), "1");
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(records_of_compressed_files_have_a_limit),
    cmocka_unit_test(headers_of_compressed_files_have_a_limit),
};
TEST_MAIN(tests)

}  // namespace record_limit_test

// SPDX-License-Identifier: Apache-2.0
//
// The sources fixed_records, files and image_folder.
#include <unistd.h>

#include "base/gzip.h"
#include "base/log.h"
#include "sample_files.h"

namespace fixed_records_test {

using namespace tutti::impl;
using namespace tutti::testing;
using tensor::Tensor;

namespace {

using Strings = std::vector<std::string>;

// Two files of records "label: u8, image: u16[2]" between a header and a footer.
class Records {
 public:
  explicit Records(bool packed = false) {
    for (int file = 0; file < 2; ++file) {
      std::string bytes = "HEAD";
      for (int i = 0; i < 3 + file; ++i)
        bytes += std::string{static_cast<char>(10 * file + i), static_cast<char>(i), 1, static_cast<char>(i), 2};
      bytes += "END";
      write_bytes(folder_ / base::concat(file), packed ? assert_ok_value(base::gzip(bytes)) : bytes);
    }
  }
  graph::Attributes with(graph::Attributes more) const {
    more.insert_or_assign("paths", Strings{folder_ / "*"});
    more.insert_or_assign("header_bytes", int64_t{4});
    more.insert_or_assign("footer_bytes", int64_t{3});
    return more;
  }
  std::string operator/(const std::string &name) const { return folder_ / name; }

 private:
  TemporaryDirectory folder_;
};

const Strings kFields{"label: u8", "image: u16[2]"};

void records_become_numbers(void **) {
  for (const bool packed : {false, true}) {
    const Records records(packed);
    for (const bool big_endian : {false, true}) {
      const auto dataset =
          assert_ok_value(begin_with("fixed_records", records.with({{"fields", kFields},
                                                                    {"labels", Strings{"label"}},
                                                                    {"big_endian", big_endian},
                                                                    {"compression", std::string("auto")}}))
                              .build());
      assert_string_equal(dataset->spec().to_string().c_str(), "(label: u8[] label, image: u16[2])");
      assert_int_equal(dataset->cardinality().value(), packed ? data::Cardinality::kUnknown : 7);
      auto iterator = assert_ok_value(dataset->make_iterator({}));
      data::Element element;
      for (int i = 0; i < 7; ++i) {
        const int file = i < 3 ? 0 : 1, row = i - 3 * file;
        assert_true(assert_ok_value(iterator->next(element)));
        assert_int_equal(element.components[0].data_as<uint8_t>()[0], 10 * file + row);
        assert_int_equal(element.components[1].data_as<uint16_t>()[0], big_endian ? row * 256 + 1 : row + 256);
        assert_int_equal(element.components[1].data_as<uint16_t>()[1], big_endian ? row * 256 + 2 : row + 512);
      }
      assert_false(assert_ok_value(iterator->next(element)));
    }
    const auto batched = assert_ok_value(
        begin_with("fixed_records", records.with({{"fields", kFields}, {"compression", std::string("auto")}}))
            .batch(7)
            .build());
    auto iterator = assert_ok_value(batched->make_iterator({}));
    data::Element batch;
    assert_true(assert_ok_value(iterator->next(batch)));
    assert_true(
        tensor::identical(batch.components[0], Tensor::from_values<uint8_t>({7}, {0, 1, 2, 10, 11, 12, 13}).value()));
  }
}

void records_become_texts(void **) {
  const Records records;
  const auto dataset =
      assert_ok_value(begin_with("fixed_records", records.with({{"record_bytes", int64_t{5}}})).build());
  const Strings texts = texts_of(dataset);
  assert_int_equal(texts.size(), 7);
  assert_true(texts[1] == std::string("\1\1\1\1\2", 5));
  assert_int_equal(
      texts_of(
          assert_ok_value(begin_with("fixed_records", records.with({{"record_bytes", int64_t{5}}})).shuffle(9).build()))
          .size(),
      7);
}

void what_does_not_fit_is_told(void **) {
  const Records records, packed(true);
  const auto error = [](const Records &from, graph::Attributes more) {
    return begin_with("fixed_records", from.with(std::move(more))).build();
  };
  assert_error_contains(error(records, {}), "expected fields or record_bytes");
  assert_error_contains(error(records, {{"record_bytes", int64_t{4}}}), "its 22 bytes without 4 bytes of header");
  assert_error_contains(error(records, {{"record_bytes", int64_t{4}}, {"fields", kFields}}),
                        "record_bytes is 4, but the fields have 5 bytes");
  assert_error_contains(error(records, {{"fields", Strings{"a: bytes"}}}), "expected numbers of a fixed shape");
  assert_error_contains(error(records, {{"fields", Strings{"a: u8[?]"}}}), "expected numbers of a fixed shape");
  assert_error_contains(error(records, {{"fields", Strings{"a: u8[3000000000]"}}}), "more than 2 GB");
  const Strings got =
      texts_of(assert_ok_value(error(packed, {{"record_bytes", int64_t{4}}, {"compression", std::string("gzip")}})));
  assert_contains(got[3].c_str(), "at offset 16: expected 4 bytes of a record, the file ends after 6");
}

void files_are_listed(void **) {
  const Records records;
  const auto dataset = assert_ok_value(begin_with("files", {{"paths", Strings{records / "1", records / "*"}}}).build());
  assert_string_equal(dataset->spec().to_string().c_str(), "(path: bytes[])");
  assert_true((texts_of(dataset) == Strings{records / "1", records / "0", records / "1"}));
  assert_error_contains(begin_with("files", {{"paths", Strings{records / "x*"}}}).build(),
                        "no file matches the pattern");
}

void folders_are_classes(void **) {
  const TemporaryDirectory folder;
  for (const char *name : {"dog", "cat", "empty", ".hidden"})
    assert_ok(base::make_directories(folder / name));
  for (const char *name :
       {"dog/b.JPG", "dog/a.png", "cat/10.jpeg", "cat/notes.txt", "cat/.x.jpg", "top.jpg", ".hidden/x.jpg"})
    write_bytes(folder / name, base::concat("<", name, ">"));
  const auto contents = assert_ok_value(
      begin_with("image_folder", {{"path", folder.path()}, {"class_name", std::string("kind")}}).build());
  assert_string_equal(contents->spec().to_string().c_str(), "(image: bytes[], label: i32[] label, kind: bytes[])");
  assert_int_equal(contents->cardinality().value(), 3);
  assert_true((texts_of(contents) == Strings{"<cat/10.jpeg>", "<dog/a.png>", "<dog/b.JPG>"}));
  assert_true((texts_of(contents, 2) == Strings{"cat", "dog", "dog"}));
  auto iterator = assert_ok_value(contents->make_iterator({}));
  data::Element element;
  for (const int32_t label : {0, 1, 1}) {
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(assert_ok_value(element.components[1].scalar_value<int32_t>()), label);
  }
  const auto paths = assert_ok_value(
      begin_with("image_folder", {{"path", folder.path()}, {"contents", false}, {"extensions", Strings{"txt"}}})
          .build());
  assert_true((texts_of(paths) == Strings{folder / "cat/notes.txt"}));
  assert_ok(base::remove_file(folder / "dog/a.png"));
  const Strings left = texts_of(contents);
  assert_contains(left[1].c_str(), "!NOT_FOUND");
  assert_string_equal(left[2].c_str(), "<dog/b.JPG>");
  assert_error_contains(begin_with("image_folder", {{"path", folder / "empty"}}).build(),
                        "expected files with the extensions jpg, jpeg, png in the directories of");
  assert_error_contains(begin_with("image_folder", {{"path", folder / "empty"}}).build(),
                        "there are 0 directories with no files");
  // What no op decodes is taken where it is asked for only.
  for (const char *name : {"old", "old/one", "old/two"})
    assert_ok(base::make_directories(folder / name));
  for (const char *name : {"old/one/a.BMP", "old/one/b.bmp", "old/two/c.webp", "old/two/README"})
    write_bytes(folder / name, name);
  assert_error_contains(begin_with("image_folder", {{"path", folder / "old"}}).build(),
                        "there are 2 directories with the files 1 without an extension, 2 bmp, 1 webp");
  const auto old = begin_with("image_folder", {{"path", folder / "old"}, {"extensions", Strings{"bmp", "webp"}}});
  assert_int_equal(assert_ok_value(old.build())->cardinality().value(), 3);
  assert_error_contains(begin_with("image_folder", {{"path", folder / "none"}}).build(), "none");
}

// Hidden folders number no class, and what is left out is told once.
void deeper_files_belong_to_their_class(void **) {
  const TemporaryDirectory folder;
  for (const char *name :
       {".ipynb_checkpoints", "__MACOSX", "__MACOSX/cat", "cat", "cat/more", "cat/more/again", "cat/.git", "dog"})
    assert_ok(base::make_directories(folder / name));
  for (const char *name :
       {".ipynb_checkpoints/a.jpg", "__MACOSX/cat/a.jpg", "cat/more/b.jpg", "cat/more/again/c.png", "cat/z.jpg",
        "cat/.git/d.jpg", "dog/c.JPG", "dog/._c.JPG", "dog/Thumbs.db", "dog/desktop.ini"})
    write_bytes(folder / name, name);
  assert_int_equal(::symlink("..", (folder / "cat/more/loop").c_str()), 0);
  Strings lines;
  const auto logger = base::make_ref<base::Logger>();
  logger->set_sink([&](base::Severity severity, std::string_view line) {
    assert_true(severity == base::Severity::warning);
    lines.emplace_back(line);
  });
  const auto build = [&] {
    return assert_ok_value(
        begin_with("image_folder", {{"path", folder.path()}}, {.file_systems = nullptr, .logger = logger}).build());
  };
  const auto dataset = build();
  assert_true((texts_of(dataset) == Strings{"cat/z.jpg", "cat/more/b.jpg", "cat/more/again/c.png", "dog/c.JPG"}));
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  data::Element element;
  for (const int32_t label : {0, 0, 0, 1}) {
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(assert_ok_value(element.components[1].scalar_value<int32_t>()), label);
  }
  assert_int_equal(lines.size(), 1);
  assert_contains(lines[0].c_str(), "leaves out: 1 links to a directory above");
  assert_ok(base::remove_file(folder / "cat/more/loop"));
  (void)build();
  assert_int_equal(lines.size(), 1);  // nothing is left out that could be meant
  for (const char *name : {"dog/d.webp", "cat/more/e.webp", "cat/README", "top.jpg"})
    write_bytes(folder / name, name);
  (void)build();
  assert_int_equal(lines.size(), 2);
  assert_contains(lines[1].c_str(),
                  base::concat("image_folder '", folder.path(), "' takes files with the extensions").c_str());
  for (const std::string &told : {base::concat("1 without an extension ('", folder / "cat/README", "')"),
                                  base::concat("2 webp ('", folder / "cat/more/e.webp", "')"),
                                  base::concat("1 outside of the class directories ('", folder / "top.jpg", "')")})
    assert_contains(lines[1].c_str(), told.c_str());
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(records_become_numbers),    cmocka_unit_test(records_become_texts),
    cmocka_unit_test(what_does_not_fit_is_told), cmocka_unit_test(files_are_listed),
    cmocka_unit_test(folders_are_classes),       cmocka_unit_test(deeper_files_belong_to_their_class),
};
TEST_MAIN(tests)

}  // namespace fixed_records_test

// SPDX-License-Identifier: Apache-2.0
//
// Archives that Python's tarfile wrote (golden/make_golden.py), and damage.
#include <cstdio>

#include "base/gzip.h"
#include "sample_files.h"

namespace tar_test {

using namespace tutti::impl;
using namespace tutti::testing;

namespace {

using Strings = std::vector<std::string>;

const std::string kGolden = GOLDEN_FOLDER "/";

base::Result<data::DatasetRef> open(const Strings &paths, const Strings &parts) {
  return begin_with("tar", {{"paths", paths}, {"parts", parts}}).build();
}

void archives_of_python_are_read(void **) {
  for (const char *name : {"gnu.tar", "pax.tar", "ustar.tar", "gnu.tar.gz"}) {
    const auto dataset =
        assert_ok_value(open({kGolden + name}, {"__key__: bytes", "jpg: bytes", "cls: i32", "seg.png: bytes = none"}));
    const bool is_ustar = std::string_view(name) == "ustar.tar";
    const Strings keys = texts_of(dataset), images = texts_of(dataset, 1), segments = texts_of(dataset, 3);
    assert_int_equal(keys.size(), is_ustar ? 2 : 3);
    assert_string_equal(keys[0].c_str(), "train.d/0001");
    assert_string_equal(keys[1].c_str(), "train.d/0002");
    assert_true(images[0] == std::string(700, 'i') && images[1].empty());
    assert_true((segments[0] == "none") && segments[1] == std::string(512, 's'));
    if (!is_ustar) {
      assert_true(keys[2] == std::string(150, 'k').append("/").append(120, 'n').append("\xc3\xa4"));
      assert_string_equal(images[2].c_str(), "long");
    }
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    data::Element element;
    for (const int32_t label : {7, -3}) {
      assert_true(assert_ok_value(iterator->next(element)));
      assert_int_equal(assert_ok_value(element.components[2].scalar_value<int32_t>()), label);
    }
  }
}

void mistakes_are_told(void **) {
  const auto first = [](const Strings &parts) {
    return texts_of(assert_ok_value(open({kGolden + "ustar.tar"}, parts)));
  };
  const Strings missing = first({"seg.png: bytes"});
  assert_contains(missing[0].c_str(), "sample 'train.d/0001' has no part 'seg.png' and no default");
  assert_true(missing[1] == std::string(512, 's'));
  assert_contains(first({"__key__: bytes", "jpg: i64"})[0].c_str(), "part 'jpg': expected i64, got 'iii");
  assert_error_contains(open({kGolden + "ustar.tar"}, {"jpg: u8[2]"}), "expected a text or one number");
  assert_error_contains(open({kGolden + "ustar.tar"}, {"__key__: i64"}), "a key is of dtype bytes");
}

// Whatever is cut or changed, what comes is good, and damage is told once for each file.
void damage_is_told(void **) {
  const TemporaryDirectory folder;
  const std::string good = assert_ok_value(base::read_file(kGolden + "gnu.tar"));
  const Strings whole = texts_of(assert_ok_value(open({kGolden + "gnu.tar"}, {"jpg: bytes"})));
  for (size_t size = 0; size < good.size(); size += 37) {
    write_bytes(folder / "f", good.substr(0, size));
    Strings got = texts_of(assert_ok_value(open({folder / "f"}, {"jpg: bytes = none"})));
    if (!got.empty() && got.back().starts_with("!")) {
      assert_contains(got.back().c_str(), "!DATA_LOSS: corrupt tar file");
      got.pop_back();
    }
    assert_true(got.size() <= whole.size());
    for (size_t i = 0; i < got.size(); ++i)
      assert_true(got[i] == whole[i] || got[i] == "none");
  }
  for (size_t byte = 0; byte < 512; ++byte) {  // every byte of the first header but the one behind its checksum
    if (byte == 155) continue;
    std::string bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ 0x21);
    write_bytes(folder / "f", bad);
    const Strings got = texts_of(assert_ok_value(open({folder / "f"}, {"jpg: bytes"})));
    assert_int_equal(got.size(), 1);
    assert_contains(got[0].c_str(), "at offset 0: ");
  }
  write_bytes(folder / "f", "");
  assert_true(texts_of(assert_ok_value(open({folder / "f"}, {"jpg: bytes"}))).empty());
}

struct TarMember {
  std::string path, contents;
};

// A ustar header (POSIX.1-1988) and the contents, padded.
std::string packed(const TarMember &member) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string &text) { header.replace(at, text.size(), text); };
  char octal[16];
  put(0, member.path);
  put(100, "0000644");
  std::snprintf(octal, sizeof(octal), "%011o", static_cast<unsigned>(member.contents.size()));
  put(124, octal);
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : header)
    sum += static_cast<unsigned char>(c);
  std::snprintf(octal, sizeof(octal), "%06o", sum);
  put(148, std::string(octal, 7));
  return header + member.contents + std::string((512 - member.contents.size() % 512) % 512, '\0');
}

void write_archive(const std::string &path, const std::vector<TarMember> &members) {
  std::string bytes;
  for (const TarMember &member : members)
    bytes += packed(member);
  write_bytes(path, bytes + std::string(1024, '\0'));
}

const Strings kPictures = {"jpg: bytes = none", "__key__: bytes"};

// As macOS packs folders, with notes between.
void hidden_files_belong_to_no_sample(void **) {
  const TemporaryDirectory folder;
  const std::string double_file("\0\5\x16\7", 4), large(size_t{3} << 20, '.');
  write_archive(folder / "f.tar", {{"./._1.jpg", double_file},
                                   {"./1.jpg", "one"},
                                   {"./._1.cls", double_file},
                                   {"./1.cls", "7"},
                                   {"README", large},
                                   {"._2.jpg", double_file},
                                   {"2.jpg", "two"},
                                   {".2.cls", large},
                                   {"2.cls", "8"},
                                   {"2.", "?"},
                                   {"__meta__", "?"}});
  write_bytes(folder / "f.tar.gz", assert_ok_value(base::gzip(assert_ok_value(base::read_file(folder / "f.tar")))));
  for (const char *name : {"f.tar", "f.tar.gz"}) {
    const auto dataset = assert_ok_value(open({folder / name}, {"jpg: bytes", "cls: bytes", "__key__: bytes"}));
    assert_true((texts_of(dataset) == Strings{"one", "two"}));
    assert_true((texts_of(dataset, 1) == Strings{"7", "8"}));
    assert_true((texts_of(dataset, 2) == Strings{"./1", "2"}));
  }
}

void kinds_are_compared_in_small_letters(void **) {
  const TemporaryDirectory folder;
  write_archive(folder / "f.tar", {{"a.v1/1.JPG", "A"}, {"a.v1/1.Seg.PNG", "s"}, {"a.v1/2.jpg", "B"}});
  const auto dataset =
      assert_ok_value(open({folder / "f.tar"}, {"jpg: bytes", "__key__: bytes", "SEG.png: bytes = -"}));
  assert_true((texts_of(dataset) == Strings{"A", "B"}));
  assert_true((texts_of(dataset, 1) == Strings{"a.v1/1", "a.v1/2"}));
  assert_true((texts_of(dataset, 2) == Strings{"s", "-"}));
}

void a_part_that_comes_twice_is_told(void **) {
  const TemporaryDirectory folder;
  write_archive(folder / "f.tar",
                {{"1.jpg", "A"}, {"1.cls", "1"}, {"1.JPG", "B"}, {"2.jpg", "C"}, {"3.txt", "t"}, {"3.txt", "t"}});
  const Strings got = texts_of(assert_ok_value(open({folder / "f.tar"}, kPictures)));
  assert_int_equal(got.size(), 3);
  assert_contains(got[0].c_str(), "INVALID_ARGUMENT");
  assert_contains(got[0].c_str(), (folder / "f.tar").c_str());
  assert_contains(got[0].c_str(), "sample '1' has the part 'jpg' more than once");
  assert_string_equal(got[1].c_str(), "C");
  assert_contains(got[2].c_str(), "sample '3' has the part 'txt' more than once");
}

// Whether the walk is one or begins anew behind each element: the same is told.
void a_sample_in_two_places_is_told(void **) {
  const TemporaryDirectory folder;
  const std::string large(size_t{1} << 20, 'x');
  write_archive(folder / "f.tar", {{"1.jpg", large},
                                   {"2.jpg", "B"},
                                   {".hidden", "?"},
                                   {"1.cls", "1"},
                                   {"3.jpg", "C"},
                                   {"2.cls", "2"},
                                   {"4.jpg", "D"}});
  write_bytes(folder / "f.tar.gz", assert_ok_value(base::gzip(assert_ok_value(base::read_file(folder / "f.tar")))));
  write_archive(folder / "g.tar", {{"1.jpg", "E"}});  // keys of another archive are others
  for (const char *name : {"f.tar", "f.tar.gz"}) {
    const auto dataset = assert_ok_value(open({folder / name, folder / "g.tar"}, kPictures));
    const Strings whole = texts_of(dataset);
    assert_int_equal(whole.size(), 7);
    assert_true(whole[0] == large && whole[1] == "B" && whole[3] == "C" && whole[5] == "D" && whole[6] == "E");
    assert_contains(whole[2].c_str(), (folder / name).c_str());
    assert_contains(whole[2].c_str(), "sample '1' occurs in several places");
    assert_contains(whole[4].c_str(), "sample '2' occurs in several places");
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    data::Element element;
    for (const std::string &expected : whole) {
      const base::Json saved = iterator->save();
      iterator = assert_ok_value(dataset->make_iterator({}));
      assert_ok(iterator->restore(saved));
      const base::Result<bool> more = iterator->next(element);
      if (more.ok()) {
        assert_true(*more);
        assert_true(assert_ok_value(tensor::bytes_values(element.components[0]))[0] == expected);
      } else {
        assert_string_equal(("!" + more.status().to_string()).c_str(), expected.c_str());
      }
    }
    assert_false(assert_ok_value(iterator->next(element)));
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(archives_of_python_are_read),
    cmocka_unit_test(mistakes_are_told),
    cmocka_unit_test(damage_is_told),
    cmocka_unit_test(hidden_files_belong_to_no_sample),
    cmocka_unit_test(kinds_are_compared_in_small_letters),
    cmocka_unit_test(a_part_that_comes_twice_is_told),
    cmocka_unit_test(a_sample_in_two_places_is_told),
};
TEST_MAIN(tests)

}  // namespace tar_test

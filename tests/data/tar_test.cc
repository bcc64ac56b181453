// SPDX-License-Identifier: Apache-2.0
//
// Archives that Python's tarfile wrote (golden/make_golden.py), and damage.
#include "sample_files.h"

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
  assert_contains(missing[0].c_str(), "sample 'train.d/0001' has no part 'seg.png', and no default");
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

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(archives_of_python_are_read),
    cmocka_unit_test(mistakes_are_told),
    cmocka_unit_test(damage_is_told),
};
TEST_MAIN(tests)

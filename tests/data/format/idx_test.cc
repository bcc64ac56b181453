// SPDX-License-Identifier: Apache-2.0
#include "data/format/idx.h"

#include <fstream>
#include <random>

#include "base/gzip.h"
#include "base/random/philox.h"
#include "data/pipeline/sources.h"
#include "sample_data.h"
#include "testing.h"

namespace idx_test {

using namespace tutti::impl;
using namespace tutti::testing;
using tensor::DType;
using tensor::Tensor;

namespace {

std::string idx(uint8_t type, std::initializer_list<uint32_t> extents, const std::string &elements) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(extents.size())};
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(extent >> shift));
  }
  return bytes + elements;
}

void elements_become_native(void **) {
  const Tensor u8 = assert_ok_value(data::decode_idx(idx(8, {2, 3}, std::string("\1\2\3\4\5\xff", 6)), "a"));
  assert_string_equal(u8.to_string().c_str(),
                      assert_ok_value(Tensor::from_values<uint8_t>({2, 3}, {1, 2, 3, 4, 5, 255})).to_string().c_str());
  const Tensor i16 = assert_ok_value(data::decode_idx(idx(11, {2}, std::string("\1\2\xff\xfe", 4)), "a"));
  assert_true(tensor::identical(i16, Tensor::from_values<int16_t>({2}, {258, -2}).value()));
  const Tensor f32 = assert_ok_value(data::decode_idx(idx(13, {1}, std::string("\x3f\x80\0\0", 4)), "a"));
  assert_true(tensor::identical(f32, Tensor::from_values<float>({1}, {1.0f}).value()));
  const Tensor f64 = assert_ok_value(data::decode_idx(idx(14, {1}, std::string("\xc0\0\0\0\0\0\0\0", 8)), "a"));
  assert_true(tensor::identical(f64, Tensor::from_values<double>({1}, {-2.0}).value()));
  const Tensor none = assert_ok_value(data::decode_idx(idx(8, {0, 28}, ""), "a"));
  assert_int_equal(none.rows(), 0);
  const std::string packed = assert_ok_value(base::gzip(idx(12, {1}, std::string("\0\0\1\0", 4))));
  assert_true(tensor::identical(assert_ok_value(data::decode_idx(packed, "a")),
                                Tensor::from_values<int32_t>({1}, {256}).value()));
}

void corrupt_files_say_where_and_what(void **) {
  struct {
    std::string bytes;
    const char *text;
  } const cases[] = {
      {"", "corrupt IDX file 'a.idx' at offset 0: expected 4 bytes of magic number, the file ends after 0"},
      {std::string("\0\0", 2), "at offset 2: expected 4 bytes of magic number"},
      {std::string("\0\1\x08\1\0\0\0\1x", 9), "at offset 4: expected the magic bytes 0, 0 and a type"},
      {idx(10, {1}, "x"), "got 0, 0, 10"},
      {idx(8, {}, ""), "expected 1 to 8 axes, got 0"},
      {idx(8, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "x"), "expected 1 to 8 axes, got 9"},
      {idx(8, {3}, "x").substr(0, 6), "the extent of axis 0, the file ends after 2"},
      {idx(8, {3}, "xy"), "at offset 8: expected 3 bytes for u8[3], the file can hold at most 2"},
      {idx(8, {3}, "xyzz"), "at offset 12: expected the end of the file, more bytes follow"},
      {idx(14, {0xffffffffu, 0xffffffffu, 0xffffffffu}, "x"), "at offset 16: "},
      {idx(14, {0xffffffffu, 0x00ffffffu}, "x"), "the file can hold at most 1"},
  };
  for (const auto &one : cases) {
    const auto result = data::decode_idx(one.bytes, "a.idx");
    assert_error_contains(result, one.text);
    assert_int_equal(static_cast<int>(result.code()), static_cast<int>(base::Code::data_loss));
  }
}

void damaged_gzip_is_corrupt_too(void **) {
  const std::string packed = assert_ok_value(base::gzip(idx(8, {100000}, std::string(100000, 'x'))));
  assert_error_contains(data::decode_idx(packed.substr(0, packed.size() / 2), "a.gz"), "corrupt IDX file 'a.gz'");
  assert_error_contains(data::decode_idx(packed.substr(0, packed.size() - 3), "a.gz"), "corrupt IDX file 'a.gz'");
  std::string flipped = packed;
  flipped[packed.size() - 6] = static_cast<char>(flipped[packed.size() - 6] ^ 1);
  assert_error_contains(data::decode_idx(flipped, "a.gz"), "corrupt IDX file 'a.gz'");
  // What is compressed is limited, whatever the length of the file allows.
  std::string noise(size_t{5} << 20, '\0');
  std::mt19937 random(1);
  for (char &byte : noise)
    byte = static_cast<char>(random() >> 24);
  const std::string large = assert_ok_value(base::gzip(idx(8, {4097, 1 << 20}, noise)));
  assert_error_contains(data::decode_idx(large, "a.gz"), "expected at most 4294967296 bytes in a compressed file");
  // A header that promises more than any deflate stream of this length can hold costs no memory.
  const std::string liar = assert_ok_value(base::gzip(idx(8, {0x7fffffffu, 1000}, "x")));
  assert_error_contains(data::decode_idx(liar, "a.gz"), "the file can hold at most");
}

// Mutations of valid files must be refused or read, within their own size.
void mutated_files_do_no_harm(void **) {
  const std::string plain = idx(11, {7, 5}, std::string(70, '\3'));
  const std::string packed = assert_ok_value(base::gzip(plain));
  int accepted = 0;
  base::RandomStream random(base::RandomKey::of(1, 2, 3));
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = round % 2 == 0 ? plain : packed;
    for (int64_t change = random.below(4); change >= 0; --change) {
      const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(bytes.size())));
      switch (random.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes.erase(at, 1 + static_cast<size_t>(random.below(8)));
          break;
        case 2:
          bytes.insert(at, static_cast<size_t>(1 + random.below(8)), static_cast<char>(random.below(256)));
          break;
        default:
          bytes.resize(at);
      }
      if (bytes.empty()) break;
    }
    const auto result = data::decode_idx(bytes, "mutated");
    accepted += result.ok() ? 1 : 0;
    if (result.ok()) assert_in_range(result->size_bytes(), 0, 1200 * 1100);
  }
  assert_in_range(accepted, 1, 20000);
}

void files_become_slices(void **) {
  char folder[] = "idx_test_XXXXXX";
  assert_non_null(mkdtemp(folder));
  const std::string images = std::string(folder) + "/images.gz", labels = std::string(folder) + "/labels";
  std::ofstream(images, std::ios::binary) << assert_ok_value(base::gzip(idx(8, {3, 2}, "abcdef")));
  std::ofstream(labels, std::ios::binary) << idx(8, {3}, "xyz");
  const data::DatasetRef dataset =
      assert_ok_value(data::from_idx_files({{"image", images}, {"label", labels, data::Role::label}}));
  assert_string_equal(dataset->spec().to_string().c_str(), "(image: u8[2], label: u8[] label)");
  assert_true((values_of<uint8_t>(dataset, "label") == std::vector<uint8_t>{'x', 'y', 'z'}));
  std::ofstream(labels, std::ios::binary) << idx(8, {2}, "xy");
  assert_error_contains(data::from_idx_files({{"image", images}, {"label", labels}}),
                        "component 'image' has 3 rows but component 'label' has 2");
  assert_error_contains(data::from_idx_files({{"image", std::string(folder) + "/none"}}), "none");
  remove(images.c_str());
  remove(labels.c_str());
  rmdir(folder);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(elements_become_native),      cmocka_unit_test(corrupt_files_say_where_and_what),
    cmocka_unit_test(damaged_gzip_is_corrupt_too), cmocka_unit_test(mutated_files_do_no_harm),
    cmocka_unit_test(files_become_slices),
};
TEST_MAIN(tests)

}  // namespace idx_test

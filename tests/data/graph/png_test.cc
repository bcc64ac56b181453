// SPDX-License-Identifier: Apache-2.0
//
// PNG files with much beside the pixels, and damaged ones. What pixels are is in image_golden_test.cc.
#include <cstdint>
#include <string>

#include "base/gzip.h"
#include "base/random/philox.h"
#include "routine_runs.h"
#include "sample_data.h"

namespace png_test {

using namespace tutti::impl;
using namespace tutti::testing;
using tensor::Tensor;

namespace {

const std::string kSignature = "\x89PNG\r\n\x1a\n";

std::string big_endian(uint64_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

// Of the PNG specification, annex D.
uint32_t checksum(const std::string &bytes) {
  static const std::vector<uint32_t> table = [] {
    std::vector<uint32_t> of_byte;
    for (uint32_t n = 0; n < 256; ++n) {
      uint32_t c = n;
      for (int k = 0; k < 8; ++k)
        c = (c & 1) != 0 ? 0xedb88320U ^ (c >> 1) : c >> 1;
      of_byte.push_back(c);
    }
    return of_byte;
  }();
  uint32_t crc = 0xffffffffU;
  for (const char byte : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string chunk(const std::string &kind, const std::string &data) {
  return big_endian(data.size()) + kind + data + big_endian(checksum(kind + data));
}

std::string packed(const std::string &bytes) {
  auto deflater = assert_ok_value(base::Deflater::create(base::Deflater::Format::zlib));
  std::string out;
  assert_ok(deflater.append(bytes, out));
  assert_ok(deflater.finish(out));
  return out;
}

// 5 x 4 pixels, RGB, in two pieces.
class Picture {
 public:
  Picture() {
    std::string rows;
    for (int y = 0; y < 4; ++y) {
      rows.push_back('\0');  // no filter
      for (int i = 0; i < 15; ++i)
        rows.push_back(static_cast<char>(20 * y + 3 * i));
    }
    const std::string data = packed(rows);
    first_ = chunk("IDAT", data.substr(0, 20));
    second_ = chunk("IDAT", data.substr(20));
  }
  std::string file(const std::string &before = "", const std::string &behind = "") const {
    const std::string head = big_endian(5) + big_endian(4) + std::string("\x08\x02\0\0\0", 5);
    return kSignature + chunk("IHDR", head) + before + first_ + second_ + behind + chunk("IEND", "");
  }

 private:
  std::string first_, second_;
};

base::Result<Tensor> decode(const std::string &file) { return run_routine_op("decode_png", {}, {text_tensor({file})}); }

void check_pixels(const std::string &file) {
  const Tensor image = assert_ok_value(decode(file));
  assert_true(image.shape() == (tensor::Shape{1, 4, 5, 3}));
  for (int i = 0; i < 60; ++i)
    assert_int_equal(image.data_as<uint8_t>()[i], 20 * (i / 15) + 3 * (i % 15));
}

void what_nobody_reads_does_not_matter(void **) {
  const Picture picture;
  const std::string large(size_t{5} << 20, 'x'), inflated(size_t{32} << 20, 'y'), zero(1, '\0');
  check_pixels(picture.file());
  for (const std::string &beside :
       {chunk("tEXt", "Comment" + zero + large), chunk("zTXt", "Comment" + zero + zero + packed(inflated)),
        chunk("iTXt", "XML:com.adobe.xmp" + std::string(5, '\0') + large),
        chunk("iCCP", "profile" + zero + zero + packed(inflated)), chunk("eXIf", "MM" + zero + "*" + large),
        chunk("sPLT", large), chunk("prVt", large), chunk("tEXt", ""), chunk("gAMA", "too long for what it is")}) {
    check_pixels(picture.file(beside));
    check_pixels(picture.file("", beside));
    check_pixels(picture.file(beside + beside, beside));
  }
  std::string many;
  for (int i = 0; i < 20000; ++i)
    many += chunk("tEXt", "Comment" + zero + "text");
  check_pixels(picture.file(many));
}

// Pixels or DATA_LOSS, whatever is cut or changed; never other pixels. Only the end may be missing.
void damage_is_data_loss(void **) {
  const Picture picture;
  const std::string file = picture.file(chunk("tEXt", "abcdefg"));
  const size_t last_data = file.rfind("IEND") - 4;
  check_pixels(file.substr(0, last_data));
  for (size_t size = kSignature.size(); size < last_data; ++size) {
    const auto cut = decode(file.substr(0, size));
    if (cut.code() != base::Code::data_loss)
      fail_msg("cut to %zu of %zu bytes: %s", size, file.size(), cut.status().to_string().c_str());
  }
  for (size_t at = kSignature.size(); at < last_data; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      if (const auto image = decode(changed); image.ok()) check_pixels(changed);
    }
  }
  // A length that goes beyond the file.
  std::string beyond = file;
  beyond.replace(file.find("tEXt") - 4, 4, big_endian(0x7fffffff));
  assert_true(decode(beyond).code() == base::Code::data_loss);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_nobody_reads_does_not_matter),
    cmocka_unit_test(damage_is_data_loss),
};
TEST_MAIN(tests)

}  // namespace png_test

// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <zlib.h>

#include "base/random/philox.h"
#include "testing.h"

namespace gzip_test {

using namespace tutti::impl::base;

namespace {

std::string noise(size_t size) {
  RandomStream stream(RandomKey::of(1, 2, 3));
  std::string text(size, '\0');
  for (char &c : text)
    c = static_cast<char>(stream.next() % 17);
  return text;
}

void round_trips(void **) {
  for (const size_t size : {0, 1, 1000, 3000000}) {
    const std::string text = noise(size);
    const std::string packed = assert_ok_value(gzip(text, size == 1 ? 9 : 1));
    assert_true(looks_like_gzip(packed));
    assert_true(assert_ok_value(gunzip(packed)) == text);
  }
  assert_true(gzip("x", 0).code() == Code::invalid_argument);
  assert_false(looks_like_gzip("\x1f"));
}

void members_follow_each_other(void **) {
  const std::string packed =
      assert_ok_value(gzip("first ")) + assert_ok_value(gzip("")) + assert_ok_value(gzip("second"));
  assert_true(assert_ok_value(gunzip(packed)) == "first second");
  assert_true(assert_ok_value(gunzip(packed + std::string(100, '\0'))) == "first second");
  assert_error_contains(gunzip(packed + "rest"), "unexpected data after the end");
}

void zlib_streams_too(void **) {
  const std::string text = noise(5000);
  uLongf size = compressBound(text.size());
  std::string packed(size, '\0');
  assert_int_equal(compress(reinterpret_cast<Bytef *>(packed.data()), &size,
                            reinterpret_cast<const Bytef *>(text.data()), text.size()),
                   Z_OK);
  packed.resize(size);
  assert_true(assert_ok_value(gunzip(packed)) == text);
}

void damage_is_found(void **) {
  const std::string packed = assert_ok_value(gzip(noise(20000)));
  for (const size_t size : {size_t{0}, size_t{5}, packed.size() / 2, packed.size() - 1}) {
    assert_true(gunzip(packed.substr(0, size)).code() == Code::data_loss);
  }
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // inside the checksum
  assert_true(gunzip(damaged).code() == Code::data_loss);
  damaged = packed;
  damaged[packed.size() / 2] ^= 0x55;
  assert_true(gunzip(damaged).code() == Code::data_loss);
  assert_true(gunzip("not compressed at all").code() == Code::data_loss);
}

void limits_hold(void **) {
  const std::string bomb = assert_ok_value(gzip(std::string(size_t{8} << 20, '\0'), 9));
  assert_true(gunzip(bomb, {.max_output_bytes = 1 << 20}).code() == Code::resource_exhausted);
  assert_error_contains(gunzip(bomb, {.max_ratio = 100}), "inflates more than 100 times");
  assert_int_equal(assert_ok_value(gunzip(bomb)).size(), size_t{8} << 20);
}

void any_piece_sizes_give_the_same(void **) {
  const std::string text = noise(3000);
  const std::string packed = assert_ok_value(gzip(text)) + assert_ok_value(gzip(text));
  for (const size_t input_size : {1, 7, 100000}) {
    for (const size_t output_size : {1, 13, 100000}) {
      Inflater inflater = assert_ok_value(Inflater::create());
      assert_false(inflater.at_end());
      std::string out;
      std::string piece(output_size, '\0');
      for (size_t at = 0;;) {
        const Inflater::Progress progress =
            assert_ok_value(inflater.inflate(std::string_view(packed).substr(at, input_size), piece));
        at += progress.consumed;
        out.append(piece, 0, progress.produced);
        if (at == packed.size() && progress.produced == 0) break;
      }
      assert_ok(inflater.finish());
      assert_true(out == text + text);
    }
  }
}

const CMUnitTest tests[] = {
    cmocka_unit_test(round_trips),      cmocka_unit_test(members_follow_each_other),
    cmocka_unit_test(zlib_streams_too), cmocka_unit_test(damage_is_found),
    cmocka_unit_test(limits_hold),      cmocka_unit_test(any_piece_sizes_give_the_same),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace gzip_test

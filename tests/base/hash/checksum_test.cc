// SPDX-License-Identifier: Apache-2.0
#include "base/hash/checksum.h"

#include <string>
#include <vector>

#include "base/random/philox.h"
#include "testing.h"

namespace checksum_test {

using namespace tutti::impl::base;

namespace {

// RFC 3720, appendix B.4.
void known_answers(void **) {
  assert_int_equal(crc32c("123456789"), 0xe3069283u);
  assert_int_equal(crc32c(std::string(32, '\0')), 0x8a9136aau);
  assert_int_equal(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising(32, '\0');
  for (size_t i = 0; i < 32; ++i)
    rising[i] = static_cast<char>(i);
  assert_int_equal(crc32c(rising), 0x46dd794eu);
  assert_int_equal(crc32c(""), 0);
  assert_int_equal(crc32c_portable("123456789", 9), 0xe3069283u);
}

// The definition: the remainder of a division, bit by bit.
uint32_t crc_by_bits(const unsigned char *data, size_t size, uint32_t crc) {
  uint32_t state = ~crc;
  for (size_t i = 0; i < size; ++i) {
    state ^= data[i];
    for (int bit = 0; bit < 8; ++bit)
      state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~state;
}

void all_ways_agree_for_all_lengths_and_places(void **) {
  RandomStream stream(RandomKey::of(4, 4, 4));
  std::vector<unsigned char> data(300000);
  for (unsigned char &byte : data)
    byte = static_cast<unsigned char>(stream.next());
  const auto check = [&](size_t place, size_t size, uint32_t crc) {
    const uint32_t expected = crc_by_bits(&data[place], size, crc);
    assert_int_equal(crc32c(&data[place], size, crc), expected);
    assert_int_equal(crc32c_portable(&data[place], size, crc), expected);
  };
  for (size_t place = 0; place < 16; ++place) {
    for (size_t size = 0; size <= 300; ++size)
      check(place, size, static_cast<uint32_t>(place));
  }
  // Around the borders of blocks, strands and registers.
  for (const size_t border : {512, 768, 1024, 2048, 2816, 3072, 5632, 5888, 8448, 10000}) {
    for (size_t size = border - 70; size <= border + 70; size += 7)
      check(size % 16, size, 77);
  }
  for (const size_t size : {65536, 262144, 299984})
    check(15, size, 0xffffffffu);
}

void pieces_continue(void **) {
  const std::string text(5000, 'q');
  const uint32_t whole = crc32c(text);
  for (const size_t cut : {0, 1, 3000, 4999, 5000}) {
    assert_int_equal(crc32c(text.data() + cut, text.size() - cut, crc32c(text.data(), cut)), whole);
  }
}

void masks_invert(void **) {
  for (const uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu})
    assert_int_equal(unmask_crc(mask_crc(crc)), crc);
  assert_int_not_equal(mask_crc(0xe3069283u), 0xe3069283u);
}

void fnv(void **) {
  assert_true(fnv1a64("") == 0xcbf29ce484222325u);
  assert_true(fnv1a64("a") == 0xaf63dc4c8601ec8cu);
  assert_true(fnv1a64("foobar") == 0x85944171f73967e8u);
  assert_true(fnv1a64("bar", fnv1a64("foo")) == fnv1a64("foobar"));
  assert_true(fnv1a64(uint64_t{'a'}, kFnvStart) == fnv1a64(std::string_view("a\0\0\0\0\0\0\0", 8)));
}

const CMUnitTest tests[] = {
    cmocka_unit_test(known_answers),
    cmocka_unit_test(all_ways_agree_for_all_lengths_and_places),
    cmocka_unit_test(pieces_continue),
    cmocka_unit_test(masks_invert),
    cmocka_unit_test(fnv),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace checksum_test

// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <string>
#include <vector>

#include "base/philox.h"
#include "testing.h"

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

void both_ways_agree_for_all_lengths_and_places(void **) {
  RandomStream stream(RandomKey::of(4, 4, 4));
  std::vector<unsigned char> data(20000);
  for (unsigned char &byte : data)
    byte = static_cast<unsigned char>(stream.next());
  for (size_t size = 0; size < 200; ++size) {
    assert_int_equal(crc32c(&data[size % 9], size), crc32c_portable(&data[size % 9], size));
  }
  for (const size_t size : {3071, 3072, 3073, 6144, 10000, 19990}) {
    assert_int_equal(crc32c(&data[3], size, 77), crc32c_portable(&data[3], size, 77));
  }
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
    cmocka_unit_test(both_ways_agree_for_all_lengths_and_places),
    cmocka_unit_test(pieces_continue),
    cmocka_unit_test(masks_invert),
    cmocka_unit_test(fnv),
};

}  // namespace

TEST_MAIN(tests)

// SPDX-License-Identifier: Apache-2.0
#include "base/hash/keyed_hash.h"

#include <string>

#include "testing.h"

namespace keyed_hash_test {

using tutti::impl::base::KeyedHash;

namespace {

// The vectors that come with the reference implementation: key 00 01 .. 0f, texts "", 00, 00 01, ...
void known_texts_have_known_hashes(void **) {
  const KeyedHash hash(0x0706050403020100, 0x0f0e0d0c0b0a0908);
  const std::pair<size_t, uint64_t> known[] = {{0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd},
                                               {7, 0xab0200f58b01d137},  {8, 0x93f5f5799a932462},
                                               {15, 0xa129ca6149be45e5}, {16, 0x3f2acc7f57c29bdb}};
  for (const auto &[size, expected] : known) {
    std::string text;
    for (size_t i = 0; i < size; ++i)
      text += static_cast<char>(i);
    assert_true(hash(text) == expected);
  }
}

void keys_that_nobody_chose_differ(void **) {
  const KeyedHash first, second;
  assert_true(first("text") == KeyedHash(first)("text"));
  assert_true(first("text") != second("text"));
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(known_texts_have_known_hashes),
    cmocka_unit_test(keys_that_nobody_chose_differ),
};
TEST_MAIN(tests)

}  // namespace keyed_hash_test

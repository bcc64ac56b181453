// SPDX-License-Identifier: Apache-2.0
#include "base/hash/sha256.h"

#include <string>

#include "testing.h"

namespace sha256_test {

namespace base = tutti::impl::base;

namespace {

std::string hex(const base::Digest &digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// The examples that NIST gives for FIPS 180-4, and the long message of its first edition.
void known_messages_have_known_digests(void **) {
  const std::pair<std::string, const char *> known[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrst"
       "u",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto &[message, digest] : known)
    assert_string_equal(hex(base::sha256(message)).c_str(), digest);
}

// Around the ends of a block, where the length may need a block of its own. Digests by another implementation.
void lengths_around_a_block(void **) {
  const std::pair<size_t, const char *> known[] = {
      {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
      {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
      {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
      {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
      {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"}};
  for (const auto &[length, digest] : known)
    assert_string_equal(hex(base::sha256(std::string(length, 'a'))).c_str(), digest);
}

// RFC 4231, cases 1 to 4, 6 and 7.
void known_keys_have_known_codes(void **) {
  std::string ascending;
  for (char c = 1; c <= 25; ++c)
    ascending += c;
  const struct {
    std::string key, message;
    const char *code;
  } known[] = {
      {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {ascending, std::string(50, '\xcd'), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
       "hashed "
       "before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const auto &c : known)
    assert_string_equal(hex(base::hmac_sha256(c.key, c.message)).c_str(), c.code);
}

void equal_is_equal(void **) {
  assert_true(base::equal_in_constant_time("", ""));
  assert_true(base::equal_in_constant_time("abc", "abc"));
  assert_false(base::equal_in_constant_time("abc", "abd"));
  assert_false(base::equal_in_constant_time("abc", "bbc"));
  assert_false(base::equal_in_constant_time("abc", "ab"));
}

void random_bytes_differ(void **) {
  const std::string first = assert_ok_value(base::random_bytes(32));
  assert_int_equal(first.size(), 32);
  assert_true(first != assert_ok_value(base::random_bytes(32)));
  assert_int_equal(assert_ok_value(base::random_bytes(0)).size(), 0);
  assert_int_equal(assert_ok_value(base::random_bytes(1000)).size(), 1000);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(known_messages_have_known_digests),
    cmocka_unit_test(lengths_around_a_block),
    cmocka_unit_test(known_keys_have_known_codes),
    cmocka_unit_test(equal_is_equal),
    cmocka_unit_test(random_bytes_differ),
};
TEST_MAIN(tests)

}  // namespace sha256_test

// SPDX-License-Identifier: Apache-2.0
#include "base/hash/keyed_hash.h"

#include <bit>
#include <cstring>
#include <random>

namespace tutti::impl::base {

namespace {

static_assert(std::endian::native == std::endian::little);

// The names are those of the paper.
struct State {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void take(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

uint64_t random_word() {
  static thread_local std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

KeyedHash::KeyedHash() : KeyedHash(random_word(), random_word()) {}

uint64_t KeyedHash::operator()(std::string_view text) const {
  State state{0x736f6d6570736575 ^ low_, 0x646f72616e646f6d ^ high_, 0x6c7967656e657261 ^ low_,
              0x7465646279746573 ^ high_};
  uint64_t word = 0;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::memcpy(&word, text.data() + at, 8);
    state.take(word);
  }
  word = 0;
  if (at < text.size()) std::memcpy(&word, text.data() + at, text.size() - at);
  state.take(word | uint64_t{text.size()} << 56);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i)
    state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace tutti::impl::base

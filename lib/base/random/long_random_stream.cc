// SPDX-License-Identifier: Apache-2.0
#include "base/random/long_random_stream.h"

namespace tutti::impl::base {

void LongRandomStream::make_words() {
  const uint32_t key_low = static_cast<uint32_t>(key_.value), key_high = static_cast<uint32_t>(key_.value >> 32);
  for (size_t block = 0; block < kBlocks; ++block, ++next_block_) {
    uint32_t a = static_cast<uint32_t>(next_block_), b = static_cast<uint32_t>(next_block_ >> 32), c = 0, d = 0;
    uint32_t k0 = key_low, k1 = key_high;
#pragma GCC unroll 10
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const uint64_t product0 = uint64_t{kPhiloxMultipliers[0]} * a;
      const uint64_t product1 = uint64_t{kPhiloxMultipliers[1]} * c;
      a = static_cast<uint32_t>(product1 >> 32) ^ b ^ k0;
      b = static_cast<uint32_t>(product1);
      c = static_cast<uint32_t>(product0 >> 32) ^ d ^ k1;
      d = static_cast<uint32_t>(product0);
      k0 += kPhiloxWeyl[0];
      k1 += kPhiloxWeyl[1];
    }
    words_[4 * block] = a;
    words_[4 * block + 1] = b;
    words_[4 * block + 2] = c;
    words_[4 * block + 3] = d;
  }
  taken_ = 0;
}

}  // namespace tutti::impl::base

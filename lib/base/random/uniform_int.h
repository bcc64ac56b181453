// SPDX-License-Identifier: Apache-2.0
//
// Each of 0 .. bound-1 with the same probability, from a stream of random words: `words` gives next() and next64().
#ifndef TUTTI_BASE_RANDOM_UNIFORM_INT_H_
#define TUTTI_BASE_RANDOM_UNIFORM_INT_H_

#include <bit>
#include <cstdint>

namespace tutti::impl::base {

/// bound > 0.
template <typename Words>
int64_t uniform_int(Words &words, int64_t bound) {
  // Lemire, "Fast random integer generation in an interval" (2019): the high part of a product, rejecting the few low
  // parts that would favour some results.
  if (bound <= UINT32_MAX) {
    const auto range = static_cast<uint32_t>(bound);
    uint64_t product = uint64_t{words.next()} * range;
    if (static_cast<uint32_t>(product) < range) [[unlikely]] {
      const uint32_t rejected = -range % range;
      while (static_cast<uint32_t>(product) < rejected)
        product = uint64_t{words.next()} * range;
    }
    return static_cast<int64_t>(product >> 32);
  }
  const auto range = static_cast<uint64_t>(bound);
  const uint64_t mask = std::bit_ceil(range) - 1;
  uint64_t pick = words.next64() & mask;
  while (pick >= range)
    pick = words.next64() & mask;
  return static_cast<int64_t>(pick);
}

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_RANDOM_UNIFORM_INT_H_

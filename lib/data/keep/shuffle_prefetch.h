// SPDX-License-Identifier: Apache-2.0
//
// Brings the elements that a shuffle will draw next nearer to the processor. They lie anywhere in memory, and the bytes
// of each are four reads away, none of which can begin before the one before it has ended: so each is begun one draw
// after the other, while other elements are worked on.
//
//   ahead.before_draw(draw, held);                 // then pick, which gives what was foreseen
//
// It draws the same numbers as the shuffle, a few draws earlier, for as long as the buffer is full; behind that nothing
// is brought nearer. Guesses only: the results of a shuffle do not depend on them. Belongs to one thread.
#ifndef TUTTI_DATA_KEEP_SHUFFLE_PREFETCH_H_
#define TUTTI_DATA_KEEP_SHUFFLE_PREFETCH_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/random/long_random_stream.h"
#include "data/call/row_prefetch.h"
#include "data/element/element.h"

namespace tutti::impl::data {

class ShufflePrefetch {
 public:
  ShufflePrefetch(base::RandomKey key, int64_t capacity) : stream_(key), capacity_(capacity) {}

  /// `draw` counts from 0 and never falls; `held` is by slot.
  void before_draw(int64_t draw, const std::vector<Element> &held) {
    if (static_cast<int64_t>(held.size()) < capacity_) return;
    for (; foreseen_ < draw + kDraws; ++foreseen_)
      slots_[static_cast<size_t>(foreseen_ % kDraws)] = static_cast<size_t>(stream_.below(capacity_));
    const auto element = [&](int64_t distance) -> const Element & {
      return held[slots_[static_cast<size_t>((draw + distance) % kDraws)]];
    };
    __builtin_prefetch(&element(4));
    fetch_tensors(element(3));
    for_components(element(2), [](const tensor::Tensor &one) { __builtin_prefetch(one.buffer().get()); });
    for_components(element(1), fetch_bytes);
  }

 private:
  static constexpr int64_t kDraws = 5;  // this one, and what is begun for the four behind it

  template <typename Function>
  static void for_components(const Element &element, Function function) {
    constexpr size_t kMost = 4;
    for (size_t i = 0; i < std::min(kMost, element.components.size()); ++i)
      function(element.components[i]);
  }
  static void fetch_tensors(const Element &element) {
    for_components(element, [](const tensor::Tensor &one) {
      prefetch_row(reinterpret_cast<const std::byte *>(&one), static_cast<int64_t>(sizeof(one)));
    });
  }
  static void fetch_bytes(const tensor::Tensor &one) {
    if (one) prefetch_row(static_cast<const std::byte *>(one.data()), one.buffer()->size_bytes() - one.offset_bytes());
  }

  base::LongRandomStream stream_;
  const int64_t capacity_;
  int64_t foreseen_ = 0;
  std::array<size_t, kDraws> slots_{};
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_KEEP_SHUFFLE_PREFETCH_H_

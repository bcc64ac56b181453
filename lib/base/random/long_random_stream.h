// SPDX-License-Identifier: Apache-2.0
//
// The words of RandomStream, made many blocks at a time: a few times as fast for who takes thousands of them, and a
// waste for who takes three.
//
// Threads: belongs to one.
#ifndef TUTTI_BASE_RANDOM_LONG_RANDOM_STREAM_H_
#define TUTTI_BASE_RANDOM_LONG_RANDOM_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/random/philox.h"
#include "base/random/uniform_int.h"

namespace tutti::impl::base {

class LongRandomStream {
 public:
  explicit LongRandomStream(RandomKey key) : key_(key) {}

  uint32_t next() {
    if (taken_ == kWords) [[unlikely]]
      make_words();
    return words_[taken_++];
  }
  uint64_t next64() {
    const uint64_t low = next();
    return low | uint64_t{next()} << 32;
  }
  /// Each of 0 .. bound-1 with the same probability; bound > 0.
  int64_t below(int64_t bound) { return uniform_int(*this, bound); }

  /// Words that were taken; a stream of the same key goes on from there after seek().
  int64_t position() const { return next_block_ == 0 ? 0 : static_cast<int64_t>(4 * next_block_ - kWords + taken_); }
  void seek(int64_t position) {
    next_block_ = static_cast<uint64_t>(position) / kWords * kBlocks;
    make_words();
    taken_ = static_cast<size_t>(position) % kWords;
  }

 private:
  static constexpr size_t kBlocks = 16, kWords = 4 * kBlocks;

  void make_words();

  RandomKey key_;
  uint64_t next_block_ = 0;
  size_t taken_ = kWords;
  std::array<uint32_t, kWords> words_;
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_RANDOM_LONG_RANDOM_STREAM_H_

// SPDX-License-Identifier: Apache-2.0
//
// Which element a shuffle of limited buffer draws next, on positions alone: a buffer of up to `capacity` positions, of
// which one is picked uniformly at each draw and replaced by the next position of the source. So position i is drawn as
// number i - capacity + 1 at the earliest, and the whole walk is a function of (key, capacity, what the source gave):
// a saved walk is its number of draws, or the positions in the buffer and how many random numbers were used.
//
//   while (reservoir.has_room() && source gives) reservoir.add(position);
//   size_t slot = reservoir.pick();  position = reservoir.position(slot);  reservoir.remove(slot);
//
// Threads: belongs to one.
#ifndef TUTTI_DATA_KEEP_RESERVOIR_H_
#define TUTTI_DATA_KEEP_RESERVOIR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random/long_random_stream.h"

namespace tutti::impl::data {

/// `Position`: an integer that holds all positions of the source; the smaller, the more of them are near the processor.
template <typename Position>
class Reservoir {
 public:
  Reservoir(base::RandomKey key, int64_t capacity) : stream_(key), capacity_(static_cast<size_t>(capacity)) {}

  bool has_room() const { return positions_.size() < capacity_; }
  bool empty() const { return positions_.empty(); }
  size_t size() const { return positions_.size(); }
  /// Adds a position as the last slot.
  void add(int64_t position) { positions_.push_back(static_cast<Position>(position)); }
  /// The slot to give out now. Not when empty.
  size_t pick() { return static_cast<size_t>(stream_.below(static_cast<int64_t>(positions_.size()))); }
  int64_t position(size_t slot) const { return positions_[slot]; }
  /// Where the random numbers stand.
  int64_t stream_position() const { return stream_.position(); }
  /// For a reservoir that has just been made and filled as another one: goes on as that one.
  void go_on_from(int64_t stream_position) { stream_.seek(stream_position); }
  /// The last slot takes the place of the one removed.
  void remove(size_t slot) {
    positions_[slot] = positions_.back();
    positions_.pop_back();
  }

 private:
  base::LongRandomStream stream_;
  size_t capacity_;
  std::vector<Position> positions_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_KEEP_RESERVOIR_H_

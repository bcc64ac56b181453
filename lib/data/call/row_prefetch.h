// SPDX-License-Identifier: Apache-2.0
//
// prefetch_row: asks the processor to bring the start of a row into its cache while the row before is worked on, for
// rows that lie anywhere (RandomAccess::locate). How a long one goes on the processor sees by itself.
#ifndef TUTTI_DATA_CALL_ROW_PREFETCH_H_
#define TUTTI_DATA_CALL_ROW_PREFETCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tutti::impl::data {

inline void prefetch_row(const std::byte *row, int64_t bytes) {
  constexpr int64_t kLine = 64, kMostBytes = 1024;
  if (bytes <= 0) return;
  bytes = std::min(bytes, kMostBytes);
  for (int64_t at = 0; at < bytes; at += kLine) {
    __builtin_prefetch(row + at);
    asm volatile("");  // GCC takes a loop without effect on the program's state for one that does nothing
  }
  __builtin_prefetch(row + bytes - 1);  // a row need not begin where a line does
}

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_CALL_ROW_PREFETCH_H_

// SPDX-License-Identifier: Apache-2.0
//
// Memory of the host by way of which the copies of one run go to a device and back: where the backend has such
// (page-locked), the device does them by itself, while other streams compute. It grows to the largest need and is kept.
//
//   staging.reserve(device, bytes);                             // of all copies of the run, each aligned()
//   buffer.write(0, staging.stage(rows, n), n, &stream);        // the rows are not read any more
//   buffer.read(0, staging.take(m), m, &stream);                // take() may give none
//
// Threads: one at a time. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_INPUT_COPY_STAGING_H_
#define TUTTI_DISTRIBUTE_INPUT_COPY_STAGING_H_

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"

namespace tutti::impl::distribute {

class CopyStaging {
 public:
  /// What a copy of so many bytes takes of it.
  static int64_t aligned(int64_t bytes);

  /// Room for a new run, once the copies of the one before are done. There is none where the backend has no such memory
  /// or, from the first time on, no more of it: copies then read and write what they are for, more slowly.
  void reserve(backend::Device &device, int64_t bytes);
  /// Room for a copy, or null where there is none.
  std::byte *take(int64_t bytes);
  /// Where a copy may read these rows from: their copy, or themselves where there is no room.
  const void *stage(const void *rows, int64_t bytes);

 private:
  backend::HostMemory memory_;
  int64_t taken_ = 0;
  bool has_memory_ = true;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_INPUT_COPY_STAGING_H_

// SPDX-License-Identifier: Apache-2.0
//
// What the logical devices on one GPU share, such as a library's handle: made when the first asks for it, gone with the
// last that holds it.
//
//   static auto *const table = new SharedByDevice<Handle>;    // never destroyed: programs are released late
//   return table->get(ordinal, [&] { return Handle::open(ordinal); });
//
// Threads: any.
#ifndef TUTTI_BACKEND_GPU_RUNTIME_SHARED_BY_DEVICE_H_
#define TUTTI_BACKEND_GPU_RUNTIME_SHARED_BY_DEVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

template <typename Shared>
class SharedByDevice {
 public:
  /// That of a GPU: the one there is, else what `make` gives (Result<std::unique_ptr<Shared>>, called by one thread at
  /// a time).
  template <typename Make>
  base::Result<std::shared_ptr<Shared>> get(int32_t ordinal, Make make) {
    const std::lock_guard guard(mutex_);
    std::weak_ptr<Shared> &known = by_ordinal_[ordinal];
    std::shared_ptr<Shared> shared = known.lock();
    if (shared != nullptr) return shared;
    TUTTI_ASSIGN(shared, make());
    known = shared;
    return shared;
  }

 private:
  std::mutex mutex_;
  std::map<int32_t, std::weak_ptr<Shared>> by_ordinal_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_SHARED_BY_DEVICE_H_

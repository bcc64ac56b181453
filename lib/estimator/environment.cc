// SPDX-License-Identifier: Apache-2.0
#include "estimator/environment.h"

#include <algorithm>

#include "base/thread.h"

namespace tutti::impl::estimator {

ThreadShares share_threads(const Environment &environment, int32_t devices, int64_t wanted_per_device) {
  const int32_t total = environment.threads > 0 ? environment.threads : base::available_cores();
  const int64_t share = std::max(1, total / std::max(devices, 1));
  ThreadShares shares;
  shares.per_device = static_cast<int32_t>(std::clamp<int64_t>(wanted_per_device, 1, share));
  shares.pipeline = std::max(1, total - devices * shares.per_device);
  return shares;
}

}  // namespace tutti::impl::estimator

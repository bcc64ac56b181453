// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "streams.h"

namespace tutti_gpu_emulator {

namespace {

bool waits() {
  static const char *const wanted = std::getenv("TUTTI_EMULATED_DRIVER");
  return wanted != nullptr && std::string_view(wanted) == "waits";
}

std::recursive_mutex &driver_lock() {
  static auto *const mutex = new std::recursive_mutex;
  return *mutex;
}

void await(const std::shared_ptr<Lane> &lane, const char *what) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kMostMs);
  std::unique_lock lock(work_lock());
  const uint64_t position = lane->issued;
  while (!lane->advance_to(position)) {
    (void)work_changed().wait_until(lock, deadline);
    if (std::chrono::steady_clock::now() < deadline || lane->advance_to(position)) continue;
    std::fprintf(stderr, "emulated GPU: %s waits for work of GPU %d, which waits for a launch that this keeps away\n",
                 what, lane->device);
    std::abort();
  }
}

}  // namespace

DriverCall::DriverCall() {
  if (waits()) lock_ = std::unique_lock(driver_lock());
}

DriverCall::DriverCall(const char *what, int device) : DriverCall() {
  if (!waits()) return;
  std::vector<std::shared_ptr<Lane>> lanes;
  {
    const std::lock_guard guard(work_lock());
    for (const std::weak_ptr<Lane> &known : known_lanes()) {
      const std::shared_ptr<Lane> lane = known.lock();
      if (lane != nullptr && (device == kAllDevices || lane->device == device)) lanes.push_back(lane);
    }
  }
  for (const std::shared_ptr<Lane> &lane : lanes)
    await(lane, what);
}

DriverPause::~DriverPause() {
  if (waits()) std::this_thread::sleep_for(std::chrono::microseconds(300));
}

TriedDriverCall::TriedDriverCall() {
  if (!waits()) return;
  lock_ = std::unique_lock(driver_lock(), std::try_to_lock);
  may_launch_ = lock_.owns_lock();
}

}  // namespace tutti_gpu_emulator

using namespace tutti_gpu_emulator;

gpuError_t gpuFuncGetAttributes(gpuFuncAttributes *, const void *) {
  const std::lock_guard guard(work_lock());
  if (const gpuError_t refused = refuse_unsafe(); refused != gpuSuccess) return refused;
  const char *const without = std::getenv("TUTTI_EMULATED_NO_CODE");
  return without != nullptr && std::atoi(without) == current_device() ? gpuErrorNoKernelImage : gpuSuccess;
}

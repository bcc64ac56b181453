// SPDX-License-Identifier: Apache-2.0
//
// The lock of the driver, where the environment's TUTTI_EMULATED_DRIVER is "waits" when it is asked first: each launch
// and each record of an event takes it, and what takes or frees memory keeps it until the GPU has nothing to do, as a
// real driver may. Nothing otherwise. Who holds it may take work_lock(), and not the other way round.
//
// A launch that the GPU waits for and that waits for the lock would be missed for ever: after kMostMs the process ends
// with a sentence.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_DRIVER_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_DRIVER_H_

#include <cstdint>
#include <mutex>

namespace tutti_gpu_emulator {

constexpr int64_t kMostMs = 10000;
constexpr int kAllDevices = -1;

class DriverCall {
 public:
  /// A launch.
  DriverCall();
  /// What waits until the device has done all that was issued to it, in a sentence.
  DriverCall(const char *what, int device);

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Behind it others get the driver, if they want it.
struct DriverPause {
  DriverPause() = default;
  DriverPause(const DriverPause &) = delete;
  ~DriverPause();
};

/// A launch by a thread that holds work_lock(): empty where it has to come again.
class TriedDriverCall {
 public:
  TriedDriverCall();
  bool may_launch() const { return may_launch_; }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  bool may_launch_ = true;
};

}  // namespace tutti_gpu_emulator

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_DRIVER_H_

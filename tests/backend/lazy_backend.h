// SPDX-License-Identifier: Apache-2.0
//
// The reference backend with copies that are late: what is written on a stream is copied only when somebody waits for
// the stream or an event of it, which is the latest moment that the contract allows; where it is told so, everything on
// a stream is as late. Who forgets to wait, or frees the source too early, computes with other numbers.
//
//   LazyBackend::begin({.has_host_memory = false});    // settings of backends opened from now on, and new counts
//   TUTTI_ASSIGN(BackendRef backend, Backend::create(LazyBackend::entry, "{}", {}));
//
// Threads: every function is safe from any thread.
#ifndef TUTTI_TESTS_BACKEND_LAZY_BACKEND_H_
#define TUTTI_TESTS_BACKEND_LAZY_BACKEND_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"

namespace tutti::testing {

/// What is late: what comes to the device, or also programs, reads and fills.
enum class Late { nothing, copies, everything };

struct LazySettings {
  bool has_host_memory = true;
  Late late = Late::copies;
  /// Without host memory: copies by address.
  bool has_transfers = true;
  /// Called when a program is issued on a stream.
  std::function<void()> on_run;
  /// Asked for memory of so many bytes: is there any?
  std::function<bool(uint64_t)> has_memory;
  /// The same of memory of the host for transfers.
  std::function<bool(uint64_t)> has_transfer_memory;
};

class LazyBackend {
 public:
  static void begin(LazySettings settings);
  static const tutti_backend_api *entry(uint32_t host_abi_version);

  /// Copies that were issued on a stream, and that have been done.
  static int64_t issued();
  static int64_t done();
  /// Copies to and from buffers that were issued on a stream and have their other end in memory for transfers.
  static int64_t staged();
  /// Segments of programs that have run.
  static int64_t runs();
  /// Waits until `count` copies have been issued; false after ten seconds.
  static bool wait_issued(int64_t count);
};

/// Devices of a backend with these settings, from the first on.
impl::base::Result<std::vector<impl::backend::DeviceRef>> open_lazy_devices(int32_t count, LazySettings settings);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_LAZY_BACKEND_H_

// SPDX-License-Identifier: Apache-2.0
//
// Calls of the host, where faults are injected (tests/faults/fault_injector.c). What such a call and the device take of
// the host's memory is not the library's: none of it is refused. The call as a whole may fail, as one of the kind
// `driver`. Nothing otherwise.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_HOST_CALL_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_HOST_CALL_H_

namespace tutti_gpu_emulator {

/// Memory is not refused as long as it lives, on the calling thread.
class HostCall {
 public:
  HostCall();
  ~HostCall();
  HostCall(const HostCall &) = delete;
  HostCall &operator=(const HostCall &) = delete;
};

/// Whether the call that asks fails. Not within another one.
bool is_refused();

}  // namespace tutti_gpu_emulator

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_HOST_CALL_H_

// SPDX-License-Identifier: Apache-2.0
#include "host_call.h"

// Of the injector, where that is preloaded.
extern "C" void fault_injector_pause(int is_wanted) __attribute__((weak));
extern "C" int fault_injector_driver_call() __attribute__((weak));

namespace tutti_gpu_emulator {

HostCall::HostCall() {
  if (fault_injector_pause != nullptr) fault_injector_pause(1);
}

HostCall::~HostCall() {
  if (fault_injector_pause != nullptr) fault_injector_pause(0);
}

bool is_refused() { return fault_injector_driver_call != nullptr && fault_injector_driver_call() != 0; }

}  // namespace tutti_gpu_emulator

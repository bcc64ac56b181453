// SPDX-License-Identifier: Apache-2.0
//
// The one symbol of the plug-in.
#include "backend/pjrt/device/pjrt_backend.h"

extern "C" __attribute__((visibility("default"))) const tutti_backend_api *tutti_backend_entry(uint32_t version) {
  return tutti::impl::backend::pjrt::entry(version);
}

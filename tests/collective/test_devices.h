// SPDX-License-Identifier: Apache-2.0
//
// Devices of the backend that the environment's TUTTI_TEST_BACKEND names.
#ifndef TUTTI_TESTS_COLLECTIVE_TEST_DEVICES_H_
#define TUTTI_TESTS_COLLECTIVE_TEST_DEVICES_H_

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "runtime/backend_list.h"

namespace tutti::testing {

/// So many logical ones, opened.
inline impl::base::Result<std::vector<impl::backend::DeviceRef>> open_devices(int32_t count) {
  const std::string options = "{\"logical_devices\": " + std::to_string(count) + "}";
  TUTTI_ASSIGN(const impl::backend::BackendRef opened,
               impl::runtime::open_backend(std::getenv("TUTTI_TEST_BACKEND"), options, {}));
  std::vector<impl::backend::DeviceRef> devices(static_cast<size_t>(count));
  for (int32_t d = 0; d < count; ++d) {
    TUTTI_ASSIGN(devices[static_cast<size_t>(d)], opened->open_device(d));
  }
  return devices;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_COLLECTIVE_TEST_DEVICES_H_

// SPDX-License-Identifier: Apache-2.0
#include "runtime/tpu_chips.h"

#include <string>

#include "base/file.h"
#include "base/temporary_directory.h"
#include "testing.h"

namespace {

using namespace tutti::impl;
using tutti::testing::TemporaryDirectory;

void add_device(const std::string &folder, const std::string &address, const char *vendor, const char *device) {
  const std::string own = folder + "/" + address;
  assert_ok(base::make_directories(own));
  assert_ok(base::write_file_synced(own + "/vendor", std::string(vendor) + "\n"));
  assert_ok(base::write_file_synced(own + "/device", std::string(device) + "\n"));
}

void chips_are_known_by_their_identity(void **) {
  const TemporaryDirectory folder;
  assert_string_equal(runtime::describe_tpu_chips(folder.path()).c_str(), "");
  add_device(folder.path(), "0000:00:01.0", "0x8086", "0x0063");  // another maker's
  add_device(folder.path(), "0000:00:02.0", "0x1ae0", "0x0042");  // a network card
  assert_string_equal(runtime::describe_tpu_chips(folder.path()).c_str(), "");
  add_device(folder.path(), "0000:00:04.0", "0x1ae0", "0x0063");
  assert_string_equal(runtime::describe_tpu_chips(folder.path()).c_str(), "1 chip TPU v5e");
  for (int i = 5; i < 8; ++i)
    add_device(folder.path(), "0000:00:0" + std::to_string(i) + ".0", "0x1ae0", "0x0063");
  add_device(folder.path(), "0000:00:09.0", "0x1ae0", "0x006f");
  assert_ok(base::make_directories(folder.path() + "/0000:00:0a.0"));  // tells nothing
  assert_string_equal(runtime::describe_tpu_chips(folder.path()).c_str(), "4 chips TPU v5e, 1 chip TPU v6e");
  assert_string_equal(runtime::describe_tpu_chips(folder.path() + "/none").c_str(), "");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(chips_are_known_by_their_identity)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

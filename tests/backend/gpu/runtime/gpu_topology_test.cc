// SPDX-License-Identifier: Apache-2.0
//
// Where GPUs are and how they are connected, on four emulated ones: 0 and 1 are, and 2 and 3.
#include "backend/gpu/runtime/gpu_topology.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_directory.h"
#include "testing.h"

namespace gpu_topology_test {

namespace {

using namespace tutti::impl;
using backend::gpu::link_between;
using backend::gpu::place_of;

void gpus_are_near_a_node(void **) {
  const tutti::testing::TemporaryDirectory directory;
  setenv("TUTTI_EMULATED_MACHINE", "0000:1A", 1);  // as a platform writes it; the system's folders are in small letters
  const std::filesystem::path folder = std::filesystem::path(directory.path()) / "0000:1a:2";
  std::filesystem::create_directory(folder);
  for (const auto &[written, read] : {std::pair("1\n", 1), std::pair("-1\n", -1), std::pair("", -1)}) {
    std::ofstream(folder / "numa_node") << written;
    const auto place = assert_ok_value(place_of(2, directory.path()));
    assert_string_equal(place.pci.c_str(), "0000:1a:2");
    assert_int_equal(place.numa_node, read);
  }
  assert_int_equal(assert_ok_value(place_of(3, directory.path())).numa_node, -1);  // there is no such folder
  unsetenv("TUTTI_EMULATED_MACHINE");
}

void pairs_are_linked(void **) {
  for (int32_t gpu = 0; gpu < 4; ++gpu) {
    for (int32_t other = 0; other < 4; ++other) {
      if (gpu == other) continue;
      const auto link = assert_ok_value(link_between(gpu, other));
      const bool is_pair = gpu / 2 == other / 2;
      assert_int_equal(link.reaches, is_pair);
      assert_int_equal(link.rank, 0);
      assert_int_equal(link.has_atomics, is_pair);
    }
  }
  assert_error_contains(link_between(0, 4), "querying which GPUs reach each other");
}

}  // namespace

static int run_all(int, char **) {
  setenv("TUTTI_EMULATED_GPUS", "4", 1);
  const CMUnitTest tests[] = {cmocka_unit_test(gpus_are_near_a_node), cmocka_unit_test(pairs_are_linked)};
  return cmocka_run_group_tests_name("gpu_topology", tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace gpu_topology_test

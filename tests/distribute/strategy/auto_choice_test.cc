// SPDX-License-Identifier: Apache-2.0
#include "distribute/strategy/auto_choice.h"

#include <string>
#include <vector>

#include "backend/lazy_backend.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace tutti::testing::auto_choice_test {

using namespace impl;
using distribute::AutoChoice;
using distribute::AutoRequest;
using distribute::choose_devices;
using distribute::DeviceChoice;

static std::vector<DeviceChoice> devices_of(const backend::BackendRef &backend) {
  std::vector<DeviceChoice> devices;
  for (int32_t i = 0; i < backend->device_count(); ++i)
    devices.push_back({backend, i});
  return devices;
}

static std::vector<DeviceChoice> processors(int count) {
  const std::string options = "{\"logical_devices\": " + std::to_string(count) + "}";
  return devices_of(assert_ok_value(runtime::open_backend("reference", options, {})));
}

static std::vector<DeviceChoice> gpus_of_three() {
  LazySettings settings;
  settings.has_host_memory = false;
  LazyBackend::begin(settings);
  return devices_of(assert_ok_value(
      backend::Backend::create(LazyBackend::entry, "{\"logical_devices\": 3}", backend::HostOptions{})));
}

static void expect(const std::vector<DeviceChoice> &devices, const AutoRequest &request, size_t replicas,
                   int32_t threads) {
  const AutoChoice choice = assert_ok_value(choose_devices(devices, request));
  assert_int_equal(choice.devices.size(), replicas);
  assert_int_equal(choice.threads_per_replica, threads);
  for (size_t i = 0; i < replicas; ++i) {
    assert_true(choice.devices[i].backend == devices[i].backend);
    assert_int_equal(choice.devices[i].index, devices[i].index);
  }
}

static void test_processors_are_shared_out(void **) {
  const std::vector<DeviceChoice> eight = processors(8);
  expect(eight, {.threads = 8}, 8, 1);
  expect(eight, {.threads = 8, .batch_size = 1000}, 8, 1);
  expect(eight, {.threads = 8, .batch_size = 256}, 8, 1);
  expect(eight, {.threads = 8, .batch_size = 255}, 7, 1);
  expect(eight, {.threads = 8, .batch_size = 128}, 4, 2);
  expect(eight, {.threads = 8, .batch_size = 100}, 3, 2);
  expect(eight, {.threads = 8, .batch_size = 63}, 1, 8);
  expect(eight, {.threads = 8, .batch_size = 1}, 1, 8);
  expect(eight, {.threads = 3}, 3, 1);
  expect(eight, {.threads = 20, .batch_size = 1000}, 8, 2);
  expect(processors(1), {.threads = 4}, 1, 4);
  assert_string_equal(assert_ok_value(choose_devices(eight, {.threads = 8, .batch_size = 130})).reason.c_str(),
                      "4 replicas on processors, 8 threads in all; batches have 130 rows");
}

static void test_the_number_divides_the_logical_replicas(void **) {
  const std::vector<DeviceChoice> six = processors(6);
  expect(six, {.threads = 6, .logical_replicas = 4}, 4, 1);
  expect(six, {.threads = 6, .logical_replicas = 6}, 6, 1);
  expect(six, {.threads = 6, .logical_replicas = 7}, 1, 6);
  expect(six, {.threads = 6, .logical_replicas = 9}, 3, 2);
}

static void test_devices_with_memory_go_first(void **) {
  const std::vector<DeviceChoice> gpus = gpus_of_three();
  assert_false(gpus.front().backend->has_host_memory());
  std::vector<DeviceChoice> mixed = processors(4);
  mixed.insert(mixed.end(), gpus.begin(), gpus.end());
  const AutoChoice all = assert_ok_value(choose_devices(mixed, {.threads = 4}));
  assert_int_equal(all.devices.size(), 3);
  for (const DeviceChoice &device : all.devices)
    assert_true(device.backend == gpus.front().backend);
  assert_string_equal(all.reason.c_str(), "3 of 3 devices with memory of their own");
  expect(gpus, {.threads = 4, .batch_size = 2}, 2, 1);
  expect(gpus, {.threads = 4, .batch_size = 100, .logical_replicas = 4}, 2, 1);
  assert_error_contains(choose_devices({}, {.threads = 4}), "no devices");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_processors_are_shared_out),
    cmocka_unit_test(test_the_number_divides_the_logical_replicas),
    cmocka_unit_test(test_devices_with_memory_go_first),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::auto_choice_test

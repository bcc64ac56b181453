// SPDX-License-Identifier: Apache-2.0
//
// A backend for GPUs, with the GPUs of the machine or without any. argv: path of the plug-in, name of the backend,
// whose GPUs it is for.
#include <string>
#include <vector>

#include "backend/backend.h"
#include "runtime/plugin_loader.h"
#include "testing.h"

using namespace tutti::impl;

namespace {

std::string path, name, vendor;

base::Result<backend::BackendRef> load() { return runtime::load_plugin(path, "{}", {}, backend::build_id()); }

/// Where nothing can be used, the reason is one sentence that names what is missing.
void what_is_missing_is_said(void **) {
  const base::Status status = load().status();
  assert_int_equal(static_cast<int>(status.code()), static_cast<int>(base::Code::unavailable));
  const std::string reason = status.root_cause()->message();
  assert_contains(reason.c_str(), vendor.c_str());
  assert_true(reason.find('\n') == std::string::npos);
  assert_non_null(status.error()->find_detail("plugin"));
  // Refused once more in the same words.
  assert_string_equal(load().status().to_string().c_str(), status.to_string().c_str());
}

void a_device_opens(void **) {
  const backend::BackendRef backend = assert_ok_value(load());
  assert_string_equal(backend->name().c_str(), name.c_str());
  assert_true(backend->device_count() >= 1);
  auto device = assert_ok_value(backend->open_device(0));
  assert_string_equal(device->name().c_str(), (name + ":0").c_str());
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  path = argv[1];
  name = argv[2];
  vendor = argv[3];
  const CMUnitTest without_gpu[] = {cmocka_unit_test(what_is_missing_is_said)};
  const CMUnitTest with_gpu[] = {cmocka_unit_test(a_device_opens)};
  return load().ok() ? cmocka_run_group_tests(with_gpu, nullptr, nullptr)
                     : cmocka_run_group_tests(without_gpu, nullptr, nullptr);
}

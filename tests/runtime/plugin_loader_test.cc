// SPDX-License-Identifier: Apache-2.0
//
// A plug-in is taken or refused with one sentence. argv: directory of the test's plug-ins, path of the reference
// plug-in.
#include "runtime/plugin_loader.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "runtime/backend_list.h"
#include "testing.h"

using namespace tutti::impl;

namespace {

std::string directory, reference_path;

base::Status load(const std::string &path) {
  return runtime::load_plugin(path, "{}", {}, backend::build_id()).status();
}

std::string bad(const char *name) { return directory + "/tutti-" + name + ".so"; }

/// One sentence: no line break, says what and where.
void check_refusal(const std::string &path, base::Code code, const char *needle) {
  const base::Status status = load(path);
  assert_int_equal(static_cast<int>(status.code()), static_cast<int>(code));
  assert_contains(status.message().c_str(), needle);
  assert_true(status.message().find('\n') == std::string::npos);
  assert_non_null(status.error()->find_detail("plugin"));
  assert_string_equal(status.error()->find_detail("plugin")->c_str(), path.c_str());
}

void a_good_plugin_is_taken(void **) {
  auto backend =
      assert_ok_value(runtime::load_plugin(reference_path, "{\"logical_devices\": 3}", {}, backend::build_id()));
  assert_string_equal(backend->name().c_str(), "reference");
  assert_int_equal(backend->device_count(), 3);
  auto device = assert_ok_value(backend->open_device(2));
  assert_string_equal(device->name().c_str(), "reference:2");
  assert_error_contains(backend->open_device(3), "3 device");
  // A second instance beside it, with other options.
  auto second = assert_ok_value(runtime::load_plugin(reference_path, "{}", {}, backend::build_id()));
  assert_int_equal(second->device_count(), 1);
}

void options_are_checked(void **) {
  assert_error_contains(runtime::load_plugin(reference_path, "{\"logical_device\": 3}", {}, backend::build_id()),
                        "logical_devices");
  assert_error_contains(runtime::load_plugin(reference_path, "{\"logical_devices\": -1}", {}, backend::build_id()),
                        "-1");
}

void bad_plugins_are_refused(void **) {
  check_refusal("tutti-reference.so", base::Code::invalid_argument, "not absolute");
  check_refusal(bad("missing"), base::Code::not_found, "there is no plug-in");
  check_refusal(bad("no_entry"), base::Code::unavailable, "does not export tutti_backend_entry");
  check_refusal(bad("version"), base::Code::unavailable, "version 2");
  check_refusal(bad("refuses"), base::Code::unavailable, "refuses");
  check_refusal(bad("build"), base::Code::unavailable, "another build");
  check_refusal(bad("short"), base::Code::unavailable, "16 bytes");
  check_refusal(bad("tables"), base::Code::unavailable, "lacks one of its tables");
  const std::string text = directory + "/tutti-text.so";
  std::ofstream(text) << "not a shared module";
  check_refusal(text, base::Code::unavailable, "cannot be loaded");
  // Half a library has headers, which tell of more than there is.
  std::ifstream whole(reference_path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(whole)), std::istreambuf_iterator<char>());
  const std::string half = directory + "/tutti-half.so";
  for (const size_t size : {bytes.size() / 2, size_t{4096}, size_t{100}, size_t{10}}) {
    std::ofstream(half, std::ios::binary) << bytes.substr(0, size);
    check_refusal(half, base::Code::unavailable, std::to_string(size).c_str());
  }
  assert_int_equal(::unlink(half.c_str()), 0);
  const std::string pipe = directory + "/tutti-pipe.so";
  ::unlink(pipe.c_str());
  assert_int_equal(mkfifo(pipe.c_str(), 0600), 0);
  check_refusal(pipe, base::Code::unavailable, "is a FIFO, expected a regular file");
  assert_int_equal(::unlink(pipe.c_str()), 0);
}

/// A table that ends after so many bytes; nothing behind them may be looked at.
template <typename Table>
const Table *cut(const Table *whole, size_t bytes, size_t told) {
  static Table table;
  std::memset(&table, 0xa5, sizeof(table));
  std::memcpy(&table, whole, bytes);
  table.struct_size = told;
  return &table;
}

tutti_backend_entry_function reference_entry() {
  void *const plugin = dlopen(reference_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  assert_non_null(plugin);
  return reinterpret_cast<tutti_backend_entry_function>(dlsym(plugin, TUTTI_BACKEND_ENTRY_NAME));
}

/// The reference backend as another project could have built it with the first headers: without a build id and with
/// what every table has.
const tutti_backend_api *shortest_entry(uint32_t version) {
  const auto least = [](const auto *table, size_t bytes) { return cut(table, bytes, bytes); };
  tutti_backend_api api = *reference_entry()(version);
  api.build_id = "";
  api.device = least(api.device, offsetof(tutti_device_table, available_bytes));
  api.buffer = least(api.buffer, offsetof(tutti_buffer_table, allocate_shared));
  api.stream = least(api.stream, offsetof(tutti_stream_table, event_create_timed));
  api.executable = least(api.executable, offsetof(tutti_executable_table, describe) + sizeof(void *));
  api.program = least(api.program, offsetof(tutti_program_table, set_arguments));
  return least(&api, offsetof(tutti_backend_api, transfer));
}

void tables_may_be_shorter(void **) {
  auto backend = assert_ok_value(backend::Backend::create(shortest_entry, "{}", {}, backend::build_id()));
  assert_true(!backend->has_timed_events() && !backend->records_streams() && !backend->holds_streams());
  assert_null(backend->transfer());
  assert_null(backend->collective());
  assert_int_equal(assert_ok_value(backend->describe_libraries()).size(), 0);
  auto device = assert_ok_value(backend->open_device(0));
  assert_true(assert_ok_value(device->available_bytes()) > 0);
  assert_ok(device->allocate(64, 64));
  assert_ok(device->allocate_shared(64, 64));
}

/// One with tables of a later release, in which fields were appended.
const tutti_backend_api *longer_entry(uint32_t version) {
  constexpr size_t kMore = 2 * sizeof(void *);
  const auto more = [](const auto *table) { return cut(table, sizeof(*table), sizeof(*table) + kMore); };
  tutti_backend_api api = *reference_entry()(version);
  api.device = more(api.device);
  api.buffer = more(api.buffer);
  api.stream = more(api.stream);
  api.executable = more(api.executable);
  api.program = more(api.program);
  return more(&api);
}

void tables_may_be_longer(void **) {
  auto backend = assert_ok_value(backend::Backend::create(longer_entry, "{}", {}, backend::build_id()));
  assert_ok(assert_ok_value(backend->open_device(0))->allocate(64, 64));
}

void names_become_paths(void **) {
  assert_error_contains(runtime::find_plugin("../evil"), "not the name");
  assert_error_contains(runtime::find_plugin(""), "not the name");
  setenv("TUTTI_PLUGIN_PATH", directory.c_str(), 1);
  assert_string_equal(assert_ok_value(runtime::find_plugin("no_entry")).c_str(), bad("no_entry").c_str());
  assert_error_contains(runtime::find_plugin("cuda"), "there is no plug-in tutti-cuda.so in " + directory);
  setenv("TUTTI_PLUGIN_PATH", "/nonexistent", 1);
  assert_error_contains(runtime::find_plugin("no_entry"), "in /nonexistent");
  // A folder that cannot be looked into may have it.
  const std::string loop = directory + "/loop";
  ::unlink(loop.c_str());
  assert_int_equal(symlink(loop.c_str(), loop.c_str()), 0);
  setenv("TUTTI_PLUGIN_PATH", loop.c_str(), 1);
  assert_error_contains(runtime::find_plugin("no_entry"), "in " + loop + " (cannot inspect");
  assert_int_equal(::unlink(loop.c_str()), 0);
  unsetenv("TUTTI_PLUGIN_PATH");
}

/// What was unpacked elsewhere than it was configured for finds its plug-ins: beside it, or in a folder beside it.
void plugins_are_found_beside_the_library(void **) {
  const std::string own = std::filesystem::canonical("/proc/self/exe").parent_path();
  const std::string folder = own + "/tutti/plugins-0.1";
  const std::vector<std::string> looked_in = runtime::plugin_directories();
  assert_int_equal(looked_in.size(), 3);
  assert_string_equal(looked_in[0].c_str(), own.c_str());
  assert_string_equal(looked_in[1].c_str(), folder.c_str());
  assert_contains(looked_in[2].c_str(), "tutti/plugins-0.1");

  std::filesystem::create_directories(folder);
  const std::string in_folder = folder + "/tutti-" + std::to_string(getpid()) + ".so";
  const std::string beside = own + "/tutti-" + std::to_string(getpid()) + ".so";
  std::ofstream(in_folder) << "text";
  assert_string_equal(assert_ok_value(runtime::find_plugin(std::to_string(getpid()))).c_str(), in_folder.c_str());
  std::ofstream(beside) << "text";
  assert_string_equal(assert_ok_value(runtime::find_plugin(std::to_string(getpid()))).c_str(), beside.c_str());
  std::filesystem::remove_all(own + "/tutti");
  std::filesystem::remove(beside);
  const std::string missing = "there is no plug-in tutti-nobody.so in " + own + " or " + folder + " or /";
  assert_error_contains(runtime::find_plugin("nobody"), missing);
}

void backends_open_by_name(void **) {
  for (const runtime::LinkedBackend &linked : runtime::linked_backends()) {
    auto backend = assert_ok_value(runtime::open_backend(linked.name, "{\"logical_devices\": 2}", {}));
    assert_true(backend->name() == linked.name);
    assert_int_equal(backend->device_count(), 2);
  }
  const auto is_built = [](std::string_view name) {
    return std::ranges::any_of(runtime::linked_backends(), [&](const auto &linked) { return linked.name == name; });
  };
  if (!is_built("cpu")) assert_error_contains(runtime::open_backend("cpu", "{}", {}), "was built without the backend");
  assert_error_contains(runtime::open_backend("referense", "{}", {}), "reference");
  setenv("TUTTI_PLUGIN_PATH", directory.c_str(), 1);
  assert_error_contains(runtime::open_backend("cuda", "{}", {}), "there is no plug-in");
  unsetenv("TUTTI_PLUGIN_PATH");
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  directory = argv[1];
  reference_path = argv[2];
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_good_plugin_is_taken),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(bad_plugins_are_refused),
      cmocka_unit_test(tables_may_be_shorter),
      cmocka_unit_test(tables_may_be_longer),
      cmocka_unit_test(names_become_paths),
      cmocka_unit_test(plugins_are_found_beside_the_library),
      cmocka_unit_test(backends_open_by_name),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

// SPDX-License-Identifier: Apache-2.0
//
// Executables let libraries look at what their relu does to a NaN, at every level, and the plan cache keeps the
// answers. The emulated GPU has a library for that (emulated_library.h).
//
// usage: relu_probes_test PLUG-IN
#include <cstdlib>
#include <filesystem>
#include <string>

#include "backend/cpu/step_models.h"
#include "base/file.h"
#include "base/temporary_directory.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace relu_probes_test {

using namespace tutti::impl;
using backend::Level;
using tutti::testing::TemporaryDirectory;

namespace {

const char *plugin = nullptr;

size_t count_of(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; ++count)
    at = text.find(part, at + 1);
  return count;
}

/// How many products with relu the library has of a network of two hidden layers.
size_t products_with_relu(const std::string &folder, Level level) {
  const auto model = assert_ok_value(tutti::testing::make_step_model("mlp", 8));
  const std::string options = base::concat("{\"plan_cache\": \"", folder.empty() ? "off" : folder, "\"}");
  const auto backend = assert_ok_value(runtime::open_backend(plugin, options, {}));
  const auto trainer = assert_ok_value(tutti::testing::StepTrainer::create(backend, model, 4, level, 0, 1, false));
  size_t count = 0;
  for (const std::string &report : trainer.reports())
    count += count_of(report, "\"emulated(3)\"");
  return count;
}

/// All texts of a folder.
std::string texts_of(const std::string &folder) {
  std::string texts;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    texts += assert_ok_value(base::read_file(entry.path().string(), 1 << 20));
  return texts;
}

void relu_is_computed_where_it_keeps_nan(void **) {
  for (const Level level : {Level::fast, Level::repeatable, Level::invariant}) {
    const TemporaryDirectory folder;
    assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", "relu", 1), 0);
    assert_int_equal(products_with_relu(folder.path(), level), 2);
    assert_int_equal(count_of(texts_of(folder.path()), "\"nan: emulated"), 2);
  }
}

void relu_is_left_alone_where_it_does_not(void **) {
  for (const Level level : {Level::fast, Level::repeatable, Level::invariant}) {
    const TemporaryDirectory folder;
    assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", "relu without nan", 1), 0);
    assert_int_equal(products_with_relu(folder.path(), level), 0);
    // That is an answer, too.
    assert_int_equal(count_of(texts_of(folder.path()), "\"nan: emulated"), 2);
    assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", "relu", 1), 0);
    assert_int_equal(products_with_relu(folder.path(), level), 0);
  }
}

}  // namespace

static int run_all(int argc, char **argv) {
  if (argc < 2) return 1;
  plugin = argv[1];
  const CMUnitTest tests[] = {
      cmocka_unit_test(relu_is_computed_where_it_keeps_nan),
      cmocka_unit_test(relu_is_left_alone_where_it_does_not),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace relu_probes_test

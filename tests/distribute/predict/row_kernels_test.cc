// SPDX-License-Identifier: Apache-2.0
//
// What predictions at level invariant are computed with on GPUs: no library, which chooses by the number of rows, and
// kernels that are compiled at run time for many rows with the bits of those for few. On the emulated GPU.
#include <cstdlib>

#include "distribute/predict_case.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace tutti::testing::row_kernels_test {

namespace backend = impl::backend;
using impl::distribute::PredictEngine;
using impl::distribute::PredictOptions;
using Engine = std::shared_ptr<PredictEngine>;
using backend::Level;

constexpr int64_t kFeatures = 4104;  // 8 x 513

static Engine open_engine_at(const Model &model, Level level, const char *backend_options) {
  const auto opened =
      assert_ok_value(impl::runtime::open_backend(std::getenv("TUTTI_TEST_BACKEND"), backend_options, {}));
  PredictOptions options;
  options.level = level;
  return open_engine(model, assert_ok_value(impl::distribute::Strategy::one_device({opened, 0})), options);
}

static std::string plan_of(const Engine &engine, int64_t rows) {
  return assert_ok_value(engine->plan(rows, 0, nullptr)).dump();
}

static void test_no_library(void **) {
  assert_int_equal(setenv("TUTTI_EMULATED_LIBRARY", "relu", 1), 0);
  NetworkCase network;
  network.relu = true;
  const Model model = assert_ok_value(impl::graph::predict_model(assert_ok_value(build_network(network))));
  for (const Level level : {Level::fast, Level::repeatable, Level::invariant}) {
    const std::string plan = plan_of(open_engine_at(model, level, "{\"plan_cache\": \"off\"}"), 8);
    assert_true((plan.find("\"emulated(3)\"") == std::string::npos) == (level == Level::invariant));
    if (level == Level::invariant) assert_contains(plan.c_str(), "simt_product(3)");
  }
  assert_int_equal(unsetenv("TUTTI_EMULATED_LIBRARY"), 0);
}

/// Reductions that are kernels of their own with what they read.
static Model reduced_trees() {
  GraphBuilder b;
  const impl::graph::Dim batch = GraphBuilder::batch();
  const ValueId x = b.unary("exp", b.feature("x", DType::f32, {batch, kFeatures}));
  b.set_output("lines", b.reduce_mean(b.unary("square", b.reshape(x, {batch, 8, 513})), {2}));
  b.set_output("packs", b.reduce_sum(b.unary("square", x), {1}));
  b.set_output("columns", b.reduce_mean(b.unary("square", b.reshape(x, {batch, 1026, 4})), {1}));
  return assert_ok_value(b.finish());
}

static std::vector<Tensor> run(const Engine &engine, int64_t rows) {
  return assert_ok_value(engine->run(std::vector<Tensor>{row_features(rows, kFeatures)}, nullptr));
}

static void test_generated_kernels(void **) {
  const Model model = reduced_trees();
  const auto open = [&](const char *kernels) {
    const std::string options =
        impl::base::concat("{\"plan_cache\": \"off\", \"generated_kernels\": \"", kernels, "\"}");
    return open_engine_at(model, Level::invariant, options.c_str());
  };
  const Engine generated = open("always"), interpreted = open("never");
  assert_contains(plan_of(generated, 1).c_str(), "generated reduction(");
  assert_null(strstr(plan_of(interpreted, 1).c_str(), "generated reduction("));
  const std::vector<Tensor> all = run(generated, 64);
  for (const int64_t rows : {1, 5, 23, 64}) {
    for (const Engine &engine : {generated, interpreted}) {
      const std::vector<Tensor> some = run(engine, rows);
      for (size_t output = 0; output < all.size(); ++output)
        assert_memory_equal(some[output].data(), all[output].data(), some[output].size_bytes());
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_no_library),
    cmocka_unit_test(test_generated_kernels),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::row_kernels_test

// SPDX-License-Identifier: Apache-2.0
//
// Reports of given spans, worked out by hand.
#include "estimator/profile/profile_report.h"

#include <cmath>
#include <vector>

#include "testing.h"

namespace profile_report_test {

namespace {

using namespace tutti::impl;
using base::Json;
using estimator::profile::KernelPlace;
using estimator::profile::Phase;
using estimator::profile::place_of;
using estimator::profile::profile_report;
using Row = base::Tracer::Row;

constexpr int64_t kMs = 1'000'000;

double number(const Json &json, const char *key) {
  const Json *const found = json.find(key);
  assert_non_null(found);
  return assert_ok_value(base::JsonReader(*found, key).as_double());
}
void assert_near(double wanted, double got) { assert_true(std::abs(wanted - got) < 1e-9); }

void assert_place(const char *name, const char *layer, Phase phase) {
  const KernelPlace place = place_of(name);
  assert_string_equal(place.layer.c_str(), layer);
  assert_true(place.phase == phase);
}

void kernels_belong_to_layers(void **) {
  assert_place("conv1/conv2d dnnl_direct:bb", "conv1", Phase::forward);
  assert_place("block/conv1/conv2d", "block/conv1", Phase::forward);
  // A chain of several nodes.
  assert_place("conv1/conv2d (norm1/batch_norm_training > conv1/conv2d) simd:batch_norm_apply > dnnl_direct:bb",
               "conv1", Phase::forward);
  assert_place("relu_2 elementwise(3)", "relu_2", Phase::forward);
  assert_place("gradient/block/conv1/conv2d/conv2d_input_gradient cudnn", "block/conv1", Phase::backward);
  assert_place("gradient/relu_2/mul", "relu_2", Phase::backward);
  assert_place("update/block/conv1/kernel/adam_update", "block/conv1", Phase::update);
  // Of several variables at once.
  assert_place("update/block/adam_update gpu x 3", "block", Phase::update);
  assert_place("update/adam_update gpu x 65", "adam_update", Phase::update);
  assert_place("", "", Phase::forward);
}

/// Two steps of 10 ms on a GPU: kernels of 6 and 8 ms, of which 2 overlap a copy; one before the steps. And two waits
/// that are not of these steps.
std::vector<Row> gpu_rows() {
  return {{"replica 0 on gpu:0",
           {{"wait", "input", 80 * kMs, 9 * kMs},
            {"wait", "input", 100 * kMs, 1 * kMs},
            {"step", "step", 100 * kMs, 10 * kMs},
            {"wait", "communication", 107 * kMs, 2 * kMs},
            {"step", "step", 110 * kMs, 10 * kMs},
            {"wait", "control word", 118 * kMs, 9 * kMs}},
           0},
          {"gpu:0",
           {{"kernel", "first/matmul lt", 90 * kMs, 5 * kMs},
            {"kernel", "first/matmul lt", 101 * kMs, 6 * kMs},
            {"copy", "outputs", 105 * kMs, 2 * kMs},
            {"kernel", "gradient/first/matmul/matmul lt", 111 * kMs, 5 * kMs},
            {"kernel", "update/first/kernel/sgd_update", 116 * kMs, 3 * kMs}},
           0}};
}

void a_report_has_devices_replicas_and_layers(void **) {
  const Json report = profile_report(gpu_rows());
  assert_near(0.02, number(report, "seconds"));
  assert_near(2, number(report, "steps"));
  const base::JsonArray &devices = report.find("devices")->array();
  assert_int_equal(devices.size(), 1);
  assert_string_equal(devices[0].find("device")->string().c_str(), "gpu:0");
  assert_near(0.7, number(devices[0], "utilisation"));
  assert_near(0.3, number(devices[0], "idle"));
  assert_near(3, number(devices[0], "kernels"));
  const base::JsonArray &replicas = report.find("replicas")->array();
  assert_int_equal(replicas.size(), 1);
  assert_near(10, number(replicas[0], "step_ms"));
  assert_near(0.5, number(replicas[0], "input_ms"));
  assert_near(1, number(replicas[0], "communication_ms"));
  assert_near(7, number(replicas[0], "compute_ms"));
  assert_near(1.5, number(replicas[0], "host_ms"));
  const base::JsonArray &layers = report.find("layers")->array();
  assert_int_equal(layers.size(), 1);
  assert_string_equal(layers[0].find("layer")->string().c_str(), "first");
  assert_near(3, number(layers[0], "forward_ms"));
  assert_near(2.5, number(layers[0], "backward_ms"));
  assert_near(1.5, number(layers[0], "update_ms"));
  assert_near(1, number(layers[0], "share"));
  const std::string &text = report.find("text")->string();
  assert_non_null(strstr(text.c_str(), "device gpu:0: busy 70.0 %, idle 30.0 %"));
  assert_non_null(strstr(text.c_str(), "first"));
}

void a_processor_is_device_and_replica(void **) {
  const std::vector<Row> rows = {{"cpu:0",
                                  {{"step", "step", 0, 10 * kMs},
                                   {"kernel", "a/x", 0, 2 * kMs},
                                   {"kernel", "b/x", 2 * kMs, 6 * kMs},
                                   {"wait", "communication", 8 * kMs, 2 * kMs}},
                                  0},
                                 {"reader", {{"data", "decode", 0, 50 * kMs}}, 0}};
  const Json report = profile_report(rows);
  assert_int_equal(report.find("devices")->array().size(), 1);
  assert_near(0.8, number(report.find("devices")->array()[0], "utilisation"));
  const base::JsonArray &replicas = report.find("replicas")->array();
  assert_int_equal(replicas.size(), 1);
  assert_near(8, number(replicas[0], "compute_ms"));
  assert_near(2, number(replicas[0], "communication_ms"));
  assert_near(0, number(replicas[0], "host_ms"));
  assert_string_equal(report.find("layers")->array()[0].find("layer")->string().c_str(), "b");
  assert_near(0.75, number(report.find("layers")->array()[0], "share"));
}

void what_was_forgotten_does_not_look_idle(void **) {
  std::vector<Row> rows = gpu_rows();
  rows[1].spans.erase(rows[1].spans.begin(), rows[1].spans.begin() + 3);
  rows[1].forgotten_count = 3;
  const Json report = profile_report(rows);
  // From 111 ms on: 8 of 9 ms, and no step is whole.
  assert_near(0.009, number(report, "seconds"));
  assert_near(8.0 / 9, number(report.find("devices")->array()[0], "utilisation"));
  assert_near(3, number(report, "forgotten"));
  assert_int_equal(report.find("replicas")->array().size(), 0);
}

void nothing_traced_is_a_report_too(void **) {
  const Json report = profile_report({});
  assert_near(0, number(report, "seconds"));
  assert_int_equal(report.find("devices")->array().size(), 0);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(kernels_belong_to_layers),          cmocka_unit_test(a_report_has_devices_replicas_and_layers),
      cmocka_unit_test(a_processor_is_device_and_replica), cmocka_unit_test(what_was_forgotten_does_not_look_idle),
      cmocka_unit_test(nothing_traced_is_a_report_too),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace profile_report_test

// SPDX-License-Identifier: Apache-2.0
//
// Whole training steps on the cpu backend against the reference backend: the same network, the same start, the same
// batch. After one step gradients agree; after a few the weights do.
#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/step_models.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace {

using tutti::impl::backend::Level;
using tutti::testing::StepModel;
using tutti::testing::StepTrainer;

StepTrainer make_trainer(const char *backend_name, const StepModel &model, int64_t batch, Level level = Level::fast) {
  auto backend = assert_ok_value(tutti::impl::runtime::open_backend(backend_name, "{}", {}));
  return assert_ok_value(StepTrainer::create(backend, model, batch, level));
}

/// Relative L2 distance.
double distance(const std::vector<float> &a, const std::vector<float> &b) {
  double difference = 0, norm = 1e-12;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(difference / norm);
}

/// One element that rounding moves across the kink of a relu near the end changes all gradients before it by the
/// inverse root of that layer's size: deep networks get a wider `limit`; single ops are held to rounding elsewhere.
void compare(const char *name, int64_t width_divisor, int64_t batch, Level level, double limit = 1e-3) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model(name, width_divisor));
  StepTrainer cpu = make_trainer("cpu", model, batch, level);
  StepTrainer reference = make_trainer("reference", model, batch, level);
  assert_ok(cpu.step());
  assert_ok(reference.step());
  if (std::fabs(cpu.loss() - reference.loss()) > 1e-4 * (1 + std::fabs(reference.loss()))) {
    fail_msg("model %s: loss %g, expected %g", name, cpu.loss(), reference.loss());
  }
  for (const auto &variable : model.variables) {
    const auto got = assert_ok_value(cpu.values("gradient/0/", variable.name));
    const auto expected = assert_ok_value(reference.values("gradient/0/", variable.name));
    const double off = distance(got, expected);
    if (!(off < limit)) fail_msg("model %s: gradient of %s is off by %g", name, variable.name.c_str(), off);
  }
}

void gradients_agree_with_reference(void **) {
  compare("A", 1, 64, Level::fast);
  compare("B", 8, 7, Level::fast);
  compare("C", 4, 3, Level::fast);
}

void convolutional_networks_agree_with_reference(void **) {
  compare("C", 1, 2, Level::fast);
  compare("C", 1, 2, Level::repeatable);
  compare("D", 1, 4, Level::fast, 5e-2);
  compare("E", 4, 8, Level::fast, 5e-2);
}

void odd_widths_agree_with_reference(void **) {
  compare("C", 32, 3, Level::fast);
  compare("D", 4, 8, Level::fast, 5e-2);
}

void training_repeats_bit_by_bit(void **) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model("C", 4));
  std::vector<std::vector<float>> first;
  for (int run = 0; run < 2; ++run) {
    StepTrainer trainer = make_trainer("cpu", model, 5, Level::repeatable);
    for (int i = 0; i < 3; ++i)
      assert_ok(trainer.step());
    for (size_t v = 0; v < model.variables.size(); ++v) {
      auto values = assert_ok_value(trainer.values("weight/", model.variables[v].name));
      if (run == 0) {
        first.push_back(values);
      } else {
        assert_memory_equal(first[v].data(), values.data(), values.size() * sizeof(float));
      }
    }
  }
}

void training_lowers_the_loss(void **) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model("C", 4));
  StepTrainer trainer = make_trainer("cpu", model, 16);
  assert_ok(trainer.step());
  const double before = trainer.loss();
  for (int i = 0; i < 30; ++i)
    assert_ok(trainer.step());
  assert_true(trainer.loss() < 0.7 * before);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(gradients_agree_with_reference),  cmocka_unit_test(convolutional_networks_agree_with_reference),
      cmocka_unit_test(odd_widths_agree_with_reference), cmocka_unit_test(training_repeats_bit_by_bit),
      cmocka_unit_test(training_lowers_the_loss),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

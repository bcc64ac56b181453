// SPDX-License-Identifier: Apache-2.0
//
// Whole training steps and predictions on a backend against the reference backend: the same network, the same start,
// the same batch. After one step gradients agree and running statistics do.
//
// usage: train_step_test [PLUG-IN]       the cpu backend, or a plug-in by absolute path: then smaller networks
#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/step_models.h"
#include "base/text.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace {

using tutti::impl::backend::Level;
using tutti::impl::base::concat;
using tutti::testing::StepModel;
using tutti::testing::StepPredictor;
using tutti::testing::StepTrainer;

/// What is compared with the reference backend.
std::string tested = "cpu";

StepTrainer make_trainer(const std::string &backend_name, const StepModel &model, int64_t batch,
                         Level level = Level::fast, bool keep_gradients = false) {
  auto backend = assert_ok_value(tutti::impl::runtime::open_backend(backend_name, "{}", {}));
  return assert_ok_value(StepTrainer::create(backend, model, batch, level, 0, 1, keep_gradients));
}

/// Relative L2 distance. The gradient of a bias of keys, on which no softmax depends, is nothing but rounding.
double distance(const std::vector<float> &a, const std::vector<float> &b) {
  double difference = 0, norm = 1e-8;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(difference / norm);
}

/// Where gradients and running statistics are farther from those of the reference backend than `limit`; "" = nowhere.
std::string difference(const char *name, int64_t width_divisor, int64_t batch, Level level, double limit) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model(name, width_divisor));
  StepTrainer cpu = make_trainer(tested, model, batch, level, true);
  StepTrainer reference = make_trainer("reference", model, batch, level, true);
  assert_ok(cpu.step());
  assert_ok(reference.step());
  if (std::fabs(cpu.loss() - reference.loss()) > 1e-4 * (1 + std::fabs(reference.loss()))) {
    fail_msg("model %s, batch %d: loss %g, expected %g", name, static_cast<int>(batch), cpu.loss(), reference.loss());
  }
  std::string far, all;  // where the difference begins is what tells its cause
  for (const auto &variable : model.variables) {
    const char *prefix = variable.trained ? "gradient/0/" : "weight/";
    const auto got = assert_ok_value(cpu.values(prefix, variable.name));
    const auto expected = assert_ok_value(reference.values(prefix, variable.name));
    const double off = distance(got, expected);
    all += concat(" ", prefix, variable.name, " ", off);
    if (far.empty() && !(off < limit)) far = concat(prefix, variable.name, " is off by ", off);
  }
  return far.empty() ? far : concat("model ", name, ", batch ", batch, ": ", far, "; in order:", all, "\n");
}

void compare(const char *name, int64_t width_divisor, int64_t batch, Level level) {
  const std::string far = difference(name, width_divisor, batch, level, 1e-3);
  if (!far.empty()) fail_msg("%s", far.c_str());
}

/// Of many relus rounding now and then moves an element across the kink of one, which changes all gradients before it,
/// by the inverse root of that layer's size and more where a gradient is a small sum of large terms. So one of three
/// batches must agree as if there were no kinks, to what rounding makes of such small sums: a fault is there in each.
void compare_deep(const char *name, int64_t width_divisor, int64_t batch, Level level) {
  std::string far;
  for (const int64_t more : {0, 1, 3}) {
    const std::string here = difference(name, width_divisor, batch + more, level, 1e-2);
    if (here.empty()) return;
    far += here;
  }
  fail_msg("%s", far.c_str());
}

/// What a step leaves: statistics and, of what is trained, Adam's first moment, which after one step is a tenth of the
/// gradient (the weight itself moves by the gradient's sign, and so by rounding where that is about zero).
void compare_state(StepTrainer &trainer, StepTrainer &expected_trainer, const StepModel &model, double limit) {
  for (const auto &variable : model.variables) {
    const std::string name = variable.name + (variable.trained ? "/m" : "");
    const char *prefix = variable.trained ? "slot/" : "weight/";
    const auto got = assert_ok_value(trainer.values(prefix, name));
    const auto expected = assert_ok_value(expected_trainer.values(prefix, name));
    const double off = distance(got, expected);
    if (!(off <= limit)) fail_msg("model %s: %s%s is off by %g", model.name.c_str(), prefix, name.c_str(), off);
  }
}

/// One program that updates variables while it goes back gives what two give, and its gradients are nowhere.
void compare_joined(const char *name, int64_t width_divisor, int64_t batch, Level level) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model(name, width_divisor));
  StepTrainer joined = make_trainer(tested, model, batch, level);
  StepTrainer apart = make_trainer(tested, model, batch, level, true);
  StepTrainer reference = make_trainer("reference", model, batch, level);
  StepTrainer reference_apart = make_trainer("reference", model, batch, level, true);
  assert_int_equal(joined.reports().size(), 1);
  assert_true(joined.state_bytes() < apart.state_bytes());
  for (StepTrainer *trainer : {&joined, &apart, &reference, &reference_apart})
    assert_ok(trainer->step());
  compare_state(joined, apart, model, 1e-6);
  compare_state(reference, reference_apart, model, 0);
  for (StepTrainer *trainer : {&reference, &reference_apart})
    assert_ok(trainer->step());
  compare_state(reference, reference_apart, model, 0);
  assert_true(reference.loss() == reference_apart.loss());
}

void one_program_trains_as_two(void **) {
  for (const Level level : {Level::fast, Level::repeatable}) {
    compare_joined("toy", 1, 64, level);
    compare_joined("mlp", 4, 33, level);
    compare_joined("cnn", 4, 3, level);
    compare_joined("resnet20", 4, 4, level);
    compare_joined("separable", 8, 4, level);
  }
}

std::vector<float> logits_of(const std::string &backend_name, const StepModel &model, int64_t batch, Level level,
                             bool folded) {
  auto backend = assert_ok_value(tutti::impl::runtime::open_backend(backend_name, "{}", {}));
  StepPredictor predictor = assert_ok_value(StepPredictor::create(backend, model, batch, level, 0, 1, folded));
  assert_ok(predictor.predict());
  auto first = predictor.logits();
  assert_ok(predictor.predict());
  const auto again = predictor.logits();
  assert_memory_equal(first.data(), again.data(), first.size() * sizeof(float));
  return first;
}

void compare_predictions(const char *name, int64_t width_divisor, int64_t batch, Level level = Level::fast) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model(name, width_divisor));
  // Normalisations are folded into the weights here and computed as they are there.
  const auto got = logits_of(tested, model, batch, level, true);
  const auto expected = logits_of("reference", model, batch, level, false);
  assert_int_equal(got.size(), batch * tutti::testing::elements_of(model.label) * model.classes);
  const double off = distance(got, expected);
  if (!(off < 2e-5)) fail_msg("model %s, batch %d: logits are off by %g", name, static_cast<int>(batch), off);
}

void gradients_agree_with_reference(void **) {
  compare("A", 1, 64, Level::fast);
  compare("B", 8, 7, Level::fast);
  compare("C", 4, 3, Level::fast);
}

void convolutional_networks_agree_with_reference(void **) {
  compare("C", 1, 2, Level::fast);
  compare("C", 1, 2, Level::repeatable);
  compare_deep("D", 1, 4, Level::fast);
  compare_deep("E", 4, 8, Level::fast);
}

void transformers_agree_with_reference(void **) {
  for (const Level level : {Level::fast, Level::repeatable}) {
    compare("transformer", 1, 5, level);
    compare("gpt2_tiny", 1, 3, level);
    compare_joined("gpt2_tiny", 2, 2, level);
  }
}

void recurrent_networks_agree_with_reference(void **) {
  for (const Level level : {Level::fast, Level::repeatable})
    compare("lstm", 16, 3, level);
  compare_joined("lstm", 32, 2, Level::fast);
}

void odd_widths_agree_with_reference(void **) {
  compare("C", 32, 3, Level::fast);
  compare_deep("D", 4, 8, Level::fast);
}

void deep_networks_agree_with_reference(void **) {
  compare_deep("resnet18", 8, 2, Level::fast);
  compare_deep("resnet18", 2, 1, Level::fast);
}

/// Images between a normalisation and a convolution of many channels are made again for the kernel's gradient, and take
/// no memory until then.
void images_made_again_agree_with_reference(void **) {
  for (const Level level : {Level::fast, Level::repeatable}) {
    compare("wide", 1, 3, level);
    compare_joined("wide", 1, 3, level);
    const StepModel model = assert_ok_value(tutti::testing::make_step_model("wide"));
    const StepTrainer trainer = make_trainer(tested, model, 3, level);
    int again = 0;
    for (const std::string &report : trainer.reports()) {
      for (size_t at = report.find("batch_norm_again"); at != std::string::npos; ++again)
        at = report.find("batch_norm_again", at + 1);
    }
    assert_int_equal(again, 2);
  }
}

void predictions_agree_with_reference(void **) {
  for (int64_t batch : {1, 5}) {
    compare_predictions("toy", 1, batch);
    compare_predictions("mlp", 4, batch);
    compare_predictions("cnn", 4, batch);
    compare_predictions("resnet20", 1, batch);
    compare_predictions("separable", 4, batch);
    compare_predictions("resnet18", 8, batch);
  }
  compare_predictions("resnet18", 2, 1);
  compare_predictions("resnet18", 2, 1, Level::repeatable);
  compare_predictions("resnet50", 8, 1);
  compare_predictions("gpt2_tiny", 1, 3);
}

void training_repeats_bit_by_bit(void **) {
  const StepModel model = assert_ok_value(tutti::testing::make_step_model("C", 4));
  std::vector<std::vector<float>> first;
  for (int run = 0; run < 2; ++run) {
    StepTrainer trainer = make_trainer(tested, model, 5, Level::repeatable);
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
  StepTrainer trainer = make_trainer(tested, model, 16);
  assert_ok(trainer.step());
  const double before = trainer.loss();
  for (int i = 0; i < 30; ++i)
    assert_ok(trainer.step());
  assert_true(trainer.loss() < 0.7 * before);
}

/// Networks that an emulated device runs in a few seconds.
void small_networks_agree_with_reference(void **) {
  for (const Level level : {Level::fast, Level::repeatable}) {
    compare("toy", 1, 33, level);
    compare("mlp", 8, 7, level);
    compare("cnn", 8, 3, level);
    compare_deep("resnet20", 8, 2, level);
    compare_deep("separable", 16, 2, level);
    compare("gpt2_tiny", 4, 2, level);
    compare_joined("toy", 1, 33, level);
    compare_joined("cnn", 8, 3, level);
    compare_joined("resnet20", 8, 2, level);
  }
}

void small_predictions_agree_with_reference(void **) {
  compare_predictions("toy", 1, 5);
  compare_predictions("cnn", 8, 3);
  compare_predictions("resnet20", 8, 2);
  compare_predictions("separable", 16, 2);
  compare_predictions("gpt2_tiny", 4, 2);
}

int run_on_plugin(const char *path) {
  tested = path;
  const auto opened = tutti::impl::runtime::open_backend(path, "{}", {});
  if (opened.code() == tutti::impl::base::Code::unavailable) {
    print_message("skipped: %s\n", opened.status().to_string().c_str());
    return 77;
  }
  const CMUnitTest tests[] = {
      cmocka_unit_test(small_networks_agree_with_reference),
      cmocka_unit_test(small_predictions_agree_with_reference),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

}  // namespace

static int run_all(int argc, char **argv) {
  if (argc > 1) return run_on_plugin(argv[1]);
  const CMUnitTest tests[] = {
      cmocka_unit_test(gradients_agree_with_reference),
      cmocka_unit_test(convolutional_networks_agree_with_reference),
      cmocka_unit_test(transformers_agree_with_reference),
      cmocka_unit_test(recurrent_networks_agree_with_reference),
      cmocka_unit_test(odd_widths_agree_with_reference),
      cmocka_unit_test(deep_networks_agree_with_reference),
      cmocka_unit_test(predictions_agree_with_reference),
      cmocka_unit_test(training_repeats_bit_by_bit),
      cmocka_unit_test(training_lowers_the_loss),
      cmocka_unit_test(one_program_trains_as_two),
      cmocka_unit_test(images_made_again_agree_with_reference),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

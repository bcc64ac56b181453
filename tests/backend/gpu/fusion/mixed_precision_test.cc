// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision on a GPU: whole training steps and predictions with the permission to round, against the reference
// backend in f32 and against the reference backend on the same rounded graph; bytes, kernels and bits of it.
//
// usage: mixed_precision_test PLUG-IN [PART PARTS]      each takes long on a GPU: every PARTS-th, from number PART on
#include <tutti/plugin/backend.h>

#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/step_models.h"
#include "graph/rewrite/rewrites.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace mixed_precision_test {

namespace {

using tutti::impl::backend::Level;
using tutti::testing::StepModel;
using tutti::testing::StepPredictor;
using tutti::testing::StepTrainer;
namespace graph = tutti::impl::graph;

using tutti::impl::tensor::DType;

/// A type of 16 bits that may be stored.
struct Half {
  DType dtype;
  int32_t flag;     ///< the permission
  double rounding;  ///< what one rounding to it changes at most, relatively
  double digits;    ///< 2^-9 over that
};
constexpr Half kBf16 = {DType::bf16, TUTTI_COMPILE_BF16_WHERE_FASTER, 0x1p-9, 1};
constexpr Half kF16 = {DType::f16, TUTTI_COMPILE_F16_WHERE_FASTER, 0x1p-12, 8};

std::string tested;

StepTrainer make_trainer(const std::string &backend_name, const StepModel &model, int64_t batch, int32_t flags,
                         bool keep_gradients = false, Level level = Level::fast) {
  auto backend = assert_ok_value(tutti::impl::runtime::open_backend(backend_name, "{}", {}));
  return assert_ok_value(StepTrainer::create(backend, model, batch, level, flags, 1, keep_gradients));
}

/// Of NVIDIA's.
bool has_library() { return tested.ends_with("tutti-cuda.so"); }

StepModel make_model(const char *name, int64_t width_divisor) {
  return assert_ok_value(tutti::testing::make_step_model(name, width_divisor));
}

/// The model as the backend rewrites it, for backends that do not.
StepModel mixed_model(StepModel model, DType half) {
  model.accumulate = assert_ok_value(graph::rewrite::mix_precision(model.accumulate, half));
  return model;
}

/// Relative L2 distance over all gradients.
double gradient_distance(const StepModel &model, const StepTrainer &got, const StepTrainer &expected) {
  double difference = 0, norm = 1e-12;
  for (const auto &variable : model.variables) {
    if (!variable.trained) continue;
    const auto a = assert_ok_value(got.values("gradient/0/", variable.name));
    const auto b = assert_ok_value(expected.values("gradient/0/", variable.name));
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      difference += (x - y) * (x - y);
      norm += y * y;
    }
  }
  return std::sqrt(difference / norm);
}

struct Case {
  const char *model;
  int64_t width_divisor, batch;
  /// By how many roundings the gradients may be off in L2. A step rounds each value that is stored: some ten times from
  /// the image to a gradient and as often from the loss back, in each of which errors add up as a random walk, so that
  /// sqrt(20) roundings are expected of a network of dense layers. Behind a relu a rounding moves a few elements across
  /// the kink, and each changes its gradient by all of it; normalisations over few rows divide small differences by
  /// small deviations. Networks of twenty normalised layers, made narrow here, are off by about a third for that.
  double roundings;
  /// The same between backends that round alike: sums in another order move one value in some thousand to the next
  /// number of 8 bits, and across a kink.
  double roundings_alike;
};

constexpr Case kCases[] = {
    {"toy", 1, 33, 8, 0.5},      {"mlp", 8, 16, 40, 0.5},       {"cnn", 8, 4, 20, 0.5},
    {"resnet20", 8, 4, 250, 40}, {"separable", 16, 4, 300, 40}, {"transformer", 2, 6, 8, 0.5},
    {"gpt2_tiny", 2, 3, 12, 5},  // kernels of attention round between its products, too
};

/// One step of each; how far the losses may differ, in roundings.
void compare_steps(const Case &one, const Half &half, const StepModel &expected_model, double limit,
                   double loss_limit) {
  const StepModel model = make_model(one.model, one.width_divisor);
  StepTrainer mixed = make_trainer(tested, model, one.batch, half.flag, true);
  StepTrainer expected = make_trainer("reference", expected_model, one.batch, 0, true);
  assert_ok(mixed.step());
  assert_ok(expected.step());
  const double off = gradient_distance(model, mixed, expected) / half.rounding;
  const double loss_off = std::fabs(mixed.loss() / expected.loss() - 1) / half.rounding;
  print_message("%s in %s: gradients are off by %.2f roundings, the loss by %.2f\n", one.model,
                std::string(name(half.dtype)).c_str(), off, loss_off);
  assert_true(off <= limit);
  assert_true(loss_off <= loss_limit);
}

void gradients_are_off_by_some_roundings(void **) {
  for (const Case &one : kCases)
    compare_steps(one, kBf16, make_model(one.model, one.width_divisor), one.roundings, 2);
}

/// How many elements cross a kink goes with a rounding, and what they change in L2 with the root of their number: less
/// than in bf16, but more in units of a rounding. Nothing scales the loss here: rows are few, gradients large.
void gradients_in_f16_are_off_by_some_roundings(void **) {
  for (const Case &one : kCases)
    compare_steps(one, kF16, make_model(one.model, one.width_divisor), one.roundings * std::sqrt(kF16.digits), 2);
}

void the_same_roundings_give_the_same_step(void **) {
  for (const Half &half : {kBf16, kF16}) {
    for (const Case &one : kCases) {
      const StepModel alike = mixed_model(make_model(one.model, one.width_divisor), half.dtype);
      // With more digits more values move, each by less: as many cross a kink, by as many smaller roundings. A library
      // rounds where it likes: biases before they are added, sums not before.
      const double limit = has_library() ? one.roundings * std::sqrt(half.digits) : one.roundings_alike * half.digits;
      compare_steps(one, half, alike, limit, has_library() ? 2 : 1);
    }
  }
}

/// On the same batch again and again.
void training_goes_as_in_f32(void **) {
  for (const Case &one : {Case{"mlp", 8, 32, 0, 0}, Case{"transformer", 4, 16, 0, 0}, Case{"resnet20", 8, 4, 0, 0}}) {
    const StepModel model = make_model(one.model, one.width_divisor);
    StepTrainer plain = make_trainer(tested, model, one.batch, 0);
    StepTrainer mixed = make_trainer(tested, model, one.batch, TUTTI_COMPILE_BF16_WHERE_FASTER);
    assert_ok(plain.step());
    assert_ok(mixed.step());
    const double start = plain.loss();
    for (int i = 0; i < 25; ++i) {
      assert_ok(plain.step());
      assert_ok(mixed.step());
    }
    print_message("%s: the loss goes from %g to %g in f32, to %g in mixed precision\n", one.model, start, plain.loss(),
                  mixed.loss());
    assert_true(plain.loss() < 0.7 * start);
    // What was learnt is the same within a twentieth.
    assert_true(std::fabs(mixed.loss() - plain.loss()) < 0.05 * (start - plain.loss()));
  }
}

void check_repeats(Level level) {
  const StepModel model = make_model("resnet20", 8);
  std::vector<std::vector<float>> first;
  for (int run = 0; run < 2; ++run) {
    StepTrainer trainer = make_trainer(tested, model, 4, TUTTI_COMPILE_BF16_WHERE_FASTER, false, level);
    for (int i = 0; i < 3; ++i)
      assert_ok(trainer.step());
    for (size_t v = 0; v < model.variables.size(); ++v) {
      const auto values = assert_ok_value(trainer.values("weight/", model.variables[v].name));
      if (run == 0) {
        first.push_back(values);
      } else {
        assert_memory_equal(first[v].data(), values.data(), values.size() * sizeof(float));
      }
    }
  }
}

/// Libraries may add in any order at level fast, and promise that nowhere.
void steps_repeat_bit_by_bit(void **) {
  check_repeats(Level::repeatable);
  if (!has_library()) check_repeats(Level::fast);
}

/// The permission counts at level fast only.
void other_levels_round_nothing(void **) {
  const StepModel model = make_model("cnn", 8);
  StepTrainer plain = make_trainer(tested, model, 3, 0, true, Level::repeatable);
  StepTrainer allowed = make_trainer(tested, model, 3, TUTTI_COMPILE_BF16_WHERE_FASTER, true, Level::repeatable);
  assert_ok(plain.step());
  assert_ok(allowed.step());
  assert_true(gradient_distance(model, allowed, plain) == 0);
}

void compare_predictions(const char *model_name, const Half &half) {
  const StepModel model = make_model(model_name, 8);
  std::vector<std::vector<float>> logits;
  for (const bool is_mixed : {true, false}) {
    auto backend = assert_ok_value(tutti::impl::runtime::open_backend(is_mixed ? tested : "reference", "{}", {}));
    StepPredictor predictor =
        assert_ok_value(StepPredictor::create(backend, model, 5, Level::fast, is_mixed ? half.flag : 0));
    assert_ok(predictor.predict());
    logits.push_back(predictor.logits());
  }
  double difference = 0, norm = 1e-12;
  for (size_t i = 0; i < logits[0].size(); ++i) {
    difference += std::pow(static_cast<double>(logits[0][i]) - static_cast<double>(logits[1][i]), 2);
    norm += std::pow(static_cast<double>(logits[1][i]), 2);
  }
  const double off = std::sqrt(difference / norm) / half.rounding;
  print_message("%s in %s: logits are off by %.2f roundings\n", model_name, std::string(name(half.dtype)).c_str(), off);
  assert_true(off > 0.01 && off < 16);
}

void predictions_are_off_by_a_few_roundings(void **) {
  for (const char *name : {"mlp", "cnn", "resnet20", "transformer", "gpt2_tiny"}) {
    for (const Half &half : {kBf16, kF16})
      compare_predictions(name, half);
  }
}

/// Launches of the step's program: kernels that it lists.
size_t count_kernels(const StepTrainer &trainer) {
  size_t count = 0;
  for (const std::string &report : trainer.reports()) {
    for (size_t at = report.find("\"kernel\":"); at != std::string::npos; ++count)
      at = report.find("\"kernel\":", at + 1);
  }
  return count;
}

struct Budget {
  const char *model;
  double bytes;  ///< of the workspace, as a part of what f32 takes
};

/// Activations of the convolutional network are nearly all of its workspace. The perceptron has hardly any: it pays for
/// copies of the weights.
void activations_take_half_the_memory(void **) {
  for (const auto &[name, bytes] :
       {Budget{"mlp", 1.5}, Budget{"resnet20", 0.55}, Budget{"transformer", 0.62}, Budget{"gpt2_tiny", 0.6}}) {
    const StepModel model = make_model(name, 1);
    const StepTrainer plain = make_trainer(tested, model, 32, 0);
    const StepTrainer mixed = make_trainer(tested, model, 32, TUTTI_COMPILE_BF16_WHERE_FASTER);
    const StepTrainer f16 = make_trainer(tested, model, 32, TUTTI_COMPILE_F16_WHERE_FASTER);
    assert_int_equal(f16.workspace_bytes(), mixed.workspace_bytes());
    print_message("%s: %zu kernels and %lld bytes of workspace in f32, %zu and %lld in mixed precision\n", name,
                  count_kernels(plain), static_cast<long long>(plain.workspace_bytes()), count_kernels(mixed),
                  static_cast<long long>(mixed.workspace_bytes()));
    assert_true(static_cast<double>(mixed.workspace_bytes()) < bytes * static_cast<double>(plain.workspace_bytes()));
  }
}

}  // namespace

static int run_all(int argc, char **argv) {
  if (argc != 2 && argc != 4) return 2;
  const size_t part = argc == 4 ? std::stoul(argv[2]) : 0, parts = argc == 4 ? std::stoul(argv[3]) : 1;
  if (part >= parts) return 2;
  tested = argv[1];
  const auto opened = tutti::impl::runtime::open_backend(tested, "{}", {});
  if (opened.code() == tutti::impl::base::Code::unavailable) {
    print_message("skipped: %s\n", opened.status().to_string().c_str());
    return 77;
  }
  const std::vector<CMUnitTest> tests = {
      cmocka_unit_test(gradients_are_off_by_some_roundings),
      cmocka_unit_test(gradients_in_f16_are_off_by_some_roundings),
      cmocka_unit_test(the_same_roundings_give_the_same_step),
      cmocka_unit_test(training_goes_as_in_f32),
      cmocka_unit_test(steps_repeat_bit_by_bit),
      cmocka_unit_test(other_levels_round_nothing),
      cmocka_unit_test(predictions_are_off_by_a_few_roundings),
      cmocka_unit_test(activations_take_half_the_memory),
  };
  std::vector<CMUnitTest> asked;
  for (size_t number = part; number < tests.size(); number += parts)
    asked.push_back(tests[number]);
  if (asked.empty()) return 2;
  return _cmocka_run_group_tests("mixed_precision", asked.data(), asked.size(), nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace mixed_precision_test

// SPDX-License-Identifier: Apache-2.0
//
// The dynamic scale of a loss: which bits it leaves alone, what a step with gradients that are not finite changes, how
// the scale goes down and up, alike on all replicas and after a resumption; and on GPUs, what training in f16 is with
// it and without.
#include "distribute/plan/loss_scale.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::loss_scale_test {

namespace base = impl::base;
namespace graph = impl::graph;
using impl::backend::Level;
using impl::backend::Precision;
using impl::distribute::LossScaleState;
using impl::distribute::Lowering;
using impl::distribute::RunReport;

constexpr int64_t kRows = 24, kFeatures = 6, kHidden = 8, kClasses = 3;

struct Network {
  /// Of the mean over the rows; the learning rate is divided by it, so that in exact arithmetic it changes nothing.
  double loss_factor = 1;
  const char *optimizer = "sgd_update";
  double learning_rate = 0.1;
  bool has_norm = false;  ///< with moving statistics
  bool has_kink = false;  ///< the loss is finite, a gradient of it never
  bool own_gradients = false;
  double clip = 0;
  bool has_averages = false;
  double detour = 1;  ///< gradients are multiplied by this on their way, and divided by it again
};

static ValueId dense(GraphBuilder &b, const std::string &name, ValueId x, int64_t inputs, int64_t outputs) {
  b.push_scope(name);
  const ValueId kernel = b.variable("kernel", DType::f32, {inputs, outputs}, {"glorot_uniform", {}});
  const ValueId bias = b.variable("bias", DType::f32, {outputs}, {"zeros", {}});
  b.pop_scope();
  return b.add(b.matmul(x, kernel), bias);
}

static ValueId normalised(GraphBuilder &b, ValueId x) {
  const ValueId scale = b.variable("norm/scale", DType::f32, {kHidden}, {"ones", {}});
  const ValueId offset = b.variable("norm/offset", DType::f32, {kHidden}, {"zeros", {}});
  graph::VariableOptions moving;
  moving.trainable = false;
  moving.aggregation = graph::Aggregation::aggregated;
  const ValueId mean = b.variable("norm/mean", DType::f32, {kHidden}, {"zeros", {}}, moving);
  const auto out = b.op_n("batch_norm_training", {x, scale, offset}, {{"statistics", std::string("global")}}, 3);
  b.assign("norm/mean", b.add(b.scale(mean, 0.9), b.scale(out[1], 0.1)));
  return out[0];
}

static Model build(const Network &network) {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), kFeatures});
  const ValueId y = b.label("y", DType::i32, {GraphBuilder::batch()});
  ValueId hidden = dense(b, "first", x, kFeatures, kHidden);
  if (network.has_norm) hidden = normalised(b, hidden);
  const ValueId logits = dense(b, "second", b.unary("tanh", hidden), kHidden, kClasses);
  b.set_output("logits", logits);
  const ValueId same = b.scale(b.scale(logits, 1 / network.detour), network.detour);
  ValueId loss = b.scale(b.reduce_mean(b.op("sparse_softmax_cross_entropy", {same, y})), network.loss_factor);
  const ValueId bias = b.find_variable("first/bias");  // of zeros: 0 / 0 is no number
  if (network.has_kink) loss = b.add(loss, b.unary("sqrt", b.reduce_sum(b.unary("square", bias))));
  b.set_loss(loss);
  graph::TrainSpec train;
  train.optimizer.op = network.optimizer;
  const bool is_adam = train.optimizer.op == "adam_update";
  train.optimizer.learning_rate =
      b.constant(is_adam ? network.learning_rate : network.learning_rate / network.loss_factor, DType::f32);
  if (is_adam) train.optimizer.slots = {{"m", 0}, {"v", 0}};
  if (network.clip > 0) train.clip_global_norm = network.clip;
  if (network.has_averages) train.average = {.decay = 0.9, .has_ramp = true, .start = 1};
  if (network.own_gradients) train.gradients = {{"first/bias", b.scale(bias, 0.5)}};
  b.set_train(std::move(train));
  return assert_ok_value(b.finish());
}

static TrainerOptions with_scale(int64_t first) {
  TrainerOptions options;
  options.level = Level::repeatable;
  options.loss_scale = {.is_on = true, .first = first, .largest = first, .steps_to_double = 1000};
  return options;
}

/// On one batch of rows, again and again.
static std::unique_ptr<Trainer> open_trainer(const Network &network, const TrainerOptions &options,
                                             int32_t replicas = 1) {
  auto trainer = assert_ok_value(Trainer::open(build(network), assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  const auto rows = make_endless_batch(kRows, kFeatures, kClasses, DType::f32);
  assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
  return trainer;
}

using Values = std::vector<std::vector<float>>;

/// All variables and slots.
static Values values_of(Trainer &trainer) {
  Values all;
  for (const auto &entry : trainer.plan().entries()) {
    const std::string_view name = entry.name;
    const size_t cut = name.find('/') + 1;
    if (!name.starts_with("weight/") && !name.starts_with("slot/")) continue;
    const Tensor value = assert_ok_value(trainer.get_variable(name.substr(cut)));
    all.emplace_back(value.data_as<float>(), value.data_as<float>() + value.elements());
  }
  return all;
}

static std::vector<double> numbers_of(const Values &values) {
  std::vector<double> numbers;
  for (const auto &one : values)
    numbers.insert(numbers.end(), one.begin(), one.end());
  return numbers;
}

static double reported(const Trainer &trainer, std::string_view name) {
  for (const auto &number : assert_ok_value(trainer.report())) {
    if (number.name == name) return number.value;
  }
  return -1;
}

/// The smallest scale with which gradients of overflowing() are too large for f32.
constexpr int64_t kTooLarge = int64_t{1} << 40;
constexpr int32_t kSkips = 3;

/// Skips kSkips steps where the first scale is kTooLarge << (kSkips - 1).
static Network overflowing(const char *optimizer = "sgd_update") {
  Network network;
  network.optimizer = optimizer;
  // That of the logits of the worst of 24 rows is 0.6 / 24 to 0.8 / 24: times this and 2^40 it is beyond 2^128.
  network.detour = 0x1.84p93;
  return network;
}

// ---- which bits stay ----

static void test_a_power_of_two_changes_no_bit(void **) {
  Network plain, adam, normed, clipped;
  adam.optimizer = "adam_update";
  normed.has_norm = true;
  clipped.clip = 0.1;
  for (const Network &network : {plain, adam, normed, clipped}) {
    for (const int32_t replicas : {1, 2, 3}) {
      for (const int32_t accumulation : {1, 2}) {
        if (network.has_norm && accumulation > 1) continue;
        if (is_test_backend_slow() && replicas == 2) continue;
        Values expected;
        std::vector<double> losses;
        for (const int64_t scale : {int64_t{1}, int64_t{1} << 16}) {
          TrainerOptions options = with_scale(scale);
          options.accumulation = accumulation;
          const auto trainer = open_trainer(network, options, replicas);
          assert_ok(trainer->run(5, nullptr));
          assert_true(assert_ok_value(trainer->replicas_are_identical()));
          assert_true(reported(*trainer, "loss_scale") == static_cast<double>(scale));
          if (scale == 1) {
            expected = values_of(*trainer);
            losses = trainer->loss_history();
          }
          assert_true(values_of(*trainer) == expected);
          assert_true(trainer->loss_history() == losses);
        }
        TrainerOptions options;
        options.level = Level::repeatable;
        options.accumulation = accumulation;
        const auto without = open_trainer(network, options, replicas);
        assert_ok(without->run(5, nullptr));
        assert_true(without->loss_scale().scale == 0 && reported(*without, "loss_scale") == -1);
        assert_true(relative_difference(numbers_of(values_of(*without)), numbers_of(expected)) < 1e-5);
      }
    }
  }
}

static void test_gradients_are_read_without_it(void **) {
  for (const int32_t replicas : {1, 2}) {
    std::vector<float> gradients[2];
    for (const int64_t scale : {1, 65536}) {
      TrainerOptions options = with_scale(scale);
      options.keep_gradients = true;
      const auto trainer = open_trainer({}, options, replicas);
      assert_ok(trainer->run(2, nullptr));
      const Tensor gradient = assert_ok_value(trainer->gradient("first/kernel"));
      gradients[scale == 1 ? 0 : 1].assign(gradient.data_as<float>(), gradient.data_as<float>() + gradient.elements());
    }
    assert_true(gradients[0] == gradients[1]);
    assert_true(gradients[0][0] != 0);
  }
}

// ---- steps that are skipped ----

static void test_a_skipped_step_changes_nothing(void **) {
  for (const int32_t replicas : {1, 2, 3}) {
    Network network = overflowing("adam_update");
    network.has_norm = true;
    const auto trainer = open_trainer(network, with_scale(kTooLarge << 4), replicas);
    const Values before = values_of(*trainer);
    int32_t skipped = 0;
    for (int64_t scale = kTooLarge << 4;; scale /= 2) {
      const RunReport report = assert_ok_value(trainer->run(1, nullptr));
      assert_true(std::isfinite(report.loss));
      assert_true(reported(*trainer, "loss_scale") == static_cast<double>(scale));
      if (report.skipped_steps == 0) break;
      assert_int_equal(report.step, ++skipped);
      assert_true(values_of(*trainer) == before);
      assert_true(reported(*trainer, "skipped_steps") == skipped);
      assert_true(trainer->loss_scale() == (LossScaleState{scale / 2, 0, skipped}));
    }
    assert_true(values_of(*trainer) != before);
    assert_true(skipped >= 5 && skipped < 10);
    assert_int_equal(trainer->counters().skipped_steps, skipped);
    assert_int_equal(trainer->counters().steps, skipped + 1);
    assert_true(assert_ok_value(trainer->replicas_are_identical()));
  }
}

/// Behind skipped steps all goes on as if they had not been, the count of updates of Adam among it.
static void test_training_goes_on_behind_skipped_steps(void **) {
  for (const char *const optimizer : {"sgd_update", "adam_update"}) {
    for (const int32_t replicas : {1, 3}) {
      for (const int32_t accumulation : {1, 2}) {
        TrainerOptions options = with_scale(kTooLarge << (kSkips - 1));
        options.accumulation = accumulation;
        Network network = overflowing(optimizer);
        network.has_averages = true;  // which skipped steps leave alone, too
        const auto skips = open_trainer(network, options, replicas);
        const int32_t skipped = accumulation == 1 ? kSkips : kSkips - 1;  // a row has half the weight
        assert_int_equal(assert_ok_value(skips->run(skipped + 4, nullptr)).skipped_steps, skipped);
        options.loss_scale.first = 1;
        const auto never = open_trainer(network, options, replicas);
        assert_int_equal(assert_ok_value(never->run(4, nullptr)).skipped_steps, 0);
        assert_true(values_of(*skips) == values_of(*never));
        std::vector<double> losses = skips->loss_history();
        losses.erase(losses.begin(), losses.begin() + skipped);
        assert_true(losses == never->loss_history());
      }
    }
  }
}

/// At scale 1 there is nothing to try any more, and a run afterwards meets the same.
static void test_what_is_never_finite_is_an_error(void **) {
  Network network;
  network.has_kink = true;
  for (const int32_t replicas : {1, 2}) {
    const auto trainer = open_trainer(network, with_scale(4), replicas);
    const Values before = values_of(*trainer);
    const auto report = trainer->run(10, nullptr);
    assert_int_equal(static_cast<int>(report.code()), static_cast<int>(base::Code::out_of_range));
    assert_error_contains(report.status(),
                          "step 3: the loss, a gradient or a learning rate set by the host is not finite");
    assert_error_contains(report.status(), "the weights keep the values of step 2");
    assert_true(trainer->loss_scale() == (LossScaleState{1, 0, 2}));
    assert_int_equal(trainer->counters().skipped_steps, 2);
    assert_true(values_of(*trainer) == before);
  }
}

static void test_a_loss_that_is_not_finite_is_an_error(void **) {
  Network network;
  network.loss_factor = INFINITY;
  const auto trainer = open_trainer(network, with_scale(1024));
  assert_error_contains(trainer->run(1, nullptr).status(),
                        "step 1: the loss, a gradient or a learning rate set by the host is not finite");
  assert_true(trainer->loss_scale() == (LossScaleState{1024, 0, 0}));
}

static void test_it_doubles_after_good_steps(void **) {
  TrainerOptions options = with_scale(4);
  options.loss_scale.largest = 16;
  options.loss_scale.steps_to_double = 3;
  const auto trainer = open_trainer({}, options, 2);
  const int64_t scales[] = {4, 4, 8, 8, 8, 16, 16, 16, 16, 16};  // of the next step
  for (size_t i = 0; i < std::size(scales); ++i) {
    assert_ok(trainer->run(1, nullptr));
    assert_int_equal(trainer->loss_scale().scale, scales[i]);
    assert_int_equal(trainer->loss_scale().good_steps, (i + 1) % 3);
  }
  assert_true(reported(*trainer, "loss_scale") == 16);
  // In one run, too; what is larger from the beginning is left so.
  options.loss_scale.first = 32;
  const auto large = open_trainer({}, options);
  assert_ok(large->run(7, nullptr));
  assert_true(large->loss_scale() == (LossScaleState{32, 1, 0}));
}

// ---- replicas and resumption ----

static void test_replicas_and_lowerings_agree(void **) {
  Values expected;
  for (const int32_t replicas : {1, 2, 3}) {
    for (const Lowering lowering : {Lowering::automatic, Lowering::replicated}) {
      TrainerOptions options = with_scale(kTooLarge << 1);
      options.loss_scale.steps_to_double = 2;
      options.lowering = lowering;
      const auto trainer = open_trainer(overflowing(), options, replicas);
      assert_int_equal(assert_ok_value(trainer->run(8, nullptr)).skipped_steps, 4);
      assert_true(trainer->loss_scale() == (LossScaleState{kTooLarge >> 1, 0, 4}));
      assert_true(assert_ok_value(trainer->replicas_are_identical()));
      if (expected.empty()) expected = values_of(*trainer);
      assert_true(relative_difference(numbers_of(values_of(*trainer)), numbers_of(expected)) < 1e-5);
    }
  }
}

static void test_it_is_resumed(void **) {
  TrainerOptions options = with_scale(kTooLarge << 1);
  options.loss_scale.steps_to_double = 3;
  Network network = overflowing("adam_update");
  network.has_averages = true;
  for (const int64_t steps : {0, 1, 2, 3, 5, 6}) {
    const auto whole = open_trainer(network, options, 2);
    const auto first = open_trainer(network, options, 2);
    const auto second = open_trainer(network, options, 2);
    assert_ok(whole->run(12, nullptr));
    if (steps > 0) assert_ok(first->run(steps, nullptr));
    assert_ok(second->restore(*assert_ok_value(first->publish_weights(true))));
    assert_int_equal(second->loss_scale().skipped_steps, 0);
    second->set_loss_scale(first->loss_scale());
    assert_ok(second->run(12 - steps, nullptr));
    assert_true(values_of(*second) == values_of(*whole));
    assert_true(second->loss_scale() == whole->loss_scale());
    assert_true(whole->loss_scale().skipped_steps > 2);
  }
  // What has no scale takes none, and what has one keeps it.
  options.loss_scale.is_on = false;
  const auto without = open_trainer({}, options);
  without->set_loss_scale({8, 1, 2});
  assert_true(without->loss_scale() == LossScaleState());
  const auto with = open_trainer({}, with_scale(8));
  with->set_loss_scale({});
  assert_true(with->loss_scale() == (LossScaleState{8, 0, 0}));
}

// ---- f16 ----

static TrainerOptions in_f16() {
  TrainerOptions options;
  options.precision = Precision::f16_where_faster;
  return options;
}

static bool is_gpu() { return is_test_backend_slow(); }
static bool is_cuda() {
  const char *const backend = std::getenv("TUTTI_TEST_BACKEND");
  return backend != nullptr && std::string_view(backend).ends_with("tutti-cuda.so");
}

static void test_processors_train_as_in_f32(void **) {
  if (is_gpu()) test_skip();
  const auto half = open_trainer({}, in_f16(), 2), full = open_trainer({}, {}, 2);
  assert_ok(half->run(4, nullptr));
  assert_ok(full->run(4, nullptr));
  const char *const backend = std::getenv("TUTTI_TEST_BACKEND");
  if (backend == nullptr || (strcmp(backend, "deferred") != 0 && strcmp(backend, "separate") != 0))
    assert_true(half->loss_scale() == LossScaleState());
  assert_true(relative_difference(numbers_of(values_of(*half)), numbers_of(values_of(*full))) < 1e-6);
}

/// How far the weights of one training have gone from where they were, and how far those of two are apart.
struct Distance {
  double gone = 0, apart = 0;
};

static Distance distance_after(int64_t steps, Trainer &tested, Trainer &expected) {
  const std::vector<double> start = numbers_of(values_of(expected));
  assert_ok(tested.run(steps, nullptr));
  assert_ok(expected.run(steps, nullptr));
  const std::vector<double> a = numbers_of(values_of(tested)), b = numbers_of(values_of(expected));
  Distance distance;
  for (size_t i = 0; i < a.size(); ++i) {
    distance.gone += (b[i] - start[i]) * (b[i] - start[i]);
    distance.apart += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return {std::sqrt(distance.gone), std::sqrt(distance.apart)};
}

/// Gradients of about 2^-31: f16 has nothing below 2^-24.
static void test_gradients_vanish_without_it(void **) {
  if (!is_gpu()) test_skip();
  Network network;
  network.loss_factor = 0x1p-28;
  for (const int32_t replicas : {1, 2}) {
    for (const int32_t accumulation : {1, 2}) {
      TrainerOptions options = in_f16(), exact;
      options.accumulation = exact.accumulation = accumulation;
      options.loss_scale.first = int64_t{1} << 24;
      const auto scaled = open_trainer(network, options, replicas), full = open_trainer(network, exact, replicas);
      const Distance near = distance_after(12, *scaled, *full);
      std::printf("%d replicas: gone %g, off by %g\n", replicas, near.gone, near.apart);
      assert_true(near.apart < 0.02 * near.gone);
      assert_int_equal(scaled->loss_scale().skipped_steps, 0);
      assert_true(assert_ok_value(scaled->replicas_are_identical()));
      options.loss_scale.first = options.loss_scale.largest = 1;
      const auto plain = open_trainer(network, options, replicas), again = open_trainer(network, exact, replicas);
      assert_true(distance_after(12, *plain, *again).apart > 0.5 * near.gone);
    }
  }
}

/// The sum of gradients of a batch is too large for f16 at 2^16.
static void test_gradients_overflow_until_it_is_small(void **) {
  if (!is_gpu()) test_skip();
  Network network;
  network.loss_factor = 64;
  network.optimizer = "adam_update";
  network.learning_rate = 0.02;
  for (const int32_t replicas : {1, 2, 3}) {
    const auto scaled = open_trainer(network, in_f16(), replicas), full = open_trainer(network, {}, replicas);
    const Values before = values_of(*scaled);
    assert_int_equal(scaled->loss_scale().scale, 65536);
    int32_t skipped = 0;
    while (assert_ok_value(scaled->run(1, nullptr)).skipped_steps > 0) {
      assert_int_equal(scaled->loss_scale().scale, 65536 >> ++skipped);
      assert_true(values_of(*scaled) == before);
    }
    assert_true(skipped > 0 && skipped < 12);
    assert_true(values_of(*scaled) != before);
    assert_ok(full->run(1, nullptr));
    const Distance near = distance_after(10, *scaled, *full);
    std::printf("%d replicas: %d steps skipped; gone %g, off by %g\n", replicas, skipped, near.gone, near.apart);
    assert_true(near.apart < 0.05 * near.gone);
    assert_int_equal(scaled->counters().skipped_steps, skipped);
    assert_true(assert_ok_value(scaled->replicas_are_identical()));
  }
}

/// What the model computes as its gradients cannot be scaled: f16 is not used.
static void test_gradients_of_the_model_are_not_scaled(void **) {
  Network network;
  network.own_gradients = true;
  TrainerOptions options = in_f16();
  options.loss_scale.is_on = true;
  const auto trainer = open_trainer(network, options), full = open_trainer(network, {});
  assert_ok(trainer->run(3, nullptr));
  assert_ok(full->run(3, nullptr));
  assert_true(trainer->loss_scale() == LossScaleState());
  if (!is_gpu()) return;
  const Values values = values_of(*trainer), expected = values_of(*full);
  const double apart = relative_difference(numbers_of(values), numbers_of(expected));
  if (values != expected) print_message("weights are off by %g\n", apart);
  // Level fast promises no bits where a library adds up.
  if (is_cuda()) return assert_true(apart < 1e-5);
  assert_true(values == expected && trainer->loss_history() == full->loss_history());
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_power_of_two_changes_no_bit),
    cmocka_unit_test(test_gradients_are_read_without_it),
    cmocka_unit_test(test_a_skipped_step_changes_nothing),
    cmocka_unit_test(test_training_goes_on_behind_skipped_steps),
    cmocka_unit_test(test_what_is_never_finite_is_an_error),
    cmocka_unit_test(test_a_loss_that_is_not_finite_is_an_error),
    cmocka_unit_test(test_it_doubles_after_good_steps),
    cmocka_unit_test(test_replicas_and_lowerings_agree),
    cmocka_unit_test(test_it_is_resumed),
    cmocka_unit_test(test_processors_train_as_in_f32),
    cmocka_unit_test(test_gradients_vanish_without_it),
    cmocka_unit_test(test_gradients_overflow_until_it_is_small),
    cmocka_unit_test(test_gradients_of_the_model_are_not_scaled),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::loss_scale_test

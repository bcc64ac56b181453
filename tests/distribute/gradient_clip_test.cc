// SPDX-License-Identifier: Apache-2.0
//
// Limits of gradients against what they say, computed here in double from the gradients that were kept: by value, by
// each norm, by the global one, and one after the other.
#include "distribute/gradient_clip.h"

#include <cmath>

#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing {

namespace base = impl::base;
using impl::distribute::Lowering;

namespace {

constexpr double kRate = 0.5;

struct Limits {
  const char *what;
  double value, norm, global;
};

/// Each bites on the gradients of network_of(): the tests say so.
constexpr Limits kLimits[] = {{"value", 0.01, 0, 0},
                              {"norm", 0, 0.05, 0},
                              {"global norm", 0, 0, 0.08},
                              {"value and norm", 0.02, 0.05, 0},
                              {"norm and global norm", 0, 0.05, 0.06},
                              {"value and global norm", 0.02, 0, 0.06},
                              {"all", 0.02, 0.05, 0.06}};

NetworkCase network_of(const Limits &limits, DType dtype) {
  NetworkCase network;
  network.dtype = dtype;
  network.learning_rate = kRate;
  network.loss = Loss::weighted_mean_with_penalty;
  network.limits = {.value = limits.value, .norm = limits.norm};
  network.clip = limits.global;
  return network;
}

using Values = std::vector<std::vector<double>>;  // of each variable

double norm_of(const std::vector<double> &values) {
  double sum = 0;
  for (const double value : values)
    sum += value * value;
  return std::sqrt(sum);
}

void scale(std::vector<double> &values, double factor) {
  for (double &value : values)
    value *= factor;
}

struct Bites {
  int64_t elements = 0, norms = 0, global = 0;
};

/// What the header says.
void limit(const Limits &limits, Values &gradients, Bites &bites) {
  double square = 0;
  for (std::vector<double> &gradient : gradients) {
    for (double &element : gradient) {
      if (limits.value <= 0 || std::fabs(element) <= limits.value) continue;
      element = std::copysign(limits.value, element);
      ++bites.elements;
    }
    if (limits.norm > 0) {
      const double norm = norm_of(gradient);
      bites.norms += norm > limits.norm ? 1 : 0;
      scale(gradient, limits.norm / std::max(norm, limits.norm));
    }
    square += norm_of(gradient) * norm_of(gradient);
  }
  if (limits.global <= 0) return;
  bites.global += std::sqrt(square) > limits.global ? 1 : 0;
  for (std::vector<double> &gradient : gradients)
    scale(gradient, limits.global / std::max(std::sqrt(square), limits.global));
}

template <typename Read>
Values values_of(const Model &model, Read read) {
  Values values;
  for (const auto &variable : model.variables)
    values.push_back(to_doubles(assert_ok_value(read(variable.name))));
  return values;
}

/// Two steps, each of which must be weight - rate * limited gradient.
void check_steps(const Limits &limits, DType dtype, int32_t replicas, const TrainerOptions &options, Bites &bites) {
  const NetworkCase network = network_of(limits, dtype);
  const Model model = assert_ok_value(build_network(network));
  const auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  const auto rows = make_rows(50, network.features, network.classes, dtype, 25 / options.accumulation);
  assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
  const double tolerance = dtype == DType::f64 ? 1e-12 : 1e-6;
  for (int32_t step = 0; step < 2; ++step) {
    const auto variable = [&](const std::string &name) { return trainer->get_variable(name); };
    const Values before = values_of(model, variable);
    assert_ok(trainer->run(1, nullptr));
    const Values after = values_of(model, variable);
    Values gradients = values_of(model, [&](const std::string &name) { return trainer->gradient(name); });
    limit(limits, gradients, bites);
    for (size_t v = 0; v < after.size(); ++v) {
      for (size_t i = 0; i < after[v].size(); ++i) {
        const double expected = before[v][i] - kRate * gradients[v][i];
        if (std::fabs(after[v][i] - expected) <= tolerance) continue;
        fail_msg("%s, N %d, variable %d element %d: %.15g, expected %.15g", limits.what, replicas, static_cast<int>(v),
                 static_cast<int>(i), after[v][i], expected);
      }
    }
  }
}

void limits_are_what_they_say(void **) {
  for (const Limits &limits : kLimits) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int32_t replicas : {1, 2, 3}) {
        if (is_test_backend_slow() && (replicas == 2 || dtype == DType::f64)) continue;
        Bites bites;
        for (const Lowering lowering : {Lowering::automatic, Lowering::replicated}) {
          TrainerOptions options;
          options.keep_gradients = true;
          options.lowering = lowering;
          options.accumulation = lowering == Lowering::replicated ? 2 : 1;
          check_steps(limits, dtype, replicas, options, bites);
        }
        assert_true((limits.value > 0) == (bites.elements > 0));
        assert_true((limits.norm > 0) == (bites.norms > 0));
        assert_true((limits.global > 0) == (bites.global > 0));
      }
    }
  }
}

/// Where gradients are not kept, updates add them up themselves, and those of one device are never stored.
void kept_gradients_change_nothing(void **) {
  for (const Limits &limits : kLimits) {
    for (const int32_t replicas : {1, 3}) {
      const NetworkCase network = network_of(limits, DType::f32);
      const Model model = assert_ok_value(build_network(network));
      RunCase run;
      run.replicas = replicas;
      run.rows = 75;
      run.batch = 25;
      run.options.keep_gradients = true;
      const Trained kept = assert_ok_value(train(model, run, network));
      run.options.keep_gradients = false;
      assert_true(relative_difference(assert_ok_value(train(model, run, network)), kept) <= 1e-6);
    }
  }
}

/// The loss is finite, a gradient of it is not.
void a_norm_that_is_not_finite_stops_the_step(void **) {
  for (const double each : {1.0, 0.0}) {
    GraphBuilder b;
    const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), 5});
    const ValueId w = b.variable("w", DType::f32, {2}, {"zeros", {}});
    const ValueId v = b.variable("v", DType::f32, {2}, {"ones", {}});
    b.set_output("x", x);
    b.set_loss(b.add(b.unary("sqrt", b.reduce_sum(b.unary("square", w))), b.mul(b.reduce_mean(x), b.reduce_sum(v))));
    impl::graph::TrainSpec train;
    train.optimizer.op = "sgd_update";
    train.optimizer.learning_rate = b.constant(0.1, DType::f32);
    train.clip.norm = each;
    if (each == 0) train.clip_global_norm = 1;
    b.set_train(std::move(train));
    const auto trainer =
        assert_ok_value(Trainer::open(assert_ok_value(b.finish()), assert_ok_value(make_test_strategy(2)), {}));
    assert_ok(trainer->initialize());
    const auto rows = make_rows(8, 5, 3, DType::f32, 4);
    assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
    assert_int_equal(static_cast<int>(trainer->run(1, nullptr).code()), static_cast<int>(base::Code::out_of_range));
    const Tensor after = assert_ok_value(trainer->get_variable("v"));
    assert_true(after.data_as<float>()[0] == 1 && after.data_as<float>()[1] == 1);
  }
}

}  // namespace

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::limits_are_what_they_say),
    cmocka_unit_test(tutti::testing::kept_gradients_change_nothing),
    cmocka_unit_test(tutti::testing::a_norm_that_is_not_finite_stops_the_step),
};
TEST_MAIN(tests)

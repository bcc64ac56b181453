// SPDX-License-Identifier: Apache-2.0
//
// Limits of gradients against what they say, computed here in double from the gradients that were kept: by value, by
// each norm, by the global one, and one after the other.
#include "distribute/plan/gradient_clip.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::gradient_clip_test {

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

/// A variable of four elements whose gradient is `slope` in each.
struct Slope {
  DType dtype;
  double slope;
};

/// The loss is the sum of slope · w, which are zeros; one step of gradient descent at a rate of 1.
Model slopes_model(const std::vector<Slope> &slopes, double each, double global) {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), 5});
  b.set_output("x", x);
  ValueId loss = b.scale(b.reduce_mean(x), 0);
  for (size_t i = 0; i < slopes.size(); ++i) {
    const ValueId w = b.variable("w" + std::to_string(i), slopes[i].dtype, {4}, {"zeros", {}});
    loss = b.add(loss, b.cast(b.reduce_sum(b.scale(w, slopes[i].slope)), DType::f32));
  }
  b.set_loss(loss);
  impl::graph::TrainSpec train;
  train.optimizer.op = "sgd_update";
  train.optimizer.learning_rate = b.constant(1.0, DType::f32);
  train.clip.norm = each;
  if (global > 0) train.clip_global_norm = global;
  b.set_train(std::move(train));
  return assert_ok_value(b.finish());
}

double element(const Tensor &tensor, int64_t i) {
  if (tensor.dtype() == DType::f64) return tensor.data_as<double>()[i];
  if (tensor.dtype() == DType::f32) return static_cast<double>(tensor.data_as<float>()[i]);
  const uint16_t bits = static_cast<const uint16_t *>(tensor.data())[i];
  if (tensor.dtype() == DType::f16) return static_cast<double>(impl::tensor::half_bits_to_float(bits));
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

void check_slopes(const std::vector<Slope> &slopes, bool is_each, int32_t replicas) {
  const double limit = 1;
  const Model model = slopes_model(slopes, is_each ? limit : 0, is_each ? 0 : limit);
  const auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), {}));
  assert_ok(trainer->initialize());
  const auto rows = make_rows(6, 5, 3, DType::f32, 6);
  assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
  assert_ok(trainer->run(1, nullptr));
  long double square = 0;
  for (const Slope &slope : slopes)
    square += 4 * static_cast<long double>(slope.slope) * slope.slope;
  for (size_t v = 0; v < slopes.size(); ++v) {
    const long double slope = slopes[v].slope, norm = is_each ? 2 * std::fabs(slope) : std::sqrt(square);
    const auto expected = static_cast<double>(-slope * limit / std::max<long double>(norm, limit));
    const double tolerance = slopes[v].dtype == DType::f64 ? 1e-12 : slopes[v].dtype == DType::f32 ? 1e-6 : 1e-2;
    const double smallest = slopes[v].dtype == DType::f16 ? 1e-7 : 1e-30;
    const Tensor after = assert_ok_value(trainer->get_variable(model.variables[v].name));
    for (int64_t i = 0; i < 4; ++i) {
      if (std::fabs(element(after, i) - expected) <= tolerance * std::fabs(expected) + smallest) continue;
      fail_msg("slope %g, %s, N %d: %.9g, expected %.9g", slopes[v].slope, is_each ? "norm" : "global norm", replicas,
               element(after, i), expected);
    }
  }
}

/// Their squares, or the sum of them, may be too large for their dtype.
void finite_gradients_are_limited(void **) {
  const std::vector<Slope> kCases[] = {{{DType::f32, 0}},
                                       {{DType::f32, 1e-25}},
                                       {{DType::f32, 3}},
                                       {{DType::f32, 1.5e19}},
                                       {{DType::f32, -1e30}},
                                       {{DType::f32, 3e38}},
                                       {{DType::f32, 1e30}, {DType::f32, 2}, {DType::f32, 0}},
                                       {{DType::f64, 1e30}},
                                       {{DType::f64, 1e200}},
                                       {{DType::f64, -4e307}},
                                       {{DType::f64, 1e200}, {DType::f32, 1e30}, {DType::f64, 3}},
                                       {{DType::f16, 300}},
                                       {{DType::f16, 6e4}, {DType::f32, 1e30}},
                                       {{DType::bf16, 1e30}}};
  for (const std::vector<Slope> &slopes : kCases) {
    const bool has_halves = std::ranges::any_of(
        slopes, [](const Slope &slope) { return slope.dtype == DType::f16 || slope.dtype == DType::bf16; });
    for (const int32_t replicas : {1, 2, 3}) {
      if (has_halves && replicas > 1) continue;  // nothing adds them up
      check_slopes(slopes, true, replicas);
      check_slopes(slopes, false, replicas);
    }
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(limits_are_what_they_say),
    cmocka_unit_test(kept_gradients_change_nothing),
    cmocka_unit_test(a_norm_that_is_not_finite_stops_the_step),
    cmocka_unit_test(finite_gradients_are_limited),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::gradient_clip_test

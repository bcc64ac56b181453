// SPDX-License-Identifier: Apache-2.0
//
// Moving averages of weights against their definition, computed here from the weights after each step; what begins
// them, what keeps them, and what reads them.
#include "distribute/plan/weight_averages.h"

#include <cmath>

#include "checkpoint/averaged_version.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::weight_averages_test {

namespace base = impl::base;
namespace checkpoint = impl::checkpoint;
using checkpoint::StateRole;
using checkpoint::WeightVersion;
using impl::distribute::Lowering;
using impl::graph::AverageSpec;

namespace {

constexpr AverageSpec kSpecs[] = {{.decay = 0.9},
                                  {.decay = 0.75, .has_ramp = true},
                                  {.decay = 0.9, .start = 3},
                                  {.decay = 0.6, .has_ramp = true, .start = 1}};

NetworkCase network_of(const AverageSpec &average, Optimizer optimizer = Optimizer::sgd) {
  NetworkCase network;
  network.average = average;
  network.optimizer = optimizer;
  network.learning_rate = optimizer == Optimizer::adam ? 0.05 : 0.5;
  network.batch_norm = true;  // its moving statistics have no averages
  return network;
}

std::unique_ptr<Trainer> open_trainer(const NetworkCase &network, int32_t replicas,
                                      const TrainerOptions &options = {}) {
  const Model model = assert_ok_value(build_network(network));
  auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  const auto rows = make_endless_batch(24, network.features, network.classes, network.dtype);
  assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
  return trainer;
}

using Values = std::map<std::string, std::vector<double>>;

Values weights_of(Trainer &trainer) {
  Values values;
  for (const auto &variable : trainer.model().variables) {
    if (variable.trainable) values[variable.name] = to_doubles(assert_ok_value(trainer.get_variable(variable.name)));
  }
  return values;
}

Values averages_of(Trainer &trainer) {
  Values values;
  for (const auto &variable : trainer.model().variables) {
    if (variable.trainable)
      values[variable.name] = to_doubles(assert_ok_value(trainer.get_variable(variable.name + "/average")));
  }
  return values;
}

void expect_near(const Values &got, const Values &expected, double tolerance, const std::string &what) {
  assert_int_equal(got.size(), expected.size());
  for (const auto &[name, values] : expected) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double difference = std::fabs(got.at(name)[i] - values[i]);
      if (difference <= tolerance) continue;
      fail_msg("%s: element %d of %s is %.9g, expected %.9g", what.c_str(), static_cast<int>(i), name.c_str(),
               got.at(name)[i], values[i]);
    }
  }
}

/// As the header of AverageSpec says it.
void follow(const AverageSpec &spec, int64_t update, const Values &weights, Values &averages) {
  double decay = spec.decay;
  const auto n = static_cast<double>(update - spec.start);
  if (spec.has_ramp) decay = std::min(decay, (1 + n) / (10 + n));
  if (update <= spec.start) decay = 0;
  for (auto &[name, values] : averages) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = decay * values[i] + (1 - decay) * weights.at(name)[i];
  }
}

void averages_follow_the_weights(void **) {
  for (const AverageSpec &spec : kSpecs) {
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
      for (const int32_t replicas : {1, 2, 3}) {
        if (is_test_backend_slow() && (replicas == 2 || optimizer == Optimizer::momentum)) continue;
        for (const Lowering lowering : {Lowering::automatic, Lowering::replicated}) {
          TrainerOptions options;
          options.lowering = lowering;
          options.accumulation = replicas == 3 ? 2 : 1;
          NetworkCase network = network_of(spec, optimizer);
          network.batch_norm = options.accumulation == 1;
          const auto trainer = open_trainer(network, replicas, options);
          Values expected = weights_of(*trainer);
          expect_near(averages_of(*trainer), expected, 0, "before the first step");
          const Values initial = expected;
          for (int64_t update = 1; update <= 6; ++update) {
            assert_ok(trainer->run(1, nullptr));
            const Values weights = weights_of(*trainer);
            follow(spec, update, weights, expected);
            expect_near(averages_of(*trainer), expected, 3e-6, base::concat("N ", replicas, ", update ", update));
          }
          assert_true(averages_of(*trainer) != weights_of(*trainer) && expected != initial);
          assert_true(assert_ok_value(trainer->replicas_are_identical()));
        }
      }
    }
  }
}

/// Without a norm: Adam makes steps of the rounding of gradients that a norm makes zero.
void training_is_the_same_without(void **) {
  NetworkCase averaged = network_of({.decay = 0.9}, Optimizer::adam), plain = network_of({}, Optimizer::adam);
  averaged.batch_norm = plain.batch_norm = false;
  for (const int32_t replicas : {1, 3}) {
    const auto with = open_trainer(averaged, replicas);
    const auto without = open_trainer(plain, replicas);
    assert_ok(with->run(5, nullptr));
    assert_ok(without->run(5, nullptr));
    expect_near(weights_of(*with), weights_of(*without), 1e-6, "weights");
    assert_error_contains(without->get_variable("first/kernel/average"), "no variable");
  }
}

/// On as many replicas bit by bit, on others as near as training itself.
void averages_are_resumed(void **) {
  NetworkCase network = network_of({.decay = 0.8, .has_ramp = true, .start = 2}, Optimizer::adam);
  network.batch_norm = false;  // as above
  for (const int64_t steps : {1, 4}) {
    const auto whole = open_trainer(network, 2), first = open_trainer(network, 2);
    assert_ok(whole->run(7, nullptr));
    assert_ok(first->run(steps, nullptr));
    const base::Ref<WeightVersion> version = assert_ok_value(first->publish_weights(true));
    for (const int32_t replicas : {1, 2, 3}) {
      const auto second = open_trainer(network, replicas);
      assert_ok(second->restore(*version));
      assert_ok(second->run(7 - steps, nullptr));
      expect_near(averages_of(*second), averages_of(*whole), replicas == 2 ? 0 : 1e-4, "resumed");
    }
  }
}

/// Of a checkpoint that has none, of weights that the host sets before the first update, and of later ones.
void what_averages_begin_with(void **) {
  const auto before = open_trainer(network_of({}), 1);
  assert_ok(before->run(3, nullptr));
  const auto trainer = open_trainer(network_of({.decay = 0.9}), 2);
  Tensor ones = assert_ok_value(trainer->get_variable("second/bias")).clone().value();
  for (int64_t i = 0; i < ones.elements(); ++i)
    ones.mutable_data_as<float>()[i] = 1;
  assert_ok(trainer->set_variable("second/bias", ones));
  assert_true(averages_of(*trainer) == weights_of(*trainer));
  assert_ok(trainer->restore(*assert_ok_value(before->publish_weights(true))));
  expect_near(weights_of(*trainer), weights_of(*before), 0, "restored");
  expect_near(averages_of(*trainer), weights_of(*before), 0, "averages of a checkpoint without");
  assert_ok(trainer->run(1, nullptr));
  const Values averages = averages_of(*trainer);
  assert_ok(trainer->set_variable("second/bias", ones));
  expect_near(averages_of(*trainer), averages, 0, "weights that are set later");
}

/// Versions have averages with slots and without, and stand in for the weights where that is asked for.
void versions_have_averages(void **) {
  for (const int32_t replicas : {1, 2}) {
    const auto trainer = open_trainer(network_of({.decay = 0.9}, Optimizer::adam), replicas);
    assert_ok(trainer->run(3, nullptr));
    const base::Ref<WeightVersion> lean = assert_ok_value(trainer->publish_weights(false));
    assert_true(lean->find(StateRole::slot, "first/kernel/average") >= 0);
    assert_int_equal(lean->find(StateRole::slot, "first/kernel/m"), -1);
    for (const bool with_slots : {false, true}) {
      const auto averaged = checkpoint::with_averages(assert_ok_value(trainer->publish_weights(with_slots)));
      assert_int_equal(averaged->step(), 3);
      assert_int_equal(averaged->entries().size(), trainer->model().variables.size());
      Values values;
      for (size_t i = 0; i < averaged->entries().size(); ++i) {
        const checkpoint::StateEntry &entry = averaged->entries()[i];
        assert_true(entry.role == StateRole::weight);
        const auto read = to_doubles(assert_ok_value(averaged->read(i)));
        if (trainer->model().find_variable(entry.name)->trainable)
          values[entry.name] = read;
        else
          assert_true(read == to_doubles(assert_ok_value(trainer->get_variable(entry.name))));
      }
      assert_true(values == averages_of(*trainer));
    }
    const auto plain = open_trainer(network_of({}), replicas);
    const base::Ref<WeightVersion> none = assert_ok_value(plain->publish_weights(true));
    assert_true(checkpoint::with_averages(none) == none);
  }
}

/// Frozen variables, and those that the loss does not reach, have none.
void only_trained_variables_have_averages(void **) {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), 5});
  const ValueId w = b.variable("w", DType::f32, {5}, {"ones", {}});
  const ValueId frozen = b.variable("frozen", DType::f32, {5}, {"ones", {}});
  b.variable("unused", DType::f32, {5}, {"ones", {}});
  b.set_output("x", x);
  b.set_loss(b.reduce_mean(b.mul(x, b.add(w, frozen))));
  b.set_trainable("frozen", false);
  impl::graph::TrainSpec train;
  train.optimizer.op = "sgd_update";
  train.optimizer.learning_rate = b.constant(0.1, DType::f32);
  train.average = {.decay = 0.5};
  b.set_train(std::move(train));
  const auto trainer =
      assert_ok_value(Trainer::open(assert_ok_value(b.finish()), assert_ok_value(make_test_strategy(2)), {}));
  assert_true(trainer->plan().find("slot/w/average") != nullptr);
  assert_true(trainer->plan().find("slot/frozen/average") == nullptr);
  assert_true(trainer->plan().find("slot/unused/average") == nullptr);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(averages_follow_the_weights), cmocka_unit_test(training_is_the_same_without),
    cmocka_unit_test(averages_are_resumed),        cmocka_unit_test(what_averages_begin_with),
    cmocka_unit_test(versions_have_averages),      cmocka_unit_test(only_trained_variables_have_averages),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::weight_averages_test

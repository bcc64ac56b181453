// SPDX-License-Identifier: Apache-2.0
//
// Every optimizer of the registry, and so each that is added to it: N replicas train the model that one device trains,
// in every lowering, with micro-batches, limits of gradients and averages of weights; and at level invariant the bits
// are the same. In double where the number of replicas changes sums: some rules amplify what f32 rounds.
#include <cstring>

#include "distribute/training_case.h"
#include "nn/registry.h"
#include "testing.h"

namespace tutti::testing::update_rules_test {

using impl::backend::Level;
using impl::distribute::Lowering;

namespace {

constexpr double limit = 1e-9;

/// The optimizers, and variants of some that have other slots.
std::vector<NetworkCase> networks() {
  std::vector<NetworkCase> networks;
  for (const impl::nn::Definition &definition : impl::nn::all_definitions()) {
    if (!definition.name.starts_with("optimizer_")) continue;
    NetworkCase network;
    network.entry = std::string(definition.name);
    network.learning_rate = 0.02;
    if (definition.find_attribute("weight_decay") != nullptr) network.attributes = {{"weight_decay", 0.05}};
    networks.push_back(network);
    for (const char *const flag : {"amsgrad", "centered", "nesterov", "adds_epsilon"}) {
      if (definition.find_attribute(flag) == nullptr) continue;
      network.attributes.insert_or_assign(flag, true);
      if (definition.find_attribute("momentum") != nullptr) network.attributes.insert_or_assign("momentum", 0.5);
      networks.push_back(network);
    }
  }
  return networks;
}

RunCase some_steps() {
  RunCase run;
  run.rows = 2 * 25 + 13;
  run.batch = 25;
  run.passes = is_test_backend_slow() ? 1 : 3;
  return run;
}

Trained must_train(const NetworkCase &network, const RunCase &run) {
  const Model model = assert_ok_value(build_network(network));
  Trained trained = assert_ok_value(train(model, run, network));
  if (!trained.replicas_identical) fail_msg("%s: replicas differ", network.entry.c_str());
  return trained;
}

void check_equality(const NetworkCase &network, RunCase run, const char *what) {
  const Trained one = must_train(network, run);
  for (const int32_t replicas : {2, 3, 4}) {
    if (replicas != 3 && is_test_backend_slow()) continue;
    for (const Lowering lowering : {Lowering::automatic, Lowering::replicated}) {
      run.replicas = replicas;
      run.options.lowering = lowering;
      const Trained many = must_train(network, run);
      const double difference = relative_difference(many, one);
      if (!(difference <= limit && relative_difference(many.losses, one.losses) <= limit)) {
        fail_msg("%s, %s, N %d, lowering %d: weights differ by %g", network.entry.c_str(), what, replicas,
                 static_cast<int>(lowering), difference);
      }
    }
  }
}

void test_replicas(void **) {
  for (NetworkCase network : networks()) {
    network.dtype = DType::f64;
    network.loss = Loss::weighted_mean_with_penalty;
    check_equality(network, some_steps(), "as it is");
  }
}

void test_micro_batches_limits_and_averages(void **) {
  for (NetworkCase network : networks()) {
    network.dtype = DType::f64;
    network.loss = Loss::root_mean;
    network.limits = {.value = 0.05, .norm = 0.06};
    network.clip = 0.07;
    network.average = {.decay = 0.8, .has_ramp = true, .start = 1};
    RunCase run = some_steps();
    run.options.accumulation = 3;
    run.batch = 7;
    check_equality(network, run, "3 micro-batches, with limits and averages");
  }
}

bool is_same(const std::vector<double> &a, const std::vector<double> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

void test_level_invariant(void **) {
  if (is_invariant_refused()) return;
  for (const NetworkCase &network : networks()) {
    RunCase run = some_steps();
    run.options.level = Level::invariant;
    const Trained one = must_train(network, run);
    for (const Lowering lowering : {Lowering::shared, Lowering::replicated}) {
      run.options.lowering = lowering;
      for (const int32_t replicas : {2, 4}) {
        run.replicas = replicas;
        const Trained many = must_train(network, run);
        for (const auto &[name, values] : one.variables) {
          if (!is_same(values, many.variables.at(name)))
            fail_msg("%s, N %d: other bits in %s", network.entry.c_str(), replicas, name.c_str());
        }
      }
      run.replicas = 1;
    }
  }
}

const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_replicas),
    cmocka_unit_test(test_micro_batches_limits_and_averages),
    cmocka_unit_test(test_level_invariant),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace tutti::testing::update_rules_test

// SPDX-License-Identifier: Apache-2.0
//
// What tests of faults in training share: a network whose step has all sorts of collective operations, and the states
// that a trainer goes through when nothing happens.
#ifndef TUTTI_TESTS_DISTRIBUTE_FAULT_CASE_H_
#define TUTTI_TESTS_DISTRIBUTE_FAULT_CASE_H_

#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "data/pipeline/pipeline.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing {

inline NetworkCase clipped_network() {
  NetworkCase network;
  network.optimizer = Optimizer::adam;
  network.learning_rate = 0.01;
  network.loss = Loss::weighted_mean_with_penalty;
  network.batch_norm = true;
  network.clip = 0.1;
  return network;
}

/// Seven batches again and again, so that a step without its own, of those before and after, comes out otherwise.
inline std::unique_ptr<Trainer> open_trainer(const Model &model, StrategyRef strategy, const NetworkCase &network,
                                             const TrainerOptions &options) {
  std::unique_ptr<Trainer> trainer = assert_ok_value(Trainer::open(model, std::move(strategy), options));
  assert_ok(trainer->initialize());
  impl::data::Pipeline batches(make_rows(7 * 23, network.features, network.classes, network.dtype, 23));
  const auto rows = assert_ok_value(batches.repeat().build());
  assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
  return trainer;
}

/// Which batches are bad: with features that are no numbers, or labels that are none of the classes, or unreadable. Bad
/// is one row, which is one replica's.
struct BadBatches {
  std::set<int64_t> not_numbers = {}, wrong_labels = {}, unreadable = {};
  int64_t row = 2;
  int64_t batch = 7;  ///< rows of each
};

inline Result<impl::data::DatasetRef> batches_with(const NetworkCase &network, int64_t batches, const BadBatches &bad) {
  impl::data::TransformArguments arguments;
  arguments.map = [bad, network](const impl::data::Element &input, impl::data::Element &output) {
    const int64_t number = input.lineage.index / bad.batch;
    if (bad.unreadable.contains(number)) return impl::base::data_loss("batch ", number, " cannot be read");
    output = input;
    if (bad.not_numbers.contains(number)) {
      TUTTI_ASSIGN(output.components[0], output.components[0].clone());
      output.components[0].mutable_data_as<float>()[bad.row * network.features + 3] = NAN;
    }
    if (bad.wrong_labels.contains(number)) {
      TUTTI_ASSIGN(output.components[1], output.components[1].clone());
      output.components[1].mutable_data_as<int32_t>()[bad.row] = 99;
    }
    return Status();
  };
  impl::data::Pipeline pipeline(
      make_rows(batches * bad.batch, network.features, network.classes, network.dtype, bad.batch));
  pipeline.apply("map_callback", {}, std::move(arguments));
  return pipeline.build();
}

using State = std::map<std::string, std::string>;

/// Weights, statistics and slots, byte by byte.
inline State state_of(Trainer &trainer) {
  State state;
  const auto version = assert_ok_value(trainer.publish_weights(true));
  for (size_t i = 0; i < version->entries().size(); ++i) {
    const Tensor value = assert_ok_value(version->read(i));
    const size_t bytes = static_cast<size_t>(value.elements()) * impl::tensor::size_bytes(value.dtype());
    state[version->entries()[i].name] = std::string(static_cast<const char *>(value.data()), bytes);
  }
  return state;
}

/// The states after 0, 1, 2, ... steps.
inline std::vector<State> clean_states(const Model &model, int32_t replicas, const NetworkCase &network,
                                       const TrainerOptions &options, int steps) {
  auto trainer = open_trainer(model, assert_ok_value(make_test_strategy(replicas)), network, options);
  std::vector<State> states{state_of(*trainer)};
  for (int i = 0; i < steps; ++i) {
    assert_ok(trainer->run(1, nullptr));
    states.push_back(state_of(*trainer));
  }
  return states;
}

/// A run whose first step hangs is cancelled: it has changed nothing, and the next run goes on. `expected`: the states
/// after 0, 1 and 2 steps.
inline void check_cancel_of_a_step(Trainer &trainer, const std::vector<State> &expected) {
  const auto token = impl::base::CancelToken::create();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    token->cancel();
  });
  const auto ran = trainer.run(2, token.get());
  canceller.join();
  assert_int_equal(static_cast<int>(ran.status().code()), static_cast<int>(impl::base::Code::cancelled));
  assert_int_equal(trainer.step(), 0);
  assert_true(state_of(trainer) == expected[0]);
  assert_ok(trainer.run(2, nullptr));
  assert_true(state_of(trainer) == expected[2]);
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DISTRIBUTE_FAULT_CASE_H_

// SPDX-License-Identifier: Apache-2.0
//
// Central storage trains, bit by bit, the model that mirrored replicas train: stored with one of them, with a device of
// its own, or in the host's memory. Slots are nowhere else. Whatever operation of the group fails, and also between an
// update and its way to the devices, all stand at a complete step and go on from there.
#include "distribute/train/central_storage.h"

#include <cstring>

#include "backend/gpu/emulated_streams.h"
#include "collective/fake_group.h"
#include "collective/staged/staged_group.h"
#include "distribute/fault_case.h"
#include "distribute/train/memory_estimate.h"
#include "distribute/training_case.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace tutti::testing::central_storage_test {

namespace collective = impl::collective;
using collective::fake::FakeGroup;
using collective::fake::FakeGroupOptions;
using impl::backend::Level;
using impl::distribute::AllReduceChoice;
using impl::distribute::DeviceChoice;
using impl::distribute::Lowering;
using impl::distribute::MemoryEstimate;
using impl::distribute::MemoryEstimator;
using impl::distribute::ReplicaGroups;
using impl::distribute::RunReport;
using impl::distribute::Strategy;

namespace {

/// Where variables are stored: with a replica, the first or another one; with one more device of the backend; with
/// another backend, which has the host's memory.
enum class Place { first, second, apart, host };

constexpr Place kPlaces[] = {Place::first, Place::second, Place::apart, Place::host};

const char *name(Place place) {
  constexpr const char *names[] = {"with the first", "with the second", "apart", "on the host"};
  return names[static_cast<size_t>(place)];
}

struct Devices {
  std::vector<DeviceChoice> computing;
  DeviceChoice storage;
};

Devices open_devices(int32_t replicas, Place place) {
  const auto backend = assert_ok_value(open_test_backend(replicas + (place == Place::apart ? 1 : 0)));
  Devices devices;
  for (int32_t i = 0; i < replicas; ++i)
    devices.computing.push_back({backend, i});
  devices.storage = {backend, place == Place::apart ? replicas : place == Place::second ? 1 : 0};
  if (place == Place::host) devices.storage = {assert_ok_value(impl::runtime::open_backend("reference", "{}", {})), 0};
  return devices;
}

StrategyRef central(int32_t replicas, Place place) {
  Devices devices = open_devices(replicas, place);
  return assert_ok_value(Strategy::central_storage(std::move(devices.storage), std::move(devices.computing)));
}

/// Copies for each device also where these have one memory, and sums in one order whatever connects them.
TrainerOptions apart_from_memory() {
  TrainerOptions options;
  options.lowering = Lowering::replicated;
  options.all_reduce = AllReduceChoice::host;
  return options;
}

/// The update of a storage of another backend has the bits of that one.
bool has_same_bits(Place place) {
  const auto chosen = assert_ok_value(open_test_backend(1));
  return place != Place::host || chosen->name() == "reference";
}

/// They are slow, but far from as slow as what a library compiles anew for each case.
bool has_emulated_devices() { return issue_on_emulated_streams() != nullptr; }

RunCase odd_batches(int64_t batch) {
  RunCase run;
  run.replicas = 3;
  run.batch = batch;
  run.rows = 2 * batch + batch / 2 + 1;
  run.passes = is_test_backend_slow() ? 1 : 3;
  run.options = apart_from_memory();
  return run;
}

void check_equal(const NetworkCase &network, const RunCase &run, const std::string &what) {
  const Model model = assert_ok_value(build_network(network));
  RunCase alone = run;
  alone.replicas = 1;
  alone.options.all_reduce = AllReduceChoice::automatic;
  const bool may_round = run.options.gradient_dtype == DType::f32;
  const Trained one = assert_ok_value(train(model, alone, network));
  const Trained mirrored = assert_ok_value(train(model, run, network));
  for (const Place place : kPlaces) {
    if (place != Place::first && is_test_backend_slow() && network.optimizer != Optimizer::adam) continue;
    const Trained stored = assert_ok_value(train(model, central(run.replicas, place), run, network));
    const std::string where = what + ", " + name(place);
    if (!stored.replicas_identical || stored.examples != one.examples)
      fail_msg("%s: replicas or rows differ", where.c_str());
    if (has_same_bits(place) && (stored.variables != mirrored.variables || stored.losses != mirrored.losses))
      fail_msg("%s: weights differ from mirrored by %g", where.c_str(), relative_difference(stored, mirrored));
    const double weights = relative_difference(stored, one);
    if (may_round && !(weights < 1e-3)) fail_msg("%s: weights differ from one device by %g", where.c_str(), weights);
  }
}

void test_equals_mirrored(void **) {
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    for (const int64_t batch : {7, 25}) {
      if (batch == 7 && is_test_backend_slow()) continue;
      NetworkCase network;
      network.optimizer = optimizer;
      network.learning_rate = optimizer == Optimizer::adam ? 0.01 : 0.1;
      check_equal(network, odd_batches(batch), "optimizer " + std::to_string(static_cast<int>(optimizer)));
    }
  }
}

/// Sums and collectives in mid-step, clipping by the norm, averages, statistics of batches.
void test_models(void **) {
  if (is_test_backend_slow() && !has_emulated_devices()) test_skip();
  NetworkCase network = clipped_network();
  network.optimizer = Optimizer::momentum;  // adam makes steps of rounding where a norm hides a bias
  network.average.decay = 0.9;
  check_equal(network, odd_batches(25), "clipped, averaged, with batch norm");
  network.loss = Loss::root_mean;
  network.limits.value = 0.05;
  network.dropout = true;
  check_equal(network, odd_batches(23), "limited, with dropout");
  network.loss = Loss::class_means;
  check_equal(network, odd_batches(25), "vector of sums");
}

void test_options(void **) {
  if (is_test_backend_slow() && !has_emulated_devices()) test_skip();
  NetworkCase network;
  network.optimizer = Optimizer::adam;
  network.learning_rate = 0.01;
  network.loss = Loss::weighted_mean_with_penalty;
  RunCase run = odd_batches(7);
  run.options.accumulation = 3;
  check_equal(network, run, "accumulation");
  run.options.gradient_dtype = DType::bf16;
  check_equal(network, run, "accumulation of bf16");
  run = odd_batches(25);
  run.options.bucket_bytes = 64;
  check_equal(network, run, "many buckets");
  run.options.loss_scale.is_on = true;
  check_equal(network, run, "scaled loss");
  run = odd_batches(25);
  run.options.level = Level::repeatable;
  check_equal(network, run, "repeatable");
}

void test_level_invariant(void **) {
  NetworkCase network;
  network.optimizer = Optimizer::momentum;
  network.clip = 0.1;
  const Model model = assert_ok_value(build_network(network));
  RunCase run = odd_batches(25);
  run.options.level = Level::invariant;
  run.options.logical_replicas = 6;
  run.replicas = 1;
  run.options.all_reduce = AllReduceChoice::automatic;
  if (is_invariant_refused()) {
    assert_error_contains(train(model, run, network), "UNIMPLEMENTED: determinism invariant: devices behind PJRT");
    return;
  }
  const Trained one = assert_ok_value(train(model, run, network));
  run.options.all_reduce = AllReduceChoice::host;
  for (const int32_t replicas : {2, 3}) {
    for (const Place place : {Place::first, Place::apart}) {
      const Trained stored = assert_ok_value(train(model, central(replicas, place), run, network));
      if (stored.variables != one.variables) fail_msg("%d replicas, %s", replicas, name(place));
    }
  }
}

/// However devices are connected, and whatever the order of their additions.
void test_sums_of_connected_devices(void **) {
  NetworkCase network = clipped_network();
  network.optimizer = Optimizer::momentum;
  const Model model = assert_ok_value(build_network(network));
  RunCase run = odd_batches(25);
  run.options.all_reduce = AllReduceChoice::automatic;
  const Trained mirrored = assert_ok_value(train(model, run, network));
  for (const Place place : kPlaces) {
    const Trained stored = assert_ok_value(train(model, central(3, place), run, network));
    if (!(relative_difference(stored, mirrored) < 1e-4 && stored.replicas_identical))
      fail_msg("%s: %g", name(place), relative_difference(stored, mirrored));
  }
}

/// One device that computes, and another one that updates.
void test_one_replica(void **) {
  NetworkCase network = clipped_network();
  network.optimizer = Optimizer::momentum;
  const Model model = assert_ok_value(build_network(network));
  RunCase run = odd_batches(25);
  run.replicas = 1;
  run.options.all_reduce = AllReduceChoice::automatic;
  const Trained one = assert_ok_value(train(model, run, network));
  for (const Place place : {Place::first, Place::apart, Place::host}) {
    const Trained stored = assert_ok_value(train(model, central(1, place), run, network));
    if (!(relative_difference(stored, one) < 1e-4)) fail_msg("%s: %g", name(place), relative_difference(stored, one));
    assert_true(stored.replicas_identical);
  }
}

// ---- where things are ----

std::string variables_of(const StrategyRef &strategy, const TrainerOptions &options) {
  const NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  const auto trainer = assert_ok_value(Trainer::open(model, strategy, options));
  return trainer->describe().find("variables")->string();
}

void test_what_is_said(void **) {
  const auto tested = assert_ok_value(open_test_backend(1));
  const std::string name = tested->name();
  assert_string_equal(
      variables_of(central(3, Place::second), apart_from_memory()).c_str(),
      ("on " + name + ":1, which updates them and gives 2 other devices the new weights in each step").c_str());
  assert_string_equal(
      variables_of(central(2, Place::apart), apart_from_memory()).c_str(),
      ("on " + name + ":2, which updates them and gives 2 other devices the new weights in each step").c_str());
  assert_string_equal(variables_of(central(1, Place::first), {}).c_str(), "on the device");
  if (!tested->has_host_memory()) return;
  for (const Place place : kPlaces)
    assert_string_equal(variables_of(central(2, place), {}).c_str(), "one copy in the host's memory");
}

void test_slots_are_with_the_storage_alone(void **) {
  NetworkCase network;
  network.optimizer = Optimizer::adam;
  network.average.decay = 0.9;
  const Model model = assert_ok_value(build_network(network));
  const auto spec = make_rows(25, network.features, network.classes, network.dtype, 25)->spec();
  int64_t weights = 0;
  for (const auto &variable : model.variables)
    weights += 4 * (variable.dims.size() == 2 ? variable.dims[0] * variable.dims[1] : variable.dims[0]);
  for (const Place place : kPlaces) {
    const auto estimator = assert_ok_value(MemoryEstimator::open(model, central(3, place), apart_from_memory(), spec));
    const MemoryEstimate estimate = assert_ok_value(estimator->estimate(25));
    const bool is_apart = place == Place::apart || place == Place::host;
    assert_int_equal(estimate.devices.size(), is_apart ? 4 : 3);
    const size_t storage = is_apart ? 3 : 0;
    for (size_t d = 0; d < estimate.devices.size(); ++d) {
      assert_true(estimate.devices[d].weights >= weights);
      if (d == storage) assert_true(estimate.devices[d].slots >= 3 * weights);
      if (d != storage) assert_int_equal(estimate.devices[d].slots, 0);
    }
    assert_true(estimate.devices[storage].gradients >= weights);
  }
}

/// What is estimated is what is taken.
void test_memory_that_is_taken(void **) {
  const auto tested = assert_ok_value(open_test_backend(1));
  if (!tested->has_host_memory()) return;  // counts memory of devices behind it, too
  NetworkCase network;
  network.features = 20;
  network.hidden = 600;
  network.optimizer = Optimizer::adam;
  const Model model = assert_ok_value(build_network(network));
  const auto rows = make_rows(200, network.features, network.classes, network.dtype, 96);
  int64_t taken[2] = {};
  for (const bool is_apart : {false, true}) {
    impl::backend::HostOptions host;
    host.memory = std::make_shared<impl::backend::MemoryBudget>(int64_t{1} << 40);
    const auto backend = assert_ok_value(open_test_backend(4, host));
    const StrategyRef strategy = assert_ok_value(
        Strategy::central_storage({backend, is_apart ? 3 : 0}, {{backend, 0}, {backend, 1}, {backend, 2}}));
    const TrainerOptions options = apart_from_memory();
    const auto estimator = assert_ok_value(MemoryEstimator::open(model, strategy, options, rows->spec()));
    const int64_t estimated = assert_ok_value(estimator->estimate(96)).total();
    const auto trainer = assert_ok_value(Trainer::open(model, strategy, options));
    assert_ok(trainer->initialize());
    assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
    assert_ok(trainer->run(2, nullptr));
    taken[is_apart ? 1 : 0] = host.memory->in_use();
    const double off = std::abs(static_cast<double>(estimated - host.memory->in_use()));
    if (off > 0.1 * static_cast<double>(host.memory->in_use()))
      fail_msg("estimated %lld, taken %lld", static_cast<long long>(estimated),
               static_cast<long long>(host.memory->in_use()));
  }
  const int64_t weights = 4 * (20 * 600 + 600 + 600 * 3 + 3);
  assert_true(taken[1] - taken[0] > 2 * weights - 4096);  // one more copy of weights and of gradients
}

// ---- state by name ----

void test_restores_from_and_to_mirrored(void **) {
  const NetworkCase network = clipped_network();
  const Model model = assert_ok_value(build_network(network));
  const TrainerOptions options = apart_from_memory();
  const auto expected = clean_states(model, 3, network, options, 4);
  for (const Place place : kPlaces) {
    if (!has_same_bits(place)) continue;
    const auto open = [&](bool is_central) {
      return open_trainer(model, is_central ? central(3, place) : assert_ok_value(make_test_strategy(3)), network,
                          options);
    };
    for (const bool begins_central : {true, false}) {
      const auto first = open(begins_central);
      assert_ok(first->run(2, nullptr));
      assert_true(state_of(*first) == expected[2]);
      const auto second = open(!begins_central);
      assert_ok(second->run(2, nullptr));  // where its input is, too
      assert_ok(second->initialize());
      assert_ok(second->restore(*assert_ok_value(first->publish_weights(true))));
      assert_ok(second->run(2, nullptr));
      assert_true(state_of(*second) == expected[4]);
    }
  }
}

/// Values that are set come to all devices: a step with them is that of mirrored replicas.
void test_values_that_are_set(void **) {
  NetworkCase network;
  network.optimizer = Optimizer::momentum;
  const Model model = assert_ok_value(build_network(network));
  TrainerOptions options = apart_from_memory();
  options.keep_gradients = true;
  options.keep_outputs = true;
  std::vector<State> states;
  std::vector<std::vector<double>> gradients, outputs;
  const auto add = [&](StrategyRef strategy) {
    const auto trainer = open_trainer(model, std::move(strategy), network, options);
    assert_ok(trainer->run(2, nullptr));
    const Tensor kernel = assert_ok_value(trainer->get_variable("second/kernel"));
    const Tensor zeros = assert_ok_value(Tensor::zeros(kernel.dtype(), kernel.shape()));
    assert_ok(trainer->set_variable("second/kernel", zeros));
    assert_ok(trainer->set_variable("second/kernel/velocity", kernel));
    assert_true(assert_ok_value(trainer->replicas_are_identical()));
    assert_ok(trainer->run(2, nullptr));
    states.push_back(state_of(*trainer));
    gradients.push_back(to_doubles(assert_ok_value(trainer->gradient("first/kernel"))));
    outputs.push_back(to_doubles(assert_ok_value(trainer->output("logits"))));
  };
  add(assert_ok_value(make_test_strategy(3)));
  for (const Place place : kPlaces) {
    if (has_same_bits(place)) add(central(3, place));
  }
  for (size_t i = 1; i < states.size(); ++i) {
    assert_true(states[i] == states[0]);
    assert_true(gradients[i] == gradients[0]);
    assert_true(outputs[i] == outputs[0]);
  }
}

// ---- faults ----

/// Over all devices of central storage; the first group has these options, later ones run quietly.
class FaultyStorage : public Strategy {
 public:
  /// `issue`: how operations come to the streams of devices; null: they are of copies on the host.
  FaultyStorage(Devices devices, const FakeGroupOptions &first, IssueWork issue)
      : Strategy("faulty", std::move(devices.computing)), first_(first), issue_(std::move(issue)) {
    store_with(std::move(devices.storage));
  }

  Result<ReplicaGroups> make_groups(std::span<const impl::backend::DeviceRef> devices,
                                    const impl::distribute::GroupOptions &asked) const override {
    FakeGroupOptions options = first_;
    if (made_++ > 0) {
      options.abort_at = -1;
      options.max_delay_us = 20;
    }
    options.issue = issue_;
    ReplicaGroups groups;
    TUTTI_ASSIGN(groups.ranks, FakeGroup::create(replica_count(), asked.parts, options));
    if (backend()->has_host_memory() || issue_ != nullptr) return groups;
    TUTTI_ASSIGN(groups.ranks, collective::staged::stage(std::move(groups.ranks), devices));
    return groups;
  }

 private:
  const FakeGroupOptions first_;
  const IssueWork issue_;
  mutable int made_ = 0;
};

void check_abort_at_any_operation(Place place, const IssueWork &issue) {
  const NetworkCase network = clipped_network();
  const Model model = assert_ok_value(build_network(network));
  TrainerOptions options = apart_from_memory();
  options.bucket_bytes = 64;  // weights go in pieces of that size, too
  const auto expected = clean_states(model, 3, network, options, 4);
  int64_t last_step = 0;
  bool has_failed_behind_an_update = false;
  const int64_t stride = !is_test_backend_slow() ? 1 : has_emulated_devices() ? 3 : 37;
  for (int64_t at = 0; at < 110; at += stride) {
    FakeGroupOptions fault;
    fault.abort_at = at;
    fault.max_delay_us = 20;
    fault.timeout_ms = 120'000;  // some compile for seconds while others wait
    const auto strategy = std::make_shared<FaultyStorage>(open_devices(3, place), fault, issue);
    const auto trainer = open_trainer(model, strategy, network, options);
    const Result<RunReport> ran = trainer->run(4, nullptr);
    const int64_t step = trainer->step();
    if (ran.ok()) {
      assert_int_equal(step, 4);
    } else {
      assert_contains(ran.status().to_string().c_str(), "injected failure");
      assert_true(step <= 4 && step >= last_step);
      last_step = step;
      assert_true(assert_ok_value(trainer->replicas_are_identical()));
      if (state_of(*trainer) != expected[static_cast<size_t>(step)])
        fail_msg("%s, operation %lld: not the state after %lld steps", name(place), static_cast<long long>(at),
                 static_cast<long long>(step));
      const std::string *const failed = ran.status().error()->find_detail("step");
      has_failed_behind_an_update |= failed != nullptr && *failed == std::to_string(step);
      assert_ok(trainer->run(4 - step, nullptr));
    }
    assert_true(state_of(*trainer) == expected[4]);
  }
  assert_true(last_step >= 1);  // some came in the middle
  assert_true(has_failed_behind_an_update || stride > 3);
}

void test_abort_at_any_operation(void **) {
  for (const Place place : {Place::first, Place::apart})
    check_abort_at_any_operation(place, nullptr);
}

void test_abort_at_any_operation_on_streams(void **) {
  const IssueWork issue = issue_on_emulated_streams();
  if (issue == nullptr) test_skip();
  for (const Place place : {Place::first, Place::apart})
    check_abort_at_any_operation(place, issue);
}

void test_cancel_of_a_wait(void **) {
  const NetworkCase network = clipped_network();
  const Model model = assert_ok_value(build_network(network));
  TrainerOptions options = apart_from_memory();
  options.bucket_bytes = 64;
  options.cancel_grace_ms = 20;
  const auto expected = clean_states(model, 2, network, options, 2);
  FakeGroupOptions fault;
  fault.max_delay_us = 60'000'000;
  fault.timeout_ms = 600'000;
  const auto strategy = std::make_shared<FaultyStorage>(open_devices(2, Place::first), fault, nullptr);
  check_cancel_of_a_step(*open_trainer(model, strategy, network, options), expected);
}

void test_loss_that_is_not_finite(void **) {
  NetworkCase network;
  network.optimizer = Optimizer::momentum;
  const Model model = assert_ok_value(build_network(network));
  for (const Place place : kPlaces) {
    const auto trainer = open_trainer(model, central(3, place), network, apart_from_memory());
    assert_ok(trainer->run(1, nullptr));
    const Tensor bias = assert_ok_value(trainer->get_variable("second/bias"));
    Tensor bad = std::move(*Tensor::zeros(bias.dtype(), bias.shape()));
    bad.mutable_data_as<float>()[0] = INFINITY;
    assert_ok(trainer->set_variable("second/bias", bad));
    const State before = state_of(*trainer);
    const auto ran = trainer->run(2, nullptr);
    assert_int_equal(static_cast<int>(ran.status().code()), static_cast<int>(impl::base::Code::out_of_range));
    assert_contains(ran.status().to_string().c_str(), "step 2");
    assert_true(state_of(*trainer) == before);
    assert_int_equal(trainer->step(), 1);
    assert_ok(trainer->set_variable("second/bias", bias));
    assert_ok(trainer->run(2, nullptr));
    assert_int_equal(trainer->step(), 3);
  }
}

// ---- what is refused ----

void test_devices(void **) {
  const auto backend = assert_ok_value(open_test_backend(3));
  const auto name = backend->name();
  assert_error_contains(Strategy::central_storage({backend, 0}, {}), "at least one device");
  assert_error_contains(Strategy::central_storage({backend, 0}, {{backend, 1}, {backend, 1}}), "listed twice");
  assert_error_contains(Strategy::central_storage({backend, 3}, {{backend, 1}}), "storage device");
  const StrategyRef strategy =
      assert_ok_value(Strategy::central_storage({backend, 2}, {{backend, 0}, {backend, 1}, {backend, 2}}));
  assert_int_equal(strategy->devices()[0].index, 2);
  assert_int_equal(strategy->devices()[1].index, 0);
  assert_int_equal(strategy->devices()[2].index, 1);
  assert_false(strategy->stores_apart());
  assert_string_equal(strategy->describe().dump().c_str(),
                      ("{\"strategy\":\"central_storage\",\"devices\":[\"" + name + ":2\",\"" + name + ":0\",\"" +
                       name + ":1\"],\"storage\":\"" + name + ":2\"}")
                          .c_str());
}

void test_sums_that_it_does_not_have(void **) {
  const Model model = assert_ok_value(build_network({}));
  for (const auto choice : {AllReduceChoice::ring, AllReduceChoice::hierarchical, AllReduceChoice::reduce_to_one}) {
    TrainerOptions options;
    options.all_reduce = choice;
    assert_error_contains(Trainer::open(model, central(2, Place::first), options), "central storage");
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_devices),
    cmocka_unit_test(test_what_is_said),
    cmocka_unit_test(test_equals_mirrored),
    cmocka_unit_test(test_models),
    cmocka_unit_test(test_options),
    cmocka_unit_test(test_level_invariant),
    cmocka_unit_test(test_sums_of_connected_devices),
    cmocka_unit_test(test_one_replica),
    cmocka_unit_test(test_slots_are_with_the_storage_alone),
    cmocka_unit_test(test_memory_that_is_taken),
    cmocka_unit_test(test_restores_from_and_to_mirrored),
    cmocka_unit_test(test_values_that_are_set),
    cmocka_unit_test(test_abort_at_any_operation),
    cmocka_unit_test(test_abort_at_any_operation_on_streams),
    cmocka_unit_test(test_cancel_of_a_wait),
    cmocka_unit_test(test_loss_that_is_not_finite),
    cmocka_unit_test(test_sums_that_it_does_not_have),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::central_storage_test

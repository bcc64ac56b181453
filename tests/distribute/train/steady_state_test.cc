// SPDX-License-Identifier: Apache-2.0
//
// Steps after the first few allocate nothing, on any thread, whatever the number of replicas and micro-batches, beyond
// what the iterator needs for reading a batch.
#include "base/allocation_probe.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing {

/// Allocations of a run of `steps` steps.
static int64_t allocations(Trainer &trainer, int64_t steps) {
  const AllocationProbe probe;
  assert_ok(trainer.run(steps, nullptr));
  return probe.count();
}

/// Allocations of reading alone, as the feeder reads for `steps` steps: batches are looked at before they are taken.
static int64_t reading(impl::data::Iterator &iterator, int64_t steps, int32_t accumulation) {
  std::vector<impl::data::Element> batches(static_cast<size_t>(accumulation));
  impl::data::Element spare;
  const auto read = [&] {
    for (size_t m = 0; m < batches.size(); ++m)
      assert_true(assert_ok_value(iterator.peek(batches[m], m)));
    for (size_t m = 0; m < batches.size(); ++m)
      assert_true(assert_ok_value(iterator.next(spare)));
  };
  for (int64_t warm = 0; warm < 5; ++warm)
    read();
  const AllocationProbe probe;
  for (int64_t step = 0; step < steps; ++step)
    read();
  return probe.count();
}

static void check_steps(const Model &model, const StrategyRef &strategy, const NetworkCase &network,
                        const TrainerOptions &options) {
  auto trainer = assert_ok_value(Trainer::open(model, strategy, options));
  assert_ok(trainer->initialize());
  const auto rows = make_endless_batch(25, network.features, network.classes, network.dtype);
  assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
  (void)allocations(*trainer, 10 * options.device_prefetch);  // each place for a batch that is looked at is used
  // What a call of run() itself needs is in both.
  const int64_t few = allocations(*trainer, 20), many = allocations(*trainer, 220);
  auto alone = assert_ok_value(rows->make_iterator({}));
  assert_int_equal(many - few, reading(*alone, 200, options.accumulation));
}

static void check_steps(bool copies_input, int32_t depth = 1) {
  for (int32_t replicas = 1; replicas <= 3; ++replicas) {
    for (const int32_t accumulation : {1, 3}) {
      NetworkCase network;
      network.batch_norm = replicas == 2;
      TrainerOptions options;
      options.accumulation = accumulation;
      options.copies_input = copies_input;
      options.device_prefetch = depth;
      const Model model = assert_ok_value(build_network(network));
      check_steps(model, assert_ok_value(make_test_strategy(replicas)), network, options);
    }
  }
}

static void test_steps_allocate_nothing(void **) { check_steps(false); }
static void test_steps_that_copy_their_input_allocate_nothing(void **) { check_steps(true); }
/// Stored with a replica, and with a device of its own.
static void test_steps_with_central_storage_allocate_nothing(void **) {
  for (const int32_t storage : {0, 3}) {
    for (const int32_t accumulation : {1, 3}) {
      const NetworkCase network;
      TrainerOptions options;
      options.accumulation = accumulation;
      options.lowering = impl::distribute::Lowering::replicated;
      options.bucket_bytes = 128;  // many pieces
      const auto backend = assert_ok_value(open_test_backend(4));
      const StrategyRef strategy = assert_ok_value(
          impl::distribute::Strategy::central_storage({backend, storage}, {{backend, 0}, {backend, 1}, {backend, 2}}));
      check_steps(assert_ok_value(build_network(network)), strategy, network, options);
    }
  }
}
static void test_steps_far_ahead_allocate_nothing(void **) {
  for (const bool copies_input : {false, true})
    check_steps(copies_input, 4);
}

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::test_steps_allocate_nothing),
    cmocka_unit_test(tutti::testing::test_steps_that_copy_their_input_allocate_nothing),
    cmocka_unit_test(tutti::testing::test_steps_with_central_storage_allocate_nothing),
    cmocka_unit_test(tutti::testing::test_steps_far_ahead_allocate_nothing),
};
TEST_MAIN(tests)

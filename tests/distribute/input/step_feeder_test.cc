// SPDX-License-Identifier: Apache-2.0
//
// Batches that are read ahead: as many as are wanted and no more, the same training and the same saved states however
// many they are, wherever a run is stopped, with errors, batches without rows and ends in the middle.
#include "distribute/input/step_feeder.h"

#include <atomic>
#include <set>

#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/fault_case.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::step_feeder_test {

namespace base = impl::base;
namespace data = impl::data;
using impl::distribute::InputBinding;
using impl::distribute::RunReport;
using impl::distribute::StepFeeder;
using impl::distribute::StepInput;
using impl::distribute::StopReason;

constexpr int64_t kBatch = 4;
constexpr int32_t kMostAhead = 4;

/// What is wrong with some batches, by number, and what is told of each that is read.
struct Oddities {
  std::set<int64_t> short_ones = {}, without_rows = {}, failing = {};
  std::function<void(int64_t)> on_read = {};
};

static Result<data::DatasetRef> odd_batches(const NetworkCase &network, int64_t batches, const Oddities &oddities,
                                            bool ignores_errors = false) {
  data::TransformArguments arguments;
  arguments.map = [oddities](const data::Element &input, data::Element &output) {
    const int64_t number = input.lineage.index / kBatch;
    if (oddities.on_read) oddities.on_read(number);
    if (oddities.failing.contains(number)) return base::data_loss("batch ", number, " cannot be read");
    const int64_t rows = oddities.without_rows.contains(number) ? 0 : oddities.short_ones.contains(number) ? 3 : kBatch;
    output = input;
    for (Tensor &component : output.components) {
      TUTTI_ASSIGN(component, component.slice_rows(0, rows));
    }
    return Status();
  };
  data::Pipeline pipeline(make_rows(batches * kBatch, network.features, network.classes, network.dtype, kBatch));
  pipeline.apply("map_callback", {}, std::move(arguments));
  if (ignores_errors) pipeline.apply("ignore_errors");
  return pipeline.build();
}

// ---- the feeder alone ---------------------------------------------------------------------------------------------

/// A feeder over the network's inputs.
struct Feeding {
  const NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  std::unique_ptr<StepFeeder> feeder;

  explicit Feeding(const StepFeeder::Options &options) : feeder(assert_ok_value(StepFeeder::create(options))) {}
  Feeding(int32_t accumulation, int32_t depth) : Feeding({.accumulation = accumulation, .depth = depth}) {}

  void attach(const data::DatasetRef &dataset) {
    std::vector<impl::graph::InputSpec> inputs = model.features;
    inputs.insert(inputs.end(), model.labels.begin(), model.labels.end());
    assert_ok(feeder->attach(assert_ok_value(dataset->make_iterator({})),
                             assert_ok_value(InputBinding::make(inputs, dataset->spec()))));
  }
  std::string state() { return assert_ok_value(feeder->state()).dump(); }
};

/// The state after each number of batches.
static std::vector<std::string> states_of(const data::DatasetRef &dataset) {
  const auto iterator = assert_ok_value(dataset->make_iterator({}));
  std::vector<std::string> states;
  data::Element element;
  do
    states.push_back(iterator->save().dump());
  while (assert_ok_value(iterator->next(element)));
  return states;
}

/// No step ends here, so what has been read shows how far ahead that was. state() comes back when nobody reads.
static void test_reads_so_far_ahead(void **) {
  for (const int32_t accumulation : {1, 2}) {
    for (int32_t depth = 1; depth <= kMostAhead; ++depth) {
      Feeding feeding(accumulation, depth);
      StepFeeder &feeder = *feeding.feeder;
      std::atomic<int64_t> read{0};
      const auto dataset =
          assert_ok_value(odd_batches(feeding.network, 40, {.on_read = [&](int64_t) { read.fetch_add(1); }}));
      const std::vector<std::string> states = states_of(dataset);
      read.store(0);
      feeding.attach(dataset);
      assert_string_equal(feeding.state().c_str(), states[0].c_str());
      assert_int_equal(read.load(), 0);
      feeder.allow(7);
      for (int64_t n = 0; n < 7; ++n) {
        const int64_t end = std::min<int64_t>(n + depth, 7);
        for (int64_t ready = n; ready < end; ++ready) {
          assert_true(feeder.wait_ready(ready));
          assert_int_equal(feeder.input(ready).count, accumulation);
          assert_int_equal(feeder.input(ready).step_rows, accumulation * kBatch);
        }
        assert_string_equal(feeding.state().c_str(), states[static_cast<size_t>(n * accumulation)].c_str());
        assert_int_equal(read.load(), end * accumulation);
        feeder.start(n);
        assert_string_equal(feeding.state().c_str(), states[static_cast<size_t>(n * accumulation)].c_str());
        feeder.finish(n);
      }
      assert_string_equal(feeding.state().c_str(), states[static_cast<size_t>(7 * accumulation)].c_str());
      feeder.allow(8);
      assert_true(feeder.wait_ready(7));
      assert_string_equal(feeding.state().c_str(), states[static_cast<size_t>(7 * accumulation)].c_str());
      assert_int_equal(read.load(), 8 * accumulation);
    }
  }
}

/// A step that began before the one before it was judged has not happened when that one fails: its batches come again,
/// and are in no state.
static void test_steps_that_are_given_back_come_again(void **) {
  for (int32_t depth = 1; depth <= kMostAhead; ++depth) {
    Feeding feeding({.depth = depth, .in_flight = 2});
    StepFeeder &feeder = *feeding.feeder;
    assert_int_equal(feeder.slots(), depth + 2);
    const auto dataset = assert_ok_value(odd_batches(feeding.network, 12, {}));
    const std::vector<std::string> states = states_of(dataset);
    feeding.attach(dataset);
    feeder.allow(12);
    const auto begin = [&](int64_t n) {
      assert_true(feeder.wait_ready(n));
      assert_true(feeder.is_ready(n));
      feeder.start(n);
      const float *first = feeder.input(n).batches[0].components[0].data_as<float>();
      assert_true(first[0] == static_cast<float>(row_feature(n * kBatch, 0)));
    };
    begin(0);
    for (int64_t n = 1; n < 12; ++n) {
      begin(n);
      assert_string_equal(feeding.state().c_str(), states[static_cast<size_t>(n - 1)].c_str());
      feeder.finish(n - 1);
      assert_string_equal(feeding.state().c_str(), states[static_cast<size_t>(n)].c_str());
      if (n % 3 != 0) continue;
      // Everything that may be is read ahead by then.
      for (int64_t ahead = n + 1; ahead < std::min<int64_t>(n + 1 + depth, 12); ++ahead)
        assert_true(feeder.wait_ready(ahead));
      feeder.give_back(n);
      feeder.allow(n);
      assert_int_equal(feeder.next_step(), n);
      assert_string_equal(feeding.state().c_str(), states[static_cast<size_t>(n)].c_str());
      feeder.allow(12);
      begin(n);
    }
    feeder.finish(11);
    assert_string_equal(feeding.state().c_str(), states[12].c_str());
    feeder.allow(13);
    assert_true(feeder.wait_ready(12));
    assert_int_equal(feeder.input(12).count, 0);
  }
}

/// A step that failed through no fault of its batches has them again, all of them, and whatever was read ahead.
static void test_a_step_alone_is_given_back(void **) {
  for (int32_t depth = 1; depth <= kMostAhead; ++depth) {
    Feeding feeding(2, depth);
    StepFeeder &feeder = *feeding.feeder;
    const auto dataset = assert_ok_value(odd_batches(feeding.network, 12, {}));
    const std::vector<std::string> states = states_of(dataset);
    feeding.attach(dataset);
    feeder.allow(6);
    for (int64_t n = 0; n < 6; ++n) {
      for (int attempt = 0; attempt < 2; ++attempt) {
        assert_true(feeder.wait_ready(n));
        assert_int_equal(feeder.next_step(), n);
        feeder.start(n);
        for (int64_t m = 0; m < 2; ++m) {
          const auto *first = feeder.input(n).batches[static_cast<size_t>(m)].components[0].data_as<float>();
          assert_true(first[0] == static_cast<float>(row_feature((2 * n + m) * kBatch, 0)));
        }
        assert_true(feeder.wait_ready(std::min<int64_t>(n + depth, 5)));
        assert_string_equal(feeding.state().c_str(), states[static_cast<size_t>(2 * n)].c_str());
        if (attempt == 0) feeder.give_back(n);
        feeder.allow(6);
      }
      feeder.finish(n);
      assert_string_equal(feeding.state().c_str(), states[static_cast<size_t>(2 * n + 2)].c_str());
    }
  }
}

/// What is read so quickly that replicas do it is read when one of them has nothing else to do; it counts when its step
/// is done.
static void test_a_waiting_replica_reads_ahead(void **) {
  Feeding feeding({.quick_ns = INT64_MAX});
  StepFeeder &feeder = *feeding.feeder;
  const NetworkCase &network = feeding.network;
  const int64_t batches = 30;
  data::Pipeline pipeline(make_rows(batches * kBatch, network.features, network.classes, network.dtype, kBatch));
  feeding.attach(assert_ok_value(pipeline.repeat().build()));
  feeder.allow(INT64_MAX);
  int64_t n = 0;
  for (bool has_read = false; !has_read; ++n) {
    assert_true(n < 1000);
    assert_true(feeder.wait_ready(n));
    feeder.start(n);
    has_read = feeder.read_ahead();
    feeder.finish(n);
  }
  const float *next = feeder.input(n).batches[0].components[0].data_as<float>();
  assert_true(next[0] == static_cast<float>(row_feature(n % batches * kBatch, 0)));
  assert_false(feeder.read_ahead());
  const std::string taken = feeding.state();
  assert_true(feeder.wait_ready(n));
  assert_string_equal(feeding.state().c_str(), taken.c_str());
  feeder.start(n);
  assert_string_equal(feeding.state().c_str(), taken.c_str());
  feeder.finish(n);
  assert_string_not_equal(feeding.state().c_str(), taken.c_str());
}

/// An input that ends before so much could be read, and in the middle of a step.
static void test_an_end_comes_at_its_step(void **) {
  for (int32_t depth = 1; depth <= kMostAhead; ++depth) {
    Feeding feeding(2, depth);
    StepFeeder &feeder = *feeding.feeder;
    feeding.attach(assert_ok_value(odd_batches(feeding.network, 4, {.without_rows = {0, 2}})));
    feeder.allow(100);
    assert_true(feeder.wait_ready(0));
    assert_int_equal(feeder.input(0).count, 2);
    feeder.start(0);
    feeder.finish(0);
    for (int again = 0; again < 2; ++again) {
      assert_true(feeder.wait_ready(1));
      assert_int_equal(feeder.input(1).count, 0);
      assert_ok(feeder.input(1).status);
      feeder.allow(100);
    }
    feeding.attach(assert_ok_value(odd_batches(feeding.network, 3, {})));
    feeder.allow(100);
    for (int64_t n = 0; n < 3; ++n) {
      assert_true(feeder.wait_ready(n));
      assert_int_equal(feeder.input(n).count, 2 - n);
      feeder.start(n);
      feeder.finish(n);
    }
  }
}

/// A source from which nothing comes: who wants the state, another input or the end does not wait for it, and the
/// batches of a step of which the rest has not come are kept.
static void test_a_starved_read_ends_at_once(void **) {
  for (const auto &[accumulation, quick_ns] : {std::pair<int32_t, int64_t>{1, 0}, {2, 0}, {1, INT64_MAX}}) {
    Feeding feeding({.accumulation = accumulation, .depth = 3, .quick_ns = quick_ns});
    StepFeeder &feeder = *feeding.feeder;
    const auto batches = make_rows(100, feeding.network.features, feeding.network.classes, DType::f32, kBatch);
    const auto source = assert_ok_value(batches->make_iterator({}));
    const auto feed = assert_ok_value(data::Feed::create(batches->spec(), 30));
    const auto push = [&] {
      data::Element batch;
      assert_true(assert_ok_value(source->next(batch)));
      assert_ok(feed->push(std::move(batch), nullptr, base::Deadline::never()));
    };
    feeding.attach(assert_ok_value(data::Pipeline(feed->dataset()).build()));
    feeder.allow(100);
    for (int32_t b = 0; b < 2 * accumulation + 1; ++b)
      push();
    assert_true(feeder.wait_ready(1));
    const std::string first = feeding.state();
    feeder.start(0);
    feeder.finish(0);
    assert_false(feeding.state() == first);
    for (int32_t b = 0; b < accumulation; ++b) {
      push();
      (void)feeding.state();
    }
    assert_true(feeder.wait_ready(2));
    for (int32_t m = 0; m < accumulation; ++m) {
      const float value = feeder.input(2).batches[static_cast<size_t>(m)].components[0].data_as<float>()[0];
      assert_true(value == static_cast<float>(row_feature((2 * accumulation + m) * kBatch, 0)));
    }
    feeder.interrupt();
    assert_false(feeder.wait_ready(5));
    feeder.clear_interrupt();
    // Where replicas read themselves a step is late if none of them is reading.
    if (quick_ns == 0) assert_true(feeder.late_steps() > 0);
    feeding.attach(batches);
    feeder.allow(100);
    assert_true(feeder.wait_ready(2));
    const auto silent = assert_ok_value(data::Feed::create(batches->spec(), 30));
    feeding.attach(assert_ok_value(data::Pipeline(silent->dataset()).build()));
    feeder.allow(100);
  }
}

// ---- training -----------------------------------------------------------------------------------------------------

struct AheadCase {
  int32_t replicas = 1, accumulation = 1;
  bool copies_input = false;
};

static std::vector<AheadCase> ahead_cases() {
  if (is_test_backend_slow()) return {{1, 2, true}};
  return {{1, 1, false}, {1, 2, true}, {2, 1, true}, {2, 2, false}};
}

static std::unique_ptr<Trainer> open_ahead(const Model &model, const AheadCase &of, int32_t depth) {
  TrainerOptions options;
  options.level = impl::backend::Level::repeatable;
  options.accumulation = of.accumulation;
  options.copies_input = of.copies_input;
  options.device_prefetch = depth;
  auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(of.replicas)), options));
  assert_ok(trainer->initialize());
  return trainer;
}

/// Where a trainer stands after each step.
struct Standing {
  State weights;
  std::string input;
  int64_t batch_counter = 0;
  friend bool operator==(const Standing &, const Standing &) = default;
};

static Standing standing(Trainer &trainer) {
  return {state_of(trainer), assert_ok_value(trainer.input_state()).dump(), trainer.batch_counter()};
}

/// A run that is stopped again and again while batches ahead are being read stands where one that reads no batch ahead
/// does, and from each place goes on with another depth.
static void test_depth_changes_no_bit(void **) {
  constexpr int64_t batches = 13;
  const NetworkCase network{.optimizer = Optimizer::momentum};
  const Model model = assert_ok_value(build_network(network));
  const Oddities odd{.short_ones = {1, 9, 12}, .without_rows = {0, 4, 5}};
  for (const AheadCase &of : ahead_cases()) {
    const auto dataset = assert_ok_value(odd_batches(network, batches, odd));
    const auto single = open_ahead(model, of, 1);
    assert_ok(single->attach_input(assert_ok_value(dataset->make_iterator({}))));
    std::vector<Standing> wanted{standing(*single)};
    std::vector<impl::base::Ref<impl::checkpoint::WeightVersion>> versions{
        assert_ok_value(single->publish_weights(true))};
    while (assert_ok_value(single->run(1, nullptr)).reason == StopReason::steps_done) {
      wanted.push_back(standing(*single));
      versions.push_back(assert_ok_value(single->publish_weights(true)));
    }
    assert_int_equal(wanted.size(), 1 + (10 + of.accumulation - 1) / of.accumulation);
    for (int32_t depth = 1; depth <= kMostAhead; ++depth) {
      const auto trainer = open_ahead(model, of, depth);
      Oddities stopping = odd;
      stopping.on_read = [&](int64_t) { trainer->request_stop(); };
      const auto stopped = assert_ok_value(odd_batches(network, batches, stopping));
      assert_ok(trainer->attach_input(assert_ok_value(stopped->make_iterator({}))));
      for (;;) {
        const RunReport report = assert_ok_value(trainer->run(-1, nullptr));
        if (report.reason == StopReason::end_of_input) break;
        assert_true(standing(*trainer) == wanted[static_cast<size_t>(trainer->step())]);
      }
      assert_int_equal(trainer->step() + 1, wanted.size());
      assert_true(state_of(*trainer) == wanted.back().weights);
      assert_int_equal(trainer->counters().steps, trainer->step());
      assert_ok(trainer->attach_input(nullptr));  // the walk calls the trainer
    }
    for (size_t from = 0; from < wanted.size(); ++from) {
      const auto trainer = open_ahead(model, of, static_cast<int32_t>(1 + from % kMostAhead));
      auto walk = assert_ok_value(dataset->make_iterator({}));
      assert_ok(walk->restore(assert_ok_value(base::Json::parse(wanted[from].input))));
      assert_ok(trainer->restore(*versions[from]));
      trainer->set_batch_counter(wanted[from].batch_counter);
      assert_ok(trainer->attach_input(std::move(walk)));
      assert_ok(trainer->run(-1, nullptr));
      assert_true(state_of(*trainer) == wanted.back().weights);
    }
  }
}

/// An error comes at its step, whatever has been read by then, and the next run goes on behind it.
static void test_an_error_comes_at_its_step(void **) {
  const NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  const Oddities odd{.without_rows = {5}, .failing = {6, 7, 10}};
  for (const AheadCase &of : ahead_cases()) {
    std::vector<Standing> wanted;
    for (int32_t depth = 1; depth <= kMostAhead; ++depth) {
      const auto dataset = assert_ok_value(odd_batches(network, 12, odd));
      const auto trainer = open_ahead(model, of, depth);
      assert_ok(trainer->attach_input(assert_ok_value(dataset->make_iterator({}))));
      // Where the pieces end makes no difference either.
      if (depth == 3) assert_ok(trainer->run(2, nullptr));
      std::vector<Standing> seen;
      for (const int64_t failing : odd.failing) {
        const Result<RunReport> report = trainer->run(-1, nullptr);
        const std::string number = std::to_string(failing);
        assert_error_contains(report, ("batch " + number + " cannot be read").c_str());
        assert_error_contains(report,
                              ("reading the input of step " + std::to_string(trainer->step() + 1) + " failed").c_str());
        seen.push_back(standing(*trainer));
      }
      assert_true(assert_ok_value(trainer->run(-1, nullptr)).reason == StopReason::end_of_input);
      seen.push_back(standing(*trainer));
      if (depth == 1) wanted = seen;
      assert_true(seen == wanted);
      if (of.accumulation > 1) continue;
      // 12 batches without the bad ones and the empty one.
      assert_int_equal(trainer->step(), 8);
      const auto without = open_ahead(model, of, depth);
      assert_ok(without->attach_input(
          assert_ok_value(assert_ok_value(odd_batches(network, 12, odd, true))->make_iterator({}))));
      assert_ok(without->run(-1, nullptr));
      assert_true(state_of(*without) == seen.back().weights);
    }
  }
}

/// What was read of a step that fails is not used by the next one, but what was read ahead of an error that nobody has
/// seen is.
static void test_an_unseen_error_stays(void **) {
  const NetworkCase network;
  Feeding feeding(2, 3);
  StepFeeder &feeder = *feeding.feeder;
  const auto dataset = assert_ok_value(odd_batches(feeding.network, 12, {.failing = {3}}));
  feeding.attach(dataset);
  feeder.allow(100);
  const std::string before = feeding.state();
  assert_true(feeder.wait_ready(1));
  assert_false(feeder.input(1).status.ok());
  feeder.allow(0);
  feeder.allow(100);
  assert_true(feeder.wait_ready(1));
  assert_false(feeder.input(1).status.ok());
  assert_string_equal(feeding.state().c_str(), before.c_str());
  feeder.start(0);
  feeder.finish(0);
  feeder.failed();
  feeder.allow(100);
  assert_true(feeder.wait_ready(1));
  assert_ok(feeder.input(1).status);
  const float value = feeder.input(1).batches[0].components[0].data_as<float>()[0];
  assert_true(value == static_cast<float>(row_feature(4 * kBatch, 0)));
}

static void test_depth_is_checked(void **) {
  const Model model = assert_ok_value(build_network({}));
  for (const int32_t depth : {0, -1, impl::distribute::kMostDevicePrefetch + 1}) {
    TrainerOptions options;
    options.device_prefetch = depth;
    const auto trainer = Trainer::open(model, assert_ok_value(make_test_strategy(1)), options);
    assert_error_contains(trainer, "device_prefetch must be 1 to 16 steps");
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_steps_that_are_given_back_come_again),
    cmocka_unit_test(test_a_step_alone_is_given_back),
    cmocka_unit_test(test_reads_so_far_ahead),
    cmocka_unit_test(test_a_waiting_replica_reads_ahead),
    cmocka_unit_test(test_an_end_comes_at_its_step),
    cmocka_unit_test(test_a_starved_read_ends_at_once),
    cmocka_unit_test(test_depth_changes_no_bit),
    cmocka_unit_test(test_an_error_comes_at_its_step),
    cmocka_unit_test(test_an_unseen_error_stays),
    cmocka_unit_test(test_depth_is_checked),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::step_feeder_test

// SPDX-License-Identifier: Apache-2.0
//
// What a walk reports about itself, errors that are ignored, and how many calls of a map are under way at once.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "conformance/dataset_conformance.h"
#include "sample_data.h"

using namespace tutti::impl;
using namespace tutti::testing;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;

namespace {

Pipeline mapped(Pipeline pipeline, data::MapFunction function, int64_t parallelism = 1) {
  data::TransformArguments arguments;
  arguments.map = std::move(function);
  return std::move(pipeline.apply("map_callback", {{"parallelism", parallelism}}, std::move(arguments)));
}

data::MapFunction waiting(int64_t microseconds) {
  return [=](const Element &input, Element &output) {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    output = input;
    return Status();
  };
}

// Every third element fails.
Status fail_on_threes(const Element &input, Element &output) {
  TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
  if (value % 3 == 2) return base::data_loss("element ", value, " is torn");
  output = input;
  return Status();
}

Pipeline ignoring(Pipeline pipeline, int64_t budget) {
  return std::move(pipeline.apply("ignore_errors", {{"budget", budget}}));
}

base::Json walk(const DatasetRef &dataset, int64_t consumer_us = 0) {
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  for (Element element; assert_ok_value(iterator->next(element));) {
    if (consumer_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(consumer_us));
  }
  return iterator->report();
}

// The report's entry of a stage.
base::JsonReader stage_of(const base::Json &report, const std::string &kind) {
  const base::JsonReader reader(report, "report");
  for (const base::JsonReader &stage : assert_ok_value(assert_ok_value(reader.get("stages")).elements())) {
    if (assert_ok_value(stage.get_string("stage")) == kind) return stage;
  }
  print_error("no stage %s\n", kind.c_str());
  _fail(__FILE__, __LINE__);
  return reader;
}

std::string limit_of(const base::Json &report) {
  return assert_ok_value(assert_ok_value(base::JsonReader(report, "report").get("limit")).get_string("stage"));
}

void everything_is_counted(void **) {
  const DatasetRef dataset = assert_ok_value(mapped(sample(1000, 3), waiting(0)).batch(64).prefetch(4).build());
  const base::Json report = walk(dataset);
  const auto check = [&](const char *kind, int64_t elements, int64_t bytes) {
    const base::JsonReader stage = stage_of(report, kind);
    assert_int_equal(assert_ok_value(stage.get_integer("elements")), elements);
    assert_int_equal(assert_ok_value(stage.get_integer("bytes")), bytes);
    assert_int_equal(assert_ok_value(stage.get_integer("failures")), 0);
  };
  check("prefetch", 16, 16000);
  check("batch", 16, 16000);
  check("map_callback", 1000, 16000);
  check("slices", 1000, 16000);
  const double depth = assert_ok_value(stage_of(report, "prefetch").get_double("mean_depth"));
  assert_true(depth >= 0 && depth <= 4);
  assert_int_equal(assert_ok_value(stage_of(report, "prefetch").get_integer("threads")), 1);
  // What is read by position is counted as a whole.
  const base::Json fused = walk(assert_ok_value(sample(100).shuffle(100).batch(10).build()));
  assert_int_equal(assert_ok_value(stage_of(fused, "shuffle").get_integer("elements")), 100);
  assert_false(assert_ok_value(stage_of(fused, "slices").get_boolean("is_counted")));
}

void the_limit_is_named(void **) {
  for (const int64_t parallelism : {1, 2}) {
    const DatasetRef slow_map =
        assert_ok_value(mapped(sample(60), waiting(1000), parallelism).batch(4).prefetch().build());
    const base::Json report = walk(slow_map);
    assert_string_equal(limit_of(report).c_str(), "map_callback");
    assert_contains(assert_ok_value(base::JsonReader(report, "report").get_string("text")).c_str(),
                    "limit: map_callback, its own work took ");
    assert_string_equal(limit_of(walk(slow_map, 20000)).c_str(), "consumer");
  }
  // Before the parallel map: its input, which one thread at a time draws.
  const DatasetRef slow_input = assert_ok_value(mapped(mapped(range(60), waiting(1000)), waiting(1), 4).build());
  const base::Json report = walk(slow_input);
  assert_string_equal(limit_of(report).c_str(), "map_callback");
  // Its own work is not what it waits for, 60 ms at least.
  assert_true(assert_ok_value(stage_of(report, "map_callback").get_double("self_ms")) < 60);
}

void failures_and_passes_add_up(void **) {
  const DatasetRef dataset = assert_ok_value(ignoring(mapped(range(9), fail_on_threes), 3).repeat(2).build());
  const base::Json report = walk(dataset);
  assert_int_equal(assert_ok_value(stage_of(report, "repeat").get_integer("elements")), 12);
  assert_int_equal(assert_ok_value(stage_of(report, "map_callback").get_integer("failures")), 6);
  const base::JsonReader ignoring_stage = stage_of(report, "ignore_errors");
  assert_int_equal(assert_ok_value(ignoring_stage.get_integer("ignored")), 6);
  const auto errors = assert_ok_value(ignoring_stage.get_strings("ignored_errors"));
  assert_int_equal(errors.size(), 6);
  assert_contains(errors[0].c_str(), "element 2 is torn");
}

void errors_are_ignored_within_a_budget(void **) {
  const auto values = [](int64_t budget) {
    return values_of<int64_t>(assert_ok_value(ignoring(mapped(range(12), fail_on_threes), budget).build()), "value");
  };
  assert_true((values(4) == std::vector<int64_t>{0, 1, 3, 4, 6, 7, 9, 10}));
  auto iterator =
      assert_ok_value(assert_ok_value(ignoring(mapped(range(12), fail_on_threes), 1).build())->make_iterator({}));
  Element element;
  for (int64_t i = 0; i < 4; ++i)
    assert_true(assert_ok_value(iterator->next(element)));
  for (int64_t i = 0; i < 2; ++i) {
    assert_error_contains(iterator->next(element), "2 elements failed; expected at most 1");
    assert_error_contains(iterator->next(element), "element 5 is torn");
  }
}

void ignoring_conforms(void **) {
  const auto of = [](std::string name, std::function<Pipeline()> make) {
    return DatasetCase{std::move(name), [make] { return DatasetInstance{make().build()}; }};
  };
  DatasetCase overdrawn =
      of("ignore_errors, overdrawn, batch", [] { return std::move(ignoring(mapped(range(20), fail_on_threes), 2)); });
  overdrawn.fails = true;
  overdrawn.limit = 9;
  const DatasetCase cases[] = {
      of("ignore_errors", [] { return ignoring(mapped(range(20), fail_on_threes), 100); }),
      of("ignore_errors, parallel, batch, prefetch",
         [] { return std::move(ignoring(mapped(range(20), fail_on_threes, 3), 100).batch(4).prefetch(2)); }),
      std::move(overdrawn),
  };
  for (const DatasetCase &one : cases) {
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
}

// Calls of a map that meet: each waits until `wanted` are under way, or for long.
class Meeting {
 public:
  explicit Meeting(int64_t wanted) : wanted_(wanted) {}

  void attend() {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++present_);
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return most_ >= wanted_; });
    --present_;
  }
  int64_t most() const { return most_; }

 private:
  const int64_t wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t present_ = 0;
  int64_t most_ = 0;
};

void as_many_calls_are_under_way_as_asked_for(void **) {
  Meeting meeting(8);
  const data::MapFunction attend = [&](const Element &input, Element &output) {
    meeting.attend();
    output = input;
    return Status();
  };
  const DatasetRef dataset = assert_ok_value(mapped(range(64), attend, 8).build());
  const std::vector<int64_t> values = values_of<int64_t>(dataset, "value");
  assert_int_equal(meeting.most(), 8);
  assert_int_equal(values.size(), 64);
  for (size_t i = 0; i < values.size(); ++i)
    assert_int_equal(values[i], i);  // in order all the same
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(everything_is_counted),      cmocka_unit_test(the_limit_is_named),
    cmocka_unit_test(failures_and_passes_add_up), cmocka_unit_test(errors_are_ignored_within_a_budget),
    cmocka_unit_test(ignoring_conforms),          cmocka_unit_test(as_many_calls_are_under_way_as_asked_for),
};
TEST_MAIN(tests)

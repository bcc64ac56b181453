// SPDX-License-Identifier: Apache-2.0
//
// What a walk reports about itself, errors that are ignored, and how many calls of a map are under way at once.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "conformance/dataset_conformance.h"
#include "data/dataset/walk_report.h"
#include "sample_data.h"

namespace walk_report_test {

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

base::Json walk(const DatasetRef &dataset) {
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  for (Element element; assert_ok_value(iterator->next(element));) {
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

int64_t test_clock_ns = 0;
int64_t test_now() { return test_clock_ns; }

constexpr int64_t kMillisecond = 1000000;

// What a report says after 100 ms in which each stage of `last` was waited for so long, from the last one on, by a
// clock of the test. `counters` adds what else is to be said of a stage by its kind.
base::Json report_of(const DatasetRef &last, std::vector<int64_t> waited_ms,
                     const std::function<void(const std::string &, data::StageCounters &)> &counters) {
  test_clock_ns = 0;
  data::WalkReport report(last, test_now);
  const data::Dataset *stage = last.get();
  for (const int64_t waited : waited_ms) {
    data::StageCounters &own = report.counters_of(*stage);
    own.add_call(10, 160, waited * kMillisecond);
    counters(stage->kind(), own);
    if (!stage->inputs().empty()) stage = stage->inputs()[0].get();
  }
  test_clock_ns = 100 * kMillisecond;
  return report.to_json();
}

std::string reason_of(const base::Json &report) {
  return assert_ok_value(assert_ok_value(base::JsonReader(report, "report").get("limit")).get_string("reason"));
}

void the_limit_is_named(void **) {
  const DatasetRef last = assert_ok_value(mapped(sample(60), waiting(0), 2).batch(4).prefetch().build());
  const auto two_threads = [](int64_t work_ms) {
    return [=](const std::string &kind, data::StageCounters &counters) {
      if (kind == "prefetch") counters.mark_ahead(1);
      if (kind != "map_callback") return;
      counters.mark_ahead(2);
      counters.add_work(work_ms * kMillisecond);
      counters.add_full(6 * kMillisecond);
      counters.add_depth(1);
      counters.add_depth(2);
    };
  };
  // prefetch, batch, map_callback, slices
  const base::Json mapping = report_of(last, {95, 97, 96, 2}, two_threads(180));
  assert_string_equal(limit_of(mapping).c_str(), "map_callback");
  assert_string_equal(reason_of(mapping).c_str(),
                      "its own work took 90.0 ms in each of 2 threads of 100.0 ms, while the consumer waited 95.0 ms");
  assert_contains(assert_ok_value(base::JsonReader(mapping, "report").get_string("text")).c_str(),
                  "    map_callback: 10 elements, own work 90.0 ms in each of 2 threads, waited 2.0 ms for its input "
                  "and 3.0 ms for its consumer, which waited 96.0 ms, 1.5 elements ready\n");
  const base::JsonReader batch = stage_of(mapping, "batch");
  assert_true(assert_ok_value(batch.get_double("busy_ms")) == 1);
  assert_true(assert_ok_value(batch.get_double("wait_in_ms")) == 96);
  // The threads of the map wait for one that reads.
  const base::Json reading = report_of(last, {95, 97, 96, 94}, two_threads(10));
  assert_string_equal(limit_of(reading).c_str(), "slices");
  const base::Json batching = report_of(last, {95, 97, 1, 0}, two_threads(10));
  assert_string_equal(limit_of(batching).c_str(), "batch");
  const base::Json consuming = report_of(last, {9, 20, 10, 0}, two_threads(100));
  assert_string_equal(limit_of(consuming).c_str(), "consumer");
  assert_contains(reason_of(consuming).c_str(), "waited for the pipeline only 9.0 ms of 100.0 ms");
}

// What does not depend on who else uses the machine: calls that sleep take as long as that, at least.
void own_work_is_measured(void **) {
  const base::Json report =
      walk(assert_ok_value(mapped(mapped(range(60), waiting(1000)), waiting(100), 4).batch(4).prefetch().build()));
  const base::JsonReader second = stage_of(report, "map_callback #2 of 2");
  assert_true(assert_ok_value(second.get_double("wait_in_ms")) >= 60);
  assert_true(assert_ok_value(second.get_double("busy_ms")) >= 60 * 0.1 / 4);
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

// Pipelines that a function makes of numbers n: n elements, of which those of 2, 5, ... fail in the second map.
data::TransformArguments making(std::atomic<int64_t> *made = nullptr) {
  data::TransformArguments arguments;
  arguments.expand = [made](const Element &input) -> base::Result<DatasetRef> {
    TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
    if (made != nullptr) ++*made;
    return ignoring(mapped(mapped(range(value), waiting(20)), fail_on_threes), 1000).build();
  };
  return arguments;
}

void datasets_of_functions_are_counted_together(void **) {
  for (const char *transform : {"flat_map", "interleave_callback"}) {
    const std::string prefix = base::concat(transform, "/");
    Pipeline pipeline = range(40);
    const base::Json report = walk(assert_ok_value(pipeline.apply(transform, {}, making()).build()));
    const base::JsonReader all = stage_of(report, transform);
    const base::JsonReader source = stage_of(report, prefix + "range");
    const base::JsonReader failing = stage_of(report, prefix + "map_callback #2 of 2");
    assert_int_equal(assert_ok_value(source.get_integer("elements")), 40 * 39 / 2);
    assert_int_equal(assert_ok_value(stage_of(report, prefix + "map_callback #1 of 2").get_integer("elements")), 780);
    const int64_t failures = assert_ok_value(failing.get_integer("failures"));
    assert_int_equal(failures, 247);
    assert_int_equal(assert_ok_value(stage_of(report, prefix + "ignore_errors").get_integer("ignored")), failures);
    assert_int_equal(assert_ok_value(all.get_integer("elements")), 780 - failures);
    assert_int_equal(assert_ok_value(stage_of(report, "range").get_integer("elements")), 40);
    // One entry for each, however many datasets there were.
    const base::JsonReader reader(report, "report");
    assert_int_equal(assert_ok_value(assert_ok_value(reader.get("stages")).elements()).size(), 6);
    assert_string_equal(limit_of(report).c_str(), (prefix + "map_callback #1 of 2").c_str());
    assert_contains(assert_ok_value(reader.get_string("text")).c_str(), (prefix + "range: 780 elements").c_str());
  }
}

// What walks under way have counted is there too, and those that are over are gone.
void walks_of_made_datasets_come_and_go(void **) {
  std::atomic<int64_t> made = 0;
  const DatasetRef dataset = assert_ok_value(
      range(5).repeat(-1).apply("interleave_callback", {{"cycle_length", int64_t{3}}}, making(&made)).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  int64_t most = 0;
  for (int64_t i = 0; i < 500; ++i) {
    assert_true(assert_ok_value(iterator->next(element)));
    const int64_t counted =
        assert_ok_value(stage_of(iterator->report(), "interleave_callback/range").get_integer("elements"));
    assert_true(counted >= most && counted >= i);
    most = counted;
  }
  assert_true(made > 200);
}

// The detail stage is what the report calls it.
void errors_name_stages_as_the_report_does(void **) {
  const auto failing_stage = [](const DatasetRef &dataset) {
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    Element element;
    for (int i = 0; i < 100; ++i) {
      const auto more = iterator->next(element);
      if (more.ok() && *more) continue;
      assert_false(more.ok());
      const std::string name = *more.status().error()->find_detail("stage");
      (void)stage_of(iterator->report(), name);
      return name;
    }
    fail_msg("nothing fails");
    return std::string();
  };
  for (const int64_t parallelism : {1, 3}) {
    const auto twice = [&](bool is_second) {
      const auto good = waiting(0);
      Pipeline one = mapped(range(9), is_second ? good : fail_on_threes, parallelism);
      return std::move(mapped(std::move(one), is_second ? fail_on_threes : good, parallelism).batch(2).prefetch(2));
    };
    assert_string_equal(failing_stage(assert_ok_value(twice(false).build())).c_str(), "map_callback #1 of 2");
    assert_string_equal(failing_stage(assert_ok_value(twice(true).build())).c_str(), "map_callback #2 of 2");
  }
  data::TransformArguments expand;
  expand.expand = [](const Element &) { return mapped(range(9), fail_on_threes).build(); };
  Pipeline flat = mapped(range(3), waiting(0));
  assert_string_equal(failing_stage(assert_ok_value(flat.apply("flat_map", {}, expand).batch(4).build())).c_str(),
                      "flat_map/map_callback");
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
  auto resumed =
      assert_ok_value(assert_ok_value(ignoring(mapped(range(12), fail_on_threes), 1).build())->make_iterator({}));
  assert_ok(resumed->restore(iterator->save()));
  assert_error_contains(resumed->next(element), "2 elements failed; expected at most 1");
  assert_true(resumed->next(element).code() == base::Code::aborted);
}

void ignoring_conforms(void **) {
  const auto of = [](std::string name, std::function<Pipeline()> make) {
    return DatasetCase{std::move(name), [make] { return DatasetInstance{make().build()}; }};
  };
  DatasetCase overdrawn =
      of("ignore_errors, overdrawn, batch", [] { return std::move(ignoring(mapped(range(20), fail_on_threes), 2)); });
  overdrawn.fails = true;
  overdrawn.limit = 7;  // a walk that is resumed behind it no longer knows the error
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
    cmocka_unit_test(everything_is_counted),
    cmocka_unit_test(the_limit_is_named),
    cmocka_unit_test(own_work_is_measured),
    cmocka_unit_test(failures_and_passes_add_up),
    cmocka_unit_test(datasets_of_functions_are_counted_together),
    cmocka_unit_test(walks_of_made_datasets_come_and_go),
    cmocka_unit_test(errors_name_stages_as_the_report_does),
    cmocka_unit_test(errors_are_ignored_within_a_budget),
    cmocka_unit_test(ignoring_conforms),
    cmocka_unit_test(as_many_calls_are_under_way_as_asked_for),
};
TEST_MAIN(tests)

}  // namespace walk_report_test

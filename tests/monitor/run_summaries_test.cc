// SPDX-License-Identifier: Apache-2.0
#include "monitor/run_summaries.h"

#include <array>

#include "base/temporary_directory.h"
#include "base/text.h"
#include "monitor/event_decoder.h"
#include "testing.h"

namespace tutti::testing::run_summaries_test {

namespace base = impl::base;
using impl::monitor::RunSummaries;
using impl::monitor::RunSummaryOptions;
using impl::monitor::SeenStep;

using Points = std::vector<std::pair<int64_t, double>>;

/// Keeps what it is told.
class RememberingLogger {
 public:
  RememberingLogger() : logger_(base::make_ref<base::Logger>()) {
    logger_->set_sink([this](base::Severity severity, std::string_view message) {
      text_ += base::concat(base::name(severity), ": ", message, "\n");
    });
  }
  const base::Ref<base::Logger> &logger() const { return logger_; }
  const std::string &text() const { return text_; }

 private:
  base::Ref<base::Logger> logger_;
  std::string text_;
};

static void test_rates(void **) {
  const TemporaryDirectory folder;
  const RememberingLogger log;
  RunSummaries summaries({.folder = folder.path(), .flush_secs = 0}, log.logger());
  const std::array<std::string, 2> names = {"loss", "accuracy"};
  const std::array<double, 2> values = {0.5, 0.25};
  constexpr int64_t kSecond = 1'000'000'000;
  summaries.begin(10);
  const std::array<SeenStep, 2> steps = {
      {{100 * kSecond, 11, 64, kSecond / 4, values}, {104 * kSecond, 21, 704, kSecond / 4 + kSecond, values}}};
  summaries.add_steps(steps, names);
  summaries.begin(21);  // what was counted before does not count
  summaries.add_steps({{{200 * kSecond, 22, 64, 0, values}}}, names);
  const std::vector<DecodedEvent> events = decode_event_folder(folder.path());
  assert_true((curve(events, "loss") == Points{{11, 0.5}, {21, 0.5}, {22, 0.5}}));
  assert_true((curve(events, "accuracy") == Points{{11, 0.25}, {21, 0.25}, {22, 0.25}}));
  assert_true((curve(events, "global_step/sec") == Points{{21, 2.5}}));
  assert_true((curve(events, "examples/sec") == Points{{21, 160}}));
  assert_true((curve(events, "input_wait_fraction") == Points{{21, 0.25}}));
  assert_string_equal(log.text().c_str(), "");
}

static void test_evaluations(void **) {
  const TemporaryDirectory folder;
  for (const int64_t resumed : {0, 100}) {
    RunSummaries summaries({.folder = folder.path(), .flush_secs = 1e9}, {});
    summaries.begin(resumed);
    for (int64_t step = resumed + 100; step <= resumed + 200; step += 100)
      summaries.add_evaluation(step, {{{"loss", static_cast<double>(resumed + step)}}});
    summaries.add_evaluation(50, {{{"loss", 1}}});  // of an older checkpoint
  }
  const std::vector<DecodedEvent> events = shown_events(decode_event_folder(folder / "eval"));
  assert_true((curve(events, "loss") == Points{{100, 100}, {50, 1}, {200, 300}, {300, 400}, {50, 1}}));
  assert_true(curve(decode_event_folder(folder.path()), "loss").empty());
}

// Whole lines, behind those of former runs; the half line of one that was killed is ended, and taken for no other.
static void test_record(void **) {
  const TemporaryDirectory folder;
  const RememberingLogger log;
  const std::string path = folder / "deep/run.jsonl";
  RunSummaries({.folder = folder / "deep"}, log.logger())
      .add_record("training", base::JsonObject{{"step", 3}, {"name", "a\nb\""}});
  const std::string first = assert_ok_value(base::read_file(path));
  assert_ok(base::write_file_synced(path, first + "{\"event\": \"evalu"));
  RunSummaries second({.folder = folder / "deep"}, log.logger());
  second.add_record("evaluation", base::JsonObject{{"loss", base::Json()}});
  second.add_record("evaluation", base::JsonObject{{"loss", 0.5}});
  const std::vector<std::string> lines = base::split(assert_ok_value(base::read_file(path)), '\n');
  assert_int_equal(lines.size(), 5);
  assert_string_equal(lines[4].c_str(), "");
  const auto object = [&](size_t i) { return assert_ok_value(base::Json::parse(lines[i])); };
  assert_string_equal(object(0).find("event")->string().c_str(), "training");
  assert_int_equal(object(0).find("step")->integer(), 3);
  assert_string_equal(object(0).find("name")->string().c_str(), "a\nb\"");
  assert_true(object(0).find("time")->number() > 1.7e9);
  assert_false(base::Json::parse(lines[1]).ok());
  assert_true(object(2).find("loss")->is_null() && object(3).find("loss")->number() == 0.5);
  assert_string_equal(log.text().c_str(), "");
  RunSummaries({}, log.logger()).add_record("training", {});  // nothing is written
}

static void test_one_warning(void **) {
  const TemporaryDirectory folder;
  assert_ok(base::write_file_synced(folder / "file", ""));
  const RememberingLogger log;
  RunSummaries summaries({.folder = folder / "file", .flush_secs = 0}, log.logger());
  summaries.begin(0);
  for (int64_t step = 1; step < 5; ++step)
    summaries.add_values(step, {{{"x", 1}}});
  summaries.add_evaluation(4, {{{"x", 1}}});
  const std::string text = log.text();
  assert_contains(text.c_str(), "WARNING: summaries for TensorBoard cannot be written: ");
  assert_contains(text.c_str(), folder.path().c_str());
  assert_true(text.find("WARNING", 1) == std::string::npos);
}

static void test_off(void **) {
  const RememberingLogger log;
  RunSummaries summaries({}, log.logger());
  assert_false(summaries.is_on());
  summaries.begin(0);
  summaries.add_values(1, {{{"x", 1}}});
  summaries.describe(1, 1, impl::graph::Graph(), {}, {});
  summaries.add_evaluation(1, {{{"x", 1}}});
  summaries.flush();
  assert_string_equal(log.text().c_str(), "");
}

static const CMUnitTest tests[] = {
    cmocka_unit_test(test_rates),       cmocka_unit_test(test_evaluations), cmocka_unit_test(test_record),
    cmocka_unit_test(test_one_warning), cmocka_unit_test(test_off),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::run_summaries_test

// SPDX-License-Identifier: Apache-2.0
//
// Files of metrics, byte by byte: new ones, those that go on, and those that hold something else.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/checkpoint_testing.h"
#include "estimator/hooks/metrics_file.h"
#include "estimator/hooks/metrics_file_hook.h"
#include "testing.h"

namespace metrics_file_test {

using namespace tutti::impl;
using namespace tutti::impl::estimator;
using namespace tutti::impl::estimator::hooks;
using checkpoint::TemporaryDirectory;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string contents(const std::string &path) {
  auto text = base::read_file(path);
  assert_ok(text);
  return text.take();
}

void put(const std::string &path, std::string_view text) { assert_ok(base::write_file_atomically(path, text)); }

MetricsFile open(const std::string &path, MetricsFormat format, int64_t step) {
  auto file = MetricsFile::open(path, format, step);
  assert_ok(file);
  return file.take();
}

void add(MetricsFile &file, std::string_view event, int64_t step, const std::vector<NamedNumber> &values,
         double speed = -1) {
  assert_ok(file.add({.event = event,
                      .time = 1.5 + static_cast<double>(step),
                      .step = step,
                      .epoch = 1,
                      .examples_per_second = speed,
                      .values = values}));
}

void test_csv(void **) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/metrics.csv";
  MetricsFile file = open(path, MetricsFormat::csv, 0);
  add(file, "step", 10, {{"loss", 0.25}, {"accuracy", 0.5}}, 1234.5);
  add(file, "step", 20, {{"loss", kNan}, {"accuracy", std::numeric_limits<double>::infinity()}});
  assert_string_equal(contents(path).c_str(),
                      "event,time,step,epoch,examples_per_second,loss,accuracy\n"
                      "step,11.500,10,1,1234.5,0.25,0.5\n"
                      "step,21.500,20,1,,nan,inf\n");
  // For an evaluation with metrics of its own all lines get columns; odd names are quoted, those of columns changed.
  add(file, "evaluation", 20, {{"loss", 0.125}, {"a \"b\", c", 3}, {"step", 7}});
  assert_string_equal(contents(path).c_str(),
                      "event,time,step,epoch,examples_per_second,loss,accuracy,\"a \"\"b\"\", c\",metric/step\n"
                      "step,11.500,10,1,1234.5,0.25,0.5,,\n"
                      "step,21.500,20,1,,nan,inf,,\n"
                      "evaluation,21.500,20,1,,0.125,,3,7\n");
}

void test_json_lines(void **) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/metrics.jsonl";
  MetricsFile file = open(path, MetricsFormat::json_lines, 0);
  add(file, "step", 10, {{"loss", 0.25}, {"a \"b\"\n", 0.5}}, 1234.5);
  add(file, "end", 11, {{"loss", kNan}});
  const std::string text = contents(path);
  const size_t end = text.find('\n');
  const auto first = base::Json::parse(text.substr(0, end)), second = base::Json::parse(text.substr(end + 1));
  assert_ok(first);
  assert_ok(second);
  assert_string_equal(first->find("event")->string().c_str(), "step");
  assert_true(first->find("time")->number() == 11.5 && first->find("step")->integer() == 10);
  assert_true(first->find("epoch")->integer() == 1 && first->find("examples_per_second")->number() == 1234.5);
  assert_true(first->find("loss")->number() == 0.25 && first->find("a \"b\"\n")->number() == 0.5);
  assert_true(second->find("loss")->is_null() && second->find("examples_per_second") == nullptr);
}

void test_a_file_goes_on(void **) {
  const TemporaryDirectory folder;
  for (const MetricsFormat format : {MetricsFormat::csv, MetricsFormat::json_lines}) {
    const std::string path = base::concat(folder.path(), "/metrics", static_cast<int>(format));
    {
      MetricsFile file = open(path, format, 0);
      for (int64_t step = 10; step <= 40; step += 10)
        add(file, "step", step, {{"loss", 0.5}, {"x, \"\n", 1}});
    }
    const std::string whole = contents(path);
    // What was written after the checkpoint at step 20, the last line not to its end.
    put(path, whole + "step,1234");
    {
      MetricsFile file = open(path, format, 20);
      add(file, "step", 30, {{"loss", 0.5}, {"x, \"\n", 1}});
      add(file, "step", 40, {{"loss", 0.5}, {"x, \"\n", 1}});
    }
    assert_string_equal(contents(path).c_str(), whole.c_str());
    // From step 0 on it begins anew.
    MetricsFile file = open(path, format, 0);
    add(file, "step", 10, {{"loss", 0.5}, {"x, \"\n", 1}});
    assert_true(whole.starts_with(contents(path)) && contents(path).find(",20,") == std::string::npos);
    assert_true(contents(path).find("\"step\":20") == std::string::npos);
  }
}

void test_other_files_stay(void **) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/notes";
  for (const char *text : {"dear diary\n", "dear diary", "event,time\n1,2\n", "{\"step\": \"one\"}\n", "[1]\n"}) {
    for (const MetricsFormat format : {MetricsFormat::csv, MetricsFormat::json_lines}) {
      if (format == MetricsFormat::json_lines && std::string_view(text).find('\n') == std::string_view::npos) continue;
      put(path, text);
      assert_error_contains(MetricsFile::open(path, format, 5), "is no file of metrics");
      assert_string_equal(contents(path).c_str(), text);
    }
  }
  assert_false(MetricsFile::open(folder.path(), MetricsFormat::csv, 0).ok());
  assert_error_contains(MetricsFile::open(folder.path() + "/no/such", MetricsFormat::csv, 0), "no/such");
}

base::Result<Answer> send(const Hook &hook, EventKind kind, int64_t step) {
  static const std::vector<NamedNumber> values = {{"loss", 0.5}};
  Event event;
  event.kind = kind;
  event.step = step;
  event.examples = 8 * step;
  event.values = values;
  return hook.function(event);
}

// The events that are written, and a disk that becomes full: a warning, and the training goes on.
void test_the_hook(void **) {
  const TemporaryDirectory folder;
  checkpoint::RememberingLogger log;
  const std::string path = folder.path() + "/metrics.csv";
  const Hook hook = metrics_file_hook(path, MetricsFormat::csv, 5, log.logger());
  assert_true(hook.every_steps == 5 && hook.values.size() == 1);
  for (const EventKind kind : {EventKind::begin, EventKind::step, EventKind::checkpoint_saved, EventKind::evaluated})
    assert_ok(send(hook, kind, 5));
  base::fail_file_operation(base::FileOperation::write, 1, ENOSPC);
  assert_ok(send(hook, EventKind::epoch_end, 5));
  base::fail_file_operation(base::FileOperation::write, 0, 0);
  assert_contains(log.text().c_str(), "WARNING: metrics are written no more: ");
  assert_contains(log.text().c_str(), "metrics.csv");
  assert_ok(send(hook, EventKind::end, 6));
  const std::string text = contents(path);
  assert_contains(text.c_str(), "\nstep,");
  assert_contains(text.c_str(), "\nevaluation,");
  assert_true(text.find("\nend,") == std::string::npos);
  const Hook nowhere = metrics_file_hook(folder.path() + "/no/such", MetricsFormat::csv, 0, log.logger());
  assert_true(nowhere.values.empty());
  assert_error_contains(send(nowhere, EventKind::begin, 0), "no/such");
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_csv),
      cmocka_unit_test(test_json_lines),
      cmocka_unit_test(test_a_file_goes_on),
      cmocka_unit_test(test_other_files_stay),
      cmocka_unit_test(test_the_hook),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace metrics_file_test

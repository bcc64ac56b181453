// SPDX-License-Identifier: Apache-2.0
//
// Traces of training: spans of steps, waits and kernels appear with the next step of all replicas and end likewise, the
// numbers stay what they are, and times of steps add up.
#include <cstdio>
#include <cstdlib>
#include <set>

#include "backend/host_services.h"
#include "distribute/strategy/strategy.h"
#include "distribute/training_case.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace tutti::testing::step_trace_test {

namespace backend = impl::backend;
namespace base = impl::base;
using impl::distribute::RunReport;
using impl::distribute::StepTimes;
using impl::distribute::Strategy;
using Span = base::Tracer::Span;

struct TracedTraining {
  TracedTraining(int32_t replicas, int32_t accumulation) {
    backend::HostOptions host;
    backend::trace_into(host, tracer);
    const std::string options = "{\"logical_devices\": " + std::to_string(replicas) + "}";
    Result<backend::BackendRef> opened = impl::runtime::open_backend(std::getenv("TUTTI_TEST_BACKEND"), options, host);
    if (opened.code() == base::Code::unavailable) {
      std::printf("skipped: %s\n", opened.status().to_string().c_str());
      std::exit(77);
    }
    devices = assert_ok_value(std::move(opened));
    const StrategyRef strategy =
        assert_ok_value(replicas == 1 ? Strategy::one_device({devices, 0}) : Strategy::mirrored_all(devices));
    NetworkCase network;
    network.optimizer = Optimizer::momentum;
    network.batch_norm = true;  // sums in the middle of the graph
    TrainerOptions trainer_options;
    trainer_options.tracer = tracer;
    trainer_options.accumulation = accumulation;
    trainer_options.level = backend::Level::repeatable;
    trainer = assert_ok_value(Trainer::open(assert_ok_value(build_network(network)), strategy, trainer_options));
    assert_ok(trainer->initialize());
    const auto rows = make_endless_batch(24, network.features, network.classes, network.dtype);
    assert_ok(trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
  }

  RunReport run(int64_t steps) {
    const RunReport report = assert_ok_value(trainer->run(steps, nullptr));
    const std::vector<double> some = trainer->loss_history();
    losses.insert(losses.end(), some.begin(), some.end());
    return report;
  }

  /// Steps that are recorded (recorded_steps.h) behind one in pieces, and not counted either.
  int64_t recorded_steps() const {
    return trainer->describe().find("steps")->string().starts_with("launched at once") ? 2 : 0;
  }

  std::vector<Span> spans(std::string_view category) const {
    std::vector<Span> found;
    for (const base::Tracer::Row &row : tracer->rows()) {
      for (const Span &span : row.spans) {
        if (category == span.category) found.push_back(span);
      }
    }
    return found;
  }

  const base::Ref<base::Tracer> tracer = base::make_ref<base::Tracer>();
  backend::BackendRef devices;
  std::unique_ptr<Trainer> trainer;
  std::vector<double> losses;
};

static std::set<std::string> names_of(const std::vector<Span> &spans) {
  std::set<std::string> names;
  for (const Span &span : spans) {
    const std::string_view name = span.name;
    names.emplace(name.substr(0, name.find(' ')));
  }
  return names;
}

static void check_times(const RunReport &report, int32_t replicas, int64_t steps) {
  assert_int_equal(report.times.size(), replicas);
  for (const StepTimes &times : report.times) {
    assert_int_equal(times.steps, steps);
    assert_true(times.total_ns > 0 && times.total_ns <= report.total_ns);
    assert_true(times.input_ns >= 0 && times.communication_ns >= 0);
    if (replicas > 1) assert_true(times.communication_ns > 0);
    assert_true(times.input_ns + times.communication_ns <= times.total_ns);
  }
}

static void test_a_trace_comes_and_goes(void **) {
  for (const int32_t replicas : {1, 2}) {
    for (const int32_t accumulation : {1, 2}) {
      TracedTraining plain(replicas, accumulation), traced(replicas, accumulation);
      const int64_t recorded = traced.recorded_steps();
      plain.run(9 + 2 * recorded);
      check_times(traced.run(3 + recorded), replicas, 2);  // the first built programs
      assert_int_equal(traced.tracer->rows().size(), 0);

      traced.tracer->start();
      check_times(traced.run(4), replicas, 3);
      traced.tracer->stop();
      assert_int_equal(traced.spans("step").size(), 3 * replicas);
      const size_t kernels = traced.spans("kernel").size();
      const std::set<std::string> names = names_of(traced.spans("kernel"));
      // GPUs may update all variables in one launch.
      assert_true(names.count("update/first/kernel/momentum_update") + names.count("update/momentum_update") == 1);
      assert_true(std::any_of(names.begin(), names.end(), [](auto &name) { return name.starts_with("gradient/"); }));
      for (const Span &wait : traced.spans("wait")) {
        assert_true(wait.duration_ns >= 0);
        assert_true(replicas > 1 || std::string_view(wait.name) == "input");
      }
      if (replicas > 1) assert_false(traced.spans("wait").empty());

      check_times(traced.run(2 + recorded), replicas, 1);
      assert_int_equal(traced.spans("kernel").size(), kernels);
      assert_int_equal(traced.losses.size(), plain.losses.size());
      for (size_t i = 0; i < plain.losses.size(); ++i)
        assert_true(plain.losses[i] == traced.losses[i]);
    }
  }
}

/// Every device has its row, in which one kernel begins when the one before has ended.
static void test_devices_have_rows(void **) {
  TracedTraining traced(2, 1);
  traced.tracer->start();
  traced.run(3);
  traced.tracer->stop();
  std::set<std::string> rows;
  for (const base::Tracer::Row &row : traced.tracer->rows()) {
    int64_t end_ns = 0;
    for (const Span &span : row.spans) {
      if (std::string_view(span.category) != "kernel") continue;
      rows.insert(row.name);
      assert_true(span.start_ns >= end_ns - 1000);  // device times are told in floats of milliseconds
      end_ns = span.start_ns + span.duration_ns;
    }
  }
  for (int32_t d = 0; d < 2; ++d)
    assert_true(rows.count(assert_ok_value(traced.devices->describe_device(d)).name) == 1);
  assert_int_equal(rows.size(), 2);
}

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_a_trace_comes_and_goes),
      cmocka_unit_test(test_devices_have_rows),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::step_trace_test

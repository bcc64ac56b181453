// SPDX-License-Identifier: Apache-2.0
//
// How predictions flow through devices: all of them work, at the same time and from equal weights; rows are copied
// while others are computed; and no more is read than somebody takes. On the GPUs of this machine
// (TUTTI_TEST_REAL_GPUS), where there are several, what needs no devices made for a test.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "backend/host_services.h"
#include "backend/lazy_backend.h"
#include "base/hash/checksum.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/paced_backend.h"
#include "distribute/plan/step_graphs.h"
#include "distribute/predict_case.h"
#include "distribute/train/train_programs.h"
#include "distribute/weights/loaded_weights.h"
#include "gpus_needed.h"
#include "testing.h"

namespace tutti::testing::predict_flow_test {

namespace backend = impl::backend;
namespace base = impl::base;
namespace data = impl::data;
namespace distribute = impl::distribute;
using distribute::PredictBatch;
using distribute::PredictEngine;
using distribute::PredictOptions;
using distribute::Strategy;
using Span = base::Tracer::Span;
using Engine = std::shared_ptr<PredictEngine>;

constexpr int64_t kFeatures = 5;

static bool has_real_gpus() { return std::getenv("TUTTI_TEST_REAL_GPUS") != nullptr; }
static bool has_emulated_gpus() { return std::getenv("TUTTI_EMULATED_GPUS") != nullptr; }

/// As many as there are GPUs; three where devices are processors.
static int32_t tested_devices() {
  if (has_real_gpus()) return gpus_of(std::getenv("TUTTI_TEST_BACKEND"));
  return has_emulated_gpus() ? std::atoi(std::getenv("TUTTI_EMULATED_GPUS")) : 3;
}

static Model network_model(int64_t features = kFeatures) {
  NetworkCase network;
  network.features = features;
  return assert_ok_value(impl::graph::predict_model(assert_ok_value(build_network(network))));
}

static Tensor features(int64_t rows, int64_t columns = kFeatures) { return row_features(rows, columns); }

/// Spans of one name, by row of the trace.
static std::map<std::string, std::vector<Span>> spans_of(const base::Tracer &tracer, std::string_view category) {
  std::map<std::string, std::vector<Span>> found;
  for (const base::Tracer::Row &row : tracer.rows()) {
    for (const Span &span : row.spans) {
      if (category == span.category) found[row.name].push_back(span);
    }
  }
  return found;
}

static bool overlap(const std::vector<Span> &some, const std::vector<Span> &others) {
  return std::ranges::any_of(some, [&](const Span &a) {
    return std::ranges::any_of(others, [&](const Span &b) {
      return a.start_ns < b.start_ns + b.duration_ns && b.start_ns < a.start_ns + a.duration_ns;
    });
  });
}

static void test_every_device_works(void **) {
  const int32_t devices = tested_devices();
  const auto tracer = base::make_ref<base::Tracer>();
  backend::HostOptions host;
  backend::trace_into(host, tracer);
  const auto tested = assert_ok_value(open_test_backend(devices, host));
  PredictOptions options;
  options.tracer = tracer;
  const Model model = network_model();
  const Engine engine = open_engine(model, assert_ok_value(Strategy::mirrored_all(tested)), options);
  tracer->start();
  // One that is free at once may take the part of another, but not always.
  std::set<std::string> worked, computed;
  const base::Deadline deadline = base::Deadline::after_ms(60000);
  while ((static_cast<int32_t>(worked.size()) < devices || static_cast<int32_t>(computed.size()) < devices) &&
         !deadline.passed()) {
    assert_ok(engine->run(std::vector<Tensor>{features(8 * devices)}, nullptr));
    for (const auto &[row, spans] : spans_of(*tracer, "step"))
      worked.insert(row.substr(row.find(" on ") + 4));
    // Of GPUs: what they say themselves.
    for (const auto &[row, spans] : spans_of(*tracer, "kernel"))
      computed.insert(has_real_gpus() || has_emulated_gpus() ? row : row.substr(row.find(" on ") + 4));
  }
  tracer->stop();
  std::set<std::string> all;
  for (int32_t device = 0; device < devices; ++device)
    all.insert(assert_ok_value(tested->describe_device(device)).name);
  assert_true(worked == all);
  assert_true(computed == all);
}

/// Whether two rows have spans at one time.
static bool any_overlap(const std::map<std::string, std::vector<Span>> &rows) {
  for (auto some = rows.begin(); some != rows.end(); ++some) {
    for (auto others = std::next(some); others != rows.end(); ++others) {
      if (overlap(some->second, others->second)) return true;
    }
  }
  return false;
}

static void test_timelines_overlap(void **) {
  constexpr int64_t kColumns = 512, kBatch = 256, kRows = 16 * kBatch;
  PredictOptions options;
  options.tracer = base::make_ref<base::Tracer>();
  const auto tested = assert_ok_value(open_test_backend(tested_devices()));
  const Engine engine = open_engine(network_model(kColumns), assert_ok_value(Strategy::mirrored_all(tested)), options);
  const auto dataset = make_rows(kRows, kColumns, 3, DType::f32, kBatch);
  const base::Deadline deadline = base::Deadline::after_ms(60000);
  bool have_overlapped = false;
  while (!have_overlapped && !deadline.passed()) {
    options.tracer->start();
    auto stream = assert_ok_value(engine->stream(assert_ok_value(dataset->make_iterator({})), nullptr));
    int64_t rows = 0;
    for (PredictBatch batch; assert_ok_value(stream->next(batch)); rows += batch.rows)
      assert_int_equal(batch.first_row, rows);
    assert_int_equal(rows, kRows);
    options.tracer->stop();
    have_overlapped = any_overlap(spans_of(*options.tracer, "step"));
  }
  assert_true(have_overlapped);
}

static uint32_t checksum_of(const distribute::LoadedWeights &loaded) {
  const backend::Buffer &weights = loaded.buffers->weights;
  std::vector<std::byte> bytes(static_cast<size_t>(weights.size_bytes()));
  assert_ok(weights.read(0, bytes.data(), weights.size_bytes()));
  assert_true(bytes.size() >= sizeof(float) * 7 * kFeatures);
  return base::crc32c(bytes.data(), bytes.size());
}

static void test_packed_weights_are_equal(void **) {
  constexpr int32_t kDevices = 3;
  const Model model = network_model();
  const auto tested = assert_ok_value(open_test_backend(kDevices));
  const auto graphs = assert_ok_value(distribute::make_predict_graph(model, {.contributors = 2}));
  distribute::ExecutableCache executables(4);
  std::set<uint32_t> sums;
  for (const float change : {0.0f, 0.5f}) {
    const auto version = numbered_version(model, change);
    std::set<uint32_t> of_version;
    for (int32_t index = 0; index < kDevices; ++index) {
      const backend::DeviceRef device = assert_ok_value(tested->open_device(index));
      const auto layouts = assert_ok_value(distribute::propose_layouts(
          *device, *graphs.forward, graphs.state, 64, backend::Level::fast, 1, backend::Precision::f32));
      const auto plan = assert_ok_value(distribute::StatePlan::make(graphs.state, layouts, {}));
      const auto loaded =
          assert_ok_value(distribute::load_weights(plan, model, *version, device, executables, size_t{4}));
      const auto lane = assert_ok_value(distribute::make_lane(*loaded, executables, size_t{4}));
      assert_true(lane->buffers == loaded->buffers);
      of_version.insert(checksum_of(*loaded));
    }
    assert_int_equal(of_version.size(), 1);
    sums.merge(of_version);
  }
  assert_int_equal(sums.size(), 2);
}

static void test_devices_compute_at_the_same_time(void **) {
  for (int32_t device = 0; device < 2; ++device)
    set_pace(0, device, {.run_us = 30000});
  const auto paced = assert_ok_value(open_paced(0, 2));
  PredictOptions options;
  options.tracer = base::make_ref<base::Tracer>();
  const Engine engine = open_engine(network_model(), assert_ok_value(Strategy::mirrored_all(paced)), options);
  options.tracer->start();
  auto stream = assert_ok_value(
      engine->stream(assert_ok_value(make_rows(40, kFeatures, 3, DType::f32, 4)->make_iterator({})), nullptr));
  int64_t rows = 0;
  for (PredictBatch batch; assert_ok_value(stream->next(batch)); rows += batch.rows)
    assert_int_equal(batch.first_row, rows);
  assert_int_equal(rows, 40);
  options.tracer->stop();
  const auto spans = spans_of(*options.tracer, "step");
  assert_int_equal(spans.size(), 2);
  assert_true(overlap(spans.begin()->second, spans.rbegin()->second));
  // One after the other on each.
  size_t count = 0;
  for (const auto &[row, of_device] : spans) {
    assert_contains(row.c_str(), "paced0:");
    count += of_device.size();
    for (size_t i = 0; i + 1 < of_device.size(); ++i)
      assert_true(of_device[i].start_ns + of_device[i].duration_ns <= of_device[i + 1].start_ns);
  }
  assert_int_equal(count, 10);
}

/// A part is computed until the other lane has issued the copy of another.
static void test_a_large_call_is_copied_while_it_is_computed(void **) {
  constexpr int64_t kColumns = 4096, kRows = 256;  // 4 parts of 1 MiB
  static std::atomic<int64_t> runs, overlapped;
  runs = overlapped = 0;
  LazySettings settings;
  settings.has_host_memory = false;
  settings.late = Late::nothing;
  settings.on_run = [] {
    if (runs.fetch_add(1) == 0 && LazyBackend::wait_issued(2)) overlapped = 1;
  };
  LazyBackend::begin(std::move(settings));
  const auto lazy = assert_ok_value(backend::Backend::create(LazyBackend::entry, "{}", {}));
  const Model model = network_model(kColumns);
  const Engine engine = open_engine(model, assert_ok_value(Strategy::one_device({lazy, 0})));
  const auto plain = assert_ok_value(open_paced(2, 1));
  set_pace(2, 0, {});
  const Engine oracle = open_engine(model, assert_ok_value(Strategy::one_device({plain, 0})));
  const Tensor x = features(kRows, kColumns);
  const Tensor wanted = assert_ok_value(oracle->run(std::vector<Tensor>{x}, nullptr))[0];
  const Tensor got = assert_ok_value(engine->run(std::vector<Tensor>{x}, nullptr))[0];
  assert_int_equal(got.rows(), kRows);
  assert_memory_equal(got.data(), wanted.data(), got.size_bytes());
  assert_int_equal(overlapped.load(), 1);
  assert_int_equal(runs.load(), 4);
  assert_int_equal(engine->counters().programs_built, 1);
  // A small one stays whole.
  const Tensor few = assert_ok_value(x.slice_rows(0, 64));
  assert_ok(engine->run(std::vector<Tensor>{few}, nullptr));
  assert_int_equal(runs.load(), 5);
  assert_int_equal(engine->counters().calls, 2);
}

/// Batches without end, which it counts.
static data::DatasetRef counted_batches(std::atomic<int64_t> &count) {
  data::ElementSpec spec;
  spec.components.push_back({"x", data::Role::feature, DType::f32, {GraphBuilder::batch(), kFeatures}});
  spec.batch_size = 4;
  return assert_ok_value(data::from_generator(spec, [&count](int64_t, int64_t, data::Element &element) -> Result<bool> {
    Tensor x = std::move(*Tensor::zeros(DType::f32, {4, kFeatures}));
    element.components.assign(1, std::move(x));
    count.fetch_add(1);
    return true;
  }));
}

static void test_no_more_is_read_than_is_taken(void **) {
  constexpr int32_t kDepth = 5;
  static std::atomic<int64_t> read;
  read = 0;
  LazySettings settings;
  settings.has_host_memory = false;
  settings.late = Late::nothing;
  // Nothing is done before all that may be read has been.
  settings.on_run = [] {
    for (int turn = 0; turn < 10000 && read.load() < kDepth; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  LazyBackend::begin(std::move(settings));
  const auto lazy = assert_ok_value(backend::Backend::create(LazyBackend::entry, "{\"logical_devices\": 2}", {}));
  PredictOptions options;
  options.stream_depth = kDepth;
  const Engine engine = open_engine(network_model(), assert_ok_value(Strategy::mirrored_all(lazy)), options);
  {
    auto stream = assert_ok_value(engine->stream(assert_ok_value(counted_batches(read)->make_iterator({})), nullptr));
    assert_int_equal(read.load(), 0);
    PredictBatch batch;
    assert_true(assert_ok_value(stream->next(batch)));
    assert_int_equal(read.load(), kDepth);
    for (int64_t taken = 1; taken < 20; ++taken) {
      assert_true(assert_ok_value(stream->next(batch)));
      assert_int_equal(batch.first_row, 4 * taken);
      assert_true(read.load() > taken && read.load() <= taken + kDepth);
    }
    // Who stops taking stops the reading, too: the devices have done what they have.
    const int64_t before = read.load();
    const base::Deadline deadline = base::Deadline::after_ms(20000);
    while (LazyBackend::runs() < before && !deadline.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    assert_int_equal(LazyBackend::runs(), before);
    assert_int_equal(read.load(), before);
    assert_int_equal(engine->counters().calls, before);
  }
  assert_true(read.load() <= 20 + kDepth);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_device_works),
    cmocka_unit_test(test_timelines_overlap),
    cmocka_unit_test(test_packed_weights_are_equal),
    cmocka_unit_test(test_devices_compute_at_the_same_time),
    cmocka_unit_test(test_a_large_call_is_copied_while_it_is_computed),
    cmocka_unit_test(test_no_more_is_read_than_is_taken),
};

static const struct CMUnitTest tests_of_real_gpus[] = {
    cmocka_unit_test(test_every_device_works),
    cmocka_unit_test(test_timelines_overlap),
    cmocka_unit_test(test_packed_weights_are_equal),
};

static int run_all(int, char **) {
  if (!has_real_gpus()) return cmocka_run_group_tests(tests, nullptr, nullptr);
  if (!has_enough_gpus(std::getenv("TUTTI_TEST_BACKEND"), 2)) return 77;
  return cmocka_run_group_tests(tests_of_real_gpus, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::predict_flow_test

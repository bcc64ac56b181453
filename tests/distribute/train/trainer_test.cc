// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::trainer_test {

using impl::distribute::RunReport;
using impl::distribute::StopReason;

/// The two-layer network of build_network() in plain doubles, mean loss and SGD: an oracle that shares no code with the
/// library.
class HandTrainer {
 public:
  HandTrainer(const NetworkCase &network, const std::map<std::string, std::vector<double>> &variables)
      : n_(network),
        w1_(variables.at("first/kernel")),
        b1_(variables.at("first/bias")),
        w2_(variables.at("second/kernel")),
        b2_(variables.at("second/bias")) {}

  double step(int64_t first, int64_t rows) {
    std::vector<double> dw1(w1_.size()), db1(b1_.size()), dw2(w2_.size()), db2(b2_.size());
    double loss = 0;
    for (int64_t r = first; r < first + rows; ++r)
      loss += add_row(r, 1.0 / static_cast<double>(rows), dw1, db1, dw2, db2);
    apply(w1_, dw1);
    apply(b1_, db1);
    apply(w2_, dw2);
    apply(b2_, db2);
    return loss / static_cast<double>(rows);
  }

  std::map<std::string, std::vector<double>> variables() const {
    return {{"first/kernel", w1_}, {"first/bias", b1_}, {"second/kernel", w2_}, {"second/bias", b2_}};
  }

 private:
  static size_t at(int64_t row, int64_t columns, int64_t column) { return static_cast<size_t>(row * columns + column); }

  double add_row(int64_t r, double share, std::vector<double> &dw1, std::vector<double> &db1, std::vector<double> &dw2,
                 std::vector<double> &db2) const {
    std::vector<double> h(static_cast<size_t>(n_.hidden)), z(static_cast<size_t>(n_.classes));
    for (int64_t j = 0; j < n_.hidden; ++j) {
      double sum = b1_[static_cast<size_t>(j)];
      for (int64_t i = 0; i < n_.features; ++i)
        sum += row_feature(r, i) * w1_[at(i, n_.hidden, j)];
      h[static_cast<size_t>(j)] = std::tanh(sum);
    }
    double total = 0;
    for (int64_t k = 0; k < n_.classes; ++k) {
      double sum = b2_[static_cast<size_t>(k)];
      for (int64_t j = 0; j < n_.hidden; ++j)
        sum += h[static_cast<size_t>(j)] * w2_[at(j, n_.classes, k)];
      z[static_cast<size_t>(k)] = std::exp(sum);
      total += z[static_cast<size_t>(k)];
    }
    const int64_t label = row_label(r, n_.classes);
    std::vector<double> dh(static_cast<size_t>(n_.hidden));
    for (int64_t k = 0; k < n_.classes; ++k) {
      const double dz = share * (z[static_cast<size_t>(k)] / total - (k == label ? 1 : 0));
      db2[static_cast<size_t>(k)] += dz;
      for (int64_t j = 0; j < n_.hidden; ++j) {
        dw2[at(j, n_.classes, k)] += dz * h[static_cast<size_t>(j)];
        dh[static_cast<size_t>(j)] += dz * w2_[at(j, n_.classes, k)];
      }
    }
    for (int64_t j = 0; j < n_.hidden; ++j) {
      const double da = dh[static_cast<size_t>(j)] * (1 - h[static_cast<size_t>(j)] * h[static_cast<size_t>(j)]);
      db1[static_cast<size_t>(j)] += da;
      for (int64_t i = 0; i < n_.features; ++i)
        dw1[at(i, n_.hidden, j)] += da * row_feature(r, i);
    }
    return -std::log(z[static_cast<size_t>(label)] / total);
  }

  void apply(std::vector<double> &w, const std::vector<double> &dw) const {
    for (size_t i = 0; i < w.size(); ++i)
      w[i] -= static_cast<double>(static_cast<float>(n_.learning_rate)) * dw[i];
  }

  const NetworkCase n_;
  std::vector<double> w1_, b1_, w2_, b2_;
};

static void test_agrees_with_a_trainer_written_by_hand(void **) {
  NetworkCase network;
  network.dtype = DType::f64;
  const Model model = assert_ok_value(build_network(network));
  for (int32_t replicas = 1; replicas <= 2; ++replicas) {
    RunCase run;
    run.replicas = replicas;
    run.rows = 70;
    run.batch = 16;
    RunCase nothing = run;
    nothing.steps = 0;
    const Trained initial = assert_ok_value(train(model, nothing, network));
    const Trained trained = assert_ok_value(train(model, run, network));
    HandTrainer hand(network, initial.variables);
    std::vector<double> losses;
    for (int64_t first = 0; first < run.rows; first += run.batch) {
      losses.push_back(hand.step(first, std::min(run.batch, run.rows - first)));
    }
    assert_int_equal(trained.examples, 70);
    assert_int_equal(trained.losses.size(), losses.size());
    assert_true(relative_difference(trained.losses, losses) < 1e-9);
    Trained by_hand;
    by_hand.variables = hand.variables();
    assert_true(relative_difference(trained, by_hand) < 1e-9);
  }
}

/// A trainer over the small network, with rows attached.
struct Session {
  NetworkCase network;
  Model model;
  std::unique_ptr<Trainer> trainer;

  explicit Session(int32_t replicas, NetworkCase with = {}, TrainerOptions options = {}) : network(with) {
    model = assert_ok_value(build_network(network));
    trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), options));
    assert_ok(trainer->initialize());
  }
  std::unique_ptr<impl::data::Iterator> rows(int64_t count, int64_t batch) const {
    return assert_ok_value(
        make_rows(count, network.features, network.classes, network.dtype, batch)->make_iterator({}));
  }
  std::vector<float> kernel() const {
    const Tensor value = assert_ok_value(trainer->get_variable("first/kernel"));
    return {value.data_as<float>(), value.data_as<float>() + value.elements()};
  }
};

static void test_runs_end_where_they_should(void **) {
  for (int32_t replicas = 1; replicas <= 3; ++replicas) {
    Session session(replicas);
    assert_error_contains(session.trainer->run(1, nullptr), "attach_input");
    assert_ok(session.trainer->attach_input(session.rows(70, 16)));
    RunReport report = assert_ok_value(session.trainer->run(2, nullptr));
    assert_int_equal(static_cast<int>(report.reason), static_cast<int>(StopReason::steps_done));
    assert_int_equal(report.examples, 32);
    report = assert_ok_value(session.trainer->run(-1, nullptr));
    assert_int_equal(static_cast<int>(report.reason), static_cast<int>(StopReason::end_of_input));
    assert_int_equal(report.steps, 3);
    assert_int_equal(report.examples, 38);
    assert_int_equal(session.trainer->step(), 5);
    report = assert_ok_value(session.trainer->run(1, nullptr));
    assert_int_equal(report.steps, 0);
    const auto numbers = assert_ok_value(session.trainer->report());
    assert_true(numbers.size() >= 3);
  }
}

static void test_stop_and_cancel(void **) {
  for (int32_t replicas = 1; replicas <= 2; ++replicas) {
    Session session(replicas);
    assert_ok(session.trainer->attach_input(session.rows(500000, 1)));
    auto stop = impl::base::CancelToken::create();
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stop->stop();
    });
    const Result<RunReport> stopped = session.trainer->run(-1, stop.get());
    stopper.join();
    const RunReport report = assert_ok_value(stopped);
    assert_int_equal(static_cast<int>(report.reason), static_cast<int>(StopReason::stopped));
    assert_int_equal(report.step, session.trainer->step());
    auto cancel = impl::base::CancelToken::create();
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      cancel->cancel();
    });
    const Result<RunReport> cancelled = session.trainer->run(-1, cancel.get());
    canceller.join();
    assert_int_equal(static_cast<int>(cancelled.status().code()), static_cast<int>(impl::base::Code::cancelled));
    assert_ok(session.trainer->run(3, nullptr));
  }
}

/// Broken off early, and where the replicas have taken over the reading.
static void test_input_state_counts_trained_batches_only(void **) {
  for (const auto &[accumulation, steps] : {std::pair{1, 5}, {3, 5}, {1, 20}}) {
    TrainerOptions options;
    options.accumulation = accumulation;
    Session whole(2, {}, options), first(2, {}, options), second(2, {}, options);
    assert_ok(whole.trainer->attach_input(whole.rows(300, 7)));
    assert_ok(whole.trainer->run(-1, nullptr));
    assert_ok(first.trainer->attach_input(first.rows(300, 7)));
    assert_ok(first.trainer->run(steps, nullptr));
    const impl::base::Json state = assert_ok_value(first.trainer->input_state());
    const auto version = assert_ok_value(first.trainer->publish_weights(true));
    auto rest = second.rows(300, 7);
    assert_ok(rest->restore(state));
    assert_ok(second.trainer->restore(*version));
    second.trainer->set_batch_counter(first.trainer->batch_counter());
    assert_ok(second.trainer->attach_input(std::move(rest)));
    assert_ok(second.trainer->run(-1, nullptr));
    assert_int_equal(second.trainer->step(), whole.trainer->step());
    assert_true(second.kernel() == whole.kernel());
  }
}

/// Batches that come quickly for a while, then slowly, then quickly: who reads them changes, what is trained does not.
static void test_input_that_comes_and_goes(void **) {
  for (int32_t replicas = 1; replicas <= 3; ++replicas) {
    Session all(replicas), fed(replicas);
    assert_ok(all.trainer->attach_input(all.rows(600, 10)));
    assert_ok(all.trainer->run(-1, nullptr));
    auto source = fed.rows(600, 10);
    const auto feed = assert_ok_value(impl::data::Feed::create(source->spec(), 30));
    const auto dataset = assert_ok_value(impl::data::Pipeline(feed->dataset()).build());
    assert_ok(fed.trainer->attach_input(assert_ok_value(dataset->make_iterator({}))));
    std::thread host([&] {
      for (int32_t n = 0; n < 60; ++n) {
        if (n % 20 == 15) std::this_thread::sleep_for(std::chrono::milliseconds(3));
        impl::data::Element batch;
        assert_true(assert_ok_value(source->next(batch)));
        assert_ok(feed->push(std::move(batch), nullptr, impl::base::Deadline::never()));
      }
      assert_ok(feed->end());
    });
    for (int32_t piece = 0; piece < 25; ++piece)
      assert_ok(fed.trainer->run(1, nullptr));
    const RunReport report = assert_ok_value(fed.trainer->run(-1, nullptr));
    host.join();
    assert_int_equal(static_cast<int>(report.reason), static_cast<int>(StopReason::end_of_input));
    assert_int_equal(fed.trainer->step(), 60);
    assert_true(fed.kernel() == all.kernel());
  }
}

/// A stop reaches a run whose replicas read the input themselves, and loses no batch.
static void test_stop_while_replicas_read(void **) {
  for (int32_t replicas = 1; replicas <= 2; ++replicas) {
    Session session(replicas), whole(replicas);
    const auto rows = make_endless_batch(8, session.network.features, session.network.classes, session.network.dtype);
    assert_ok(session.trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
    for (int32_t piece = 0; piece < 5; ++piece) {
      const auto token = impl::base::CancelToken::create();
      std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        token->stop();
      });
      const RunReport report = assert_ok_value(session.trainer->run(-1, token.get()));
      stopper.join();
      assert_int_equal(static_cast<int>(report.reason), static_cast<int>(StopReason::stopped));
    }
    assert_ok(whole.trainer->attach_input(assert_ok_value(rows->make_iterator({}))));
    assert_ok(whole.trainer->run(session.trainer->step(), nullptr));
    assert_true(session.kernel() == whole.kernel());
    assert_true(assert_ok_value(session.trainer->input_state()) == assert_ok_value(whole.trainer->input_state()));
  }
}

static void test_loss_that_is_not_finite(void **) {
  for (int32_t replicas = 1; replicas <= 3; ++replicas) {
    Session session(replicas);
    assert_ok(session.trainer->attach_input(session.rows(64, 16)));
    assert_ok(session.trainer->run(2, nullptr));
    Tensor bias = assert_ok_value(session.trainer->get_variable("second/bias"));
    bias.mutable_data_as<float>()[1] = NAN;
    assert_ok(session.trainer->set_variable("second/bias", bias));
    const std::vector<float> before = session.kernel();
    assert_error_contains(session.trainer->run(-1, nullptr), "step 3");
    assert_true(session.kernel() == before);
    assert_int_equal(session.trainer->step(), 2);
    bias.mutable_data_as<float>()[1] = 0;
    assert_ok(session.trainer->set_variable("second/bias", bias));
    assert_ok(session.trainer->run(1, nullptr));
  }
}

static void test_failing_replica_is_named(void **) {
  NetworkCase network;
  network.classes = 3;
  for (int32_t replicas = 1; replicas <= 3; ++replicas) {
    Session session(replicas, network);
    // Labels up to 4 for a network of 3 classes.
    auto rows = assert_ok_value(make_rows(64, network.features, 5, network.dtype, 16)->make_iterator({}));
    assert_ok(session.trainer->attach_input(std::move(rows)));
    const std::vector<float> before = session.kernel();
    const Result<RunReport> report = session.trainer->run(-1, nullptr);
    assert_error_contains(report, "step=1");
    assert_error_contains(report, "rank=");
    assert_error_contains(report, "sparse_softmax_cross_entropy");
    assert_true(session.kernel() == before);
    assert_ok(session.trainer->attach_input(session.rows(64, 16)));
    assert_ok(session.trainer->run(-1, nullptr));
  }
}

/// What one rank alone learns of, late where its device computes late, keeps all of them from updating.
static void test_one_rank_with_bad_data(void **) {
  for (const auto &[replicas, clip] : {std::pair{2, 0.0}, {3, 0.0}, {3, 0.1}}) {
    TrainerOptions options;
    options.clip_norm = clip;
    options.bucket_bytes = 64;
    Session session(replicas, {}, options);
    assert_ok(session.trainer->attach_input(session.rows(64, 16)));
    assert_ok(session.trainer->run(2, nullptr));
    const std::vector<float> before = session.kernel();
    // A row for each; of these the second alone has a label that is none of the network's three classes.
    for (int32_t row = 0; row < replicas; ++row)
      assert_true((row_label(row, 4) < 3) == (row != 1));
    auto rows =
        assert_ok_value(make_rows(replicas, session.network.features, 4, DType::f32, replicas)->make_iterator({}));
    assert_ok(session.trainer->attach_input(std::move(rows)));
    const Result<RunReport> report = session.trainer->run(-1, nullptr);
    assert_error_contains(report, "sparse_softmax_cross_entropy");
    assert_error_contains(report, "rank=1");
    assert_true(session.kernel() == before);
    assert_true(assert_ok_value(session.trainer->replicas_are_identical()));
    assert_int_equal(session.trainer->step(), 2);
    assert_ok(session.trainer->attach_input(session.rows(64, 16)));
    assert_ok(session.trainer->run(-1, nullptr));
    assert_true(assert_ok_value(session.trainer->replicas_are_identical()));
  }
}

static void test_gradients_are_readable(void **) {
  TrainerOptions options;
  options.keep_gradients = true;
  NetworkCase network;
  network.loss = Loss::weighted_mean_with_penalty;
  std::vector<float> first;
  for (int32_t replicas = 1; replicas <= 3; ++replicas) {
    Session session(replicas, network, options);
    const std::vector<float> before = session.kernel();
    assert_ok(session.trainer->attach_input(session.rows(25, 25)));
    assert_error_contains(session.trainer->gradient("first/kernel"), "before the first step");
    assert_ok(session.trainer->run(1, nullptr));
    const Tensor gradient = assert_ok_value(session.trainer->gradient("first/kernel"));
    const std::vector<float> after = session.kernel();
    for (size_t i = 0; i < after.size(); ++i) {
      const float expected = before[i] - 0.1f * gradient.data_as<float>()[i];
      assert_true(std::fabs(after[i] - expected) < 1e-6f);
    }
    assert_error_contains(session.trainer->gradient("first/kernal"), "did you mean 'first/kernel'");
  }
}

static int64_t stored_gradient_bytes(const Session &session) {
  const impl::base::Json description = session.trainer->describe();
  for (const impl::base::Json &arena : description.find("arenas")->array()) {
    if (arena.find("arena")->string() == "partials") return arena.find("bytes")->integer();
  }
  fail_msg("a trainer describes its partials");
  return -1;
}

static void test_one_device_stores_no_gradients(void **) {
  assert_int_equal(stored_gradient_bytes(Session(1)), 0);
  assert_true(stored_gradient_bytes(Session(2)) > 0);
  TrainerOptions options;
  options.keep_gradients = true;
  assert_true(stored_gradient_bytes(Session(1, {}, options)) > 0);
  options = {};
  options.accumulation = 2;
  assert_true(stored_gradient_bytes(Session(1, {}, options)) > 0);
  options = {};
  options.clip_norm = 1;
  assert_true(stored_gradient_bytes(Session(1, {}, options)) > 0);
}

/// The CPU backend adds the gradients of several devices up while it updates.
static void test_updates_add_up_gradients(void **) {
  const char *backend = std::getenv("TUTTI_TEST_BACKEND");
  if (backend == nullptr || std::string_view(backend) != "cpu") test_skip();
  for (const bool kept : {false, true}) {
    TrainerOptions options;
    options.keep_gradients = kept;
    Session session(2, {}, options);
    assert_ok(session.trainer->attach_input(session.rows(25, 25)));
    assert_ok(session.trainer->run(1, nullptr));
    const bool adds_up = session.trainer->describe().dump().find("simd:sgd+sum") != std::string::npos;
    assert_true(adds_up == !kept);
  }
}

static void test_strategies_are_checked(void **) {
  const auto backend = assert_ok_value(open_test_backend(2));
  using impl::distribute::Strategy;
  assert_error_contains(Strategy::one_device({backend, 2}), "no device");
  assert_error_contains(Strategy::mirrored({{backend, 0}, {backend, 0}}), "listed twice");
  assert_error_contains(Strategy::mirrored({}), "at least one device");
  assert_int_equal(assert_ok_value(Strategy::mirrored_all(backend))->replica_count(), 2);
}

static void test_steady_steps_build_nothing(void **) {
  Session session(2);
  assert_ok(session.trainer->attach_input(session.rows(1000, 10)));
  assert_ok(session.trainer->run(3, nullptr));
  const auto before = session.trainer->counters();
  assert_ok(session.trainer->run(50, nullptr));
  const auto after = session.trainer->counters();
  assert_int_equal(after.programs_built, before.programs_built);
  assert_int_equal(after.executables_built, before.executables_built);
  assert_int_equal(after.steps, 53);
}

// Of devices that have memory of their own and tell; not of those that use the host's.
static void test_memory_in_use(void **) {
  Session session(2);
  const auto used = session.trainer->memory_in_use();
  assert_true(used.empty() || !assert_ok_value(make_test_strategy(2))->backend()->has_host_memory());
  const std::vector<std::string> names = session.trainer->device_names();
  for (const auto &memory : used) {
    assert_true(std::ranges::find(names, memory.name) != names.end());
    assert_true(memory.value > 0);  // there are weights
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_agrees_with_a_trainer_written_by_hand),
    cmocka_unit_test(test_runs_end_where_they_should),
    cmocka_unit_test(test_stop_and_cancel),
    cmocka_unit_test(test_input_state_counts_trained_batches_only),
    cmocka_unit_test(test_input_that_comes_and_goes),
    cmocka_unit_test(test_stop_while_replicas_read),
    cmocka_unit_test(test_loss_that_is_not_finite),
    cmocka_unit_test(test_failing_replica_is_named),
    cmocka_unit_test(test_one_rank_with_bad_data),
    cmocka_unit_test(test_gradients_are_readable),
    cmocka_unit_test(test_one_device_stores_no_gradients),
    cmocka_unit_test(test_updates_add_up_gradients),
    cmocka_unit_test(test_strategies_are_checked),
    cmocka_unit_test(test_steady_steps_build_nothing),
    cmocka_unit_test(test_memory_in_use),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::trainer_test

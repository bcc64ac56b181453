// SPDX-License-Identifier: Apache-2.0
//
// N replicas train the model that one device trains: same losses, same weights, for odd batches, losses that are not
// plain means, accumulation, dropout and global batch norm.
#include <algorithm>
#include <cstring>

#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::replica_equality_test {

using impl::backend::Level;
using impl::distribute::Lowering;

constexpr double after_one_step = 1e-5, after_twenty_steps = 1e-3;

/// About 20 steps: seven passes of two and a half batches. Of a slow backend one pass.
static RunCase twenty_steps(int64_t batch) {
  RunCase run;
  run.batch = batch;
  run.rows = 2 * batch + batch / 2 + (batch == 1 ? 0 : 1);
  run.passes = is_test_backend_slow() ? 1 : batch == 1 ? 10 : 7;
  return run;
}

static void check_pair(const Trained &one, const Trained &many, double limit, const std::string &what) {
  const double weights = relative_difference(many, one), losses = relative_difference(many.losses, one.losses);
  if (!(weights <= limit && losses <= limit && many.replicas_identical && many.examples == one.examples)) {
    fail_msg("%s: weights differ by %g, losses by %g (limit %g), identical %d, rows %lld and %lld", what.c_str(),
             weights, losses, limit, many.replicas_identical ? 1 : 0, static_cast<long long>(many.examples),
             static_cast<long long>(one.examples));
  }
}

/// Trains with one device and with several, for one and for about twenty steps.
static void check_equality(const NetworkCase &network, RunCase run, const std::vector<int32_t> &replicas,
                           const std::string &what) {
  const Model model = assert_ok_value(build_network(network));
  RunCase first = run;
  first.steps = 1;
  first.passes = 1;
  const Trained one = assert_ok_value(train(model, run, network));
  const Trained one_step = assert_ok_value(train(model, first, network));
  for (const int32_t n : replicas) {
    run.replicas = first.replicas = n;
    const std::string name = what + ", batch " + std::to_string(run.batch) + ", N " + std::to_string(n);
    check_pair(one_step, assert_ok_value(train(model, first, network)), after_one_step, name + ", one step");
    check_pair(one, assert_ok_value(train(model, run, network)), after_twenty_steps, name);
  }
}

static const std::vector<std::pair<Loss, const char *>> losses = {
    {Loss::mean, "mean"},
    {Loss::sum, "sum"},
    {Loss::weighted_mean, "weighted mean"},
    {Loss::root_mean, "root of mean"},
    {Loss::mean_with_penalty, "mean with penalty"},
    {Loss::weighted_mean_with_penalty, "weighted mean with penalty"},
};

static void test_losses_and_odd_batches(void **) {
  for (const auto &[loss, name] : losses) {
    for (const int64_t batch : {1, 7, 25, 64, 65}) {
      if (batch > 25 && is_test_backend_slow()) continue;
      NetworkCase network;
      network.loss = loss;
      check_equality(network, twenty_steps(batch), {2, 3, 4}, name);
    }
  }
}

/// Each of the sums gets its weight from all of them: known only once they are combined.
static void test_vector_of_sums(void **) {
  NetworkCase network;
  network.loss = Loss::class_means;
  for (const int64_t batch : {7, 25, 64})
    check_equality(network, twenty_steps(batch), {2, 3, 4}, "class means");
  RunCase run = twenty_steps(7);
  run.options.accumulation = 3;
  const Model model = assert_ok_value(build_network(network));
  assert_error_contains(train(model, run, network), "3 micro-batches");
}

/// Gradients that are kept are reduced by the group; others the updates add up themselves.
static void test_sums_of_the_group_and_of_updates(void **) {
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    for (const auto &[loss, name] : losses) {
      for (const int32_t replicas : {2, 3, 4}) {
        if (replicas != 3 && is_test_backend_slow()) continue;
        NetworkCase network;
        network.loss = loss;
        network.optimizer = optimizer;
        network.batch_norm = optimizer == Optimizer::momentum;
        network.clip = loss == Loss::sum ? 1 : 0;
        RunCase run = twenty_steps(25);
        run.replicas = replicas;
        const Model model = assert_ok_value(build_network(network));
        const Trained summed = assert_ok_value(train(model, run, network));
        run.options.keep_gradients = true;
        const Trained reduced = assert_ok_value(train(model, run, network));
        if (summed.losses != reduced.losses || summed.variables != reduced.variables) {
          fail_msg("%s, N %d: weights differ by %g", name, replicas, relative_difference(summed, reduced));
        }
      }
    }
  }
}

static void test_own_statistics(void **) {
  NetworkCase network;
  network.batch_norm = true;
  network.own_statistics = true;
  const Model model = assert_ok_value(build_network(network));
  RunCase run = twenty_steps(24);
  run.rows = 48;
  const Trained one = assert_ok_value(train(model, run, network));
  run.replicas = 2;
  const Trained two = assert_ok_value(train(model, run, network));
  // The one named exception to equality: close, not equal.
  assert_true(two.replicas_identical);
  assert_true(relative_difference(two.losses, one.losses) < 0.5);
  assert_true(relative_difference(two.losses, one.losses) > 1e-6);
}

static void test_accumulation(void **) {
  for (const auto &[loss, name] : losses) {
    NetworkCase network;
    network.loss = loss;
    network.optimizer = Optimizer::momentum;
    RunCase run = twenty_steps(7);
    run.rows = 7 * 11 + 2;
    run.options.accumulation = 3;
    check_equality(network, run, {2, 3, 4}, std::string(name) + ", accumulation 3");
  }
}

static void test_accumulation_is_a_larger_batch(void **) {
  for (const auto &[loss, name] : losses) {
    NetworkCase network;
    network.loss = loss;
    const Model model = assert_ok_value(build_network(network));
    RunCase whole = twenty_steps(21);
    RunCase parts = whole;
    parts.batch = 7;
    parts.options.accumulation = 3;
    parts.replicas = 2;
    check_pair(assert_ok_value(train(model, whole, network)), assert_ok_value(train(model, parts, network)),
               after_twenty_steps, std::string(name) + ", 3 x 7 against 21");
  }
}

static void test_batch_norm_and_dropout(void **) {
  for (const int64_t batch : {7, 25, 64}) {
    if (batch > 25 && is_test_backend_slow()) continue;
    NetworkCase network;
    network.batch_norm = true;
    network.optimizer = Optimizer::momentum;
    network.learning_rate = 0.05;
    check_equality(network, twenty_steps(batch), {2, 3, 4}, "batch norm");
    network.relu = true;
    check_equality(network, twenty_steps(batch), {2, 3, 4}, "batch norm with relu");
    network.relu = network.batch_norm = false;
    network.dropout = true;
    check_equality(network, twenty_steps(batch), {2, 3, 4}, "dropout");
  }
}

static void test_adam_in_double(void **) {
  NetworkCase network;
  network.dtype = DType::f64;
  network.optimizer = Optimizer::adam;
  network.learning_rate = 0.01;
  check_equality(network, twenty_steps(25), {2, 3, 4}, "adam");
  network.batch_norm = true;
  check_equality(network, twenty_steps(25), {2, 3, 4}, "adam with batch norm");
}

static void test_clipping(void **) {
  NetworkCase network;
  network.clip = 0.05;
  network.learning_rate = 1;
  check_equality(network, twenty_steps(25), {2, 3, 4}, "clipping");
}

/// Limits that bite, in each lowering, with micro-batches and with averages of the weights.
static void test_limits_and_averages(void **) {
  NetworkCase network;
  network.loss = Loss::weighted_mean_with_penalty;
  network.average = {.decay = 0.9, .has_ramp = true, .start = 2};
  const impl::graph::ClipSpec limits[] = {{.value = 0.01}, {.norm = 0.03}, {.value = 0.02, .norm = 0.03}};
  for (const impl::graph::ClipSpec &each : limits) {
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam}) {
      network.limits = each;
      network.optimizer = optimizer;
      network.learning_rate = optimizer == Optimizer::sgd ? 1 : 0.01;
      network.clip = each.value > 0 && each.norm > 0 ? 0.05 : 0;
      for (const Lowering lowering : {Lowering::automatic, Lowering::replicated}) {
        RunCase run = twenty_steps(25);
        run.options.lowering = lowering;
        run.options.accumulation = optimizer == Optimizer::adam ? 2 : 1;
        check_equality(network, run, {2, 3, 4}, impl::base::concat("limits ", each.value, " and ", each.norm));
      }
    }
  }
}

/// However gradients are added up, and whatever else is done to them.
static void test_ways_to_add_up(void **) {
  using impl::distribute::AllReduceChoice;
  NetworkCase network;
  network.optimizer = Optimizer::momentum;
  network.hidden = 200;  // more than fits into words
  network.clip = 0.1;
  network.batch_norm = true;
  for (const AllReduceChoice choice :
       {AllReduceChoice::host, AllReduceChoice::ring, AllReduceChoice::hierarchical, AllReduceChoice::reduce_to_one}) {
    RunCase run = twenty_steps(25);
    run.options.all_reduce = choice;
    check_equality(network, run, {2, 3, 4}, std::string(name(choice)));
  }
}

static void test_replicated_weights(void **) {
  NetworkCase network;
  network.optimizer = Optimizer::momentum;
  network.clip = 0.05;
  RunCase run = twenty_steps(25);
  run.options.lowering = Lowering::replicated;
  check_equality(network, run, {2, 3, 4}, "replicated");
}

/// A NaN in one row is the extreme of its column on every replica. The loss counts the columns without one.
static void test_extremes_keep_nans(void **) {
  const NetworkCase network;
  constexpr int64_t kRows = 8;
  double least = row_feature(0, 0);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < network.features; ++i)
      least = std::min(least, row_feature(row, i));
  }
  for (const char *op : {"reduce_max", "reduce_min"}) {
    GraphBuilder b;
    const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), network.features});
    const ValueId scale = b.variable("scale", DType::f32, {network.features});
    const ValueId extreme = b.reduce(op, b.unary("sqrt", b.add_scalar(x, -least - 1e-3)), {0});
    const ValueId is_number = b.cast(b.op("equal", {extreme, extreme}), DType::f32);
    b.set_loss(b.reduce_mean(b.add(b.mul(x, scale), is_number)));
    impl::graph::TrainSpec sgd;
    sgd.optimizer.op = "sgd_update";
    sgd.optimizer.learning_rate = b.constant(0, DType::f32);
    b.set_train(std::move(sgd));
    const Model model = assert_ok_value(b.finish());
    RunCase run;
    run.rows = run.batch = kRows;
    const Trained one = assert_ok_value(train(model, run, network));
    const auto columns = static_cast<double>(network.features);
    assert_float_equal(one.losses[0], (columns - 1) / columns, 1e-6);
    for (const int32_t n : {2, 4}) {
      run.replicas = n;
      check_pair(one, assert_ok_value(train(model, run, network)), after_one_step, op);
    }
  }
}

static bool same_bits(const std::vector<double> &a, const std::vector<double> &b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

static bool same_bits(const Trained &a, const Trained &b) {
  if (!same_bits(a.losses, b.losses)) return false;
  for (const auto &[name, values] : a.variables) {
    if (!same_bits(values, b.variables.at(name))) return false;
  }
  return true;
}

static void test_level_invariant(void **) {
  for (const bool norm : {false, true}) {
    NetworkCase network;
    network.optimizer = Optimizer::adam;
    network.learning_rate = 0.01;
    network.loss = Loss::weighted_mean_with_penalty;
    network.clip = 0.1;
    network.limits = {.value = 0.05, .norm = 0.1};
    network.average = {.decay = 0.8};
    network.batch_norm = norm;
    const Model model = assert_ok_value(build_network(network));
    for (const Lowering lowering : {Lowering::shared, Lowering::replicated}) {
      RunCase run = twenty_steps(25);
      run.options.level = Level::invariant;
      run.options.lowering = lowering;
      if (is_invariant_refused()) {
        assert_error_contains(train(model, run, network), "UNIMPLEMENTED: determinism invariant: devices behind PJRT");
        continue;
      }
      const Trained one = assert_ok_value(train(model, run, network));
      for (const int32_t n : {2, 4}) {
        run.replicas = n;
        assert_true(same_bits(one, assert_ok_value(train(model, run, network))));
      }
    }
  }
}

static void test_repeatable(void **) {
  NetworkCase network;
  network.dropout = true;
  network.optimizer = Optimizer::momentum;
  const Model model = assert_ok_value(build_network(network));
  for (const int32_t n : {1, 3}) {
    RunCase run = twenty_steps(25);
    run.replicas = n;
    run.options.level = Level::repeatable;
    const Trained first = assert_ok_value(train(model, run, network));
    assert_true(same_bits(first, assert_ok_value(train(model, run, network))));
  }
}

static void test_initial_values_do_not_depend_on_replicas(void **) {
  NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  RunCase run;
  run.steps = 0;
  const Trained one = assert_ok_value(train(model, run, network));
  run.replicas = 3;
  assert_true(same_bits(one, assert_ok_value(train(model, run, network))));
  run.options.seed = 1;
  assert_false(same_bits(one, assert_ok_value(train(model, run, network))));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_initial_values_do_not_depend_on_replicas),
    cmocka_unit_test(test_losses_and_odd_batches),
    cmocka_unit_test(test_vector_of_sums),
    cmocka_unit_test(test_sums_of_the_group_and_of_updates),
    cmocka_unit_test(test_own_statistics),
    cmocka_unit_test(test_accumulation),
    cmocka_unit_test(test_accumulation_is_a_larger_batch),
    cmocka_unit_test(test_batch_norm_and_dropout),
    cmocka_unit_test(test_adam_in_double),
    cmocka_unit_test(test_clipping),
    cmocka_unit_test(test_limits_and_averages),
    cmocka_unit_test(test_ways_to_add_up),
    cmocka_unit_test(test_replicated_weights),
    cmocka_unit_test(test_extremes_keep_nans),
    cmocka_unit_test(test_level_invariant),
    cmocka_unit_test(test_repeatable),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::replica_equality_test

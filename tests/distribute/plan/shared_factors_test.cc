// SPDX-License-Identifier: Apache-2.0
//
// Gradients that finish programs make of factors which all replicas leave: what is in the graphs of a step, and that
// several replicas still train what one device trains.
#include "distribute/plan/shared_factors.h"

#include "distribute/plan/step_graphs.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::shared_factors_test {
namespace {

namespace graph = impl::graph;
using impl::backend::Level;
using impl::distribute::make_train_graphs;
using impl::distribute::SharedFactor;
using impl::distribute::StepGraphOptions;
using impl::distribute::TrainGraphs;

constexpr double after_one_step = 1e-5, after_twenty_steps = 1e-3;

/// Rows of both kernels do not divide evenly between three replicas.
NetworkCase large_network() {
  NetworkCase network;
  network.features = 80;
  network.hidden = 64;
  network.classes = 16;
  return network;
}

StepGraphOptions factored(int32_t contributors, int64_t rows, int64_t elements) {
  StepGraphOptions options;
  options.contributors = options.slices = contributors;
  options.sums_in_finish = true;
  options.factors = {rows, elements};
  return options;
}

bool writes(const TrainGraphs &graphs, const std::string &entry) {
  for (const auto &spec : graphs.state) {
    if (spec.name == entry) return true;
  }
  return false;
}

std::vector<std::string> results_of(const graph::Graph &graph) {
  std::vector<std::string> names;
  for (const auto &[name, value] : graph.results())
    names.push_back(name);
  return names;
}

void a_feature_is_read_and_the_rest_is_left(void **) {
  const Model model = assert_ok_value(build_network(large_network()));
  const TrainGraphs graphs = assert_ok_value(make_train_graphs(model, factored(2, 4, 16)));
  assert_true((graphs.factored == std::vector<std::string>{"first/kernel", "second/kernel"}));
  int features = 0;
  for (const SharedFactor &factor : graphs.factors) {
    assert_true(factor.is_feature == (factor.name == "x"));
    if (factor.is_feature) assert_true(factor.dims.back() == graph::Dim(80));
    features += factor.is_feature ? 1 : 0;
  }
  assert_int_equal(features, 1);
  assert_int_equal(graphs.factors.size(), 4);  // x, the hidden layer, and a gradient for each kernel
  assert_int_equal(results_of(*graphs.accumulate_write).size(), 3);
  assert_int_equal(graphs.finish->inputs().size(), 4);
  assert_false(writes(graphs, "gradient/0/first/kernel"));
  assert_false(writes(graphs, "gradient/0/second/kernel"));
  assert_true(writes(graphs, "gradient/0/first/bias"));
}

/// rows * (in / replicas + out) numbers would pass, of in * out.
void the_rule_asks_what_is_moved(void **) {
  const Model model = assert_ok_value(build_network(large_network()));
  const auto number_factored = [&](const StepGraphOptions &options) {
    return assert_ok_value(make_train_graphs(model, options)).factored.size();
  };
  assert_int_equal(number_factored(factored(2, 0, 16)), 0);
  assert_int_equal(number_factored(factored(2, 49, 2000)), 1);  // 49 * (40 + 64) = 5,096 of 5,120
  assert_int_equal(number_factored(factored(2, 50, 2000)), 0);  // 5,200
  assert_int_equal(number_factored(factored(4, 50, 2000)), 1);  // 4,200
  assert_int_equal(number_factored(factored(2, 4, 5121)), 0);   // not so many elements
  NetworkCase narrow = large_network();
  narrow.features = 81;  // what replicas leave would share cache lines
  const Model odd = assert_ok_value(build_network(narrow));
  assert_int_equal(assert_ok_value(make_train_graphs(odd, factored(2, 4, 16))).factored.size(), 1);
}

/// The gradient of a penalty is added behind the product.
void sums_of_several_terms_are_left_alone(void **) {
  NetworkCase network = large_network();
  network.loss = Loss::mean_with_penalty;
  const Model model = assert_ok_value(build_network(network));
  assert_true(assert_ok_value(make_train_graphs(model, factored(2, 4, 16))).factored.empty());
}

RunCase twenty_steps(int64_t batch) {
  RunCase run;
  run.batch = batch;
  run.rows = 2 * batch + batch / 2 + (batch == 1 ? 0 : 1);
  run.passes = is_test_backend_slow() ? 1 : batch == 1 ? 10 : 7;
  run.options.typical_rows = 8;
  run.options.shared_factor_elements = 16;
  return run;
}

void check_pair(const Trained &one, const Trained &many, double limit, const std::string &what) {
  const double weights = relative_difference(many, one), losses = relative_difference(many.losses, one.losses);
  if (weights <= limit && losses <= limit && many.replicas_identical && many.examples == one.examples) return;
  fail_msg("%s: weights differ by %g, losses by %g (limit %g), rows %lld and %lld", what.c_str(), weights, losses,
           limit, static_cast<long long>(many.examples), static_cast<long long>(one.examples));
}

void check_equality(const NetworkCase &network, RunCase run, const std::string &what) {
  const Model model = assert_ok_value(build_network(network));
  RunCase first = run;
  first.steps = first.passes = 1;
  const Trained one = assert_ok_value(train(model, run, network));
  const Trained one_step = assert_ok_value(train(model, first, network));
  for (const int32_t n : {2, 3, 4}) {
    run.replicas = first.replicas = n;
    const std::string name = what + ", batch " + std::to_string(run.batch) + ", N " + std::to_string(n);
    check_pair(one_step, assert_ok_value(train(model, first, network)), after_one_step, name + ", one step");
    check_pair(one, assert_ok_value(train(model, run, network)), after_twenty_steps, name);
  }
}

/// Batches of fewer rows than replicas, too, and a smaller last one behind each.
void replicas_train_what_one_device_trains(void **) {
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    for (const int64_t batch : {1, 7, 25, 65}) {
      if (batch > 7 && is_test_backend_slow()) continue;
      NetworkCase network = large_network();
      network.optimizer = optimizer;
      network.learning_rate = optimizer == Optimizer::adam ? 0.01 : 0.05;
      check_equality(network, twenty_steps(batch), "optimizer " + std::to_string(static_cast<int>(optimizer)));
    }
  }
}

void with_what_else_a_step_has(void **) {
  NetworkCase network = large_network();
  network.clip = 0.05;
  network.dropout = true;
  check_equality(network, twenty_steps(25), "clipping and dropout");
  network = large_network();
  network.batch_norm = network.relu = true;
  network.optimizer = Optimizer::momentum;
  network.learning_rate = 0.05;
  check_equality(network, twenty_steps(25), "batch norm");
  network.loss = Loss::weighted_mean;
  check_equality(network, twenty_steps(7), "weighted mean");
}

void bits_are_those_of_the_run_before(void **) {
  NetworkCase network = large_network();
  network.optimizer = Optimizer::adam;
  const Model model = assert_ok_value(build_network(network));
  RunCase run = twenty_steps(25);
  run.replicas = 3;
  for (const Level level : {Level::fast, Level::repeatable}) {
    run.options.level = level;
    const Trained first = assert_ok_value(train(model, run, network));
    const Trained second = assert_ok_value(train(model, run, network));
    assert_true(first.losses == second.losses && first.variables == second.variables);
  }
}

/// A trainer of large kernels shares factors by itself, where it may.
void trainers_share_by_default(void **) {
  NetworkCase network = large_network();
  network.features = 256;
  network.hidden = 128;
  const Model model = assert_ok_value(build_network(network));
  const StrategyRef strategy = assert_ok_value(make_test_strategy(2));
  const auto leaves_gradient = [&](const TrainerOptions &options) {
    return assert_ok_value(Trainer::open(model, strategy, options))->plan().find("gradient/0/first/kernel") != nullptr;
  };
  TrainerOptions options;
  assert_int_equal(leaves_gradient(options), strategy->backend()->has_host_memory() ? 0 : 1);
  for (const auto &change : std::vector<std::function<void(TrainerOptions &)>>{
           [](TrainerOptions &o) { o.keep_gradients = true; }, [](TrainerOptions &o) { o.accumulation = 2; },
           [](TrainerOptions &o) { o.level = Level::invariant; }, [](TrainerOptions &o) { o.typical_rows = 1024; },
           [](TrainerOptions &o) { o.copies_input = true; },
           [](TrainerOptions &o) { o.lowering = impl::distribute::Lowering::replicated; }}) {
    TrainerOptions changed;
    change(changed);
    assert_true(leaves_gradient(changed));
  }
}

}  // namespace
static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_feature_is_read_and_the_rest_is_left), cmocka_unit_test(the_rule_asks_what_is_moved),
    cmocka_unit_test(sums_of_several_terms_are_left_alone),   cmocka_unit_test(trainers_share_by_default),
    cmocka_unit_test(replicas_train_what_one_device_trains),  cmocka_unit_test(with_what_else_a_step_has),
    cmocka_unit_test(bits_are_those_of_the_run_before),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::shared_factors_test

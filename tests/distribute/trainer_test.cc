// SPDX-License-Identifier: Apache-2.0
#include "distribute/trainer.h"

#include <cmath>

#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing {

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

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tutti::testing::test_agrees_with_a_trainer_written_by_hand),
};
TEST_MAIN(tests)

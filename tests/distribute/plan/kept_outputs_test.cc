// SPDX-License-Identifier: Apache-2.0
//
// tests lib/distribute/plan/kept_outputs.cc: outputs of the last step's rows, of batches that differ in rows and in
// length, against numbers worked out here.
#include "distribute/plan/kept_outputs.h"

#include <cmath>
#include <vector>

#include "data/dataset/batch_stage.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::kept_outputs_test {

namespace data = impl::data;
namespace graph = impl::graph;
namespace base = impl::base;

constexpr int64_t kMostRows = 8, kWidth = 2;
constexpr double kRate = 0.3;

/// Each row of x is a sequence of a length that is known from the data alone. Outputs: "x" itself, "y" = x * w, and
/// "mean", a number for each row.
static Model sequence_model() {
  graph::GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), data::unknown_dim(), kWidth});
  const ValueId w = b.variable("w", DType::f32, {kWidth}, {"ones", {}});
  const ValueId y = b.mul(x, w);
  const ValueId mean = b.reduce_mean(b.unary("square", y), {1, 2});
  b.set_output("x", x);
  b.set_output("y", y);
  b.set_output("mean", mean);
  b.set_loss(b.reduce_mean(mean));
  b.add_summary({.kind = graph::SummaryKind::histogram, .name = "shown x", .value = x});
  b.add_summary({.kind = graph::SummaryKind::histogram, .name = "shown mean", .value = mean});
  b.add_summary({.kind = graph::SummaryKind::histogram, .name = "shown w", .value = w});
  b.add_summary({.kind = graph::SummaryKind::scalar, .name = "shown loss", .value = b.reduce_mean(mean)});
  graph::TrainSpec train;
  train.optimizer.learning_rate = b.constant(kRate, DType::f32);
  train.optimizer.op = "sgd_update";
  b.set_train(std::move(train));
  return assert_ok_value(b.finish());
}

struct Batch {
  int64_t rows, length;
};
/// Of fewer rows than there are devices, too.
static const std::vector<Batch> kBatches = {{5, 4}, {3, 1}, {1, 7}, {kMostRows, 4}, {2, 2}, {1, 1}, {7, 4}, {4, 9}};

static std::vector<float> numbers_of(size_t index) {
  const Batch batch = kBatches[index];
  std::vector<float> numbers;
  for (int64_t i = 0; i < batch.rows * batch.length * kWidth; ++i)
    numbers.push_back(static_cast<float>(std::sin(static_cast<double>(i + 31 * static_cast<int64_t>(index)))));
  return numbers;
}

/// A trainer that a feed of batches gives its input.
struct Fed {
  base::Ref<data::Feed> feed;
  std::unique_ptr<Trainer> trainer;

  explicit Fed(int32_t replicas, int32_t accumulation = 1, bool keep_outputs = true) {
    const data::ElementSpec row = {{{"x", data::Role::feature, DType::f32, {data::unknown_dim(), kWidth}}}};
    feed = assert_ok_value(data::Feed::create(assert_ok_value(data::batch_spec(row, kMostRows)), 16));
    TrainerOptions options;
    options.keep_outputs = keep_outputs;
    options.accumulation = accumulation;
    options.shows_rows = true;
    trainer = assert_ok_value(Trainer::open(sequence_model(), assert_ok_value(make_test_strategy(replicas)), options));
    assert_ok(trainer->initialize());
    assert_ok(trainer->attach_input(assert_ok_value(feed->dataset()->make_iterator({}))));
  }
  void push(size_t index) const {
    const Batch batch = kBatches[index];
    const std::vector<float> numbers = numbers_of(index);
    data::Element element;
    element.components.push_back(
        assert_ok_value(Tensor::from_values<float>({batch.rows, batch.length, kWidth}, numbers)));
    assert_ok(feed->push(std::move(element), nullptr, base::Deadline::after_ms(10000)));
  }
  std::vector<double> weights() const { return to_doubles(assert_ok_value(trainer->get_variable("w"))); }
};

static void assert_near(const Tensor &got, const std::vector<int64_t> &dims, const std::vector<double> &expected) {
  assert_int_equal(got.shape().rank(), dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    assert_int_equal(got.shape()[i], dims[i]);
  const std::vector<double> numbers = to_doubles(got);
  assert_int_equal(numbers.size(), expected.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!(std::abs(numbers[i] - expected[i]) < 1e-5)) fail_msg("%zu: %g, expected %g", i, numbers[i], expected[i]);
  }
}

/// What the model gives for these batches, one behind the other, with these weights; all of one length.
static void assert_outputs(Trainer &trainer, const std::vector<size_t> &batches, const std::vector<double> &w) {
  const int64_t length = kBatches[batches[0]].length;
  std::vector<double> x, y, mean;
  for (const size_t index : batches) {
    for (const float number : numbers_of(index)) {
      if (x.size() % static_cast<size_t>(length * kWidth) == 0) mean.push_back(0);
      y.push_back(static_cast<double>(number) * w[x.size() % kWidth]);
      x.push_back(static_cast<double>(number));
      mean.back() += y.back() * y.back() / static_cast<double>(length * kWidth);
    }
  }
  const auto rows = static_cast<int64_t>(mean.size());
  assert_near(assert_ok_value(trainer.output("x")), {rows, length, kWidth}, x);
  assert_near(assert_ok_value(trainer.output("y")), {rows, length, kWidth}, y);
  assert_near(assert_ok_value(trainer.output("mean")), {rows}, mean);
}

/// The weights after a step on the batch.
static std::vector<double> moved(std::vector<double> w, size_t index) {
  const std::vector<float> numbers = numbers_of(index);
  std::vector<double> squares(kWidth);
  for (size_t i = 0; i < numbers.size(); ++i)
    squares[i % kWidth] += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
  for (size_t j = 0; j < w.size(); ++j)
    w[j] -= kRate * 2 * w[j] * squares[j] / static_cast<double>(numbers.size());
  return w;
}

static void test_batches_of_any_rows_and_length(void **) {
  for (int32_t replicas = 1; replicas <= 4; ++replicas) {
    const Fed fed(replicas);
    assert_error_contains(fed.trainer->output("y"), "there are no outputs");
    for (size_t index = 0; index < kBatches.size(); ++index) {
      const std::vector<double> before = fed.weights();
      fed.push(index);
      assert_int_equal(assert_ok_value(fed.trainer->run(1, nullptr)).examples, kBatches[index].rows);
      assert_outputs(*fed.trainer, {index}, before);
      assert_near(assert_ok_value(fed.trainer->get_variable("w")), {kWidth}, moved(before, index));
    }
    assert_error_contains(fed.trainer->output("no_such"), "no output 'no_such' in mode TRAIN; known: mean, x, y");
  }
}

/// However many steps are under way at a time.
static void test_the_last_of_several_steps(void **) {
  for (int32_t replicas = 1; replicas <= 4; ++replicas) {
    const Fed fed(replicas);
    std::vector<double> w = fed.weights(), before = w;
    for (size_t index = 0; index < kBatches.size(); ++index) {
      fed.push(index);
      before = w;
      w = moved(w, index);
    }
    const auto steps = static_cast<int64_t>(kBatches.size());
    assert_int_equal(assert_ok_value(fed.trainer->run(steps, nullptr)).steps, steps);
    assert_outputs(*fed.trainer, {kBatches.size() - 1}, before);
    // A run without a step, for there is no more, leaves what there is.
    assert_ok(fed.feed->end());
    assert_int_equal(assert_ok_value(fed.trainer->run(1, nullptr)).steps, 0);
    assert_outputs(*fed.trainer, {kBatches.size() - 1}, before);
  }
}

static void test_several_batches_to_a_step(void **) {
  for (int32_t replicas = 1; replicas <= 3; ++replicas) {
    const Fed fed(replicas, 2);
    const std::vector<double> before = fed.weights();
    fed.push(0), fed.push(3);
    assert_ok(fed.trainer->run(1, nullptr));
    assert_outputs(*fed.trainer, {0, 3}, before);
    fed.push(1), fed.push(2);
    assert_ok(fed.trainer->run(1, nullptr));
    assert_error_contains(fed.trainer->output("y"), "output 'y' has rows of several shapes in the last step");
    assert_int_equal(assert_ok_value(fed.trainer->output("mean")).elements(), 4);
    // The input ends in the middle of a step.
    const std::vector<double> last = fed.weights();
    fed.push(4);
    assert_ok(fed.feed->end());
    assert_int_equal(assert_ok_value(fed.trainer->run(1, nullptr)).examples, 2);
    assert_outputs(*fed.trainer, {4}, last);
  }
}

/// The pieces of a summary, one behind the other.
static std::vector<double> shown(Trainer &trainer, const char *name) {
  std::vector<double> all;
  for (const Tensor &piece : assert_ok_value(trainer.summary(*trainer.model().find_summary(name))))
    for (const double number : to_doubles(piece))
      all.push_back(number);
  return all;
}

static void assert_shown(Trainer &trainer, const std::vector<size_t> &batches, const std::vector<double> &w) {
  std::vector<double> x, means;
  for (const size_t index : batches) {
    const auto size = static_cast<size_t>(kBatches[index].length * kWidth);
    const std::vector<float> numbers = numbers_of(index);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto number = static_cast<double>(numbers[i]);
      x.push_back(number);
      if (i % size == 0) means.push_back(0);
      means.back() += number * w[i % kWidth] * number * w[i % kWidth] / static_cast<double>(size);
    }
  }
  assert_true(shown(trainer, "shown x") == x);
  assert_true(shown(trainer, "shown w") == w);
  const std::vector<double> got = shown(trainer, "shown mean");
  assert_int_equal(got.size(), means.size());
  double sum = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    assert_true(std::abs(got[i] - means[i]) < 1e-5);
    sum += means[i];
  }
  assert_true(std::abs(shown(trainer, "shown loss")[0] - sum / static_cast<double>(means.size())) < 1e-5);
}

// Some runs show rows, others do not, whether or not outputs are kept; the weights are the same.
static void test_shown_rows(void **) {
  for (const bool keeps_outputs : {false, true}) {
    for (const int32_t accumulation : {1, 2}) {
      for (int32_t replicas = 1; replicas <= 3; ++replicas) {
        const Fed fed(replicas, accumulation, keeps_outputs), plain(replicas, accumulation, false);
        const std::vector<size_t> order = accumulation == 1 ? std::vector<size_t>{0, 3, 3, 2, 4, 4, 6, 1}
                                                            : std::vector<size_t>{0, 3, 3, 0, 6, 6, 2, 2, 4, 4, 3, 0};
        for (size_t at = 0; at < order.size(); at += static_cast<size_t>(accumulation)) {
          const std::vector<size_t> batches(order.begin() + static_cast<std::ptrdiff_t>(at),
                                            order.begin() + static_cast<std::ptrdiff_t>(at) + accumulation);
          for (const size_t index : batches)
            fed.push(index), plain.push(index);
          const std::vector<double> before = fed.weights();
          const bool shows = at % 3 != 1;
          fed.trainer->show_rows(shows);
          assert_ok(fed.trainer->run(1, nullptr));
          assert_ok(plain.trainer->run(1, nullptr));
          if (shows) assert_shown(*fed.trainer, batches, before);
          const auto value = fed.trainer->summary(*fed.trainer->model().find_summary("shown x"));
          if (!shows) assert_error_contains(value, "has not kept 'summary/shown x'");
          if (keeps_outputs && accumulation == 1) assert_outputs(*fed.trainer, batches, before);
          assert_near(assert_ok_value(fed.trainer->get_variable("w")), {kWidth}, plain.weights());
        }
      }
    }
  }
}

static void test_without_the_option(void **) {
  const Fed fed(2, 1, false);
  fed.push(0);
  assert_ok(fed.trainer->run(1, nullptr));
  assert_error_contains(fed.trainer->output("y"), "only with the run option keep_outputs");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_batches_of_any_rows_and_length),
    cmocka_unit_test(test_the_last_of_several_steps),
    cmocka_unit_test(test_several_batches_to_a_step),
    cmocka_unit_test(test_shown_rows),
    cmocka_unit_test(test_without_the_option),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::kept_outputs_test

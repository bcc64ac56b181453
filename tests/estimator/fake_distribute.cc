// SPDX-License-Identifier: Apache-2.0
#include "estimator/fake_distribute.h"

#include <unistd.h>

#include <cmath>
#include <vector>

#include "base/trace.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"

namespace tutti::impl::estimator {

FakeOrders &fake_orders() {
  static FakeOrders orders;
  return orders;
}

void reset_fake_orders() {
  FakeOrders &orders = fake_orders();
  for (std::atomic<int64_t> *step : {&orders.fail_at_step, &orders.stop_token_at, &orders.cancel_token_at})
    *step = -1;
  for (std::atomic<int64_t> *count :
       {&orders.step_time_us, &orders.trainers_opened, &orders.initialized, &orders.runs, &orders.published}) {
    *count = 0;
  }
  orders.token.reset();
  orders.step_times.clear();
  orders.left_for.clear();
  orders.takes_samples = false;
}

namespace {

class FakeStrategy : public distribute::Strategy {
 public:
  explicit FakeStrategy(int32_t workers) : Strategy("fake", {distribute::DeviceChoice{}}, {}, {.count = workers}) {}
  base::Result<distribute::ReplicaGroups> make_groups(std::span<const backend::DeviceRef>,
                                                      const distribute::GroupOptions &) const override {
    return base::unimplemented("a fake has no groups");
  }
};

}  // namespace

distribute::StrategyRef fake_strategy(int32_t workers) { return std::make_shared<FakeStrategy>(workers); }

ModelFunction fake_model_function(std::atomic<int64_t> *calls) {
  return [calls](graph::GraphBuilder &b, Mode mode) -> base::Status {
    if (calls != nullptr) ++calls[static_cast<int>(mode) - 1];
    const graph::ValueId x = b.model().find_feature("x")->value;
    const graph::ValueId w = b.variable("w", tensor::DType::f32, {1}, {"zeros", {}});
    const graph::ValueId y = b.add(x, w);
    b.set_output("y", y);
    if (mode == Mode::predict) return base::Status();
    b.set_loss(b.reduce_mean(b.unary("abs", b.sub(x, w))));
    if (mode == Mode::evaluate) return base::Status();
    graph::TrainSpec train;
    train.optimizer.op = "sgd_update";
    train.optimizer.learning_rate = b.constant(0.1, tensor::DType::f32);
    b.set_train(train);
    return base::Status();
  };
}

data::DatasetRef fake_dataset(int64_t rows, int64_t batch_size, bool shuffled) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i)
    values.push_back(static_cast<float>(i));
  tensor::Tensor x = *tensor::Tensor::from_values<float>(tensor::Shape{rows, 1}, std::span<const float>(values));
  data::Pipeline pipeline(data::from_slices({{"x", x, data::Role::feature}}));
  if (shuffled) pipeline.shuffle(rows);
  pipeline.batch(batch_size);
  const auto dataset = pipeline.build();
  return dataset.ok() ? *dataset : nullptr;
}

}  // namespace tutti::impl::estimator

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using estimator::fake_orders;
using tensor::Tensor;

namespace {

base::Ref<checkpoint::WeightVersion> version_of(int64_t step, float w, bool with_slots) {
  const tensor::Shape shape{1};
  std::vector<checkpoint::StateEntry> entries = {{"w", checkpoint::StateRole::weight, tensor::DType::f32, shape}};
  std::vector<Tensor> tensors = {*Tensor::from_values<float>(shape, {w})};
  if (with_slots) {
    entries.push_back({"w/velocity", checkpoint::StateRole::slot, tensor::DType::f32, shape});
    tensors.push_back(*Tensor::from_values<float>(shape, {w * 2}));
  }
  return base::make_ref<checkpoint::TensorVersion>(step, std::move(entries), std::move(tensors));
}

Result<float> w_of(const checkpoint::WeightVersion &version) {
  const int64_t at = version.find(checkpoint::StateRole::weight, "w");
  if (at < 0) return base::invalid_argument("the version has no variable 'w'");
  TUTTI_ASSIGN(const Tensor tensor, version.read(static_cast<size_t>(at)));
  return tensor.data_as<float>()[0];
}

class FakeTrainer : public Trainer {
 public:
  explicit FakeTrainer(const graph::Model &model) : model_(model) {
    ++fake_orders().trainers_opened;
    samples_.set_names({"loss", "learning_rate"});
  }

  Status initialize() override {
    ++fake_orders().initialized;
    w_ = 1;
    step_ = 0;
    return Status();
  }
  Status restore(const checkpoint::WeightVersion &version) override {
    TUTTI_ASSIGN(w_, w_of(version));
    step_ = version.step();
    return Status();
  }
  std::string leave_map(const data::Dataset &, data::IteratorContext &) override { return std::string(); }
  Status attach_input(std::unique_ptr<data::Iterator> iterator) override {
    iterator_ = std::move(iterator);
    return Status();
  }
  base::Json input_report() const override { return base::Json(); }
  Result<base::Json> input_state() override { return iterator_->save(); }

  Result<RunReport> run(int64_t steps, const base::CancelToken *cancel) override {
    ++fake_orders().runs;
    const int64_t began = base::now_ns();
    RunReport report;
    while (steps < 0 || report.steps < steps) {
      TUTTI_TRY(base::check(cancel));
      report.reason = StopReason::stopped;
      if (cancel != nullptr && cancel->stop_requested()) break;
      if (step_ + 1 == fake_orders().fail_at_step) return base::internal_error("replica 0 failed at step ", step_ + 1);
      report.reason = StopReason::end_of_input;
      TUTTI_ASSIGN(const bool more, iterator_->next(element_));
      if (!more) break;
      train_on(element_.components[0], &report);
      report.reason = StopReason::steps_done;
    }
    report.step = step_;
    report.loss = std::fabs(w_);
    report.total_ns = base::now_ns() - began;
    for (int64_t i = 0; i < report.steps; ++i)
      distribute::add_times(report.times, fake_orders().step_times);
    return report;
  }
  void leave_workers(const Status &cause) override { fake_orders().left_for.push_back(cause.to_string()); }
  void request_stop() override {}
  int64_t step() const override { return step_; }
  void set_step(int64_t step) override { step_ = step; }
  int64_t batch_counter() const override { return batch_counter_; }
  void set_batch_counter(int64_t counter) override { batch_counter_ = counter; }
  LossScaleState loss_scale() const override { return loss_scale_; }
  void set_loss_scale(const LossScaleState &state) override { loss_scale_ = state; }
  Result<std::vector<NamedNumber>> report() const override {
    return std::vector<NamedNumber>{{"loss", std::fabs(w_)}, {"learning_rate", 0.1}};
  }
  std::vector<double> loss_history() const override { return {}; }
  StepSamples *samples() override { return fake_orders().takes_samples ? &samples_ : nullptr; }
  Result<base::Ref<checkpoint::WeightVersion>> publish_weights(bool with_slots) override {
    ++fake_orders().published;
    return version_of(step_, w_, with_slots);
  }
  Result<Tensor> get_variable(std::string_view) override { return Tensor::from_values<float>({1}, {w_}); }
  Status set_variable(std::string_view, const Tensor &value) override {
    w_ = value.data_as<float>()[0];
    return Status();
  }
  Result<Tensor> get_slot(std::string_view, std::string_view) override { return base::unimplemented("no slots"); }
  Result<Tensor> gradient(std::string_view) override { return base::failed_precondition("no gradients kept"); }
  Result<Tensor> output(std::string_view) override { return base::failed_precondition("no outputs kept"); }
  Status set_host_scalar(std::string_view, double) override { return base::unimplemented("no scalars"); }
  Result<double> host_scalar(std::string_view) override { return base::unimplemented("no scalars"); }
  const graph::Model &model() const override { return model_; }
  const StatePlan &plan() const override { return plan_; }
  Result<bool> replicas_are_identical() override { return true; }
  TrainerCounters counters() const override {
    TrainerCounters counters;
    counters.examples = examples_;
    return counters;
  }
  std::vector<std::string> device_names() const override { return {"fake:0", "fake:1"}; }
  base::Json describe() const override { return {}; }

 private:
  void train_on(const Tensor &x, RunReport *report) {
    double sum = 0;
    for (int64_t i = 0; i < x.elements(); ++i)
      sum += x.data_as<float>()[i];
    ++step_;
    ++batch_counter_;
    w_ = static_cast<float>(0.9 * w_ + 0.1 * sum / static_cast<double>(x.elements()) +
                            0.001 * static_cast<double>(step_));
    ++report->steps;
    report->examples += x.rows();
    examples_ += x.rows();
    if (samples_.is_due(step_)) {
      const std::span<double> values = samples_.add({step_, 1'700'000'000'000'000'000 + step_, report->examples, 0});
      values[0] = std::fabs(w_);
      values[1] = 0.1;
    }
    if (fake_orders().step_time_us > 0) usleep(static_cast<useconds_t>(fake_orders().step_time_us));
    if (step_ == fake_orders().stop_token_at) fake_orders().token->stop();
    if (step_ == fake_orders().cancel_token_at) fake_orders().token->cancel();
  }

  const graph::Model model_;
  const StatePlan plan_;
  float w_ = 0;
  int64_t step_ = 0;
  int64_t examples_ = 0;
  int64_t batch_counter_ = 0;
  LossScaleState loss_scale_;
  StepSamples samples_;
  std::unique_ptr<data::Iterator> iterator_;
  data::Element element_;
};

class FakeEvaluator : public Evaluator {
 public:
  std::string leave_map(const data::Dataset &, data::IteratorContext &) override { return std::string(); }
  Result<EvaluateReport> run(const checkpoint::WeightVersion &weights, data::Iterator &iterator, int64_t max_batches,
                             const base::CancelToken *cancel) override {
    TUTTI_ASSIGN(const float w, w_of(weights));
    EvaluateReport report;
    double sum = 0;
    for (data::Element element; max_batches < 0 || report.batches < max_batches; ++report.batches) {
      TUTTI_TRY(base::check(cancel));
      TUTTI_ASSIGN(const bool more, iterator.next(element));
      if (!more) break;
      const Tensor &x = element.components[0];
      for (int64_t i = 0; i < x.elements(); ++i)
        sum += std::fabs(x.data_as<float>()[i] - w);
      report.examples += x.rows();
    }
    if (report.examples == 0) return base::invalid_argument("there are no rows to evaluate on");
    report.names = {"loss", "spread"};
    report.values = {sum / static_cast<double>(report.examples), 1.0};
    report.elements.resize(report.names.size());
    report.step = weights.step();
    return report;
  }
};

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::open(const graph::Model &model, StrategyRef, const TrainerOptions &,
                                               const WeightShare *) {
  return std::unique_ptr<Trainer>(new FakeTrainer(model));
}

Result<std::unique_ptr<Evaluator>> Evaluator::open(const graph::Model &, StrategyRef, const PredictOptions &) {
  return std::unique_ptr<Evaluator>(new FakeEvaluator);
}

}  // namespace tutti::impl::distribute

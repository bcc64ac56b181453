// SPDX-License-Identifier: Apache-2.0
//
// A weight for each element, by its class: all classes together / (classes that come * how often its class comes), so
// that the weights of each class sum to the same, and all to the number of elements.
#include <memory>
#include <utility>

#include "data/dataset/stage.h"
#include "data/pipeline/class_column.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

class ClassWeights {
 public:
  /// `weights`: of each class; 0 = there is none.
  ClassWeights(ClassColumn column, std::vector<float> weights, bool is_batched)
      : column_(std::move(column)), weights_(std::move(weights)), is_batched_(is_batched) {}

  /// The weights of an element, or of the rows of a batch, behind its other components. `lineage`: of the element.
  Status add(const Lineage &lineage, Element &element) const {
    const Tensor &labels = element.components[column_.component()];
    TUTTI_ASSIGN(Tensor weights, allocate(labels.elements(), is_batched_));
    const int64_t row = fill(labels.data(), labels.elements(), weights.mutable_data_as<float>());
    if (row < labels.elements()) return refuse(name_of_row(lineage, row, is_batched_), labels.data(), row);
    element.components.push_back(std::move(weights));
    return Status();
  }
  /// The same for elements that became the rows of a batch; false when one of them has no weight.
  bool add_rows(Element &batch) const {
    const Tensor &labels = batch.components[column_.component()];
    Result<Tensor> weights = allocate(labels.rows(), true);
    if (!weights.ok()) return false;
    if (fill(labels.data(), labels.rows(), weights->mutable_data_as<float>()) < labels.rows()) return false;
    batch.components.push_back(weights.take());
    return true;
  }
  /// The last target's rows, from the labels in the others; the first row without a weight, or `rows`.
  int64_t fill_last(std::span<const RowTarget> targets, int64_t rows) const {
    return fill(labels_in(targets), rows, reinterpret_cast<float *>(targets.back().data));
  }
  Status refuse_in(std::span<const RowTarget> targets, int64_t row, std::string_view whose) const {
    return refuse(whose, labels_in(targets), row);
  }

 private:
  static Result<Tensor> allocate(int64_t rows, bool is_batched) {
    return Tensor::allocate(tensor::DType::f32, is_batched ? tensor::Shape{rows} : tensor::Shape());
  }
  const void *labels_in(std::span<const RowTarget> targets) const { return targets[column_.component()].data; }
  int64_t fill(const void *labels, int64_t rows, float *weights) const {
    return column_.read(labels, rows, [&](int64_t label) {
      *weights = weights_[static_cast<size_t>(label)];
      return *weights++ > 0;
    });
  }
  Status refuse(std::string_view whose, const void *labels, int64_t row) const {
    const void *const label = column_.row(labels, row);
    const std::string described = column_.describe(whose, label);
    if (column_.is_class(label)) return base::out_of_range("class_weights: ", described, ", whose count is 0");
    return base::out_of_range("class_weights: ", described, "; ", column_.expected());
  }

  const ClassColumn column_;
  const std::vector<float> weights_;
  const bool is_batched_;
};

class ClassWeightsAccess : public RandomAccess {
 public:
  ClassWeightsAccess(std::unique_ptr<RandomAccess> input, const ClassWeights &weights)
      : input_(std::move(input)), weights_(weights) {}

  int64_t size() const override { return input_->size(); }
  int64_t rows_at_once() const override { return input_->rows_at_once(); }
  int64_t lineage(int64_t position) const override { return input_->lineage(position); }
  FileName file(int64_t position) const override { return input_->file(position); }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    TUTTI_TRY(input_->gather(positions, targets.first(targets.size() - 1)));
    const auto rows = static_cast<int64_t>(positions.size());
    const int64_t row = weights_.fill_last(targets, rows);
    return row == rows ? Status() : weights_.refuse_in(targets, row, base::concat("one of ", rows, " elements"));
  }
  Status element(int64_t position, Element &element) override {
    TUTTI_TRY(input_->element(position, element));
    return weights_.add({0, input_->lineage(position)}, element);
  }
  bool view(int64_t first, int64_t count, Element &batch) override {
    return input_->view(first, count, batch) && weights_.add_rows(batch);
  }

 private:
  std::unique_ptr<RandomAccess> input_;
  const ClassWeights &weights_;  // the dataset's
};

// Without progress of its own: its state is that of the input.
class ClassWeightsStage : public Stage {
 public:
  ClassWeightsStage(std::unique_ptr<Stage> input, const ClassWeights &weights)
      : input_(std::move(input)), weights_(weights) {}

  Result<bool> next(Element &element) override {
    TUTTI_ASSIGN(const bool more, input_->next(element));
    if (more) TUTTI_TRY(in_element(weights_.add(element.lineage, element), element.lineage));
    return more;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    const Status status = input_->next_rows(targets.first(targets.size() - 1), count, done);
    if (!status.ok() && !base::is_interrupt(status)) return status;  // there is nothing in the rows
    const int64_t row = weights_.fill_last(targets, done);
    if (row == done) return status;
    const Lineage last = input_->last_row();
    if (done == 1) return in_element(weights_.refuse_in(targets, row, name_of_row(last, 0, false)), last);
    const std::string whose = base::concat("one of the ", done, " elements up to element ", last.index);
    return in_element(weights_.refuse_in(targets, row, whose), last).with_detail("elements", base::concat(done));
  }
  Lineage last_row() const override { return input_->last_row(); }
  void save(State &state) const override { input_->save(state); }
  Status restore(const JsonReader &state) override { return input_->restore(state); }

 private:
  std::unique_ptr<Stage> input_;
  const ClassWeights &weights_;  // the dataset's
};

class ClassWeightsDataset : public Dataset {
 public:
  ClassWeightsDataset(const DatasetRef &input, ElementSpec spec, ClassWeights weights)
      : Dataset("class_weights", std::move(spec), input->cardinality(), {input}), weights_(std::move(weights)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<ClassWeightsStage>(std::move(input), weights_));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> input, inputs()[0]->random_access(context, access));
    if (input == nullptr) return input;
    return std::unique_ptr<RandomAccess>(std::make_unique<ClassWeightsAccess>(std::move(input), weights_));
  }

 private:
  const ClassWeights weights_;
};

// The weight of each class; 0 for those that never come.
Result<std::vector<float>> weights_of(const std::vector<int64_t> &counts) {
  double all = 0, classes = 0;
  for (const int64_t count : counts) {
    all += static_cast<double>(count);
    classes += count > 0 ? 1 : 0;
  }
  if (classes == 0) return base::invalid_argument("counts: expected a number above 0 for at least one class");
  std::vector<float> weights;
  for (const int64_t count : counts) {
    const double weight = count > 0 ? all / (classes * static_cast<double>(count)) : 0;
    weights.push_back(static_cast<float>(weight));
  }
  return weights;
}

}  // namespace

Result<DatasetRef> apply_class_weights(const DatasetRef &input, const ClassWeightsParameters &parameters,
                                       TransformArguments &) {
  TUTTI_ASSIGN(std::vector<float> weights, weights_of(parameters.counts));
  TUTTI_ASSIGN(ClassColumn column,
               ClassColumn::find(input->spec(), parameters.component, static_cast<int64_t>(parameters.counts.size())));
  ElementSpec spec = input->spec();
  graph::Dims dims;
  if (spec.is_batched()) dims.push_back(spec.components[column.component()].dims[0]);
  spec.components.push_back({parameters.name, Role::weight, tensor::DType::f32, std::move(dims)});
  TUTTI_TRY(check(spec));
  ClassWeights by_class(std::move(column), std::move(weights), spec.is_batched());
  return DatasetRef(base::make_ref<ClassWeightsDataset>(input, std::move(spec), std::move(by_class)));
}

}  // namespace tutti::impl::data

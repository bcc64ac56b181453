// SPDX-License-Identifier: Apache-2.0
//
// The values that were seen are kept as they are, so nothing is taken for equal that is not; memory grows with the
// number of different values. They are not saved: a restored walk reads again what lies before its place.
#include <string>
#include <unordered_set>
#include <utility>

#include "base/hash/keyed_hash.h"
#include "data/dataset/stage.h"
#include "data/transform_parameters.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

// The value of a tensor as text: equal texts for equal values, for tensors of one dtype and rank.
void describe_value(const Tensor &tensor, std::string &text) {
  const auto append = [&text](int64_t number) { text.append(reinterpret_cast<const char *>(&number), sizeof(number)); };
  text.clear();
  for (const int64_t extent : tensor.shape())
    append(extent);
  if (tensor.dtype() != tensor::DType::bytes) {
    text.append(static_cast<const char *>(tensor.data()), static_cast<size_t>(tensor.size_bytes()));
    return;
  }
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const std::string_view value = tensor::bytes_at(tensor, i);
    append(static_cast<int64_t>(value.size()));
    text.append(value);
  }
}

class UniqueStage : public Stage {
 public:
  UniqueStage(std::unique_ptr<Stage> input, size_t component, base::Ref<base::CancelToken> cancel)
      : input_(std::move(input)), component_(component), cancel_(std::move(cancel)) {}

  Result<bool> next(Element &element) override {
    while (read_ < resume_)
      TUTTI_TRY(read_again(element));
    for (;;) {
      TUTTI_ASSIGN(const bool is_new, pull(element));
      if (ended_) return false;
      if (is_new) return true;
      TUTTI_TRY(base::check(cancel_.get()));
    }
  }
  void save(State &state) const override {
    state.open("unique");
    state.number("read", std::max(read_, resume_));
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "unique"));
    TUTTI_ASSIGN(resume_, saved_count(state, "read"));
    return Status();
  }

 private:
  // The next element of the input: is its value new?
  Result<bool> pull(Element &element) {
    if (ended_) return false;
    const Result<bool> more = input_->next(element);
    if (is_final(more.status())) return more;
    if (more.ok() && !*more) {
      ended_ = true;
      return false;
    }
    ++read_;
    TUTTI_TRY(more);
    describe_value(element.components[component_], text_);
    return seen_.insert(text_).second;
  }
  // One that failed then fails again, and its error has been told.
  Status read_again(Element &element) {
    const Result<bool> is_new = pull(element);
    if (ended_) return base::data_loss("unique: the input ends before element ", resume_);
    if (is_final(is_new.status())) return is_new.status();
    return base::check(cancel_.get());
  }

  std::unique_ptr<Stage> input_;
  const size_t component_;
  const base::Ref<base::CancelToken> cancel_;
  std::unordered_set<std::string, base::KeyedHash> seen_;
  std::string text_;
  int64_t read_ = 0;    // elements of the input
  int64_t resume_ = 0;  // how many a restored walk had read
  bool ended_ = false;
};

Cardinality different_of(const Dataset &input) {
  const Cardinality all = input.cardinality();
  return all.is_exact() && all.value() <= 1 ? all : all.of_kept();
}

class UniqueDataset : public Dataset {
 public:
  UniqueDataset(const DatasetRef &input, size_t component)
      : Dataset("unique", input->spec(), different_of(*input), {input}), component_(component) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<UniqueStage>(std::move(input), component_, context.cancel));
  }

 private:
  size_t component_;
};

}  // namespace

Result<DatasetRef> apply_unique(const DatasetRef &input, const UniqueParameters &parameters, TransformArguments &) {
  if (input->spec().is_batched()) {
    return base::invalid_argument("elements are batches of ", input->spec().batch_size,
                                  " rows; put it before the batch");
  }
  TUTTI_ASSIGN(const size_t component, find_component(input->spec(), parameters.component));
  return DatasetRef(base::make_ref<UniqueDataset>(input, component));
}

}  // namespace tutti::impl::data

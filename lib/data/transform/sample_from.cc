// SPDX-License-Identifier: Apache-2.0
//
// Which dataset gives element n is a function of (seed, epoch, n) and of those that have ended before, so a state is
// that number and those of the datasets.
#include <utility>

#include "base/random/philox.h"
#include "data/call/interleaving.h"
#include "data/dataset/dataset_list.h"
#include "data/dataset/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::RandomKey;
using base::Result;
using base::Status;

namespace {

class SampleStage : public Stage {
 public:
  SampleStage(std::vector<std::unique_ptr<Stage>> inputs, std::vector<double> weights, bool stop_on_empty,
              RandomKey key, int64_t epoch)
      : inputs_(std::move(inputs)),
        weights_(std::move(weights)),
        stop_on_empty_(stop_on_empty),
        key_(key),
        epoch_(epoch),
        ended_(inputs_.size(), false) {}

  Result<bool> next(Element &element) override {
    for (;;) {
      const size_t drawn = draw();
      if (drawn == inputs_.size()) return false;
      const Result<bool> more = inputs_[drawn]->next(element);
      if (is_final(more.status())) return more;
      if (more.ok() && !*more) {
        ended_[drawn] = true;
        if (stop_on_empty_) ended_.assign(ended_.size(), true);
        continue;
      }
      element.lineage.renumber(epoch_, position_++);
      return more;
    }
  }
  void save(State &state) const override {
    state.open("sample_from");
    state.number("position", position_);
    state.key("inputs");
    state.open_list();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      state.open("input");
      state.number("ended", ended_[i] ? 1 : 0);
      state.key("walk");
      inputs_[i]->save(state);
      state.close();
    }
    state.close();
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "sample_from"));
    TUTTI_ASSIGN(position_, saved_count(state, "position"));
    TUTTI_ASSIGN(const JsonReader list, state.get("inputs"));
    TUTTI_ASSIGN(const std::vector<JsonReader> inputs, list.elements());
    if (inputs.size() != inputs_.size()) {
      return base::invalid_argument(list.path(), ": expected ", inputs_.size(), " inputs, got ", inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      TUTTI_ASSIGN(const int64_t ended, saved_count(inputs[i], "ended", 0, 1));
      ended_[i] = ended == 1;
      TUTTI_ASSIGN(const JsonReader walk, inputs[i].get("walk"));
      TUTTI_TRY(inputs_[i]->restore(walk));
    }
    return Status();
  }

 private:
  // The dataset for the next element, among those that have not ended; their number when there is none.
  size_t draw() const {
    double all = 0;
    for (size_t i = 0; i < inputs_.size(); ++i)
      all += ended_[i] ? 0 : weights_[i];
    const base::PhiloxWords words = key_.words(static_cast<uint64_t>(position_), 0);
    double place = base::uniform_double(words[0], words[1]) * all;
    size_t drawn = inputs_.size();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (ended_[i] || weights_[i] <= 0) continue;
      drawn = i;
      place -= weights_[i];
      if (place < 0) break;
    }
    return drawn;
  }

  const std::vector<std::unique_ptr<Stage>> inputs_;
  const std::vector<double> weights_;
  const bool stop_on_empty_;
  const RandomKey key_;
  const int64_t epoch_;
  std::vector<bool> ended_;
  int64_t position_ = 0;  // elements given out
};

class SampleDataset : public Dataset {
 public:
  SampleDataset(DatasetList list, Cardinality cardinality, SampleFromParameters parameters)
      : Dataset("sample_from", std::move(list.spec), cardinality, std::move(list.datasets)),
        parameters_(std::move(parameters)) {
    ++shuffle_depth_;
  }

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    std::vector<std::unique_ptr<Stage>> stages;
    for (size_t i = 0; i < inputs().size(); ++i) {
      TUTTI_ASSIGN(std::unique_ptr<Stage> stage, inputs()[i]->walk(context_of_part(context, static_cast<int64_t>(i))));
      stages.push_back(std::move(stage));
    }
    const auto seed = static_cast<uint64_t>(parameters_.seed.value_or(context.seed));
    const RandomKey key =
        RandomKey::of(seed, static_cast<uint64_t>(shuffle_depth()), static_cast<uint64_t>(context.epoch));
    return std::unique_ptr<Stage>(std::make_unique<SampleStage>(std::move(stages), parameters_.weights,
                                                                parameters_.stop_on_empty, key, context.epoch));
  }

 private:
  const SampleFromParameters parameters_;
};

// How many elements come, if that does not depend on the draws.
Cardinality cardinality_of(const DatasetList &list, const SampleFromParameters &parameters) {
  bool all_infinite = true;
  bool any_infinite = false;
  bool all_certain = true;
  bool any_certain = false;
  bool any_unweighted = false;
  for (size_t i = 0; i < list.datasets.size(); ++i) {
    const bool is_drawn = parameters.weights[i] > 0;
    any_unweighted = any_unweighted || !is_drawn;
    if (!is_drawn) continue;
    const Cardinality own = list.datasets[i]->cardinality();
    all_infinite = all_infinite && own.is_infinite();
    any_infinite = any_infinite || own.is_infinite();
    all_certain = all_certain && own == Cardinality::infinite();
    any_certain = any_certain || own == Cardinality::infinite();
  }
  if (all_certain || (any_certain && !parameters.stop_on_empty)) return Cardinality::infinite();
  if (all_infinite || (any_infinite && !parameters.stop_on_empty)) return Cardinality::presumed_infinite();
  return parameters.stop_on_empty || any_unweighted ? Cardinality::unknown() : list.cardinality;
}

}  // namespace

Result<DatasetRef> apply_sample_from(const DatasetRef &input, const SampleFromParameters &parameters,
                                     TransformArguments &arguments) {
  TUTTI_ASSIGN(DatasetList list, list_datasets(input, arguments.others));
  SampleFromParameters own = parameters;
  if (own.weights.empty()) own.weights.assign(list.datasets.size(), 1.0);
  if (own.weights.size() != list.datasets.size()) {
    return base::invalid_argument("weights: expected one for each of the ", list.datasets.size(), " datasets, got ",
                                  own.weights.size());
  }
  double all = 0;
  for (const double weight : own.weights)
    all += weight;
  if (!(all > 0)) return base::invalid_argument("weights: expected at least one above 0");
  const Cardinality cardinality = cardinality_of(list, own);
  return DatasetRef(base::make_ref<SampleDataset>(std::move(list), cardinality, std::move(own)));
}

}  // namespace tutti::impl::data

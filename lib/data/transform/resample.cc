// SPDX-License-Identifier: Apache-2.0
//
// Each element is given f times on average, f = target share / initial share of its class, scaled so that no f is above
// 1 (rejection sampling), or so that the mean is 1. How often element n is given is a function of (seed, epoch, n).
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random/philox.h"
#include "data/dataset/stage.h"
#include "data/pipeline/class_column.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::RandomKey;
using base::Result;
using base::Status;

namespace {

class ResampleStage : public Stage {
 public:
  ResampleStage(std::unique_ptr<Stage> input, const ClassColumn &column, const std::vector<double> &factors,
                RandomKey key, const IteratorContext &context)
      : input_(std::move(input)),
        column_(column),
        factors_(factors),
        key_(key),
        cancel_(context.cancel),
        epoch_(context.epoch) {}

  Result<bool> next(Element &element) override {
    for (bool again = false; given_ >= times_; again = true) {
      if (again) TUTTI_TRY(base::check(cancel_.get()));
      TUTTI_ASSIGN(const bool more, pull());
      if (!more) return false;
    }
    element.components = held_.components;
    element.lineage = {epoch_, position_++, held_.lineage.file};
    ++given_;
    return true;
  }
  void save(State &state) const override {
    const bool is_holding = given_ < times_;
    state.open("resample");
    state.number("position", position_);
    state.number("read", is_holding ? read_ - 1 : read_);
    state.number("given", is_holding ? given_ : restored_given_);
    state.key("input");
    if (is_holding) {
      state.append(before_);
    } else {
      input_->save(state);
    }
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "resample"));
    TUTTI_ASSIGN(position_, saved_count(state, "position"));
    TUTTI_ASSIGN(read_, saved_count(state, "read"));
    TUTTI_ASSIGN(restored_given_, saved_count(state, "given"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  // Takes the next element of the input, and finds how often it is given.
  Result<bool> pull() {
    before_.clear();
    input_->save(before_);
    const Result<bool> more = input_->next(held_);
    if (is_final(more.status()) || (more.ok() && !*more)) return more;
    times_ = given_ = 0;
    const int64_t number = read_++;
    const int64_t given = std::exchange(restored_given_, 0);
    TUTTI_TRY(more);
    const void *const label = held_.components[column_.component()].data();
    double factor = 0;
    const auto look_up = [&](int64_t known) {
      factor = factors_[static_cast<size_t>(known)];
      return true;
    };
    if (column_.read(label, 1, look_up) < 1) {
      return in_element(base::out_of_range("resample: ", column_.describe(name_of_row(held_.lineage, 0, false), label),
                                           "; ", column_.expected()),
                        held_.lineage);
    }
    const base::PhiloxWords words = key_.words(static_cast<uint64_t>(number), 0);
    const double whole = std::floor(factor);
    const bool one_more = base::uniform_double(words[0], words[1]) < factor - whole;
    times_ = static_cast<int64_t>(whole) + (one_more ? 1 : 0);
    given_ = std::min(given, times_);
    return true;
  }

  std::unique_ptr<Stage> input_;
  const ClassColumn &column_;           // the dataset's,
  const std::vector<double> &factors_;  // as these
  const RandomKey key_;
  const base::Ref<base::CancelToken> cancel_;
  const int64_t epoch_;
  Element held_;
  State before_;          // of the input, before the element held
  int64_t times_ = 0;     // how often the element held is given in all,
  int64_t given_ = 0;     // and how often it was
  int64_t read_ = 0;      // elements of the input
  int64_t position_ = 0;  // elements given out
  int64_t restored_given_ = 0;
};

class ResampleDataset : public Dataset {
 public:
  ResampleDataset(const DatasetRef &input, ClassColumn column, std::vector<double> factors, std::optional<int64_t> seed)
      : Dataset("resample", input->spec(),
                input->cardinality().is_exact() && input->cardinality().value() > 0 ? Cardinality::unknown()
                                                                                    : input->cardinality(),
                {input}),
        column_(std::move(column)),
        factors_(std::move(factors)),
        seed_(seed) {
    ++shuffle_depth_;
  }

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    const RandomKey key = RandomKey::of(static_cast<uint64_t>(seed_.value_or(context.seed)),
                                        static_cast<uint64_t>(shuffle_depth()), static_cast<uint64_t>(context.epoch));
    return std::unique_ptr<Stage>(std::make_unique<ResampleStage>(std::move(input), column_, factors_, key, context));
  }

 private:
  const ClassColumn column_;
  const std::vector<double> factors_;
  const std::optional<int64_t> seed_;
};

double sum_of(const std::vector<double> &values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum;
}

// How often elements of each class are given on average.
Result<std::vector<double>> factors_of(const ResampleParameters &parameters) {
  constexpr double kMostTimes = 1e6;
  const std::vector<double> &initial = parameters.initial;
  const size_t classes = initial.size();
  std::vector<double> target = parameters.target;
  if (target.empty()) target.assign(classes, 1.0);
  if (target.size() != classes) {
    return base::invalid_argument("target: expected as many numbers as initial has, ", classes, ", got ",
                                  target.size());
  }
  const double all = sum_of(initial);
  const double wanted = sum_of(target);
  if (!(all > 0) || !(wanted > 0)) return base::invalid_argument("initial and target: expected a number above 0");
  std::vector<double> factors(classes, 0.0);
  for (size_t i = 0; i < classes; ++i) {
    if (target[i] == 0) continue;
    if (initial[i] == 0)
      return base::invalid_argument("class ", i, " never occurs, so it cannot be made more frequent");
    factors[i] = (target[i] / wanted) / (initial[i] / all);
  }
  const double largest = *std::max_element(factors.begin(), factors.end());
  if (largest > kMostTimes && parameters.repetition) {
    return base::invalid_argument("an element would appear ", largest, " times; expected at most ", kMostTimes);
  }
  if (!parameters.repetition) {
    for (double &factor : factors)
      factor /= largest;
  }
  return factors;
}

}  // namespace

Result<DatasetRef> apply_resample(const DatasetRef &input, const ResampleParameters &parameters, TransformArguments &) {
  if (input->spec().is_batched()) {
    return base::invalid_argument("elements are batches of ", input->spec().batch_size,
                                  " rows; put it before the batch");
  }
  TUTTI_ASSIGN(ClassColumn column,
               ClassColumn::find(input->spec(), parameters.component, static_cast<int64_t>(parameters.initial.size())));
  TUTTI_ASSIGN(std::vector<double> factors, factors_of(parameters));
  return DatasetRef(base::make_ref<ResampleDataset>(input, std::move(column), std::move(factors), parameters.seed));
}

}  // namespace tutti::impl::data

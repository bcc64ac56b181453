// SPDX-License-Identifier: Apache-2.0
//
// Batches of elements of similar length, so that little is padded (Khomenko et al., 2016, arXiv:1708.05604). A batch is
// given out when its bucket is full; at the end those that are not, the shortest first. So the walk is a function of
// the input's elements.
//
// What waits in a bucket are always the last elements that fell into it. So a state is: the input's state from before
// the oldest of them, how many elements were read since, and how many wait in each bucket; a restored walk reads them
// again.
#include <algorithm>
#include <deque>
#include <utility>

#include "data/dataset/batch_stage.h"
#include "data/element/joined_elements.h"
#include "data/transform_parameters.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

// Input states are kept from this many elements apart, and so many of them at most.
constexpr int64_t kLeastBucketSnapshotDistance = 64;
constexpr size_t kMostSnapshots = 64;

// Which element goes where, and what a bucket's batch is.
struct BucketPlan {
  size_t component = 0;
  std::vector<int64_t> boundaries;
  std::vector<int64_t> batch_sizes;  // one per bucket
  bool drop_remainder = false;
  bool pad_to_boundary = false;
  Padding padding;
  // For each bucket the extents that its rows are padded to; empty when those of the padding count.
  std::vector<std::vector<std::vector<int64_t>>> extents;

  int64_t length_of(const Element &element) const {
    const Tensor &tensor = element.components[component];
    return tensor.rank() == 0 ? static_cast<int64_t>(tensor::bytes_at(tensor, 0).size()) : tensor.rows();
  }
  size_t bucket_of(const Element &element) const {
    const auto bound = std::lower_bound(boundaries.begin(), boundaries.end(), length_of(element));
    return static_cast<size_t>(bound - boundaries.begin());
  }
  Status join(size_t bucket, std::span<const Element> elements, Element &batch) const {
    return padding.join("bucket_by_length", elements, batch, extents.empty() ? nullptr : &extents[bucket]);
  }
};

class BucketStage : public Stage {
 public:
  BucketStage(std::unique_ptr<Stage> input, const BucketPlan &plan, const IteratorContext &context)
      : input_(std::move(input)),
        plan_(plan),
        cancel_(context.cancel),
        epoch_(context.epoch),
        buckets_(plan.batch_sizes.size()),
        wanted_(plan.batch_sizes.size()) {}

  Result<bool> next(Element &batch) override {
    while (read_ < resume_)
      TUTTI_TRY(read_again());
    while (!ended_) {
      Element element;
      TUTTI_ASSIGN(const bool more, pull(element));
      if (!more) break;
      const size_t bucket = plan_.bucket_of(element);
      TUTTI_TRY(add(bucket, std::move(element)));
      if (static_cast<int64_t>(buckets_[bucket].size()) == plan_.batch_sizes[bucket]) return give_out(bucket, batch);
      TUTTI_TRY(base::check(cancel_.get()));
    }
    for (size_t bucket = 0; bucket < buckets_.size() && !plan_.drop_remainder; ++bucket) {
      if (!buckets_[bucket].empty()) return give_out(bucket, batch);
    }
    return false;
  }
  void save(State &state) const override;
  Status restore(const JsonReader &state) override;

 private:
  struct Waiting {
    Element element;
    int64_t position;
  };
  // A state of the input before it gave the element at `position`.
  struct Snapshot {
    int64_t position;
    State state;
  };

  Result<bool> pull(Element &element) {
    take_snapshot();
    const Result<bool> more = input_->next(element);
    if (more.ok() && !*more) ended_ = true;
    if (!is_final(more.status()) && !ended_) ++read_;
    return more;
  }
  Status add(size_t bucket, Element element) {
    if (plan_.pad_to_boundary && bucket == plan_.boundaries.size()) {
      return in_element(
          base::out_of_range("bucket_by_length: element ", element.lineage.index, " has length ",
                             plan_.length_of(element), ", longer than the last boundary ", plan_.boundaries.back()),
          element.lineage);
    }
    buckets_[bucket].push_back({std::move(element), read_ - 1});
    return Status();
  }
  Result<bool> give_out(size_t bucket, Element &batch) {
    elements_.clear();
    for (Waiting &waiting : buckets_[bucket])
      elements_.push_back(std::move(waiting.element));
    buckets_[bucket].clear();
    batch.lineage = {epoch_, position_, file_of(elements_)};
    position_ += static_cast<int64_t>(elements_.size());
    const Status status = plan_.join(bucket, elements_, batch);
    elements_.clear();
    TUTTI_TRY(status);
    return true;
  }
  // What waited when the state was saved is the last elements of each bucket.
  Status read_again() {
    Element element;
    const Result<bool> more = pull(element);
    if (is_final(more.status())) return more.status();
    if (ended_) return base::data_loss("bucket_by_length: the input ends before element ", resume_);
    if (more.ok()) {
      const size_t bucket = plan_.bucket_of(element);
      std::deque<Waiting> &waiting = buckets_[bucket];
      waiting.push_back({std::move(element), read_ - 1});
      if (static_cast<int64_t>(waiting.size()) > wanted_[bucket]) waiting.pop_front();
    }
    if (read_ == resume_) ended_ = was_ended_;
    return base::check(cancel_.get());
  }
  void take_snapshot() {
    if (!snapshots_.empty() && read_ < snapshots_.back().position + kLeastBucketSnapshotDistance) return;
    int64_t oldest = read_;
    for (const std::deque<Waiting> &bucket : buckets_) {
      if (!bucket.empty()) oldest = std::min(oldest, bucket.front().position);
    }
    if (read_ < resume_) oldest = 0;  // who waits is not known yet
    while (snapshots_.size() > 1 && snapshots_[1].position <= oldest)
      snapshots_.pop_front();
    if (snapshots_.size() == kMostSnapshots) {
      for (size_t i = 1; i < snapshots_.size(); ++i)
        snapshots_.erase(snapshots_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    snapshots_.push_back({read_, {}});
    input_->save(snapshots_.back().state);
  }

  std::unique_ptr<Stage> input_;
  const BucketPlan &plan_;  // the dataset's
  const base::Ref<base::CancelToken> cancel_;
  const int64_t epoch_;
  std::vector<std::deque<Waiting>> buckets_;
  std::deque<Snapshot> snapshots_;  // the first is from before the oldest element that waits
  std::vector<Element> elements_;
  int64_t read_ = 0;      // elements of the input
  int64_t position_ = 0;  // rows given out
  bool ended_ = false;

  // Of a restored walk:
  std::vector<int64_t> wanted_;  // how many waited in each bucket
  int64_t resume_ = 0;           // how many elements had been read
  bool was_ended_ = false;
};

void BucketStage::save(State &state) const {
  const bool is_reading_again = read_ < resume_;
  state.open("bucket_by_length");
  state.number("position", position_);
  state.number("read", std::max(read_, resume_));
  state.number("ended", (is_reading_again ? was_ended_ : ended_) ? 1 : 0);
  state.key("waiting");
  state.open_list();
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    state.open("bucket");
    state.number("count", is_reading_again ? wanted_[bucket] : static_cast<int64_t>(buckets_[bucket].size()));
    state.close();
  }
  state.close();
  state.number("input_position", snapshots_.empty() ? read_ : snapshots_.front().position);
  state.key("input");
  if (snapshots_.empty()) {
    input_->save(state);
  } else {
    state.append(snapshots_.front().state);
  }
  state.close();
}

Status BucketStage::restore(const JsonReader &state) {
  TUTTI_TRY(expect_kind(state, "bucket_by_length"));
  TUTTI_ASSIGN(position_, saved_count(state, "position"));
  TUTTI_ASSIGN(resume_, saved_count(state, "read"));
  TUTTI_ASSIGN(const int64_t ended, saved_count(state, "ended", 0, 1));
  TUTTI_ASSIGN(read_, saved_count(state, "input_position", 0, resume_));
  TUTTI_ASSIGN(const JsonReader list, state.get("waiting"));
  TUTTI_ASSIGN(const std::vector<JsonReader> waiting, list.elements());
  if (waiting.size() != buckets_.size()) {
    return base::invalid_argument(list.path(), ": expected ", buckets_.size(), " buckets, got ", waiting.size());
  }
  for (size_t bucket = 0; bucket < waiting.size(); ++bucket) {
    const int64_t most = std::min(plan_.batch_sizes[bucket] - 1, resume_ - read_);
    TUTTI_ASSIGN(wanted_[bucket], saved_count(waiting[bucket], "count", 0, most));
  }
  was_ended_ = ended == 1;
  ended_ = was_ended_ && read_ == resume_;
  TUTTI_ASSIGN(const JsonReader input, state.get("input"));
  TUTTI_TRY(input_->restore(input));
  snapshots_.push_back({read_, {}});
  input_->save(snapshots_.back().state);
  return Status();
}

class BucketDataset : public Dataset {
 public:
  BucketDataset(const DatasetRef &input, ElementSpec spec, Cardinality cardinality, BucketPlan plan)
      : Dataset("bucket_by_length", std::move(spec), cardinality, {input}), plan_(std::move(plan)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<BucketStage>(std::move(input), plan_, context));
  }

 private:
  const BucketPlan plan_;
};

// Each bucket's rows as long as its boundary: along the first axis of every component that does not know its length.
Status plan_extents(const ElementSpec &spec, BucketPlan &plan) {
  const graph::Dims &dims = spec.components[plan.component].dims;
  if (dims.empty() || dims[0].is_constant()) {
    return base::invalid_argument("pad_to_boundary needs a component whose first axis is unknown, got ",
                                  spec.components[plan.component].to_string());
  }
  for (size_t bucket = 0; bucket < plan.boundaries.size(); ++bucket) {
    plan.extents.push_back(plan.padding.extents());
    for (size_t i = 0; i < spec.components.size(); ++i) {
      const graph::Dims &others = spec.components[i].dims;
      if (!others.empty() && !others[0].is_constant()) plan.extents[bucket][i][0] = plan.boundaries[bucket];
    }
  }
  return Status();
}

Status check_component(const ElementSpec &spec, size_t index) {
  const ComponentSpec &component = spec.components[index];
  if (component.dims.empty() && component.dtype != tensor::DType::bytes) {
    return base::invalid_argument("component '", component.name, "' is a scalar without a length, ",
                                  component.to_string());
  }
  return Status();
}

Result<BucketPlan> plan_buckets(const ElementSpec &spec, const BucketByLengthParameters &parameters) {
  BucketPlan plan;
  TUTTI_ASSIGN(plan.component, find_component(spec, parameters.component));
  TUTTI_TRY(check_component(spec, plan.component));
  plan.boundaries = parameters.boundaries;
  for (size_t i = 0; i < plan.boundaries.size(); ++i) {
    if (plan.boundaries[i] > (i == 0 ? 0 : plan.boundaries[i - 1])) continue;
    return base::invalid_argument("boundaries: expected increasing lengths above 0, got ", plan.boundaries[i],
                                  " at index ", i);
  }
  if (plan.boundaries.empty()) return base::invalid_argument("boundaries: expected at least one");
  const size_t buckets = plan.boundaries.size() + 1;
  plan.batch_sizes = parameters.batch_sizes;
  if (plan.batch_sizes.size() == 1) plan.batch_sizes.assign(buckets, parameters.batch_sizes[0]);
  if (plan.batch_sizes.size() != buckets) {
    return base::invalid_argument("batch_sizes: expected 1 or ", buckets, " (one more than boundaries), got ",
                                  parameters.batch_sizes.size());
  }
  for (const int64_t size : plan.batch_sizes) {
    if (size < 1) return base::invalid_argument("batch_sizes: expected numbers of at least 1, got ", size);
  }
  plan.drop_remainder = parameters.drop_remainder;
  plan.pad_to_boundary = parameters.pad_to_boundary;
  TUTTI_ASSIGN(plan.padding, Padding::make(spec, parameters.padding, {}));
  if (plan.pad_to_boundary) TUTTI_TRY(plan_extents(spec, plan));
  return plan;
}

}  // namespace

Result<DatasetRef> apply_bucket_by_length(const DatasetRef &input, const BucketByLengthParameters &parameters,
                                          TransformArguments &) {
  if (input->spec().is_batched()) {
    return base::invalid_argument("elements are batches of ", input->spec().batch_size,
                                  " rows already; expected single examples");
  }
  TUTTI_ASSIGN(BucketPlan plan, plan_buckets(input->spec(), parameters));
  const int64_t largest = *std::max_element(plan.batch_sizes.begin(), plan.batch_sizes.end());
  TUTTI_ASSIGN(ElementSpec spec, batch_spec(input->spec(), largest));
  spec.exact_batches = false;
  const Cardinality rows = input->cardinality();
  const bool is_none = rows == Cardinality::exactly(0);
  const Cardinality cardinality = is_none || rows.is_infinite() ? rows : Cardinality::unknown();
  return DatasetRef(base::make_ref<BucketDataset>(input, std::move(spec), cardinality, std::move(plan)));
}

}  // namespace tutti::impl::data

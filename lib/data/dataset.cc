// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/thread.h"
#include "data/buffer_budget.h"
#include "data/stage.h"
#include "data/state.h"
#include "data/walk_report.h"
#include "data/worker_process.h"
#include "data/worker_threads.h"

namespace tutti::impl::data {

using base::Json;
using base::Result;
using base::Status;

Dataset::Dataset(std::string kind, ElementSpec spec, Cardinality cardinality, std::vector<DatasetRef> inputs)
    : shuffle_depth_(0),
      kind_(std::move(kind)),
      spec_(std::move(spec)),
      cardinality_(cardinality),
      inputs_(std::move(inputs)) {
  for (const DatasetRef &input : inputs_)
    shuffle_depth_ = std::max(shuffle_depth_, input->shuffle_depth());
}

Result<std::unique_ptr<RandomAccess>> Dataset::random_access(const IteratorContext &, Access) const {
  return std::unique_ptr<RandomAccess>();
}

Result<std::unique_ptr<Stage>> Dataset::walk(const IteratorContext &context) const {
  Result<std::unique_ptr<Stage>> stage = open(context);
  if (!stage.ok()) return in_stage(stage.status(), context.report.get(), *this);
  return context.report == nullptr ? stage.take() : counted(context.report, *this, stage.take());
}

Result<std::unique_ptr<Iterator>> Dataset::make_iterator(IteratorContext context) const {
  TUTTI_TRY(base::check_not_forked());
  context.cancel = base::CancelToken::create_child(std::move(context.cancel));
  context.consumer = std::make_shared<ConsumerThread>();
  context.workers = std::make_shared<WorkerThreads>(context.threads);
  context.processes = std::make_shared<WorkerProcesses>();
  context.buffers = std::make_shared<BufferBudget>(0);
  const DatasetRef self = DatasetRef::share(const_cast<Dataset *>(this));
  context.report = std::make_shared<WalkReport>(self);
  TUTTI_ASSIGN(std::unique_ptr<Stage> stage, walk(context));
  return std::make_unique<Iterator>(self, std::move(context), std::move(stage));
}

// What next() will answer, and the state before it.
struct Iterator::Peeked {
  Element element;
  Result<bool> more = false;
  State before;
};

Iterator::Iterator(DatasetRef dataset, IteratorContext context, std::unique_ptr<Stage> stage)
    : dataset_(std::move(dataset)),
      context_(std::move(context)),
      stage_(std::move(stage)),
      peeked_(std::make_unique<Peeked>()) {}

Iterator::~Iterator() = default;

Result<bool> Iterator::next(Element &element) {
  if (!has_peeked_) TUTTI_TRY(context_.cancel->check());
  return next_if_ready(element);
}

Result<bool> Iterator::next_if_ready(Element &element) {
  if (has_peeked_) return give_out_peeked(element);
  started_ = true;
  context_.consumer->mark();
  return stage_->next(element);
}

Result<bool> Iterator::give_out_peeked(Element &element) {
  has_peeked_ = false;
  // What the caller had is kept: the next element may go into its memory.
  std::swap(element, peeked_->element);
  return std::exchange(peeked_->more, false);
}

template <typename Next>
Result<bool> Iterator::peek_by(Next next, Element &element) {
  if (!has_peeked_) {
    peeked_->before.clear();
    stage_->save(peeked_->before);
    peeked_->more = next(peeked_->element);
    if (base::is_interrupt(peeked_->more.status())) return std::exchange(peeked_->more, false);
    has_peeked_ = true;
  }
  element = peeked_->element;
  return peeked_->more;
}

Result<bool> Iterator::peek(Element &element) {
  return peek_by([this](Element &to) { return next(to); }, element);
}

Result<bool> Iterator::peek_if_ready(Element &element) {
  return peek_by([this](Element &to) { return next_if_ready(to); }, element);
}

Json Iterator::report() const { return context_.report->to_json(); }

Json Iterator::save() const {
  if (has_peeked_) return peeked_->before.to_json();
  State state;
  stage_->save(state);
  return state.to_json();
}

Status Iterator::restore(const Json &state) {
  if (started_) return base::failed_precondition("an iterator can be restored only before its first element is taken");
  started_ = true;
  context_.consumer->mark();
  const Status status = stage_->restore(base::JsonReader(state, "iterator"));
  return status.ok() ? status : status.wrap("the iterator state does not fit this dataset");
}

Result<std::vector<Element>> peek(const Dataset &dataset, int64_t count, const IteratorContext &context) {
  TUTTI_ASSIGN(const std::unique_ptr<Iterator> iterator, dataset.make_iterator(context));
  std::vector<Element> elements;
  for (int64_t i = 0; i < count; ++i) {
    Element element;
    TUTTI_ASSIGN(const bool more, iterator->next(element));
    if (!more) break;
    elements.push_back(std::move(element));
  }
  return elements;
}

bool runs_own_code_only(const Dataset &dataset) {
  // What lies before a prefetch runs on other threads.
  static constexpr std::string_view kinds[] = {"batch",
                                               "bucket_by_length",
                                               "cache",
                                               "class_weights",
                                               "concatenate",
                                               "enumerate",
                                               "feed",
                                               "filter",
                                               "ignore_errors",
                                               "interleave",
                                               "map",
                                               "options",
                                               "padded_batch",
                                               "parse_example",
                                               "parse_sequence_example",
                                               "range",
                                               "rebatch",
                                               "repeat",
                                               "resample",
                                               "sample_from",
                                               "scan",
                                               "select",
                                               "shard",
                                               "shuffle",
                                               "skip",
                                               "slices",
                                               "take",
                                               "take_while",
                                               "tensors",
                                               "unbatch",
                                               "unique",
                                               "window",
                                               "zip"};
  if (dataset.kind() == "prefetch") return true;
  return std::ranges::find(kinds, dataset.kind()) != std::end(kinds) &&
         std::ranges::all_of(dataset.inputs(), [](const DatasetRef &input) { return runs_own_code_only(*input); });
}

}  // namespace tutti::impl::data

// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/dataset.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/thread.h"
#include "data/dataset/interrupt_check.h"
#include "data/dataset/stage.h"
#include "data/dataset/state.h"
#include "data/dataset/walk_report.h"
#include "data/process/worker_process.h"
#include "data/thread/buffer_budget.h"
#include "data/thread/worker_threads.h"

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

Result<DatasetRef> Dataset::with_files(const std::vector<int64_t> &) const {
  return base::internal_error("a '", kind_, "' has no list of files");
}

Result<std::unique_ptr<Stage>> Dataset::walk(const IteratorContext &context) const {
  Result<std::unique_ptr<Stage>> stage = open(context);
  if (!stage.ok()) return in_stage(stage.status(), context.report.get(), *this);
  return context.report == nullptr ? stage.take() : counted(context, *this, stage.take());
}

Result<std::unique_ptr<Iterator>> Dataset::make_iterator(IteratorContext context) const {
  TUTTI_TRY(base::check_not_forked());
  context.cancel = base::CancelToken::create_child(std::move(context.cancel));
  context.draw = std::make_shared<CurrentDraw>();
  context.workers = std::make_shared<WorkerThreads>(context.threads);
  context.processes = std::make_shared<WorkerProcesses>();
  context.buffers = std::make_shared<BufferBudget>(0);
  const DatasetRef self = DatasetRef::share(const_cast<Dataset *>(this));
  context.report = std::make_shared<WalkReport>(self);
  TUTTI_ASSIGN(std::unique_ptr<Stage> stage, walk(context));
  return std::make_unique<Iterator>(self, std::move(context), std::move(stage));
}

// What next() will answer, in order, each with the state before it. A ring, which grows to the longest look ahead.
class Iterator::Peeked {
 public:
  struct Answer {
    Element element;
    Result<bool> more = false;
    State before;
    // That is known: an interrupt came since, or an element was passed over.
    bool has_before = false;
  };

  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  // The one behind `index` others, which may be the one that is not there yet.
  Answer &operator[](size_t index) { return answers_[(first_ + index) & (answers_.size() - 1)]; }
  // Behind which there is nothing to look at.
  bool ends() { return count_ > 0 && !(*this)[count_ - 1].more.value_or(false); }
  void make_room(size_t count) {
    if (count <= answers_.size()) return;
    std::rotate(answers_.begin(), answers_.begin() + static_cast<ptrdiff_t>(first_), answers_.end());
    first_ = 0;
    answers_.resize(std::bit_ceil(count));
  }
  void push() { ++count_; }
  void unpush() { --count_; }
  Result<bool> pop(Element &element) {
    Answer &front = answers_[first_];
    first_ = (first_ + 1) & (answers_.size() - 1);
    --count_;
    front.has_before = false;
    // What the caller had is kept: a later element may go into its memory.
    std::swap(element, front.element);
    return std::exchange(front.more, false);
  }

 private:
  std::vector<Answer> answers_{1};  // a power of two of them
  size_t first_ = 0, count_ = 0;
};

Iterator::Iterator(DatasetRef dataset, IteratorContext context, std::unique_ptr<Stage> stage)
    : dataset_(std::move(dataset)),
      context_(std::move(context)),
      stage_(std::move(stage)),
      peeked_(std::make_unique<Peeked>()) {}

Iterator::~Iterator() = default;

Result<bool> Iterator::next(Element &element) {
  if (peeked_->empty()) TUTTI_TRY(context_.cancel->check());
  return next_if_ready(element);
}

Result<bool> Iterator::next_if_ready(Element &element) {
  if (!peeked_->empty()) return peeked_->pop(element);
  Result<bool> more = draw(element);
  if (!base::is_interrupt(more.status())) (*peeked_)[0].has_before = false;
  return more;
}

Result<bool> Iterator::draw(Element &element) {
  started_ = true;
  context_.draw->begin(*context_.cancel);
  return stage_->next(element);
}

template <typename Draw>
Result<bool> Iterator::peek_by(Draw draw, Element &element, size_t ahead) {
  Peeked &peeked = *peeked_;
  while (peeked.count() <= ahead && !peeked.ends()) {
    peeked.make_room(peeked.count() + 1);
    Peeked::Answer &answer = peeked[peeked.count()];
    if (!answer.has_before) {
      answer.before.clear();
      stage_->save(answer.before);
      answer.has_before = true;
    }
    answer.more = draw(answer.element);
    if (base::is_interrupt(answer.more.status())) return std::exchange(answer.more, false);
    peeked.push();
  }
  const Peeked::Answer &answer = peeked[std::min(ahead, peeked.count() - 1)];
  element = answer.element;
  return answer.more;
}

Result<bool> Iterator::peek(Element &element, size_t ahead) {
  const auto checked = [this](Element &to) -> Result<bool> {
    TUTTI_TRY(context_.cancel->check());
    return draw(to);
  };
  return peek_by(checked, element, ahead);
}

Result<bool> Iterator::peek_if_ready(Element &element, size_t ahead) {
  return peek_by([this](Element &to) { return draw(to); }, element, ahead);
}

void Iterator::make_room_ahead(size_t elements) { peeked_->make_room(elements); }

void Iterator::pass_over_peeked() { peeked_->unpush(); }

Json Iterator::report() const { return context_.report->to_json(); }

Json Iterator::save() const {
  if (const Peeked::Answer &first = (*peeked_)[0]; first.has_before) return first.before.to_json();
  State state;
  stage_->save(state);
  return state.to_json();
}

Status Iterator::restore(const Json &state) {
  if (started_) return base::failed_precondition("an iterator can be restored only before its first element is taken");
  started_ = true;
  const Status status = stage_->restore(base::JsonReader(state, "iterator"));
  return status.ok() || base::is_interrupt(status) ? status
                                                   : status.wrap("the iterator state does not fit this dataset");
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
                                               "worker_rows",
                                               "worker_share",
                                               "zip"};
  if (dataset.kind() == "prefetch") return true;
  return std::ranges::find(kinds, dataset.kind()) != std::end(kinds) &&
         std::ranges::all_of(dataset.inputs(), [](const DatasetRef &input) { return runs_own_code_only(*input); });
}

}  // namespace tutti::impl::data

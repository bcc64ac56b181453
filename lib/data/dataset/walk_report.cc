// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/walk_report.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/exceptions.h"
#include "data/dataset/interrupt_check.h"
#include "data/element/bytes_rows.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

// Stages of datasets that a function made, of different names, that a report keeps.
constexpr int64_t kMostMade = 256;

// Times a call, if the counters want it.
class Timed {
 public:
  explicit Timed(StageCounters &counters) : is_timed_(counters.wants_time()) {
    if (!is_timed_) return;
    start_ns_ = base::now_ns();
    if (!counters.has_begun()) counters.mark_begin(start_ns_);
  }
  int64_t elapsed_ns() const { return is_timed_ ? base::now_ns() - start_ns_ : -1; }

 private:
  const bool is_timed_;
  int64_t start_ns_ = 0;
};

class CountedStage : public Stage {
 public:
  CountedStage(const IteratorContext &context, const Dataset &dataset, std::unique_ptr<Stage> stage)
      : report_(context.report),
        check_(context),
        dataset_(dataset),
        stage_(std::move(stage)),
        counters_(report_->counters_of(dataset)) {}

  Result<bool> next(Element &element) override {
    TUTTI_TRY(check_());
    const Timed timed(counters_);
    Result<bool> more = false;
    const Status thrown = whole([&] {
      more = stage_->next(element);
      return Status();
    });
    if (!thrown.ok()) more = thrown;
    const bool is_given = more.ok() && *more;
    const bool has_failed = !more.ok() && !base::is_interrupt(more.status());
    counters_.add_call(is_given || has_failed ? 1 : 0, is_given ? element.size_bytes() : 0, timed.elapsed_ns());
    if (!has_failed) return more;
    counters_.add_failure();
    return named(more.status());
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    done = 0;
    TUTTI_TRY(check_());
    const Timed timed(counters_);
    const Status status = whole([&] { return stage_->next_rows(targets, count, done); });
    int64_t bytes = 0;
    for (const RowTarget &target : targets)
      bytes += target.row_bytes * done;
    counters_.add_call(done, bytes, timed.elapsed_ns());
    if (status.ok() || base::is_interrupt(status)) return status;
    counters_.add_failure();
    return named(status);
  }
  Lineage last_row() const override { return stage_->last_row(); }
  bool next_view(int64_t count, Element &batch) override {
    const Timed timed(counters_);
    const bool any = stage_->next_view(count, batch);
    if (any) counters_.add_call(batch.rows(), batch.size_bytes(), timed.elapsed_ns());
    return any;
  }
  bool gives_texts() const override { return stage_->gives_texts(); }
  Status next_texts(BytesRows &rows, int64_t count, int64_t &done) override {
    done = 0;
    TUTTI_TRY(check_());
    const Timed timed(counters_);
    const int64_t before = rows.bytes();
    const Status status = whole([&] { return stage_->next_texts(rows, count, done); });
    counters_.add_call(done, rows.bytes() - before, timed.elapsed_ns());
    if (status.ok() || base::is_interrupt(status)) return status;
    counters_.add_failure();
    return named(status);
  }
  void save(State &state) const override { stage_->save(state); }
  Status restore(const base::JsonReader &state) override { return stage_->restore(state); }

 private:
  /// A stage that memory ran out in may be in the middle of anything: it gives that error from then on.
  template <typename Body>
  Status whole(Body &&body) {
    if (!broken_.ok()) [[unlikely]]
      return broken_;
    try {
      return body();
    } catch (const std::bad_alloc &) {
      broken_ = base::out_of_memory();
      return broken_;
    }
  }
  Status named(const Status &status) const { return in_stage(status, report_.get(), dataset_); }

  const std::shared_ptr<WalkReport> report_;  // which has the counters that the stages use
  const InterruptCheck check_;
  Status broken_;
  const Dataset &dataset_;
  const std::unique_ptr<Stage> stage_;
  StageCounters &counters_;
};

// Names the errors of an access; else as without.
class NamedAccess : public RandomAccess {
 public:
  NamedAccess(std::shared_ptr<const WalkReport> report, const Dataset &dataset, std::unique_ptr<RandomAccess> base)
      : report_(std::move(report)), dataset_(dataset), base_(std::move(base)) {}

  int64_t size() const override { return base_->size(); }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    return name(base_->gather(positions, targets));
  }
  Status element(int64_t position, Element &element) override { return name(base_->element(position, element)); }
  int64_t lineage(int64_t position) const override { return base_->lineage(position); }
  FileName file(int64_t position) const override { return base_->file(position); }
  bool view(int64_t first, int64_t count, Element &batch) override { return base_->view(first, count, batch); }
  bool lies_in_memory() const override { return base_->lies_in_memory(); }
  void locate(std::span<int64_t> positions, std::span<const std::byte *> rows) override {
    base_->locate(positions, rows);
  }
  void locate_soon(int64_t end) override { base_->locate_soon(end); }
  bool choose(std::span<const size_t> components) override { return base_->choose(components); }
  int64_t rows_at_once() const override { return base_->rows_at_once(); }

 private:
  Status name(Status status) const { return status.ok() ? status : in_stage(status, report_.get(), dataset_); }

  const std::shared_ptr<const WalkReport> report_;
  const Dataset &dataset_;
  const std::unique_ptr<RandomAccess> base_;
};

// Inputs before what draws from them, each once.
void list_stages(const Dataset &last, std::vector<const Dataset *> &stages) {
  if (std::find(stages.begin(), stages.end(), &last) != stages.end()) return;
  for (const DatasetRef &input : last.inputs())
    list_stages(*input, stages);
  stages.push_back(&last);
}

}  // namespace

// The datasets that the function of one stage has made: what their walks have counted, together for those that are
// over, and those that are under way.
class MadeDatasets {
 public:
  explicit MadeDatasets(std::string prefix) : prefix_(std::move(prefix)) {}

  // What the names of their stages begin with.
  const std::string &prefix() const { return prefix_; }
  void enter(const WalkReport &walk) {
    const std::lock_guard lock(mutex_);
    walks_.push_back(&walk);
  }
  void leave(const WalkReport &walk) {
    const std::lock_guard lock(mutex_);
    StageTree::add(ended_, walk.tree(), room_);
    walks_.erase(std::find(walks_.begin(), walks_.end(), &walk));
  }
  std::vector<StageTree> trees() const {
    const std::lock_guard lock(mutex_);
    std::vector<StageTree> all = ended_;
    int64_t room = room_;
    for (const WalkReport *walk : walks_)
      StageTree::add(all, walk->tree(), room);
    return all;
  }

 private:
  const std::string prefix_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  int64_t room_ = kMostMade;
  std::vector<StageTree> ended_;
  std::vector<const WalkReport *> walks_;
};

WalkReport::WalkReport(DatasetRef last, Now now) : WalkReport(std::move(last), now, nullptr) {}

WalkReport::WalkReport(DatasetRef last, Now now, std::shared_ptr<MadeDatasets> into)
    : last_(std::move(last)), now_(now), started_ns_(now()), into_(std::move(into)) {
  if (into_ != nullptr) into_->enter(*this);
}

WalkReport::~WalkReport() {
  if (into_ != nullptr) into_->leave(*this);
}

std::shared_ptr<WalkReport> WalkReport::of_made(const Dataset &stage, DatasetRef made) {
  std::shared_ptr<MadeDatasets> into;
  {
    const std::lock_guard lock(mutex_);
    into = entries_[&stage].made;
  }
  if (into == nullptr) {
    const auto fresh = std::make_shared<MadeDatasets>(name_of(stage) + "/");
    const std::lock_guard lock(mutex_);
    std::shared_ptr<MadeDatasets> &entry = entries_[&stage].made;
    if (entry == nullptr) entry = fresh;
    into = entry;
  }
  return std::shared_ptr<WalkReport>(new WalkReport(std::move(made), now_, std::move(into)));
}

StageCounters &WalkReport::counters_of(const Dataset &dataset) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<StageCounters> &counters = entries_[&dataset].counters;
  if (counters == nullptr) counters = std::make_unique<StageCounters>();
  return *counters;
}

WalkReport::Names WalkReport::names() const {
  std::vector<const Dataset *> stages;
  list_stages(*last_, stages);
  std::map<std::string_view, int64_t> counts, numbers;
  for (const Dataset *stage : stages)
    ++counts[stage->kind()];
  Names names;
  for (const Dataset *stage : stages) {
    std::string &name = names[stage];
    if (into_ != nullptr) name = into_->prefix();
    name += stage->kind();
    const int64_t count = counts[stage->kind()];
    if (count > 1) name += base::concat(" #", ++numbers[stage->kind()], " of ", count);
  }
  return names;
}

std::string WalkReport::name_of(const Dataset &dataset) const {
  const Names all = names();
  const auto found = all.find(&dataset);
  return found == all.end() ? dataset.kind() : found->second;
}

StageTree WalkReport::tree() const { return tree(*last_, names()); }

StageTree WalkReport::tree(const Dataset &dataset, const Names &names) const {
  StageTree tree{names.at(&dataset), false, {}, {}};
  std::shared_ptr<const MadeDatasets> made;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(&dataset);
    tree.is_counted = entry != entries_.end() && entry->second.counters != nullptr;
    if (tree.is_counted) tree.sums = entry->second.counters->sums(now_());
    if (entry != entries_.end()) made = entry->second.made;
  }
  for (const DatasetRef &input : dataset.inputs())
    tree.inputs.push_back(this->tree(*input, names));
  if (made == nullptr) return tree;
  for (StageTree &one : made->trees())
    tree.inputs.push_back(std::move(one));
  return tree;
}

std::unique_ptr<Stage> counted(const IteratorContext &context, const Dataset &dataset, std::unique_ptr<Stage> stage) {
  return std::make_unique<CountedStage>(context, dataset, std::move(stage));
}

std::unique_ptr<RandomAccess> named(const IteratorContext &context, const Dataset &dataset,
                                    std::unique_ptr<RandomAccess> access) {
  if (context.report == nullptr) return access;
  return std::make_unique<NamedAccess>(context.report, dataset, std::move(access));
}

Status in_stage(const Status &status, const WalkReport *report, const Dataset &dataset) {
  if (status.ok() || base::is_interrupt(status) || report == nullptr) return status;
  if (status.error()->find_detail("stage") != nullptr) return status;
  return status.with_detail("stage", report->name_of(dataset));
}

}  // namespace tutti::impl::data

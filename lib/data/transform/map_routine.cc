// SPDX-License-Identifier: Apache-2.0
#include "data/transform/map_routine.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/call/graph_calls.h"
#include "data/transform/row_flow.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// Elements that are read before any of them is run.
constexpr int64_t kMostElementsAtOnce = 256;
// Rows of static shape that lie in memory between input and graph.
constexpr int64_t kScratchBytes = int64_t{4} << 20;
constexpr int64_t kFewestRows = 16;
constexpr int64_t kMostRows = 4096;

int64_t rows_for_scratch(const ElementSpec &spec) {
  int64_t bytes = 1;
  for (const int64_t one : row_bytes(spec))
    bytes += one;
  return std::clamp(kScratchBytes / bytes, kFewestRows, kMostRows);
}

class RoutineAccess : public RandomAccess {
 public:
  RoutineAccess(std::unique_ptr<RandomAccess> input, const GraphTarget &target, const ElementSpec &spec,
                const LoopThreads &threads, int64_t epoch)
      : input_(std::move(input)), epoch_(epoch), one_(target), calls_(target, threads) {
    if (!spec.is_static()) return;
    flow_ = std::make_unique<RowFlow>(*target.plan, spec);
    rows_at_once_ = rows_for_scratch(spec);
    components_ = spec.components.size();
  }

  int64_t size() const override { return input_->size(); }
  int64_t lineage(int64_t position) const override { return input_->lineage(position); }
  FileName file(int64_t position) const override { return input_->file(position); }
  Status element(int64_t position, Element &element) override {
    source_.lineage = input_->lineage_in(epoch_, position);
    TUTTI_TRY(input_->element(position, source_));
    const Status status = one_.map(source_, element);
    source_.components.clear();
    return status;
  }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    Status worst;
    const int64_t step = rows_at_once();
    const auto count = static_cast<int64_t>(positions.size());
    for (int64_t first = 0; first < count; first += step) {
      const auto part =
          positions.subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(step, count - first)));
      Status status = flow_ != nullptr ? gather_rows(part, targets, first)
                                       : gather_elements(part, from_row(targets, first, moved_));
      if (base::is_interrupt(status)) return status;
      keep_worst(worst, std::move(status));
    }
    return worst;
  }
  int64_t rows_at_once() const override { return flow_ != nullptr ? rows_at_once_ : kMostElementsAtOnce; }

 private:
  Status gather_rows(std::span<int64_t> positions, std::span<const RowTarget> targets, int64_t first) {
    const auto rows = static_cast<int64_t>(positions.size());
    wanted_.assign(positions.begin(), positions.end());
    const auto file = [this](int64_t row) { return input_->file(wanted_[static_cast<size_t>(row)]); };
    if (input_->lies_in_memory()) {
      located_.resize(positions.size() * components_);
      const int64_t next_end = positions.back() + 1 + rows;
      input_->locate(positions, located_);
      return calls_.run_located(located_, from_row(targets, first, moved_), {epoch_, positions, file},
                                [&] { input_->locate_soon(next_end); });
    }
    indices_.clear();
    for (const int64_t position : positions)
      indices_.push_back(input_->lineage(position));
    TUTTI_TRY(flow_->reserve(rows));
    TUTTI_TRY(input_->gather(positions, flow_->into(targets, first)));
    return calls_.run_rows(flow_->graph_inputs(), flow_->graph_results(targets, first), {epoch_, indices_, file});
  }

  // What fails is left without components; the other elements are run all the same.
  Status gather_elements(std::span<const int64_t> positions, std::span<const RowTarget> targets) {
    Status worst;
    elements_.resize(positions.size());
    for (size_t i = 0; i < positions.size(); ++i) {
      elements_[i].lineage = input_->lineage_in(epoch_, positions[i]);
      Status status = input_->element(positions[i], elements_[i]);
      if (!status.ok()) elements_[i].components.clear();
      if (base::is_interrupt(status)) return status;
      keep_worst(worst, std::move(status));
    }
    keep_worst(worst, calls_.run_elements(elements_, targets));
    for (Element &element : elements_)
      element.components.clear();  // lets go of buffers that a pool waits for
    return worst;
  }

  std::unique_ptr<RandomAccess> input_;
  const int64_t epoch_;
  GraphCalls one_;
  RoutineCalls calls_;
  std::unique_ptr<RowFlow> flow_;  // for inputs of static shape
  int64_t rows_at_once_ = 1;
  size_t components_ = 0;
  std::vector<int64_t> wanted_, indices_;  // of the rows under way: positions, and what these came from
  std::vector<const std::byte *> located_;
  std::vector<Element> elements_;
  std::vector<RowTarget> moved_;
  Element source_;
};

// Elements that come one by one. Those that are read for a call when an interrupt comes stay, and the next call goes
// on.
class RoutineStage : public Stage {
 public:
  RoutineStage(std::unique_ptr<Stage> input, const GraphTarget &target, const LoopThreads &threads)
      : input_(std::move(input)), one_(target), calls_(target, threads) {}

  Result<bool> next(Element &element) override {
    TUTTI_ASSIGN(const bool more, input_->next(source_));
    if (!more) return false;
    const Status status = one_.map(source_, element);
    source_.components.clear();
    return status.ok() ? Result<bool>(true) : status;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    for (done = 0; done < count;) {
      const int64_t wanted = std::min(kMostElementsAtOnce, count - done);
      Status status = read(wanted);
      if (base::is_interrupt(status)) return status;
      const int64_t read_now = std::exchange(read_, 0);
      if (status.ok()) {
        status =
            calls_.run_elements({elements_.data(), static_cast<size_t>(read_now)}, from_row(targets, done, moved_));
      }
      for (Element &element : elements_)
        element.components.clear();
      if (read_now > 0) last_row_ = elements_[static_cast<size_t>(read_now - 1)].lineage;
      done += read_now;
      TUTTI_TRY(status);
      if (read_now < wanted) break;
    }
    return Status();
  }
  Lineage last_row() const override { return last_row_; }
  void save(State &state) const override {
    state.open("map");
    state.key("input");
    if (read_ == 0) {
      input_->save(state);
    } else {
      state.append(before_);
    }
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "map"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  // Reads until there are so many elements, or no more come; a failing one counts.
  Status read(int64_t wanted) {
    if (read_ == 0) {
      before_.clear();
      input_->save(before_);
    }
    if (static_cast<int64_t>(elements_.size()) < wanted) elements_.resize(static_cast<size_t>(wanted));
    while (read_ < wanted) {
      const Result<bool> more = input_->next(elements_[static_cast<size_t>(read_)]);
      if (more.ok() && !*more) break;
      if (!base::is_interrupt(more.status())) ++read_;
      TUTTI_TRY(more);
    }
    return Status();
  }

  std::unique_ptr<Stage> input_;
  GraphCalls one_;
  RoutineCalls calls_;
  std::vector<Element> elements_;
  Lineage last_row_;
  int64_t read_ = 0;  // elements of a call that is not done
  State before_;      // of the input, before them
  std::vector<RowTarget> moved_;
  Element source_;
};

}  // namespace

std::unique_ptr<Stage> routine_stage(std::unique_ptr<Stage> input, const GraphTarget &target,
                                     const LoopThreads &threads) {
  return std::make_unique<RoutineStage>(std::move(input), target, threads);
}

std::unique_ptr<RandomAccess> routine_access(std::unique_ptr<RandomAccess> input, const GraphTarget &target,
                                             const ElementSpec &spec, const LoopThreads &threads, int64_t epoch) {
  return std::make_unique<RoutineAccess>(std::move(input), target, spec, threads, epoch);
}

}  // namespace tutti::impl::data

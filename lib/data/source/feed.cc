// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/exceptions.h"
#include "data/dataset/stage.h"
#include "data/dataset/walk_report.h"
#include "data/pipeline/sources.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::Deadline;
using base::JsonReader;
using base::Ref;
using base::Result;
using base::Status;

namespace {

// What host and walk share. Lives as long as either.
class Channel : public base::Object {
 public:
  Channel(ElementSpec spec, int64_t capacity) : spec_(std::move(spec)), capacity_(static_cast<size_t>(capacity)) {}

  const ElementSpec &spec() const { return spec_; }

  Status push(Element element, const CancelToken *cancel, Deadline deadline) {
    TUTTI_TRY(check_element(element, spec_, "feed"));
    if (spec_.is_batched()) TUTTI_TRY(check_rows(element));
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return waiting_.size() < capacity_ || ended_ || walk_ == Walk::gone; };
    TUTTI_TRY(base::wait_until(room_, lock, cancel, deadline, ready));
    if (ended_) return base::failed_precondition("feed: push after the end of the feed");
    if (walk_ == Walk::gone) return base::failed_precondition("feed: its reader is gone");
    element.lineage = {0, resume_position_ + pushed_};
    waiting_.push_back(std::move(element));
    ++pushed_;
    lock.unlock();
    arrived_.notify_one();
    return Status();
  }

  Status close(Status failure) {
    {
      std::lock_guard lock(mutex_);
      if (ended_) return base::failed_precondition("feed: it has already ended");
      ended_ = true;
      failure_ = std::move(failure);
    }
    arrived_.notify_all();
    room_.notify_all();
    return Status();
  }

  // The walk begins: only one ever does, but for one that was refused what it should go on with.
  Status attach() {
    std::lock_guard lock(mutex_);
    if (walk_ != Walk::none && walk_ != Walk::refused) {
      return base::failed_precondition(
          "feed: its elements can be read only once; put cache before repeat to read them again");
    }
    walk_ = Walk::attached;
    return Status();
  }
  Status resume_at(int64_t position) {
    std::lock_guard lock(mutex_);
    if (pushed_ > 0 && position != 0) {
      walk_ = Walk::refused;
      return base::failed_precondition("feed: the saved iterator resumes at element ", position, ", but ", pushed_,
                                       " elements were pushed before; start pushing at the resume position");
    }
    resume_position_ = position;
    return Status();
  }
  // `refused`: the walk was; another may have begun in its place.
  void detach(bool refused) {
    std::deque<Element> dropped;
    {
      std::lock_guard lock(mutex_);
      if (refused && walk_ != Walk::refused) return;
      walk_ = Walk::gone;
      dropped.swap(waiting_);
    }
    room_.notify_all();
    started_.notify_all();
  }

  Result<bool> take(Element &element, const CancelToken *cancel, StageCounters *counters) {
    std::unique_lock lock(mutex_);
    if (counters != nullptr) counters->add_depth(static_cast<int64_t>(waiting_.size()));
    if (walk_ == Walk::attached) {
      walk_ = Walk::started;
      started_.notify_all();
    }
    const auto ready = [&] { return !waiting_.empty() || ended_; };
    if (!ready()) {
      const int64_t begin = base::now_ns();
      const Status status = base::wait_until(arrived_, lock, cancel, Deadline::never(), ready);
      if (counters != nullptr) counters->add_arrival(base::now_ns() - begin);
      TUTTI_TRY(status);
    }
    if (waiting_.empty()) {
      if (failure_.ok()) return false;
      return failure_.wrap("feed: the host reported a failure");
    }
    std::swap(element, waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    room_.notify_one();
    return true;
  }

  Status wait_started(const CancelToken *cancel, Deadline deadline) {
    std::unique_lock lock(mutex_);
    return base::wait_until(started_, lock, cancel, deadline,
                            [&] { return walk_ == Walk::started || walk_ == Walk::gone; });
  }

  int64_t resume_position() const { return locked(resume_position_); }
  int64_t pushed() const { return locked(pushed_); }
  int64_t waiting() const {
    std::lock_guard lock(mutex_);
    return static_cast<int64_t>(waiting_.size());
  }

 private:
  enum class Walk { none, attached, refused, started, gone };

  Status check_rows(const Element &batch) const {
    const int64_t rows = batch.rows();
    if (rows < 1 || rows > spec_.batch_size)
      return base::invalid_argument("feed: a batch of ", rows, " rows, expected 1 to ", spec_.batch_size);
    for (size_t i = 1; i < batch.components.size(); ++i) {
      if (batch.components[i].shape()[0] == rows) continue;
      return base::invalid_argument("feed: component '", spec_.components[i].name, "' has ",
                                    batch.components[i].shape()[0], " rows, '", spec_.components[0].name, "' has ",
                                    rows);
    }
    return Status();
  }

  int64_t locked(const int64_t &value) const {
    std::lock_guard lock(mutex_);
    return value;
  }

  const ElementSpec spec_;
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable arrived_;
  std::condition_variable started_;
  // Guarded by mutex_:
  std::deque<Element> waiting_;
  int64_t pushed_ = 0;
  int64_t resume_position_ = 0;
  bool ended_ = false;
  Status failure_;
  Walk walk_ = Walk::none;
};

class FeedStage : public Stage {
 public:
  FeedStage(Ref<Channel> channel, Ref<CancelToken> cancel, StageCounters *counters, int64_t epoch)
      : channel_(std::move(channel)), cancel_(std::move(cancel)), counters_(counters), epoch_(epoch) {}
  ~FeedStage() override { channel_->detach(refused_); }

  Result<bool> next(Element &element) override {
    if (refused_) return base::failed_precondition("feed: this iterator could not be resumed; create another");
    TUTTI_ASSIGN(const bool more, channel_->take(element, cancel_.get(), counters_));
    if (!more) return false;
    element.lineage = {epoch_, rows_};
    rows_ += channel_->spec().is_batched() ? element.rows() : 1;
    ++position_;
    return true;
  }
  void save(State &state) const override {
    state.open("feed");
    state.number("position", position_);
    if (channel_->spec().is_batched()) state.number("rows", rows_);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "feed"));
    TUTTI_ASSIGN(position_, saved_count(state, "position"));
    rows_ = position_;
    if (channel_->spec().is_batched()) {
      TUTTI_ASSIGN(rows_, saved_count(state, "rows"));
    }
    const Status status = channel_->resume_at(position_);
    refused_ = !status.ok();
    return status;
  }

 private:
  Ref<Channel> channel_;
  Ref<CancelToken> cancel_;
  StageCounters *const counters_;  // null when nobody counts
  int64_t epoch_;
  int64_t position_ = 0;
  int64_t rows_ = 0;  // before it; where elements are single examples, the position
  bool refused_ = false;
};

class FeedDataset : public Dataset {
 public:
  explicit FeedDataset(Ref<Channel> channel)
      : Dataset("feed", channel->spec(), Cardinality::unknown(), {}), channel_(std::move(channel)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_TRY(channel_->attach());
    return std::unique_ptr<Stage>(
        std::make_unique<FeedStage>(channel_, context.cancel, counters_in(context, *this), context.epoch));
  }

 private:
  Ref<Channel> channel_;
};

class ChannelFeed : public Feed {
 public:
  explicit ChannelFeed(Ref<Channel> channel)
      : channel_(std::move(channel)), dataset_(base::make_ref<FeedDataset>(channel_)) {}
  ~ChannelFeed() override {
    // The host is gone without a word: whoever waits for elements must hear it.
    Status why = base::out_of_memory();
    (void)base::without_exceptions([&] {
      why = base::aborted("the feed was released before its end");
      return Status();
    });
    (void)channel_->close(why);
  }

  DatasetRef dataset() override { return dataset_; }
  Status push(Element element, const CancelToken *cancel, Deadline deadline) override {
    return channel_->push(std::move(element), cancel, deadline);
  }
  Status end() override { return channel_->close(Status()); }
  Status fail(Status status) override {
    if (status.ok()) return base::invalid_argument("feed: expected an error to fail with");
    return channel_->close(std::move(status));
  }
  int64_t resume_position() const override { return channel_->resume_position(); }
  Status wait_started(const CancelToken *cancel, Deadline deadline) override {
    return channel_->wait_started(cancel, deadline);
  }
  int64_t pushed() const override { return channel_->pushed(); }
  int64_t waiting() const override { return channel_->waiting(); }

 private:
  Ref<Channel> channel_;
  DatasetRef dataset_;
};

}  // namespace

Result<Ref<Feed>> Feed::create(ElementSpec spec, int64_t capacity) {
  TUTTI_TRY(check(spec));
  if (capacity < 1) return base::invalid_argument("feed: expected a capacity of at least 1, got ", capacity);
  return Ref<Feed>(base::make_ref<ChannelFeed>(base::make_ref<Channel>(std::move(spec), capacity)));
}

}  // namespace tutti::impl::data

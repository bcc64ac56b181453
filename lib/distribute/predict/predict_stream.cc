// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/predict_stream.h"

#include <deque>

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;

class ReadAheadStream : public PredictStream {
 public:
  ReadAheadStream(std::shared_ptr<PredictCalls> starter, std::shared_ptr<const LoadedVersion> version,
                  std::unique_ptr<data::Iterator> iterator, PredictInput input, base::Ref<base::CancelToken> cancel,
                  size_t depth)
      : starter_(std::move(starter)),
        version_(std::move(version)),
        iterator_(std::move(iterator)),
        input_(std::move(input)),
        cancel_(std::move(cancel)),
        reading_(base::Ref<base::CancelToken>::share(&iterator_->token())),
        depth_(depth) {}
  ~ReadAheadStream() override {
    for (const auto &call : calls_)
      call->abandoned.store(true);
  }

  Result<bool> next(PredictBatch &batch) override {
    if (!failure_.ok()) return failure_;
    TUTTI_TRY(fill());
    const Status status = calls_.empty() ? unread_ : calls_.front()->jobs.wait(cancel_.get());
    if (base::is_interrupt(status)) return status;
    failure_ = status;
    if (!failure_.ok()) return failure_;
    if (calls_.empty()) return false;
    PredictCall &call = *calls_.front();
    batch.outputs = std::move(call.outputs);
    batch.first_row = first_row_;
    batch.rows = call.rows;
    batch.step = version_->step;
    first_row_ += call.rows;
    calls_.pop_front();
    return true;
  }

 private:
  /// Starts calls, up to the end of the input or an error in it, which is kept: what is under way comes first. Returns
  /// interrupts alone.
  Status fill() {
    while (!ended_ && calls_.size() < depth_) {
      TUTTI_TRY(base::check(cancel_.get()));
      data::Element element;
      const bool must_wait = !has_result();
      const Result<bool> more = must_wait ? iterator_->next(element) : iterator_->next_if_ready(element);
      if (base::is_interrupt(more.status())) {
        // A call is done, or the stream's own token says so, which is asked above.
        if (has_result()) break;
        if (more.code() == base::Code::cancelled) return more.status();
        continue;
      }
      unread_ = more.ok() && *more ? start(std::move(element)) : more.status();
      ended_ = !unread_.ok() || !*more;
    }
    return Status();
  }

  Status start(data::Element element) {
    if (input_.turns != nullptr && !input_.turns->take(element)) return Status();
    TUTTI_ASSIGN(std::shared_ptr<PredictCall> call,
                 starter_->start(version_, std::move(element), input_, {1, started_++}, reading_));
    calls_.push_back(std::move(call));
    return Status();
  }

  /// Is the next batch done? Sets the deadline for reading: none if it is not, until any call is done.
  bool has_result() {
    reading_->set_deadline(base::Deadline::never());
    if (calls_.empty() || !calls_.front()->jobs.is_done()) return false;
    reading_->set_deadline(base::Deadline::after_ms(0));
    return true;
  }

  const std::shared_ptr<PredictCalls> starter_;
  const std::shared_ptr<const LoadedVersion> version_;
  const std::unique_ptr<data::Iterator> iterator_;
  const PredictInput input_;
  const base::Ref<base::CancelToken> cancel_;
  const base::Ref<base::CancelToken> reading_;
  const size_t depth_;
  std::deque<std::shared_ptr<PredictCall>> calls_;
  int64_t first_row_ = 0, started_ = 0;
  bool ended_ = false;  // nothing more is read
  Status unread_;       // why, unless it is the end
  Status failure_;
};

}  // namespace

std::unique_ptr<PredictStream> read_ahead(std::shared_ptr<PredictCalls> calls,
                                          std::shared_ptr<const LoadedVersion> version,
                                          std::unique_ptr<data::Iterator> iterator, PredictInput input,
                                          base::Ref<base::CancelToken> cancel, size_t depth) {
  return std::make_unique<ReadAheadStream>(std::move(calls), std::move(version), std::move(iterator), std::move(input),
                                           std::move(cancel), depth);
}

}  // namespace tutti::impl::distribute

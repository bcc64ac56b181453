// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/background_saver.h"

#include <utility>

#include "base/exceptions.h"
#include "base/file.h"

namespace tutti::impl::checkpoint {

using base::Result;
using base::Status;

namespace {

// A directory that cannot be written should be known before hours of training.
Status prove_writable(const std::string &directory) {
  const std::string path = base::concat(directory, "/.writable");
  TUTTI_TRY(base::write_file_synced(path, "checkpoints are written here\n"));
  return base::remove_file(path);
}

Status prepare(const std::string &directory) {
  TUTTI_TRY(base::make_directories(directory));
  TUTTI_TRY(prove_writable(directory));
  return remove_unfinished(directory);
}

}  // namespace

BackgroundSaver::BackgroundSaver(Options options)
    : options_(std::move(options)), abandon_(base::CancelToken::create()) {}

Result<std::unique_ptr<BackgroundSaver>> BackgroundSaver::start(Options options) {
  if (const Status status = prepare(options.directory); !status.ok()) {
    return status.wrap(base::concat("cannot keep checkpoints in '", options.directory, "'"));
  }
  if (options.max_waiting < 1) options.max_waiting = 1;
  std::unique_ptr<BackgroundSaver> saver(new BackgroundSaver(std::move(options)));
  TUTTI_ASSIGN(saver->thread_, base::Thread::start("tutti-saver", [raw = saver.get()] { raw->loop(); }));
  return saver;
}

// Allocates nothing: nobody could be told.
BackgroundSaver::~BackgroundSaver() {
  if (thread_.running()) end(true);
}

Status BackgroundSaver::save(Snapshot snapshot, const base::CancelToken *cancel) {
  std::unique_lock lock(mutex_);
  const auto has_room = [this] {
    return !failure_.ok() || ending_ || static_cast<int64_t>(waiting_.size()) < options_.max_waiting;
  };
  if (!has_room()) {
    wait_count_.fetch_add(1, std::memory_order_relaxed);
    TUTTI_TRY(base::wait_until(changed_, lock, cancel, base::Deadline::never(), has_room));
  }
  TUTTI_TRY(failure_);
  if (ending_) return base::failed_precondition("the saver of '", options_.directory, "' is closed");
  waiting_.push_back(std::move(snapshot));
  changed_.notify_all();
  return Status();
}

Status BackgroundSaver::flush(const base::CancelToken *cancel) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(base::wait_until(changed_, lock, cancel, base::Deadline::never(),
                             [this] { return !failure_.ok() || (waiting_.empty() && !writing_); }));
  return failure_;
}

Status BackgroundSaver::close(const base::CancelToken *cancel) {
  if (!thread_.running()) return Status();
  const Status status = flush(cancel);
  end(!status.ok());
  return status;
}

void BackgroundSaver::end(bool gives_up) {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    if (gives_up) waiting_.clear();
  }
  if (gives_up) abandon_->cancel();
  changed_.notify_all();
  thread_.join();
}

Status BackgroundSaver::status() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void BackgroundSaver::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Snapshot snapshot = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
    lock.unlock();
    changed_.notify_all();
    const Status status = base::without_exceptions([&] { return write(std::exchange(snapshot, Snapshot())); });
    lock.lock();
    if (!status.ok() && failure_.ok()) failure_ = status;
    if (!failure_.ok()) waiting_.clear();
    writing_ = false;
    changed_.notify_all();
  }
}

Status BackgroundSaver::write(Snapshot snapshot) {
  const Result<std::string> path = write_checkpoint(options_.directory, snapshot, abandon_.get());
  if (!path.ok()) {
    if (options_.logger && !abandon_->stop_requested()) options_.logger->error(path.status().to_string());
    return path.status();
  }
  saved_count_.fetch_add(1, std::memory_order_relaxed);
  if (options_.on_saved) options_.on_saved(snapshot.state->step(), *path);
  // Old checkpoints that cannot be removed cost space and nothing else.
  const Status removed = remove_old_checkpoints(options_.directory, snapshot.state->step(), options_.keep_max);
  if (!removed.ok() && options_.logger) options_.logger->warning(removed.to_string());
  return Status();
}

}  // namespace tutti::impl::checkpoint

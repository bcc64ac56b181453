// SPDX-License-Identifier: Apache-2.0
#include "collective/fake/fake_group.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <string>

#include "base/philox.h"
#include "base/thread.h"
#include "collective/reduction.h"

namespace tutti::impl::collective::fake {
namespace {

using base::Status;

/// An operation with its buffers' addresses and contents as they were at begin().
struct Posted {
  Operation operation;
  std::vector<void *> buffers;
  std::vector<std::vector<std::byte>> contents;
};

size_t bytes_of(const Operation &operation) {
  return static_cast<size_t>(operation.count) * tensor::size_bytes(operation.dtype);
}

void spoil_range(tensor::DType dtype, void *buffer, int64_t begin, int64_t end) {
  if (dtype == tensor::DType::f32) {
    std::fill(static_cast<float *>(buffer) + begin, static_cast<float *>(buffer) + end,
              std::numeric_limits<float>::quiet_NaN());
  } else if (dtype == tensor::DType::f64) {
    std::fill(static_cast<double *>(buffer) + begin, static_cast<double *>(buffer) + end,
              std::numeric_limits<double>::quiet_NaN());
  }
}

/// Carries out one operation all at once, from the contents to the buffers of all ranks.
class Execution {
 public:
  explicit Execution(std::vector<Posted *> posted) : posted_(std::move(posted)) {
    for (Posted *rank : posted_) {
      for (auto &content : rank->contents)
        sources_.push_back(content.data());
      for (void *buffer : rank->buffers)
        destinations_.push_back(buffer);
    }
  }

  void run(bool spoil) {
    const Operation &operation = posted_.front()->operation;
    if (operation.kind == Kind::barrier) return;
    restore();
    std::vector<std::byte> total(bytes_of(operation));
    switch (operation.kind) {
      case Kind::all_reduce:
        reduce_range(operation.dtype, operation.reduction, sources_.data(), static_cast<int32_t>(sources_.size()), 0,
                     operation.count, total.data());
        for (void *destination : destinations_)
          copy(destination, total.data(), 0, operation.count);
        break;
      case Kind::reduce_scatter:
        reduce_scatter(operation, spoil);
        break;
      case Kind::all_gather:
        for (int32_t i = 0; i < operation.slice_count; ++i) {
          const Slice &slice = operation.slices[i];
          const void *source = sources_[static_cast<size_t>(slice.owner)];
          for (void *destination : destinations_)
            copy(destination, source, slice.begin, slice.end);
        }
        break;
      case Kind::broadcast:
        for (void *destination : destinations_) {
          copy(destination, sources_[static_cast<size_t>(operation.root)], 0, operation.count);
        }
        break;
      case Kind::gather:
        gather(operation);
        break;
      case Kind::barrier:
        break;
    }
  }

 private:
  void restore() {
    for (size_t i = 0; i < sources_.size(); ++i)
      copy(destinations_[i], sources_[i], 0, posted_.front()->operation.count);
  }
  void copy(void *destination, const void *source, int64_t begin, int64_t end) {
    const size_t element = tensor::size_bytes(posted_.front()->operation.dtype);
    const size_t offset = static_cast<size_t>(begin) * element, bytes = static_cast<size_t>(end - begin) * element;
    if (bytes == 0) return;
    std::memcpy(static_cast<std::byte *>(destination) + offset, static_cast<const std::byte *>(source) + offset, bytes);
  }
  void reduce_scatter(const Operation &operation, bool spoil) {
    for (void *destination : destinations_) {
      if (spoil) spoil_range(operation.dtype, destination, 0, operation.count);
    }
    for (int32_t i = 0; i < operation.slice_count; ++i) {
      const Slice &slice = operation.slices[i];
      reduce_range(operation.dtype, operation.reduction, sources_.data(), static_cast<int32_t>(sources_.size()),
                   slice.begin, slice.end, destinations_[static_cast<size_t>(slice.owner)]);
    }
  }
  void gather(const Operation &operation) {
    const size_t parts = posted_.front()->buffers.size();
    auto *gathered = static_cast<std::byte *>(posted_[static_cast<size_t>(operation.root) / parts]->operation.gathered);
    if (gathered == nullptr || bytes_of(operation) == 0) return;
    for (size_t i = 0; i < sources_.size(); ++i) {
      std::memcpy(gathered + i * bytes_of(operation), sources_[i], bytes_of(operation));
    }
  }

  std::vector<Posted *> posted_;
  std::vector<void *> sources_, destinations_;
};

bool agree(const Operation &a, const Operation &b) {
  return a.kind == b.kind && a.count == b.count && a.dtype == b.dtype && a.reduction == b.reduction &&
         a.root == b.root && a.slice_count == b.slice_count;
}

/// The ranks' shared object and its engine thread.
class Engine {
 public:
  Engine(int32_t size, int32_t parts, const FakeGroupOptions &options)
      : size(size),
        parts(parts),
        options(options),
        random_(base::RandomKey::of(options.seed, 0, 0)),
        queues_(static_cast<size_t>(size)) {}
  ~Engine() {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
  }

  Status start() {
    TUTTI_ASSIGN(thread_, base::Thread::start("fake-group", [this] { loop(); }));
    return Status();
  }

  base::Result<Ticket> post(int32_t rank, const Operation &operation) {
    Posted posted{operation, {}, {}};
    if (operation.buffers != nullptr) posted.buffers.assign(operation.buffers, operation.buffers + parts);
    for (void *buffer : posted.buffers) {
      const auto *bytes = static_cast<const std::byte *>(buffer);
      posted.contents.emplace_back(bytes, bytes + bytes_of(operation));
      if (options.spoil) spoil_range(operation.dtype, buffer, 0, operation.count);
    }
    std::lock_guard lock(mutex_);
    if (!error_.ok()) return error_;
    auto &queue = queues_[static_cast<size_t>(rank)];
    if (static_cast<Ticket>(queue.size()) - waited_floor() >= max_pending_operations) {
      return base::failed_precondition("more than ", max_pending_operations, " collective operations are under way");
    }
    queue.push_back(std::move(posted));
    changed_.notify_all();
    return static_cast<Ticket>(queue.size()) - 1;
  }

  Status wait(int32_t rank, Ticket ticket, const base::CancelToken *cancel) {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return !error_.ok() || all_done_to(ticket); };
    const Status waited = base::wait_until(changed_, lock, cancel, base::Deadline::after_ms(options.timeout_ms), over);
    if (all_done_to(ticket)) return Status();
    if (!error_.ok()) return error_;
    Status cause = waited;
    if (waited.code() == base::Code::deadline_exceeded) {
      const std::string missing = missing_ranks(ticket);
      cause = base::deadline_exceeded("rank ", rank, " waited ", options.timeout_ms, " ms for rank ", missing)
                  .with_detail("rank", missing);
    }
    abort_locked(cause);
    return cause;
  }

  void abort(const Status &cause) {
    std::lock_guard lock(mutex_);
    abort_locked(cause);
  }
  Status error() {
    std::lock_guard lock(mutex_);
    return error_;
  }

  const int32_t size, parts;
  const FakeGroupOptions options;

 private:
  void abort_locked(const Status &cause) {
    if (error_.ok()) error_ = cause.wrap(base::Code::aborted, "the group was given up");
    changed_.notify_all();
  }
  bool done(Ticket ticket) const {
    return ticket < static_cast<Ticket>(done_.size()) && done_[static_cast<size_t>(ticket)];
  }
  bool all_done_to(Ticket ticket) const {
    for (Ticket t = done_floor_; t <= ticket; ++t) {
      if (!done(t)) return false;
    }
    return true;
  }
  Ticket waited_floor() const { return done_floor_; }
  std::string missing_ranks(Ticket ticket) const {
    std::string missing;
    for (int32_t r = 0; r < size; ++r) {
      if (static_cast<Ticket>(queues_[static_cast<size_t>(r)].size()) <= ticket) {
        missing += (missing.empty() ? "" : ", ") + std::to_string(r);
      }
    }
    return missing;
  }

  std::vector<Ticket> ready() const {
    size_t common = queues_.front().size();
    for (const auto &queue : queues_)
      common = std::min(common, queue.size());
    std::vector<Ticket> tickets;
    for (Ticket t = done_floor_; t < static_cast<Ticket>(common); ++t) {
      if (!done(t)) tickets.push_back(t);
    }
    return tickets;
  }

  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || (error_.ok() && !ready().empty()); });
      if (ending_) return;
      const int64_t delay = options.max_delay_us > 0 ? random_.below(options.max_delay_us) : 0;
      changed_.wait_for(lock, std::chrono::microseconds(delay), [&] { return ending_ || !error_.ok(); });
      const std::vector<Ticket> tickets = ready();
      if (tickets.empty() || !error_.ok()) continue;
      carry_out(
          tickets[options.reorder ? static_cast<size_t>(random_.below(static_cast<int64_t>(tickets.size()))) : 0]);
    }
  }

  void carry_out(Ticket ticket) {
    if (ticket == options.abort_at) return abort_locked(base::unavailable("injected failure"));
    std::vector<Posted *> posted;
    for (auto &queue : queues_)
      posted.push_back(&queue[static_cast<size_t>(ticket)]);
    for (size_t r = 1; r < posted.size(); ++r) {
      if (agree(posted[0]->operation, posted[r]->operation)) continue;
      return abort_locked(base::invalid_argument("rank 0 called ", name(posted[0]->operation.kind), " where rank ", r,
                                                 " called ", name(posted[r]->operation.kind), " of another size"));
    }
    Execution(posted).run(options.spoil);
    done_.resize(std::max(done_.size(), static_cast<size_t>(ticket) + 1), false);
    done_[static_cast<size_t>(ticket)] = true;
    while (done(done_floor_))
      ++done_floor_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  base::RandomStream random_;
  std::vector<std::deque<Posted>> queues_;
  std::vector<bool> done_;
  Ticket done_floor_ = 0;
  Status error_;
  bool ending_ = false;

  base::Thread thread_;
};

class FakeRank : public Group {
 public:
  FakeRank(std::shared_ptr<Engine> engine, int32_t rank) : engine_(std::move(engine)), rank_(rank) {}

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return engine_->size; }
  int32_t parts() const override { return engine_->parts; }
  base::Result<Ticket> begin(const Operation &operation) override {
    TUTTI_TRY(check_operation(operation, contributors()));
    TUTTI_TRY(check_on_host(operation));
    return engine_->post(rank_, operation);
  }
  Status wait(Ticket ticket) override { return engine_->wait(rank_, ticket, cancel_); }
  void abort(const Status &cause) override { engine_->abort(cause); }
  Status error() const override { return engine_->error(); }
  void set_cancel(const base::CancelToken *token) override { cancel_ = token; }

 private:
  std::shared_ptr<Engine> engine_;
  int32_t rank_;
  const base::CancelToken *cancel_ = nullptr;
};

}  // namespace

base::Result<std::vector<std::unique_ptr<Group>>> FakeGroup::create(int32_t size, int32_t parts,
                                                                    const FakeGroupOptions &options) {
  if (size < 1 || parts < 1) return base::invalid_argument("a group has at least one rank of one part");
  auto engine = std::make_shared<Engine>(size, parts, options);
  TUTTI_TRY(engine->start());
  std::vector<std::unique_ptr<Group>> ranks;
  for (int32_t r = 0; r < size; ++r)
    ranks.push_back(std::make_unique<FakeRank>(engine, r));
  return ranks;
}

}  // namespace tutti::impl::collective::fake

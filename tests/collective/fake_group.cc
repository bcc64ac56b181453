// SPDX-License-Identifier: Apache-2.0
#include "collective/fake_group.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "base/random/philox.h"
#include "base/thread.h"
#include "collective/reduction.h"

namespace tutti::impl::collective::fake {
namespace {

using base::Status;

/// An operation with its buffers' addresses, slices and, when the rank's stream has come to it, their contents.
struct Posted {
  Operation operation;
  std::vector<void *> buffers;
  std::vector<Slice> slices;
  std::vector<std::vector<std::byte>> contents;
  bool has_arrived = false;
};

size_t bytes_of(const Operation &operation) {
  return static_cast<size_t>(operation.count) * tensor::size_bytes(operation.dtype);
}

/// All bits set is no number, in each floating-point dtype.
void spoil(const Operation &operation, void *buffer) {
  if (tensor::is_floating(operation.dtype) && operation.count > 0) std::memset(buffer, 0xFF, bytes_of(operation));
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

  void run(bool spoils) {
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
        reduce_scatter(operation, spoils);
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
  void reduce_scatter(const Operation &operation, bool spoils) {
    for (void *destination : destinations_) {
      if (spoils) spoil(operation, destination);
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

/// The ranks' shared object, which work on streams shares with them.
class Engine {
 public:
  Engine(int32_t size, int32_t parts, const FakeGroupOptions &options)
      : size(size),
        parts(parts),
        options(options),
        random_(base::RandomKey::of(options.seed, 0, 0)),
        queues_(static_cast<size_t>(size)) {}

  base::Result<Ticket> post(int32_t rank, const Operation &operation) {
    Posted posted;
    posted.operation = operation;
    if (operation.buffers != nullptr) posted.buffers.assign(operation.buffers, operation.buffers + parts);
    if (operation.slices != nullptr)
      posted.slices.assign(operation.slices, operation.slices + operation.slice_count);  // wait() may return before
    posted.operation.slices = posted.slices.data();
    std::lock_guard lock(mutex_);
    if (!error_.ok()) return error_;
    auto &queue = queues_[static_cast<size_t>(rank)];
    queue.push_back(std::move(posted));
    return static_cast<Ticket>(queue.size()) - 1;
  }

  /// The rank's buffers are what the operation is to be done on.
  void arrive(int32_t rank, Ticket ticket) {
    std::lock_guard lock(mutex_);
    if (!error_.ok()) return;  // they may be somebody else's by now
    Posted &posted = queues_[static_cast<size_t>(rank)][static_cast<size_t>(ticket)];
    for (void *buffer : posted.buffers) {
      const auto *bytes = static_cast<const std::byte *>(buffer);
      posted.contents.emplace_back(bytes, bytes + bytes_of(posted.operation));
      if (options.spoil) spoil(posted.operation, buffer);
    }
    posted.has_arrived = true;
    changed_.notify_all();
  }

  Status wait(int32_t rank, Ticket ticket, const base::CancelToken *cancel) {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return !error_.ok() || is_done(ticket); };
    const Status waited = base::wait_until(changed_, lock, cancel, base::Deadline::after_ms(options.timeout_ms), over);
    if (is_done(ticket)) return Status();
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

  /// For streams: the operation is done, or never will be.
  bool is_over(Ticket ticket) {
    std::lock_guard lock(mutex_);
    return !error_.ok() || is_done(ticket);
  }
  /// The error of a group that is dead, unless the operation was done before.
  Status check(Ticket ticket) {
    std::lock_guard lock(mutex_);
    return is_done(ticket) ? Status() : error_;
  }

  void abort(const Status &cause) {
    std::lock_guard lock(mutex_);
    abort_locked(cause);
  }
  Status error() {
    std::lock_guard lock(mutex_);
    return error_;
  }

  /// Carries out, until end().
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

  void end() {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }

  const int32_t size, parts;
  const FakeGroupOptions options;

 private:
  void abort_locked(const Status &cause) {
    if (!error_.ok()) return;
    if (options.alive != nullptr) tell_devices();
    error_ = cause.wrap(base::Code::aborted, "the group was aborted");
    changed_.notify_all();
  }
  /// They read it as they please.
  [[gnu::noinline]] void tell_devices() const { options.alive->store(0, std::memory_order_seq_cst); }

  bool is_done(Ticket ticket) const {
    return ticket < static_cast<Ticket>(done_.size()) && done_[static_cast<size_t>(ticket)];
  }
  bool has_arrived(size_t rank, Ticket ticket) const {
    const auto &queue = queues_[rank];
    return ticket < static_cast<Ticket>(queue.size()) && queue[static_cast<size_t>(ticket)].has_arrived;
  }
  /// "1, 3"
  std::string missing_ranks(Ticket ticket) const {
    std::string missing;
    for (size_t r = 0; r < queues_.size(); ++r) {
      if (!has_arrived(r, ticket)) missing += (missing.empty() ? "" : ", ") + std::to_string(r);
    }
    return missing;
  }

  std::vector<Ticket> ready() const {
    std::vector<Ticket> tickets;
    for (Ticket t = done_floor_; t < static_cast<Ticket>(queues_.front().size()); ++t) {
      bool is_ready = !is_done(t);
      for (size_t r = 0; is_ready && r < queues_.size(); ++r)
        is_ready = has_arrived(r, t);
      if (is_ready) tickets.push_back(t);
    }
    return tickets;
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
    while (is_done(done_floor_))
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
};

/// The thread that carries out, for as long as there are ranks. No stream ever waits for its end.
struct EngineThread {
  explicit EngineThread(std::shared_ptr<Engine> started) : engine(std::move(started)) {}
  ~EngineThread() { engine->end(); }

  Status start() {
    TUTTI_ASSIGN(thread, base::Thread::start("fake-group", [this] { engine->loop(); }));
    return Status();
  }

  const std::shared_ptr<Engine> engine;
  base::Thread thread;
};

class FakeRank : public Group {
 public:
  FakeRank(std::shared_ptr<EngineThread> thread, int32_t rank)
      : thread_(std::move(thread)), engine_(thread_->engine), rank_(rank) {}
  /// Its streams leave the buffers alone afterwards: what was begun is done, or the group is dead.
  ~FakeRank() override {
    cancel_ = nullptr;
    if (takes_streams()) (void)await_done(begun_ - 1);
  }

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return engine_->size; }
  int32_t parts() const override { return engine_->parts; }

  base::Result<Ticket> begin(const Operation &operation) override;
  Status wait(Ticket ticket) override;
  Status settle() override;
  Status settle_own() override { return settle(); }
  Status await_done(Ticket ticket) override;
  bool signals_end() const override { return takes_streams() && engine_->options.alive != nullptr; }
  void abort(const Status &cause) override { engine_->abort(cause); }
  Status error() const override { return engine_->error(); }
  void set_cancel(const base::CancelToken *token) override { cancel_ = token; }

 private:
  bool takes_streams() const { return engine_->options.issue != nullptr; }
  backend::Stream *&stream_of(Ticket ticket) { return streams_[static_cast<size_t>(ticket % max_pending_operations)]; }

  const std::shared_ptr<EngineThread> thread_;
  const std::shared_ptr<Engine> engine_;
  const int32_t rank_;
  const base::CancelToken *cancel_ = nullptr;
  std::array<backend::Stream *, max_pending_operations> streams_{};  // null: of memory of the host
  Ticket begun_ = 0, waited_ = 0, done_ = 0;
};

base::Result<Ticket> FakeRank::begin(const Operation &operation) {
  TUTTI_TRY(check_operation(operation, contributors()));
  if (!takes_streams()) TUTTI_TRY(check_on_host(operation));
  if (begun_ - waited_ >= max_pending_operations) {
    return base::failed_precondition("more than ", max_pending_operations, " collective operations are in flight");
  }
  TUTTI_TRY(await_done(begun_ - max_pending_operations));
  TUTTI_ASSIGN(const Ticket ticket, engine_->post(rank_, operation));
  ++begun_;
  stream_of(ticket) = operation.kind == Kind::barrier ? nullptr : operation.stream;
  if (stream_of(ticket) == nullptr) {
    engine_->arrive(rank_, ticket);
    return ticket;
  }
  engine_->options.issue(*stream_of(ticket), [engine = engine_, rank = rank_, ticket] {
    engine->arrive(rank, ticket);
    return true;
  });
  return ticket;
}

Status FakeRank::wait(Ticket ticket) {
  if (ticket >= begun_) return base::invalid_argument("operation ", ticket, " of rank ", rank_, " was never started");
  for (; waited_ <= ticket; ++waited_) {
    backend::Stream *const stream = stream_of(waited_);
    if (stream == nullptr) {
      TUTTI_TRY(engine_->wait(rank_, waited_, cancel_));
      continue;
    }
    TUTTI_TRY(engine_->check(waited_));
    engine_->options.issue(*stream, [engine = engine_, waited = waited_] { return engine->is_over(waited); });
  }
  return Status();
}

Status FakeRank::await_done(Ticket ticket) {
  for (; done_ <= std::min(ticket, begun_ - 1); ++done_)
    TUTTI_TRY(engine_->wait(rank_, done_, cancel_));
  return Status();
}

Status FakeRank::settle() {
  if (!takes_streams()) return Status();
  if (begun_ > 0) {
    TUTTI_TRY(wait(begun_ - 1));
    TUTTI_TRY(await_done(begun_ - 1));
  }
  return barrier("end of operations");
}

}  // namespace

base::Result<std::vector<std::unique_ptr<Group>>> FakeGroup::create(int32_t size, int32_t parts,
                                                                    const FakeGroupOptions &options) {
  if (size < 1 || parts < 1) return base::invalid_argument("a group has at least one rank of one part");
  const auto thread = std::make_shared<EngineThread>(std::make_shared<Engine>(size, parts, options));
  TUTTI_TRY(thread->start());
  std::vector<std::unique_ptr<Group>> ranks;
  for (int32_t r = 0; r < size; ++r)
    ranks.push_back(std::make_unique<FakeRank>(thread, r));
  return ranks;
}

}  // namespace tutti::impl::collective::fake

// SPDX-License-Identifier: Apache-2.0
#include "collective/cluster/cluster_group.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/notifier.h"
#include "base/thread.h"
#include "collective/cluster/worker_exchange.h"
#include "collective/cluster/worker_mesh.h"
#include "collective/cluster/worker_watch.h"
#include "collective/reduction.h"

namespace tutti::impl::collective::cluster {
namespace {

using base::Deadline;
using base::Notifier;
using base::Result;
using base::Status;

// For a word about the end; and how long worker 0, who keeps it, stays at most for the others to read it.
constexpr int64_t kCauseMs = 2000, kHeardMs = 5000;
// For a worker that is waited for to say that it has waited, too; and for worker 0 to answer who asks why a worker has
// gone. Worker 0 itself may hang: no error is later than the group's timeout by more than one of these.
constexpr int64_t kLateMs = 500;
// Between two looks whether another one has gone.
constexpr int64_t kGoneMs = 20;

/// Which worker an error names.
std::string named_by(const Status &status) {
  const std::string *const named = status.ok() ? nullptr : status.error()->find_detail("worker");
  return named == nullptr ? std::string() : *named;
}

/// Why a worker has given up.
struct LastWords {
  int64_t worker = -1;
  std::string named;
  Status cause;

  std::string dump() const {
    const base::Json words = base::JsonObject{{"worker", worker},
                                              {"named", named},
                                              {"code", static_cast<int32_t>(cause.code())},
                                              {"message", cause.to_string()}};
    return words.dump();
  }
  /// Of no worker where the text is something else.
  static LastWords parse(const std::string &text) {
    const Result<base::Json> parsed = base::Json::parse(text);
    if (!parsed.ok()) return {};
    const base::JsonReader reader(*parsed, "last words");
    const int64_t code = reader.get_integer("code").value_or(static_cast<int64_t>(base::Code::unavailable));
    return {reader.get_integer("worker").value_or(-1), reader.get_string("named").value_or(""),
            Status(static_cast<base::Code>(code), reader.get_string("message").value_or(""))};
  }
};

/// What an operation is posted for: to be done, to settle, to be compared with the others'.
enum class Purpose : int32_t { work, settle, announcement };

struct Posted {
  Operation operation;
  std::vector<void *> buffers;
  Purpose purpose = Purpose::work;
};

struct alignas(64) RankState {
  std::atomic<int64_t> posted{0};
  std::array<Posted, max_pending_operations> ring;
};

/// What the ranks of this process share: their posts, and the thread that carries them out.
class Process {
 public:
  explicit Process(ClusterGroupOptions options);
  ~Process();
  Status open();

  const ClusterGroupOptions &options() const { return options_; }
  int32_t workers() const { return static_cast<int32_t>(options_.names.size()); }
  const std::string &name_of(int32_t worker) const { return options_.names[static_cast<size_t>(worker)]; }
  int32_t contributors() const { return workers() * options_.replicas * options_.parts; }
  Notifier &notifier() { return notifier_; }

  Result<Ticket> post(int32_t replica, const Operation &operation, Purpose purpose);
  bool is_complete(Ticket ticket) const { return completed_.load(std::memory_order_seq_cst) > ticket; }
  bool has_stopped() const { return stopped_.load(std::memory_order_seq_cst); }
  bool is_dead() const { return dead_.load(std::memory_order_seq_cst); }
  void abort(const Status &cause) { give_up(cause.wrap(base::Code::aborted, "the group was aborted")); }
  Status error() const;
  Status watch();
  int64_t posted(int32_t replica) const { return state(replica).posted.load(std::memory_order_relaxed); }

 private:
  const RankState &state(int32_t replica) const { return ranks_[static_cast<size_t>(replica)]; }
  const Posted &posted_at(int32_t replica, Ticket ticket) const {
    return state(replica).ring[static_cast<size_t>(ticket % max_pending_operations)];
  }
  int32_t first_rank() const { return options_.worker * options_.replicas; }

  void serve();
  Status connect();
  void tell_opened(const Status &status);
  /// False: the group ends.
  Result<bool> wait_for_posts(Ticket ticket);
  Status check_posts(Ticket ticket) const;
  Status complete(Ticket ticket);
  Status reduce(const Operation &operation, const Head &head);
  Status gather(const Operation &operation, void *gathered);
  void copy_to_all(int64_t offset, int64_t bytes, const void *source);
  void copy_slices(const Operation &operation);
  void give_up(const Status &error);
  void end(const Status &status);
  void publish_cause(const Status &status);
  Status heard(const LastWords &words) const;
  Status find_cause(const Status &own) const;
  Status find_who_is_late(const Status &own) const;
  Status explain(const Status &own) const;
  void hear_out(const Status &error);
  void wait_until_heard(int32_t worker, Deadline deadline) const;

  const ClusterGroupOptions options_;
  std::vector<RankState> ranks_;
  Notifier notifier_;
  std::atomic<int64_t> completed_{0};
  std::atomic<bool> dead_{false}, stopped_{false}, closing_{false};
  std::vector<void *> buffers_;    // of all contributors of this process
  std::vector<std::byte> result_;  // of a small reduction
  std::vector<void *> pieces_;     // of it, of all workers
  std::optional<WorkerExchange> exchange_;

  mutable std::mutex mutex_;
  std::condition_variable opened_changed_;
  // Guarded by mutex_:
  std::unique_ptr<Mesh> mesh_;
  std::optional<Status> opened_;
  Status error_;
  std::unique_ptr<WorkerWatch> watch_;
  base::Thread thread_;
};

Process::Process(ClusterGroupOptions options)
    : options_(std::move(options)), ranks_(static_cast<size_t>(options_.replicas)) {
  for (RankState &rank : ranks_) {
    for (Posted &posted : rank.ring)
      posted.buffers.resize(static_cast<size_t>(options_.parts));
  }
  buffers_.resize(static_cast<size_t>(options_.replicas * options_.parts));
}

Process::~Process() {
  closing_.store(true, std::memory_order_seq_cst);
  {
    const std::lock_guard lock(mutex_);
    if (mesh_) mesh_->interrupt();
  }
  notifier_.notify();
  thread_.join();
  std::unique_ptr<WorkerWatch> watch;
  {
    const std::lock_guard lock(mutex_);
    watch = std::move(watch_);
  }
}

Status Process::open() {
  TUTTI_ASSIGN(thread_, base::Thread::start("tutti-cluster", [this] { serve(); }));
  std::unique_lock lock(mutex_);
  // The engine's own limit ends it.
  TUTTI_TRY(base::wait_until(opened_changed_, lock, nullptr, Deadline::never(), [&] { return opened_.has_value(); }));
  return *opened_;
}

void Process::tell_opened(const Status &status) {
  const std::lock_guard lock(mutex_);
  opened_ = status;
  opened_changed_.notify_all();
}

Status Process::connect() {
  if (workers() > 1) {
    TUTTI_ASSIGN(std::unique_ptr<Mesh> mesh, connect_mesh(options_, "mesh"));
    const std::lock_guard lock(mutex_);
    mesh_ = std::move(mesh);
  }
  exchange_.emplace(mesh_.get(), options_.worker, options_.names, options_.timeout_ms, dead_);
  return Status();
}

// ---- the thread ----

void Process::serve() {
  Status status = connect();
  tell_opened(status);
  for (Ticket ticket = 0; status.ok(); ++ticket) {
    const Result<bool> go_on = wait_for_posts(ticket);
    status = go_on.status();
    if (!go_on.ok() || !*go_on) break;
    status = complete(ticket);
    if (!status.ok()) break;
    completed_.store(ticket + 1, std::memory_order_seq_cst);
    notifier_.notify();
  }
  end(status);
}

Result<bool> Process::wait_for_posts(Ticket ticket) {
  const auto has_posted = [=](const RankState &rank) { return rank.posted.load(std::memory_order_seq_cst) > ticket; };
  const auto ends = [&] { return is_dead() || closing_.load(std::memory_order_seq_cst); };
  notifier_.wait([&] { return ends() || std::any_of(ranks_.begin(), ranks_.end(), has_posted); }, 0, Deadline::never(),
                 nullptr);
  notifier_.wait([&] { return ends() || std::all_of(ranks_.begin(), ranks_.end(), has_posted); }, 0,
                 Deadline::after_ms(options_.timeout_ms), nullptr);
  if (ends()) return false;
  std::string missing;
  for (int32_t r = 0; r < options_.replicas; ++r) {
    if (!has_posted(state(r))) missing += (missing.empty() ? "" : ", ") + std::to_string(first_rank() + r);
  }
  if (missing.empty()) return true;
  return base::deadline_exceeded("worker ", options_.worker, " waited ", options_.timeout_ms, " ms for rank ", missing)
      .with_detail("rank", missing);
}

Status Process::check_posts(Ticket ticket) const {
  const Posted &own = posted_at(0, ticket);
  for (int32_t r = 1; r < options_.replicas; ++r) {
    const Posted &posted = posted_at(r, ticket);
    const Operation &a = own.operation, &b = posted.operation;
    if (own.purpose == posted.purpose && a.kind == b.kind && a.count == b.count && a.dtype == b.dtype &&
        a.reduction == b.reduction && a.root == b.root && a.slice_count == b.slice_count) {
      continue;
    }
    return base::invalid_argument("rank ", first_rank(), " called ", name(a.kind), " '", a.label, "' of ", a.count, " ",
                                  tensor::name(a.dtype), " elements where rank ", first_rank() + r, " called ",
                                  name(b.kind), " '", b.label, "' of ", b.count, " ", tensor::name(b.dtype),
                                  " elements");
  }
  return Status();
}

Status Process::complete(Ticket ticket) {
  TUTTI_TRY(check_posts(ticket));
  const Posted &posted = posted_at(0, ticket);
  const Operation &operation = posted.operation;
  void *gathered = nullptr;
  size_t next = 0;
  for (int32_t r = 0; r < options_.replicas; ++r) {
    const Posted &of_rank = posted_at(r, ticket);
    for (void *buffer : of_rank.buffers)
      buffers_[next++] = buffer;
    if (operation.kind == Kind::gather && operation.root / options_.parts == first_rank() + r)
      gathered = of_rank.operation.gathered;
  }
  Head head;
  head.number = ticket;
  head.kind = posted.purpose == Purpose::settle ? Head::kSettle : static_cast<int32_t>(operation.kind);
  if (posted.purpose == Purpose::announcement) head.kind += Head::kAnnounced;
  head.reduction = static_cast<int32_t>(operation.reduction);
  head.dtype = static_cast<int32_t>(operation.dtype);
  head.slice_count = operation.slice_count;
  head.root = operation.root;
  head.count = operation.count;
  head.sources = options_.in_order ? options_.replicas * options_.parts : 1;
  std::strncpy(head.label.data(), operation.label, head.label.size() - 1);
  const bool reduces = operation.kind == Kind::all_reduce || operation.kind == Kind::reduce_scatter;
  if (posted.purpose == Purpose::work && reduces) return reduce(operation, head);
  TUTTI_TRY(exchange_->agree(head, {}));
  if (posted.purpose == Purpose::announcement) return Status();
  if (posted.purpose == Purpose::settle) return exchange_->settle();
  switch (operation.kind) {
    case Kind::all_gather:
      TUTTI_TRY(exchange_->all_gather(operation, buffers_));
      copy_slices(operation);
      return Status();
    case Kind::broadcast: {
      TUTTI_TRY(exchange_->broadcast(operation, buffers_));
      const auto own = static_cast<int32_t>(buffers_.size());
      const bool owns = operation.root / own == options_.worker;
      copy_to_all(0, operation.count * static_cast<int64_t>(tensor::size_bytes(operation.dtype)),
                  buffers_[owns ? static_cast<size_t>(operation.root % own) : 0]);
      return Status();
    }
    case Kind::gather:
      return gather(operation, gathered);
    default:
      return Status();
  }
}

Status Process::reduce(const Operation &operation, const Head &head) {
  const int64_t bytes = operation.count * static_cast<int64_t>(tensor::size_bytes(operation.dtype));
  const auto own = static_cast<int32_t>(buffers_.size());
  if (own > 1 && !options_.in_order && bytes > 0)
    reduce_range(operation.dtype, operation.reduction, buffers_.data(), own, 0, operation.count, buffers_.front());
  const std::span<void *const> sources = std::span(buffers_).first(static_cast<size_t>(head.sources));
  const auto enclosed = static_cast<size_t>(bytes) * sources.size();
  if (enclosed > WorkerExchange::kEnclosedBytes) {
    TUTTI_TRY(exchange_->agree(head, {}));
    TUTTI_TRY(exchange_->all_reduce(operation.dtype, operation.reduction, sources, operation.count));
    copy_to_all(0, bytes, buffers_.front());
    return Status();
  }
  std::array<std::byte, WorkerExchange::kEnclosedBytes> data{};
  for (size_t s = 0; s < sources.size() && bytes > 0; ++s)
    std::memcpy(data.data() + s * static_cast<size_t>(bytes), sources[s], static_cast<size_t>(bytes));
  TUTTI_TRY(exchange_->agree(head, std::span(data).first(enclosed)));
  if (bytes == 0) return Status();
  pieces_.resize(sources.size() * static_cast<size_t>(workers()));
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const std::byte *const first = exchange_->enclosed(static_cast<int32_t>(i / sources.size()));
    pieces_[i] = const_cast<std::byte *>(first) + i % sources.size() * static_cast<size_t>(bytes);  // only read
  }
  result_.resize(WorkerExchange::kEnclosedBytes);
  reduce_range(operation.dtype, operation.reduction, pieces_.data(), static_cast<int32_t>(pieces_.size()), 0,
               operation.count, result_.data());
  copy_to_all(0, bytes, result_.data());
  return Status();
}

Status Process::gather(const Operation &operation, void *gathered) {
  TUTTI_TRY(exchange_->gather(operation, buffers_, gathered));
  const auto bytes = static_cast<size_t>(operation.count) * tensor::size_bytes(operation.dtype);
  if (gathered == nullptr || bytes == 0) return Status();
  auto *place = static_cast<std::byte *>(gathered) + static_cast<size_t>(options_.worker) * buffers_.size() * bytes;
  for (const void *buffer : buffers_) {
    std::memcpy(place, buffer, bytes);
    place += bytes;
  }
  return Status();
}

void Process::copy_to_all(int64_t offset, int64_t bytes, const void *source) {
  if (bytes == 0) return;
  for (void *buffer : buffers_) {
    if (buffer != source)
      std::memcpy(static_cast<std::byte *>(buffer) + offset, static_cast<const std::byte *>(source) + offset,
                  static_cast<size_t>(bytes));
  }
}

void Process::copy_slices(const Operation &operation) {
  const auto element = static_cast<int64_t>(tensor::size_bytes(operation.dtype));
  const auto own = static_cast<int32_t>(buffers_.size());
  for (int32_t i = 0; i < operation.slice_count; ++i) {
    const Slice &slice = operation.slices[i];
    const bool owns = slice.owner / own == options_.worker;
    copy_to_all(slice.begin * element, (slice.end - slice.begin) * element,
                buffers_[owns ? static_cast<size_t>(slice.owner % own) : 0]);
  }
}

// ---- ends ----

void Process::give_up(const Status &error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_.ok() || stopped_.load(std::memory_order_seq_cst)) return;
    error_ = error;
    dead_.store(true, std::memory_order_seq_cst);
    if (mesh_) mesh_->interrupt();
  }
  notifier_.notify();
}

Status Process::watch() {
  if (workers() == 1) return Status();
  const auto lost = [this](const Status &status) { give_up(explain(status)); };
  TUTTI_ASSIGN(std::unique_ptr<WorkerWatch> watch, WorkerWatch::start(options_, lost));
  const std::lock_guard lock(mutex_);
  watch_ = std::move(watch);
  if (stopped_.load(std::memory_order_seq_cst)) watch_->leave();
  return Status();
}

Status Process::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Process::publish_cause(const Status &status) {
  if (workers() == 1 || options_.table == nullptr) return;
  const LastWords words{options_.worker, named_by(status), status};
  // Nobody may be there any more to listen.
  (void)options_.table->put(options_.key_prefix + "cause", words.dump(), Deadline::after_ms(kCauseMs), true);
}

Status Process::heard(const LastWords &words) const {
  const std::string &name = name_of(static_cast<int32_t>(words.worker));
  return words.cause.wrap(base::Code::aborted, base::concat("the group was aborted by ", name));
}

/// Why the first worker gave up, or `own` where nobody has said so.
Status Process::find_cause(const Status &own) const {
  const Result<std::string> text = options_.table->find(options_.key_prefix + "cause", Deadline::after_ms(0), kLateMs);
  if (!text.ok()) return own.with_detail("cause", text.status().message());
  const LastWords words = LastWords::parse(*text);
  if (words.worker < 0 || words.worker >= workers() || words.worker == options_.worker) return own;
  return heard(words).with_detail("worker", std::to_string(words.worker));
}

/// Who is waited for may wait itself, in the operation before, for another one that hangs. Both are out of time at
/// about the same moment, and what it says is true then.
Status Process::find_who_is_late(const Status &own) const {
  const Deadline deadline = Deadline::after_ms(kLateMs);
  const std::string prefix = options_.key_prefix + "late/", self = std::to_string(options_.worker);
  const LastWords own_words{options_.worker, named_by(own), own};
  if (!options_.table->put(prefix + self, own_words.dump(), deadline, false).ok() || own_words.named.empty())
    return own;
  const Result<std::string> text = options_.table->find(prefix + own_words.named, deadline, kLateMs);
  if (!text.ok()) return own;
  const LastWords words = LastWords::parse(*text);
  if (std::to_string(words.worker) != own_words.named || words.named == self) return own;
  return heard(words).with_detail("worker", words.named.empty() ? own_words.named : words.named);
}

/// The status with which this worker gives up, by what others say.
Status Process::explain(const Status &own) const {
  if (workers() == 1 || options_.table == nullptr) return own;
  if (own.code() == base::Code::unavailable) return find_cause(own);
  return own.code() == base::Code::deadline_exceeded ? find_who_is_late(own) : own;
}

void Process::end(const Status &status) {
  Status error = this->error();
  const bool leaves = closing_.load(std::memory_order_seq_cst);
  if (error.ok() && !status.ok() && !leaves) error = explain(status);
  publish_cause(error.ok() ? base::unavailable("worker ", options_.worker, " has left the group") : error);
  {
    const std::lock_guard lock(mutex_);
    if (error_.ok()) error_ = error;
    mesh_.reset();
    if (!error_.ok()) dead_.store(true, std::memory_order_seq_cst);
    stopped_.store(true, std::memory_order_seq_cst);
    if (watch_ != nullptr) watch_->leave();
  }
  notifier_.notify();
  if (!error.ok()) hear_out(error);
}

/// Worker 0 may end its process next, and the table with it: not before the others have looked for the cause or have
/// gone, but for the one that is it.
void Process::hear_out(const Status &error) {
  if (workers() == 1 || options_.table == nullptr) return;
  const std::string *const gone = error.error()->find_detail("worker");
  const Deadline deadline = Deadline::after_ms(kHeardMs);
  if (options_.worker != 0) {
    (void)options_.table->put(base::concat(options_.key_prefix, "heard/", options_.worker), "",
                              Deadline::after_ms(kCauseMs), false);
    return;
  }
  for (int32_t w = 1; w < workers(); ++w) {
    if (gone == nullptr || *gone != std::to_string(w)) wait_until_heard(w, deadline);
  }
}

void Process::wait_until_heard(int32_t worker, Deadline deadline) const {
  const auto is_missing = [&](std::string_view what, int64_t wait_ms) {
    const Deadline look = earlier(deadline, Deadline::after_ms(wait_ms));
    return options_.table->find(base::concat(options_.key_prefix, what, worker), look).code() == base::Code::not_found;
  };
  while (is_missing("heard/", kGoneMs) && is_missing("gone/", 0) && !deadline.passed()) {
  }
}

// ---- posts ----

Result<Ticket> Process::post(int32_t replica, const Operation &operation, Purpose purpose) {
  if (is_dead()) return error();
  RankState &rank = ranks_[static_cast<size_t>(replica)];
  const Ticket ticket = rank.posted.load(std::memory_order_relaxed);
  if (ticket - completed_.load(std::memory_order_seq_cst) >= max_pending_operations) {
    return base::failed_precondition("more than ", max_pending_operations, " collective operations are in flight");
  }
  Posted &slot = rank.ring[static_cast<size_t>(ticket % max_pending_operations)];
  slot.operation = operation;
  slot.purpose = purpose;
  if (operation.buffers != nullptr && purpose == Purpose::work)
    std::copy_n(operation.buffers, options_.parts, slot.buffers.begin());
  rank.posted.store(ticket + 1, std::memory_order_seq_cst);
  notifier_.notify();
  return ticket;
}

class ClusterRank : public Group {
 public:
  ClusterRank(std::shared_ptr<Process> process, int32_t replica) : process_(std::move(process)), replica_(replica) {}

  int32_t rank() const override { return process_->options().worker * process_->options().replicas + replica_; }
  int32_t size() const override { return process_->workers() * process_->options().replicas; }
  int32_t parts() const override { return process_->options().parts; }

  Result<Ticket> begin(const Operation &operation) override {
    if (process_->is_dead()) return process_->error();
    TUTTI_TRY(check_operation(operation, contributors()));
    TUTTI_TRY(check_on_host(operation));
    return process_->post(replica_, operation, Purpose::work);
  }
  Result<Ticket> announce(const Operation &operation) override {
    return process_->post(replica_, operation, Purpose::announcement);
  }
  Status watch() override { return process_->watch(); }
  Status wait(Ticket ticket) override;
  bool would_wait(Ticket ticket) const override { return !process_->is_complete(ticket); }
  Status settle() override {
    TUTTI_ASSIGN(const Ticket ticket, process_->post(replica_, Operation{.label = "settle"}, Purpose::settle));
    return wait(ticket);
  }
  void abort(const Status &cause) override { process_->abort(cause); }
  Status error() const override { return process_->error(); }
  void set_cancel(const base::CancelToken *token) override { cancel_ = token; }

 private:
  const std::shared_ptr<Process> process_;
  const int32_t replica_;
  const base::CancelToken *cancel_ = nullptr;
};

Status ClusterRank::wait(Ticket ticket) {
  if (ticket >= process_->posted(replica_))
    return base::invalid_argument("operation ", ticket, " of rank ", rank(), " was never started");
  const auto over = [&] { return process_->is_complete(ticket) || process_->has_stopped(); };
  Status cancelled;
  if (!process_->notifier().wait(over, 0, Deadline::never(), cancel_)) {
    cancelled = base::check(cancel_);
    process_->abort(cancelled);
    process_->notifier().wait(over, 0, Deadline::never(), nullptr);
  }
  if (process_->is_complete(ticket)) return Status();
  return cancelled.ok() ? process_->error() : cancelled;
}

}  // namespace

Result<std::vector<std::unique_ptr<Group>>> ClusterGroup::create(ClusterGroupOptions options) {
  if (options.replicas < 1 || options.replicas > 1024 || options.parts < 1 || options.parts > 64) {
    return base::invalid_argument("a cluster group has 1 to 1024 replicas of 1 to 64 parts in a process, got ",
                                  options.replicas, " of ", options.parts);
  }
  const int32_t replicas = options.replicas;
  auto process = std::make_shared<Process>(std::move(options));
  TUTTI_TRY(process->open());
  std::vector<std::unique_ptr<Group>> ranks;
  for (int32_t r = 0; r < replicas; ++r)
    ranks.push_back(std::make_unique<ClusterRank>(process, r));
  return ranks;
}

}  // namespace tutti::impl::collective::cluster

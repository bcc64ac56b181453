// SPDX-License-Identifier: Apache-2.0
#include "collective/cluster/worker_exchange.h"

#include <algorithm>
#include <cstring>

#include "collective/cluster/worker_mesh.h"
#include "collective/reduction.h"

namespace tutti::impl::collective::cluster {

using base::Status;

namespace {

static_assert(sizeof(Head) == 96);

constexpr int64_t kChunkAlignment = 16;  // elements
/// At most so much longer than worker 0 waits for the votes do the others wait for what it makes of them: it names who
/// has not voted, and they would name it. All begin to wait at about the same time, when they have agreed. That is part
/// of how late a worker 0 that hangs is noticed; whoever takes it for one that hangs too early hears from it, in the
/// table, for whom it waits itself.
constexpr int64_t kDecisionMs = 250;

int64_t bytes_of(const Operation &operation) {
  return operation.count * static_cast<int64_t>(tensor::size_bytes(operation.dtype));
}

std::byte *at(void *buffer, int64_t offset) { return static_cast<std::byte *>(buffer) + offset; }

bool same(const Head &a, const Head &b) {
  return a.number == b.number && a.kind == b.kind && a.reduction == b.reduction && a.dtype == b.dtype &&
         a.slice_count == b.slice_count && a.root == b.root && a.sources == b.sources && a.count == b.count;
}

}  // namespace

std::string Head::describe() const {
  const std::string_view text(label.data(), strnlen(label.data(), label.size()));
  if (kind == kSettle) return "settle";
  const bool is_announced = kind > kAnnounced;
  return base::concat(name(static_cast<Kind>(is_announced ? kind - kAnnounced : kind)), " '", text, "' of ", count, " ",
                      tensor::name(static_cast<tensor::DType>(dtype)), " elements", is_announced ? " on devices" : "");
}

WorkerExchange::WorkerExchange(Mesh *mesh, int32_t worker, std::span<const std::string> names, int64_t timeout_ms,
                               const std::atomic<bool> &is_dead)
    : mesh_(mesh), worker_(worker), names_(names), timeout_ms_(timeout_ms), is_dead_(is_dead), heads_(names.size()) {}

void WorkerExchange::clear() {
  sends_.clear();
  receives_.clear();
}

void WorkerExchange::send(int32_t to, const void *bytes, int64_t length) {
  if (length == 0) return;
  sends_.push_back({to, static_cast<uint32_t>(head_.number), const_cast<void *>(bytes), static_cast<uint64_t>(length)});
}

void WorkerExchange::receive(int32_t from, void *bytes, int64_t length) {
  if (length == 0) return;
  receives_.push_back({from, static_cast<uint32_t>(head_.number), bytes, static_cast<uint64_t>(length)});
}

Status WorkerExchange::run(bool uninterrupted, int64_t longer_ms) {
  if (sends_.empty() && receives_.empty()) return Status();
  const int64_t timeout_ms = timeout_ms_ < 0 ? timeout_ms_ : timeout_ms_ + longer_ms;
  const Status status = mesh_->exchange(
      {.sends = sends_, .receives = receives_, .timeout_ms = timeout_ms, .uninterrupted = uninterrupted});
  return status.ok() ? status : name_peer(status, names_, worker_, timeout_ms, head_.describe());
}

Status WorkerExchange::agree(const Head &head, std::span<const std::byte> data) {
  head_ = head;
  auto &own = heads_[static_cast<size_t>(worker_)];
  std::memcpy(own.data(), &head, sizeof(head));
  if (!data.empty()) std::memcpy(own.data() + sizeof(head), data.data(), data.size());
  clear();
  for (int32_t w = 0; w < workers(); ++w) {
    if (w == worker_) continue;
    send(w, own.data(), kHeadMessageBytes);
    receive(w, heads_[static_cast<size_t>(w)].data(), kHeadMessageBytes);
  }
  TUTTI_TRY(run());
  return check_heads(head);
}

Status WorkerExchange::check_heads(const Head &head) const {
  for (int32_t w = 0; w < workers(); ++w) {
    Head other;
    std::memcpy(&other, heads_[static_cast<size_t>(w)].data(), sizeof(other));
    if (same(head, other)) continue;
    return base::invalid_argument(names_[static_cast<size_t>(worker_)], " called ", head.describe(), " where ",
                                  names_[static_cast<size_t>(w)], " called ", other.describe(),
                                  ": all workers must make the same calls, with the same model and options");
  }
  return Status();
}

const std::byte *WorkerExchange::enclosed(int32_t worker) const {
  return heads_[static_cast<size_t>(worker)].data() + sizeof(Head);
}

std::pair<int64_t, int64_t> WorkerExchange::chunk_of(int64_t count, int32_t worker) const {
  const int64_t blocks = (count + kChunkAlignment - 1) / kChunkAlignment;
  const auto bound = [&](int64_t w) { return std::min(count, blocks * w / workers() * kChunkAlignment); };
  return {bound(worker), bound(worker + 1)};
}

Status WorkerExchange::all_reduce(tensor::DType dtype, Reduction reduction, std::span<void *const> sources,
                                  int64_t count) {
  const auto element = static_cast<int64_t>(tensor::size_bytes(dtype));
  const auto [begin, end] = chunk_of(count, worker_);
  const int64_t bytes = (end - begin) * element;
  const auto parts = static_cast<int64_t>(sources.size());
  scratch_.resize(std::max(scratch_.size(), static_cast<size_t>(bytes * parts * workers())));
  sources_.clear();
  clear();
  for (int32_t w = 0; w < workers(); ++w) {
    const auto [first, last] = chunk_of(count, w);
    for (int64_t p = 0; p < parts; ++p) {
      std::byte *const place = scratch_.data() + (w * parts + p) * bytes;
      void *const source = sources[static_cast<size_t>(p)];
      sources_.push_back(w == worker_ ? at(source, begin * element) : place);
      if (w == worker_) continue;
      send(w, at(source, first * element), (last - first) * element);
      receive(w, place, bytes);
    }
  }
  TUTTI_TRY(run());
  void *const result = sources.front();
  reduce_range(dtype, reduction, sources_.data(), static_cast<int32_t>(sources_.size()), 0, end - begin,
               at(result, begin * element));
  clear();
  for (int32_t w = 0; w < workers(); ++w) {
    if (w == worker_) continue;
    const auto [first, last] = chunk_of(count, w);
    send(w, at(result, begin * element), bytes);
    receive(w, at(result, first * element), (last - first) * element);
  }
  return run();
}

Status WorkerExchange::all_gather(const Operation &operation, std::span<void *const> buffers) {
  const auto element = static_cast<int64_t>(tensor::size_bytes(operation.dtype));
  const auto own = static_cast<int32_t>(buffers.size());
  clear();
  for (int32_t i = 0; i < operation.slice_count; ++i) {
    const Slice &slice = operation.slices[i];
    const int64_t offset = slice.begin * element, bytes = (slice.end - slice.begin) * element;
    const int32_t owner = slice.owner / own;
    for (int32_t w = 0; w < workers(); ++w) {
      if (owner == worker_ && w != worker_) send(w, at(buffers[static_cast<size_t>(slice.owner % own)], offset), bytes);
    }
    if (owner != worker_) receive(owner, at(buffers.front(), offset), bytes);
  }
  return run();
}

Status WorkerExchange::broadcast(const Operation &operation, std::span<void *const> buffers) {
  const auto own = static_cast<int32_t>(buffers.size());
  const int32_t owner = operation.root / own;
  clear();
  for (int32_t w = 0; w < workers(); ++w) {
    if (owner == worker_ && w != worker_)
      send(w, buffers[static_cast<size_t>(operation.root % own)], bytes_of(operation));
  }
  if (owner != worker_) receive(owner, buffers.front(), bytes_of(operation));
  return run();
}

Status WorkerExchange::gather(const Operation &operation, std::span<void *const> buffers, void *gathered) {
  const auto own = static_cast<int32_t>(buffers.size());
  const int32_t owner = operation.root / own;
  const int64_t bytes = bytes_of(operation);
  clear();
  for (int32_t w = 0; w < workers(); ++w) {
    for (int32_t c = 0; c < own; ++c) {
      if (owner == worker_ && w != worker_) receive(w, at(gathered, (w * own + c) * bytes), bytes);
      if (owner != worker_ && w == worker_) send(owner, buffers[static_cast<size_t>(c)], bytes);
    }
  }
  return run();
}

/// Two phases (Gray, "Notes on Data Base Operating Systems", 1978, section 5.8.3): nobody who has voted decides alone.
Status WorkerExchange::settle() {
  const auto dead = [&] { return is_dead_.load(std::memory_order_seq_cst); };
  const Status given_up = base::cancelled("the group has been aborted");
  std::byte vote{1};
  std::array<std::byte, 1> decision{};
  clear();
  if (worker_ != 0) {
    if (dead()) return given_up;
    send(0, &vote, 1);
    receive(0, decision.data(), 1);
    return run(true, std::min(timeout_ms_, kDecisionMs));
  }
  std::vector<std::byte> &votes = scratch_;
  votes.resize(std::max(votes.size(), names_.size()));
  for (int32_t w = 1; w < workers(); ++w)
    receive(w, &votes[static_cast<size_t>(w)], 1);
  TUTTI_TRY(run(true));
  if (dead()) return given_up;
  clear();
  for (int32_t w = 1; w < workers(); ++w)
    send(w, &vote, 1);
  return run(true);
}

}  // namespace tutti::impl::collective::cluster

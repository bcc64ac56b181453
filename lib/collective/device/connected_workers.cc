// SPDX-License-Identifier: Apache-2.0
#include "collective/device/connected_workers.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "backend/clique.h"
#include "base/hash/checksum.h"

namespace tutti::impl::collective::device {
namespace {

using base::Deadline;
using base::Result;
using base::Status;

/// Between two words while workers connect.
constexpr int64_t kLongestPauseMs = 50;

/// What a worker says, besides the names of its devices.
enum State : int64_t { state_unable = 1, state_able, state_busy, state_ready, state_failed };
/// Places of a worker's words; those of its devices follow.
enum Place : size_t { place_state = 0, place_demands, place_library, place_devices };

/// Positive, so that the maximum with what others leave 0 is it.
int64_t word_of(std::string_view text) { return static_cast<int64_t>(base::fnv1a64(text) >> 2) | 1; }

class Meeting {
 public:
  Meeting(std::vector<std::unique_ptr<Group>> &ranks, std::span<const backend::DeviceRef> devices,
          const DeviceGroupOptions &options, const WorkersOptions &workers)
      : ranks_(ranks),
        devices_(devices),
        options_(options),
        workers_(workers),
        words_of_each_(place_devices + ranks.size()) {}

  Result<WorkersConnection> run();

 private:
  size_t count() const { return workers_.names.size(); }
  size_t own() const { return static_cast<size_t>(workers_.worker); }
  const std::string &name_of(size_t worker) const { return workers_.names[worker]; }
  int64_t &word(size_t worker, size_t place) { return words_[worker * words_of_each_ + place]; }
  std::string key(std::string_view what, size_t worker) const {
    return base::concat(workers_.key_prefix, "devices/", what, "/", worker);
  }

  Status describe();
  Status exchange(const char *label);
  Status compare(Status &unconnected);
  Status compare_devices() const;
  /// What a worker has left in the table.
  Result<std::string> find(std::string_view what, size_t worker) {
    return workers_.table->find(key(what, worker), Deadline::after_ms(options_.timeout_ms),
                                SharedTable::kPatienceAtLimitMs);
  }
  Status leave(std::string_view what, const std::string &text) {
    return workers_.table->put(key(what, own()), text, Deadline::after_ms(options_.timeout_ms), false);
  }
  Status connect();
  Result<std::string> share_id();
  /// This worker's state goes round. Ok while none has failed; `all_ready`: no other word is to come.
  Status tell(State state, const Status &failure, const char *label, bool &all_ready);
  Result<bool> is_connected(backend::Clique &clique) const;

  std::vector<std::unique_ptr<Group>> &ranks_;
  const std::span<const backend::DeviceRef> devices_;
  const DeviceGroupOptions &options_;
  const WorkersOptions &workers_;
  const size_t words_of_each_;
  Status own_;
  backend::CliqueDescription description_;
  std::vector<int64_t> words_;
};

/// What the other workers are told, and read in the table if they ask.
Status Meeting::describe() {
  own_ = workers_.own;
  if (own_.ok()) own_ = check(devices_, ranks_.front()->parts(), options_);
  if (own_.ok()) {
    Result<backend::CliqueDescription> described = backend::Clique::describe(devices_, options_.of_clique());
    own_ = described.status();
    if (described.ok()) description_ = described.take();
  }
  words_.assign(count() * words_of_each_, 0);
  word(own(), place_state) = own_.ok() ? state_able : state_unable;
  word(own(), place_demands) = workers_.is_demanded ? 1 : 0;
  if (!own_.ok()) return leave("why", own_.message());
  word(own(), place_library) = word_of(description_.library);
  for (size_t d = 0; d < description_.devices.size(); ++d)
    word(own(), place_devices + d) = word_of(description_.devices[d]);
  return leave("library", description_.library);
}

/// Words of all workers, and of none twice: the maximum is what was said.
Status Meeting::exchange(const char *label) {
  const auto parts = static_cast<size_t>(ranks_.front()->parts());
  std::vector<std::vector<int64_t>> copies(ranks_.size() * parts, words_);
  std::vector<void *> buffers;
  for (std::vector<int64_t> &copy : copies)
    buffers.push_back(copy.data());
  std::vector<Ticket> tickets;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Operation operation = {.kind = Kind::all_reduce,
                                 .reduction = Reduction::max,
                                 .dtype = tensor::DType::i64,
                                 .buffers = buffers.data() + r * parts,
                                 .count = static_cast<int64_t>(words_.size()),
                                 .label = label};
    TUTTI_ASSIGN(const Ticket ticket, ranks_[r]->begin(operation));
    tickets.push_back(ticket);
  }
  Status first;  // all ranks have given up the buffers before these go
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Status status = ranks_[r]->wait(tickets[r]);
    if (first.ok()) first = status;
  }
  words_ = copies.front();
  return first;
}

/// `unconnected` becomes why the devices of all workers cannot be one clique, by the words that all have.
Status Meeting::compare(Status &unconnected) {
  for (size_t w = 0; w < count(); ++w) {
    if (word(w, place_state) == state_able) continue;
    TUTTI_ASSIGN(const std::string why, find("why", w));
    unconnected = base::unavailable(name_of(w), " reports: ", why).with_detail("worker", std::to_string(w));
    return Status();
  }
  for (size_t w = 1; w < count(); ++w) {
    if (word(w, place_library) == word(0, place_library)) continue;
    TUTTI_ASSIGN(const std::string first, find("library", 0));
    TUTTI_ASSIGN(const std::string other, find("library", w));
    unconnected = base::unavailable(name_of(w), " has ", other, " and ", name_of(0), " has ", first,
                                    ", but connected devices need the same version on all workers")
                      .with_detail("worker", std::to_string(w));
    return Status();
  }
  unconnected = compare_devices();
  return Status();
}

Status Meeting::compare_devices() const {
  std::map<int64_t, std::pair<size_t, size_t>> seen;
  for (size_t w = 0; w < count(); ++w) {
    for (size_t d = 0; d < ranks_.size(); ++d) {
      const auto [known, is_new] = seen.try_emplace(words_[w * words_of_each_ + place_devices + d], w, d);
      if (is_new) continue;
      return base::unimplemented("device ", d, " of ", name_of(w), " and device ", known->second.second, " of ",
                                 name_of(known->second.first), " are the same; connected devices must be different")
          .with_detail("worker", std::to_string(w));
    }
  }
  return Status();
}

Result<WorkersConnection> Meeting::run() {
  TUTTI_TRY(describe());
  TUTTI_TRY(exchange("what devices can be connected"));
  Status unconnected;
  TUTTI_TRY(compare(unconnected));
  if (unconnected.ok()) {
    TUTTI_TRY(connect());
    return WorkersConnection{.unconnected = {}, .library = description_.library};
  }
  for (size_t w = 0; w < count(); ++w) {
    if (word(w, place_demands) == 0) continue;
    return unconnected.wrap(base::concat(name_of(w),
                                         " asks for connected devices, but they cannot be connected (all_reduce "
                                         "automatic and host do not need them)"));
  }
  return WorkersConnection{.unconnected = unconnected, .library = {}};
}

Status Meeting::tell(State state, const Status &failure, const char *label, bool &all_ready) {
  words_.assign(count() * words_of_each_, 0);
  if (state == state_failed) TUTTI_TRY(leave("failure", failure.to_string()));
  word(own(), place_state) = state;
  TUTTI_TRY(exchange(label));
  all_ready = true;
  for (size_t w = 0; w < count(); ++w) {
    all_ready = all_ready && word(w, place_state) == state_ready;
    if (word(w, place_state) != state_failed) continue;
    TUTTI_ASSIGN(const std::string text, find("failure", w));
    return base::unavailable(name_of(w), " could not connect its devices to those of the other workers: ", text,
                             " (all_reduce host does not need that)")
        .with_detail("worker", std::to_string(w));
  }
  return Status();
}

Result<std::string> Meeting::share_id() {
  Result<std::string> id = std::string();
  Status failure;
  if (own() == 0) {
    id = backend::Clique::create_id(*devices_.front());
    failure = id.ok() ? leave("id", *id) : id.status();
  }
  bool all_ready = false;
  TUTTI_TRY(tell(failure.ok() ? state_ready : state_failed, failure, "an id for devices", all_ready));
  return own() == 0 ? std::move(id) : find("id", 0);
}

Result<bool> Meeting::is_connected(backend::Clique &clique) const {
  for (int32_t r = 0; r < clique.size(); ++r) {
    TUTTI_ASSIGN(const bool is_ready, clique.poll(r));
    if (!is_ready) return false;
  }
  return true;
}

Status Meeting::connect() {
  TUTTI_ASSIGN(std::string id, share_id());
  Result<std::unique_ptr<backend::Clique>> clique = backend::Clique::join(
      devices_, options_.of_clique(),
      {.id = std::move(id), .first_rank = ranks_.front()->rank(), .rank_count = ranks_.front()->size()});
  const Deadline deadline = Deadline::after_ms(options_.timeout_ms);
  const auto wait_for_all = [&]() -> Status {
    bool all_ready = false;
    for (int64_t pause_ms = 1; !all_ready; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
      Result<bool> is_ready = clique.ok() ? is_connected(**clique) : Result<bool>(clique.status());
      if (is_ready.ok() && !*is_ready && deadline.passed())
        is_ready = base::deadline_exceeded("connecting devices: not ready in ", options_.timeout_ms, " ms");
      const State state = !is_ready.ok() ? state_failed : *is_ready ? state_ready : state_busy;
      TUTTI_TRY(tell(state, is_ready.status(), "connecting devices", all_ready));
      if (!all_ready) std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    }
    return ranks_.front()->watch();
  };
  if (const Status connected = wait_for_all(); !connected.ok()) {
    if (clique.ok()) (*clique)->abort();
    return connected;
  }
  TUTTI_ASSIGN(ranks_, connect_clique(std::move(ranks_), devices_, clique.take(), options_));
  return Status();
}

}  // namespace

Result<WorkersConnection> connect_workers(std::vector<std::unique_ptr<Group>> &ranks,
                                          std::span<const backend::DeviceRef> devices,
                                          const DeviceGroupOptions &options, const WorkersOptions &workers) {
  if (ranks.empty() || ranks.size() != devices.size()) {
    return base::invalid_argument("a group of ", ranks.size(), " ranks on ", devices.size(), " devices");
  }
  for (const auto &rank : ranks)
    rank->set_cancel(workers.cancel);
  Result<WorkersConnection> made = Meeting(ranks, devices, options, workers).run();
  for (const auto &rank : ranks) {
    if (rank == nullptr) continue;
    rank->set_cancel(nullptr);
    // Who leaves first may interrupt the last words of others, and these look for the cause.
    if (!made.ok()) rank->abort(made.status());
  }
  return made;
}

}  // namespace tutti::impl::collective::device

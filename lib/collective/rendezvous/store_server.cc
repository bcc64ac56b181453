// SPDX-License-Identifier: Apache-2.0
#include "collective/rendezvous/store_server.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/trace.h"

namespace tutti::impl::collective::rendezvous {

using base::Deadline;
using base::Result;
using base::Status;

namespace {

constexpr int kPollMs = 50;
// Values of so many gatherings are kept.
constexpr uint32_t kGatheringsKept = 8;

bool is_loopback(std::string_view host) { return host.starts_with("127.") || host == "::1"; }

}  // namespace

struct StoreServer::Connection {
  enum class Waiting { nothing, value, gathering };
  /// What it has to say next.
  enum class Stage { magic, proof, frames };

  Socket socket;
  std::string host;
  std::string input, output;
  Stage stage = Stage::magic;
  std::string nonce;                       // that the server has sent it
  std::string_view strange;                // why it is dropped before it has proved anything
  bool has_greeted = false, ends = false;  // ends: once the output is sent
  int32_t rank = -1;
  uint32_t replicas = 0;
  uint32_t gathering = 0;  // that it was a member of last
  Waiting waiting = Waiting::nothing;
  std::string key;       // that is waited for
  Deadline deadline;     // of the wait, or of the hello
  int64_t since_ns = 0;  // the wait for others

  bool has_proved() const { return stage == Stage::frames; }
  /// That it may have sent and that was not looked at; one more is too many.
  size_t most_input() const {
    if (stage == Stage::magic) return kMagic.size() + 1;
    return stage == Stage::proof ? kAnswerBytes + 1 : kMostBytes + FrameHead::kBytes;
  }
  void answer(MessageType type, std::string_view body) {
    waiting = Waiting::nothing;
    output += frame(type, body);
  }
};

Result<std::unique_ptr<StoreServer>> StoreServer::start(StoreServerOptions options) {
  TUTTI_ASSIGN(Socket listener, Socket::listen(options.address));
  std::unique_ptr<StoreServer> server(new StoreServer(std::move(options), std::move(listener)));
  StoreServer *const self = server.get();
  TUTTI_ASSIGN(server->thread_, base::Thread::start("tutti-meet", [self] { self->serve(); }));
  return server;
}

StoreServer::StoreServer(StoreServerOptions options, Socket listener)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      port_(listener_.local_port()),
      strangers_(options_.warn) {}

StoreServer::~StoreServer() {
  closing_.store(true, std::memory_order_seq_cst);
  thread_.join();
}

void StoreServer::serve() {
  while (!closing_.load(std::memory_order_seq_cst)) {
    wait_for_events();
    accept_all();
    keep_those_that(&StoreServer::read_input);
    answer_waiting();
    keep_those_that(&StoreServer::advance);
  }
}

void StoreServer::keep_those_that(bool (StoreServer::*go_on)(Connection &)) {
  std::erase_if(connections_, [&](Connection &connection) {
    if ((this->*go_on)(connection)) return false;
    has_gone(connection);
    return true;
  });
}

void StoreServer::has_gone(const Connection &connection) {
  if (!connection.strange.empty() || !connection.has_proved()) {
    const bool is_late = connection.deadline.passed();
    strangers_.dropped(connection.host, !connection.strange.empty() ? connection.strange
                                        : is_late                   ? "did not prove in time that it belongs to the job"
                                                  : "ended before it proved that it belongs to the job");
  }
  if (connection.gathering == 0) return;
  (void)store(base::concat(connection.gathering, "/gone/", connection.rank), "");
}

void StoreServer::wait_for_events() {
  std::vector<pollfd> pollers{{listener_.descriptor(), POLLIN, 0}};
  for (const Connection &connection : connections_) {
    const auto events = static_cast<short>(connection.output.empty() ? POLLIN : POLLIN | POLLOUT);
    pollers.push_back({connection.socket.descriptor(), events, 0});
  }
  poll(pollers.data(), pollers.size(), kPollMs);
}

void StoreServer::accept_all() {
  for (;;) {
    Socket socket = listener_.accept();
    if (!socket.is_valid()) return;
    drop_the_oldest_unproved();
    Connection &connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.host = connection.socket.peer_host();
    connection.deadline = Deadline::after_ms(options_.hello_timeout_ms);
  }
}

/// Where there are too many: one who belongs to the job proves it at once, and who does not may stay as long as it can.
void StoreServer::drop_the_oldest_unproved() {
  const auto is_unproved = [](const Connection &connection) { return !connection.has_proved(); };
  const auto count = std::count_if(connections_.begin(), connections_.end(), is_unproved);
  if (static_cast<size_t>(count) < most_connections()) return;
  const auto oldest = std::find_if(connections_.begin(), connections_.end(), is_unproved);
  oldest->strange = "was one of too many connections without a proof that they belong to the job";
  has_gone(*oldest);
  connections_.erase(oldest);
}

bool StoreServer::advance(Connection &connection) {
  if (!connection.output.empty()) {
    const int64_t sent = connection.socket.send_some(connection.output);
    if (sent < 0) return false;
    connection.output.erase(0, static_cast<size_t>(sent));
  }
  if (!connection.has_greeted && connection.deadline.passed()) return false;
  return !connection.ends || !connection.output.empty();
}

bool StoreServer::read_input(Connection &connection) {
  std::array<char, 16384> bytes{};
  // No more than one message is buffered: who sends faster waits.
  while (connection.input.size() < connection.most_input()) {
    const size_t room = std::min(bytes.size(), connection.most_input() - connection.input.size());
    const int64_t received = connection.socket.receive_some(bytes.data(), room);
    if (received < 0) return false;
    if (received == 0) break;
    connection.input.append(bytes.data(), static_cast<size_t>(received));
  }
  return handle_input(connection);
}

bool StoreServer::handle_input(Connection &connection) {
  switch (connection.stage) {
    case Connection::Stage::magic:
      return handle_magic(connection);
    case Connection::Stage::proof:
      return handle_proof(connection);
    case Connection::Stage::frames:
      return handle_frames(connection);
  }
  return false;
}

bool StoreServer::drop_as_stranger(Connection &connection, std::string_view why) {
  connection.strange = why;
  return false;
}

bool StoreServer::handle_magic(Connection &connection) {
  const size_t known = std::min(connection.input.size(), kMagic.size());
  if (connection.input.compare(0, known, kMagic.substr(0, known)) != 0 || connection.input.size() > kMagic.size())
    return drop_as_stranger(connection, "does not use the protocol of workers");
  if (known < kMagic.size()) return true;
  Result<std::string> nonce = make_nonce();
  if (!nonce.ok()) return drop_as_stranger(connection, "needs a random number, which could not be generated");
  connection.nonce = nonce.take();
  connection.input.clear();
  connection.output.append(kServerMagic).append(connection.nonce);
  connection.stage = Connection::Stage::proof;
  return true;
}

bool StoreServer::handle_proof(Connection &connection) {
  if (connection.ends || connection.input.size() < kAnswerBytes) return true;
  if (connection.input.size() > kAnswerBytes)
    return drop_as_stranger(connection, "does not use the protocol of workers");
  const std::string nonce = connection.input.substr(0, kNonceBytes);
  const bool is_proved = proves(std::string_view(connection.input).substr(kNonceBytes), options_.secret, kClientRole,
                                connection.nonce, nonce);
  connection.input.clear();
  if (!is_proved) {
    (void)drop_as_stranger(connection, "has a different job secret");
    other_secret_from_ = connection.host;
    connection.output.append(kVerdictBytes, '\0');
    connection.ends = true;
    return true;
  }
  const auto proved = std::count_if(connections_.begin(), connections_.end(),
                                    [](const Connection &other) { return other.has_proved(); });
  if (static_cast<size_t>(proved) >= most_connections())
    return drop_as_stranger(connection, "was one of too many connections of the job");
  connection.output.push_back(1);
  connection.output += prove(options_.secret, kServerRole, connection.nonce, nonce);
  connection.stage = Connection::Stage::frames;
  return true;
}

bool StoreServer::handle_frames(Connection &connection) {
  while (connection.input.size() >= FrameHead::kBytes && connection.waiting == Connection::Waiting::nothing &&
         !connection.ends) {
    const auto head = parse_head(connection.input);
    if (!head) return false;
    if (connection.input.size() < FrameHead::kBytes + head->length) return true;
    const std::string body = connection.input.substr(FrameHead::kBytes, head->length);
    connection.input.erase(0, FrameHead::kBytes + head->length);
    if (!handle(connection, head->type, body)) return false;
  }
  return true;
}

bool StoreServer::handle(Connection &connection, MessageType type, std::string_view body) {
  if (type == MessageType::hello) return !connection.has_greeted && handle_hello(connection, body);
  if (!connection.has_greeted) return false;
  if (type == MessageType::set) return handle_set(connection, body, false);
  if (type == MessageType::set_if_absent) return handle_set(connection, body, true);
  if (type == MessageType::get) return handle_get(connection, body);
  return type == MessageType::join && handle_join(connection, body);
}

bool StoreServer::refuse(Connection &connection, std::string reason) {
  if (connection.rank >= 0) turned_away_[connection.rank] = reason;
  connection.answer(MessageType::refused, reason);
  connection.ends = true;
  return true;
}

bool StoreServer::handle_hello(Connection &connection, std::string_view body) {
  BodyReader reader(body);
  const auto version = reader.u32();
  if (!version) return false;
  if (*version != kProtocolVersion) {
    return refuse(connection,
                  base::concat("it uses version ", *version, " of the rendezvous protocol, but worker 0 uses version ",
                               kProtocolVersion));
  }
  const auto world_size = reader.u32(), rank = reader.u32(), replicas = reader.u32();
  const auto build = reader.text();
  if (!world_size || !rank || !replicas || !build) return false;
  if (*rank < static_cast<uint32_t>(options_.world_size)) connection.rank = static_cast<int32_t>(*rank);
  if (*world_size != static_cast<uint32_t>(options_.world_size)) {
    return refuse(connection, base::concat("worker ", *rank, " expects ", *world_size,
                                           " workers, but worker 0 expects ", options_.world_size));
  }
  if (connection.rank < 0) return refuse(connection, base::concat("there is no worker ", *rank));
  if (*build != options_.build_id) {
    return refuse(connection,
                  base::concat("worker ", *rank, " has build id ", base::quoted(*build), ", but worker 0 has ",
                               base::quoted(options_.build_id), ": run the same build everywhere"));
  }
  connection.replicas = *replicas;
  connection.has_greeted = true;
  connection.deadline = Deadline::never();
  connection.answer(MessageType::ok, "");
  return true;
}

bool StoreServer::handle_set(Connection &connection, std::string_view body, bool only_if_absent) {
  BodyReader reader(body);
  const auto key = reader.text();
  if (!key) return false;
  const std::string_view value = reader.rest();
  const auto found = values_.find(std::string(*key));
  if (found != values_.end() && only_if_absent) {
    connection.answer(MessageType::ok, "");
    return true;
  }
  if (!store(std::string(*key), value)) return refuse(connection, "the rendezvous has no room for more values");
  connection.answer(MessageType::ok, "");
  return true;
}

bool StoreServer::store(const std::string &key, std::string_view value) {
  const auto found = values_.find(key);
  const uint64_t old_bytes = found == values_.end() ? 0 : key.size() + found->second.size();
  const uint64_t bytes = kept_bytes_ - old_bytes + key.size() + value.size();
  if (bytes > kMostBytesKept) return false;
  kept_bytes_ = bytes;
  values_[key] = value;
  return true;
}

bool StoreServer::handle_get(Connection &connection, std::string_view body) {
  BodyReader reader(body);
  const auto limit = reader.u32();
  const auto key = reader.text();
  if (!limit || !key) return false;
  connection.key = *key;
  connection.deadline = Deadline::after_ms(*limit);
  connection.waiting = Connection::Waiting::value;
  return true;
}

bool StoreServer::handle_join(Connection &connection, std::string_view body) {
  BodyReader reader(body);
  const auto limit = reader.u32();
  if (!limit) return false;
  for (Connection &other : connections_) {
    if (other.waiting != Connection::Waiting::gathering || other.rank != connection.rank) continue;
    refuse(other, base::concat("another process has joined as worker ", connection.rank));
  }
  turned_away_.erase(connection.rank);
  connection.deadline = Deadline::after_ms(*limit);
  connection.since_ns = base::now_ns();
  connection.waiting = Connection::Waiting::gathering;
  return true;
}

// ---- answers ----

void StoreServer::answer_waiting() {
  complete_gathering();
  for (Connection &connection : connections_) {
    if (connection.waiting == Connection::Waiting::nothing) continue;
    if (connection.waiting == Connection::Waiting::value && answer_get(connection)) continue;
    if (!connection.deadline.passed()) continue;
    const bool joins = connection.waiting == Connection::Waiting::gathering;
    if (joins) left_ns_[connection.rank] = base::now_ns();
    connection.answer(MessageType::late, joins ? missing_ranks(connection) : std::string());
  }
}

bool StoreServer::answer_get(Connection &connection) {
  const auto found = values_.find(connection.key);
  if (found == values_.end()) return false;
  connection.answer(MessageType::ok, found->second);
  return true;
}

/// "rank<tab>why it was turned away<newline>" for each one that has not joined, and without a rank who else called.
std::string StoreServer::missing_ranks(const Connection &waiting) const {
  std::string missing;
  for (int32_t rank = 0; rank < options_.world_size; ++rank) {
    const bool joins = std::any_of(connections_.begin(), connections_.end(), [&](const Connection &connection) {
      return connection.waiting == Connection::Waiting::gathering && connection.rank == rank;
    });
    const auto left = left_ns_.find(rank);
    const bool was_there = left != left_ns_.end() && left->second >= waiting.since_ns;
    const auto why = turned_away_.find(rank);
    if (!joins && !was_there) missing += base::concat(rank, "\t", why == turned_away_.end() ? "" : why->second, "\n");
  }
  if (!other_secret_from_.empty()) {
    missing +=
        base::concat("\ta process at ", other_secret_from_, " was rejected because it has a different job secret ",
                     "(option job_secret, or the environment variable TUTTI_JOB_SECRET)\n");
  }
  return missing;
}

void StoreServer::complete_gathering() {
  std::vector<Connection *> members(static_cast<size_t>(options_.world_size), nullptr);
  for (Connection &connection : connections_) {
    if (connection.waiting == Connection::Waiting::gathering)
      members[static_cast<size_t>(connection.rank)] = &connection;
  }
  if (std::find(members.begin(), members.end(), nullptr) != members.end()) return;
  ++gathering_;
  forget_old_values();
  turned_away_.clear();
  other_secret_from_.clear();
  left_ns_.clear();
  // Worker 0, and who shares its machine, is where those of other machines have reached it.
  std::string own;
  for (const Connection *member : members) {
    if (own.empty() || is_loopback(own)) own = member->socket.local_host();
  }
  std::string body;
  put_u32(body, gathering_);
  for (const Connection *member : members) {
    const std::string peer = member->socket.peer_host();
    put_u32(body, member->replicas);
    put_text(body, member == members.front() || is_loopback(peer) ? own : peer);
  }
  for (Connection *member : members) {
    member->gathering = gathering_;
    member->answer(MessageType::ok, body);
  }
}

void StoreServer::forget_old_values() {
  std::erase_if(values_, [&](const auto &entry) {
    const auto number = base::parse_integer(entry.first.substr(0, entry.first.find('/')));
    const bool is_old = number && *number + kGatheringsKept <= gathering_;
    if (is_old) kept_bytes_ -= entry.first.size() + entry.second.size();
    return is_old;
  });
}

}  // namespace tutti::impl::collective::rendezvous

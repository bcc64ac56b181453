// SPDX-License-Identifier: Apache-2.0
#include "collective/rendezvous/store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/text.h"

namespace tutti::impl::collective::rendezvous {

using base::Deadline;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kRetryMs = 50;
// For the words that a connection begins with.
constexpr int64_t kGreetingMs = 5000;

/// As the messages have it.
uint32_t limit_of(const Limits &limits) {
  return static_cast<uint32_t>(std::min<int64_t>(limits.deadline.remaining_ms(), INT32_MAX));
}

Limits with_patience(const Limits &limits, int64_t patience_ms) {
  if (limits.deadline.is_never()) return limits;
  return {Deadline::after_ms(limits.deadline.remaining_ms() + patience_ms), limits.cancel};
}

/// Of a worker whose secret is not worker 0's. Says whether it has one at all, and nothing else of it.
Status secrets_differ(const StoreOptions &options, std::string_view who) {
  return base::failed_precondition(who, " at ", options.addresses.front(), " has a different job secret than worker ",
                                   options.rank, options.secret.empty() ? ", which has none" : "",
                                   ": all workers of a job need the same one (option job_secret, or the environment ",
                                   "variable TUTTI_JOB_SECRET)")
      .with_detail("rank", "0")
      .with_detail("address", options.addresses.front());
}

/// Both sides prove that they know the secret; `nonce`: the server's.
Status prove_to_each_other(const Socket &socket, const StoreOptions &options, std::string_view nonce,
                           const Limits &limits) {
  TUTTI_ASSIGN(const std::string own, make_nonce());
  TUTTI_TRY(socket.send_all(own + prove(options.secret, kClientRole, nonce, own), limits));
  std::array<char, kVerdictBytes> verdict{};
  TUTTI_TRY(socket.receive_all(verdict.data(), verdict.size(), limits));
  const std::string_view proof(verdict.data() + 1, kProofBytes);
  if (verdict.front() == 0) return secrets_differ(options, "worker 0");
  return proves(proof, options.secret, kServerRole, nonce, own) ? Status()
                                                                : secrets_differ(options, "the process that listens");
}

/// A connection to a rendezvous. One attempt has no more than a second to connect: the machine may be up before its
/// name or network is.
Result<Socket> reach(const StoreOptions &options, const Limits &limits) {
  const std::string &address = options.addresses.front();
  const auto within = [&](int64_t ms) {
    return Limits{earlier(limits.deadline, Deadline::after_ms(ms)), limits.cancel};
  };
  TUTTI_ASSIGN(Socket socket, Socket::connect(address, within(1000)));
  const Limits answer = within(kGreetingMs);
  std::array<char, kGreetingBytes> greeting{};
  Status status = socket.send_all(kMagic, answer);
  if (status.ok()) status = socket.receive_all(greeting.data(), greeting.size(), answer);
  const std::string_view said(greeting.data(), greeting.size());
  if (status.ok() && said.starts_with(kServerMagic)) {
    status = prove_to_each_other(socket, options, said.substr(kServerMagic.size()), answer);
    if (status.ok()) return socket;
    if (status.code() == base::Code::failed_precondition) return status;
  }
  const std::string what =
      base::concat("the process that listens at ", address, " does not use the rendezvous protocol");
  return status.ok() ? base::unavailable(what) : status.wrap(base::Code::unavailable, what);
}

}  // namespace

std::string worker_name(const std::vector<std::string> &addresses, int32_t rank) {
  const auto position = static_cast<size_t>(rank);
  if (position >= addresses.size() || addresses[position].empty()) return base::concat("worker ", rank);
  return base::concat("worker ", rank, " (", addresses[position], ")");
}

Result<std::unique_ptr<Store>> Store::connect(const StoreOptions &options, const Limits &limits) {
  Status failure = base::unavailable("there was no time for an attempt");
  for (;;) {
    Result<Socket> socket = reach(options, limits);
    if (socket.ok()) {
      std::unique_ptr<Store> store(new Store(options, socket.take()));
      TUTTI_TRY(store->greet(limits));
      return store;
    }
    TUTTI_TRY(base::check(limits.cancel));
    if (socket.code() == base::Code::failed_precondition) return socket.status();
    // That the time is up says less than what went before.
    if (socket.code() != base::Code::deadline_exceeded) failure = socket.status();
    if (limits.deadline.passed()) {
      return failure
          .wrap(base::Code::deadline_exceeded,
                base::concat(worker_name(options.addresses, 0), " cannot be reached by worker ", options.rank))
          .with_detail("rank", "0")
          .with_detail("address", options.addresses.front());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(kRetryMs, limits.deadline.remaining_ms() + 1)));
  }
}

Status Store::greet(const Limits &limits) {
  std::string body;
  put_u32(body, kProtocolVersion);
  put_u32(body, static_cast<uint32_t>(options_.addresses.size()));
  put_u32(body, static_cast<uint32_t>(options_.rank));
  put_u32(body, static_cast<uint32_t>(options_.replicas));
  put_text(body, options_.build_id);
  TUTTI_ASSIGN(const Answer answer, ask(frame(MessageType::hello, body), limits));
  return answer.type == MessageType::ok ? Status() : turned_away(answer);
}

Status Store::turned_away(const Answer &answer) const {
  return base::failed_precondition(worker_name(options_.addresses, 0), " has rejected this worker: ", answer.body)
      .with_detail("rank", std::to_string(options_.rank));
}

Result<Store::Answer> Store::ask(std::string_view bytes, const Limits &limits) {
  const std::lock_guard lock(mutex_);
  const auto exchange = [&]() -> Result<Answer> {
    if (!socket_.is_valid()) return base::unavailable("the connection has ended");
    TUTTI_TRY(socket_.send_all(bytes, limits));
    char head_bytes[FrameHead::kBytes];
    TUTTI_TRY(socket_.receive_all(head_bytes, sizeof(head_bytes), limits));
    const auto head = parse_head({head_bytes, sizeof(head_bytes)});
    if (!head) return base::unavailable("the answer is not one of the rendezvous protocol");
    Answer answer{head->type, std::string(head->length, '\0')};
    TUTTI_TRY(socket_.receive_all(answer.body.data(), answer.body.size(), limits));
    return answer;
  };
  Result<Answer> answer = exchange();
  if (answer.ok()) return answer;
  socket_ = Socket();
  if (base::is_interrupt(answer.status()) && limits.cancel != nullptr && !limits.cancel->check().ok())
    return answer.status();
  return answer.status()
      .wrap(base::concat("worker ", options_.rank, " has lost the connection to the rendezvous of ",
                         worker_name(options_.addresses, 0)))
      .with_detail("rank", "0")
      .with_detail("address", options_.addresses.front());
}

Status Store::missing(std::string_view listed) const {
  std::string names, ranks, strangers;
  for (const std::string &line : base::split(listed, '\n')) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    const auto rank = static_cast<int32_t>(base::parse_integer(line.substr(0, tab)).value_or(-1));
    const std::string why = line.substr(tab + 1);
    if (tab == 0) strangers = base::concat("; ", why);
    if (tab == 0) continue;
    names += (names.empty() ? "" : ", ") + worker_name(options_.addresses, rank);
    if (!why.empty()) names += base::concat(" (rejected: ", why, ")");
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return base::deadline_exceeded("worker ", options_.rank, " timed out waiting for ",
                                 names.empty() ? "other workers" : names, strangers)
      .with_detail("rank", ranks);
}

Result<Gathering> Store::join(const Limits &limits) {
  std::string body;
  put_u32(body, limit_of(limits));
  TUTTI_ASSIGN(const Answer answer,
               ask(frame(MessageType::join, body), with_patience(limits, SharedTable::kPatienceAtLimitMs)));
  if (answer.type == MessageType::late) return missing(answer.body);
  if (answer.type != MessageType::ok) return turned_away(answer);
  TUTTI_ASSIGN(Gathering all, parse_gathering(answer.body));
  for (size_t rank = 1; rank < all.members.size(); ++rank) {
    if (all.members[rank].replicas == all.members.front().replicas) continue;
    return base::failed_precondition(worker_name(options_.addresses, static_cast<int32_t>(rank)), " trains on ",
                                     all.members[rank].replicas, " devices and ", worker_name(options_.addresses, 0),
                                     " on ", all.members.front().replicas, ": every worker needs the same number")
        .with_detail("rank", std::to_string(rank));
  }
  return all;
}

Result<Gathering> Store::parse_gathering(std::string_view body) const {
  BodyReader reader(body);
  Gathering all;
  const auto number = reader.u32();
  for (size_t rank = 0; number && rank < options_.addresses.size(); ++rank) {
    const auto replicas = reader.u32();
    const auto host = reader.text();
    if (!replicas || !host) break;
    all.members.push_back({static_cast<int32_t>(*replicas), std::string(*host)});
  }
  if (all.members.size() != options_.addresses.size()) return base::unavailable("worker 0 has listed too few workers");
  all.number = *number;
  return all;
}

Status Store::set(std::string_view key, std::string_view value, const Limits &limits, bool only_if_absent) {
  if (key.size() + value.size() + 8 > kMostBytes) {
    return base::invalid_argument("the value of ", key, " has ", value.size(), " bytes, at most ", kMostBytes);
  }
  std::string body;
  put_text(body, key);
  body += value;
  const MessageType type = only_if_absent ? MessageType::set_if_absent : MessageType::set;
  TUTTI_ASSIGN(const Answer answer, ask(frame(type, body), limits));
  return answer.type == MessageType::ok ? Status() : turned_away(answer);
}

Result<std::string> Store::get(std::string_view key, const Limits &limits, int64_t patience_ms) {
  std::string body;
  put_u32(body, limit_of(limits));
  put_text(body, key);
  TUTTI_ASSIGN(Answer answer, ask(frame(MessageType::get, body), with_patience(limits, patience_ms)));
  if (answer.type == MessageType::ok) return std::move(answer.body);
  if (answer.type != MessageType::late) return turned_away(answer);
  return base::not_found("worker ", options_.rank, " timed out waiting for the key ", base::quoted(key));
}

}  // namespace tutti::impl::collective::rendezvous

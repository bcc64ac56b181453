// SPDX-License-Identifier: Apache-2.0
//
// Where the workers of a cluster meet: worker 0 serves a table of keys and values and a gathering point. One thread
// serves all connections; nothing that a client sends costs more than bounded time and memory. A client proves first
// that it knows the secret of the job, in a limited time; of those that have not, only so many are kept, the newest.
//
//   TUTTI_ASSIGN(auto server, StoreServer::start({.address = "a:2222", .world_size = 2, .build_id = build_id()}));
//
// A gathering is complete when each of the workers 0 .. world_size-1 has a connection that joins. It gets a number of
// its own, so that workers that meet again, after an error or a restart of some, never read what was meant for an
// earlier one. When the connection of one of its members ends, the key "<number>/gone/<rank>" appears, with no value.
//
// Threads: the object belongs to one; the server's own thread ends with it.
#ifndef TUTTI_COLLECTIVE_RENDEZVOUS_STORE_SERVER_H_
#define TUTTI_COLLECTIVE_RENDEZVOUS_STORE_SERVER_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "collective/rendezvous/message.h"
#include "collective/rendezvous/socket.h"
#include "collective/rendezvous/strangers.h"

namespace tutti::impl::collective::rendezvous {

struct StoreServerOptions {
  std::string address;  ///< "host:port"; port 0 takes a free one
  int32_t world_size = 1;
  std::string build_id;  ///< whoever has another one is turned away
  /// Of the job; empty for none. Who has another one is turned away.
  std::string secret;
  /// For all that a connection begins with, up to the hello.
  int64_t hello_timeout_ms = 10000;
  /// Called by the server's thread for each address from which a stranger was dropped, once (strangers.h).
  Warn warn;
};

class StoreServer {
 public:
  static base::Result<std::unique_ptr<StoreServer>> start(StoreServerOptions options);
  ~StoreServer();

  int32_t port() const { return port_; }

 private:
  struct Connection;

  StoreServer(StoreServerOptions options, Socket listener);
  void serve();
  void wait_for_events();
  void accept_all();
  size_t most_connections() const { return static_cast<size_t>(options_.world_size) * 4 + 16; }
  void drop_the_oldest_unproved();
  /// Drops connections for which it is false.
  void keep_those_that(bool (StoreServer::*go_on)(Connection &));
  void has_gone(const Connection &connection);
  /// False: the connection ends.
  bool advance(Connection &connection);
  bool read_input(Connection &connection);
  bool handle_input(Connection &connection);
  bool handle_frames(Connection &connection);
  bool handle_magic(Connection &connection);
  bool handle_proof(Connection &connection);
  /// False.
  bool drop_as_stranger(Connection &connection, std::string_view why);
  bool handle(Connection &connection, MessageType type, std::string_view body);
  bool handle_hello(Connection &connection, std::string_view body);
  bool handle_set(Connection &connection, std::string_view body, bool only_if_absent);
  /// False: there is no room.
  bool store(const std::string &key, std::string_view value);
  bool handle_get(Connection &connection, std::string_view body);
  bool handle_join(Connection &connection, std::string_view body);
  bool refuse(Connection &connection, std::string reason);
  void answer_waiting();
  bool answer_get(Connection &connection);
  void complete_gathering();
  /// Who was not there while this connection waited.
  std::string missing_ranks(const Connection &waiting) const;
  void forget_old_values();

  const StoreServerOptions options_;
  const Socket listener_;
  const int32_t port_;
  std::list<Connection> connections_;
  std::map<std::string, std::string> values_;
  uint64_t kept_bytes_ = 0;
  std::map<int32_t, std::string> turned_away_;  // why, by rank, since the last gathering
  std::string other_secret_from_;               // the last address with one, since the last gathering
  Strangers strangers_;
  std::map<int32_t, int64_t> left_ns_;  // when their waits were over in vain, by rank, since the last gathering
  uint32_t gathering_ = 0;
  std::atomic<bool> closing_{false};
  base::Thread thread_;
};

}  // namespace tutti::impl::collective::rendezvous

#endif  // TUTTI_COLLECTIVE_RENDEZVOUS_STORE_SERVER_H_

// SPDX-License-Identifier: Apache-2.0
//
// What goes over the connections of a rendezvous. Each side begins with a magic word, the client first; then both prove
// that they know the secret of the job (collective/challenge.h), and from then on each request has one answer. Numbers
// are little-endian.
//
//   "tutti-r3"                              ->  "tutti-k3", nonce of the server
//   nonce of the client, its proof          ->  1, proof of the server | 0, zeros: the client's is wrong
//   hello                                   ->  ok | refused(reason)
//   set(key, value) | set_if_absent(..)     ->  ok
//   get(limit in ms, key)                   ->  ok(value) | late()         waits for the key
//   join(limit in ms)                       ->  ok(gathering) | late(ranks that are missing) | refused(reason)
//
// frame = u32 type, u32 length of the body, body. A length above kMostBytes, an unknown type and a body that ends too
// early end the connection: hostile bytes cost no more than that. Whoever has not proved anything says so many bytes as
// are above and no more: nothing of it is parsed or kept. A client says no more than its word until the server has said
// the other: the port may be another's, of a connection of Gloo say, for which a hello would be a message.
#ifndef TUTTI_COLLECTIVE_RENDEZVOUS_MESSAGE_H_
#define TUTTI_COLLECTIVE_RENDEZVOUS_MESSAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collective/challenge.h"

namespace tutti::impl::collective::rendezvous {

inline constexpr std::string_view kMagic = "tutti-r3", kServerMagic = "tutti-k3";
inline constexpr uint32_t kProtocolVersion = 3;
/// Of whom a proof is, as challenge.h has it.
inline constexpr std::string_view kClientRole = "rendezvous client", kServerRole = "rendezvous server";
/// Of a body, and of all values that a server keeps.
inline constexpr uint32_t kMostBytes = 1 << 20;
inline constexpr uint64_t kMostBytesKept = uint64_t{64} << 20;

/// What the server says first, what the client answers with, and what the server makes of it.
inline constexpr size_t kGreetingBytes = 8 + kNonceBytes, kAnswerBytes = kNonceBytes + kProofBytes,
                        kVerdictBytes = 1 + kProofBytes;
static_assert(kMagic.size() == 8 && kServerMagic.size() == 8);

enum class MessageType : uint32_t { hello = 1, set, set_if_absent, get, join, ok, late, refused };

/// Appends to a body.
void put_u32(std::string &body, uint32_t value);
void put_text(std::string &body, std::string_view text);
/// A whole frame.
std::string frame(MessageType type, std::string_view body);

/// Takes a body apart; nothing when it ends too early.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}
  std::optional<uint32_t> u32();
  std::optional<std::string_view> text();
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// The head of a frame.
struct FrameHead {
  static constexpr size_t kBytes = 8;
  MessageType type;
  uint32_t length;
};
/// Of kBytes bytes; nothing for a type or a length that cannot be.
std::optional<FrameHead> parse_head(std::string_view bytes);

}  // namespace tutti::impl::collective::rendezvous

#endif  // TUTTI_COLLECTIVE_RENDEZVOUS_MESSAGE_H_

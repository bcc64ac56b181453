// SPDX-License-Identifier: Apache-2.0
//
// How two workers prove to each other that they know the secret of their job, which itself is never sent: each sends
// bytes that nobody could foretell (a nonce), and answers with a code of both nonces under the secret (HMAC-SHA-256).
// What is proved includes the prover's role, so an answer cannot be sent back as one's own.
//
//   TUTTI_ASSIGN(const std::string nonce, make_nonce());
//   const std::string proof = prove(secret, "rendezvous client", theirs, nonce);
//   if (!proves(received, secret, "rendezvous server", theirs, nonce)) ...
//
// Without a secret the same is done with an empty one: who merely tries ports does not know how.
#ifndef TUTTI_COLLECTIVE_CHALLENGE_H_
#define TUTTI_COLLECTIVE_CHALLENGE_H_

#include <functional>
#include <string>
#include <string_view>

#include "base/hash/sha256.h"
#include "base/status.h"

namespace tutti::impl::collective {

inline constexpr size_t kNonceBytes = 32, kProofBytes = 32;

/// Takes a line for the log. May be empty.
using Warn = std::function<void(const std::string &line)>;

inline base::Result<std::string> make_nonce() { return base::random_bytes(kNonceBytes); }

/// Roles have no NUL, nonces kNonceBytes bytes each: no two messages are alike.
inline std::string prove(std::string_view secret, std::string_view role, std::string_view first,
                         std::string_view second) {
  std::string message(role);
  message.push_back('\0');
  message.append(first).append(second);
  return std::string(base::as_text(base::hmac_sha256(secret, message)));
}

inline bool proves(std::string_view proof, std::string_view secret, std::string_view role, std::string_view first,
                   std::string_view second) {
  return base::equal_in_constant_time(proof, prove(secret, role, first, second));
}

}  // namespace tutti::impl::collective

#endif  // TUTTI_COLLECTIVE_CHALLENGE_H_

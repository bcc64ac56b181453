// SPDX-License-Identifier: Apache-2.0
//
// SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012): 64 bits of a text under a secret key. For hash tables over what
// strangers wrote: without the key nobody can choose texts that all fall into one bucket.
//
// Threads: values without hidden state.
#ifndef TUTTI_BASE_HASH_KEYED_HASH_H_
#define TUTTI_BASE_HASH_KEYED_HASH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti::impl::base {

class KeyedHash {
 public:
  /// A key that nobody knows.
  KeyedHash();
  /// The key's bytes, the first one lowest.
  KeyedHash(uint64_t low, uint64_t high) : low_(low), high_(high) {}

  uint64_t operator()(std::string_view text) const;

 private:
  uint64_t low_;
  uint64_t high_;
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_HASH_KEYED_HASH_H_

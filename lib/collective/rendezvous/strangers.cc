// SPDX-License-Identifier: Apache-2.0
#include "collective/rendezvous/strangers.h"

#include "base/text.h"

namespace tutti::impl::collective::rendezvous {

void Strangers::dropped(const std::string &address, std::string_view what) {
  if (!warn_ || told_.size() >= kMostAddresses || told_.contains(address)) return;
  const auto now = std::chrono::steady_clock::now();
  if (lines_ == 0 || now - minute_ >= std::chrono::minutes(1)) {
    minute_ = now;
    lines_ = 0;
  }
  if (lines_ >= kMostLines) return;
  ++lines_;
  told_.insert(address);
  warn_(base::concat("a connection to the rendezvous from ", address.empty() ? "an unknown address" : address,
                     " was dropped: it ", what));
}

}  // namespace tutti::impl::collective::rendezvous

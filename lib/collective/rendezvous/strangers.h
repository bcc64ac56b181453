// SPDX-License-Identifier: Apache-2.0
//
// Who was dropped because it did not prove that it belongs to the job: one line of the log for each address, and no
// more than kMostLines in a minute, however many call.
//
// Threads: one.
#ifndef TUTTI_COLLECTIVE_RENDEZVOUS_STRANGERS_H_
#define TUTTI_COLLECTIVE_RENDEZVOUS_STRANGERS_H_

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "collective/challenge.h"

namespace tutti::impl::collective::rendezvous {

class Strangers {
 public:
  static constexpr int kMostLines = 10;
  /// So many addresses are remembered; later ones are not told.
  static constexpr size_t kMostAddresses = 1000;

  explicit Strangers(Warn warn) : warn_(std::move(warn)) {}

  /// `what` it did, behind its address: "has a different job secret".
  void dropped(const std::string &address, std::string_view what);

 private:
  const Warn warn_;
  std::set<std::string> told_;
  std::chrono::steady_clock::time_point minute_;
  int lines_ = 0;  // since then
};

}  // namespace tutti::impl::collective::rendezvous

#endif  // TUTTI_COLLECTIVE_RENDEZVOUS_STRANGERS_H_

// SPDX-License-Identifier: Apache-2.0
//
// Memory that the ranks of a clique offer for registration. When all of this process have come, windows are made to it,
// or each is registered, and stays so if all processes have done that: the library wants it of all ranks or of none.
// Internal to this folder.
//
// Threads: any.
#ifndef TUTTI_COLLECTIVE_DEVICE_MEMORY_OFFERS_H_
#define TUTTI_COLLECTIVE_DEVICE_MEMORY_OFFERS_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "backend/clique.h"
#include "base/status.h"
#include "collective/group.h"

namespace tutti::impl::collective::device {

class MemoryOffers {
 public:
  MemoryOffers(backend::Clique &clique, bool spans_processes);

  /// `rank`: of this process, counted from 0. Of several processes the last rank waits for the others, in a word that
  /// goes by `on_host`.
  void add(int32_t rank, Group &on_host, void *memory, int64_t bytes);
  /// Bytes of the rank's that are registered; 0 while ranks are missing.
  int64_t registered(int32_t rank) const;
  /// How, or why not, for people.
  std::string description() const;

 private:
  struct Offer {
    Group *on_host = nullptr;
    void *memory = nullptr;
    int64_t bytes = 0;
    int64_t word = 0;  // 1: it is registered; what others say goes here
    void *word_pointer = nullptr;
  };

  void take();
  base::Status make_windows();
  void agree(std::string &why);

  backend::Clique &clique_;
  const bool spans_processes_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::vector<Offer> offers_;
  bool is_registered_ = false;
  std::string description_ = "not registered";
};

}  // namespace tutti::impl::collective::device

#endif  // TUTTI_COLLECTIVE_DEVICE_MEMORY_OFFERS_H_

// SPDX-License-Identifier: Apache-2.0
#include "collective/device/memory_offers.h"

#include <algorithm>

#include "base/text.h"

namespace tutti::impl::collective::device {

using base::Result;
using base::Status;

MemoryOffers::MemoryOffers(backend::Clique &clique, bool spans_processes)
    : clique_(clique), spans_processes_(spans_processes), offers_(static_cast<size_t>(clique.size())) {}

void MemoryOffers::add(int32_t rank, Group &on_host, void *memory, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  offers_[static_cast<size_t>(rank)] = {.on_host = &on_host, .memory = memory, .bytes = bytes};
  if (std::ranges::count(offers_, nullptr, &Offer::memory) == 0) take();
}

int64_t MemoryOffers::registered(int32_t rank) const {
  const std::lock_guard lock(mutex_);
  return is_registered_ ? offers_[static_cast<size_t>(rank)].bytes : 0;
}

std::string MemoryOffers::description() const {
  const std::lock_guard lock(mutex_);
  return description_;
}

void MemoryOffers::take() {
  const Status windows = make_windows();
  is_registered_ = windows.ok();
  description_ = "windows: the devices reach each other's memory";
  if (windows.ok()) return;
  is_registered_ = true;
  for (size_t r = 0; r < offers_.size(); ++r)
    is_registered_ &= clique_.register_memory(static_cast<int32_t>(r), offers_[r].memory, offers_[r].bytes);
  std::string why = windows.message();
  if (spans_processes_) agree(why);
  description_ = base::concat(is_registered_ ? "registered, without windows: " : "not registered: ", why);
  for (size_t r = 0; !is_registered_ && r < offers_.size(); ++r)
    clique_.deregister_memory(static_cast<int32_t>(r));
}

Status MemoryOffers::make_windows() {
  std::vector<void *> memory;
  for (const Offer &offer : offers_)
    memory.push_back(offer.memory);
  const int64_t bytes = offers_.front().bytes;
  if (std::ranges::count(offers_, bytes, &Offer::bytes) != std::ssize(offers_))
    return base::unimplemented("the memory of the ranks differs in size");
  return clique_.register_windows(memory, bytes);
}

/// Waits for the other processes. What they are told stays as long as the groups that tell them.
void MemoryOffers::agree(std::string &why) {
  std::vector<Ticket> tickets;
  Status agreed;
  for (Offer &offer : offers_) {
    offer.word = is_registered_ ? 1 : 0;
    offer.word_pointer = &offer.word;
    const Result<Ticket> ticket = offer.on_host->begin({.kind = Kind::all_reduce,
                                                        .reduction = Reduction::min,
                                                        .dtype = tensor::DType::i64,
                                                        .buffers = &offer.word_pointer,
                                                        .count = 1,
                                                        .label = "memory that is registered"});
    if (agreed.ok()) agreed = ticket.status();
    tickets.push_back(ticket.ok() ? *ticket : -1);
  }
  for (size_t r = 0; agreed.ok() && r < offers_.size(); ++r)
    agreed = offers_[r].on_host->wait(tickets[r]);
  if (!agreed.ok()) {
    why = agreed.message();
  } else if (is_registered_ && offers_.front().word == 0) {
    why += ", and another process does not register its memory";
  }
  is_registered_ = agreed.ok() && offers_.front().word == 1;
}

}  // namespace tutti::impl::collective::device

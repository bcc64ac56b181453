// SPDX-License-Identifier: Apache-2.0
#include "distribute/workers/worker_exchange.h"

#include <algorithm>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Status exchange(const Meeting &meeting, std::vector<int64_t> &words) {
  const auto &[groups, parts, workers] = meeting;
  std::vector<std::vector<int64_t>> copies(groups.size() * static_cast<size_t>(parts), words);
  std::vector<void *> buffers;
  for (std::vector<int64_t> &copy : copies)
    buffers.push_back(copy.data());
  std::vector<collective::Ticket> tickets;
  for (size_t r = 0; r < groups.size(); ++r) {
    collective::Operation operation;
    operation.kind = collective::Kind::all_reduce;
    operation.reduction = collective::Reduction::max;
    operation.dtype = tensor::DType::i64;
    operation.buffers = buffers.data() + r * static_cast<size_t>(parts);
    operation.count = static_cast<int64_t>(words.size());
    operation.label = "state of the workers";
    TUTTI_ASSIGN(const collective::Ticket ticket, groups[r]->begin(operation));
    tickets.push_back(ticket);
  }
  for (size_t r = 0; r < groups.size(); ++r)
    TUTTI_TRY(groups[r]->wait(tickets[r]));
  words = copies.front();
  return Status();
}

// A word holds four bytes, so that it is not negative.
Result<std::vector<std::vector<std::byte>>> exchange_bytes(const Meeting &meeting, std::span<const std::byte> own) {
  const auto workers = static_cast<size_t>(meeting.workers.count), self = static_cast<size_t>(meeting.workers.index);
  std::vector<int64_t> sizes(workers);
  sizes[self] = static_cast<int64_t>(own.size());
  TUTTI_TRY(exchange(meeting, sizes));
  std::vector<size_t> first = {0};  // word of each worker
  for (const int64_t size : sizes)
    first.push_back(first.back() + static_cast<size_t>((size + 3) / 4));
  std::vector<int64_t> words(std::max<size_t>(first.back(), 1));
  for (size_t i = 0; i < own.size(); ++i)
    words[first[self] + i / 4] |= std::to_integer<int64_t>(own[i]) << (8 * (i % 4));
  TUTTI_TRY(exchange(meeting, words));
  std::vector<std::vector<std::byte>> all(workers);
  for (size_t w = 0; w < workers; ++w) {
    for (size_t i = 0; i < static_cast<size_t>(sizes[w]); ++i)
      all[w].push_back(static_cast<std::byte>(words[first[w] + i / 4] >> (8 * (i % 4)) & 0xff));
  }
  return all;
}

}  // namespace tutti::impl::distribute

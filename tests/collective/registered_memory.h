// SPDX-License-Identifier: Apache-2.0
//
// Operations in memory that the devices' library has registered, and in other memory: the emulated NCCL ends a process
// whose operations are in what not all ranks have registered.
#ifndef TUTTI_TESTS_COLLECTIVE_REGISTERED_MEMORY_H_
#define TUTTI_TESTS_COLLECTIVE_REGISTERED_MEMORY_H_

#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/text.h"
#include "collective/recorded_operations.h"
#include "conformance/group_conformance.h"

namespace tutti::testing {

constexpr int64_t kRegistered = 300;

/// Lines of the emulated NCCL's journal that begin with this word.
inline int64_t count_lines(const std::string &path, std::string_view word) {
  std::ifstream file(path);
  int64_t count = 0;
  for (std::string line; std::getline(file, line);)
    count += line.starts_with(impl::base::concat(word, " ")) ? 1 : 0;
  return count;
}

/// A sum in all but the first elements of `memory`.
inline Status sum_within(Group &group, Memory &memory) {
  constexpr int64_t kFirst = 7;
  const std::vector<float> samples = RankBuffers(group, kRegistered).values.front();
  TUTTI_TRY(memory.write(samples));
  Operation operation = memory.operation(impl::collective::Kind::all_reduce, DType::f32, kRegistered - kFirst);
  void *pointer = static_cast<float *>(memory.pointer) + kFirst;
  operation.buffers = &pointer;
  TUTTI_TRY(group.run(operation));
  TUTTI_TRY(group.settle());
  TUTTI_ASSIGN(const std::vector<float> sums, memory.read<float>(kRegistered));
  for (int64_t i = 0; i < kRegistered; ++i) {
    const float sum = sums[static_cast<size_t>(i)];
    const float expected = i < kFirst ? samples[static_cast<size_t>(i)] : ordered_sum(group.size(), i);
    if (std::abs(sum - expected) > 1e-6f * expected) return differs("sum", i, sum, expected);
  }
  return Status();
}

/// "1200 bytes, registered, without windows: ... | registered 1, not any more 1": what the ranks of this process say,
/// and the journal of their library, also when they have gone.
inline Result<std::string> register_and_sum(Groups &ranks, const std::vector<impl::backend::DeviceRef> &devices,
                                            const std::string &journal) {
  std::vector<Memory> memories(ranks.size());
  for (size_t r = 0; r < memories.size(); ++r) {
    TUTTI_ASSIGN(memories[r], Memory::make(*devices[r], kRegistered * 4));
    ranks[r]->register_memory(memories[r].pointer, kRegistered * 4);
  }
  std::string text;
  for (const auto &rank : ranks)
    text += impl::base::concat(rank->registered_bytes(), " bytes, ", rank->registration(), " | ");
  const std::vector<Status> statuses = run_ranks(ranks, [&](Group &group) -> Status {
    const size_t r = static_cast<size_t>(group.rank()) % memories.size();
    TUTTI_TRY(sum_within(group, memories[r]));
    TUTTI_ASSIGN(Memory other, Memory::make(*devices[r], kRegistered * 4));
    return sum_within(group, other);
  });
  text += impl::base::concat("registered ", count_lines(journal, "register"));
  ranks.clear();  // before the memory
  for (const Status &status : statuses)
    TUTTI_TRY(status);
  return impl::base::concat(text, ", not any more ", count_lines(journal, "deregister"));
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_COLLECTIVE_REGISTERED_MEMORY_H_

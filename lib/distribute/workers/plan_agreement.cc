// SPDX-License-Identifier: Apache-2.0
#include "distribute/workers/plan_agreement.h"

#include <array>
#include <vector>

namespace tutti::impl::distribute {

base::Status check_same_plan(collective::Group &group, uint64_t hash) {
  const auto own = static_cast<int64_t>(hash);
  // The complement turns the order round, so one maximum finds the largest and the smallest.
  using Words = std::array<int64_t, 2>;
  std::vector<Words> words(static_cast<size_t>(group.parts()), Words{own, ~own});
  std::vector<void *> buffers;
  for (Words &part : words)
    buffers.push_back(part.data());
  TUTTI_TRY(group.all_reduce(buffers, 2, tensor::DType::i64, collective::Reduction::max, "state plan"));
  const int64_t largest = words[0][0], smallest = ~words[0][1];
  if (largest == smallest) return base::Status();
  const auto other = static_cast<uint64_t>(largest != own ? largest : smallest);
  return base::failed_precondition("rank ", group.rank(), " has state plan ", hash, " and another rank has ", other,
                                   ": all ranks must train the same model with the same options")
      .with_detail("rank", std::to_string(group.rank()));
}

}  // namespace tutti::impl::distribute

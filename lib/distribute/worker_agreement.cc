// SPDX-License-Identifier: Apache-2.0
#include "distribute/worker_agreement.h"

#include <algorithm>
#include <vector>

#include "base/checksum.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

namespace {

// Of each worker; halves, so that none is negative and the maximum with what others leave 0 is it.
enum Word : size_t {
  word_step_high = 0,
  word_step_low,
  word_weights_high,
  word_weights_low,
  word_settings,
  word_devices,
  word_count
};

constexpr int64_t high_half(uint64_t value) { return static_cast<int64_t>(value >> 32); }
constexpr int64_t low_half(uint64_t value) { return static_cast<int64_t>(value & 0xffffffffu); }
int64_t joined(int64_t high, int64_t low) { return high << 32 | low; }

Status exchange(std::span<collective::Group *const> groups, int32_t parts, std::vector<int64_t> &words) {
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

Status differs(std::string_view act, int32_t worker, const int64_t *first, const int64_t *other) {
  if (other[word_devices] != first[word_devices]) {
    return base::failed_precondition("worker ", worker, " ", act,
                                     " on devices that round otherwise than those of worker 0: training needs devices ",
                                     "of one backend on all workers, level invariant those of one kind")
        .with_detail("worker", std::to_string(worker));
  }
  const int64_t step = joined(first[word_step_high], first[word_step_low]);
  const int64_t other_step = joined(other[word_step_high], other[word_step_low]);
  std::string what = "other weights or optimizer slots";
  if (other[word_settings] != first[word_settings]) what = "other settings of the run";
  if (other_step != step) what = base::concat("step ", other_step);
  return base::failed_precondition("worker ", worker, " ", act, " with ", what, " and worker 0 at step ", step,
                                   ": all workers need the same checkpoint, in storage that all can read, or the same ",
                                   "seed, and the same settings")
      .with_detail("worker", std::to_string(worker));
}

}  // namespace

Result<uint64_t> checksum_of(const checkpoint::WeightVersion &version, const graph::Model &model, bool with_slots) {
  uint64_t sum = 0;
  for (size_t i = 0; i < version.entries().size(); ++i) {
    const checkpoint::StateEntry &entry = version.entries()[i];
    if (!with_slots && entry.role != checkpoint::StateRole::weight) continue;
    const graph::VariableSpec *const variable = model.find_variable(entry.name);
    if (variable != nullptr && variable->aggregation == graph::Aggregation::per_replica) continue;
    const uint64_t what = base::fnv1a64(base::concat(entry.name, " ", tensor::name(entry.dtype), " ", entry.shape));
    TUTTI_ASSIGN(const tensor::Tensor value, version.read(i));
    sum += base::fnv1a64(base::crc32c(value.data(), static_cast<size_t>(value.size_bytes())), what);
  }
  return sum;
}

Status check_same_state(std::span<collective::Group *const> groups, const Workers &workers, int32_t parts,
                        const WorkerState &own, const base::CancelToken *cancel) {
  std::vector<int64_t> words(static_cast<size_t>(workers.count) * word_count);
  int64_t *const mine = words.data() + static_cast<size_t>(workers.index) * word_count;
  mine[word_step_high] = high_half(static_cast<uint64_t>(own.step));
  mine[word_step_low] = low_half(static_cast<uint64_t>(own.step));
  mine[word_weights_high] = high_half(own.weights);
  mine[word_weights_low] = low_half(own.weights);
  mine[word_settings] = low_half(base::fnv1a64(own.settings));
  mine[word_devices] = own.devices.empty() ? 0 : low_half(base::fnv1a64(own.devices));
  for (collective::Group *group : groups)
    group->set_cancel(cancel);
  const Status exchanged = exchange(groups, parts, words);
  for (collective::Group *group : groups)
    group->set_cancel(nullptr);
  TUTTI_TRY(exchanged);
  for (int32_t w = 1; w < workers.count; ++w) {
    const int64_t *const other = words.data() + static_cast<size_t>(w) * word_count;
    if (!std::equal(other, other + word_count, words.data())) return differs(own.act, w, words.data(), other);
  }
  return Status();
}

}  // namespace tutti::impl::distribute

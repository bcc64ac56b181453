// SPDX-License-Identifier: Apache-2.0
//
// Calls of the emulated NCCL, and what becomes of them when those of all ranks are there. Under work_lock().
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_NCCL_CALLS_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_NCCL_CALLS_H_

#include <streams.h>
#include <tutti_nccl.h>

#include <chrono>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace tutti_gpu_emulator {

enum class Kind { all_reduce, reduce, broadcast, reduce_scatter, all_gather };

/// Ends the process.
[[noreturn]] void give_up(const char *what);

const char *name_of(Kind kind);

/// One rank's call.
struct Call {
  Kind kind;
  const void *from;
  void *to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t reduction;
  int root;
  int64_t captured = 0;  // which of the rank's calls that were captured, from 1
  int64_t place = -1;    // bytes from the beginning of memory that the rank has registered; -1: not in such

  bool agrees(const Call &other) const {
    return kind == other.kind && count == other.count && type == other.type && reduction == other.reduction &&
           root == other.root && captured == other.captured && place == other.place;
  }
};

/// The calls of all ranks with one number.
struct Meeting {
  std::map<int, Call> calls;
  std::map<int, std::pair<std::shared_ptr<Lane>, uint64_t>> places;  // of the work on their streams
  std::map<int, bool> arrived;
  std::map<int, std::chrono::steady_clock::time_point> begun;  // where a rank is slow
  bool is_asking = false, is_done = false;
};

size_t bytes_of(ncclDataType_t type);
/// Elements that a call writes.
size_t to_count(const Meeting &meeting, size_t ranks);
/// For all ranks.
void carry_out(const Meeting &meeting, size_t ranks);
/// A call as it is compared with those of other processes.
std::vector<char> header_of(const Call &call);
/// Whether another's call begins so. Ends the process where they differ in registered memory alone: the library does
/// anything then.
bool has_header(const std::vector<char> &brought, const std::vector<char> &header);

}  // namespace tutti_gpu_emulator

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_NCCL_CALLS_H_

// SPDX-License-Identifier: Apache-2.0
//
// GPUs connected by a library whose call for it comes back when all ranks have come: they come, come too late, or never
// do. The library is a stand-in of the host whose other ranks come when a test says so.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/gpu/collective/nccl_clique.h"
#include "streams.h"
#include "tensor/dtype.h"
#include "testing.h"

using namespace tutti::impl;
using backend::gpu::Nccl;
using backend::gpu::NcclClique;

struct EmulatedCommunicator {
  int rank = 0, gpu = -1;
};

// In the place of the emulated GPU's own library.
namespace tutti::impl::backend::gpu::platform {
base::Result<const Nccl *> nccl() { return base::unavailable("there is only the library of this test"); }
const char *nccl_name() { return "NCCL of this test"; }
base::Status check_sums_repeat() { return base::Status(); }
base::Status check_captures(int) { return base::unimplemented("not captured"); }
}  // namespace tutti::impl::backend::gpu::platform

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(20);

/// Of one rank: which call ended it, and on which GPU.
struct Ended {
  const char *how;
  int rank, gpu, current_gpu;
};

/// The library of all processes. What it makes is freed with it, so that what is used after its end is seen.
struct Library {
  std::mutex mutex;
  std::condition_variable changed;
  int wanted = 0, arrived = 0;  // ranks
  int waiting = 0;              // threads in the call that connects
  ncclResult_t answer = ncclSuccess;
  int groups = 0;
  std::vector<std::unique_ptr<EmulatedCommunicator>> made;
  std::vector<Ended> ended;
  std::vector<int> called;  // ranks that combined

  /// The ranks of another process.
  void arrive(int ranks) {
    const std::lock_guard lock(mutex);
    arrived += ranks;
    changed.notify_all();
  }
  bool eventually(const std::function<bool()> &holds) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, holds);
  }
  int count(const char *how) const {
    return static_cast<int>(
        std::count_if(ended.begin(), ended.end(), [&](const Ended &one) { return strcmp(one.how, how) == 0; }));
  }
};
Library *library = nullptr;

struct Group {
  int depth = 0;
  std::vector<std::pair<ncclComm_t *, EmulatedCommunicator>> ranks;
};
thread_local Group group;

using tutti_gpu_emulator::current_device;

ncclResult_t init_rank(ncclComm_t *slot, int ranks, ncclUniqueId, int rank) {
  if (group.depth == 0 || ranks != library->wanted) return ncclInvalidUsage;
  group.ranks.emplace_back(slot, EmulatedCommunicator{rank, current_device()});
  return ncclSuccess;
}

ncclResult_t end_group() {
  if (--group.depth > 0 || group.ranks.empty()) return ncclSuccess;
  const auto ranks = std::exchange(group.ranks, {});
  std::unique_lock lock(library->mutex);
  if (library->answer != ncclSuccess) return library->answer;
  library->arrived += static_cast<int>(ranks.size());
  ++library->waiting;
  library->changed.notify_all();
  library->changed.wait(lock, [] { return library->arrived >= library->wanted; });
  for (const auto &[slot, rank] : ranks)
    *slot = library->made.emplace_back(std::make_unique<EmulatedCommunicator>(rank)).get();
  --library->waiting;
  library->changed.notify_all();
  return ncclSuccess;
}

ncclResult_t end(const char *how, ncclComm_t communicator) {
  const std::lock_guard lock(library->mutex);
  library->ended.push_back({how, communicator->rank, communicator->gpu, current_device()});
  library->changed.notify_all();
  return ncclSuccess;
}

/// What RCCL 2.13 has, and no more.
Nccl functions() {
  Nccl nccl;
  nccl.ncclGetErrorString = [](ncclResult_t) { return "no"; };
  nccl.ncclGetLastError = [](ncclComm_t) { return "cable is out"; };
  nccl.ncclGetUniqueId = [](ncclUniqueId *id) {
    memset(id, 0, sizeof *id);
    return ncclSuccess;
  };
  nccl.ncclCommInitRank = init_rank;
  nccl.ncclCommGetAsyncError = [](ncclComm_t, ncclResult_t *state) {
    *state = ncclSuccess;
    return ncclSuccess;
  };
  nccl.ncclCommDestroy = [](ncclComm_t communicator) { return end("destroyed", communicator); };
  nccl.ncclCommAbort = [](ncclComm_t communicator) { return end("aborted", communicator); };
  nccl.ncclGroupStart = [] {
    ++group.depth;
    const std::lock_guard lock(library->mutex);
    ++library->groups;
    return ncclSuccess;
  };
  nccl.ncclGroupEnd = end_group;
  nccl.ncclAllReduce = [](const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t communicator,
                          gpuStream_t) {
    const std::lock_guard lock(library->mutex);
    library->called.push_back(communicator->rank);
    return ncclSuccess;
  };
  return nccl;
}

const Nccl kNccl = functions();
const std::vector<int32_t> kGpus = {2, 1};

/// Hears no warning: none of the tests ends with one.
const tutti_backend_host kHost = [] {
  tutti_backend_host host{};
  host.struct_size = sizeof host;
  host.log = [](void *, int32_t, const char *message) { print_message("warning: %s\n", message); };
  return host;
}();

int begin_test(void **) {
  library = new Library;
  return 0;
}
int end_test(void **) {
  // No thread is in it any more: one that was given up has been let go by its test.
  const bool is_left = library->eventually([] { return library->waiting == 0; });
  delete library;
  return is_left ? 0 : -1;
}

auto join(int32_t first_rank, int32_t rank_count) {
  library->wanted = rank_count;
  return NcclClique::join(kNccl, kGpus, ncclUniqueId{}, first_rank, rank_count, &kHost);
}

base::Status sum(NcclClique &clique, int32_t rank) {
  tutti_collective operation{};
  operation.kind = TUTTI_COLLECTIVE_ALL_REDUCE;
  operation.dtype = static_cast<int32_t>(tensor::DType::f32);
  operation.reduction = TUTTI_REDUCTION_SUM;
  operation.count = 1;
  return clique.enqueue(rank, operation, nullptr);
}

/// Both ranks, until they are connected.
base::Status await(NcclClique &clique) {
  const auto limit = Clock::now() + kPatience;
  for (int32_t rank = 0; rank < 2;) {
    TUTTI_ASSIGN(const bool is_connected, clique.poll(rank));
    if (is_connected) ++rank;
    if (Clock::now() > limit) return base::deadline_exceeded("not connected");
  }
  return base::Status();
}

void all_ranks_come(void **) {
  library->wanted = 2;
  auto clique = assert_ok_value(NcclClique::connect(kNccl, kGpus, 20000, &kHost));
  assert_true(assert_ok_value(clique->poll(0)) && assert_ok_value(clique->poll(1)));
  for (const int32_t rank : {1, 0})
    assert_ok(sum(*clique, rank));
  assert_true(library->called == std::vector<int>({1, 0}));
  clique.reset();
  assert_int_equal(library->count("destroyed"), 2);
  assert_int_equal(library->count("aborted"), 0);
  for (const Ended &one : library->ended) {
    assert_int_equal(one.gpu, kGpus[static_cast<size_t>(one.rank)]);
    assert_int_equal(one.current_gpu, one.gpu);
  }
}

void other_processes_come_later(void **) {
  auto clique = assert_ok_value(join(1, 3));
  assert_true(library->eventually([] { return library->waiting == 1; }));
  assert_false(assert_ok_value(clique->poll(0)) || assert_ok_value(clique->poll(1)));
  library->arrive(1);
  assert_ok(await(*clique));
  assert_ok(sum(*clique, 1));
  assert_true(library->called == std::vector<int>({2}));
  clique.reset();
  assert_int_equal(library->count("destroyed"), 2);
}

void the_deadline_passes(void **) {
  library->wanted = 3;  // than who connects knows of
  library->answer = ncclSuccess;
  Nccl nccl = kNccl;
  nccl.ncclCommInitRank = [](ncclComm_t *slot, int, ncclUniqueId id, int rank) { return init_rank(slot, 3, id, rank); };
  const auto start = Clock::now();
  const base::Status status = NcclClique::connect(nccl, kGpus, 100, &kHost).status();
  assert_int_equal(static_cast<int>(status.code()), static_cast<int>(base::Code::deadline_exceeded));
  assert_error_contains(status, "connecting devices: rank 0 (GPU 2) was not ready in time");
  const auto took = Clock::now() - start;
  assert_true(took >= std::chrono::milliseconds(100) && took < std::chrono::seconds(10));
  // The call goes on. What it makes when the last has come after all is ended at once.
  assert_true(library->eventually([] { return library->waiting == 1; }));
  assert_true(library->ended.empty());
  library->arrive(1);
  assert_true(library->eventually([] { return library->count("aborted") == 2; }));
  assert_int_equal(library->count("destroyed"), 0);
}

void a_clique_that_is_given_up_waits_for_nobody(void **) {
  for (const bool is_aborted : {true, false}) {
    library->arrived = 0;
    library->ended.clear();
    auto clique = assert_ok_value(join(0, 3));
    assert_true(library->eventually([] { return library->waiting == 1; }));
    const auto start = Clock::now();
    if (is_aborted) {
      clique->abort();
      assert_error_contains(clique->poll(0), "the devices were disconnected");
      assert_error_contains(sum(*clique, 1), "the devices were disconnected");
    }
    clique.reset();
    assert_true(Clock::now() - start < std::chrono::seconds(5));
    library->arrive(1);
    assert_true(library->eventually([] { return library->waiting == 0 && library->count("aborted") == 2; }));
    assert_int_equal(library->ended.size(), 2);
  }
}

/// They are there, but nobody has asked.
void what_is_connected_and_not_wanted_is_aborted_once(void **) {
  auto clique = assert_ok_value(join(0, 2));
  assert_true(library->eventually([] { return library->made.size() == 2 && library->waiting == 0; }));
  clique->abort();
  clique.reset();
  assert_true(library->eventually([] { return library->count("aborted") >= 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  assert_int_equal(library->ended.size(), 2);
}

void what_the_library_says_is_told(void **) {
  library->wanted = 2;
  library->answer = ncclSystemError;
  assert_error_contains(NcclClique::connect(kNccl, kGpus, 20000, &kHost),
                        "connecting devices: NCCL says no: cable is out");
  auto clique = assert_ok_value(join(0, 2));
  assert_error_contains(await(*clique), "connecting devices: NCCL says no: cable is out");
  clique.reset();
  assert_true(library->ended.empty());
}

/// No rank of this process is left waiting for one that has no GPU.
void a_gpu_that_is_missing_keeps_all_from_connecting(void **) {
  const std::vector<int32_t> gpus = {0, 77};
  library->wanted = 2;
  assert_error_contains(NcclClique::connect(kNccl, gpus, 20000, &kHost), "choosing the device");
  assert_int_equal(library->groups, 0);
}

}  // namespace

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

int main() {
  const CMUnitTest tests[] = {
      TEST(all_ranks_come),
      TEST(other_processes_come_later),
      TEST(the_deadline_passes),
      TEST(a_clique_that_is_given_up_waits_for_nobody),
      TEST(what_is_connected_and_not_wanted_is_aborted_once),
      TEST(what_the_library_says_is_told),
      TEST(a_gpu_that_is_missing_keeps_all_from_connecting),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

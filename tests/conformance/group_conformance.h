// SPDX-License-Identifier: Apache-2.0
//
// What every group must do. A test of an implementation:
//
//   static const struct CMUnitTest tests[] = {TUTTI_GROUP_CONFORMANCE_TESTS};
//   static int run_all(int, char **) {
//     group_factory = [](int32_t size, int32_t parts) { return MyGroup::create(size, parts); };
//     return cmocka_run_group_tests(tests, nullptr, nullptr);
//   }
//   TEST_SOURCE(run_all)
//
// Ranks are threads; nothing is asserted on them.
#ifndef TUTTI_TESTS_CONFORMANCE_GROUP_CONFORMANCE_H_
#define TUTTI_TESTS_CONFORMANCE_GROUP_CONFORMANCE_H_

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collective/group.h"
#include "testing.h"

namespace tutti::testing {

using impl::base::Result;
using impl::base::Status;
using impl::collective::Group;
using impl::collective::Operation;
using impl::collective::Reduction;
using impl::collective::Slice;
using impl::collective::Ticket;
using impl::tensor::DType;

using Groups = std::vector<std::unique_ptr<Group>>;
using GroupFactory = std::function<Result<Groups>(int32_t size, int32_t parts)>;

/// Set by each test before it runs its cases.
inline GroupFactory group_factory;

/// What a group may do otherwise; a test program changes it before its tests.
struct GroupTraits {
  int32_t most_ranks = 4;  ///< at least 2
  int32_t most_parts = 2;
  bool adds_in_order = true;  ///< 0, 1, 2, ...; else in some order
  bool gathers = true;
  bool hears_at_once = true;  ///< of an end; else a rank learns of it at its next operation
};
inline GroupTraits group_traits;

/// Runs body(rank's group) on a thread per rank; the statuses in order of ranks.
inline std::vector<Status> run_ranks(Groups &groups, const std::function<Status(Group &)> &body) {
  std::vector<Status> statuses(groups.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < groups.size(); ++r) {
    threads.emplace_back([&, r] { statuses[r] = body(*groups[r]); });
  }
  for (std::thread &thread : threads)
    thread.join();
  return statuses;
}

/// Calls check(groups, contributors) for sizes 1 to most_ranks and parts 1 to most_parts.
inline void for_each_world(const std::function<void(Groups &, int32_t)> &check) {
  for (int32_t size = 1; size <= group_traits.most_ranks; ++size) {
    for (int32_t parts = 1; parts <= group_traits.most_parts; ++parts) {
      Groups groups = assert_ok_value(group_factory(size, parts));
      check(groups, size * parts);
    }
  }
}

/// A value that makes the order of additions visible in f32.
inline float sample(int64_t contributor, int64_t i) {
  return std::ldexp(1.0f + static_cast<float>((contributor * 7 + i * 13) % 101) / 101.0f,
                    static_cast<int>((contributor * 5 + i) % 24) - 12);
}

/// The buffers of one rank: parts × count samples.
struct RankBuffers {
  std::vector<std::vector<float>> values;
  std::vector<void *> pointers;

  RankBuffers(const Group &group, int64_t count) {
    for (int32_t p = 0; p < group.parts(); ++p) {
      std::vector<float> part(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i)
        part[static_cast<size_t>(i)] = sample(group.rank() * group.parts() + p, i);
      values.push_back(std::move(part));
    }
    for (auto &part : values)
      pointers.push_back(part.data());
  }
};

inline float ordered_sum(int32_t contributors, int64_t i) {
  float total = sample(0, i);
  for (int32_t c = 1; c < contributors; ++c)
    total += sample(c, i);
  return total;
}

inline Status differs(const char *what, int64_t i, float got, float expected) {
  if (got == expected) return Status();
  return impl::base::internal_error(what, " element ", i, ": got ", got, ", expected ", expected);
}

/// Of a sum of positive numbers.
inline Status differs_from_sum(const char *what, int64_t i, float got, float expected) {
  if (!group_traits.adds_in_order && std::abs(got - expected) <= 1e-6f * expected) return Status();
  return differs(what, i, got, expected);
}

inline void assert_all_ok(const std::vector<Status> &statuses) {
  for (const Status &status : statuses)
    assert_ok(status);
}

inline std::vector<Slice> even_slices(int64_t count, int32_t contributors) {
  std::vector<Slice> slices;
  for (int32_t c = 0; c < contributors; ++c) {
    slices.push_back({count * c / contributors, count * (c + 1) / contributors, c});
  }
  return slices;
}

inline void test_all_reduce_sums_in_order(void **) {
  for_each_world([](Groups &groups, int32_t contributors) {
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{1000}, int64_t{40000}}) {
      assert_all_ok(run_ranks(groups, [&](Group &group) {
        RankBuffers buffers(group, count);
        TUTTI_TRY(group.all_reduce(buffers.pointers, count, DType::f32, Reduction::sum, "sum"));
        for (const auto &part : buffers.values) {
          for (int64_t i = 0; i < count; ++i) {
            TUTTI_TRY(differs_from_sum("all_reduce", i, part[static_cast<size_t>(i)], ordered_sum(contributors, i)));
          }
        }
        return Status();
      }));
    }
  });
}

inline void test_maximum_and_minimum(void **) {
  for_each_world([](Groups &groups, int32_t contributors) {
    assert_all_ok(run_ranks(groups, [&](Group &group) {
      for (const Reduction reduction : {Reduction::max, Reduction::min}) {
        std::vector<std::vector<int64_t>> values(static_cast<size_t>(group.parts()));
        std::vector<void *> pointers;
        for (int32_t p = 0; p < group.parts(); ++p) {
          values[static_cast<size_t>(p)] = {group.rank() * group.parts() + p, -(group.rank() * group.parts() + p)};
          pointers.push_back(values[static_cast<size_t>(p)].data());
        }
        TUTTI_TRY(group.all_reduce(pointers, 2, DType::i64, reduction, "extreme"));
        const int64_t last = contributors - 1;
        const std::vector<int64_t> expected =
            reduction == Reduction::max ? std::vector<int64_t>{last, 0} : std::vector<int64_t>{0, -last};
        for (const auto &part : values) {
          if (part != expected) return impl::base::internal_error("wrong extreme ", part[0], " ", part[1]);
        }
      }
      return Status();
    }));
  });
}

inline void test_reduce_scatter_then_all_gather(void **) {
  for_each_world([](Groups &groups, int32_t contributors) {
    const int64_t count = 1003;
    const std::vector<Slice> slices = even_slices(count, contributors);
    assert_all_ok(run_ranks(groups, [&](Group &group) {
      RankBuffers buffers(group, count);
      TUTTI_TRY(group.reduce_scatter(buffers.pointers, slices, count, DType::f32, Reduction::sum, "scatter"));
      for (const Slice &slice : slices) {
        if (slice.owner / group.parts() != group.rank()) continue;
        const auto &part = buffers.values[static_cast<size_t>(slice.owner % group.parts())];
        for (int64_t i = slice.begin; i < slice.end; ++i) {
          TUTTI_TRY(differs_from_sum("reduce_scatter", i, part[static_cast<size_t>(i)], ordered_sum(contributors, i)));
        }
      }
      TUTTI_TRY(group.all_gather(buffers.pointers, slices, count, DType::f32, "gather"));
      for (const auto &part : buffers.values) {
        for (int64_t i = 0; i < count; ++i) {
          TUTTI_TRY(differs_from_sum("all_gather", i, part[static_cast<size_t>(i)], ordered_sum(contributors, i)));
        }
      }
      return Status();
    }));
  });
}

inline void test_broadcast_and_gather(void **) {
  for_each_world([](Groups &groups, int32_t contributors) {
    const int64_t count = 33;
    const int32_t root = contributors - 1;
    assert_all_ok(run_ranks(groups, [&](Group &group) {
      RankBuffers buffers(group, count);
      std::vector<float> gathered(static_cast<size_t>(count * contributors));
      const bool owns_root = root / group.parts() == group.rank();
      void *const into = owns_root ? gathered.data() : nullptr;
      if (group_traits.gathers) TUTTI_TRY(group.gather(buffers.pointers, count, DType::f32, root, into, "all"));
      for (int64_t i = 0; group_traits.gathers && owns_root && i < count * contributors; ++i) {
        TUTTI_TRY(differs("gather", i, gathered[static_cast<size_t>(i)], sample(i / count, i % count)));
      }
      TUTTI_TRY(group.broadcast(buffers.pointers, count, DType::f32, root, "one"));
      for (const auto &part : buffers.values) {
        for (int64_t i = 0; i < count; ++i) {
          TUTTI_TRY(differs("broadcast", i, part[static_cast<size_t>(i)], sample(root, i)));
        }
      }
      return Status();
    }));
  });
}

inline void test_operations_overlap(void **) {
  for_each_world([](Groups &groups, int32_t contributors) {
    assert_all_ok(run_ranks(groups, [&](Group &group) {
      for (int round = 0; round < 20; ++round) {
        std::vector<RankBuffers> buckets;
        std::vector<Ticket> tickets;
        buckets.reserve(8);
        for (int b = 0; b < 8; ++b) {
          buckets.emplace_back(group, 100 + 700 * b);
          Operation operation;
          operation.kind = impl::collective::Kind::all_reduce;
          operation.buffers = buckets.back().pointers.data();
          operation.count = 100 + 700 * b;
          operation.label = "bucket";
          TUTTI_ASSIGN(const Ticket ticket, group.begin(operation));
          tickets.push_back(ticket);
        }
        TUTTI_TRY(group.wait(tickets.back()));
        for (size_t b = 0; b < buckets.size(); ++b) {
          TUTTI_TRY(group.wait(tickets[b]));
          const auto &part = buckets[b].values.back();
          for (int64_t i = 0; i < static_cast<int64_t>(part.size()); i += 17) {
            TUTTI_TRY(differs_from_sum("bucket", i, part[static_cast<size_t>(i)], ordered_sum(contributors, i)));
          }
        }
      }
      return group.barrier("end");
    }));
  });
}

inline void test_abort_wakes_everybody(void **) {
  for (int32_t size = 2; size <= group_traits.most_ranks; ++size) {
    Groups groups = assert_ok_value(group_factory(size, 1));
    const std::vector<Status> statuses = run_ranks(groups, [&](Group &group) {
      if (group.rank() == 1) {
        group.abort(impl::base::data_loss("the disk is gone"));
        return Status();
      }
      Status first = group.barrier("never complete");
      if (first.ok()) return impl::base::internal_error("the barrier was passed");
      // The error is final.
      return group.barrier("later").ok() ? impl::base::internal_error("the group came back") : first;
    });
    assert_ok(statuses[1]);
    for (size_t r = 0; r < statuses.size(); ++r) {
      if (r == 1) continue;
      assert_int_equal(static_cast<int>(statuses[r].code()), static_cast<int>(impl::base::Code::aborted));
      assert_error_contains(statuses[r], "the disk is gone");
    }
    assert_error_contains(groups[0]->error(), "the disk is gone");
  }
}

/// Whenever a group is given up, no rank has passed a point that another has not.
inline void test_all_pass_or_none(void **) {
  for (int round = 0; round < 60; ++round) {
    Groups groups = assert_ok_value(group_factory(std::min(3, group_traits.most_ranks), 1));
    std::vector<int64_t> passed(groups.size(), 0);
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
      groups[0]->abort(impl::base::data_loss("the disk is gone"));
    });
    // Others may read a rank's until they have heard of the end.
    std::vector<std::unique_ptr<RankBuffers>> of_ranks(groups.size());
    const std::vector<Status> statuses = run_ranks(groups, [&](Group &group) -> Status {
      const auto rank = static_cast<size_t>(group.rank());
      of_ranks[rank] = std::make_unique<RankBuffers>(group, 3000);
      RankBuffers &buffers = *of_ranks[rank];
      for (int64_t &count = passed[rank];; ++count) {
        // Of one meeting, of two, of three, and of none but the end.
        const int64_t elements = count % 4 == 0 ? 10 : count % 4 == 1 ? 500 : 3000;
        if (count % 4 == 3) {
          TUTTI_TRY(group.barrier("gradients"));
        } else {
          TUTTI_TRY(group.all_reduce(buffers.pointers, elements, DType::f32, Reduction::sum, "gradients"));
        }
        TUTTI_TRY(group.settle());
      }
    });
    aborter.join();
    for (size_t r = 0; r < groups.size(); ++r) {
      assert_error_contains(statuses[r], "the disk is gone");
      assert_int_equal(passed[r], passed[0]);
    }
  }
}

inline void test_cancel_ends_a_wait(void **) {
  Groups groups = assert_ok_value(group_factory(2, 1));
  auto token = impl::base::CancelToken::create();
  groups[0]->set_cancel(token.get());
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    token->cancel();
  });
  const Status status = groups[0]->barrier("alone");
  canceller.join();
  assert_int_equal(static_cast<int>(status.code()), static_cast<int>(impl::base::Code::cancelled));
  assert_false(group_traits.hears_at_once ? groups[1]->error().ok() : groups[1]->barrier("late").ok());
}

inline void test_disagreement_is_an_error(void **) {
  Groups groups = assert_ok_value(group_factory(2, 1));
  const std::vector<Status> statuses = run_ranks(groups, [&](Group &group) {
    const int64_t count = 10 + group.rank();
    RankBuffers buffers(group, count);
    TUTTI_TRY(group.all_reduce(buffers.pointers, count, DType::f32, Reduction::sum, "unequal"));
    return group.settle();  // where wait() is for the streams, what was ended looks like what is done
  });
  assert_false(statuses[0].ok());
  assert_false(statuses[1].ok());
}

inline void test_bad_operations_are_refused(void **) {
  Groups groups = assert_ok_value(group_factory(1, 1));
  RankBuffers buffers(*groups[0], 4);
  assert_error_contains(groups[0]->all_reduce(buffers.pointers, 4, DType::f16, Reduction::sum, "half"), "f16");
  assert_error_contains(groups[0]->broadcast(buffers.pointers, 4, DType::f32, 3, "far"), "root 3");
  const Slice backwards[] = {{2, 4, 0}, {0, 2, 0}};
  assert_error_contains(groups[0]->all_gather(buffers.pointers, backwards, 4, DType::f32, "order"), "slice 1");
  assert_ok(groups[0]->barrier("still alive"));
}

}  // namespace tutti::testing

#define TUTTI_GROUP_CONFORMANCE_TESTS                                        \
  cmocka_unit_test(tutti::testing::test_all_reduce_sums_in_order),           \
      cmocka_unit_test(tutti::testing::test_maximum_and_minimum),            \
      cmocka_unit_test(tutti::testing::test_reduce_scatter_then_all_gather), \
      cmocka_unit_test(tutti::testing::test_broadcast_and_gather),           \
      cmocka_unit_test(tutti::testing::test_operations_overlap),             \
      cmocka_unit_test(tutti::testing::test_abort_wakes_everybody),          \
      cmocka_unit_test(tutti::testing::test_all_pass_or_none),               \
      cmocka_unit_test(tutti::testing::test_cancel_ends_a_wait),             \
      cmocka_unit_test(tutti::testing::test_disagreement_is_an_error),       \
      cmocka_unit_test(tutti::testing::test_bad_operations_are_refused)

#endif  // TUTTI_TESTS_CONFORMANCE_GROUP_CONFORMANCE_H_

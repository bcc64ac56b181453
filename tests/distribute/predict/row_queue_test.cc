// SPDX-License-Identifier: Apache-2.0
//
// How rows are dealt to devices that differ, by the clock of a simulation: whatever they are and however calls come,
// all are about as fast together as the sum of their speeds, and no device is waited for much longer than it must be.
#include "distribute/predict/row_queue.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <queue>
#include <vector>

#include "distribute/predict/device_speeds.h"
#include "testing.h"

namespace row_queue_test {

using namespace tutti::impl::distribute;

namespace {

/// Of a device: the seconds of a piece on one of its lanes, while all lanes are busy.
struct Machine {
  int32_t lanes = 1;
  double row_seconds = 1, piece_seconds = 0;

  double seconds(int64_t rows) const { return lanes * row_seconds * static_cast<double>(rows) + piece_seconds; }
};

class Simulation {
 public:
  explicit Simulation(const std::vector<Machine> &machines)
      : machines_(machines), speeds_(lanes_of(machines), [] { return now_; }) {
    now_ = 0;
    for (size_t device = 0; device < machines.size(); ++device) {
      for (int32_t lane = 0; lane < machines[device].lanes; ++lane)
        idle_.push_back(static_cast<int32_t>(device));
    }
    given_.resize(machines.size());
  }

  /// The seconds until `calls` calls of `rows` rows each are done, of which `depth` may wait or be under way at a time,
  /// handed out in order.
  double run(int64_t calls, int64_t rows, int64_t depth) {
    const double began = now_;
    int64_t started = 0, taken = 0;
    std::vector<int64_t> left(static_cast<size_t>(calls), rows);
    while (taken < calls) {
      while (taken < started && left[static_cast<size_t>(taken)] == 0)
        ++taken;
      for (; started < calls && started - taken < depth; ++started) {
        const int64_t number = started;
        queue_.add(
            rows, [&left, number](int32_t, RowRange range) { left[static_cast<size_t>(number)] -= range.rows(); },
            speeds_);
      }
      deal();
      if (!step()) break;
    }
    for (const int64_t rest : left)
      assert_int_equal(rest, 0);
    return now_ - began;
  }

  int64_t given(size_t device) const { return given_[device]; }

 private:
  struct Busy {
    double until;
    int32_t device;
    RowQueue::Piece piece;
    bool operator<(const Busy &other) const { return until > other.until; }
  };

  static std::vector<int32_t> lanes_of(const std::vector<Machine> &machines) {
    std::vector<int32_t> lanes;
    for (const Machine &machine : machines)
      lanes.push_back(machine.lanes);
    return lanes;
  }

  void deal() {
    // Whoever is idle asks, the last in the list first, again and again until nobody takes any.
    for (bool dealt = true; dealt;) {
      dealt = false;
      for (size_t i = idle_.size(); i-- > 0;) {
        const int32_t device = idle_[i];
        RowQueue::Piece piece = queue_.take(device, speeds_);
        if (piece.job == nullptr) continue;
        dealt = true;
        given_[static_cast<size_t>(device)] += piece.rows.rows();
        const double seconds = machines_[static_cast<size_t>(device)].seconds(piece.rows.rows());
        busy_.push({now_ + seconds, device, std::move(piece)});
        idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  /// To the next moment at which a piece is done.
  bool step() {
    if (busy_.empty()) return false;
    const Busy first = busy_.top();
    busy_.pop();
    now_ = first.until;
    (*first.piece.job)(0, first.piece.rows);
    const int64_t rows = first.piece.rows.rows();
    speeds_.add(first.device, rows, machines_[static_cast<size_t>(first.device)].seconds(rows));
    idle_.push_back(first.device);
    return true;
  }

  const std::vector<Machine> machines_;
  DeviceSpeeds speeds_;
  RowQueue queue_;
  static inline double now_ = 0;
  std::vector<int32_t> idle_;
  std::vector<int64_t> given_;
  std::priority_queue<Busy> busy_;
};

/// What all do together if none ever waits, and what the fastest alone does.
double ideal_seconds(const std::vector<Machine> &machines, int64_t rows) {
  double rate = 0;
  for (const Machine &machine : machines)
    rate += 1 / machine.row_seconds;
  return static_cast<double>(rows) / rate;
}
double fastest_seconds(const std::vector<Machine> &machines, int64_t rows) {
  double least = machines.front().row_seconds;
  for (const Machine &machine : machines)
    least = std::min(least, machine.row_seconds);
  return least * static_cast<double>(rows);
}

const std::vector<std::vector<Machine>> kMachines = {
    {{2, 1e-5}, {1, 2e-4}},
    {{1, 2e-4}, {2, 1e-5}},
    {{1, 1e-5}, {1, 2e-5}, {1, 3e-5}},
    {{2, 1e-5}, {2, 1e-5}, {2, 1e-5}, {1, 2e-4}, {1, 2e-4}},
    {{2, 1e-5}, {2, 5e-5}},
    {{1, 1e-5}, {1, 1e-5}},
    {{2, 1e-6}, {1, 1e-3}},
    {{2, 1e-5}},
};

void one_call_is_done_in_the_time_of_all_together(void **) {
  for (const auto &machines : kMachines) {
    for (const int64_t rows : {1000, 4096, 30000}) {
      Simulation simulation(machines);
      for (int call = 0; call < 6; ++call)
        simulation.run(1, rows, 1);
      const double seconds = simulation.run(1, rows, 1);
      if (seconds > 1.15 * ideal_seconds(machines, rows))
        fail_msg("%zu machines, %d rows: %g of %g", machines.size(), static_cast<int>(rows), seconds,
                 ideal_seconds(machines, rows));
    }
  }
}

void streams_are_done_in_the_time_of_all_together(void **) {
  for (const auto &machines : kMachines) {
    int32_t lanes = 0;
    for (const Machine &machine : machines)
      lanes += machine.lanes;
    const std::vector<std::pair<int64_t, int64_t>> streams = {{4, 5000}, {40, 512}, {200, 64}};
    for (const auto &[calls, rows] : streams) {
      Simulation simulation(machines);
      simulation.run(calls, rows, 2 * lanes + 2);
      const double seconds = simulation.run(calls, rows, 2 * lanes + 2);
      const double ideal = ideal_seconds(machines, calls * rows);
      if (seconds > 1.15 * ideal)
        fail_msg("%zu machines, %d calls of %d rows: %g of %g", machines.size(), static_cast<int>(calls),
                 static_cast<int>(rows), seconds, ideal);
    }
  }
}

/// Where there is nothing to be cut a slow device may have to leave all to the fast one, but never holds it back.
void rows_one_by_one_take_no_longer_than_on_the_fastest(void **) {
  for (const auto &machines : kMachines) {
    int32_t lanes = 0;
    for (const Machine &machine : machines)
      lanes += machine.lanes;
    Simulation simulation(machines);
    simulation.run(100, 1, 2 * lanes + 2);
    const double seconds = simulation.run(400, 1, 2 * lanes + 2);
    if (seconds > 1.1 * fastest_seconds(machines, 400))
      fail_msg("%zu machines: %g of %g", machines.size(), seconds, fastest_seconds(machines, 400));
  }
}

/// What each piece costs beside its rows is not paid more often than it must be.
void pieces_are_no_smaller_than_worth_while(void **) {
  const std::vector<Machine> machines = {{2, 1e-6, 4e-4}, {1, 1e-4, 1e-5}};
  Simulation simulation(machines);
  for (int call = 0; call < 20; ++call)
    simulation.run(1, 1000, 1);
  // One piece of it on the first takes 2.4 ms, two at a time 1.4, all on the second 100.
  const double seconds = simulation.run(1, 1000, 1);
  if (seconds > 2.8e-3) fail_msg("%g s", seconds);
}

void a_device_that_becomes_slow_is_given_less(void **) {
  DeviceSpeeds speeds({1, 1});
  for (int i = 0; i < 40; ++i) {
    speeds.add(0, 64, 0.064);
    speeds.add(1, 64, 0.064);
  }
  speeds.add(0, 64, 60, true);  // compiles, and counts for nothing
  assert_false(speeds.are_uneven());
  assert_true(speeds.is_fast(0));
  const WaitingRows waiting{.rows = 1024, .call_rows = 1024};
  const int64_t before = speeds.piece(1, waiting);
  for (int i = 0; i < 40; ++i)
    speeds.add(1, 64, 0.64);
  assert_true(speeds.are_uneven());
  assert_true(speeds.piece(1, waiting) <= before / 4);
  assert_true(speeds.is_fast(0) && !speeds.is_fast(1));
  // What was interrupted once is no slower for it.
  speeds.add(0, 64, 10);
  assert_true(speeds.is_fast(0));
  for (int i = 0; i < 40; ++i)
    speeds.add(1, 64, 0.064);
  assert_false(speeds.are_uneven());
}

void one_piece_that_is_interrupted_is_no_verdict(void **) {
  DeviceSpeeds speeds({1, 1});
  speeds.add(0, 16, 0.001);
  speeds.add(1, 16, 0.1);
  assert_int_equal(speeds.hardly_helps(), -1);
  speeds.add(1, 16, 0.002);
  speeds.add(1, 16, 0.002);
  assert_int_equal(speeds.hardly_helps(), -1);
  DeviceSpeeds slow({1, 1});
  slow.add(0, 16, 0.001);
  slow.add(1, 16, 0.1);
  slow.add(1, 16, 0.1);
  assert_int_equal(slow.hardly_helps(), 1);
}

void every_row_is_dealt_once(void **) {
  for (const int64_t rows : {1, 2, 3, 7, 63, 64, 65, 1000}) {
    RowQueue queue;
    DeviceSpeeds speeds({2, 1, 1});
    std::vector<int32_t> dealt(static_cast<size_t>(rows));
    queue.add(
        0, [](int32_t, RowRange) { fail_msg("no rows, no job"); }, speeds);
    assert_true(queue.empty());
    queue.add(
        rows,
        [&](int32_t, RowRange range) {
          for (int64_t row = range.begin; row < range.end; ++row)
            ++dealt[static_cast<size_t>(row)];
        },
        speeds);
    for (int32_t device = 0; !queue.empty(); device = (device + 1) % 3) {
      const RowQueue::Piece piece = queue.take(device, speeds, rows == 65);
      if (piece.job == nullptr) continue;
      (*piece.job)(0, piece.rows);
      speeds.add(device, piece.rows.rows(), (1 + 9 * device) * 1e-4 * static_cast<double>(piece.rows.rows()));
    }
    for (const int32_t times : dealt)
      assert_int_equal(times, 1);
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(one_call_is_done_in_the_time_of_all_together),
      cmocka_unit_test(streams_are_done_in_the_time_of_all_together),
      cmocka_unit_test(rows_one_by_one_take_no_longer_than_on_the_fastest),
      cmocka_unit_test(pieces_are_no_smaller_than_worth_while),
      cmocka_unit_test(a_device_that_becomes_slow_is_given_less),
      cmocka_unit_test(one_piece_that_is_interrupted_is_no_verdict),
      cmocka_unit_test(every_row_is_dealt_once),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace row_queue_test

// SPDX-License-Identifier: Apache-2.0
//
// Keeps apart, in one process: operations of connected GPUs of which some ranks have launched theirs and others have
// not, and work for which the driver may wait until a GPU has nothing to do: taking and freeing memory, loading code,
// making graphs, streams and handles of libraries. Such work holds locks of the driver that a launch needs, too. So
// what a GPU does must not wait for a rank that has not launched yet: the driver would wait for that GPU, and the rank
// for the driver.
//
//   LaunchGate::Launches launches(gate, 2);      // of two ranks in this process
//   if (launches.begin(rank)) ...                // a rank's operation is given to the library
//   launches.launched(rank);                     // the library says that it is on the device
//
//   { const BetweenLaunches section;  ... }      // allocate, load, ...: no rank is ahead of another meanwhile
//
// Who waits: the first rank that begins an operation waits for sections; ranks that begin what another has begun never
// do. A section waits until all ranks have launched what any has begun, and there may be several at once: they disturb
// no kernel that waits, and replicas prepare their programs together. Sections and first ranks take turns: who comes
// while the others wait goes behind them. A section within another of its thread does not wait.
//
// Never a hang: nobody waits here who keeps others waiting. A thread that owes a launch goes on at once as a section or
// as a first rank, since who waits for it would wait in vain; it does what it would have done without a gate. A rank's
// thread is the one that began its last operation. Where that is over, or there was none, any thread may be the next,
// so sections wait for such a rank for a moment only. Bounds are the last resort: a section waits for 10 s, a first
// rank for 60 s, much longer than any section takes; once a section has waited so long, none does for that operation.
// All that holds as long as no thread waits at the gate with a mutex that is taken within sections, or by a rank
// between launches: whoever needs both enters the section first.
//
// Why a section is never within an operation: one word counts the launches that are owed, of all cliques, and above
// them the sections that were announced. An operation begins by a compare-and-swap that adds a launch for each rank and
// fails where a section is announced; ranks that come later see that it has begun only after that. A section announces
// itself in the same word and goes on when it has seen no launches there: from then until it leaves none can be added.
//
// Threads: any. Launches: begin() and launched() of a rank by one thread at a time.
#ifndef TUTTI_BACKEND_GPU_RUNTIME_LAUNCH_GATE_H_
#define TUTTI_BACKEND_GPU_RUNTIME_LAUNCH_GATE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti::impl::backend::gpu {

class LaunchGate {
 public:
  /// How long, at most, these wait.
  struct Bounds {
    int64_t section_ms = 10000;
    int64_t unknown_ms = 100;  ///< a section for ranks whose threads are over, or unknown
    int64_t ending_ms = 1000;  ///< a section that ends a clique
    int64_t begin_ms = 60000;  ///< a first rank
  };
  enum class Kind {
    usual,
    ending,  ///< ends a clique, whose own launches are waited for in vain
  };
  class Launches;

  LaunchGate() = default;
  explicit LaunchGate(const Bounds &bounds) : bounds_(bounds) {}
  LaunchGate(const LaunchGate &) = delete;
  LaunchGate &operator=(const LaunchGate &) = delete;

  /// Of a section. BetweenLaunches calls them.
  void enter(Kind kind);
  void leave();
  /// Sections that have gone on although launches were owed, by others than their own threads.
  int64_t overdue_sections() const { return overdue_sections_.load(); }

 private:
  // The word: launches that are owed in the lower half, sections in the upper.
  static constexpr uint64_t kSection = uint64_t{1} << 32;
  static constexpr uint64_t kOwed = kSection - 1;

  /// Adds launches unless there is a section.
  bool try_open(uint64_t launches);
  /// The same, waiting. False: another rank has begun the operation, or none will.
  bool open(Launches &launches, uint64_t number);
  void pay(uint64_t launches);
  void wake();
  // With the lock.
  enum class Counting { all, known_threads };
  bool is_even(Kind kind, Counting counting) const;
  bool may_enter(Kind kind, Counting counting) const;
  bool owes_this_thread() const;
  void note_overdue();

  const Bounds bounds_;
  std::atomic<uint64_t> word_{0};
  std::atomic<int64_t> overdue_sections_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Launches *> cliques_;  // guarded by mutex_, as is what follows
  size_t first_ranks_ = 0;           // that wait
};

/// What the ranks of one clique in this process have launched.
class LaunchGate::Launches {
 public:
  Launches(LaunchGate &gate, size_t ranks);
  /// As end().
  ~Launches();
  Launches(const Launches &) = delete;
  Launches &operator=(const Launches &) = delete;

  /// Before a rank gives its next operation to the library: waits for sections where no other rank has. False: close()
  /// was called.
  bool begin(size_t rank);
  /// All that the rank has begun is on its device.
  void launched(size_t rank);
  /// Nothing begins any more, and who waits to begin goes on. What is owed is waited for until the end.
  void close();
  /// Closes; nobody waits for these ranks from now on.
  void end();

 private:
  friend class LaunchGate;
  /// One thread, as long as anybody asks for it.
  struct Thread {
    std::atomic<bool> is_over{false};
  };
  static const std::shared_ptr<Thread> &this_thread();

  static constexpr uint64_t kClosed = UINT64_MAX;
  struct alignas(64) Rank {
    std::atomic<uint64_t> begun{0};
    std::atomic<uint64_t> launched{0};     // kClosed: nobody counts them any more
    std::shared_ptr<const Thread> thread;  // that called begin() last; guarded by the gate's mutex
  };

  /// False: another rank was faster, or close() was called.
  bool open(uint64_t number);
  bool is_closed() const { return opened_.load() == kClosed; }
  /// Launches that are owed, and what the rank has launched that is behind. With the gate's lock.
  uint64_t owed() const;
  uint64_t least_launched() const;
  bool owes(const Thread *thread) const;
  /// A rank owes whose thread is over, or unknown.
  bool has_unknown_debtor() const;
  uint64_t last_opened() const;

  LaunchGate &gate_;
  std::vector<Rank> ranks_;
  std::atomic<uint64_t> opened_{0};  // operations that some rank has begun
  // Guarded by the gate's mutex:
  uint64_t closed_at_ = 0;  // what opened_ was
  bool has_ended_ = false;
  uint64_t overdue_ = kClosed;  // least_launched() for which no section waits any more
};

/// Of this plug-in; never destroyed.
LaunchGate &launch_gate();

/// A section, as long as it lives.
class BetweenLaunches {
 public:
  explicit BetweenLaunches(LaunchGate &gate = launch_gate(), LaunchGate::Kind kind = LaunchGate::Kind::usual);
  ~BetweenLaunches();
  BetweenLaunches(const BetweenLaunches &) = delete;
  BetweenLaunches &operator=(const BetweenLaunches &) = delete;

 private:
  static bool is_within(const LaunchGate &gate);

  LaunchGate &gate_;
  const BetweenLaunches *const outer_;  // of this thread
  const bool is_nested_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_LAUNCH_GATE_H_

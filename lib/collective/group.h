// SPDX-License-Identifier: Apache-2.0
//
// A group: `size` ranks that walk the same sequence of collective operations in the same order. Every rank has its own
// Group object and calls it from one thread. A rank may contribute several `parts` (logical replicas that share its
// thread and device): an operation then takes one buffer per part, and part p of rank r is contributor
// r * parts + p of size * parts.
//
//   TUTTI_ASSIGN(auto ticket, group.begin(operation));   // publishes the buffers, never waits for other ranks
//   ...                                                  // the buffers belong to the group until wait() has returned
//   TUTTI_TRY(group.wait(ticket));
//
// Buffers lie in memory of the host, or in that of the rank's device when the operation names a stream of it. Then the
// operation takes them as they are when the stream has done what was issued on it before begin(), and what is issued
// after wait() finds them complete: the stream waits, not necessarily the thread. A group takes operations of both
// sorts, in one order, or refuses those with streams (local).
//
// Order: sums run over the contributors 0, 1, 2, ... for each element, whatever the rank, slice or timing, so that
// every rank gets the same bits, and the same bits run to run. There are two exceptions. Of devices that a library
// connects (device/) the order is the library's, the same bits for every rank, run to run only where that is asked for.
// And an all_reduce may be asked to add in an order of its own (local/), which is the same for all ranks and runs.
//
// Never a hang: every wait ends when the group is aborted, when the limits' token is cancelled or when the deadline of
// the group has passed, which names the ranks that did not arrive. An error is final: every later call on every rank
// returns it, with the first cause, and buffers on devices are the group's until it is destroyed. Make a new group to
// go on.
//
// Invariant: begin and wait allocate nothing and take no lock on the good path, once they know the sizes.
#ifndef TUTTI_COLLECTIVE_GROUP_H_
#define TUTTI_COLLECTIVE_GROUP_H_

#include <cstdint>
#include <span>
#include <string>

#include "base/cancel.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend {
class Recording;
class Stream;
}  // namespace tutti::impl::backend

namespace tutti::impl::collective {

enum class Kind : int32_t { all_reduce = 1, reduce_scatter, all_gather, broadcast, gather, barrier };
enum class Reduction : int32_t { sum = 1, max, min };

/// "all_reduce", ...
const char *name(Kind kind);

/// Elements [begin, end) of a buffer that belong to contributor `owner`.
struct Slice {
  int64_t begin = 0, end = 0;
  int32_t owner = 0;
};

/// One operation as one rank sees it. Everything but the addresses must be equal on all ranks; the group checks it and
/// says what differs. Pointers are borrowed until wait() has returned.
struct Operation {
  Kind kind = Kind::barrier;
  Reduction reduction = Reduction::sum;
  tensor::DType dtype = tensor::DType::f32;
  /// One buffer of `count` elements per part of this rank, worked on in place.
  void *const *buffers = nullptr;
  int64_t count = 0;
  /// reduce_scatter and all_gather: who owns which elements; ascending, without overlap. Elements that nobody owns are
  /// left unspecified. Not used otherwise.
  const Slice *slices = nullptr;
  int32_t slice_count = 0;
  /// broadcast and gather: the contributor that gives, or receives.
  int32_t root = 0;
  /// gather: size * parts * count elements on the rank that owns `root`, else not used.
  void *gathered = nullptr;
  /// For messages; not copied.
  const char *label = "";
  /// Null: `buffers` and `gathered` are memory of the host. Else they are memory of the stream's device, ordered on it.
  backend::Stream *stream = nullptr;
};

/// Number of an operation, counted from 0 on every rank.
using Ticket = int64_t;

/// Operations that were recorded with what is around them on a stream.
struct RecordedOperations {
  int64_t operations = 0;
  int64_t elements = 0;
  bool settles = false;
};

/// Operations that may be begun and not yet waited for.
constexpr int64_t max_pending_operations = 64;

class Group {
 public:
  virtual ~Group() = default;

  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  /// Buffers per operation of each rank.
  virtual int32_t parts() const = 0;
  int32_t contributors() const { return size() * parts(); }

  /// Publishes an operation. FAILED_PRECONDITION when this rank has max_pending_operations under way. Where another has
  /// not waited for what was begun so many operations before, it is waited for.
  virtual base::Result<Ticket> begin(const Operation &operation) = 0;
  /// Waits until the operation, and every one before it, is complete on this rank, or the streams do:
  ///   all_reduce      all buffers hold the reduction over all contributors
  ///   reduce_scatter  each part's own slices of its buffer holds it; the rest of the buffer is unspecified
  ///   all_gather      all buffers hold every contributor's own slices
  ///   broadcast       all buffers hold the root's
  ///   gather          `gathered` of the root holds all buffers in order of contributors
  ///   barrier         every rank has begun it
  /// Afterwards no other rank touches the buffers.
  virtual base::Status wait(Ticket ticket) = 0;
  /// Whether wait() would wait for other ranks now; false also where that cannot be told. For a rank that has something
  /// else to do.
  virtual bool would_wait(Ticket ticket) const {
    (void)ticket;
    return false;
  }
  /// A point that all ranks pass, or none: when everything that was begun before is complete on all of them, also on
  /// their devices. All ranks call it at the same place in their sequence of operations; it ends as wait() does. What
  /// must not happen after a failure is issued behind it. Groups whose wait() says as much do nothing.
  virtual base::Status settle() { return base::Status(); }
  /// The same for the ranks of this process alone: what they have begun is done on their devices, whatever other
  /// processes do. Groups whose devices never wait for each other do nothing.
  virtual base::Status settle_own() { return base::Status(); }
  /// The thread waits, as wait() does, until the device has done the operation and those before it; of a replay, until
  /// it has done those up to where it waits for settle(). Groups whose wait() says as much do nothing.
  virtual base::Status await_done(Ticket ticket) {
    (void)ticket;
    return base::Status();
  }
  /// Whether devices can see for themselves that an operation was not ended before it was done, by a byte that the
  /// group's options name: what is issued behind one then may ask that instead of waiting for settle(). Some ranks may
  /// pass the last operation and others not; none is further.
  virtual bool signals_end() const { return false; }

  /// Tells that operations will often be on this memory of the rank's device, of Device::allocate_shared(): by all
  /// ranks, once; no rank begins an operation before those of its process have done so. Waits for other processes. The
  /// memory lives longer than the groups of all ranks.
  virtual void register_memory(void *memory, int64_t bytes) { (void)memory, (void)bytes; }
  /// Bytes of the rank's that this has made faster to reach, when all ranks have come, and a sentence how, or why not.
  virtual int64_t registered_bytes() const { return 0; }
  virtual std::string registration() const { return "not registered"; }

  /// Ok when operations on memory of this rank's device may be recorded with the stream that they are ordered on; else
  /// one sentence why not.
  virtual base::Status check_recording();
  /// From here on until end_recording() operations on a stream that records (backend::Stream) are written down there:
  /// begin() puts them behind what was issued, wait() lets it go on behind all of them; what begin() gives is no
  /// ticket. All ranks record the same, together; everything that was begun before is done. An operation that cannot
  /// be recorded is an error of begin(), after which the group may be as good as before: error() tells.
  virtual base::Status begin_recording();
  /// Records a place, behind all operations and once at most, where the stream waits in each replay until settle() has
  /// returned, which is called before anything else is begun. Where that fails, or withdraw() is called instead, a byte
  /// that the group's options name (`alive`) is 0 before the stream goes on.
  virtual base::Status record_settle(backend::Stream &stream);
  /// Instead of settle() by a rank that is about to end the group.
  virtual void withdraw() {}
  virtual RecordedOperations end_recording() { return {}; }
  /// Issues a recording on a stream, with the operations in it: all ranks do so at the same place in their sequence of
  /// operations, each with what they recorded together. Nothing that was begun is still to be waited for.
  virtual base::Result<Ticket> replay(const RecordedOperations &operations, backend::Recording &recording,
                                      backend::Stream &stream);

  /// Begins an operation of which another group does the work: nothing is moved, but ranks that mean another one, or do
  /// not come to it, are found out. Waited for as any. UNIMPLEMENTED where the ranks are of one process.
  virtual base::Result<Ticket> announce(const Operation &operation);
  /// From here on the group finds out by itself, also while nobody is in an operation, that a process has ended, hangs
  /// for longer than the deadline or has given up. Called once by one rank of each process, of all at the same place.
  /// Groups that know it anyway do nothing.
  virtual base::Status watch() { return base::Status(); }

  /// Ends the group with a cause, from any thread: wakes every waiting rank; their calls return ABORTED with this
  /// cause. The first call decides.
  virtual void abort(const base::Status &cause) = 0;
  /// Ok, or why the group is dead. From any thread.
  virtual base::Status error() const = 0;
  /// The token that later waits of this rank honour; null for none. It must outlive those waits.
  virtual void set_cancel(const base::CancelToken *token) = 0;

  // The usual calls: begin and wait.
  base::Status run(const Operation &operation);
  base::Status all_reduce(std::span<void *const> buffers, int64_t count, tensor::DType dtype, Reduction reduction,
                          const char *label);
  base::Status reduce_scatter(std::span<void *const> buffers, std::span<const Slice> slices, int64_t count,
                              tensor::DType dtype, Reduction reduction, const char *label);
  base::Status all_gather(std::span<void *const> buffers, std::span<const Slice> slices, int64_t count,
                          tensor::DType dtype, const char *label);
  base::Status broadcast(std::span<void *const> buffers, int64_t count, tensor::DType dtype, int32_t root,
                         const char *label);
  base::Status gather(std::span<void *const> buffers, int64_t count, tensor::DType dtype, int32_t root, void *gathered,
                      const char *label);
  base::Status barrier(const char *label);
};

}  // namespace tutti::impl::collective

#endif  // TUTTI_COLLECTIVE_GROUP_H_

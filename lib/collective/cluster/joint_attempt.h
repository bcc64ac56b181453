// SPDX-License-Identifier: Apache-2.0
//
// Something that all workers of a cluster try together, and that has failed for all of them where it has failed for
// one: how it went is told by way of the table that they share. Worker 0 hears all and says what they make of it, so
// each stage costs a worker two words, and worker 0 one for each worker. Internal to this folder.
//
//   JointAttempt attempt(options, "mesh/1/", deadline);
//   const Outcome all = attempt.agree("connected", Outcome::of(status));
//   if (all.verdict == Verdict::again) ...                       // on every worker
#ifndef TUTTI_COLLECTIVE_CLUSTER_JOINT_ATTEMPT_H_
#define TUTTI_COLLECTIVE_CLUSTER_JOINT_ATTEMPT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "collective/cluster/cluster_group.h"

namespace tutti::impl::collective::cluster {

/// One of many short waits for a key, as others of this worker may need the table meanwhile: NOT_FOUND when it is not
/// there in a tenth of a second, or until the deadline.
base::Result<std::string> look(SharedTable &table, const std::string &key, base::Deadline deadline);
/// Has the worker ended, or worker 0, who keeps the table? `deadline`: of whoever waits for the worker.
bool has_gone(const ClusterGroupOptions &options, int32_t worker, base::Deadline deadline);

/// What to do next.
enum class Verdict : char { go_on = 'g', again = 'a', give_up = 'x' };

struct Outcome {
  Verdict verdict = Verdict::go_on;
  std::string why;  ///< unless to go on: in the words of the worker for which it has failed first

  std::string dump() const { return static_cast<char>(verdict) + why; }
  static Outcome parse(std::string_view text);
};

class JointAttempt {
 public:
  /// `name`: of this attempt among the keys of the group. `options` outlive it.
  JointAttempt(const ClusterGroupOptions &options, const std::string &name)
      : options_(options), prefix_(options.key_prefix + name) {}

  const std::string &prefix() const { return prefix_; }
  /// Tells how `stage` went here, and waits until it is known how it went for all, for so long at most. A worker that
  /// has ended is a reason to give up, one that says nothing until the deadline to try again, unless worker 0 finds
  /// that `end` has passed. Errors: those of the table, and DEADLINE_EXCEEDED where worker 0 says nothing.
  base::Result<Outcome> agree(std::string_view stage, const Outcome &own, base::Deadline deadline,
                              base::Deadline end) const;

 private:
  base::Result<std::string> find_verdict(const std::string &key, base::Deadline deadline) const;
  base::Result<Outcome> hear_all(const std::string &stage, base::Deadline deadline) const;
  base::Result<Outcome> hear(int32_t worker, const std::string &stage, base::Deadline deadline) const;
  const std::string &name_of(int32_t worker) const { return options_.names[static_cast<size_t>(worker)]; }

  const ClusterGroupOptions &options_;
  const std::string prefix_;
};

}  // namespace tutti::impl::collective::cluster

#endif  // TUTTI_COLLECTIVE_CLUSTER_JOINT_ATTEMPT_H_

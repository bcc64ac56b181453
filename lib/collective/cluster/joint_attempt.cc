// SPDX-License-Identifier: Apache-2.0
#include "collective/cluster/joint_attempt.h"

#include <algorithm>

#include "base/text.h"

namespace tutti::impl::collective::cluster {

using base::Deadline;
using base::Result;
using base::Status;

namespace {

/// Between two looks whether a worker that is waited for has ended.
constexpr int64_t kLookMs = 100;
/// Worker 0 hears of the last one a little later than that has to have said it, and the others of it later still.
constexpr int64_t kLaterMs = 500;

Deadline later(Deadline deadline) {
  return deadline.is_never() ? deadline : Deadline::at(deadline.time() + std::chrono::milliseconds(kLaterMs));
}

/// For who keeps the table to answer.
int64_t patience_until(Deadline deadline) {
  return std::clamp(deadline.remaining_ms(), SharedTable::kPatienceAtLimitMs, SharedTable::kUsualPatienceMs);
}

}  // namespace

Result<std::string> look(SharedTable &table, const std::string &key, Deadline deadline) {
  return table.find(key, earlier(deadline, Deadline::after_ms(kLookMs)), patience_until(deadline));
}

bool has_gone(const ClusterGroupOptions &options, int32_t worker, Deadline deadline) {
  const std::string key = base::concat(options.key_prefix, "gone/", worker);
  return options.table->find(key, Deadline::after_ms(0), patience_until(deadline)).code() != base::Code::not_found;
}

Outcome Outcome::parse(std::string_view text) {
  if (text.empty()) return {Verdict::give_up, "the message of a worker cannot be read"};
  const char verdict = text.front();
  const bool is_known = verdict == static_cast<char>(Verdict::go_on) || verdict == static_cast<char>(Verdict::again);
  return {is_known ? static_cast<Verdict>(verdict) : Verdict::give_up, std::string(text.substr(1))};
}

Result<Outcome> JointAttempt::agree(std::string_view stage, const Outcome &own, Deadline deadline, Deadline end) const {
  const std::string key = base::concat(prefix_, stage, "/"), verdict = key + "all";
  TUTTI_TRY(options_.table->put(base::concat(key, options_.worker), own.dump(), later(deadline), false));
  if (options_.worker != 0) {
    TUTTI_ASSIGN(const std::string text, find_verdict(verdict, later(later(deadline))));
    return Outcome::parse(text);
  }
  TUTTI_ASSIGN(Outcome all, hear_all(key, later(deadline)));
  if (all.verdict == Verdict::again && end.passed()) all.verdict = Verdict::give_up;
  TUTTI_TRY(options_.table->put(verdict, all.dump(), later(later(deadline)), false));
  return all;
}

Result<std::string> JointAttempt::find_verdict(const std::string &key, Deadline deadline) const {
  for (;;) {
    Result<std::string> text = look(*options_.table, key, deadline);
    if (text.ok() || text.code() != base::Code::not_found) return text;
    if (deadline.passed()) {
      return base::deadline_exceeded(name_of(0), " did not report in time whether all workers are connected")
          .with_detail("rank", "0");
    }
  }
}

/// The first that did not go well.
Result<Outcome> JointAttempt::hear_all(const std::string &stage, Deadline deadline) const {
  Outcome all;
  for (int32_t w = 0; w < static_cast<int32_t>(options_.names.size()); ++w) {
    TUTTI_ASSIGN(Outcome one, hear(w, stage, deadline));
    if (one.verdict == Verdict::give_up) return one;
    if (one.verdict == Verdict::again && all.verdict == Verdict::go_on) all = std::move(one);
  }
  return all;
}

Result<Outcome> JointAttempt::hear(int32_t worker, const std::string &stage, Deadline deadline) const {
  const std::string key = base::concat(stage, worker);
  for (;;) {
    const Result<std::string> text = look(*options_.table, key, deadline);
    if (text.ok()) return Outcome::parse(*text);
    if (text.code() != base::Code::not_found) return text.status();
    if (has_gone(options_, worker, deadline))
      return Outcome{Verdict::give_up, base::concat(name_of(worker), " has disconnected")};
    if (deadline.passed()) return Outcome{Verdict::again, base::concat(name_of(worker), " did not connect in time")};
  }
}

}  // namespace tutti::impl::collective::cluster

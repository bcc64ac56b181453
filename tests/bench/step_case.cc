// SPDX-License-Identifier: Apache-2.0
#include "step_case.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "meters.h"
#include "runtime/backend_list.h"

namespace tutti::testing {

using impl::backend::Level;
using impl::base::Result;
using impl::base::Status;

namespace {

constexpr double kStretchSeconds = 100e-3;
constexpr int64_t kLeastStretch = 4, kLongestStretch = 256;

}  // namespace

Result<StepCase> StepCase::create(const std::string &backend_name, const CaseSpec &spec,
                                  const impl::backend::HostOptions &host, int32_t compile_flags) {
  StepCase made;
  made.spec_ = spec;
  const int32_t flags = spec.flags | compile_flags;
  impl::backend::HostOptions options = host;
  options.thread_budget = spec.threads;
  TUTTI_ASSIGN(const auto backend, impl::runtime::open_backend(backend_name, "{}", options));
  TUTTI_ASSIGN(const StepModel model, make_step_model(spec.model));
  if (spec.form == "training") {
    made.flops_ = model.dense_flops * static_cast<double>(spec.batch);
    TUTTI_ASSIGN(made.trainer_,
                 StepTrainer::create(backend, model, spec.batch, Level::fast, flags, spec.threads, spec.bucketed));
  } else if (spec.form == "inference") {
    made.flops_ = model.forward_flops * static_cast<double>(spec.batch);
    TUTTI_ASSIGN(made.predictor_, StepPredictor::create(backend, model, spec.batch, Level::fast, flags, spec.threads));
  } else {
    return impl::base::invalid_argument("'", spec.form, "' is neither training nor inference");
  }
  made.build_seconds_ = made.trainer_ ? made.trainer_->build_seconds() : made.predictor_->build_seconds();
  return made;
}

Result<Measured> StepCase::measure(double seconds, int64_t least) {
  Measured result;
  const double cpu = cpu_seconds(), wall = wall_seconds();
  double issuing = std::numeric_limits<double>::infinity();
  // A clock read costs as much as a small step: many of those go between two. Devices are waited for at the end of each
  // stretch, as they would be given minutes of work in a second; a stretch is long enough that this does not show, and
  // shorter than what drivers queue. Behind a wait caches are cold: some steps share that, however long they are.
  int64_t stretch = 1;
  for (double last = wall; result.steps < least || last - wall < seconds;) {
    const double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int64_t i = 0; i < stretch; ++i)
      TUTTI_TRY(run_once());
    // Where more is queued than a driver holds, the thread waits in it, in a loop: that is not what a step takes.
    issuing = std::min(issuing, (clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start) / static_cast<double>(stretch));
    TUTTI_TRY(synchronize());
    ++result.waits;
    result.steps += stretch;
    const double now = wall_seconds();
    const bool is_short = now - last < kStretchSeconds || stretch < kLeastStretch;
    if (!spec_.waits && is_short && stretch < kLongestStretch) stretch *= 2;
    last = now;
  }
  const auto steps = static_cast<double>(result.steps);
  result.cpu_ms = (cpu_seconds() - cpu) / steps * 1e3;
  result.wall_ms = (wall_seconds() - wall) / steps * 1e3;
  result.issue_ms = issuing * 1e3;
  return result;
}

int64_t StepCase::workspace_bytes() const {
  return trainer_ ? trainer_->workspace_bytes() : predictor_->workspace_bytes();
}

std::vector<std::string> StepCase::reports() const {
  if (predictor_) return {predictor_->report()};
  return trainer_->reports();
}

}  // namespace tutti::testing

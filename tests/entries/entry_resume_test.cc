// SPDX-License-Identifier: Apache-2.0
//
// Every entry of the registries in a training that ends in mid-pass and goes on from its checkpoint in another
// estimator: the checkpoint at the end has the bytes of one that was not interrupted, with its weights, slots, running
// and carried states, random streams and place in the input.
#include "base/file.h"
#include "base/text.h"
#include "checkpoint/checkpoint_testing.h"
#include "data/pipeline/pipeline.h"
#include "entries/entry_training.h"
#include "estimator/estimator.h"
#include "estimator/hooks/standing_hooks.h"
#include "testing.h"

namespace tutti::testing::entry_resume_test {

namespace base = impl::base;
namespace data = impl::data;
namespace estimator = impl::estimator;
using entries::EntryCase;
using impl::checkpoint::TemporaryDirectory;

namespace {

constexpr int64_t kSteps = 5, kInterruptedAt = 2;

Result<data::DatasetRef> shuffled_batches(const EntryCase &one) {
  constexpr int64_t kRows = 19;
  TUTTI_ASSIGN(const data::DatasetRef rows, entries::make_rows(one, DType::f32, kRows));
  data::Pipeline pipeline(rows);
  return pipeline.shuffle(kRows).batch(7).repeat().build();
}

/// Goes on from what is in the directory, in an estimator of its own.
Status train_steps(const EntryCase &one, const std::string &directory, int64_t steps) {
  estimator::RunConfig config;
  config.model_dir = directory;
  config.seed = 3;
  config.save_checkpoints_steps = 1000;
  config.log_step_count_steps = 0;
  config.without_predictions = true;
  config.level = impl::backend::Level::repeatable;
  const auto build = [&one](GraphBuilder &builder, estimator::Mode mode) {
    entries::build(builder, one, DType::f32, mode == estimator::Mode::train);
    return builder.status();
  };
  TUTTI_ASSIGN(const StrategyRef strategy, make_test_strategy(one.in_pieces.empty() ? 2 : 1));
  TUTTI_ASSIGN(const auto trained, estimator::Estimator::create(build, config, strategy, {},
                                                                estimator::hooks::standing_hooks(config, nullptr)));
  estimator::TrainRequest request;
  TUTTI_ASSIGN(request.dataset, shuffled_batches(one));
  request.steps = steps;
  return trained->train(request).status();
}

/// The file of two checkpoints that differs, and where; empty where none does.
Result<std::string> other_bytes(const std::string &a, const std::string &b) {
  TUTTI_ASSIGN(const std::vector<std::string> names, base::list_directory(a));
  TUTTI_ASSIGN(const std::vector<std::string> others, base::list_directory(b));
  if (names.empty() || names != others) return std::string("other files");
  for (const std::string &name : names) {
    TUTTI_ASSIGN(const std::string left, base::read_file(a + "/" + name));
    TUTTI_ASSIGN(const std::string right, base::read_file(b + "/" + name));
    size_t at = 0;
    while (at < left.size() && at < right.size() && left[at] == right[at])
      ++at;
    if (left != right) return base::concat(name, " differs at byte ", at);
  }
  return std::string();
}

Result<std::string> compare_runs(const EntryCase &one) {
  const TemporaryDirectory whole, parts;
  TUTTI_TRY(train_steps(one, whole.path(), kSteps));
  TUTTI_TRY(train_steps(one, parts.path(), kInterruptedAt));
  TUTTI_TRY(train_steps(one, parts.path(), kSteps - kInterruptedAt));
  const std::string last = base::concat("/checkpoint-", kSteps);
  return other_bytes(whole.path() + last, parts.path() + last);
}

std::string wrong_after_resuming(const EntryCase &one) {
  const Result<std::string> wrong = compare_runs(one);
  return wrong.ok() ? *wrong : wrong.status().to_string();
}

void test_resuming(void **) { entries::check_all(entries::chosen_cases(), wrong_after_resuming); }

const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_resuming),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace tutti::testing::entry_resume_test

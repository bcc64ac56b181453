// SPDX-License-Identifier: Apache-2.0
#include "entries/entry_training.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "data/pipeline/pipeline.h"
#include "testing.h"

namespace tutti::testing::entries {

namespace base = impl::base;
namespace data = impl::data;

namespace {

Result<Model> make_model(const EntryCase &one, DType dtype) {
  GraphBuilder builder;
  declare_features(builder, one, dtype);
  build(builder, one, dtype, true);
  return builder.finish();
}

Result<std::unique_ptr<data::Iterator>> batches(const EntryCase &one, const EntryRun &run) {
  TUTTI_ASSIGN(const data::DatasetRef rows, make_rows(one, run.dtype, run.rows));
  data::Pipeline pipeline(rows);
  TUTTI_ASSIGN(const data::DatasetRef dataset, pipeline.batch(run.batch).build());
  return dataset->make_iterator({});
}

std::vector<double> numbers_of(const impl::distribute::NamedNumber &number) {
  return number.is_number() ? std::vector<double>{number.value} : to_doubles(number.elements);
}

/// Applies `compare` to what both have under each name; its text behind the name of the first that has one.
using Compare = std::function<std::string(const std::vector<double> &, const std::vector<double> &)>;
std::string compare_all(const Trained &got, const Trained &expected, const Compare &compare) {
  std::string wrong = compare(got.losses, expected.losses);
  if (!wrong.empty()) return base::concat("losses: ", wrong);
  for (const auto &[name, values] : expected.variables) {
    const auto found = got.variables.find(name);
    wrong = found == got.variables.end() ? "is missing" : compare(found->second, values);
    if (!wrong.empty()) return base::concat(name, ": ", wrong);
  }
  return got.replicas_identical ? "" : "replicas differ";
}

}  // namespace

Result<Trained> train(const EntryCase &one, const EntryRun &run) {
  TUTTI_ASSIGN(const Model model, make_model(one, run.dtype));
  TUTTI_ASSIGN(const StrategyRef strategy, make_test_strategy(run.replicas));
  TUTTI_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::open(model, strategy, run.options));
  TUTTI_TRY(trainer->initialize());
  TUTTI_ASSIGN(std::unique_ptr<data::Iterator> iterator, batches(one, run));
  TUTTI_TRY(trainer->attach_input(std::move(iterator)));
  Trained result;
  TUTTI_ASSIGN(const impl::distribute::RunReport report, trainer->run(run.steps, nullptr));
  result.examples = report.examples;
  result.losses = trainer->loss_history();
  for (const auto &variable : model.variables) {
    TUTTI_ASSIGN(const Tensor value, trainer->get_variable(variable.name));
    result.variables[variable.name] = to_doubles(value);
  }
  TUTTI_ASSIGN(result.replicas_identical, trainer->replicas_are_identical());
  if (run.steps == 0) return result;
  TUTTI_ASSIGN(const auto reported, trainer->report());
  for (const impl::distribute::NamedNumber &number : reported)
    result.variables["report/" + number.name] = numbers_of(number);
  return result;
}

std::string difference(const Trained &got, const Trained &expected, double limit) {
  return compare_all(got, expected, [&](const std::vector<double> &a, const std::vector<double> &b) -> std::string {
    if (a.size() != b.size()) return "another number of elements";
    double most = 0, size = 1e-3;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return base::concat("element ", i, " is ", a[i], " and ", b[i]);
      most = std::max(most, std::fabs(a[i] - b[i]));
      size = std::max(size, std::fabs(b[i]));
    }
    return most <= limit * size ? "" : base::concat("differ by ", most, " of ", size);
  });
}

std::string other_bits(const Trained &got, const Trained &expected) {
  return compare_all(got, expected, [](const std::vector<double> &a, const std::vector<double> &b) -> std::string {
    if (a.size() != b.size()) return "another number of elements";
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::memcmp(&a[i], &b[i], sizeof(double)) != 0)
        return base::concat("element ", i, " is ", a[i], ", not ", b[i], ": off by ", a[i] - b[i]);
    }
    return "";
  });
}

std::string wrong_with_error(const Result<Trained> &outcome, const std::string &needle) {
  if (outcome.ok()) return base::concat("expected an error with \"", needle, "\", got none");
  const std::string text = outcome.status().to_string();
  return text.find(needle) != std::string::npos ? ""
                                                : base::concat("expected an error with \"", needle, "\", got: ", text);
}

void check_all(const std::vector<EntryCase> &cases, const std::function<std::string(const EntryCase &)> &wrong_with) {
  const char *const chosen = std::getenv("TUTTI_TEST_ENTRY");
  int wrong = 0, checked = 0;
  for (const EntryCase &one : cases) {
    const std::string name = one.name();
    if (chosen != nullptr && name.find(chosen) == std::string::npos) continue;
    ++checked;
    const std::string text = wrong_with(one);
    if (text.empty()) continue;
    print_error("%s: %s\n", name.c_str(), text.c_str());
    ++wrong;
  }
  print_message("%d cases\n", checked);
  assert_int_equal(wrong, 0);
  assert_true(checked > 0);
}

}  // namespace tutti::testing::entries

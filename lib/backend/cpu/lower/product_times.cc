// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/product_times.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/convolution/convolution_timing.h"
#include "backend/cpu/simd/simd_gemm.h"
#include "backend/cpu/simd/simd_split_gemm.h"

namespace tutti::impl::backend::cpu {

using base::Result;
using base::Status;

namespace {

/// What saves less time than this is not worth rounding for.
constexpr double kProductWorthRounding = 1.05;
constexpr std::string_view kPrefix = "product n", kExact = "f32", kRounded = "bf16";

/// Everything about a question but the rows.
std::string product_name(const ProductRequest &q) {
  return q.turned ? base::concat("turned ", q.m, "x", q.n) : base::concat(q.b_turned ? "b_turned " : "", q.k, "x", q.n);
}

std::string product_file_key(const ProductRequest &q) { return base::concat(kPrefix, q.rows(), " ", product_name(q)); }

/// The rows and the name of a key; nothing if it is no such key.
std::optional<std::pair<int64_t, std::string>> split_product_key(std::string_view key) {
  if (!key.starts_with(kPrefix)) return std::nullopt;
  key.remove_prefix(kPrefix.size());
  const size_t space = key.find(' ');
  int64_t rows = 0;
  if (space == std::string_view::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(key.data(), key.data() + space, rows);
  if (error != std::errc() || end != key.data() + space || rows < 1) return std::nullopt;
  return std::pair(rows, std::string(key.substr(space + 1)));
}

int64_t multiplications(const ProductRequest &q) { return q.m * q.n * q.k; }

ProductRequest with_rows(ProductRequest question, int64_t rows) {
  (question.turned ? question.k : question.m) = rows;
  return question;
}

/// What lower_dense does without the library.
double own_seconds(const ProductRequest &q, TimingMemory &memory) {
  GemmShape g;
  g.m = q.m, g.n = q.n, g.k = q.k, g.c_row = q.n;
  g.a_row = q.turned ? 1 : q.k, g.a_column = q.turned ? q.m : 1;
  g.b_row = q.b_turned ? 1 : q.n, g.b_column = q.b_turned ? q.k : 1;
  const auto floats = static_cast<int64_t>(sizeof(float));
  const auto *a = static_cast<const float *>(memory.numbers((q.m * q.k + q.k * q.n) * floats));
  const bool splits = split_gemm_suits(g);
  const int64_t scratch_floats = splits ? split_gemm_scratch_floats(g) : gemm_scratch_floats(g);
  auto *c = static_cast<float *>(memory.results((q.m * q.n + scratch_floats + 64) * floats));
  float *const scratch = c + (q.m * q.n + 15) / 16 * 16;
  const auto multiply = splits ? split_gemm : gemm;
  return least_seconds([&] { multiply(g, a, a + q.m * q.k, c, {}, scratch); });
}

std::optional<double> library_seconds(const ProductRequest &q, TimingMemory &memory) {
  const auto plan = ProductPlan::make(q);
  if (!plan.ok()) return std::nullopt;
  const auto floats = static_cast<int64_t>(sizeof(float));
  const std::unique_ptr<Kernel> kernel = (*plan)->kernel({0, 1, -1, 2, 3});
  const Result<std::unique_ptr<KernelState>> state = kernel->make_state();
  if (!state.ok()) return std::nullopt;
  auto *a = static_cast<float *>(memory.numbers((q.m * q.k + q.k * q.n + 16) * floats));
  auto *c = static_cast<float *>(memory.results((q.m * q.n + 16) * floats + (*plan)->scratch_bytes()));
  void *const buffers[] = {a, a + (q.m * q.k + 15) / 16 * 16, c, c + (q.m * q.n + 15) / 16 * 16};
  RunContext context;
  context.buffers = buffers;
  context.host = &quiet_host();
  int32_t code = 0;
  const double seconds = least_seconds([&] { code |= kernel->run(context, state->get()); });
  return code == 0 ? std::optional(seconds) : std::nullopt;
}

/// With other rows as well, to tell what is the same for all of them.
template <typename Seconds>
std::optional<RunTime> run_time(const ProductRequest &q, const Seconds &seconds_of) {
  constexpr double kMost = 0.9;
  const std::optional<double> whole = seconds_of(q),
                              half = seconds_of(with_rows(q, std::max<int64_t>(1, q.rows() / 2)));
  if (!whole || !half) return std::nullopt;
  return RunTime{*whole, std::clamp(2 * *half - *whole, 0.0, kMost * *whole)};
}

TimesByCandidate time(const ProductRequest &q, TimingMemory &memory) {
  TimesByCandidate times;
  times[std::string(kRounded)] = run_time(q, [&](const ProductRequest &one) { return library_seconds(one, memory); });
  times[std::string(kExact)] = run_time(q, [&](const ProductRequest &one) {
    ProductRequest exact = one;
    exact.bf16 = false;
    const double own = own_seconds(exact, memory);
    if (!ProductPlan::suits(exact)) return std::optional(own);
    return std::optional(std::min(own, library_seconds(exact, memory).value_or(own)));
  });
  return times;
}

}  // namespace

ProductTimes &ProductTimes::of_process() {
  static ProductTimes *const table = new ProductTimes;
  return *table;
}

void ProductTimes::load(const PlanCache &cache, const Log &log) {
  TimesByShape times = cache.load_once(loaded_, log);
  for (auto &[key, candidates] : times) {
    const auto split = split_product_key(key);
    if (split && candidates.contains(kExact) && candidates.contains(kRounded)) {
      table_[split->second].try_emplace(split->first, std::move(candidates));
    }
  }
}

void ProductTimes::measure(std::span<const ProductRequest> questions, const PlanCache &cache, const Log &log) {
  const std::lock_guard lock(mutex_);
  load(cache, log);
  std::map<std::string, ProductRequest> missing;  // by key, each once
  for (const ProductRequest &question : questions) {
    const auto known = table_.find(product_name(question));
    const bool is_known = known != table_.end() && known->second.contains(question.rows());
    if (!is_known && ProductPlan::suits(question)) missing.emplace(product_file_key(question), question);
  }
  if (missing.empty()) return;
  std::vector<std::pair<std::string, ProductRequest>> largest(missing.begin(), missing.end());
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto &a, const auto &b) { return multiplications(a.second) > multiplications(b.second); });
  TimingMemory memory;
  TimesByShape fresh;
  const double start = thread_seconds();
  for (const auto &[key, question] : largest) {
    if (thread_seconds() - start > kBudgetSeconds) break;
    fresh[key] = table_[product_name(question)][question.rows()] = time(question, memory);
    ++measured_;
  }
  const Status stored = cache.store(fresh);
  if (!stored.ok()) log(base::concat("the plan cache is not written: ", stored.message()));
}

bool ProductTimes::compare(const ProductRequest &question) const {
  const auto known = table_.find(product_name(question));
  if (known == table_.end() || known->second.empty() || !ProductPlan::suits(question)) return false;
  const auto far = [&](int64_t rows) {
    return std::fabs(std::log(static_cast<double>(rows) / static_cast<double>(question.rows())));
  };
  const auto nearest = std::min_element(known->second.begin(), known->second.end(),
                                        [&](const auto &a, const auto &b) { return far(a.first) < far(b.first); });
  const double factor = static_cast<double>(question.rows()) / static_cast<double>(nearest->first);
  const std::optional<RunTime> exact = nearest->second.find(kExact)->second,
                               rounded = nearest->second.find(kRounded)->second;
  return exact && rounded && kProductWorthRounding * rounded->scaled(factor).seconds < exact->scaled(factor).seconds;
}

bool ProductTimes::pays(const ProductRequest &question) {
  const std::lock_guard lock(mutex_);
  const std::string key = product_file_key(question);
  const auto answer = answers_.find(key);
  if (answer != answers_.end()) return answer->second;
  return answers_[key] = compare(question);
}

int64_t ProductTimes::measured_count() {
  const std::lock_guard lock(mutex_);
  return measured_;
}

void ProductTimes::forget() {
  const std::lock_guard lock(mutex_);
  table_.clear();
  answers_.clear();
  loaded_.clear();
  measured_ = 0;
}

}  // namespace tutti::impl::backend::cpu

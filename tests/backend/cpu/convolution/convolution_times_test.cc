// SPDX-License-Identifier: Apache-2.0
//
// The table of times: each shape is timed once in a process, and not at all when the cache knows it; what nobody timed
// has an answer all the same, and keeps it.
#include "backend/cpu/convolution/convolution_times.h"
#include "backend/cpu/dnnl/cpu_fingerprint.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/temporary_directory.h"
#include "testing.h"

namespace convolution_times_test {

namespace {

using tutti::impl::backend::PlanCache;
using tutti::impl::backend::cpu::ConvolutionPass;
using tutti::impl::backend::cpu::ConvolutionQuestion;
using tutti::impl::backend::cpu::ConvolutionTimes;
using tutti::impl::backend::cpu::cpu_plan_cache;
using tutti::impl::backend::cpu::label;
using tutti::impl::backend::cpu::TimedCandidate;
using tutti::testing::TemporaryDirectory;
namespace base = tutti::impl::base;

ConvolutionQuestion question(int64_t rows, ConvolutionPass pass = ConvolutionPass::forward, int64_t channels = 32) {
  ConvolutionQuestion q;
  q.pass = pass;
  q.shape.rows = rows;
  q.shape.in_channels = q.shape.out_channels = channels;
  q.shape.in_height = q.shape.out_height = 9;
  q.shape.in_width = q.shape.out_width = 7;
  q.shape.kernel_height = q.shape.kernel_width = 3;
  for (int axis : {0, 1})
    q.shape.pad_low[axis] = q.shape.pad_high[axis] = 1;
  return q;
}

std::vector<ConvolutionQuestion> questions(int64_t rows) {
  return {question(rows), question(rows, ConvolutionPass::input_gradient),
          question(rows, ConvolutionPass::kernel_gradient), question(rows)};
}

auto candidates(int64_t rows) {
  return tutti::impl::backend::cpu::convolution_candidates(question(rows).shape, ConvolutionPass::forward,
                                                           TUTTI_LEVEL_FAST, 1);
}

std::string text_of(const std::vector<TimedCandidate> &times) {
  std::string text;
  for (const TimedCandidate &one : times)
    text += base::concat(label(one.candidate), " ", one.seconds, "\n");
  return text;
}

struct Lines {
  int count = 0;
  ConvolutionTimes::Log log() {
    return [this](const std::string &) { ++count; };
  }
};

ConvolutionTimes &fresh_table() {
  ConvolutionTimes::of_process().forget();
  return ConvolutionTimes::of_process();
}

void each_shape_is_timed_once(void **) {
  ConvolutionTimes &table = fresh_table();
  Lines lines;
  table.measure(questions(8), cpu_plan_cache(""), lines.log());
  assert_int_equal(table.measured_count(), 3);
  const std::string first = text_of(table.of(question(8)));
  // Every candidate of which there is a plan on this processor; plain loops only where there is nothing else.
  size_t real = 0;
  for (const auto &candidate : candidates(8)) {
    if (candidate.family->is_last_resort || !candidate.family->make(candidate.request).ok()) continue;
    ++real;
    assert_contains(first.c_str(), label(candidate).c_str());
  }
  assert_int_equal(table.of(question(8)).size(), real > 0 ? real : 1);
  table.measure(questions(8), cpu_plan_cache(""), lines.log());
  assert_int_equal(table.measured_count(), 3);
  assert_string_equal(text_of(table.of(question(8))).c_str(), first.c_str());
  assert_int_equal(lines.count, 0);
}

void times_outlive_the_process(void **) {
  const TemporaryDirectory directory;
  const PlanCache cache = cpu_plan_cache(directory / "cache");
  ConvolutionTimes &table = fresh_table();
  Lines lines;
  table.measure(questions(8), cache, lines.log());
  const std::string first = text_of(table.of(question(8)));
  table.forget();
  table.measure(questions(8), cache, lines.log());
  assert_int_equal(table.measured_count(), 0);
  assert_string_equal(text_of(table.of(question(8))).c_str(), first.c_str());
  assert_int_equal(lines.count, 0);
}

void a_cache_of_no_use_costs_a_line(void **) {
  const TemporaryDirectory directory;
  const PlanCache cache = cpu_plan_cache(directory.path());
  assert_ok(base::write_file_atomically(cache.path(), "{\"format\": 1}"));
  ConvolutionTimes &table = fresh_table();
  Lines lines;
  table.measure(questions(8), cache, lines.log());
  assert_int_equal(table.measured_count(), 3);
  assert_int_equal(lines.count, 1);
  // It has been replaced.
  table.forget();
  table.measure(questions(8), cache, lines.log());
  assert_int_equal(table.measured_count(), 0);
  assert_int_equal(lines.count, 1);
  assert_ok(base::write_file_atomically(directory / "file", "text"));
  table.measure(questions(1), cpu_plan_cache(directory / "file/folder"), lines.log());
  assert_int_equal(table.measured_count(), 3);
  assert_int_equal(lines.count, 2);
}

void what_nobody_timed_keeps_its_answer(void **) {
  ConvolutionTimes &table = fresh_table();
  const std::string guessed = text_of(table.of(question(8)));
  assert_contains(guessed.c_str(), "dnnl_");
  Lines lines;
  table.measure(std::vector<ConvolutionQuestion>{question(8)}, cpu_plan_cache(""), lines.log());
  assert_int_equal(table.measured_count(), 0);
  assert_string_equal(text_of(table.of(question(8))).c_str(), guessed.c_str());
}

// What the first process had no time for is timed by those after it, a part by each, and then none is left.
void later_processes_go_on_where_one_stopped(void **) {
  constexpr int64_t kWidths = 200;
  const TemporaryDirectory directory;
  const PlanCache cache = cpu_plan_cache(directory / "cache");
  ConvolutionTimes &table = fresh_table();
  Lines lines;
  std::vector<ConvolutionQuestion> all = {question(512)};  // the largest, which a first process begins with
  table.measure(all, cache, lines.log());
  assert_int_equal(table.measured_count(), 1);
  for (int64_t width = 8; width < 8 + kWidths; ++width) {
    all.push_back(question(1));
    all.back().shape.in_width = all.back().shape.out_width = width;
    all.back().shape.rows = 3000 / width;
  }
  int64_t timed = 0;
  for (int process = 0; process < kWidths && timed < kWidths; ++process) {
    table.forget();
    table.measure(all, cache, lines.log());
    assert_in_range(table.measured_count(), 1, kWidths - 1);
    timed += table.measured_count();
  }
  assert_int_equal(timed, kWidths);
  table.forget();
  table.measure(all, cache, lines.log());
  assert_int_equal(table.measured_count(), 0);
  assert_int_equal(lines.count, 0);
}

void rows_nearby_share_times(void **) {
  ConvolutionTimes &table = fresh_table();
  Lines lines;
  table.measure(std::vector<ConvolutionQuestion>{question(4)}, cpu_plan_cache(""), lines.log());
  const std::vector<TimedCandidate> four = table.of(question(4)), one = table.of(question(1)),
                                    five = table.of(question(5));
  assert_int_equal(table.measured_count(), 1);
  assert_int_equal(four.size(), one.size());
  assert_int_equal(four.size(), five.size());
  for (size_t i = 0; i < four.size(); ++i) {
    assert_int_equal(five[i].candidate.request.shape.rows, 5);
    assert_true(one[i].seconds < four[i].seconds && four[i].seconds < five[i].seconds);
    // Only what transforms kernels takes more than the rows make it.
    if (four[i].candidate.family->transforms_kernels) continue;
    assert_true(std::abs(one[i].seconds * 4 / four[i].seconds - 1) < 1e-12);
    assert_true(std::abs(five[i].seconds * 4 / (5 * four[i].seconds) - 1) < 1e-12);
  }
}

void widths_that_do_not_block_have_candidates(void **) {
  ConvolutionTimes &table = fresh_table();
  Lines lines;
  for (int64_t channels : {1, 3, 17}) {
    const std::vector<ConvolutionQuestion> odd = {question(3, ConvolutionPass::forward, channels),
                                                  question(3, ConvolutionPass::input_gradient, channels),
                                                  question(3, ConvolutionPass::kernel_gradient, channels)};
    table.measure(odd, cpu_plan_cache(""), lines.log());
    for (const ConvolutionQuestion &one : odd) {
      const std::vector<TimedCandidate> times = table.of(one);
      assert_true(!times.empty());
      for (const TimedCandidate &time : times) {
        assert_true(time.seconds > 0);
        assert_false(time.candidate.request.blocked_input || time.candidate.request.blocked_output);
      }
    }
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(each_shape_is_timed_once),
      cmocka_unit_test(times_outlive_the_process),
      cmocka_unit_test(a_cache_of_no_use_costs_a_line),
      cmocka_unit_test(what_nobody_timed_keeps_its_answer),
      cmocka_unit_test(rows_nearby_share_times),
      cmocka_unit_test(widths_that_do_not_block_have_candidates),
      cmocka_unit_test(later_processes_go_on_where_one_stopped),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace convolution_times_test

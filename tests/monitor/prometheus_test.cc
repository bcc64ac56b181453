// SPDX-License-Identifier: Apache-2.0
//
// tests lib/monitor/prometheus.cc: numbers and names as the text format 0.0.4 has them.
#include "monitor/prometheus.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "testing.h"

namespace tutti::testing::prometheus_test {

using namespace tutti::impl::monitor;

static void test_numbers(void **) {
  assert_string_equal(prometheus_number(std::nan("")).c_str(), "NaN");
  assert_string_equal(prometheus_number(INFINITY).c_str(), "+Inf");
  assert_string_equal(prometheus_number(-INFINITY).c_str(), "-Inf");
  assert_string_equal(prometheus_number(0).c_str(), "0");
  assert_string_equal(prometheus_number(-3).c_str(), "-3");
  for (const double number : {0.1, 1.0 / 3, 1e300, 5e-324, std::numeric_limits<double>::max()})
    assert_true(std::strtod(prometheus_number(number).c_str(), nullptr) == number);
}

static void test_labels(void **) {
  assert_string_equal(prometheus_label("top 5/größe").c_str(), "top 5/größe");
  assert_string_equal(prometheus_label("a\"b\\c\nd").c_str(), "a\\\"b\\\\c\\nd");
  assert_string_equal(prometheus_label("a\xff").c_str(), "a\xef\xbf\xbd");
}

// What is not known is not there; metrics of the model are labels, whatever they are called.
static void test_page(void **) {
  PrometheusPage page;
  assert_string_equal(page.text().c_str(),
                      "# HELP tutti_training_running 1 while a training runs, else 0\n"
                      "# TYPE tutti_training_running gauge\ntutti_training_running 0\n"
                      "# HELP tutti_training_failed 1 if the last training ended with an error, else 0\n"
                      "# TYPE tutti_training_failed gauge\ntutti_training_failed 0\n");
  page.change([](PrometheusPage::Training &training, PrometheusPage::Evaluation &evaluation) {
    training = {.has_begun = true, .is_running = true};
    training.step = 7;
    training.values = {{"loss", INFINITY}, {"Top", 1}, {"top", std::nan("")}};
    evaluation = {5, {{"top", 0.5}}};
  });
  const std::string text = page.text();
  for (const char *part : {"\ntutti_step 7\n", "\ntutti_loss +Inf\n", "\ntutti_metric{name=\"Top\"} 1\n",
                           "\ntutti_metric{name=\"top\"} NaN\n", "\ntutti_evaluation_metric{name=\"top\"} 0.5\n"})
    assert_contains(text.c_str(), part);
  for (const char *part : {"tutti_evaluation_loss", "tutti_remaining_seconds", "tutti_checkpoint_step"})
    assert_true(text.find(part) == std::string::npos);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_labels),
    cmocka_unit_test(test_page),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::prometheus_test

// SPDX-License-Identifier: Apache-2.0
//
// tests lib/monitor/shown_summary.cc: what several workers have becomes one summary.
#include "monitor/shown_summary.h"

#include <vector>

#include "data/routine/image_file.h"
#include "testing.h"

namespace tutti::testing::shown_summary_test {

using namespace tutti::impl::monitor;
using impl::graph::SummaryKind;
using impl::tensor::Tensor;

static Tensor floats(const std::vector<int64_t> &dims, const std::vector<float> &values) {
  return assert_ok_value(Tensor::from_values<float>(assert_ok_value(impl::tensor::Shape::make(dims)), values));
}

/// Sent by one, taken by the other.
static void send(const ShownSummary &from, ShownSummary &to) {
  std::vector<Tensor> sent;
  assert_ok(from.put(sent));
  std::span<const Tensor> left(sent);
  assert_ok(to.take(left));
  assert_true(left.empty());
}

static void test_histograms(void **) {
  ShownSummary first{{.kind = SummaryKind::histogram, .name = "h"}}, second = first, whole = first;
  assert_ok(first.add(floats({3}, {1, -2, 1e-30F})));
  assert_ok(second.add(floats({2, 2}, {5, 5, 0, -1e20F})));
  assert_ok(whole.add(floats({7}, {1, -2, 1e-30F, 5, 5, 0, -1e20F})));
  send(second, first);
  assert_true(first.histogram.message() == whole.histogram.message());
  // A worker without rows changes nothing.
  send({{.kind = SummaryKind::histogram, .name = "h"}}, first);
  assert_true(first.histogram.message() == whole.histogram.message());
}

static void test_images(void **) {
  if (!impl::data::PngReader::is_built()) return;
  const ShownSummary none{{.kind = SummaryKind::image, .name = "i", .most_images = 3}};
  ShownSummary first = none, second = none, empty = none, other = none;
  assert_ok(first.add(floats({2, 1, 2, 1}, {0, 0.25F, 0.5F, 1})));
  assert_ok(second.add(floats({2, 1, 2, 1}, {1, 1, 0, 0})));
  const std::vector<std::string> own = first.images;
  send(second, first);
  assert_int_equal(first.images.size(), 3);
  assert_true(first.images[0] == own[0] && first.images[1] == own[1] && first.images[2] == second.images[0]);
  send(second, empty);
  assert_true(empty.images == second.images && empty.height == 1 && empty.width == 2);
  // Of another size they are left out.
  assert_ok(other.add(floats({1, 2, 2, 1}, {1, 1, 0, 0})));
  send(other, empty);
  assert_int_equal(empty.images.size(), 2);
}

static void test_what_is_none(void **) {
  std::vector<Tensor> sent;
  ShownSummary histogram{{.kind = SummaryKind::histogram, .name = "h"}};
  std::span<const Tensor> left;
  assert_error_contains(histogram.take(left), "something else than its summaries");
  sent.push_back(floats({2}, {1, 2}));
  left = sent;
  assert_error_contains(histogram.take(left), "something else than its summaries");
  sent = {assert_ok_value(Tensor::from_values<double>({3}, {1, 2, 3}))};
  left = sent;
  assert_error_contains(histogram.take(left), "numbers, got 3");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_histograms),
    cmocka_unit_test(test_images),
    cmocka_unit_test(test_what_is_none),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::shown_summary_test

// SPDX-License-Identifier: Apache-2.0
//
// ignore_errors: what the log says of the elements that are left out.
#include <string>
#include <vector>

#include "base/log.h"
#include "data/pipeline/pipeline.h"
#include "sample_data.h"
#include "testing.h"

namespace ignore_errors_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Ref;
using base::Status;
using data::DatasetRef;
using data::Element;

namespace {

// Whole passes over rows of which only the first is good; the lines of the log.
std::vector<std::string> lines_of(int64_t rows, int passes, bool has_logger = true) {
  data::TransformArguments failing;
  failing.map = [](const Element &input, Element &output) -> Status {
    output = input;
    TUTTI_ASSIGN(const int32_t row, input.components[1].scalar_value<int32_t>());
    return row == 0 ? Status() : base::data_loss("row ", row, " is broken");
  };
  data::Pipeline pipeline = sample(rows);
  const DatasetRef dataset = assert_ok_value(
      pipeline.apply("map_callback", {}, std::move(failing)).apply("ignore_errors", {{"budget", rows}}).build());
  std::vector<std::string> lines;
  const Ref<base::Logger> logger = base::make_ref<base::Logger>();
  logger->set_sink([&](base::Severity severity, std::string_view line) {
    assert_true(severity == base::Severity::warning);
    lines.emplace_back(line);
  });
  for (int pass = 0; pass < passes; ++pass) {
    data::IteratorContext context;
    context.epoch = pass;
    if (has_logger) context.logger = logger;
    const auto iterator = assert_ok_value(dataset->make_iterator(context));
    Element element;
    assert_true(assert_ok_value(iterator->next(element)));
    assert_false(assert_ok_value(iterator->next(element)));
  }
  return lines;
}

void the_first_errors_are_told_each(void **) {
  const std::vector<std::string> lines = lines_of(4, 1);
  assert_int_equal(lines.size(), 3);
  assert_contains(lines[0].c_str(), "ignore_errors: left out: ");
  assert_contains(lines[0].c_str(), "element 1 of epoch 0");
  assert_contains(lines[0].c_str(), "row 1 is broken");
  assert_contains(lines[2].c_str(), "row 3 is broken");
}

void many_errors_are_counted(void **) {
  // 66 of each pass.
  const std::vector<std::string> lines = lines_of(67, 2);
  assert_int_equal(lines.size(), 7);
  assert_contains(lines[4].c_str(), "row 5 is broken");
  assert_contains(lines[5].c_str(), "10 elements were left out so far");
  assert_contains(lines[6].c_str(), "100 elements were left out so far");
  assert_contains(lines[6].c_str(), "element 34 of epoch 1");
}

void nobody_need_listen(void **) { assert_true(lines_of(12, 1, false).empty()); }

const CMUnitTest tests[] = {
    cmocka_unit_test(the_first_errors_are_told_each),
    cmocka_unit_test(many_errors_are_counted),
    cmocka_unit_test(nobody_need_listen),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace ignore_errors_test

// SPDX-License-Identifier: Apache-2.0
//
// The source arrow in the conformance suite. Its contents are tested by tests/capi/arrow_test.c.
#include "data/format/arrow.h"

#include "conformance/dataset_conformance.h"
#include "data/sources.h"
#include "sample_data.h"

using namespace tutti::impl;
using namespace tutti::testing;
using data::Pipeline;
using tensor::Tensor;

namespace {

// A table with a list, a number and a text in each of 11 rows, in record batches of so many rows.
Pipeline table(int64_t batch_rows) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < 11; ++i)
    texts.emplace_back(i % 4, 'x');
  const Tensor text = assert_ok_value(tensor::make_bytes_tensor({11}, texts));
  const auto rows = assert_ok_value(data::from_slices({{"x", numbered(11, 3)}, {"y", counted(11)}, {"text", text}}));
  ArrowArrayStream stream;
  assert_ok(data::write_arrow(rows, {}, batch_rows, &stream));
  Pipeline pipeline(data::SourceServices{nullptr, data::ArrowStream::take(&stream)});
  const std::vector<std::string> labels{"y"};
  return std::move(pipeline.apply("arrow", {{"labels", labels}}));
}

Pipeline numbers(int64_t batch_rows) {
  ArrowArrayStream stream;
  assert_ok(data::write_arrow(assert_ok_value(sample(11).build()), {}, batch_rows, &stream));
  Pipeline pipeline(data::SourceServices{nullptr, data::ArrowStream::take(&stream)});
  return std::move(pipeline.apply("arrow"));
}

DatasetCase of(std::string name, std::function<Pipeline()> make) {
  return {std::move(name), [make] { return DatasetInstance{make().build()}; }};
}

void streams_conform(void **) {
  const std::vector<DatasetCase> cases = {
      of("arrow, one batch", [] { return table(20); }),
      of("arrow, several batches", [] { return table(3); }),
      of("arrow, shuffle, repeat", [] { return std::move(table(4).shuffle(5).repeat(2)); }),
      of("arrow, batch, prefetch", [] { return std::move(numbers(4).batch(3).prefetch(2)); }),
      of("arrow, shuffle all, batch", [] { return std::move(numbers(1).shuffle(11).batch(4).repeat(3)); }),
  };
  for (const DatasetCase &one : cases) {
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
}

// Batches of the table and the table cut again are the same rows.
void cuts_do_not_matter(void **) {
  const DatasetCase whole = of("arrow, whole", [] { return table(20); });
  DatasetWalk walk = open_walk(whole, context_of(whole));
  const auto expected = take(whole, *walk.iterator, 20);
  for (int64_t rows = 1; rows < 12; ++rows) {
    const DatasetCase cut = of("arrow, cut", [rows] { return table(rows); });
    DatasetWalk other = open_walk(cut, context_of(cut));
    check_equal(cut, expected, take(cut, *other.iterator, 20), "cut");
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(streams_conform),
    cmocka_unit_test(cuts_do_not_matter),
};
TEST_MAIN(tests)

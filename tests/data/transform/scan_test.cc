// SPDX-License-Identifier: Apache-2.0
//
// Scans by function and by graph. The oracle is a loop.
#include "conformance/dataset_conformance.h"
#include "graph/builder.h"
#include "interpreting_runner.h"
#include "sample_data.h"

namespace scan_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Result;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using graph::Dims;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;

namespace {

// The state: how many elements there were (u8), and the sum of x so far (f32[3]). Gives the running mean for x.
Status running_mean(const Element &state, const Element &input, Element &new_state, Element &output) {
  TUTTI_ASSIGN(const uint8_t count, state.components[0].scalar_value<uint8_t>());
  TUTTI_ASSIGN(const int32_t row, input.components[1].scalar_value<int32_t>());
  if (row == 5) return base::out_of_range("five is not allowed");
  TUTTI_ASSIGN(Tensor next, Tensor::scalar(static_cast<uint8_t>(count + 1)));
  TUTTI_ASSIGN(Tensor sum, state.components[1].clone());
  TUTTI_ASSIGN(Tensor mean, Tensor::zeros(DType::f32, {3}));
  for (int64_t i = 0; i < 3; ++i) {
    sum.mutable_data_as<float>()[i] += input.components[0].data_as<float>()[i];
    mean.mutable_data_as<float>()[i] = sum.data_as<float>()[i] / static_cast<float>(count + 1);
  }
  new_state.components = {std::move(next), std::move(sum)};
  output.components = {std::move(mean), input.components[1]};
  return Status();
}

std::vector<data::ScanState> mean_state() {
  return {{"count", Tensor::scalar(uint8_t{0}).value()}, {"sum", Tensor::zeros(DType::f32, {3}).value()}};
}

Pipeline with_mean(Pipeline pipeline) {
  data::TransformArguments arguments;
  arguments.scan = running_mean;
  arguments.state = mean_state();
  return std::move(pipeline.apply("scan_callback", {}, std::move(arguments)));
}

// s becomes s / 2 + x, and is what comes out too, as "average".
data::TransformArguments average(const Dims &x_dims, const Dims &state_dims, Tensor initial) {
  GraphBuilder b;
  const auto x = b.input("x", DType::f32, x_dims), s = b.input("s", DType::f32, state_dims);
  const auto next = b.add(b.div(s, b.constant(2, DType::f32)), x);
  b.set_result("s", next);
  b.set_result("average", b.op("mul", {next, b.constant(3, DType::f32)}));
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(b.finish_graph().take());
  arguments.state = {{"s", std::move(initial)}};
  return arguments;
}

Tensor ones() { return Tensor::from_values<float>({3}, {1, 1, 1}).value(); }

const Dims kRow{3};
const Dims kRows{GraphBuilder::batch(), 3};

Pipeline averaged(Pipeline pipeline, const Dims &dims) {
  return std::move(pipeline.apply("scan", {}, average(dims, dims, ones())));
}

void scans_conform(void **) {
  const auto runner = std::make_shared<InterpretingRunner>();
  const auto of = [&](std::string name, std::function<Pipeline()> make, bool fails = false) {
    return DatasetCase{std::move(name), [make] { return DatasetInstance{make().build()}; }, 64, runner, fails};
  };
  const DatasetCase cases[] = {
      of("scan_callback", [] { return with_mean(sample(5)); }),
      of(
          "scan_callback failing", [] { return with_mean(sample()); }, true),
      of("scan_callback, shuffle, batch", [] { return std::move(with_mean(sample(5)).shuffle(3).batch(2)); }),
      of("shuffle, scan_callback, repeat",
         [] { return std::move(with_mean(sample(5).shuffle(5)).repeat(3).prefetch(2)); }),
      of("scan_callback, cache", [] { return std::move(with_mean(sample(5)).apply("cache").repeat(2)); }),
      of("scan of elements", [] { return averaged(sample(), kRow); }),
      of("scan of rows", [] { return averaged(forward_only(sample()), kRows); }),
      of("scan, shuffle, batch, repeat",
         [] { return std::move(averaged(sample().shuffle(10), kRow).batch(3).repeat(2).prefetch(2)); }),
  };
  for (const DatasetCase &one : cases) {
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
}

void a_function_carries_the_state_on(void **) {
  const DatasetRef dataset = assert_ok_value(with_mean(sample(9)).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  float sum = 0;
  int32_t count = 0;
  for (int32_t row = 0; row < 9; ++row) {
    Element element;
    const Result<bool> more = iterator->next(element);
    if (row == 5) {
      // As if it had never been there.
      assert_error_contains(more.status(), "scan: it failed for element 5 of epoch 0");
      assert_error_contains(more.status(), "five is not allowed");
      continue;
    }
    assert_true(assert_ok_value(more));
    sum += static_cast<float>(100 * row);
    ++count;
    assert_true(element.components[0].data_as<float>()[0] == sum / static_cast<float>(count));
    assert_int_equal(assert_ok_value(element.components[1].scalar_value<int32_t>()), row);
  }
}

void a_graph_carries_the_state_on(void **) {
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  for (const Dims &dims : {kRow, kRows}) {
    const DatasetRef dataset = assert_ok_value(averaged(sample(6), dims).repeat(2).build());
    assert_string_equal(dataset->spec().to_string().c_str(), "(y: i32[] label, average: f32[3])");
    const std::vector<float> got = values_of<float>(dataset, "average", context);
    std::vector<float> expected;
    for (int pass = 0; pass < 2; ++pass) {
      float state[3] = {1, 1, 1};
      for (int row = 0; row < 6; ++row) {
        for (int i = 0; i < 3; ++i) {
          state[i] = state[i] / 2 + static_cast<float>(100 * row + i);
          expected.push_back(state[i] * 3);
        }
      }
    }
    assert_true(got == expected);
  }
}

void misuse_is_told(void **) {
  const auto scan = [](data::TransformArguments arguments) {
    return sample().apply("scan", {}, std::move(arguments)).status();
  };
  data::TransformArguments arguments = average(kRow, kRow, ones());
  arguments.state.clear();
  assert_error_contains(scan(std::move(arguments)), "expected the argument 'state'");
  assert_error_contains(scan(average(kRow, {1}, Tensor::zeros(DType::f32, {1}).value())),
                        "state 's': expected s: f32[1] as at the beginning, the graph gives s: f32[3]");
  arguments = average(kRow, kRow, ones());
  arguments.state[0].name = "y";
  assert_error_contains(scan(std::move(arguments)), "must have different names");
  arguments = average(kRow, kRow, ones());
  arguments.state.push_back({"text", tensor::make_bytes_tensor({}, {"a"}).value()});
  assert_error_contains(scan(std::move(arguments)), "expected numbers, got bytes");
  arguments = average(kRow, kRow, ones());
  arguments.state.push_back({"large", Tensor::zeros(DType::f32, {20000}).value()});
  assert_error_contains(scan(std::move(arguments)), "the state has 80012 bytes, expected at most 65536");
  assert_error_contains(sample().batch(2).apply("scan", {}, average(kRows, kRows, ones())).status(),
                        "put scan before batch");
  GraphBuilder b;
  b.set_result("x", b.add(b.input("x", DType::f32, kRow), b.input("s", DType::f32, kRow)));
  arguments = average(kRow, kRow, ones());
  arguments.graph = std::make_shared<const graph::Graph>(b.finish_graph().take());
  assert_error_contains(scan(std::move(arguments)), "the graph has no new value for state 's'");

  // A function whose state changes its shape.
  arguments = {};
  arguments.state = mean_state();
  arguments.scan = [](const Element &state, const Element &input, Element &next, Element &output) {
    next.components = {state.components[1], state.components[0]};
    output = input;
    return Status();
  };
  const DatasetRef dataset = assert_ok_value(sample().apply("scan_callback", {}, std::move(arguments)).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  assert_error_contains(iterator->next(element).status(), "the new state: component 'count': expected u8[]");
}

void a_state_that_does_not_fit_is_refused(void **) {
  const DatasetRef dataset = assert_ok_value(with_mean(sample(5)).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  base::Json state = iterator->save();
  assert_int_equal(state.find("state")->size(), 3);
  state["state"].push_back(int64_t{1});
  auto other = assert_ok_value(dataset->make_iterator({}));
  assert_error_contains(other->restore(state), "4 numbers are not the values of this state");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(scans_conform),
    cmocka_unit_test(a_function_carries_the_state_on),
    cmocka_unit_test(a_graph_carries_the_state_on),
    cmocka_unit_test(misuse_is_told),
    cmocka_unit_test(a_state_that_does_not_fit_is_refused),
};
TEST_MAIN(tests)

}  // namespace scan_test

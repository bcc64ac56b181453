// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by a library that works on other images, against the reference backend: one that pads both sides of an
// axis alike works on a larger one where the sides differ, one that wants many channels on one with squares of pixels
// in place of a stride of two. The emulated GPU has such libraries (emulated_library.h).
//
// usage: even_padding_test PLUG-IN
#include <tutti/plugin/backend.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "bound_graph.h"
#include "testing.h"

namespace even_padding_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::whole;
using graph::Attributes;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;
using Dims = std::vector<int64_t>;

namespace {

BackendUnderTest *tested = nullptr;

struct Case {
  Dims x, kernel, y, stride, dilation;
  Dims pads;  // top, bottom, left, right; none: same
  bool is_uneven;
  bool is_foldable = false;  // of 16 bits
};
const Case kCases[] = {
    // "Same" with a step of 2: one more behind, of an axis or of both.
    {{2, 8, 8, 3}, {3, 3, 3, 4}, {2, 4, 4, 4}, {2, 2}, {1, 1}, {}, true, true},
    {{3, 7, 8, 2}, {3, 3, 2, 4}, {3, 4, 4, 4}, {2, 2}, {1, 1}, {}, true, true},
    {{1, 10, 9, 8}, {7, 7, 8, 8}, {1, 5, 5, 8}, {2, 2}, {1, 1}, {}, true},
    // An even window; with gaps.
    {{2, 5, 6, 3}, {4, 2, 3, 5}, {2, 5, 6, 5}, {1, 1}, {1, 1}, {}, true},
    {{2, 6, 5, 1}, {2, 2, 1, 3}, {2, 6, 5, 3}, {1, 1}, {3, 1}, {}, true},
    // More in front, more behind, and neither.
    {{2, 6, 6, 4}, {3, 3, 4, 4}, {2, 7, 7, 4}, {1, 1}, {1, 1}, {2, 1, 1, 2}, true},
    {{2, 9, 9, 3}, {3, 2, 3, 5}, {2, 4, 4, 5}, {2, 3}, {2, 2}, {2, 1, 1, 2}, true},
    {{2, 5, 5, 3}, {3, 3, 3, 2}, {2, 6, 8, 2}, {1, 1}, {1, 1}, {3, 0, 0, 5}, true},
    {{1, 4, 4, 2}, {1, 1, 2, 3}, {1, 5, 4, 3}, {1, 1}, {1, 1}, {0, 1, 0, 0}, true},
    {{2, 5, 5, 3}, {3, 3, 3, 4}, {2, 5, 5, 4}, {1, 1}, {1, 1}, {}, false},
    {{2, 7, 7, 3}, {3, 3, 3, 4}, {2, 4, 4, 4}, {2, 2}, {1, 1}, {1, 1, 1, 1}, false, true},
    // As networks begin: of seven pixels, of an odd number of rows; without padding; of an even window, of more padding
    // than it has elements.
    {{2, 11, 14, 3}, {7, 7, 3, 5}, {2, 6, 7, 5}, {2, 2}, {1, 1}, {3, 3, 3, 3}, false, true},
    {{1, 9, 12, 1}, {5, 3, 1, 4}, {1, 3, 5, 4}, {2, 2}, {1, 1}, {0, 0, 0, 0}, false, true},
    {{2, 6, 7, 4}, {4, 6, 4, 3}, {2, 4, 4, 3}, {2, 2}, {1, 1}, {2, 2, 3, 2}, false, true},
    {{1, 3, 3, 2}, {3, 3, 2, 2}, {1, 6, 5, 2}, {2, 2}, {1, 1}, {5, 5, 4, 4}, false, true},
    // Groups.
    {{2, 6, 6, 4}, {3, 3, 2, 6}, {2, 3, 3, 6}, {2, 2}, {1, 1}, {}, true},
    {{2, 6, 4, 4}, {3, 3, 1, 4}, {2, 3, 2, 4}, {2, 2}, {1, 1}, {}, true},
};

Attributes attributes_of(const Case &one) {
  Attributes attributes = {{"stride", one.stride}, {"dilation", one.dilation}, {"groups", one.x[3] / one.kernel[2]}};
  if (!one.pads.empty()) {
    attributes["padding"] = std::string("explicit");
    attributes["pads"] = one.pads;
  }
  return attributes;
}

ValueId input_gradient(GraphBuilder &b, const Case &one, ValueId dy, ValueId kernel) {
  Attributes attributes = attributes_of(one);
  attributes["input_dims"] = graph::to_dims(one.x);
  return b.op("conv2d_input_gradient", {dy, kernel}, attributes);
}
ValueId kernel_gradient(GraphBuilder &b, const Case &one, ValueId x, ValueId dy) {
  Attributes attributes = attributes_of(one);
  attributes["kernel_dims"] = graph::to_dims(one.kernel);
  return b.op("conv2d_kernel_gradient", {x, dy}, attributes);
}

/// x, kernel, bias, dy: whole numbers, so that sums are exact in any order.
std::vector<Tensor> operands(const Case &one, DType dtype) {
  std::vector<Tensor> made;
  for (const Dims &dims : {one.x, one.kernel, Dims{one.kernel[3]}, one.y})
    made.push_back(assert_ok_value(conformance::make_operand(whole(dtype, dims, -3, 4), 70 + made.size())));
  return made;
}

size_t count_of(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; ++count)
    at = text.find(part, at + 1);
  return count;
}

/// How many nodes the report says are the library's with a larger image, with a folded one, and with its own.
struct Counts {
  size_t larger, folded, own;
};

/// Results are those of the reference backend, also when memory has been used before.
Counts check(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build) {
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
  const auto graph = assert_ok_value(conformance::build_graph(inputs, build));
  const auto bound = assert_ok_value(conformance::BoundGraph::make(tested->device, graph));
  for (int run = 0; run < 2; ++run) {
    const auto results = assert_ok_value(bound->run(inputs));
    assert_int_equal(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i)
      assert_ok(tensor::compare_close(results[i], expected[i], 0, 0));
  }
  const std::string &report = bound->description().report_json;
  return {count_of(report, "\"emulated larger\""), count_of(report, "\"emulated folded\""),
          count_of(report, "\"emulated\"")};
}

Counts check_all_passes(const Case &one, DType dtype) {
  return check(operands(one, dtype), [&](GraphBuilder &b, const Values &v) {
    return Values{b.op("conv2d", {v[0], v[1]}, attributes_of(one)),
                  b.op("conv2d", {v[0], v[1], v[2]}, attributes_of(one)), input_gradient(b, one, v[3], v[1]),
                  kernel_gradient(b, one, v[0], v[3])};
  });
}

void results_are_those_of_the_own_padding(void **) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    for (const Case &one : kCases) {
      const Counts counts = check_all_passes(one, dtype);
      assert_int_equal(counts.larger, one.is_uneven ? 4 : 0);
      // The library's name is there, too.
      assert_true(one.is_uneven || counts.own >= 4);
    }
  }
}

/// Of 16 bits, all but gradients of x.
void strides_of_few_channels_are_folded(void **) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const Case &one : kCases) {
      const Counts counts = check_all_passes(one, dtype);
      const bool is_folded = one.is_foldable && dtype != DType::f32;
      assert_int_equal(counts.folded, is_folded ? 3 : 0);
      assert_int_equal(counts.larger, !one.is_uneven ? 0 : is_folded ? 1 : 4);
    }
  }
}

/// One call's larger image lies where another's lay: zeros are written every time.
void calls_share_memory(void **) {
  const Case first = kCases[0], second = {{2, 4, 4, 4}, {3, 3, 4, 4}, {2, 2, 2, 4}, {2, 2}, {1, 1}, {}, true};
  std::vector<Tensor> inputs = operands(first, DType::f32);
  for (const Dims &dims : {second.kernel, second.y})
    inputs.push_back(assert_ok_value(conformance::make_operand(whole(DType::f32, dims, -3, 4), 80 + inputs.size())));
  const Counts counts = check(inputs, [&](GraphBuilder &b, const Values &v) {
    const ValueId y = b.op("conv2d", {v[0], v[1]}, attributes_of(first));
    const ValueId z = b.op("conv2d", {y, v[4]}, attributes_of(second));
    const ValueId dz = b.add(z, v[5]), dy = input_gradient(b, second, dz, v[4]);
    return Values{z, kernel_gradient(b, second, y, dz), dy, kernel_gradient(b, first, v[0], dy),
                  input_gradient(b, first, dy, v[1])};
  });
  assert_int_equal(counts.larger, 6);
}

/// With the plug-in's library of that name.
int run(const char *library, int argc, char **argv, const std::vector<CMUnitTest> &tests) {
  if (setenv("TUTTI_EMULATED_LIBRARY", library, 1) != 0) return 1;
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  BackendUnderTest backend = std::move(opened).value();
  tested = &backend;
  return _cmocka_run_group_tests(library, tests.data(), tests.size(), nullptr, nullptr);
}

}  // namespace

static int run_all(int argc, char **argv) {
  const int even = run("even padding", argc, argv,
                       {cmocka_unit_test(results_are_those_of_the_own_padding), cmocka_unit_test(calls_share_memory)});
  const int folded = run("folded strides", argc, argv, {cmocka_unit_test(strides_of_few_channels_are_folded)});
  return even != 0 ? even : folded;
}
TEST_SOURCE(run_all)

}  // namespace even_padding_test

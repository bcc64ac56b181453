// SPDX-License-Identifier: Apache-2.0
//
// Image ops against what TensorFlow and Pillow make of the same images (golden/make_image_golden.py).
//
// usage: image_golden_test GOLDEN_FILE
#include <cmath>
#include <map>

#include "conformance/golden_case.h"
#include "routine_runs.h"

using namespace tutti::impl;
using namespace tutti::testing;
using conformance::GoldenCase;
using tensor::DType;
using tensor::Tensor;

namespace {

const char *golden_path = nullptr;

double value_at(const Tensor &tensor, int64_t index) {
  switch (tensor.dtype()) {
    case DType::u8:
      return tensor.data_as<uint8_t>()[index];
    case DType::i64:
      return static_cast<double>(tensor.data_as<int64_t>()[index]);
    default:
      return tensor.data_as<float>()[index];
  }
}

std::string describe(const GoldenCase &one) {
  std::string text = one.op + " of " + one.inputs[0].describe();
  for (const auto &[name, value] : one.attributes)
    text += " " + name + "=" + graph::to_string(value);
  return text;
}

// The largest difference; infinite where shapes or dtypes differ.
double difference(const Tensor &expected, const Tensor &actual) {
  if (!(expected.shape() == actual.shape()) || expected.dtype() != actual.dtype()) return INFINITY;
  double largest = 0;
  for (int64_t i = 0; i < expected.elements(); ++i)
    largest = std::max(largest, std::fabs(value_at(expected, i) - value_at(actual, i)));
  return largest;
}

void ops_agree_with_tensorflow_and_pillow(void **) {
  const std::vector<GoldenCase> cases = assert_ok_value(conformance::read_golden(golden_path));
  assert_true(cases.size() > 100);
  std::map<std::string, int> failures;
  for (const GoldenCase &one : cases) {
    const auto actual = run_routine_op(one.op, one.attributes, one.inputs);
    const bool needs_library = one.op.rfind("decode_", 0) == 0 || one.op == "image_size";
    if (needs_library && actual.code() == base::Code::unimplemented) continue;  // a build without it
    const double error = actual.ok() ? difference(one.outputs[0], *actual) : INFINITY;
    if (error <= one.absolute) continue;
    if (++failures[one.op] <= 3) {
      print_error("%s: differs by %g, at most %g expected%s%s\n", describe(one).c_str(), error, one.absolute,
                  actual.ok() ? "" : ": ", actual.ok() ? "" : actual.status().to_string().c_str());
    }
  }
  print_message("%zu cases\n", cases.size());
  assert_true(failures.empty());
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  golden_path = argv[1];
  const CMUnitTest tests[] = {cmocka_unit_test(ops_agree_with_tensorflow_and_pillow)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}

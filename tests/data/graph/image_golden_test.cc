// SPDX-License-Identifier: Apache-2.0
//
// Image ops against what TensorFlow and Pillow make of the same images (golden/make_image_golden.py), larger ones by
// samples (golden/make_large_image_golden.py).
//
// usage: image_golden_test GOLDEN_FILE LARGE_GOLDEN_FILE
#include <cmath>
#include <map>

#include "conformance/golden_case.h"
#include "routine_runs.h"

namespace image_golden_test {

using namespace tutti::impl;
using namespace tutti::testing;
using conformance::GoldenCase;
using tensor::DType;
using tensor::Tensor;

namespace {

const char *golden_path = nullptr, *large_golden_path = nullptr;

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

std::string describe(const GoldenCase &one, const Tensor &input) {
  std::string text = one.op + " of " + input.describe();
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
      print_error("%s: differs by %g, at most %g expected%s%s\n", describe(one, one.inputs[0]).c_str(), error,
                  one.absolute, actual.ok() ? "" : ": ", actual.ok() ? "" : actual.status().to_string().c_str());
    }
  }
  print_message("%zu cases\n", cases.size());
  assert_true(failures.empty());
}

// Noise, as image() of make_large_image_golden.py makes it; floats from 0 to 1.
Tensor image_of(DType dtype, const Tensor &dims) {
  const tensor::Shape shape = assert_ok_value(tensor::Shape::make(assert_ok_value(dims.values<int64_t>())));
  Tensor image = assert_ok_value(Tensor::allocate(dtype, shape));
  for (int64_t i = 0; i < shape.elements(); ++i) {
    auto hashed = static_cast<uint32_t>(i) * 2654435761U;
    hashed ^= hashed >> 15;
    const auto value = static_cast<uint8_t>(hashed * 2246822519U >> 24);
    if (dtype == DType::u8) {
      image.mutable_data_as<uint8_t>()[i] = value;
    } else {
      image.mutable_data_as<float>()[i] = static_cast<float>(value) / 255.0F;
    }
  }
  return image;
}

// The largest difference of a sample or of the mean of a channel; infinite where a mean differs by more than 0.1.
double sampled_difference(const GoldenCase &one, const Tensor &actual) {
  const Tensor &places = one.inputs[2], &samples = one.outputs[0], &means = one.outputs[1];
  const int64_t channels = means.elements();
  if (actual.dtype() != samples.dtype() || actual.elements() % channels != 0) return INFINITY;
  double largest = 0;
  for (int64_t i = 0; i < places.elements(); ++i) {
    const int64_t place = places.data_as<int64_t>()[i];
    if (place >= actual.elements()) return INFINITY;
    largest = std::max(largest, std::fabs(value_at(samples, i) - value_at(actual, place)));
  }
  std::vector<double> sums(static_cast<size_t>(channels));
  for (int64_t i = 0; i < actual.elements(); ++i)
    sums[static_cast<size_t>(i % channels)] += value_at(actual, i);
  for (int64_t i = 0; i < channels; ++i) {
    const double mean =
        sums[static_cast<size_t>(i)] * static_cast<double>(channels) / static_cast<double>(actual.elements());
    const double error = std::fabs(value_at(means, i) - mean);
    largest = std::max(largest, error > 0.1 ? INFINITY : error);
  }
  return largest;
}

void large_images_agree_in_samples(void **) {
  const std::vector<GoldenCase> cases = assert_ok_value(conformance::read_golden(large_golden_path));
  assert_true(cases.size() > 40);
  for (const GoldenCase &one : cases) {
    const Tensor image = image_of(one.inputs[1].dtype(), one.inputs[0]);
    for (int64_t i = 0; i < one.inputs[1].elements(); ++i)
      assert_true(value_at(image, i) == value_at(one.inputs[1], i));
    const Tensor actual = assert_ok_value(run_routine_op(one.op, one.attributes, {image}));
    const double error = sampled_difference(one, actual);
    if (error <= one.absolute) continue;
    fail_msg("%s: differs by %g, at most %g expected", describe(one, image).c_str(), error, one.absolute);
  }
}

}  // namespace

static int run_all(int argc, char **argv) {
  if (argc != 3) return 2;
  golden_path = argv[1];
  large_golden_path = argv[2];
  const CMUnitTest tests[] = {cmocka_unit_test(ops_agree_with_tensorflow_and_pillow),
                              cmocka_unit_test(large_images_agree_in_samples)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace image_golden_test

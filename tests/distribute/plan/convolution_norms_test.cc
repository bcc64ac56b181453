// SPDX-License-Identifier: Apache-2.0
//
// Networks of convolution, normalisation and relu layers, as people build them, in mixed precision on one replica and
// on two: with a library that gives the sums of a convolution's results every normalisation is computed with its
// convolution, and training goes as it goes without. On the emulated GPU, which has such a library
// (emulated_library.h).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/training_case.h"
#include "nn/registry.h"
#include "testing.h"

namespace tutti::testing::convolution_norms_test {

namespace base = impl::base;
namespace data = impl::data;
namespace nn = impl::nn;
namespace tensor = impl::tensor;
using impl::backend::Level;
using impl::backend::Precision;
using impl::graph::Attributes;

constexpr int64_t kRows = 16, kSize = 6, kChannels = 3, kClasses = 4, kSteps = 6;
constexpr int64_t kConvolutions = 4;

static ValueId layer(GraphBuilder &b, const char *name, ValueId x, Attributes attributes = {}) {
  return nn::expand(b, std::string("layer_") + name, 1, {x}, std::move(attributes), {.training = true});
}

/// With a bias unless told otherwise.
static ValueId conv_norm(GraphBuilder &b, ValueId x, int64_t filters, int64_t size, bool has_bias = true) {
  const ValueId y =
      layer(b, "conv2d", x,
            {{"filters", filters}, {"size", size}, {"bias_initializer", std::string("ones")}, {"use_bias", has_bias}});
  return layer(b, "batch_norm", y, {{"momentum", 0.9}});
}

/// A unit, a block of two with a residual that is a convolution of one pixel, and a classifier.
static Model build_resnet() {
  GraphBuilder b;
  const ValueId image = b.feature("image", DType::f32, {GraphBuilder::batch(), kSize, kSize, kChannels});
  const ValueId label = b.label("label", DType::i32, {GraphBuilder::batch()});
  ValueId x = b.unary("relu", conv_norm(b, image, 8, 3));
  const ValueId y = conv_norm(b, b.unary("relu", conv_norm(b, x, 16, 3)), 16, 3);
  x = b.unary("relu", b.add(y, conv_norm(b, x, 16, 1, false)));
  const ValueId logits = layer(b, "dense", layer(b, "global_average_pool2d", x), {{"units", kClasses}});
  b.set_output("logits", logits);
  b.set_loss(b.reduce_mean(b.op("sparse_softmax_cross_entropy", {logits, label})));
  impl::graph::TrainSpec train;
  train.optimizer.op = "momentum_update";
  train.optimizer.slots = {{"velocity", 0}};
  train.optimizer.learning_rate = b.constant(0.05, DType::f32);
  b.set_train(std::move(train));
  return assert_ok_value(b.finish());
}

/// The same batch again and again. All pixels are around `shift`.
static data::DatasetRef images(double shift) {
  const auto fill = [](DType dtype, const std::vector<int64_t> &dims, auto value) {
    Tensor made = assert_ok_value(Tensor::zeros(dtype, assert_ok_value(tensor::Shape::make(dims))));
    tensor::visit_dtype(dtype, [&]<typename T>(T) {
      if constexpr (std::is_arithmetic_v<T>)
        for (int64_t i = 0; i < made.elements(); ++i)
          made.mutable_data_as<T>()[i] = static_cast<T>(value(i));
    });
    return made;
  };
  const auto pixel = [&](int64_t i) { return shift + std::sin(static_cast<double>(i * i % 1009) * 0.61); };
  const auto label = [](int64_t row) { return row * 7 % kClasses; };
  std::vector<data::NamedTensor> rows;
  rows.push_back({"image", fill(DType::f32, {kRows, kSize, kSize, kChannels}, pixel), data::Role::feature});
  rows.push_back({"label", fill(DType::i32, {kRows}, label), data::Role::label});
  data::Pipeline pipeline(data::from_tensors(std::move(rows)));
  return assert_ok_value(pipeline.repeat().build());
}

struct Norms {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> variables;
  int64_t convolutions = 0, with_norm = 0;  // forward, in all programs
};

static void count_kernels(const base::Json &json, Norms &norms) {
  if (json.is_array()) {
    for (const base::Json &one : json.array())
      count_kernels(one, norms);
  } else if (json.is_object()) {
    const base::Json *const op = json.find("op"), *const kernel = json.find("kernel");
    if (op != nullptr && kernel != nullptr && op->string() == "conv2d") {
      ++norms.convolutions;
      norms.with_norm += kernel->string().starts_with("emulated(") ? 1 : 0;
    }
    for (const auto &[name, member] : json.object())
      count_kernels(member, norms);
  }
}

static Norms train(Precision precision, int32_t replicas, double shift, bool has_library) {
  if (has_library) setenv("TUTTI_EMULATED_LIBRARY", "sums", 1);
  TrainerOptions options;
  options.precision = precision;
  options.level = Level::fast;
  const Model model = build_resnet();
  const auto trainer = assert_ok_value(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), options));
  assert_ok(trainer->initialize());
  assert_ok(trainer->attach_input(assert_ok_value(images(shift)->make_iterator({}))));
  assert_ok(trainer->run(kSteps, nullptr));
  unsetenv("TUTTI_EMULATED_LIBRARY");
  assert_true(assert_ok_value(trainer->replicas_are_identical()));
  Norms norms;
  norms.losses = trainer->loss_history();
  for (const auto &variable : model.variables)
    norms.variables[variable.name] = to_doubles(assert_ok_value(trainer->get_variable(variable.name)));
  count_kernels(trainer->describe(), norms);
  return norms;
}

/// Relative to the largest: of losses, and of the running statistics of each normalisation.
struct Limits {
  double shift, losses, statistics;
};

static void assert_close(const Norms &mixed, const Norms &exact, const Limits &limits, const std::string &what) {
  const double losses = relative_difference(mixed.losses, exact.losses);
  double statistics = 0;
  for (const auto &[name, values] : exact.variables) {
    if (name.ends_with("running_mean") || name.ends_with("running_variance"))
      statistics = std::max(statistics, relative_difference(mixed.variables.at(name), values));
  }
  if (!(losses <= limits.losses && statistics <= limits.statistics))
    fail_msg("%s: losses differ by %g (limit %g), statistics by %g (%g)", what.c_str(), losses, limits.losses,
             statistics, limits.statistics);
}

/// Against f32 on one device. Where pixels are far from zero, numbers of 16 bits have lost more; sums of f32 beside
/// convolutions lose no more than that, so the limits are those without a library, too.
static void test_norms_come_with_convolutions(void **) {
  for (const Limits &limits : {Limits{0, 0x1p-9, 0x1p-8}, Limits{8, 0x1p-7, 0x1p-4}}) {
    const Norms exact = train(Precision::f32, 1, limits.shift, false);
    assert_true(exact.losses.back() < 0.9 * exact.losses.front());
    for (const Precision precision : {Precision::bf16_where_faster, Precision::f16_where_faster}) {
      for (const int32_t replicas : {1, 2}) {
        const std::string what =
            base::concat(name(precision), ", pixels around ", limits.shift, ", ", replicas, " replicas");
        const Norms apart = train(precision, replicas, limits.shift, false);
        const Norms with = train(precision, replicas, limits.shift, true);
        assert_int_equal(apart.with_norm, 0);
        assert_int_equal(with.convolutions, kConvolutions);
        assert_int_equal(with.with_norm, kConvolutions);
        assert_close(apart, exact, limits, what + " without a library");
        assert_close(with, exact, limits, what);
      }
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_norms_come_with_convolutions),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::convolution_norms_test

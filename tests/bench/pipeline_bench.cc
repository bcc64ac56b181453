// SPDX-License-Identifier: Apache-2.0
//
// pipeline_bench [SECONDS]: how fast datasets deliver, one line per pipeline. Every figure is the best of several
// rounds of SECONDS (default 0.3) each. Images are made up, of the size of Fashion-MNIST: 60,000 of 784 bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/random/philox.h"
#include "base/thread.h"
#include "bench_backend.h"
#include "data/graph/backend_graph_runner.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "graph/builder.h"

using namespace tutti::impl;
using Clock = std::chrono::steady_clock;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;

namespace {

constexpr int64_t kImages = 60000;
constexpr int64_t kPixels = 784;
constexpr int kRounds = 5;

double seconds_per_round = 0.3;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::unique_ptr<data::Iterator> open(const Pipeline &pipeline, std::shared_ptr<data::GraphRunner> graphs) {
  data::IteratorContext context;
  context.graphs = std::move(graphs);
  auto dataset = pipeline.build();
  auto iterator = dataset.ok() ? (*dataset)->make_iterator(context)
                               : base::Result<std::unique_ptr<data::Iterator>>(dataset.status());
  if (iterator.ok()) return iterator.take();
  std::fprintf(stderr, "%s\n", iterator.status().to_string().c_str());
  std::exit(1);
}

// Rows per second when nothing else is done.
double throughput(const Pipeline &pipeline, const std::shared_ptr<data::GraphRunner> &graphs) {
  const std::unique_ptr<data::Iterator> iterator = open(pipeline, graphs);
  Element element;
  for (int i = 0; i < 8; ++i)
    (void)iterator->next(element);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    int64_t rows = 0;
    while (seconds_since(start) < seconds_per_round) {
      const auto more = iterator->next(element);
      if (!more.ok() || !*more) break;
      rows += iterator->spec().is_batched() ? element.rows() : 1;
    }
    best = std::max(best, static_cast<double>(rows) / seconds_since(start));
  }
  return best;
}

// What a call of next() costs a consumer that computes for a while between two calls: median, in microseconds.
double consumer_cost_us(const Pipeline &pipeline, double busy_us) {
  const std::unique_ptr<data::Iterator> iterator = open(pipeline, nullptr);
  std::vector<double> costs;
  Element element;
  for (int i = 0; i < 4000; ++i) {
    const Clock::time_point start = Clock::now();
    (void)iterator->next(element);
    const double cost = seconds_since(start) * 1e6;
    if (i >= 100) costs.push_back(cost);
    while (seconds_since(start) * 1e6 < busy_us) {
    }
  }
  std::nth_element(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2), costs.end());
  return costs[costs.size() / 2];
}

void report(const char *name, double rows_per_second) {
  std::printf("%-58s %12.0f rows/s\n", name, rows_per_second);
  std::fflush(stdout);
}

Pipeline toy() {
  return Pipeline(data::from_slices({{"x", Tensor::zeros(DType::f32, {1000, 10}).value()},
                                     {"y", Tensor::zeros(DType::i32, {1000}).value(), data::Role::label}}));
}

Pipeline images(DType dtype) {
  static const Tensor labels = Tensor::zeros(DType::i32, {kImages}).value();
  Tensor pixels = Tensor::allocate(dtype, {kImages, kPixels}).value();
  base::RandomStream random(base::RandomKey::of(1, 2, 3));
  auto *bytes = pixels.mutable_data_as<uint8_t>();
  for (int64_t i = 0; i < kImages * kPixels; ++i) {
    if (dtype == DType::u8) {
      bytes[i] = static_cast<uint8_t>(random.next());
    } else {
      pixels.mutable_data_as<float>()[i] = static_cast<float>(i % 256);
    }
  }
  return Pipeline(data::from_slices({{"image", std::move(pixels)}, {"label", labels, data::Role::label}}));
}

graph::SealedGraph normalise(DType dtype) {
  GraphBuilder b;
  const auto x = b.cast(b.input("image", dtype, {GraphBuilder::batch(), kPixels}), DType::f32);
  b.set_result("image", b.div(x, b.constant(255, DType::f32)));
  return std::make_shared<const graph::Graph>(b.finish_graph().value());
}

data::TransformArguments callback() {
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) {
    output = input;
    return base::Status();
  };
  return arguments;
}

// A map that takes so long: computing, or waiting as for a disk.
data::TransformArguments taking(double us, bool waits) {
  data::TransformArguments arguments;
  arguments.map = [us, waits](const Element &input, Element &output) {
    const Clock::time_point start = Clock::now();
    output = input;
    if (waits) std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
    while (seconds_since(start) * 1e6 < us) {
    }
    return base::Status();
  };
  return arguments;
}

// What threads make of maps by function, and what they cost: microseconds per element beyond the function itself.
void map_callbacks() {
  struct {
    double us;
    bool waits;
  } const functions[] = {{1, false}, {20, false}, {1000, false}, {1000, true}};
  for (const auto &[us, waits] : functions) {
    double alone = 0;
    for (const int64_t threads : {1, 2}) {
      const double rate =
          throughput(toy().repeat().apply("map_callback", {{"parallelism", threads}}, taking(us, waits)), nullptr);
      if (threads == 1) alone = rate;
      std::printf("map callback %s %4.0f us, %lld threads: %10.0f elements/s, %5.2fx, %6.2f us more per element\n",
                  waits ? "waiting" : "of", us, static_cast<long long>(threads), rate, rate / alone,
                  static_cast<double>(threads) * 1e6 / rate - us);
      std::fflush(stdout);
    }
  }
}

void toy_pipelines() {
  report("toy 1000x10: shuffle, repeat, batch 64", throughput(toy().shuffle(1000).repeat().batch(64), nullptr));
  report("toy 1000x10: shuffle, batch 64, repeat, prefetch",
         throughput(toy().shuffle(1000).batch(64).repeat().prefetch(8), nullptr));
  for (const double busy_us : {20.0, 50.0, 100.0}) {
    std::printf(
        "toy: shuffle, batch 64, repeat, prefetch, %3.0f us of work between: %5.2f us per batch for the consumer\n",
        busy_us, consumer_cost_us(toy().shuffle(1000).batch(64).repeat().prefetch(), busy_us));
  }
}

void element_pipelines() {
  report("toy: elements as views", throughput(toy().repeat(), nullptr));
  report("toy: shuffle by positions, buffer 100", throughput(toy().shuffle(100).repeat().batch(64), nullptr));
  data::TransformArguments all;
  all.filter = [](const Element &, bool &keep) {
    keep = true;
    return base::Status();
  };
  report("toy: filter callback, shuffle of elements, batch 64",
         throughput(toy().apply("filter_callback", {}, all).shuffle(100).repeat().batch(64), nullptr));
  report("toy: map callback, batch 64",
         throughput(toy().apply("map_callback", {}, callback()).repeat().batch(64), nullptr));
  report(
      "toy: map callback on 2 threads, batch 64",
      throughput(toy().repeat().apply("map_callback", {{"parallelism", int64_t{2}}}, callback()).batch(64), nullptr));
}

void image_pipelines(const std::shared_ptr<data::GraphRunner> &graphs) {
  const Pipeline bytes = images(DType::u8);
  const auto source = [&] { return bytes; };
  report("images: shuffle, batch 128", throughput(source().shuffle(kImages).repeat().batch(128), graphs));
  report("images: shuffle, batch 128, normalise",
         throughput(source().shuffle(kImages).repeat().batch(128).map(normalise(DType::u8)), graphs));
  report("images: normalise, shuffle, batch 128",
         throughput(source().map(normalise(DType::u8)).shuffle(kImages).repeat().batch(128), graphs));
  report("images: shuffle, batch 128, normalise, prefetch",
         throughput(source().shuffle(kImages).repeat().batch(128).map(normalise(DType::u8)).prefetch(4), graphs));
  const Pipeline floats = images(DType::f32);
  report("f32 images: shuffle, batch 128, normalise on the backend",
         throughput(Pipeline(floats).shuffle(kImages).repeat().batch(128).map(normalise(DType::f32)), graphs));
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1) seconds_per_round = std::atof(argv[1]);
  auto backend = backend::Backend::create(tutti::testing::bench_backend, "{}", {});
  if (!backend.ok()) {
    std::fprintf(stderr, "%s\n", backend.status().to_string().c_str());
    return 1;
  }
  auto device = (*backend)->open_device(0);
  if (!device.ok()) return 1;
  std::printf("backend %s, %d cores\n", (*backend)->name().c_str(), base::available_cores());
  const auto graphs = data::BackendGraphRunner::create(device.take());
  toy_pipelines();
  element_pipelines();
  map_callbacks();
  image_pipelines(graphs);
  return 0;
}

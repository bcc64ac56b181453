// SPDX-License-Identifier: Apache-2.0
//
// pipeline_gates [ROUNDS [WHAT [CASE]]]: what must hold of input pipelines, as ratios. Both sides of a ratio take turns
// A B B A; printed are the median over ROUNDS (default 9) and the quartiles. WHAT is one of
//
//   shuffle   time with shuffle(10,000) over time without it                       1.05 must hold
//   cache     a cached epoch in batches of 256 against memcpy of the same bytes    0.8 must hold
//   overlap   time of a step with prefetch over the longer of load and compute     1.05 must hold
//   calls     speed of eight functions at a time that wait 1 ms over one at a time   6 must hold
//   automatic speed with parallelism and prefetch chosen by the library over that with the best of a grid set by hand,
//             for pipelines that decode, wait for reads, and compute               0.9 must hold
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/random/philox.h"
#include "base/thread.h"
#include "bench_backend.h"
#include "data/format/encode_example.h"
#include "data/format/record.h"
#include "data/graph/backend_graph_runner.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "data/sample_images.h"
#include "graph/builder.h"
#include "tensor/bytes_tensor.h"

using namespace tutti::impl;
using namespace tutti::testing;
using Clock = std::chrono::steady_clock;
using data::Element;
using data::Pipeline;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;

namespace {

constexpr int64_t kImages = 60000;
constexpr int64_t kSide = 28;
constexpr int64_t kPixels = kSide * kSide;

int rounds = 9;
std::string wanted_case;  // part of the names of those to measure
std::shared_ptr<data::GraphRunner> graphs;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void spin(double seconds) {
  for (const Clock::time_point start = Clock::now(); seconds_since(start) < seconds;) {
  }
}

template <typename T>
T value_or_exit(base::Result<T> result) {
  if (result.ok()) return result.take();
  std::fprintf(stderr, "%s\n", result.status().to_string().c_str());
  std::exit(1);
}

// One walk that never ends.
class Walk {
 public:
  explicit Walk(const Pipeline &pipeline) {
    data::IteratorContext context;
    context.graphs = graphs;
    iterator_ = value_or_exit(value_or_exit(pipeline.build())->make_iterator(context));
  }
  // Seconds for so many elements; between them the consumer works so long.
  double seconds(int count, double busy_seconds = 0) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < count; ++i) {
      if (!value_or_exit(iterator_->next(element_))) std::exit(1);
      if (busy_seconds > 0) spin(busy_seconds);
    }
    return seconds_since(start);
  }

 private:
  std::unique_ptr<data::Iterator> iterator_;
  Element element_;
};

using Timed = std::function<double()>;

struct Ratio {
  double low = 0, median = 0, high = 0;
};

// Time of the first over time of the second.
Ratio compare(const Timed &first, const Timed &second, int turns = rounds) {
  std::vector<double> ratios;
  for (int turn = 0; turn < turns; ++turn) {
    double one = first(), other = second();
    other += second();
    one += first();
    ratios.push_back(one / other);
  }
  std::sort(ratios.begin(), ratios.end());
  return {ratios[ratios.size() / 4], ratios[ratios.size() / 2], ratios[ratios.size() * 3 / 4]};
}

void report(const std::string &what, const Ratio &ratio, const std::string &gate) {
  std::printf("%-72s %5.3f (%5.3f..%5.3f), gate %s\n", what.c_str(), ratio.median, ratio.low, ratio.high, gate.c_str());
  std::fflush(stdout);
}

data::TransformArguments by_graph(graph::SealedGraph graph) {
  data::TransformArguments arguments;
  arguments.graph = std::move(graph);
  return arguments;
}

Pipeline images() {
  static const Tensor pixels = [] {
    Tensor tensor = Tensor::allocate(DType::u8, {kImages, kPixels}).value();
    base::RandomStream random(base::RandomKey::of(1, 2, 3));
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.mutable_data_as<uint8_t>()[i] = static_cast<uint8_t>(random.next());
    return tensor;
  }();
  static const Tensor labels = Tensor::zeros(DType::i32, {kImages}).value();
  return Pipeline(data::from_slices({{"image", pixels}, {"label", labels, data::Role::label}}));
}

// Images as numbers that are no longer bytes.
Pipeline vectors() {
  static const Tensor numbers = [] {
    Tensor tensor = Tensor::allocate(DType::f32, {kImages / 10, kPixels}).value();
    base::RandomStream random(base::RandomKey::of(1, 2, 3));
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.mutable_data_as<float>()[i] = static_cast<float>(random.next() % 256) / 255.0F;
    return tensor;
  }();
  return Pipeline(data::from_slices({{"image", numbers}}));
}

// Bytes to floats in [0, 1]; each result is a function of one byte.
graph::SealedGraph scaling() {
  GraphBuilder b;
  b.set_result("image", b.div(b.cast(b.input("image", DType::u8, {GraphBuilder::batch(), kPixels}), DType::f32),
                              b.constant(255, DType::f32)));
  return std::make_shared<const graph::Graph>(b.finish_graph().value());
}

// So many times x / (1 + x^2) + 1.
graph::SealedGraph arithmetic(int times) {
  GraphBuilder b;
  const ValueId one = b.constant(1, DType::f32);
  ValueId x = b.input("image", DType::f32, {GraphBuilder::batch(), kPixels});
  for (int i = 0; i < times; ++i)
    x = b.add(b.div(x, b.add(b.mul(x, x), one)), one);
  b.set_result("image", x);
  return std::make_shared<const graph::Graph>(b.finish_graph().value());
}

// Fashion-MNIST's augmentation: random crop after a padding of 4, random flip, to floats and normalised.
graph::SealedGraph augmentation() {
  GraphBuilder b;
  ValueId image = b.reshape(b.input("image", DType::u8, {GraphBuilder::batch(), kPixels}),
                            {GraphBuilder::batch(), kSide, kSide, 1});
  image = b.op("random_crop", {image}, {{"size", std::vector<int64_t>{kSide, kSide}}, {"padding", int64_t{4}}});
  image = b.op("random_flip", {image});
  b.set_result(
      "image",
      b.op("normalize_image", {image},
           {{"mean", std::vector<double>{0.286}}, {"stddev", std::vector<double>{0.353}}, {"scale", 1 / 255.0}}));
  return std::make_shared<const graph::Graph>(b.finish_graph().value());
}

std::vector<std::string> photos(int64_t count) {
  std::vector<std::string> files;
  for (int64_t i = 0; i < count; ++i)
    files.push_back(jpeg_file(sample_photo(375, 500, static_cast<uint64_t>(i)), 90));
  return files;
}

Pipeline photo_files() {
  static const Tensor files = tensor::make_bytes_tensor({64}, photos(64)).value();
  return Pipeline(data::from_slices({{"file", files}}));
}

graph::SealedGraph decoding() {
  GraphBuilder b;
  ValueId image = b.op("decode_jpeg", {b.input("file", DType::bytes, {GraphBuilder::batch()})});
  image = b.op("resize", {image}, {{"size", std::vector<int64_t>{224, 224}}, {"output", std::string("f32")}});
  b.set_result("image", image);
  return std::make_shared<const graph::Graph>(b.finish_graph().value());
}

data::TransformArguments taking(double seconds, bool waits) {
  data::TransformArguments arguments;
  arguments.map = [seconds, waits](const Element &input, Element &output) {
    output = input;
    if (waits) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    } else {
      spin(seconds);
    }
    return base::Status();
  };
  return arguments;
}

// ---- shuffle ----

// Examples of 800 bytes and a label, in a file of 30,000.
std::string example_file() {
  const std::string path = "/tmp/tutti_pipeline_gates.tfrecord";
  data::RecordWriter writer = value_or_exit(data::RecordWriter::create(path, data::Compression::none));
  for (int64_t i = 0; i < 30000; ++i) {
    const std::string bytes(800, static_cast<char>('a' + i % 26));
    const std::map<std::string, Tensor> features{{"image", tensor::make_bytes_tensor({}, {bytes}).value()},
                                                 {"label", Tensor::scalar(i).value()}};
    if (!writer.write(data::encode_example(features).value()).ok()) std::exit(1);
  }
  if (!writer.close().ok()) std::exit(1);
  return path;
}

void shuffle_gate() {
  const std::string path = example_file();
  const auto with = [](Pipeline pipeline, bool shuffles) {
    return std::move(shuffles ? pipeline.shuffle(10000) : pipeline);
  };
  const auto of_images = [&](bool shuffles) { return with(images(), shuffles).map(scaling()).repeat().batch(256); };
  const auto of_augmented = [&](bool shuffles) {
    Pipeline source = with(images(), shuffles);
    source.apply("map", {{"parallelism", int64_t{0}}}, by_graph(augmentation()));
    return std::move(source.repeat().batch(256).prefetch(2));
  };
  const auto of_records = [&](bool shuffles) {
    Pipeline source;
    source.apply("tfrecord", {{"paths", std::vector<std::string>{path}}});
    return with(std::move(source), shuffles)
        .apply("parse_example", {{"features", std::vector<std::string>{"image: bytes", "label: i64"}}})
        .repeat()
        .batch(256);
  };
  const auto of_photos = [&](bool shuffles) {
    Pipeline source = with(std::move(photo_files().repeat(1000)), shuffles);
    return std::move(source.apply("map", {{"parallelism", int64_t{0}}}, by_graph(decoding())).repeat().batch(64));
  };
  const struct {
    const char *name;
    std::function<Pipeline(bool)> pipeline;
    int batches;
  } cases[] = {{"images in memory, cropped, flipped, normalised, batch 256", of_augmented, 235},
               {"images in memory, to floats, batch 256", of_images, 235},
               {"records of 830 bytes, parse_example, batch 256", of_records, 117},
               {"photos, decoded and resized, batch 64", of_photos, 4}};
  for (const auto &one : cases) {
    if (std::string(one.name).find(wanted_case) == std::string::npos) continue;
    Walk shuffled(one.pipeline(true)), plain(one.pipeline(false));
    (void)shuffled.seconds(one.batches);
    (void)plain.seconds(one.batches);
    report(std::string("shuffle(10,000): ") + one.name,
           compare([&] { return shuffled.seconds(one.batches); }, [&] { return plain.seconds(one.batches); }),
           "at most 1.05");
  }
  std::remove(path.c_str());
}

// ---- cache ----

void cache_gate() {
  constexpr int64_t kBatch = 256;
  data::TransformArguments copies;
  copies.map = [](const Element &input, Element &output) {
    output.components.resize(input.components.size());
    for (size_t i = 0; i < input.components.size(); ++i) {
      TUTTI_ASSIGN(output.components[i], input.components[i].clone());
    }
    return base::Status();
  };
  Walk cached(images().apply("map_callback", {}, std::move(copies)).apply("cache").repeat().batch(kBatch));
  const std::string from(static_cast<size_t>(kImages * kPixels), 'x');
  std::string to[2];
  for (std::string &one : to)
    one.assign(static_cast<size_t>(kBatch * kPixels), 'y');
  const auto copy = [&] {
    const Clock::time_point start = Clock::now();
    for (size_t at = 0, i = 0; at < from.size(); at += to[0].size(), ++i)
      std::memcpy(to[i % 2].data(), from.data() + at, std::min(to[0].size(), from.size() - at));
    return seconds_since(start);
  };
  (void)cached.seconds(235);
  report("cached images of 784 bytes in batches of 256, speed over memcpy's",
         compare(copy, [&] { return cached.seconds(235); }), "at least 0.8");
}

// ---- overlap ----

void overlap_gate() {
  constexpr double kUnit = 2e-3;
  const struct {
    double load, compute;
    bool waits;
  } cases[] = {{1, 1, true}, {0.5, 1, true}, {1, 0.5, true}, {1, 1, false}, {0.5, 1, false}, {1, 0.5, false}};
  for (const auto &[load, compute, waits] : cases) {
    Walk walk(images().repeat().batch(64).apply("map_callback", {}, taking(load * kUnit, waits)).prefetch());
    (void)walk.seconds(20, compute * kUnit);
    const double longer = std::max(load, compute);
    std::string what = base::concat("prefetch: load ", load * kUnit * 1e3, " ms", waits ? ", waiting" : ", computing",
                                    ", compute ", compute * kUnit * 1e3, " ms");
    // What a wait or a calculation of that length really takes here.
    const auto bare = [&, waits = waits, load = load, compute = compute] {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < 100; ++i) {
        if (waits && load > compute) {
          std::this_thread::sleep_for(std::chrono::duration<double>(longer * kUnit));
        } else {
          spin(longer * kUnit);
        }
      }
      return seconds_since(start);
    };
    report(what, compare([&, compute = compute] { return walk.seconds(100, compute * kUnit); }, bare), "at most 1.05");
  }
}

// ---- calls ----

void calls_gate() {
  const auto waiting = [](int64_t parallelism) {
    return std::move(images().repeat().apply("map_callback", {{"parallelism", parallelism}}, taking(1e-3, true)));
  };
  Walk eight(waiting(8)), one(waiting(1));
  report("functions that wait 1 ms, eight at a time over one at a time",
         compare([&] { return one.seconds(400); }, [&] { return eight.seconds(400); }), "at least 6");
}

// ---- automatic ----

// Seconds for so many elements of a walk that is alone on the machine: what another one's threads prepare meanwhile
// would count for nothing. Before that it finds its settings, and its buffers come to be as full as they stay.
double steady_seconds(const Pipeline &pipeline, int batches, int warm_ups) {
  Walk walk(pipeline);
  for (int i = 0; i < warm_ups; ++i)
    (void)walk.seconds(batches);
  std::vector<double> times{walk.seconds(batches), walk.seconds(batches), walk.seconds(batches)};
  std::sort(times.begin(), times.end());
  return times[1];
}

void automatic_gate(const char *name, int batches, const std::function<Pipeline(int64_t, int64_t)> &pipeline) {
  if (std::string(name).find(wanted_case) == std::string::npos) return;
  struct Setting {
    int64_t parallelism, buffer;
    double seconds;
  };
  std::vector<Setting> grid;
  for (const int64_t parallelism : {1, 2, 4, 8, 16, 32}) {
    for (const int64_t buffer : {1, 2, 8}) {
      grid.push_back({parallelism, buffer, steady_seconds(pipeline(parallelism, buffer), batches, 1)});
    }
  }
  const Setting best =
      *std::min_element(grid.begin(), grid.end(), [](const auto &a, const auto &b) { return a.seconds < b.seconds; });
  const auto by_hand = [&] { return steady_seconds(pipeline(best.parallelism, best.buffer), batches, 5); };
  const auto automatic = [&] { return steady_seconds(pipeline(0, 0), batches, 5); };
  report(
      base::concat("automatic: ", name, "; best by hand: parallelism ", best.parallelism, ", prefetch ", best.buffer),
      compare(by_hand, automatic, std::min(rounds, 5)), "at least 0.9");
}

void automatic_gates() {
  automatic_gate("photos decoded, batch 64", 4, [](int64_t parallelism, int64_t buffer) {
    return std::move(photo_files()
                         .repeat()
                         .apply("map", {{"parallelism", parallelism}}, by_graph(decoding()))
                         .batch(64)
                         .prefetch(buffer));
  });
  automatic_gate("reads of 1 ms, batch 32", 8, [](int64_t parallelism, int64_t buffer) {
    return std::move(images()
                         .repeat()
                         .apply("map_callback", {{"parallelism", parallelism}}, taking(1e-3, true))
                         .batch(32)
                         .prefetch(buffer));
  });
  automatic_gate("arithmetic on rows, batch 256", 40, [](int64_t parallelism, int64_t buffer) {
    return std::move(vectors()
                         .shuffle(kImages / 10)
                         .repeat()
                         .apply("map", {{"parallelism", parallelism}}, by_graph(arithmetic(20)))
                         .batch(256)
                         .prefetch(buffer));
  });
  automatic_gate("arithmetic on batches of 256", 40, [](int64_t parallelism, int64_t buffer) {
    return std::move(vectors()
                         .shuffle(kImages / 10)
                         .repeat()
                         .batch(256)
                         .apply("map", {{"parallelism", parallelism}}, by_graph(arithmetic(20)))
                         .prefetch(buffer));
  });
  automatic_gate("bytes to floats on rows, batch 256", 200, [](int64_t parallelism, int64_t buffer) {
    return std::move(images()
                         .shuffle(kImages)
                         .repeat()
                         .apply("map", {{"parallelism", parallelism}}, by_graph(scaling()))
                         .batch(256)
                         .prefetch(buffer));
  });
  automatic_gate("bytes to floats on batches of 256", 200, [](int64_t parallelism, int64_t buffer) {
    return std::move(images()
                         .shuffle(kImages)
                         .repeat()
                         .batch(256)
                         .apply("map", {{"parallelism", parallelism}}, by_graph(scaling()))
                         .prefetch(buffer));
  });
  automatic_gate("functions of 0.2 ms, computing, batch 32", 8, [](int64_t parallelism, int64_t buffer) {
    return std::move(images()
                         .repeat()
                         .apply("map_callback", {{"parallelism", parallelism}}, taking(2e-4, false))
                         .batch(32)
                         .prefetch(buffer));
  });
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1) rounds = std::max(1, std::atoi(argv[1]));
  const std::string what = argc > 2 ? argv[2] : "";
  wanted_case = argc > 3 ? argv[3] : "";
  auto backend = value_or_exit(backend::Backend::create(bench_backend, "{}", {}));
  graphs = data::BackendGraphRunner::create(value_or_exit(backend->open_device(0)));
  std::printf("backend %s, %d cores\n", backend->name().c_str(), base::available_cores());
  if (what.empty() || what == "shuffle") shuffle_gate();
  if (what.empty() || what == "cache") cache_gate();
  if (what.empty() || what == "overlap") overlap_gate();
  if (what.empty() || what == "calls") calls_gate();
  if (what.empty() || what == "automatic") automatic_gates();
  return 0;
}

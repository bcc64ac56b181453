// SPDX-License-Identifier: Apache-2.0
//
// image_bench [ROUNDS [photos|fashion]]: image pipelines against the bare work on the same files and cores.
// image_bench files FOLDER: only writes the photos there, for image_peer.py.
//
//   photos    64 made-up photos of 375 x 500 pixels as JPEG -> random-resized-crop 224 -> float, normalised, batch 64;
//             against loops over libjpeg-turbo, a bilinear resize and the normalisation, one on each core, which write
//             into one batch buffer and take the next file when they are done. Three forms of ours: whole images, whole
//             images by a Program for the normalisation, and only the window decoded.
//   fashion   made-up images of the size of Fashion-MNIST -> random crop, random flip, normalised, batch 256.
//
// Peer and pipeline take turns; the figure is the median of the ratios of neighbouring rounds, with the least and
// largest beside it. image_peer.py gives what PyTorch and tf.data do.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "bench_backend.h"
#include "data/graph/backend_graph_runner.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "data/sample_images.h"
#include "graph/builder.h"
#include "tensor/bytes_tensor.h"

using namespace tutti::impl;
using namespace tutti::testing;
using Clock = std::chrono::steady_clock;
using data::Pipeline;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;

namespace {

constexpr int64_t kSide = 224;
constexpr int64_t kBatch = 64;
constexpr int64_t kFiles = 64;
constexpr int kBatchesPerRound = 4;
const Doubles kMean{0.485, 0.456, 0.406};
const Doubles kDeviation{0.229, 0.224, 0.225};

// What a round took: images per second, and microseconds of processor time per image on all threads, which other load
// on the machine hardly changes.
struct Cost {
  double rate = 0;
  double processor_us = 0;
};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// ---- the bare loop ----

// Bilinear as the op does it, from a window to 224 x 224, and (x / 255 - mean) / deviation.
void bare_resize(const Pixels &image, int64_t top, int64_t left, int64_t height, int64_t width, float *to) {
  struct Tap {
    int64_t first, second;
    float share;
  };
  static thread_local std::vector<Tap> columns(kSide);
  const auto tap = [](int64_t i, int64_t input) {
    const double at = (static_cast<double>(i) + 0.5) * static_cast<double>(input) / kSide - 0.5;
    const double low = std::floor(at);
    return Tap{std::max<int64_t>(static_cast<int64_t>(low), 0),
               std::min<int64_t>(static_cast<int64_t>(low) + 1, input - 1), static_cast<float>(at - low)};
  };
  float scale[3], offset[3];
  for (size_t c = 0; c < 3; ++c) {
    scale[c] = static_cast<float>(1 / 255.0 / kDeviation[c]);
    offset[c] = static_cast<float>(-kMean[c] / kDeviation[c]);
  }
  for (int64_t x = 0; x < kSide; ++x)
    columns[static_cast<size_t>(x)] = tap(x, width);
  for (int64_t y = 0; y < kSide; ++y) {
    const Tap row = tap(y, height);
    const uint8_t *const upper = image.values.data() + ((top + row.first) * image.width + left) * 3;
    const uint8_t *const lower = image.values.data() + ((top + row.second) * image.width + left) * 3;
    for (int64_t x = 0; x < kSide; ++x) {
      const Tap &column = columns[static_cast<size_t>(x)];
      for (int64_t c = 0; c < 3; ++c) {
        const float a = upper[3 * column.first + c], b = upper[3 * column.second + c];
        const float d = lower[3 * column.first + c], e = lower[3 * column.second + c];
        const float above = a + (b - a) * column.share, below = d + (e - d) * column.share;
        *to++ = (above + (below - above) * row.share) * scale[c] + offset[c];
      }
    }
  }
}

void bare_image(const std::string &file, base::RandomStream &random, float *to) {
  const Pixels image = plain_jpeg_decode(file);
  const double area = static_cast<double>(image.height * image.width);
  int64_t height = image.height, width = image.width;
  for (int trial = 0; trial < 10; ++trial) {
    const double wanted = area * (0.08 + 0.92 * static_cast<double>(base::uniform_float(random.next())));
    const double aspect =
        std::exp((2 * static_cast<double>(base::uniform_float(random.next())) - 1) * std::log(4.0 / 3));
    const auto h = std::llround(std::sqrt(wanted / aspect)), w = std::llround(std::sqrt(wanted * aspect));
    if (h < 1 || w < 1 || h > image.height || w > image.width) continue;
    height = h;
    width = w;
    break;
  }
  bare_resize(image, random.below(image.height - height + 1), random.below(image.width - width + 1), height, width, to);
}

Cost bare_cost(const std::vector<std::string> &files, int cores) {
  static std::vector<float> batch(static_cast<size_t>(kBatch * kSide * kSide * 3));
  const Clock::time_point start = Clock::now();
  const double processor_start = processor_seconds();
  for (int round = 0; round < kBatchesPerRound; ++round) {
    std::atomic<int64_t> next{0};
    const auto work = [&](int thread) {
      base::RandomStream random(base::RandomKey::of(1, static_cast<uint64_t>(thread), static_cast<uint64_t>(round)));
      for (int64_t i; (i = next.fetch_add(1)) < kBatch;)
        bare_image(files[static_cast<size_t>(i % kFiles)], random, batch.data() + i * kSide * kSide * 3);
    };
    std::vector<std::thread> threads;
    for (int thread = 1; thread < cores; ++thread)
      threads.emplace_back(work, thread);
    work(0);
    for (std::thread &thread : threads)
      thread.join();
  }
  const double images = kBatchesPerRound * kBatch;
  return {images / seconds_since(start), 1e6 * (processor_seconds() - processor_start) / images};
}

// ---- ours ----

enum class Form { whole, by_program, window };

graph::SealedGraph photo_graph(Form form) {
  GraphBuilder b;
  const ValueId file = b.input("file", DType::bytes, {GraphBuilder::batch()});
  ValueId image = graph::kNoValue;
  const graph::Attributes size{{"size", Ints{kSide, kSide}}, {"output", std::string("f32")}};
  if (form == Form::window) {
    const ValueId window = b.op("random_crop_window", {b.op("image_size", {file})});
    image = b.op("resize", {b.op("decode_jpeg", {file, window})}, size);
  } else {
    image = b.op("random_resized_crop", {b.op("decode_jpeg", {file})}, size);
  }
  if (form == Form::by_program) {
    const auto channels = [&](const Doubles &values, double factor) {
      std::vector<float> all;
      for (const double value : values)
        all.push_back(static_cast<float>(value * factor));
      return b.constant(Tensor::from_values<float>({3}, all).value());
    };
    b.set_result("image", b.div(b.sub(image, channels(kMean, 255)), channels(kDeviation, 255)));
  } else {
    b.set_result("image",
                 b.op("normalize_image", {image}, {{"mean", kMean}, {"stddev", kDeviation}, {"scale", 1 / 255.0}}));
  }
  return std::make_shared<const graph::Graph>(b.finish_graph().value());
}

std::unique_ptr<data::Iterator> open(const Pipeline &pipeline, const std::shared_ptr<data::GraphRunner> &graphs) {
  data::IteratorContext context;
  context.graphs = graphs;
  auto dataset = pipeline.build();
  auto iterator = dataset.ok() ? (*dataset)->make_iterator(context)
                               : base::Result<std::unique_ptr<data::Iterator>>(dataset.status());
  if (iterator.ok()) return iterator.take();
  std::fprintf(stderr, "%s\n", iterator.status().to_string().c_str());
  std::exit(1);
}

Cost cost_of(data::Iterator &iterator, int batches) {
  data::Element element;
  int64_t rows = 0;
  const Clock::time_point start = Clock::now();
  const double processor_start = processor_seconds();
  for (int i = 0; i < batches; ++i) {
    const auto more = iterator.next(element);
    if (!more.ok() || !*more) {
      std::fprintf(stderr, "%s\n", more.status().to_string().c_str());
      std::exit(1);
    }
    rows += element.rows();
  }
  const auto images = static_cast<double>(rows);
  return {images / seconds_since(start), 1e6 * (processor_seconds() - processor_start) / images};
}

Pipeline mapped(Pipeline pipeline, graph::SealedGraph graph) {
  data::TransformArguments arguments;
  arguments.graph = std::move(graph);
  return std::move(pipeline.apply("map", {{"parallelism", int64_t{0}}}, std::move(arguments)));
}

// "1.02 (0.98..1.05)": the median, the least and the largest.
std::string median_text(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.3f (%.3f..%.3f)", values[values.size() / 2], values.front(),
                values.back());
  return text.data();
}

std::vector<std::string> photo_files() {
  std::vector<std::string> files;
  for (int64_t i = 0; i < kFiles; ++i)
    files.push_back(jpeg_file(sample_photo(375, 500, static_cast<uint64_t>(i)), 90));
  return files;
}

int write_photos(const std::string &folder) {
  const std::vector<std::string> files = photo_files();
  for (size_t i = 0; i < files.size(); ++i) {
    std::ofstream file(folder + "/photo" + std::to_string(i) + ".jpg", std::ios::binary);
    if (file << files[i] && file.flush()) continue;
    std::fprintf(stderr, "cannot write %s/photo%zu.jpg\n", folder.c_str(), i);
    return 1;
  }
  return 0;
}

void photos(int rounds, const std::shared_ptr<data::GraphRunner> &graphs) {
  const std::vector<std::string> files = photo_files();
  size_t bytes = 0;
  for (const std::string &file : files)
    bytes += file.size();
  const int cores = base::available_cores();
  std::printf("%lld photos of 375 x 500, %zu bytes each in the mean, %d cores\n", static_cast<long long>(kFiles),
              bytes / files.size(), cores);
  const Tensor contents = tensor::make_bytes_tensor({kFiles}, files).value();
  const struct {
    const char *name;
    Form form;
  } forms[] = {
      {"whole images", Form::whole}, {"whole, normalised by a Program", Form::by_program}, {"windows", Form::window}};
  for (const auto &one : forms) {
    Pipeline source(data::from_slices({{"file", contents}}));
    const auto iterator =
        open(mapped(std::move(source.shuffle(kFiles)), photo_graph(one.form)).repeat().batch(kBatch), graphs);
    (void)cost_of(*iterator, 2);
    std::vector<double> ratios, processor_ratios;
    Cost ours, bare;
    for (int round = 0; round < rounds; ++round) {
      bare = bare_cost(files, cores);
      ours = cost_of(*iterator, kBatchesPerRound);
      ratios.push_back(ours.rate / bare.rate);
      processor_ratios.push_back(bare.processor_us / ours.processor_us);
    }
    std::printf(
        "photos, %-31s %6.0f images/s of %5.0f us, bare loop %6.0f of %5.0f us; ratio %s, of processor time %s\n",
        one.name, ours.rate, ours.processor_us, bare.rate, bare.processor_us, median_text(ratios).c_str(),
        median_text(processor_ratios).c_str());
    std::fflush(stdout);
  }
}

void fashion(int rounds, const std::shared_ptr<data::GraphRunner> &graphs) {
  constexpr int64_t kImages = 60000;
  Tensor pixels = Tensor::allocate(DType::u8, {kImages, 28, 28, 1}).value();
  base::RandomStream random(base::RandomKey::of(1, 2, 3));
  for (int64_t i = 0; i < pixels.elements(); ++i)
    pixels.mutable_data_as<uint8_t>()[i] = static_cast<uint8_t>(random.next());
  GraphBuilder b;
  ValueId image = b.input("image", DType::u8, {GraphBuilder::batch(), 28, 28, 1});
  image = b.op("random_crop", {image}, {{"size", Ints{28, 28}}, {"padding", int64_t{4}}});
  image = b.op("random_flip", {image});
  b.set_result("image", b.op("normalize_image", {image},
                             {{"mean", Doubles{0.286}}, {"stddev", Doubles{0.353}}, {"scale", 1 / 255.0}}));
  const auto graph = std::make_shared<const graph::Graph>(b.finish_graph().value());
  Pipeline source(data::from_slices(
      {{"image", pixels}, {"label", Tensor::zeros(DType::i32, {kImages}).value(), data::Role::label}}));
  const auto iterator = open(mapped(std::move(source.shuffle(kImages)), graph).repeat().batch(256).prefetch(4), graphs);
  std::vector<double> rates, processor_us;
  for (int round = 0; round < rounds; ++round) {
    const Cost cost = cost_of(*iterator, 235);
    rates.push_back(cost.rate);
    processor_us.push_back(cost.processor_us);
  }
  std::printf("fashion, shuffle, random crop, flip, normalise, batch 256: images/s %s, processor us per image %s\n",
              median_text(rates).c_str(), median_text(processor_us).c_str());
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 2 && argv[1] == std::string("files")) return write_photos(argv[2]);
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  auto backend = backend::Backend::create(tutti::testing::bench_backend, "{}", {});
  if (!backend.ok()) {
    std::fprintf(stderr, "%s\n", backend.status().to_string().c_str());
    return 1;
  }
  auto device = (*backend)->open_device(0);
  if (!device.ok()) return 1;
  const auto graphs = data::BackendGraphRunner::create(device.take());
  if (argc < 3 || argv[2] == std::string("photos")) photos(rounds, graphs);
  if (argc < 3 || argv[2] == std::string("fashion")) fashion(rounds, graphs);
  return 0;
}

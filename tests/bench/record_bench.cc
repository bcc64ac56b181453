// SPDX-License-Identifier: Apache-2.0
//
// record_bench [SECONDS [FOLDER [RECORD_BYTES]]]: how fast record files are read from the page cache, by size of
// record: the share that a walk reaches of a plain read() of the same file, which writes into one buffer again and
// again. Both take turns; the figure is the median of their ratios, and beside it that of the processor time that all
// threads take, which other load on the machine changes less: with two cores to itself a walk whose thread reads ahead
// may be up to twice as fast as that. A round is one pass over the file; SECONDS (default 2) is for each size. The
// file, 256 MB, lies in FOLDER (default /tmp).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "base/hash/checksum.h"
#include "base/random/philox.h"
#include "data/format/record.h"
#include "data/pipeline/pipeline.h"

using namespace tutti::impl;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int64_t kFileBytes = int64_t{256} << 20;
constexpr size_t kReadBytes = size_t{256} << 10;

// Bytes per second, and per second of processor time of all threads.
struct Speed {
  double wall = 0, processor = 0;
};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

template <typename T>
T value_or_exit(base::Result<T> result) {
  if (result.ok()) return result.take();
  std::fprintf(stderr, "%s\n", result.status().to_string().c_str());
  std::exit(1);
}

void or_exit(const base::Status &status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}

void write_file(const std::string &path, size_t record_bytes) {
  std::string record(record_bytes, '\0');
  base::RandomStream random(base::RandomKey::of(1, 2, 3));
  for (char &byte : record)
    byte = static_cast<char>(random.next());
  data::RecordWriter writer = value_or_exit(data::RecordWriter::create(path, data::Compression::none));
  for (int64_t size = 0; size < kFileBytes; size += static_cast<int64_t>(record_bytes + 16))
    or_exit(writer.write(record));
  or_exit(writer.close());
}

Speed plain_read(const std::string &path) {
  static const std::unique_ptr<char[]> buffer(new char[kReadBytes]);
  const Clock::time_point start = Clock::now();
  const double processor_start = processor_seconds();
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) std::exit(1);
  int64_t bytes = 0;
  for (ssize_t got; (got = ::read(file, buffer.get(), kReadBytes)) > 0;)
    bytes += got;
  ::close(file);
  return {static_cast<double>(bytes) / seconds_since(start),
          static_cast<double>(bytes) / (processor_seconds() - processor_start)};
}

Speed walk(const data::Dataset &dataset, int64_t record_bytes, int32_t threads) {
  const Clock::time_point start = Clock::now();
  const double processor_start = processor_seconds();
  data::IteratorContext context;
  context.threads = threads;
  std::unique_ptr<data::Iterator> iterator = value_or_exit(dataset.make_iterator(context));
  data::Element element;
  int64_t rows = 0;
  for (;;) {
    if (!value_or_exit(iterator->next(element))) break;
    rows += dataset.spec().is_batched() ? element.rows() : 1;
  }
  iterator.reset();
  const auto bytes = static_cast<double>(rows * (record_bytes + 16));
  return {bytes / seconds_since(start), bytes / (processor_seconds() - processor_start)};
}

// Speeds of two things that take turns, and how the first compares with the second.
template <typename First, typename Second>
void compare(const std::string &what, double seconds, First first, Second second) {
  std::vector<double> firsts, seconds_of, ratios, processor_ratios;
  for (const Clock::time_point start = Clock::now(); seconds_since(start) < seconds || ratios.size() < 5;) {
    const Speed before = second();
    const Speed one = first();
    const Speed after = second();
    firsts.push_back(one.wall);
    seconds_of.push_back((before.wall + after.wall) / 2);
    ratios.push_back(one.wall / seconds_of.back());
    processor_ratios.push_back(2 * one.processor / (before.processor + after.processor));
  }
  std::printf("%-48s %6.2f GB/s, plain read %6.2f GB/s, ratio %4.2f, of processor time %4.2f\n", what.c_str(),
              median(firsts) * 1e-9, median(seconds_of) * 1e-9, median(ratios), median(processor_ratios));
  std::fflush(stdout);
}

void checksums() {
  const std::string data(size_t{1} << 20, 'x');
  for (const size_t size : {size_t{200}, size_t{1000}, size_t{10000}, size_t{1} << 20}) {
    double best = 0;
    uint32_t crc = 0;
    for (int round = 0; round < 5; ++round) {
      const Clock::time_point start = Clock::now();
      int64_t bytes = 0;
      for (; seconds_since(start) < 0.05; bytes += int64_t{16} * static_cast<int64_t>(size)) {
        for (int i = 0; i < 16; ++i)
          crc += base::crc32c(data.data(), size);
      }
      best = std::max(best, static_cast<double>(bytes) / seconds_since(start));
    }
    std::printf("crc-32c of %7zu bytes %34.2f GB/s%s\n", size, best * 1e-9, crc == 1 ? " " : "");
  }
}

}  // namespace

int main(int argc, char **argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  const std::string path = std::string(argc > 2 ? argv[2] : "/tmp") + "/tutti_record_bench.tfrecord";
  std::vector<size_t> sizes{size_t{1} << 20, 100000, 10000, 1000, 200};
  if (argc > 3) sizes = {static_cast<size_t>(std::atoll(argv[3]))};
  checksums();
  for (const size_t record_bytes : sizes) {
    write_file(path, record_bytes);
    const auto source = [&] { return data::Pipeline().apply("tfrecord", {{"paths", std::vector<std::string>{path}}}); };
    const auto size = static_cast<int64_t>(record_bytes);
    const struct {
      const char *name;
      data::DatasetRef dataset;
      int32_t threads;
    } cases[] = {{"", value_or_exit(source().build()), 2},
                 {", one thread", value_or_exit(source().build()), 1},
                 {", batch 32", value_or_exit(source().batch(32).build()), 2}};
    for (const auto &one : cases) {
      compare(
          base::concat("records of ", size, " bytes", one.name), seconds,
          [&] { return walk(*one.dataset, size, one.threads); }, [&] { return plain_read(path); });
    }
  }
  ::unlink(path.c_str());
  return 0;
}

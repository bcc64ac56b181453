// SPDX-License-Identifier: Apache-2.0
//
// Files that a thread reads ahead: the same elements, errors and states as without one, whatever the file system does.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/gzip.h"
#include "base/random/philox.h"
#include "data/format/record.h"
#include "odd_file_systems.h"
#include "sample_files.h"

namespace read_ahead_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::CancelToken;
using base::Ref;
using base::Result;
using base::Status;
using data::Compression;
using data::DatasetRef;
using data::Element;
using data::IteratorContext;

namespace {

using Strings = std::vector<std::string>;

IteratorContext with_threads(int32_t threads) {
  IteratorContext context;
  context.threads = threads;
  return context;
}

// Hardly compressible, of sizes that go before a block, and near the end one that does not.
const Strings &records() {
  static const Strings all = [] {
    base::RandomStream random(base::RandomKey::of(3, 1, 4));
    Strings made;
    for (size_t i = 0; i < 900; ++i) {
      const size_t most[] = {300, 3000, 20000, 60000, 65000};
      std::string record(i == 800 ? size_t{1500000} : random.next() % most[i % 5], '\0');
      for (char &byte : record)
        byte = static_cast<char>(random.next());
      made.push_back(std::move(record));
    }
    return made;
  }();
  return all;
}

// Mostly so large that blocks are framed for them; between them many small ones, which end that, and one or more that
// are too large for it.
Strings large_records(bool with_too_large) {
  base::RandomStream random(base::RandomKey::of(2, 7, 1));
  Strings made;
  for (size_t i = 0; i < 400; ++i) {
    const size_t most[] = {70000, 150000, 800, 400000, 20000};
    size_t size = i % 150 > 90 ? 1000 : 50 + random.next() % most[i % 5];
    if (i == 40) size = data::FilePrefetch::kMostFramedBytes - 16;
    if (i == 350 && with_too_large) size = data::FilePrefetch::kMostFramedBytes;
    made.emplace_back(size, static_cast<char>('a' + i % 26));
    for (size_t at = 0; at < size; at += 997)
      made.back()[at] = static_cast<char>(random.next());
  }
  return made;
}

std::string record_file(const TemporaryDirectory &folder, Compression compression = Compression::none,
                        const Strings &contents = records()) {
  const std::string path = folder / "records";
  data::RecordWriter writer = assert_ok_value(data::RecordWriter::create(path, compression));
  for (const std::string &record : contents)
    assert_ok(writer.write(record));
  assert_ok(writer.close());
  assert_true(assert_ok_value(base::file_size_bytes(path)) > int64_t{8} << 20);
  return path;
}

DatasetRef records_of(const Strings &paths, const Ref<const data::FileSystems> &systems = {}) {
  return assert_ok_value(begin_with("tfrecord", {{"paths", paths}}, {systems}).build());
}

// An error is "!" and its text; an interrupt is asked again.
Strings rest_of(data::Iterator &iterator) {
  Strings texts;
  Element element;
  for (;;) {
    const Result<bool> more = iterator.next(element);
    if (more.ok() && !*more) return texts;
    if (base::is_interrupt(more.status())) continue;
    if (!more.ok()) {
      texts.push_back("!" + more.status().to_string());
      continue;
    }
    for (const std::string_view text : assert_ok_value(tensor::bytes_values(element.components[0])))
      texts.emplace_back(text);
  }
}

Strings walk(const DatasetRef &dataset, int32_t threads) {
  return rest_of(*assert_ok_value(dataset->make_iterator(with_threads(threads))));
}

int reading_threads() {
  int count = 0;
  for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
    const Result<std::string> name = base::read_file(task.path() / "comm");
    if (name.ok() && *name == "tutti-read\n") ++count;
  }
  return count;
}

// Threads have their names a moment after they were started, and a moment too many are noticed.
void expect_reading_threads(int expected) {
  for (int i = 0; i < 1000 && reading_threads() != expected; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  assert_int_equal(reading_threads(), expected);
}

void elements_are_the_same(void **) {
  const TemporaryDirectory folder;
  for (const Compression compression : {Compression::none, Compression::gzip, Compression::zlib}) {
    const std::string path = record_file(folder, compression);
    for (const int32_t threads : {1, 2, 8}) {
      assert_true(walk(records_of({path}), threads) == records());
      const auto batched = assert_ok_value(begin_with("tfrecord", {{"paths", Strings{path}}}).batch(7).build());
      assert_true(walk(batched, threads) == records());
    }
  }
}

void large_records_are_the_same(void **) {
  const TemporaryDirectory folder;
  for (const bool with_too_large : {false, true}) {
    const Strings contents = large_records(with_too_large);
    const std::string path = record_file(folder, Compression::none, contents);
    for (const int32_t threads : {1, 2, 8}) {
      assert_true(walk(records_of({path}), threads) == contents);
      const auto batched = assert_ok_value(begin_with("tfrecord", {{"paths", Strings{path}}}).batch(7).build());
      assert_true(walk(batched, threads) == contents);
    }
    assert_true(walk(records_of({"uneven://" + path}, odd_file_systems()), 4) == contents);
  }
}

// Each is held while many others are read.
void large_records_that_are_held_stay(void **) {
  const TemporaryDirectory folder;
  const Strings contents = large_records(true);
  const auto dataset = records_of({record_file(folder, Compression::none, contents)});
  for (const size_t held_for : {1, 3, 40, 1000}) {
    const auto iterator = assert_ok_value(dataset->make_iterator(with_threads(2)));
    std::vector<tensor::Tensor> held;
    Element element;
    while (assert_ok_value(iterator->next(element))) {
      held.push_back(element.components[0]);
      if (held.size() <= held_for) continue;
      const tensor::Tensor last = std::move(held[held.size() - 1 - held_for]);
      assert_true(tensor::bytes_at(last, 0) == contents[held.size() - 1 - held_for]);
    }
    assert_int_equal(held.size(), contents.size());
    for (size_t i = 0; i < held.size(); ++i)
      assert_true(held[i].empty() || tensor::bytes_at(held[i], 0) == contents[i]);
  }
}

void walks_of_large_records_go_on_where_they_were_saved(void **) {
  const TemporaryDirectory folder;
  const Strings contents = large_records(true);
  const DatasetRef dataset = records_of({record_file(folder, Compression::none, contents)});
  const auto walked = assert_ok_value(dataset->make_iterator(with_threads(2)));
  Element element;
  for (size_t i = 0; i < contents.size(); ++i) {
    if (i % 37 == 3) {
      const auto resumed = assert_ok_value(dataset->make_iterator(with_threads(2)));
      assert_ok(resumed->restore(walked->save()));
      assert_true(rest_of(*resumed) == Strings(contents.begin() + static_cast<ptrdiff_t>(i), contents.end()));
    }
    assert_true(assert_ok_value(walked->next(element)));
  }
}

// Flipped bits of lengths, data and checksums, and cuts, in and between large records.
void damage_of_large_records_is_told_as_without(void **) {
  const TemporaryDirectory folder;
  const Strings contents = large_records(false);
  const std::string path = record_file(folder, Compression::none, contents);
  const std::string good = assert_ok_value(base::read_file(path));
  size_t start = 0;
  for (size_t i = 0; i < contents.size(); start += 16 + contents[i++].size()) {
    if (i % 23 != 1) continue;
    for (const size_t at : {start + 1, start + 9, start + 12, start + 13 + contents[i].size()}) {
      std::string flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
      for (const std::string &bad : {flipped, good.substr(0, at)}) {
        write_bytes(path, bad);
        const Strings got = walk(records_of({path}), 2);
        assert_true(got == walk(records_of({path}), 1));
        assert_contains(got[i].c_str(), base::concat("at offset ", start, ":").c_str());
      }
    }
  }
}

void lines_are_the_same(void **) {
  const TemporaryDirectory folder;
  std::string text;
  Strings lines;
  for (int i = 0; text.size() < size_t{9} << 20; ++i) {
    lines.push_back(std::string(static_cast<size_t>(i) * 7919 % 400, static_cast<char>('a' + i % 26)));
    if (i % 5000 == 0) lines.back() = std::string(1200000, 'w');
    text += lines.back() + (i % 3 == 0 ? "\r\n" : "\n");
  }
  write_bytes(folder / "plain", text);
  write_bytes(folder / "packed", assert_ok_value(base::gzip(text, 1)));
  for (const char *name : {"plain", "packed"}) {
    const Strings paths{folder / name};
    for (const int32_t threads : {1, 4}) {
      assert_true(walk(assert_ok_value(begin_with("text_lines", {{"paths", paths}}).build()), threads) == lines);
      assert_true(walk(assert_ok_value(begin_with("text_lines", {{"paths", paths}}).batch(5).build()), threads) ==
                  lines);
    }
  }
}

void threads_are_started_for_large_files_within_the_budget(void **) {
  const TemporaryDirectory folder;
  const std::string path = record_file(folder);
  write_bytes(folder / "small", assert_ok_value(base::read_file(path)).substr(0, size_t{3} << 20));
  const auto expect_threads = [](int expected, const std::string &one, int32_t budget, int walks) {
    Strings paths(static_cast<size_t>(walks), one);
    const Strings first{paths.back()};
    paths.pop_back();
    data::TransformArguments others;
    for (const std::string &other : paths)
      others.others.push_back(records_of({other}));
    auto pipeline = begin_with("tfrecord", {{"paths", first}});
    if (walks > 1) pipeline.apply("interleave", {}, std::move(others));
    auto iterator = assert_ok_value(assert_ok_value(pipeline.build())->make_iterator(with_threads(budget)));
    Element element;
    for (int i = 0; i < walks; ++i)
      assert_true(assert_ok_value(iterator->next(element)));
    expect_reading_threads(expected);
  };
  expect_threads(0, path, 1, 1);
  expect_threads(1, path, 2, 1);
  expect_threads(1, path, 2, 3);
  expect_threads(3, path, 4, 3);
  expect_threads(0, folder / "small", 4, 1);
  assert_int_equal(reading_threads(), 0);
}

void walks_go_on_where_they_were_saved(void **) {
  const TemporaryDirectory folder;
  for (const Compression compression : {Compression::none, Compression::gzip}) {
    const DatasetRef dataset = records_of({record_file(folder, compression)});
    const auto walked = assert_ok_value(dataset->make_iterator(with_threads(4)));
    const auto plain = assert_ok_value(dataset->make_iterator(with_threads(1)));
    Element element;
    for (size_t i = 0; i < records().size(); ++i) {
      const base::Json state = walked->save();
      assert_true(state.dump() == plain->save().dump());
      if (i % 97 == 3) {
        const auto resumed = assert_ok_value(dataset->make_iterator(with_threads(4)));
        assert_ok(resumed->restore(state));
        assert_true(rest_of(*resumed) == Strings(records().begin() + static_cast<ptrdiff_t>(i), records().end()));
      }
      assert_true(assert_ok_value(walked->next(element)));
      assert_true(assert_ok_value(plain->next(element)));
    }
  }
}

void damage_is_told_as_without(void **) {
  const TemporaryDirectory folder;
  for (const Compression compression : {Compression::none, Compression::gzip}) {
    const std::string path = record_file(folder, compression);
    const std::string good = assert_ok_value(base::read_file(path));
    for (const size_t at : {size_t{100}, good.size() / 2, good.size() - 70000}) {
      std::string flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
      for (const std::string &bad : {flipped, good.substr(0, at)}) {
        write_bytes(path, bad);
        const Strings got = walk(records_of({path}), 4);
        assert_true(got == walk(records_of({path}), 1));
        size_t same = 0;
        while (same < got.size() && got[same] == records()[same])
          ++same;
        assert_true(same < got.size());
        assert_contains(got[same].c_str(), "!DATA_LOSS: ");
        assert_contains(got[same].c_str(), path.c_str());
        assert_contains(got[same].c_str(), "offset ");
      }
    }
  }
}

void odd_file_systems_are_read_ahead_too(void **) {
  const TemporaryDirectory folder;
  const std::string path = record_file(folder, Compression::none);
  const auto systems = odd_file_systems();
  for (const char *scheme : {"uneven://", "late://"}) {
    assert_true(walk(records_of({scheme + path}, systems), 4) == records());
    auto batched = begin_with("tfrecord", {{"paths", Strings{scheme + path}}}, {systems});
    assert_true(walk(assert_ok_value(batched.batch(7).build()), 4) == records());
    assert_true(walk(records_of({scheme + path, scheme + path}, systems), 1).size() == 2 * records().size());
  }
}

// Gives what lies before a border; what lies behind it only once somebody opens it, or an error.
class BorderedFileSystem : public data::FileSystem {
 public:
  static constexpr int64_t kBorder = int64_t{5} << 20;

  explicit BorderedFileSystem(bool fails) : fails_(fails) {}
  Result<Ref<const data::ReadableFile>> open(const std::string &path, const Ref<CancelToken> &cancel) const override {
    TUTTI_ASSIGN(Ref<const data::ReadableFile> file, data::open_file(path.substr(path.find("://") + 3)));
    return Ref<const data::ReadableFile>(base::make_ref<File>(*this, path, std::move(file), cancel));
  }
  Result<std::vector<Entry>> list(const std::string &, const Ref<CancelToken> &) const override {
    return std::vector<Entry>();
  }
  bool can_list() const override { return false; }
  void open_border() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  int waiting() const { return waiting_.load(); }

 private:
  class File : public data::ReadableFile {
   public:
    File(const BorderedFileSystem &system, std::string path, Ref<const data::ReadableFile> file,
         Ref<CancelToken> cancel)
        : ReadableFile(std::move(path)), system_(system), file_(std::move(file)), cancel_(std::move(cancel)) {}
    int64_t size_bytes() const override { return file_->size_bytes(); }
    Result<size_t> read_at(int64_t offset, std::span<char> target) const override {
      if (offset < kBorder) {
        return file_->read_at(offset,
                              target.subspan(0, std::min(target.size(), static_cast<size_t>(kBorder - offset))));
      }
      if (system_.fails_) return Status(base::Code::unavailable, "the server is gone");
      std::unique_lock lock(system_.mutex_);
      ++system_.waiting_;
      const Status status = base::wait_until(system_.opened_, lock, cancel_.get(), base::Deadline::never(),
                                             [this] { return system_.is_open_; });
      --system_.waiting_;
      TUTTI_TRY(status);
      return file_->read_at(offset, target);
    }

   private:
    const BorderedFileSystem &system_;
    const Ref<const data::ReadableFile> file_;
    const Ref<CancelToken> cancel_;
  };

  const bool fails_;
  mutable std::mutex mutex_;
  mutable std::condition_variable opened_;
  bool is_open_ = false;  // guarded by mutex_
  mutable std::atomic<int> waiting_{0};
};

Ref<const data::FileSystems> with_system(const std::shared_ptr<BorderedFileSystem> &system) {
  auto systems = base::make_ref<data::FileSystems>();
  assert_ok(systems->add("border", system));
  return systems;
}

void deadlines_end_waits_and_nothing_is_lost(void **) {
  const TemporaryDirectory folder;
  const std::string path = "border://" + record_file(folder);
  const auto system = std::make_shared<BorderedFileSystem>(false);
  const DatasetRef dataset = records_of({path}, with_system(system));
  const auto iterator = assert_ok_value(dataset->make_iterator(with_threads(4)));
  iterator->token().set_deadline(base::Deadline::after_ms(300));
  Strings got;
  Element element;
  Result<bool> more = true;
  for (; (more = iterator->next(element)).ok() && *more;)
    got.push_back(std::string(tensor::bytes_at(element.components[0], 0)));
  assert_true(base::is_interrupt(more.status()));
  assert_true(base::is_interrupt(iterator->next(element).status()));
  assert_true(got.size() > 10);
  const base::Json state = iterator->save();
  system->open_border();
  iterator->token().set_deadline(base::Deadline::never());
  Strings all = got;
  const Strings rest = rest_of(*iterator);
  all.insert(all.end(), rest.begin(), rest.end());
  assert_true(all == records());
  const auto resumed = assert_ok_value(dataset->make_iterator(with_threads(4)));
  assert_ok(resumed->restore(state));
  assert_true(rest_of(*resumed) == rest);
}

void walks_that_are_dropped_end_their_threads(void **) {
  const TemporaryDirectory folder;
  const std::string path = "border://" + record_file(folder);
  const auto system = std::make_shared<BorderedFileSystem>(false);
  for (const bool cancels : {false, true}) {
    auto iterator = assert_ok_value(records_of({path}, with_system(system))->make_iterator(with_threads(4)));
    Element element;
    // So far that less than half of the ring lies before the border: then the thread comes to it.
    for (int64_t bytes = 0; bytes < BorderedFileSystem::kBorder - (int64_t{256} << 10);) {
      assert_true(assert_ok_value(iterator->next(element)));
      bytes += 16 + tensor::bytes_total(element.components[0]);
    }
    while (system->waiting() == 0)
      std::this_thread::yield();
    if (cancels) {
      iterator->token().cancel();
      assert_true(base::is_interrupt(iterator->next(element).status()));
    }
    iterator.reset();
    assert_int_equal(system->waiting(), 0);
    expect_reading_threads(0);
  }
}

void errors_of_a_file_come_behind_what_was_read(void **) {
  const TemporaryDirectory folder;
  const std::string path = "border://" + record_file(folder);
  const auto systems = with_system(std::make_shared<BorderedFileSystem>(true));
  const Strings ahead = walk(records_of({path}, systems), 4);
  assert_true(ahead == walk(records_of({path}, systems), 1));
  assert_true(std::equal(ahead.begin(), ahead.end() - 1, records().begin()));
  assert_contains(ahead.back().c_str(), "cannot read file 'border://");
  assert_contains(ahead.back().c_str(), base::concat("beyond offset ", BorderedFileSystem::kBorder).c_str());
  assert_contains(ahead.back().c_str(), "the server is gone");
}

// A thread may meet the end of what can be inflated before the first record is asked for.
void damage_before_an_end_does_not_hide_what_lies_between(void **) {
  const TemporaryDirectory folder;
  const std::string path = folder / "f";
  {
    data::RecordWriter writer = assert_ok_value(data::RecordWriter::create(path, data::Compression::none));
    for (const char *record : {"damaged", "second", "third"})
      assert_ok(writer.write(record));
    assert_ok(writer.close());
  }
  std::string bytes = assert_ok_value(base::read_file(path));
  bytes[12] = '!';
  std::string packed = assert_ok_value(base::gzip(bytes));
  packed.resize(packed.size() - 8);  // without its checksum
  for (const bool reads_ahead : {false, true}) {
    auto stream = assert_ok_value(data::open_record_stream(data::memory_file(packed, "f"), data::Compression::gzip));
    if (reads_ahead) {
      assert_ok(stream.read_ahead(base::CancelToken::create()));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    data::RecordReader reader;
    tensor::Tensor record;
    assert_error_contains(reader.read(stream, record), "the checksum of the record's data");
    assert_false(stream.has_failed());
    for (const char *expected : {"second", "third"}) {
      assert_true(assert_ok_value(reader.read(stream, record)));
      assert_true(tensor::bytes_at(record, 0) == expected);
    }
    assert_error_contains(reader.read(stream, record), "ends early");
    assert_true(stream.has_failed());
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(elements_are_the_same),
    cmocka_unit_test(large_records_are_the_same),
    cmocka_unit_test(large_records_that_are_held_stay),
    cmocka_unit_test(walks_of_large_records_go_on_where_they_were_saved),
    cmocka_unit_test(damage_of_large_records_is_told_as_without),
    cmocka_unit_test(lines_are_the_same),
    cmocka_unit_test(threads_are_started_for_large_files_within_the_budget),
    cmocka_unit_test(walks_go_on_where_they_were_saved),
    cmocka_unit_test(damage_is_told_as_without),
    cmocka_unit_test(odd_file_systems_are_read_ahead_too),
    cmocka_unit_test(deadlines_end_waits_and_nothing_is_lost),
    cmocka_unit_test(walks_that_are_dropped_end_their_threads),
    cmocka_unit_test(errors_of_a_file_come_behind_what_was_read),
    cmocka_unit_test(damage_before_an_end_does_not_hide_what_lies_between),
};
TEST_MAIN(tests)

}  // namespace read_ahead_test

// SPDX-License-Identifier: Apache-2.0
//
// Records against files that TensorFlow wrote (golden/make_golden.py), and against every kind of damage.
#include "base/gzip.h"
#include "base/memory.h"
#include "base/random/philox.h"
#include "data/format/record.h"
#include "sample_files.h"

namespace tfrecord_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::Compression;
using data::RecordWriter;
using tensor::Tensor;

namespace {

using Strings = std::vector<std::string>;

const std::string kGolden = GOLDEN_FOLDER "/";

// RECORDS of make_golden.py.
Strings golden_records() {
  std::string all_bytes, numbered;
  for (int i = 0; i < 256; ++i)
    all_bytes.push_back(static_cast<char>(i));
  for (int i = 0; i < 5000; ++i)
    numbered += base::concat("record ", i, "\n");
  return {"", "a", all_bytes, std::string(1000, 'x'), "\x1f\x8b\x08", numbered};
}

base::Result<data::DatasetRef> records_in(const Strings &paths, const std::string &compression = "auto") {
  return begin_with("tfrecord", {{"paths", paths}, {"compression", compression}}).build();
}

Strings read_records(const Strings &paths, const std::string &compression = "auto") {
  return texts_of(assert_ok_value(records_in(paths, compression)));
}

void write_records(const std::string &path, const Strings &records, Compression compression = Compression::none) {
  RecordWriter writer = assert_ok_value(RecordWriter::create(path, compression));
  for (const std::string &record : records)
    assert_ok(writer.write(record));
  assert_ok(writer.close());
  assert_int_equal(writer.records(), records.size());
}

void files_of_tensorflow_are_read(void **) {
  const Strings expected = golden_records();
  for (const char *name : {"records.tfrecord", "records.tfrecord.gz", "records.tfrecord.zlib"})
    assert_true(read_records({kGolden + name}) == expected);
  assert_true(read_records({kGolden + "records.tfrecord"}, "none") == expected);
  assert_true(read_records({kGolden + "records.tfrecord.gz"}, "gzip") == expected);
  assert_true(read_records({kGolden + "records.tfrecord.zlib"}, "zlib") == expected);
  assert_int_equal(read_records({kGolden + "records.tfrecord*"}).size(), 3 * expected.size());
  const auto wrong = read_records({kGolden + "records.tfrecord"}, "gzip");
  assert_int_equal(wrong.size(), 1);
  assert_contains(wrong[0].c_str(), "expected a gzip stream");
}

void what_is_written_is_what_tensorflow_writes(void **) {
  const TemporaryDirectory folder;
  const std::pair<const char *, Compression> cases[] = {{"records.tfrecord", Compression::none},
                                                        {"records.tfrecord.gz", Compression::gzip},
                                                        {"records.tfrecord.zlib", Compression::zlib}};
  for (const auto &[name, compression] : cases) {
    write_records(folder / name, golden_records(), compression);
    const std::string written = assert_ok_value(base::read_file(folder / name));
    assert_true(written == assert_ok_value(base::read_file(kGolden + name)));
  }
}

// Published vectors: an empty record, and the checksum of "123456789".
void checksums_are_the_published_ones(void **) {
  const TemporaryDirectory folder;
  write_records(folder / "f", {"", "123456789"});
  const std::string written = assert_ok_value(base::read_file(folder / "f"));
  assert_true(written.substr(0, 16) == std::string("\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2", 16));
  assert_true(written.substr(37) == "\xe5\xb0\x8a\xc7");
}

void records_of_all_sizes_come_back(void **) {
  const TemporaryDirectory folder;
  Strings records;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{131055}, size_t{131056}, size_t{131072}, size_t{131073},
                            size_t{262144}, size_t{1000000}, size_t{3}})
    records.push_back(std::string(size, static_cast<char>('a' + records.size())));
  // A first record of this length begins like a gzip file.
  records.insert(records.begin(), std::string(0x088b1f, 'g'));
  for (const Compression compression : {Compression::none, Compression::gzip, Compression::zlib}) {
    write_records(folder / "f", records, compression);
    assert_true(read_records({folder / "f"}) == records);
  }
  write_records(folder / "empty", {});
  assert_true(read_records({folder / "empty"}).empty());
  write_records(folder / "empty", {}, Compression::gzip);
  assert_true(read_records({folder / "empty"}).empty());
}

// Whatever bit is flipped, the records before come, the damage is told with its place, and nothing false comes.
void every_flipped_bit_is_found(void **) {
  const TemporaryDirectory folder;
  const Strings records{"first", "second record", "", "last"};
  write_records(folder / "f", records);
  const std::string good = assert_ok_value(base::read_file(folder / "f"));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    write_bytes(folder / "f", bad);
    size_t damaged = 0, end = 0;  // the record that the bit belongs to
    for (; (end += records[damaged].size() + 16) <= bit / 8; ++damaged) {
    }
    const size_t start = end - records[damaged].size() - 16;
    const Strings got = read_records({folder / "f"});
    assert_true(got.size() > damaged);
    for (size_t i = 0; i < damaged; ++i)
      assert_true(got[i] == records[i]);
    assert_contains(got[damaged].c_str(), ("!DATA_LOSS: corrupt record file '" + (folder / "f")).c_str());
    assert_contains(got[damaged].c_str(), base::concat(" at offset ", start, ": ").c_str());
    const bool in_header = bit / 8 < start + 12;
    assert_int_equal(got.size(), in_header ? damaged + 1 : records.size());
    if (!in_header)
      assert_true(std::equal(got.begin() + 1 + static_cast<ptrdiff_t>(damaged), got.end(),
                             records.begin() + 1 + static_cast<ptrdiff_t>(damaged)));
  }
}

void every_cut_is_found(void **) {
  const TemporaryDirectory folder;
  const Strings records{"first", "second record", "", "last"};
  const std::vector<size_t> ends{21, 50, 66, 86};
  const auto after = [](const std::string &text, const std::string &mark) {
    return text.substr(text.find(mark) + mark.size());
  };
  const std::pair<Compression, const char *> forms[] = {
      {Compression::none, "none"}, {Compression::gzip, "gzip"}, {Compression::zlib, "zlib"}};
  for (const auto &[compression, name] : forms) {
    write_records(folder / "f", records, compression);
    write_records(folder / "g", {"next file"}, compression);
    const std::string good = assert_ok_value(base::read_file(folder / "f"));
    for (size_t size = 0; size < good.size(); ++size) {
      write_bytes(folder / "f", good.substr(0, size));
      Strings got = read_records({folder / "f", folder / "g"}, name);
      assert_string_equal(got.back().c_str(), "next file");
      got.pop_back();
      const bool at_border =
          compression == Compression::none && (size == 0 || std::count(ends.begin(), ends.end(), size) == 1);
      if (!at_border) {
        assert_contains(got.back().c_str(), "!DATA_LOSS: ");
        assert_contains(got.back().c_str(), (folder / "f").c_str());
        if (compression == Compression::none) {
          const size_t begin = ends[got.size() - 1] - (records[got.size() - 1].size() + 16);
          assert_contains(got.back().c_str(), base::concat("' at offset ", begin, ": expected ").c_str());
        } else if (size < 2) {
          assert_contains(got.back().c_str(), ": expected a ");
        } else {
          // The place in what is packed, and in what came out of it.
          assert_contains(got.back().c_str(), base::concat("ends early, after ", size, " bytes").c_str());
          const size_t inflated = std::stoul(after(got.back(), "beyond offset "));
          assert_int_equal(got.size() - 1, std::upper_bound(ends.begin(), ends.end(), inflated) - ends.begin());
        }
        got.pop_back();
      }
      assert_true(got.size() <= records.size() && std::equal(got.begin(), got.end(), records.begin()));
    }
  }
}

void large_damage_is_found(void **) {
  const TemporaryDirectory folder;
  write_records(folder / "f", {std::string(500000, 'x'), "small", std::string(300000, 'y')});
  std::string bytes = assert_ok_value(base::read_file(folder / "f"));
  bytes[400000] = '!';
  write_bytes(folder / "f", bytes);
  const Strings got = read_records({folder / "f"});
  assert_int_equal(got.size(), 3);
  assert_contains(got[0].c_str(), "at offset 0: the checksum of the record's data (500000 bytes) is wrong");
  assert_string_equal(got[1].c_str(), "small");
  write_bytes(folder / "f", bytes.substr(0, bytes.size() - 2));
  assert_contains(read_records({folder / "f"}).back().c_str(),
                  "at offset 500037: expected a record of 300000 bytes, the file ends within it");
}

// Sizes on both sides of those that are copied, viewed in the stream's buffer and read by themselves.
Strings mixed_records(size_t count) {
  base::RandomStream random(base::RandomKey::of(5, 6, 7));
  Strings records;
  for (size_t i = 0; i < count; ++i) {
    const size_t most[] = {300, 3000, 20000, 70000, 300000};
    std::string record(random.next() % most[i % 5], '\0');
    for (size_t k = 0; k < record.size(); k += 1 + k / 50)
      record[k] = static_cast<char>(random.next());
    records.push_back(std::move(record));
  }
  return records;
}

// Memory is used again only when nobody holds it, whichever of the records are held, and for how long.
void records_that_are_held_stay(void **) {
  const TemporaryDirectory folder;
  const Strings records = mixed_records(300);
  for (const Compression compression : {Compression::none, Compression::gzip}) {
    write_records(folder / "f", records, compression);
    const auto dataset = assert_ok_value(records_in({folder / "f"}));
    for (const size_t held_for : {0, 1, 3, 40, 1000}) {
      auto iterator = assert_ok_value(dataset->make_iterator({}));
      std::vector<Tensor> held(records.size());
      data::Element element;
      for (size_t i = 0; i < records.size(); ++i) {
        assert_true(assert_ok_value(iterator->next(element)));
        if (i % 3 == 0) held[i] = element.components[0];
        assert_true(tensor::bytes_at(element.components[0], 0) == records[i]);
        if (i >= held_for) {
          Tensor last = std::move(held[i - held_for]);
          assert_true(last.empty() || tensor::bytes_at(last, 0) == records[i - held_for]);
        }
      }
      for (size_t i = 0; i < records.size(); ++i)
        assert_true(held[i].empty() || tensor::bytes_at(held[i], 0) == records[i]);
    }
  }
}

void records_dropped_in_time_cost_no_allocations(void **) {
  const TemporaryDirectory folder;
  for (const size_t size : {200, 3000, 30000, 300000}) {
    write_records(folder / "f", Strings(100, std::string(size, 'x')));
    auto iterator = assert_ok_value(assert_ok_value(records_in({folder / "f"}))->make_iterator({}));
    data::Element element;
    for (int i = 0; i < 2; ++i)
      assert_true(assert_ok_value(iterator->next(element)));
    const int64_t before = base::allocation_count().calls;
    while (assert_ok_value(iterator->next(element))) {
    }
    // A thread that reads ahead gets each of its blocks once.
    const int64_t most = size == 300000 ? data::FilePrefetch::kBlocks + 3 : 0;
    assert_in_range(base::allocation_count().calls, before, before + most);
  }
}

// A record that is held does not hold the buffer it was read into with it, but for a small share of them.
void records_that_are_held_take_their_own_memory(void **) {
  const TemporaryDirectory folder;
  write_records(folder / "f", Strings(20000, std::string(3000, 'x')));
  auto iterator = assert_ok_value(assert_ok_value(records_in({folder / "f"}))->make_iterator({}));
  std::vector<Tensor> held;
  data::Element element;
  const int64_t before = base::allocation_count().live_bytes;
  for (int i = 0; assert_ok_value(iterator->next(element)); ++i) {
    if (i % 60 == 0) held.push_back(element.components[0]);
  }
  assert_in_range(base::allocation_count().live_bytes - before, 3000 * held.size(),
                  (3000 + 200) * held.size() + 6 * data::ByteStream::kBufferBytes);
}

// Batches are written where they stay: a record that fails takes its batch along, those that are held keep theirs.
void batches_hold_what_the_records_are(void **) {
  const TemporaryDirectory folder;
  const Strings records = mixed_records(50);
  for (const Compression compression : {Compression::none, Compression::gzip}) {
    write_records(folder / "f", records, compression);
    const auto dataset = assert_ok_value(begin_with("tfrecord", {{"paths", Strings{folder / "f"}}}).batch(8).build());
    for (const size_t most_held : {0, 1, 100}) {
      auto iterator = assert_ok_value(dataset->make_iterator({}));
      std::vector<data::Element> held;
      data::Element element;
      for (size_t first = 0; first < records.size(); first += 8) {
        assert_true(assert_ok_value(iterator->next(element)));
        assert_int_equal(element.rows(), std::min<size_t>(8, records.size() - first));
        if (held.size() < most_held) held.push_back(element);
        for (size_t i = 0; i < static_cast<size_t>(element.rows()); ++i)
          assert_true(tensor::bytes_at(element.components[0], static_cast<int64_t>(i)) == records[first + i]);
      }
      assert_false(assert_ok_value(iterator->next(element)));
      for (size_t i = 0; i < held.size() * 8 && i < records.size(); ++i)
        assert_true(tensor::bytes_at(held[i / 8].components[0], static_cast<int64_t>(i % 8)) == records[i]);
    }
  }
}

void a_damaged_record_takes_its_batch_along(void **) {
  const TemporaryDirectory folder;
  const Strings records{"zero", "one", "two", "three", "four", "five", "six"};
  write_records(folder / "f", records);
  std::string bytes = assert_ok_value(base::read_file(folder / "f"));
  bytes[bytes.find("two")] = 'T';
  write_bytes(folder / "f", bytes);
  const auto pipeline = [&] { return begin_with("tfrecord", {{"paths", Strings{folder / "f"}}}); };
  const Strings got = texts_of(assert_ok_value(pipeline().batch(2).build()));
  assert_int_equal(got.size(), 6);
  assert_true(got[0] == "zero" && got[1] == "one" && got[3] == "four" && got[4] == "five" && got[5] == "six");
  assert_contains(got[2].c_str(), "at offset 39: the checksum of the record's data (3 bytes) is wrong");
  assert_true((texts_of(assert_ok_value(pipeline().batch(3, true).build())).size()) == 4);
}

void writers_leave_whole_files_or_none(void **) {
  const TemporaryDirectory folder;
  {
    RecordWriter writer = assert_ok_value(RecordWriter::create(folder / "f", Compression::none));
    assert_ok(writer.write("x"));
    assert_false(base::path_exists(folder / "f"));
  }
  assert_int_equal(assert_ok_value(base::list_directory(folder.path())).size(), 0);
  RecordWriter writer = assert_ok_value(RecordWriter::create(folder / "f", Compression::none));
  assert_ok(writer.close());
  assert_error_contains(writer.write("x"), "is already closed");
  assert_error_contains(writer.close(), "is already closed");
  assert_error_contains(RecordWriter::create("", Compression::none), "got an empty text");
  assert_error_contains(RecordWriter::create(folder / "none/f", Compression::none), "none/f");
  assert_error_contains(RecordWriter::create(folder / "g", Compression::automatic), "expected none, gzip or zlib");
  RecordWriter full = assert_ok_value(RecordWriter::create(folder / "h", Compression::none));
  base::fail_file_operation(base::FileOperation::write, 1, ENOSPC);
  const base::Status status = full.write(std::string(1 << 20, 'x'));
  base::fail_file_operation(base::FileOperation::write, 0, 0);
  assert_error_contains(status, "No space left");
  assert_error_contains(full.close(), "No space left");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(files_of_tensorflow_are_read),
    cmocka_unit_test(what_is_written_is_what_tensorflow_writes),
    cmocka_unit_test(checksums_are_the_published_ones),
    cmocka_unit_test(records_of_all_sizes_come_back),
    cmocka_unit_test(every_flipped_bit_is_found),
    cmocka_unit_test(every_cut_is_found),
    cmocka_unit_test(large_damage_is_found),
    cmocka_unit_test(records_that_are_held_stay),
    cmocka_unit_test(records_dropped_in_time_cost_no_allocations),
    cmocka_unit_test(records_that_are_held_take_their_own_memory),
    cmocka_unit_test(batches_hold_what_the_records_are),
    cmocka_unit_test(a_damaged_record_takes_its_batch_along),
    cmocka_unit_test(writers_leave_whole_files_or_none),
};
TEST_MAIN(tests)

}  // namespace tfrecord_test

// SPDX-License-Identifier: Apache-2.0
//
// Every source that reads files through the dataset conformance suite. What each makes of good and bad contents is
// tested in a file of its own.
#include "base/gzip.h"
#include "conformance/dataset_conformance.h"
#include "data/format/encode_example.h"
#include "data/format/record.h"
#include "data/pipeline/pipeline.h"
#include "odd_file_systems.h"
#include "sample_files.h"

namespace file_sources_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::Pipeline;

namespace {

using Strings = std::vector<std::string>;

// Files that all cases share.
class Files {
 public:
  Files() {
    write_bytes(folder_ / "a.txt", "one\ntwo\r\n\nfour");
    write_bytes(folder_ / "b.txt", "");
    write_bytes(folder_ / "c.txt", "five\nsix\n");
    write_bytes(folder_ / "d.txt", assert_ok_value(base::gzip("seven\neight\nnine")));
    const std::string packed = assert_ok_value(base::gzip("good\nbad\n"));
    write_bytes(folder_ / "cut.gz", packed.substr(0, packed.size() - 4));
    const std::string records = "abcdefghijklmnopqrstuvwxy01234567890123456789";
    write_bytes(folder_ / "a.fixed", records);
    write_bytes(folder_ / "b.fixed", "");
    write_bytes(folder_ / "c.fixed", records.substr(0, 15));
    write_bytes(folder_ / "fixed.gz", assert_ok_value(base::gzip(records)));
    for (const char *name : {"one", "two"}) {
      assert_ok(base::make_directories(folder_ / name));
      for (const char *image : {"/a.png", "/b.png", "/c.jpg"})
        write_bytes(folder_ / (std::string(name) + image), name);
    }
    write_bytes(folder_ / "a.csv", "name,x,y\none,1,2\n\"t\nwo\",,4\r\n\nthree,3,-6\n");
    write_bytes(folder_ / "b.csv", "y,x,name\n7,8,four\n9,10,\"fi\"\"ve\"");
    write_bytes(folder_ / "bad.csv", "name,x,y\none,1,2\ntwo,1\n3,3,x\n\"four\"x,5,5\nfive,5,5\n\"six,6,6\n");
    write_records("a.tfrecord", data::Compression::none, 7);
    write_records("b.tfrecord", data::Compression::none, 0);
    write_records("c.tfrecord", data::Compression::gzip, 5);
    write_large_records();
    std::string damaged = assert_ok_value(base::read_file(folder_ / "a.tfrecord"));
    damaged[damaged.size() / 2] ^= 1;
    write_bytes(folder_ / "damaged.record", damaged);
    write_bytes(folder_ / "cut.record", damaged.substr(0, damaged.size() - 3));
  }
  std::string operator/(const std::string &name) const { return prefix_ + (folder_ / name); }
  std::string golden(const std::string &name) const { return prefix_ + GOLDEN_FOLDER "/" + name; }
  // "short://" and the like: which file system the cases go through.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

 private:
  // Examples with "x" of two numbers and "words" of growing number.
  void write_records(const std::string &name, data::Compression compression, int count) {
    data::RecordWriter writer = assert_ok_value(data::RecordWriter::create(folder_ / name, compression));
    for (int i = 0; i < count; ++i) {
      const auto x = assert_ok_value(tensor::Tensor::from_values<float>({2}, {static_cast<float>(i), -1.0f}));
      const auto words = assert_ok_value(tensor::make_bytes_tensor({i}, Strings(static_cast<size_t>(i), name)));
      assert_ok(writer.write(assert_ok_value(data::encode_example({{"x", x}, {"words", words}}))));
    }
    assert_ok(writer.close());
  }

  // Some that are views of a buffer, and some with memory of their own; more than a buffer of them.
  void write_large_records() {
    data::RecordWriter writer = assert_ok_value(data::RecordWriter::create(folder_ / "large", data::Compression::none));
    for (char i = 0; i < 12; ++i)
      assert_ok(writer.write(std::string(i % 4 == 3 ? 100000 : 20000, static_cast<char>('a' + i))));
    assert_ok(writer.close());
  }

  TemporaryDirectory folder_;
  std::string prefix_;
};

Pipeline begin(std::string_view source, graph::Attributes attributes) {
  return begin_with(source, std::move(attributes), {odd_file_systems()});
}

DatasetCase of(std::string name, std::function<Pipeline()> make) {
  return {std::move(name), [make] { return DatasetInstance{make().build()}; }};
}

DatasetCase failing(DatasetCase one) {
  one.fails = true;
  return one;
}

std::vector<DatasetCase> text_cases(const Files &files) {
  const auto text = [&files](Strings names) {
    for (std::string &name : names)
      name = files / name;
    return begin("text_lines", {{"paths", names}});
  };
  return {
      of("text_lines", [=] { return text({"*.txt"}); }),
      of("text_lines of an empty file", [=] { return text({"b.txt"}); }),
      of("text_lines, batch", [=] { return std::move(text({"*.txt"}).batch(4)); }),
      of("text_lines, shuffle, repeat", [=] { return std::move(text({"*.txt"}).shuffle(3).repeat(3)); }),
      of("text_lines, cache, shuffle, batch",
         [=] { return std::move(text({"*.txt"}).apply("cache").shuffle(20).batch(2).repeat(2)); }),
      of("text_lines, batch, prefetch, unbatch",
         [=] { return std::move(text({"*.txt"}).batch(2).prefetch(2).apply("unbatch")); }),
      failing(of("text_lines, damaged",
                 [=] {
                   return text({"cut.gz", "c.txt"});
                 })),
  };
}

std::vector<DatasetCase> record_cases(const Files &files) {
  const auto records = [&files](const std::string &pattern) {
    return begin("tfrecord", {{"paths", Strings{files / pattern}}});
  };
  const auto parsed = [=](const std::string &pattern, Strings features) {
    return std::move(records(pattern).apply("parse_example", {{"features", std::move(features)}}));
  };
  const auto sequences = [](Strings lists) {
    return std::move(
        begin_with("tfrecord", {{"paths", Strings{GOLDEN_FOLDER "/sequence_examples.tfrecord"}}})
            .apply("parse_sequence_example", {{"sequences", std::move(lists)}, {"context", Strings{"id: i64"}}}));
  };
  return {
      of("tfrecord", [=] { return records("*.tfrecord"); }),
      of("tfrecord, shuffle, batch, repeat",
         [=] { return std::move(records("*.tfrecord").shuffle(5).batch(3).repeat(2)); }),
      of("parse_example",
         [=] {
           return parsed("*.tfrecord", {"words: bytes[?]", "x: f32[2]"});
         }),
      of("parse_example, rows, prefetch",
         [=] {
           return std::move(parsed("*.tfrecord", {"x: f32[2]", "z: i64 = 3"}).batch(5).repeat(2).prefetch(1));
         }),
      of("tfrecord, large records", [=] { return std::move(records("large").repeat(2)); }),
      of("tfrecord, large records, shuffle", [=] { return std::move(records("large").shuffle(3)); }),
      of("tfrecord, files in parallel",
         [=] {
           data::TransformArguments others;
           for (const char *name : {"large", "b.tfrecord", "c.tfrecord"})
             others.others.push_back(assert_ok_value(records(name).build()));
           return std::move(
               records("a.tfrecord")
                   .apply("interleave", {{"block_length", int64_t{2}}, {"parallelism", int64_t{0}}}, others)
                   .repeat(2));
         }),
      of("parse_sequence_example",
         [=] {
           return std::move(sequences({"letters: bytes[?]", "frames: f32[2]"}).repeat(3));
         }),
      failing(of("parse_sequence_example, missing", [=] { return sequences({"letters: bytes"}); })),
      failing(of("tfrecord, damaged data", [=] { return records("damaged.record"); })),
      failing(of("tfrecord, damaged and cut", [=] { return std::move(records("*.record").batch(2)); })),
      failing(of("parse_example, missing", [=] { return parsed("*.tfrecord", {"words: bytes[3]"}); })),
      failing(
          of("parse_example, missing, rows", [=] { return std::move(parsed("*.*record*", {"x: f32[2]"}).batch(3)); })),
  };
}

std::vector<DatasetCase> csv_cases(const Files &files) {
  const auto csv = [&files](const std::string &pattern, Strings columns) {
    return begin("csv", {{"paths", Strings{files / pattern}}, {"columns", std::move(columns)}});
  };
  const Strings numbers{"x: f32 = 0", "y: i64"};
  return {
      of("csv",
         [=] {
           return csv("?.csv", {"name: bytes", "x: f32 = -1"});
         }),
      of("csv, all columns", [=] { return std::move(csv("a.csv", {}).batch(2)); }),
      of("csv, rows", [=] { return std::move(csv("?.csv", numbers).shuffle(3).batch(3).repeat(2)); }),
      failing(of("csv, damaged",
                 [=] {
                   return csv("*.csv", {"name: bytes", "y: i64"});
                 })),
      failing(of("csv, damaged, rows", [=] { return std::move(csv("*.csv", numbers).batch(3)); })),
  };
}

std::vector<DatasetCase> other_cases(const Files &files) {
  const auto fixed = [&files](const std::string &name) {
    return begin("fixed_records", {{"paths", Strings{files / name}},
                                   {"fields", Strings{"a: u8", "b: i16[2]"}},
                                   {"compression", std::string("auto")}});
  };
  const auto text = [&files](const std::string &name) {
    return begin("fixed_records", {{"paths", Strings{files / name}}, {"record_bytes", int64_t{5}}});
  };
  const auto tar = [&files](const std::string &name) {
    return begin("tar", {{"paths", Strings{files.golden(name)}},
                         {"parts", Strings{"__key__: bytes", "jpg: bytes", "cls: i64"}}});
  };
  return {
      of("fixed_records", [=] { return fixed("*.fixed"); }),
      of("fixed_records, shuffle, batch", [=] { return std::move(fixed("*.fixed").shuffle(100).batch(3).repeat(2)); }),
      of("fixed_records of texts", [=] { return std::move(text("*.fixed").shuffle(4)); }),
      of("fixed_records, compressed", [=] { return std::move(fixed("fixed.gz").batch(3)); }),
      of("npz",
         [&files] {
           return std::move(begin("npz", {{"path", files.golden("both.npz")}}).shuffle(4).batch(3));
         }),
      of("files",
         [&files] {
           return begin("files", {{"paths", Strings{files / "*"}}});
         }),
      of("image_folder",
         [&files] {
           return std::move(
               begin("image_folder", {{"path", files / ""}, {"class_name", std::string("kind")}}).shuffle(9).repeat(2));
         }),
      of("tar", [=] { return tar("*.tar"); }),
      of("tar, compressed", [=] { return std::move(tar("gnu.tar*").shuffle(3).batch(2)); }),
  };
}

std::vector<DatasetCase> all_cases(const Files &files) {
  std::vector<DatasetCase> all;
  for (const auto &cases : {text_cases(files), record_cases(files), csv_cases(files), other_cases(files)})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

void sources_conform(void **) {
  const Files files;
  for (const DatasetCase &one : all_cases(files))
    check_dataset_case(one);
}

void walks_can_be_left_and_cancelled(void **) {
  const Files files;
  for (const DatasetCase &one : all_cases(files))
    check_dataset_leaving(one);
}

// While the deadline has passed nothing is taken; afterwards the walk goes on.
void interrupts_lose_nothing(void **) {
  const Files files;
  for (const DatasetCase &one : all_cases(files)) {
    DatasetWalk whole = open_walk(one, context_of(one));
    const Strings expected = take(one, *whole.iterator, one.limit);
    DatasetWalk walk = open_walk(one, context_of(one));
    Strings got;
    while (got.size() < expected.size()) {
      walk.iterator->token().set_deadline(base::Deadline::after_ms(0));
      data::Element element;
      assert_true(base::is_interrupt(walk.iterator->next(element).status()));
      walk.iterator->token().set_deadline(base::Deadline::never());
      for (std::string &text : take(one, *walk.iterator, 1))
        got.push_back(std::move(text));
    }
    check_equal(one, expected, got, "interrupted");
  }
}

// What an element says, without the paths in it.
std::string without_prefix(std::string text, const std::string &prefix) {
  for (size_t at = 0; !prefix.empty() && (at = text.find(prefix, at)) != std::string::npos;)
    text.erase(at, prefix.size());
  return text;
}

// The same elements, whatever file system they come from and however it gives them.
void sources_read_through_other_file_systems(void **) {
  Files files;
  const std::vector<DatasetCase> cases = all_cases(files);
  for (const DatasetCase &one : cases) {
    files.set_prefix("");
    DatasetWalk local = open_walk(one, context_of(one));
    const Strings expected = take(one, *local.iterator, one.limit);
    for (const char *prefix : {"short://", "late://"}) {
      // Threads in the background follow a token without a deadline.
      const bool has_threads =
          one.name.find("prefetch") != std::string::npos || one.name.find("parallel") != std::string::npos;
      if (prefix == std::string_view("late://") && has_threads) continue;
      files.set_prefix(prefix);
      DatasetWalk walk = open_walk(one, context_of(one));
      Strings got;
      for (int interrupts = 0; got.size() < expected.size();) {
        data::Element element;
        const base::Result<bool> more = walk.iterator->next(element);
        if (base::is_interrupt(more.status())) {
          if (++interrupts > 10000) fail_case(one, base::concat(prefix, " never gives element ", got.size()));
          continue;
        }
        const std::string text = more.ok() ? (*more ? fingerprint(element) : "end") : failure(more.status());
        got.push_back(without_prefix(text, prefix));
      }
      check_equal(one, expected, got, prefix);
    }
  }
}

void positions_belong_to_their_files(void **) {
  const Files files;
  const auto open = [&](Strings names) {
    const auto dataset = assert_ok_value(begin_with("text_lines", {{"paths", names}}).build());
    return assert_ok_value(dataset->make_iterator({}));
  };
  auto first = open({files / "a.txt", files / "c.txt"});
  data::Element element;
  assert_true(assert_ok_value(first->next(element)));
  const base::Json state = first->save();
  assert_error_contains(open({files / "a.txt"})->restore(state), "another list of files");
  // A file that was cut meanwhile is told, and the walk goes on with the next.
  auto later = open({files / "a.txt", files / "c.txt"});
  assert_ok(later->restore(state));
  write_bytes(files / "a.txt", "x");
  assert_error_contains(later->next(element), "ends before offset 4; it was longer when");
  assert_true(assert_ok_value(later->next(element)));
  assert_true(tensor::bytes_at(element.components[0], 0) == "five");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sources_conform),
    cmocka_unit_test(walks_can_be_left_and_cancelled),
    cmocka_unit_test(interrupts_lose_nothing),
    cmocka_unit_test(sources_read_through_other_file_systems),
    cmocka_unit_test(positions_belong_to_their_files),
};
TEST_MAIN(tests)

}  // namespace file_sources_test

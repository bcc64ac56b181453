// SPDX-License-Identifier: Apache-2.0
//
// Every source that reads files through the dataset conformance suite. What each makes of good and bad contents is
// tested in a file of its own.
#include "base/gzip.h"
#include "conformance/dataset_conformance.h"
#include "data/pipeline.h"
#include "sample_files.h"

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
  }
  std::string operator/(const std::string &name) const { return folder_ / name; }

 private:
  TemporaryDirectory folder_;
};

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
    return begin_with("text_lines", {{"paths", names}});
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

std::vector<DatasetCase> all_cases(const Files &files) {
  std::vector<DatasetCase> all;
  for (const auto &cases : {text_cases(files)})
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
    cmocka_unit_test(positions_belong_to_their_files),
};
TEST_MAIN(tests)

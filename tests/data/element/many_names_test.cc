// SPDX-License-Identifier: Apache-2.0
//
// Elements with very many components: time is in proportion to their number.
#include <ctime>

#include "base/gzip.h"
#include "sample_files.h"

namespace many_names_test {

using namespace tutti::impl;
using namespace tutti::testing;

namespace {

using Strings = std::vector<std::string>;

constexpr int kNames = 500000, kArrays = 60000;

// Where each name is looked for among all, this takes minutes of a processor, however busy the machine is.
class Watch {
 public:
  ~Watch() {
    const double seconds = static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC;
    if (seconds > 30) fail_msg("took %.1f s", seconds);
  }

 private:
  const std::clock_t start_ = std::clock();
};

std::string name_of(int i) { return base::concat("column ", i); }

Strings names(int count, const char *end = "") {
  Strings all;
  for (int i = 0; i < count; ++i)
    all.push_back(name_of(i) + end);
  return all;
}

int32_t value_at(const data::Element &element, int component) {
  return assert_ok_value(element.components[static_cast<size_t>(component)].scalar_value<int32_t>());
}

void many_columns_of_text(void **) {
  const TemporaryDirectory folder;
  std::string text = base::join(names(kNames), ",") + "\n";
  for (int i = 0; i < kNames; ++i)
    text += base::concat(i > 0 ? "," : "", i);
  write_bytes(folder / "wide.csv", text + "\n");
  const Watch watch;
  Strings labels = names(kNames);
  labels.resize(kNames / 2);
  auto pipeline = begin_with(
      "csv", {{"paths", Strings{folder / "wide.csv"}}, {"columns", names(kNames, ": i32")}, {"labels", labels}});
  pipeline.apply("select", {{"features", names(kNames)}});
  const auto dataset = assert_ok_value(pipeline.build());
  assert_true(dataset->spec().components.back().role == data::Role::feature);
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  data::Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  for (int i = 0; i < kNames; i += 999)
    assert_int_equal(value_at(element, i), i);
  const auto all = assert_ok_value(begin_with("csv", {{"paths", Strings{folder / "wide.csv"}}}).build());
  assert_int_equal(all->spec().components.size(), kNames);
}

std::string little_endian(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text.push_back(static_cast<char>(number >> (8 * i)));
  return text;
}

// CRC-32 as gzip has it: at the end of a member.
std::string checksum(const std::string &bytes) {
  const std::string packed = assert_ok_value(base::gzip(bytes));
  return packed.substr(packed.size() - 8, 4);
}

// An archive of arrays of one element, i32; ZIP file format specification (APPNOTE), 4.3.
std::string archive(int arrays) {
  std::string files, directory;
  for (int i = 0; i < arrays; ++i) {
    const std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }\n";
    const std::string contents = std::string("\x93NUMPY\1\0", 8) + little_endian(header.size(), 2) + header +
                                 little_endian(static_cast<uint64_t>(i), 4);
    const std::string name = name_of(i) + ".npy";
    const std::string facts = std::string(8, '\0') + checksum(contents) + little_endian(contents.size(), 4) +
                              little_endian(contents.size(), 4) + little_endian(name.size(), 2) + std::string(2, '\0');
    directory += "PK\1\2" + little_endian(20, 2) + little_endian(20, 2) + facts + std::string(10, '\0') +
                 little_endian(files.size(), 4) + name;
    files += "PK\3\4" + little_endian(20, 2) + facts + name + contents;
  }
  const auto count = static_cast<uint64_t>(arrays);
  return files + directory + "PK\5\6" + std::string(4, '\0') + little_endian(count, 2) + little_endian(count, 2) +
         little_endian(directory.size(), 4) + little_endian(files.size(), 4) + std::string(2, '\0');
}

void many_arrays_of_an_archive(void **) {
  const TemporaryDirectory folder;
  write_bytes(folder / "many.npz", archive(kArrays));
  const Watch watch;
  for (const Strings &wanted : {Strings{}, names(kArrays)}) {
    const auto dataset = assert_ok_value(
        begin_with("npz", {{"path", folder / "many.npz"}, {"arrays", wanted}, {"labels", names(kArrays)}}).build());
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    data::Element element;
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(element.components.size(), kArrays);
    for (int i = 0; i < kArrays; i += 999)
      assert_int_equal(value_at(element, i), i);
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(many_columns_of_text),
    cmocka_unit_test(many_arrays_of_an_archive),
};
TEST_MAIN(tests)

}  // namespace many_names_test

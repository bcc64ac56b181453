// SPDX-License-Identifier: Apache-2.0
//
// CSV against what Python's csv module reads (golden/make_golden.py), and against every kind of mistake.
#include "base/json.h"
#include "sample_files.h"

namespace csv_test {

using namespace tutti::impl;
using namespace tutti::testing;

namespace {

using Strings = std::vector<std::string>;

graph::Attributes with(graph::Attributes attributes, const std::string &path) {
  attributes.insert_or_assign("paths", Strings{path});
  return attributes;
}

// All values of all records, a component after the other; an error ends its record.
Strings values_in(const data::DatasetRef &dataset) {
  Strings all;
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  data::Element element;
  for (int i = 0; i < 10000; ++i) {
    const base::Result<bool> more = iterator->next(element);
    if (!more.ok()) {
      all.push_back("!" + more.status().to_string());
      continue;
    }
    if (!*more) return all;
    for (const tensor::Tensor &component : element.components) {
      all.push_back(component.dtype() == tensor::DType::bytes ? std::string(tensor::bytes_at(component, 0))
                                                              : component.to_string());
    }
  }
  fail_msg("the walk does not end");
  return all;
}

Strings values_of(const std::string &contents, graph::Attributes attributes = {}) {
  const TemporaryDirectory folder;
  write_bytes(folder / "f.csv", contents);
  return values_in(assert_ok_value(begin_with("csv", with(std::move(attributes), folder / "f.csv")).build()));
}

base::Status error_of(const std::string &contents, graph::Attributes attributes = {}) {
  const TemporaryDirectory folder;
  write_bytes(folder / "f.csv", contents);
  return begin_with("csv", with(std::move(attributes), folder / "f.csv")).build().status();
}

void python_reads_the_same(void **) {
  const std::string golden = GOLDEN_FOLDER "/random.csv";
  const base::Json expected = assert_ok_value(base::Json::parse(assert_ok_value(base::read_file(golden + ".json"))));
  Strings values;
  for (const base::Json &row : expected.array()) {
    for (const base::Json &value : row.array())
      values.push_back(value.string());
  }
  assert_in_range(values.size(), 1000, 10000);
  const Strings got = values_in(assert_ok_value(begin_with("csv", with({}, golden)).build()));
  assert_int_equal(got.size(), values.size());
  for (size_t i = 0; i < got.size(); ++i)
    assert_string_equal(got[i].c_str(), values[i].c_str());
}

void quotes_and_line_ends_are_those_of_the_rfc(void **) {
  assert_true((values_of("a,b\n1,2\n") == Strings{"1", "2"}));
  assert_true((values_of("a,b\r\n1,2\r\n3,4") == Strings{"1", "2", "3", "4"}));
  assert_true((values_of("a,b\n\"x,\"\"y\"\"\r\nz\",\"\"\n") == Strings{"x,\"y\"\r\nz", ""}));
  assert_true((values_of("a,b\n\n1,2\n\r\n3,4\n\n") == Strings{"1", "2", "3", "4"}));
  assert_true((values_of("a,b\n,\n") == Strings{"", ""}));
  assert_true((values_of("a,b\n 1 ,x\"y\"\n") == Strings{" 1 ", "x\"y\""}));
  assert_true((values_of("\xef\xbb\xbf\"a\",b\n1,\"2\"") == Strings{"1", "2"}));
  assert_true(values_of("a,b\n").empty());
  assert_true(values_of("a,b").empty());
  assert_true((values_of("a;b\n1,5;2\n", {{"delimiter", std::string(";")}}) == Strings{"1,5", "2"}));
  const std::string wide(600000, 'w');
  assert_true((values_of("a,b\n\"" + wide + "\n\"\"\"," + wide) == Strings{wide + "\n\"", wide}));
}

void columns_have_types_and_defaults(void **) {
  const Strings columns{"y: i32", "x: f32 = -1", "name: bytes = none", "on: boolean = false"};
  const std::string text = "x,name,extra,y,on\n1.5,a,?,7,true\n,,?,-8,\nNA,\"\",?,+9,0\n 2e3 ,NA,?, 1 ,1\n";
  assert_true((values_of(text, {{"columns", columns}, {"missing", Strings{"NA"}}}) ==
               Strings{"i32 [] {7}", "f32 [] {1.5}", "a", "boolean [] {true}", "i32 [] {-8}", "f32 [] {-1}", "none",
                       "boolean [] {false}", "i32 [] {9}", "f32 [] {-1}", "", "boolean [] {false}", "i32 [] {1}",
                       "f32 [] {2000}", "none", "boolean [] {true}"}));
  const TemporaryDirectory folder;
  write_bytes(folder / "f", "1,2\n3,4\n");
  const auto dataset = assert_ok_value(begin_with("csv", {{"paths", Strings{folder / "f"}},
                                                          {"columns", Strings{"x: f32", "y: i64"}},
                                                          {"labels", Strings{"y"}},
                                                          {"header", false}})
                                           .batch(2)
                                           .build());
  assert_string_equal(dataset->spec().to_string().c_str(), "(x: f32[batch], y: i64[batch] label)");
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  data::Element batch;
  assert_true(assert_ok_value(iterator->next(batch)));
  assert_true(tensor::identical(batch.components[0], tensor::Tensor::from_values<float>({2}, {1, 3}).value()));
  assert_true(tensor::identical(batch.components[1], tensor::Tensor::from_values<int64_t>({2}, {2, 4}).value()));
}

// What is wrong costs one record, and names file, line and column.
void mistakes_in_files_are_told(void **) {
  const graph::Attributes typed{{"columns", Strings{"a: i8", "b: bytes"}}};
  const Strings got = values_of("a,b\n1,x\n\"2\n2\",y\n300,z\n3\n4,x,y\n,w\n5,\"q\"r,\n6,v\n7,\"open\n8,x\n", typed);
  const char *const expected[] = {"i8 [] {1}",
                                  "x",
                                  "/f.csv':3: column 'a': expected i8, got '2\\x0a2'",
                                  "/f.csv':5: column 'a': expected i8, got '300'",
                                  "/f.csv':6: expected 2 fields, got 1",
                                  "/f.csv':7: expected 2 fields, got 3",
                                  "/f.csv':8: column 'a' has no value and no default",
                                  "/f.csv':9: field 2 has characters after its closing quote",
                                  "i8 [] {6}",
                                  "v",
                                  "/f.csv':11: field 2 has an opening quote without a closing quote"};
  assert_int_equal(got.size(), std::size(expected));
  for (size_t i = 0; i < got.size(); ++i)
    assert_contains(got[i].c_str(), expected[i]);
  assert_contains(values_of("", typed)[0].c_str(), "it has no header");
  assert_contains(values_of("a,c\n1,2\n", typed)[0].c_str(), "has no column 'b'; known: 'a', 'c'");
  const graph::Attributes wrong{{"columns", Strings{"a: i8", "b: bytes"}}, {"delimiter", std::string(";")}};
  assert_contains(values_of("a,b\n1,2\n", wrong)[0].c_str(),
                  "has no column 'a'; known: 'a,b'; the option delimiter is ';', and the header contains ','");
  assert_contains(values_of("a,b,a\n1,2,3\n", typed)[0].c_str(), "has several columns 'a'");
  assert_true((values_of("a,b,c,c\n1,2,3,4\n", typed) == Strings{"i8 [] {1}", "2"}));
  const graph::Attributes bare{{"columns", Strings{"a: i8"}}, {"header", false}};
  for (const char *const text : {"a,b\r1,2\r3,4\r", "a\r1\r2", "\r\ra\r1\r"}) {
    for (const graph::Attributes &attributes : {typed, bare})
      assert_contains(values_of(text, attributes)[0].c_str(), ":1: a carriage return is not followed by a line feed");
    assert_error_contains(error_of(text), "lines end in LF or CR LF");
  }
  assert_true((values_of("a,b\r\n1,\"x\ry\"\r\n", typed) == Strings{"i8 [] {1}", "x\ry"}));
}

// Elements and errors of a walk that is saved and restored before each of them.
Strings resumed_before_each(const std::string &text, const graph::Attributes &attributes) {
  const TemporaryDirectory folder;
  write_bytes(folder / "f.csv", text);
  graph::Attributes all = attributes;
  all["paths"] = Strings{folder / "f.csv"};
  const auto dataset = begin_with("csv", all).build().value();
  Strings got;
  base::Json state = dataset->make_iterator({}).value()->save();
  for (;;) {
    const auto iterator = dataset->make_iterator({}).value();
    if (!iterator->restore(state).ok()) return {"not restored"};
    data::Element element;
    const auto more = iterator->next(element);
    if (more.ok() && !*more) return got;
    got.push_back(more.ok() ? std::string(tensor::bytes_at(element.components[1], 0)) : more.status().to_string());
    state = iterator->save();
  }
}

void where_a_walk_goes_on_changes_nothing(void **) {
  const graph::Attributes bare{{"columns", Strings{"a: i8", "b: bytes"}}, {"header", false}};
  assert_true((resumed_before_each("1,x\n2,y\rz\n3,\r\n4,v\n", bare) == Strings{"x", "y\rz", "", "v"}));
  const Strings spoiled = resumed_before_each("1,\"x\"y\n2,y\rz\n", bare);
  assert_int_equal(spoiled.size(), 2);
  assert_contains(spoiled[0].c_str(), "has characters after its closing quote");
  assert_string_equal(spoiled[1].c_str(), "y\rz");
  assert_contains(resumed_before_each("1,x\r2,y\r", bare)[0].c_str(), "lines end in LF or CR LF");
}

// What programs leave that write in parallel.
void empty_parts_have_no_elements(void **) {
  const TemporaryDirectory folder;
  for (const auto &[name, text] : {std::pair{"part-0.csv", ""},
                                   {"part-1.csv", "id\n7\n8\n"},
                                   {"part-2.csv", "id\n"},
                                   {"part-3.csv", ""},
                                   {"part-4.csv", "\xef\xbb\xbf"},
                                   {"part-5.csv", "id\n9\n"}})
    write_bytes(folder / name, text);
  for (const Strings &columns : {Strings{}, Strings{"id: bytes"}}) {
    const auto dataset =
        assert_ok_value(begin_with("csv", {{"paths", Strings{folder / "part-*.csv"}}, {"columns", columns}}).build());
    assert_true((texts_of(dataset) == Strings{"7", "8", "9"}));
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    data::Element element;
    int elements = 0;
    for (base::Json state = iterator->save(); assert_ok_value(iterator->next(element)); ++elements) {
      state = iterator->save();
      iterator = assert_ok_value(dataset->make_iterator({}));
      assert_ok(iterator->restore(state));
    }
    assert_int_equal(elements, 3);
  }
  const Strings empty = {folder / "part-0.csv", folder / "part-3.csv"};
  assert_error_contains(begin_with("csv", {{"paths", empty}}).build(), "part-0.csv': it has no header");
}

void mistakes_in_parameters_are_told(void **) {
  assert_error_contains(error_of("a\n", {{"columns", Strings{"a: i8[2]"}}}), "a column holds one value");
  assert_error_contains(error_of("a\n", {{"columns", Strings{"a"}}}), "field 'a': missing ':'");
  assert_error_contains(error_of("a\n", {{"columns", Strings{"a: i8", "a: i8"}}}), "two components are called 'a'");
  assert_error_contains(error_of("a\n", {{"delimiter", std::string(",,")}}), "expected one character, got ',,'");
  assert_error_contains(error_of("a\n", {{"delimiter", std::string("\"")}}), "expected one character");
  assert_error_contains(error_of("a\n", {{"header", false}}), "without a header they must be listed");
  assert_error_contains(error_of("a\n", {{"labels", Strings{"b"}}}), "there is no component 'b' to be a label");
  assert_error_contains(error_of("a,a\n"), "two components are called 'a'");
  assert_error_contains(error_of(""), "it has no header");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(python_reads_the_same),
    cmocka_unit_test(quotes_and_line_ends_are_those_of_the_rfc),
    cmocka_unit_test(columns_have_types_and_defaults),
    cmocka_unit_test(mistakes_in_files_are_told),
    cmocka_unit_test(empty_parts_have_no_elements),
    cmocka_unit_test(mistakes_in_parameters_are_told),
    cmocka_unit_test(where_a_walk_goes_on_changes_nothing),
};
TEST_MAIN(tests)

}  // namespace csv_test

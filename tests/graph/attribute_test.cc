// SPDX-License-Identifier: Apache-2.0
#include "graph/attribute.h"

#include <map>
#include <stdexcept>
#include <string>

#include "testing.h"

namespace attribute_test {

namespace {

using tutti::impl::graph::Attribute;
using tutti::impl::graph::Attributes;

int64_t number(const Attribute &attribute) { return std::get<int64_t>(attribute); }

void names_ascend_however_they_come(void **) {
  Attributes attributes{{"stride", int64_t{2}}, {"axis", int64_t{1}}};
  assert_true(attributes.emplace("padding", std::string("same")));
  std::string names;
  for (const auto &[name, value] : attributes)
    names += name + " ";
  assert_string_equal(names.c_str(), "axis padding stride ");
  assert_true(equal(attributes, {{"padding", std::string("same")}, {"axis", int64_t{1}}, {"stride", int64_t{2}}}));
}

void the_first_of_equal_names_counts(void **) {
  Attributes attributes{{"axis", int64_t{1}}, {"axis", int64_t{2}}};
  assert_int_equal(attributes.size(), 1);
  assert_int_equal(number(attributes.at("axis")), 1);
  assert_false(attributes.emplace("axis", int64_t{3}));
  assert_int_equal(number(attributes.at("axis")), 1);
  assert_false(attributes.insert_or_assign("axis", int64_t{4}));
  assert_int_equal(number(attributes.at("axis")), 4);
}

/// As std::map does, after the same calls.
void it_is_a_map(void **) {
  Attributes attributes;
  std::map<std::string, int64_t> expected;
  for (int64_t i = 0; i < 500; ++i) {
    const std::string name = "a" + std::to_string(i * 7919 % 83);
    if (i % 5 == 4) {
      assert_int_equal(attributes.erase(name), expected.erase(name));
    } else if (i % 2 == 0) {
      assert_true(attributes.emplace(name, i) == expected.emplace(name, i).second);
    } else {
      attributes[name] = i;
      expected[name] = i;
    }
    assert_true(attributes.contains(name) == (expected.count(name) == 1));
  }
  assert_int_equal(attributes.size(), expected.size());
  auto want = expected.begin();
  for (const auto &[name, value] : attributes) {
    assert_string_equal(name.c_str(), want->first.c_str());
    assert_int_equal(number(value), (want++)->second);
  }
}

void a_name_that_is_not_there_is_told(void **) {
  const Attributes attributes{{"axis", int64_t{1}}};
  assert_true(attributes.find("axes") == attributes.end());
  std::string said;
  try {
    (void)attributes.at("axes");
  } catch (const std::out_of_range &error) {
    said = error.what();
  }
  assert_contains(said.c_str(), "'axes'");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_ascend_however_they_come),
    cmocka_unit_test(the_first_of_equal_names_counts),
    cmocka_unit_test(it_is_a_map),
    cmocka_unit_test(a_name_that_is_not_there_is_told),
};
TEST_MAIN(tests)

}  // namespace attribute_test

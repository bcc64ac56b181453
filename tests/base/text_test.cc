// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <limits>

#include "base/name_suggestions.h"
#include "testing.h"

namespace text_test {

using namespace tutti::impl::base;

namespace {

enum class Colour { red };
std::string_view name(Colour) { return "red"; }

struct Extent {
  std::string to_string() const { return "<3>"; }
};

void pieces_of_all_kinds(void **) {
  const std::vector<int> list = {1, -2, 3};
  const std::string text =
      concat("a", 'b', std::string("c"), 1, -2L, 3u, UINT64_MAX, 0.1, 0.5f, true, Colour::red, Extent{}, list);
  assert_string_equal(text.c_str(), "abc1-23184467440737095516150.10.5truered<3>[1, -2, 3]");
  assert_string_equal(concat(static_cast<int8_t>(-5), static_cast<uint8_t>(7)).c_str(), "-57");
  assert_string_equal(join(list, "; ").c_str(), "1; -2; 3");
}

void splitting_and_trimming(void **) {
  const std::vector<std::string> parts = split("a,,b", ',');
  assert_int_equal(parts.size(), 3);
  assert_string_equal(parts[1].c_str(), "");
  assert_int_equal(split("", ',').size(), 1);
  assert_true(trim(" \t x y\n") == "x y");
  assert_true(trim("  ").empty());
}

void numbers_parse_whole_or_not_at_all(void **) {
  assert_true(parse_integer("-9223372036854775808") == INT64_MIN);
  assert_false(parse_integer("9223372036854775808").has_value());
  assert_false(parse_integer("12x").has_value());
  assert_false(parse_integer("").has_value());
  assert_true(parse_double("2.5e3") == 2500.0);
  assert_false(parse_double("2.5 ").has_value());
}

void quoting_is_safe_to_print(void **) {
  assert_string_equal(quoted("a\nb\x7f").c_str(), "'a\\x0ab\\x7f'");
  assert_string_equal(quoted("gr\xc3\xbc\xc3\x9f\xff").c_str(), "'gr\xc3\xbc\xc3\x9f\\xff'");
  assert_string_equal(quoted("abcdef", 3).c_str(), "'abc...'");
  // A character of two bytes is not cut in the middle.
  assert_string_equal(quoted("ab\xc3\xbc", 3).c_str(), "'ab...'");
}

void distances(void **) {
  assert_int_equal(edit_distance("", ""), 0);
  assert_int_equal(edit_distance("abc", ""), 3);
  assert_int_equal(edit_distance("", "abc"), 3);
  assert_int_equal(edit_distance("kitten", "sitting"), 3);
  assert_int_equal(edit_distance("adma", "adam"), 1);
  assert_int_equal(edit_distance(std::string(1000, 'a'), std::string(1000, 'b')), 256);
}

void nearest_names(void **) {
  const std::vector<std::string> names = {"momentum", "nesterov", "learning_rate"};
  assert_string_equal(did_you_mean("nesterof", names).c_str(), ", did you mean 'nesterov'?");
  assert_string_equal(did_you_mean("lerning_rate", names).c_str(), ", did you mean 'learning_rate'?");
  assert_string_equal(did_you_mean("x", names).c_str(), "");
  // Of one letter, another one is no slip, but its other case is.
  const std::vector<std::string> letters = {"b", "w"};
  assert_string_equal(did_you_mean("x", letters).c_str(), "");
  assert_string_equal(did_you_mean("W", letters).c_str(), ", did you mean 'w'?");
}

void what_there_is_instead(void **) {
  const std::vector<std::string> names = {"momentum", "nesterov"};
  assert_string_equal(but_there_are("nesterof", names).c_str(),
                      ", did you mean 'nesterov'?; known: momentum, nesterov");
  assert_string_equal(but_there_are("something", names).c_str(), "; known: momentum, nesterov");
  assert_string_equal(but_there_are("something", {}).c_str(), "; none are known");
  const std::string long_name(390, 'a');
  const std::vector<std::string> many = {long_name, "b", std::string(20, 'c'), "d"};
  assert_string_equal(but_there_are("something", many).c_str(), ("; known: " + long_name + ", b and 2 more").c_str());
  assert_string_equal(but_there_are("something", std::vector<std::string>{long_name + long_name}).c_str(),
                      ("; known: " + long_name + long_name).c_str());
}

void utf8(void **) {
  assert_true(is_utf8(""));
  assert_true(is_utf8("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5"));
  assert_false(is_utf8("\xc0\xaf"));          // overlong
  assert_false(is_utf8("\xe0\x80\x80"));      // overlong
  assert_false(is_utf8("\xed\xa0\x80"));      // surrogate
  assert_false(is_utf8("\xf4\x90\x80\x80"));  // beyond U+10FFFF
  assert_false(is_utf8("\xe2\x82"));          // cut
  assert_int_equal(well_formed_prefix("ab\xff"
                                      "cd"),
                   2);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(pieces_of_all_kinds),
    cmocka_unit_test(splitting_and_trimming),
    cmocka_unit_test(numbers_parse_whole_or_not_at_all),
    cmocka_unit_test(quoting_is_safe_to_print),
    cmocka_unit_test(distances),
    cmocka_unit_test(nearest_names),
    cmocka_unit_test(what_there_is_instead),
    cmocka_unit_test(utf8),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace text_test

// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <cmath>
#include <limits>

#include "testing.h"

namespace json_test {

using namespace tutti::impl::base;

namespace {

std::string round_trip(const std::string &text) { return assert_ok_value(Json::parse(text)).dump(); }

void values_round_trip(void **) {
  const std::string text =
      R"({"b":[null,true,false],"a":-9223372036854775808,"i":9223372036854775807,"d":0.1,"e":1e+300,"w":2.0,"s":"\"\\\n\u0001é€🎵"})";
  assert_string_equal(round_trip(text).c_str(), text.c_str());
  assert_string_equal(round_trip("[]").c_str(), "[]");
  assert_string_equal(round_trip(" { } ").c_str(), "{}");
  assert_string_equal(round_trip("3").c_str(), "3");
}

void doubles_are_exact(void **) {
  const double values[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789012345680.0, 1e22, M_PI};
  for (const double value : values) {
    const Json back = assert_ok_value(Json::parse(Json(value).dump()));
    assert_true(back.is_number());
    const double read = back.number();
    assert_memory_equal(&value, &read, sizeof(value));
  }
}

void what_json_cannot_say(void **) {
  const Json json = JsonArray{std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL};
  const std::string text = json.dump();
  assert_string_equal(text.c_str(), R"(["NaN","Infinity","-Infinity"])");
  const Json back = assert_ok_value(Json::parse(text));
  const std::vector<double> values = assert_ok_value(JsonReader(back, "x").as_doubles());
  assert_true(std::isnan(values[0]) && values[1] == HUGE_VAL && values[2] == -HUGE_VAL);
  assert_string_equal(Json("a\xff"
                           "b")
                          .dump()
                          .c_str(),
                      "\"a\xef\xbf\xbd"
                      "b\"");
}

void building(void **) {
  Json json = JsonObject{{"step", 1200}, {"files", JsonArray{"a", "b"}}, {"shape", std::vector<int64_t>{2, 3}}};
  json["loss"] = 0.25;
  json.set("step", 7);
  json["nested"]["deep"] = true;
  json["list"].push_back(1u);
  assert_string_equal(json.dump().c_str(),
                      R"({"step":7,"files":["a","b"],"shape":[2,3],"loss":0.25,"nested":{"deep":true},"list":[1]})");
  assert_int_equal(json.size(), 6);
  assert_null(json.find("none"));
  assert_string_equal(Json(JsonObject{{"a", JsonArray{1, 2}}, {"b", JsonObject()}}).dump(2).c_str(),
                      "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
  assert_true(json == assert_ok_value(Json::parse(json.dump())));
  assert_false(Json(1) == Json(1.0));
}

void bad_texts_are_placed(void **) {
  assert_error_contains(Json::parse("{\"a\": 1,\n  \"b\": x}"), "line 2, column 8");
  assert_error_contains(Json::parse(""), "line 1, column 1");
  assert_error_contains(Json::parse("[1] 2"), "JSON: line 1");
  assert_error_contains(Json::parse("{\"a\":1,\"b\":2,\"a\":3}"), "key 'a' appears twice");
  assert_error_contains(Json::parse("[9223372036854775808]"), "does not fit 64 bits");
  assert_error_contains(Json::parse("[-9223372036854775809]"), "does not fit 64 bits");
  assert_error_contains(Json::parse("[123456789012345678901234567890]"), "does not fit 64 bits");
  assert_error_contains(Json::parse("[1e999]"), "JSON: line 1");
  assert_error_contains(Json::parse("\"\xff\""), "JSON: line 1");
  for (const char *cut : {"[", "{\"a\"", "{\"a\":", "\"x", "tru", "-", "[1,"}) {
    assert_true(Json::parse(cut).code() == Code::invalid_argument);
  }
}

void limits_hold(void **) {
  assert_error_contains(Json::parse(std::string(100000, '[')), "nested deeper than 64");
  assert_ok(Json::parse(std::string(64, '[') + std::string(64, ']')));
  assert_true(Json::parse("[1, 2, 3]", {.max_bytes = 5}).code() == Code::resource_exhausted);
}

void reading_names_the_path(void **) {
  const Json json = assert_ok_value(
      Json::parse(R"({"step":"x","list":[1,{"deep":2.5}],"none":null,"big":9007199254740993,"yes":true,"name":"n"})"));
  const JsonReader root(json, "manifest");
  assert_error_contains(root.get_integer("step"), "manifest.step: expected integer, got string");
  assert_error_contains(root.get_integer("stop"), "manifest: key 'stop' is missing");
  assert_true(root.get_integer("stop").code() == Code::not_found);
  assert_error_contains(root.get_double("big"), "cannot be represented exactly as a double");
  assert_error_contains(root.get_integers("list"), "manifest.list[1]: expected integer, got object");
  assert_int_equal(assert_ok_value(root.get_integer("none", 5)), 5);
  assert_int_equal(assert_ok_value(root.get_integer("stop", 6)), 6);
  assert_error_contains(root.get_integer("yes", 6), "expected integer, got boolean");
  assert_true(assert_ok_value(root.get_boolean("yes")));
  assert_string_equal(assert_ok_value(root.get_string("name", "m")).c_str(), "n");
  const std::vector<JsonReader> elements = assert_ok_value(assert_ok_value(root.get("list")).elements());
  assert_true(assert_ok_value(elements[1].get_double("deep")) == 2.5);
  assert_true(assert_ok_value(elements[0].as_double()) == 1.0);
  assert_error_contains(elements[1].get_string("deep"), "manifest.list[1].deep: expected string, got number");
  assert_int_equal(assert_ok_value(root.members()).size(), 6);
  assert_error_contains(root.only_keys({"steps", "list", "none", "big", "yes", "name"}),
                        "unknown key 'step', did you mean 'steps'?");
  assert_ok(root.only_keys({"step", "list", "none", "big", "yes", "name"}));
  assert_error_contains(elements[0].get("x"), "expected object, got integer");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(values_round_trip),      cmocka_unit_test(doubles_are_exact),
    cmocka_unit_test(what_json_cannot_say),   cmocka_unit_test(building),
    cmocka_unit_test(bad_texts_are_placed),   cmocka_unit_test(limits_hold),
    cmocka_unit_test(reading_names_the_path),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace json_test

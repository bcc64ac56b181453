// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest.h"

#include "base/hash/checksum.h"
#include "testing.h"

namespace manifest_test {

using namespace tutti::impl;
using namespace tutti::impl::checkpoint;
using base::JsonArray;
using base::JsonObject;

namespace {

Manifest sample() {
  Manifest manifest;
  manifest.step = 1200;
  manifest.run = JsonObject{{"seed", 7}};
  manifest.options = JsonObject{{"level", "fast"}};
  manifest.plan = JsonObject{{"hash", "00ff"}};
  manifest.iterator = JsonArray{1, 2};
  manifest.metrics = JsonObject{{"loss", 0.1}};
  manifest.files = {{"weights.safetensors", {10, 0x00c0ffee}}, {"graph.json", {0, 0}}};
  return manifest;
}

// A manifest whose checksum is right, whatever its body says.
std::string sealed(std::string_view body) {
  char digits[9];
  snprintf(digits, sizeof digits, "%08x", base::crc32c(body));
  return base::concat("{\"manifest\": ", body, ",\n \"crc32c\": \"", digits, "\"}\n");
}

void test_round_trip(void **) {
  const Manifest manifest = sample();
  const std::string text = manifest_text(manifest);
  const Manifest read = assert_ok_value(parse_manifest(text));
  assert_int_equal(read.step, 1200);
  assert_true(read.run == manifest.run && read.options == manifest.options && read.plan == manifest.plan);
  assert_true(read.iterator == manifest.iterator && read.metrics == manifest.metrics);
  assert_int_equal(read.files.size(), 2);
  assert_non_null(read.find_file("weights.safetensors"));
  assert_int_equal(read.find_file("weights.safetensors")->summary.crc32c, 0x00c0ffee);
  assert_null(read.find_file("slots.safetensors"));
  assert_string_equal(manifest_text(read).c_str(), text.c_str());
  assert_ok(base::Json::parse(text));
}

void test_every_flipped_bit_and_every_cut_is_found(void **) {
  const std::string text = manifest_text(sample());
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const auto read = parse_manifest(damaged);
      // A checksum digit may change its case and stay the same number.
      if (read.ok()) assert_true(bit == 5 && text[i] >= 'a' && text[i] <= 'f');
    }
    assert_int_equal(parse_manifest(std::string_view(text).substr(0, i)).code(), base::Code::data_loss);
  }
}

void test_impossible_manifests(void **) {
  assert_error_contains(parse_manifest(""), "damaged");
  assert_error_contains(parse_manifest(sealed("[]")), "manifest");
  assert_error_contains(parse_manifest(sealed("{}")), "format");
  assert_error_contains(parse_manifest(sealed("{\"format\":\"other\"}")), "expected format 'tutti checkpoint'");
  const std::string head = "{\"format\":\"tutti checkpoint\",\"format_version\":";
  assert_error_contains(parse_manifest(sealed(head + "2,\"step\":1,\"files\":[]}")), "newer release");
  assert_int_equal(parse_manifest(sealed(head + "2}")).code(), base::Code::failed_precondition);
  assert_error_contains(parse_manifest(sealed(head + "0}")), "does not exist");
  assert_error_contains(parse_manifest(sealed(head + "1,\"step\":-1,\"files\":[]}")), "negative");
  const auto file = [&](std::string_view name, std::string_view size, std::string_view crc) {
    return sealed(base::concat(head, "1,\"step\":1,\"files\":[{\"name\":", name, ",\"size_bytes\":", size,
                               ",\"crc32c\":", crc, "}]}"));
  };
  assert_ok(parse_manifest(file("\"a\"", "0", "\"00000000\"")));
  assert_error_contains(parse_manifest(file("\"../a\"", "0", "\"00000000\"")), "not a plain file name");
  assert_error_contains(parse_manifest(file("\"/etc/passwd\"", "0", "\"00000000\"")), "not a plain file name");
  assert_error_contains(parse_manifest(file("\"..\"", "0", "\"00000000\"")), "not a plain file name");
  assert_error_contains(parse_manifest(file("\"a\"", "-1", "\"00000000\"")), "size");
  assert_error_contains(parse_manifest(file("\"a\"", "1", "\"0000000g\"")), "hexadecimal");
  assert_error_contains(parse_manifest(file("\"a\"", "1", "7")), "crc32c");
}

void test_unknown_keys_are_accepted(void **) {
  const Manifest read = assert_ok_value(parse_manifest(sealed(
      "{\"format\":\"tutti checkpoint\",\"format_version\":1,\"step\":3,\"files\":[],\"from_the_future\":{\"a\":1}}")));
  assert_int_equal(read.step, 3);
  assert_true(read.iterator.is_null());
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_every_flipped_bit_and_every_cut_is_found),
      cmocka_unit_test(test_impossible_manifests),
      cmocka_unit_test(test_unknown_keys_are_accepted),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace manifest_test

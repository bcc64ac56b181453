// SPDX-License-Identifier: Apache-2.0
// Ops on texts, with any attributes and bytes: parts joined again are the text, parts lie in the text, numbers are read
// or refused. The first byte chooses the op, the next two its attributes.
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "data/graph/routine.h"
#include "data/routine/words.h"
#include "graph/builder.h"
#include "tensor/bytes_tensor.h"

using namespace tutti::impl;
using graph::Attributes;
using tensor::DType;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_words(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  data::split_at(text, separator, parts);
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i)
    joined += (i == 0 ? "" : std::string(separator)) + std::string(parts[i]);
  require(joined == text);
  for (const auto punctuation : {data::Punctuation::keep, data::Punctuation::split, data::Punctuation::drop}) {
    parts.clear();
    data::tokenize(text, punctuation, parts);
    for (const std::string_view part : parts)
      require(!part.empty() && part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
  }
  const int64_t characters = data::count_characters(text);
  require(characters <= static_cast<int64_t>(text.size()) && 4 * characters >= static_cast<int64_t>(text.size()));
  require(data::character_offset(text, characters) == text.size());
}

struct Case {
  const char *op;
  Attributes attributes;
};

std::vector<Case> cases_of(int64_t a, int64_t b) {
  return {
      {"bytes_length", {{"unit", std::string("characters")}}},
      {"bytes_substring", {{"start", a - 128}, {"length", b - 1}}},
      {"bytes_substring", {{"start", a - 128}, {"length", b - 1}, {"unit", std::string("characters")}}},
      {"bytes_split", {{"separator", std::string(1, static_cast<char>(a))}, {"skip_empty", b % 2 == 0}}},
      {"bytes_split", {{"count", b}}},
      {"bytes_tokenize", {{"count", b}, {"punctuation", std::string(a % 2 == 0 ? "split" : "drop")}}},
      {"bytes_to_number", {{"dtype", a % 2 == 0 ? DType::f32 : DType::f64}}},
      {"bytes_to_number", {{"dtype", a % 2 == 0 ? DType::i32 : DType::i64}}},
      {"bytes_to_values", {{"dtype", a % 2 == 0 ? DType::i16 : DType::f64}, {"count", b}}},
      {"bytes_to_values", {{"dtype", DType::u32}, {"byte_order", std::string(b % 2 == 0 ? "little" : "big")}}},
      {"bytes_hash_bucket", {{"buckets", b + 1}, {"salt", a}}},
      {"bytes_lower", {}},
  };
}

std::unique_ptr<data::Routine> make_routine(const Case &one) {
  graph::GraphBuilder builder;
  builder.set_result("y", builder.op(one.op, {builder.input("x", DType::bytes, {1})}, one.attributes));
  auto graph = builder.finish_graph();
  if (!graph.ok()) return nullptr;
  const auto plan = data::RoutinePlan::create(std::make_shared<const graph::Graph>(graph.take()));
  require(plan.ok());
  return std::make_unique<data::Routine>(*plan, nullptr, std::make_shared<data::ResultPools>());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 3) return 0;
  const std::string_view text(reinterpret_cast<const char *>(data) + 3, size - 3);
  check_words(text, std::string_view(reinterpret_cast<const char *>(data) + 1, 1 + data[0] % 2));
  const std::vector<Case> cases = cases_of(data[1], data[2]);
  const std::unique_ptr<data::Routine> routine = make_routine(cases[data[0] % cases.size()]);
  if (routine == nullptr) return 0;
  const auto tensor = tensor::make_bytes_tensor({1}, {text});
  require(tensor.ok());
  const data::RoutineValue x{DType::bytes, tensor->shape(), tensor->data(),
                             static_cast<const char *>(tensor->buffer()->data())};
  void *const target = nullptr;
  if (routine->run({&x, 1}, {}, {&target, 1}).ok()) require(routine->result_tensor(0, routine->result(0).shape).ok());
  return 0;
}

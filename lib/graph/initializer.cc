// SPDX-License-Identifier: Apache-2.0
#include "graph/initializer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "base/name_suggestions.h"
#include "base/text.h"

namespace tutti::impl::graph {
namespace {

/// What an initializer takes, in order; a number unless there are choices.
struct Argument {
  std::string_view name;
  std::span<const std::string_view> choices{};
};

struct Initializer {
  std::string_view name;
  std::string_view spec_name;  // in graphs
  std::span<const Argument> arguments{};
};

constexpr std::string_view kModes[] = {"fan_in", "fan_out", "fan_avg"};
constexpr std::string_view kDistributions[] = {"truncated_normal", "normal", "uniform"};
constexpr Argument kValue[] = {{"value"}}, kNormal[] = {{"stddev"}, {"mean"}}, kUniform[] = {{"high"}, {"low"}},
                   kGain[] = {{"gain"}}, kScaling[] = {{"scale"}, {"mode", kModes}, {"distribution", kDistributions}};

constexpr Initializer kInitializers[] = {
    {"zeros", "zeros"},
    {"ones", "ones"},
    {"constant", "constant", kValue},
    {"random_normal", "normal", kNormal},
    {"random_uniform", "uniform", kUniform},
    {"truncated_normal", "truncated_normal", kNormal},
    {"glorot_uniform", "glorot_uniform"},
    {"glorot_normal", "glorot_normal"},
    {"he_uniform", "he_uniform"},
    {"he_normal", "he_normal"},
    {"lecun_uniform", "lecun_uniform"},
    {"lecun_normal", "lecun_normal"},
    {"variance_scaling", "variance_scaling", kScaling},
    {"orthogonal", "orthogonal", kGain},
    {"identity", "identity", kGain},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

/// "orthogonal(gain)"
std::string usage(const Initializer &initializer) {
  std::vector<std::string> names;
  for (const Argument &argument : initializer.arguments) {
    const std::vector<std::string> choices(argument.choices.begin(), argument.choices.end());
    names.push_back(choices.empty() ? std::string(argument.name)
                                    : base::concat(argument.name, "=", base::join(choices, "|")));
  }
  return names.empty() ? base::concat(initializer.name, " without arguments")
                       : base::concat(initializer.name, "(", base::join(names, ", "), ")");
}

base::Status wrong(std::string_view text, const Initializer &initializer) {
  return base::invalid_argument("initializer ", base::quoted(std::string(text)), ": expected ", usage(initializer));
}

/// Of an argument; false when it is none of its values.
bool set(const Argument &argument, std::string_view text, Attributes &attributes) {
  if (!argument.choices.empty()) {
    attributes.insert_or_assign(std::string(argument.name), std::string(text));
    return std::ranges::find(argument.choices, text) != argument.choices.end();
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  attributes.insert_or_assign(std::string(argument.name), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

/// "scale=2" or, in order, "2".
bool add_argument(const Initializer &initializer, std::string_view text, size_t position, Attributes &attributes) {
  const size_t equals = text.find('=');
  const std::string_view name = equals == std::string_view::npos ? "" : trimmed(text.substr(0, equals));
  for (size_t i = 0; i < initializer.arguments.size(); ++i) {
    const Argument &argument = initializer.arguments[i];
    if (equals == std::string_view::npos ? i != position : argument.name != name) continue;
    if (attributes.find(argument.name) != attributes.end()) return false;
    return set(argument, trimmed(equals == std::string_view::npos ? text : text.substr(equals + 1)), attributes);
  }
  return false;
}

}  // namespace

bool is_derived(std::string_view spec_name) {
  return spec_name == kColumnNorms || spec_name == kLeftVector || spec_name == kRightVector;
}

bool is_initializer(std::string_view spec_name) {
  return spec_name == kGivenValues || is_derived(spec_name) ||
         std::ranges::find(kInitializers, spec_name, &Initializer::spec_name) != std::end(kInitializers);
}

const std::vector<std::string> &initializer_names() {
  static const auto *const names = [] {
    std::vector<std::string> list;
    for (const Initializer &one : kInitializers)
      list.emplace_back(one.name);
    return new std::vector(std::move(list));
  }();
  return *names;
}

base::Result<InitializerSpec> parse_initializer(std::string_view text) {
  const size_t open = text.find('(');
  const std::string_view name = trimmed(text.substr(0, open));
  const auto *const found = std::ranges::find(kInitializers, name, &Initializer::name);
  if (found == std::end(kInitializers)) {
    return base::invalid_argument("unknown initializer ", base::quoted(std::string(text)),
                                  base::but_there_are(std::string(name), initializer_names()));
  }
  InitializerSpec spec{std::string(found->spec_name), {}};
  if (open == std::string_view::npos) return spec;
  std::string_view rest = trimmed(text.substr(open + 1));
  if (rest.empty() || rest.back() != ')') return wrong(text, *found);
  rest = trimmed(rest.substr(0, rest.size() - 1));
  for (size_t position = 0; !rest.empty(); ++position) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (!add_argument(*found, trimmed(rest.substr(0, comma)), position, spec.attributes)) return wrong(text, *found);
    if (comma + 1 == rest.size()) return wrong(text, *found);
    rest = trimmed(rest.substr(std::min(comma + 1, rest.size())));
  }
  // One bound is that on both sides.
  const auto high = spec.attributes.find("high");
  if (high != spec.attributes.end() && spec.attributes.find("low") == spec.attributes.end())
    spec.attributes.insert_or_assign("low", -std::get<double>(high->second));
  return spec;
}

}  // namespace tutti::impl::graph

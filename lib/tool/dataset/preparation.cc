// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/preparation.h"

#include <algorithm>
#include <utility>

#include "tool/console/name_suggestions.h"
#include "tool/console/usage_error.h"
#include "tool/dataset/map_graph.h"

namespace tutti::tool {

namespace {

std::string trimmed(const std::string &text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

void add_names(const std::string &list, std::vector<std::string> &names) {
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string name = trimmed(list.substr(begin, end - begin));
    if (name.empty()) throw UsageError{"--select takes component names, got '" + list + "'"};
    names.push_back(std::move(name));
    begin = end + 1;
  }
}

/// The parameter of the transform that the component belongs to.
const char *parameter_of(const Dataset &dataset, const std::string &selected) {
  const size_t equals = selected.find('=');
  const std::string wanted = equals == std::string::npos ? selected : trimmed(selected.substr(equals + 1));
  std::vector<std::string> names;
  for (int64_t i = 0; i < dataset.component_count(); ++i) {
    names.push_back(dataset.component_name(i));
    if (names.back() != wanted) continue;
    const int32_t role = dataset.component_role(i);
    return role == TUTTI_ROLE_LABEL ? "labels" : role == TUTTI_ROLE_WEIGHT ? "weights" : "features";
  }
  throw UsageError{
      "--select: there is no component '" + wanted + "'" + did_you_mean(wanted, names) + "; known: " + listed(names),
      false};
}

Dataset select(const Dataset &dataset, const std::vector<std::string> &selected, const Context &context) {
  Pipeline pipeline(context);
  pipeline.dataset(dataset);
  pipeline.transform("select", 1, [&](tutti_pipeline *transform) {
    for (const std::string &name : selected)
      tutti_pipeline_set_string(transform, parameter_of(dataset, name), name.c_str());
  });
  return pipeline.build();
}

}  // namespace

void add_preparation_options(Command &command, Preparation &preparation) {
  command.begin_section("Options that change elements first");
  command.add_option(
      [&preparation](const std::string &map) { preparation.maps.push_back(parse_map(map)); },
      {"--map", "'NAME = EXPRESSION'",
       "replace a component or add one; may be repeated. An expression calls the library's ops by name "
       "on components, numbers and texts, with attributes by name:\n\n"
       "  'image = resize(decode_image(image),\n"
       "                  size=[224, 224], antialias=true)'\n"
       "  'image = normalize_image(image, mean=[0.5],\n"
       "                           stddev=[0.25], scale=1/255)'\n"
       "  'label = one_hot(label, depth=10)'\n\n"
       "Values have the rows of a batch as their first axis, as in graphs of the C interface: count axes "
       "from the end, and begin shapes with the word batch, as in reshape(x, dims=[batch, 28, 28, 1])."});
  command.add_option([&preparation](const std::string &list) { add_names(list, preparation.selected); },
                     {"--select", "NAME,...", "keep only these components; NEW=OLD renames one", "all components"});
  command.add_option(preparation.shuffle_buffer,
                     {"--shuffle", "N", "draw each element from a buffer of N elements, before maps", "no shuffling"},
                     1);
  command.add_option(preparation.seed, {"--seed", "N", "seed of --shuffle and of random ops", "0"});
}

Dataset prepare(const Dataset &dataset, const Preparation &preparation, const Context &context) {
  Dataset prepared = dataset;
  // What a map makes is larger than what it is made of, so the buffer stands before; the result is the same.
  if (preparation.shuffle_buffer > 0) {
    Pipeline pipeline(context);
    prepared = pipeline.dataset(prepared).shuffle(preparation.shuffle_buffer).build();
  }
  prepared = apply_maps(prepared, preparation.maps, context);
  return preparation.selected.empty() ? prepared : select(prepared, preparation.selected, context);
}

}  // namespace tutti::tool

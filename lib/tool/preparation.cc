// SPDX-License-Identifier: Apache-2.0
#include "tool/preparation.h"

#include <algorithm>
#include <utility>

#include "tool/map_graph.h"
#include "tool/op_signature.h"

namespace tutti::tool {

const char *const kPreparationUsage =
    "  Options of all these commands:\n"
    "      --map 'NAME = EXPRESSION'\n"
    "                    replaces or adds a component; may be repeated. An expression calls ops of the library by\n"
    "                    name, on components, numbers and texts, with attributes by name:\n"
    "                    --map 'image = resize(decode_image(image), size=[224, 224], antialias=true)'\n"
    "                    --map 'image = normalize_image(image, mean=[0.5], stddev=[0.25], scale=1/255)'\n"
    "                    --map 'label = one_hot(label, depth=10)'\n"
    "                    The first dimension of values is the batch, as in graphs of the C interface: count axes from\n"
    "                    the end, and begin shapes with the word batch: reshape(x, dims=[batch, 28, 28, 1])\n"
    "      --select NAME,...\n"
    "                    keeps only these components; NEW=OLD renames one\n"
    "      --shuffle N   shuffles with a buffer of N elements, before maps\n"
    "      --seed N      seed of --shuffle and random ops (0)\n";

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

bool Preparation::take(const std::string &word, Arguments &arguments) {
  if (word == "--map") {
    maps.push_back(parse_map(arguments.value_after(word)));
  } else if (word == "--select") {
    add_names(arguments.value_after(word), selected);
  } else if (word == "--shuffle") {
    shuffle_buffer = arguments.number_after(word);
    if (shuffle_buffer == 0) throw UsageError{"--shuffle takes a number above 0"};
  } else if (word == "--seed") {
    seed = arguments.number_after(word);
  } else {
    return false;
  }
  return true;
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

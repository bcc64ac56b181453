// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/fingerprint.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "data/file/file_system.h"
#include "graph/op_registry.h"
#include "graph/serialize.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

// Changes when the meaning of the hash does, or what sources and transforms give.
constexpr int64_t kRevision = 2;

bool is_named(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> texts_of(const graph::Attribute &attribute) {
  if (const auto *text = std::get_if<std::string>(&attribute)) return {*text};
  if (const auto *texts = std::get_if<std::vector<std::string>>(&attribute)) return *texts;
  return {};
}

// A file, or all files below a directory.
Status add_path(const std::string &path, const FileSystems *systems, Fingerprint &fingerprint, int32_t depth = 0) {
  constexpr int32_t kMostDirectories = 32;
  if (!scheme_of(path).empty() || !base::is_directory(path)) return fingerprint.add_file(path, systems);
  if (depth > kMostDirectories) return base::invalid_argument("directories are nested too deeply at ", path);
  TUTTI_ASSIGN(const std::shared_ptr<const FileSystem> system, file_system_of(path, systems));
  TUTTI_ASSIGN(const std::vector<FileSystem::Entry> entries, system->list(path, fingerprint.cancel()));
  for (const FileSystem::Entry &entry : entries)
    TUTTI_TRY(add_path(base::concat(path, "/", entry.name), systems, fingerprint, depth + 1));
  return Status();
}

// The files that parameters of these names mean.
Status add_files(const Recipe &recipe, Fingerprint &fingerprint) {
  for (const auto &[name, value] : recipe.attributes) {
    const bool is_npy = recipe.name == "npy" && name == "arrays";  // each NAME=PATH
    if (!is_npy && !is_named(name, {"path", "paths"})) continue;
    std::vector<std::string> paths = texts_of(value);
    if (is_npy) {
      for (std::string &text : paths)
        text = text.substr(text.find('=') + 1);
    } else if (name == "paths") {
      TUTTI_ASSIGN(paths, expand_paths(paths, recipe.file_systems.get(), fingerprint.cancel()));
    }
    for (const std::string &path : paths)
      TUTTI_TRY(add_path(path, recipe.file_systems.get(), fingerprint));
  }
  return Status();
}

Status add_graph(const graph::Graph &graph, Fingerprint &fingerprint) {
  fingerprint.add_number(static_cast<int64_t>(graph::fingerprint(graph)));
  for (const graph::Node &node : graph.nodes()) {
    TUTTI_ASSIGN(const graph::OpDefinition *definition, graph::require_op(node.op, node.revision));
    if (definition->effect == graph::Effect::random) fingerprint.use_seed();
    const auto path = node.attributes.find("path");
    if (path == node.attributes.end()) continue;
    for (const std::string &file : texts_of(path->second)) {
      if (!file.empty()) TUTTI_TRY(fingerprint.add_file(file));
    }
  }
  return Status();
}

Status add_dataset(const Dataset &dataset, Fingerprint &fingerprint);

// Of a cache that comes before: its key stands for what cannot be told.
Status add_cache(const Recipe &recipe, Fingerprint &fingerprint) {
  std::string key;
  if (const auto found = recipe.attributes.find("key"); found != recipe.attributes.end())
    key = std::get<std::string>(found->second);
  if (key.empty()) return add_dataset(*recipe.inputs[0], fingerprint);
  Fingerprint input(fingerprint.cancel());
  TUTTI_TRY(add_dataset(*recipe.inputs[0], input));
  fingerprint.add_number(static_cast<int64_t>(input.value()));
  fingerprint.add(key);
  if (input.uses_seed()) fingerprint.use_seed();
  return Status();
}

Status add_recipe(const Dataset &dataset, const Recipe &recipe, Fingerprint &fingerprint) {
  // These give the elements they get.
  if (recipe.name == "prefetch" || recipe.name == "options") return add_dataset(*recipe.inputs[0], fingerprint);
  if (recipe.name == "cache" || recipe.name == "snapshot") return add_cache(recipe, fingerprint);
  fingerprint.add(recipe.name);
  fingerprint.add_number(recipe.revision);
  fingerprint.add(dataset.spec().to_string());
  graph::Attributes attributes = recipe.attributes;
  attributes.erase("on_device");
  attributes.erase("parallelism");
  attributes.erase("processes");
  fingerprint.add(graph::to_json(attributes).dump());
  if (recipe.is_source) TUTTI_TRY(add_files(recipe, fingerprint));
  for (const std::vector<std::string> *names : {&recipe.arguments.labels, &recipe.arguments.weights}) {
    fingerprint.add_number(static_cast<int64_t>(names->size()));
    for (const std::string &name : *names)
      fingerprint.add(name);
  }
  for (const ScanState &state : recipe.arguments.state)
    fingerprint.add_tensor(state.initial);
  if (recipe.arguments.graph != nullptr) TUTTI_TRY(add_graph(*recipe.arguments.graph, fingerprint));
  if (is_named(recipe.name, {"shuffle", "resample", "sample_from"}) && !attributes.contains("seed")) {
    fingerprint.use_seed();
  }
  if (recipe.makes_datasets) fingerprint.use_seed();
  if (recipe.has_function) fingerprint.add_unknown(recipe.name);
  fingerprint.add_number(static_cast<int64_t>(recipe.inputs.size()));
  for (const DatasetRef &input : recipe.inputs)
    TUTTI_TRY(add_dataset(*input, fingerprint));
  return Status();
}

Status add_dataset(const Dataset &dataset, Fingerprint &fingerprint) {
  if (dataset.recipe() != nullptr) return add_recipe(dataset, *dataset.recipe(), fingerprint);
  fingerprint.add(dataset.kind());
  fingerprint.add(dataset.spec().to_string());
  if (dataset.describe(fingerprint)) return Status();
  fingerprint.add_unknown(dataset.kind());
  if (!is_named(dataset.kind(), {"feed", "generator"})) fingerprint.use_seed();
  return Status();
}

}  // namespace

void Fingerprint::add_tensor(const Tensor &tensor) {
  add(tensor.describe());
  uint32_t checksum = 0;
  if (tensor.dtype() == tensor::DType::bytes) {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const std::string_view text = tensor::bytes_at(tensor, i);
      const uint64_t size = text.size();
      checksum = base::crc32c(&size, sizeof(size), checksum);
      checksum = base::crc32c(text.data(), text.size(), checksum);
    }
  } else {
    checksum = base::crc32c(tensor.data(), static_cast<size_t>(tensor.size_bytes()));
  }
  add_number(checksum);
}

Status Fingerprint::add_file(const std::string &path, const FileSystems *systems) {
  add(path);
  if (!scheme_of(path).empty()) {
    TUTTI_ASSIGN(const base::Ref<const ReadableFile> file, open_file(path, systems, cancel_));
    add_number(file->size_bytes());
    const std::string version = file->version();
    add(version);
    if (version.empty()) add_unknown(path);
    return Status();
  }
  TUTTI_ASSIGN(const base::FileStamp stamp, base::file_stamp(path));
  add_number(stamp.size_bytes);
  add_number(stamp.modified_ns);
  return Status();
}

std::shared_ptr<const Recipe> make_recipe(const TransformDefinition &definition, const DatasetRef &input,
                                          const graph::Attributes &attributes, const TransformArguments &arguments) {
  Recipe recipe{definition.name, definition.revision};
  recipe.attributes = attributes;
  recipe.arguments = arguments;
  recipe.makes_datasets = arguments.expand != nullptr;
  // What a program does its command does not tell.
  recipe.has_function = arguments.map != nullptr || arguments.filter != nullptr || arguments.scan != nullptr ||
                        recipe.makes_datasets || recipe.name == "map_process";
  recipe.inputs.push_back(input);
  recipe.inputs.insert(recipe.inputs.end(), arguments.others.begin(), arguments.others.end());
  return std::make_shared<const Recipe>(std::move(recipe));
}

std::shared_ptr<const Recipe> make_recipe(const SourceDefinition &definition, const graph::Attributes &attributes,
                                          const SourceServices &services) {
  Recipe recipe{definition.name, definition.revision, true};
  recipe.attributes = attributes;
  recipe.file_systems = services.file_systems;
  // A stream cannot be looked at without being used up.
  recipe.has_function = services.arrow_stream != nullptr;
  return std::make_shared<const Recipe>(std::move(recipe));
}

Result<Fingerprint> fingerprint_of(const Dataset &dataset, const base::Ref<base::CancelToken> &cancel) {
  Fingerprint fingerprint(cancel);
  fingerprint.add_number(kRevision);
  TUTTI_TRY(add_dataset(dataset, fingerprint));
  return fingerprint;
}

}  // namespace tutti::impl::data

// SPDX-License-Identifier: Apache-2.0
#include <tutti/version.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/text.h"
#include "capi/cancel_c.h"
#include "capi/cluster_resolver_c.h"
#include "capi/context_c.h"
#include "capi/dataset_c.h"
#include "capi/estimator_c.h"
#include "capi/graph_c.h"
#include "capi/guard.h"
#include "capi/hook_c.h"
#include "capi/options_c.h"
#include "capi/predictor_c.h"
#include "capi/record_c.h"
#include "capi/result_c.h"
#include "capi/step_function_c.h"
#include "capi/strategy_c.h"
#include "capi/tensor_c.h"
#include "data/pipeline/pipeline.h"
#include "data/routine/image_file.h"
#include "graph/op_registry.h"
#include "nn/registry.h"
#include "runtime/backend_list.h"

using namespace tutti::impl;
using namespace tutti::impl::capi;

namespace {

#define TUTTI_TEXT_(x) #x
#define TUTTI_TEXT(x) TUTTI_TEXT_(x)
constexpr char kVersion[] =
    TUTTI_TEXT(TUTTI_VERSION_MAJOR) "." TUTTI_TEXT(TUTTI_VERSION_MINOR) "." TUTTI_TEXT(TUTTI_VERSION_PATCH);

std::string describe_build() {
  base::JsonArray backends;
  for (const runtime::LinkedBackend &backend : runtime::linked_backends())
    backends.push_back(std::string(backend.name));
  return base::Json(base::JsonObject{{"version", kVersion},
                                     {"abi", base::concat(TUTTI_ABI_MAJOR, ".", TUTTI_ABI_MINOR)},
                                     {"build_id", backend::build_id()},
                                     {"compiler", __VERSION__},
                                     {"backends", std::move(backends)}})
      .dump();
}

bool has_backend(std::string_view name) {
  for (const runtime::LinkedBackend &backend : runtime::linked_backends()) {
    if (backend.name == name) return true;
  }
  return false;
}

bool has_registered(std::string_view name) {
  for (const nn::Definition &definition : nn::all_definitions()) {
    if (definition.name == name) return true;
  }
  const graph::OpDefinition *op = graph::find_op(name);
  return op != nullptr && op->is_public;
}

/// Of files that are read, whichever way.
bool reads_format(std::string_view name) {
  if (name == "jpeg") return data::JpegReader::is_built();
  if (name == "png") return data::PngReader::is_built();
  static constexpr std::string_view kAlways[] = {"arrow", "csv", "gzip",        "idx",      "npy",
                                                 "npz",   "tar", "safetensors", "tfrecord", "zlib"};
  return std::ranges::find(kAlways, name) != std::end(kAlways);
}

const std::array<const base::HandleTypeBase *, 22> &handle_types() {
  static const std::array<const base::HandleTypeBase *, 22> types{
      &error_handles,    &cancel_handles,           &options_handles, &context_handles,    &tensor_handles,
      &graph_handles,    &pipeline_handles,         &dataset_handles, &iterator_handles,   &feed_handles,
      &strategy_handles, &cluster_resolver_handles, &hooks_handles,   &hook_event_handles, &estimator_handles,
      &session_handles,  &replica_values_handles,   &result_handles,  &predictor_handles,  &prediction_stream_handles,
      &batch_handles,    &record_writer_handles};
  return types;
}

}  // namespace

const char *tutti_version(void) { return kVersion; }

int32_t tutti_abi_version(void) { return TUTTI_ABI_MAJOR * 65536 + TUTTI_ABI_MINOR; }

const char *tutti_build_info(void) {
  return guard_value<const char *>("{}", [] {
    static const std::string *const text = new std::string(describe_build());
    return text->c_str();
  });
}

uint8_t tutti_has_feature(const char *feature) {
  return guard_value<uint8_t>(0, [&]() -> uint8_t {
    const std::string_view text = feature != nullptr ? feature : "";
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return 0;
    const std::string_view kind = text.substr(0, colon), name = text.substr(colon + 1);
    if (kind == "backend") return has_backend(name);
    if (kind == "op") return has_registered(name);
    if (kind == "source") return data::find_source(name) != nullptr;
    if (kind == "transform") return data::find_transform(name) != nullptr;
    return kind == "format" && reads_format(name);
  });
}

int64_t tutti_debug_live_objects(const char *type) {
  if (type == nullptr) return HandleTable::process().live_count();
  for (const base::HandleTypeBase *candidate : handle_types()) {
    if (std::string_view(candidate->name()) == type) return candidate->live_count();
  }
  return -1;
}

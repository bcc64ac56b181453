// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine_list.h"

#include <algorithm>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/name_suggestions.h"
#include "runtime/module.h"
#include "runtime/plugin_loader.h"

namespace tutti::impl::runtime {

using base::Result;
using collective::Engine;
using collective::EngineRef;

namespace {

// In order of preference.
constexpr std::string_view kEngines[] = {"gloo"};

Result<EngineRef> load_engine(const std::string &path) {
  TUTTI_ASSIGN(Module module, Module::load(path));
  TUTTI_ASSIGN(void *const symbol, module.symbol(TUTTI_ENGINE_ENTRY_NAME, "engine"));
  const auto entry = reinterpret_cast<tutti_engine_entry_function>(symbol);
  TUTTI_ASSIGN(EngineRef engine, Engine::create(entry, backend::build_id()));
  module.keep();
  return engine;
}

}  // namespace

Result<EngineRef> open_engine(std::string_view name) {
  const std::vector<std::string> known(std::begin(kEngines), std::end(kEngines));
  if (!name.starts_with('/') && std::ranges::find(known, name) == known.end())
    return base::not_found("there is no engine ", base::quoted(name), base::but_there_are(name, known));
  const Result<std::string> path = name.starts_with('/') ? std::string(name) : find_plugin(name);
  const Result<EngineRef> engine = path.ok() ? load_engine(*path) : path.status();
  if (engine.ok()) return engine;
  const bool is_missing = engine.code() == base::Code::not_found;
  return engine.status()
      .wrap(base::concat("training in several processes needs the engine over Gloo, which ",
                         is_missing ? "this installation lacks" : "cannot be used here"))
      .with_detail("plugin", path.ok() ? *path : std::string(name));
}

}  // namespace tutti::impl::runtime

// SPDX-License-Identifier: Apache-2.0
#include "distribute/program/program_cache.h"

#include <algorithm>

#include "base/exceptions.h"
#include "distribute/input/step_rows.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

backend::CompileRequest compile_request(const GraphSource &source, const graph::SymbolBindings &bindings, bool traced) {
  backend::CompileRequest request;
  request.graph_text = &source.text;
  request.bindings = bindings;
  request.state = &source.state;
  request.level = source.level;
  request.threads = source.threads;
  request.precision = source.precision;
  if (traced) request.flags |= TUTTI_COMPILE_DEBUG_NAMES;
  if (source.is_row_invariant) request.flags |= TUTTI_COMPILE_ROW_INVARIANT;
  return request;
}

Result<backend::ExecutableRef> ExecutableCache::get(const GraphSource &source, const ShapeKey &key,
                                                    const graph::SymbolBindings &bindings, backend::Device &device,
                                                    bool traced) {
  const Key full{&source, key, traced};
  {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto found = entries_.find(full);
      if (found == entries_.end()) break;
      if (found->second.executable != nullptr) {
        found->second.last_use = ++clock_;
        return found->second.executable;
      }
      compiled_.wait(lock);
    }
    entries_[full];
  }
  // Whoever waits for it must hear of an exception, too.
  Result<backend::ExecutableRef> executable = base::out_of_memory();
  const Status thrown = base::without_exceptions([&] {
    const backend::CompileRequest request = compile_request(source, bindings, traced);
    executable = source.devices.empty() ? backend::Executable::compile(device, request)
                                        : backend::Executable::compile(source.devices, request);
    return Status();
  });
  if (!thrown.ok()) executable = thrown;
  std::lock_guard lock(mutex_);
  if (executable.ok()) {
    entries_[full] = {*executable, ++clock_};
    built_.fetch_add(1, std::memory_order_relaxed);
    evict();
  } else {
    entries_.erase(full);
  }
  compiled_.notify_all();
  return executable;
}

void ExecutableCache::evict() {
  while (entries_.size() > capacity_) {
    auto oldest = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->second.executable == nullptr) continue;
      if (oldest == entries_.end() || entry->second.last_use < oldest->second.last_use) oldest = entry;
    }
    if (oldest == entries_.end()) return;
    entries_.erase(oldest);
    evicted_.fetch_add(1, std::memory_order_relaxed);
  }
}

base::Json ExecutableCache::describe() const {
  base::JsonArray list;
  std::lock_guard lock(mutex_);
  for (const auto &[key, entry] : entries_) {
    if (entry.executable == nullptr) continue;
    const auto &description = entry.executable->description();
    const Result<base::Json> report = base::Json::parse(description.report_json);
    list.push_back(base::JsonObject{{"shape", base::Json(key.shape)},
                                    {"workspace_bytes", description.workspace_bytes},
                                    {"externals", static_cast<int64_t>(description.externals.size())},
                                    {"report", report.ok() ? *report : base::Json()}});
  }
  return list;
}

void ProgramCache::forget() {
  is_found_ = false;
  entries_.clear();
}

void ProgramCache::set_traced(bool traced) {
  traced_ = traced;
  forget();
}

Status ProgramCache::prepare(std::span<const GraphSource *const> sources, const ShapeKey &key,
                             base::FunctionRef<graph::SymbolBindings()> bindings, std::span<BoundProgram *> programs) {
  TUTTI_TRY(find(sources, key, bindings));
  return bind(programs);
}

Status ProgramCache::find(std::span<const GraphSource *const> sources, const ShapeKey &key,
                          base::FunctionRef<graph::SymbolBindings()> bindings) {
  is_found_ = false;
  auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry &candidate) {
    return candidate.key == key &&
           std::equal(candidate.sources.begin(), candidate.sources.end(), sources.begin(), sources.end());
  });
  if (entry == entries_.end()) {
    Entry made;
    made.key = key;
    made.sources.assign(sources.begin(), sources.end());
    const graph::SymbolBindings values = bindings();
    for (const GraphSource *source : sources) {
      BoundProgram program;
      TUTTI_ASSIGN(program.executable, executables_.get(*source, key, values, *device_, traced_));
      made.programs.push_back(std::move(program));
    }
    entries_.push_front(std::move(made));
    if (entries_.size() > capacity_) entries_.pop_back();
    entry = entries_.begin();
  }
  entries_.splice(entries_.begin(), entries_, entry);
  for (BoundProgram &program : entry->programs) {
    const backend::ExecutableDescription &description = program.description();
    TUTTI_TRY(workspace_.reserve(description.workspace_bytes, description.workspace_alignment));
  }
  is_found_ = true;
  return Status();
}

const BoundProgram *ProgramCache::peek(const GraphSource &source, const ShapeKey &key) const {
  const auto entry = std::ranges::find_if(
      entries_, [&](const Entry &one) { return one.key == key && one.sources.front() == &source; });
  if (entry == entries_.end() || entry->programs.front().generation != workspace_.generation()) return nullptr;
  return &entry->programs.front();
}

Status ProgramCache::bind(std::span<BoundProgram *> programs) {
  std::vector<BoundProgram> &found = entries_.front().programs;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (found[i].generation != workspace_.generation()) TUTTI_TRY(bind(found[i]));
    programs[i] = &found[i];
  }
  return Status();
}

Status ProgramCache::bind(BoundProgram &program) {
  const backend::ExecutableDescription &description = program.description();
  TUTTI_ASSIGN(program.program, program.executable->bind(*device_, arenas_, workspace_.pointer()));
  program.externals.clear();
  for (const backend::ExternalDescription &external : description.externals) {
    BoundExternal bound;
    bound.label = external.label;
    bound.elements = external.elements;
    bound.dtype = external.dtype;
    if (external.kind == "all_reduce_max") bound.reduction = collective::Reduction::max;
    if (external.kind == "all_reduce_min") bound.reduction = collective::Reduction::min;
    if (external.label.rfind("bucket/", 0) == 0) bound.bucket = std::stoi(external.label.substr(7));
    void *base = external.arena < 0 ? workspace_.pointer() : arenas_[static_cast<size_t>(external.arena)];
    bound.pointer = static_cast<std::byte *>(base) + external.offset;
    program.externals.push_back(std::move(bound));
  }
  program.generation = workspace_.generation();
  static std::atomic<int64_t> next_id{StepRows::kFirstProgram};
  program.id = next_id.fetch_add(1, std::memory_order_relaxed);
  built_.fetch_add(1, std::memory_order_relaxed);
  return Status();
}

}  // namespace tutti::impl::distribute

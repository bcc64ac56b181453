// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/generated/generated_kernels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backend/gpu/generated/fused_text.h"
#include "backend/gpu/generated/generated_headers.h"
#include "backend/gpu/generated/platform.h"
#include "backend/gpu/runtime/launch_gate.h"
#include "backend/gpu/runtime/runtime.h"
#include "base/hash/checksum.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::gpu {

using base::Json;
using base::JsonObject;
using base::Result;
using base::Status;

namespace {

/// What moves fewer bytes is done in the time that a launch takes, however it is done.
constexpr int64_t kLeastBytes = 256 << 10;

/// Grids are as large as any GPU needs; each thread goes on with the next of its packs.
constexpr int64_t kElementBlocks = 4096;

using KernelMap = std::map<std::string, std::shared_ptr<const GeneratedKernel>, std::less<>>;

/// The kernels of this process, by signature of the compiler and text. Never destroyed: programs may be released while
/// the process ends.
struct KernelTable {
  std::mutex mutex;  ///< held while kernels are compiled, so that two devices do not compile the same
  std::map<std::string, KernelMap, std::less<>> by_signature;
};
KernelTable &kernel_table() {
  static auto *const table = new KernelTable;
  return *table;
}

uint64_t hash_of_headers() {
  uint64_t hash = base::kFnvStart;
  for (const GeneratedHeader &header : generated_headers())
    hash = base::fnv1a64(header.text, base::fnv1a64(header.name, hash));
  return hash;
}

int64_t bytes_moved(const ElementProgram &program, int64_t elements) {
  int64_t bytes = tensor::size_bytes(program.output.dtype);
  for (int32_t i = 0; i < program.input_count; ++i) {
    if (program.inputs[i].access == ElementAccess::dense) bytes += tensor::size_bytes(program.inputs[i].dtype);
  }
  return bytes * elements;
}

using Texts = std::map<std::string, const std::string *, std::less<>>;  // by name

/// What has to be compiled, in an order that depends on the texts alone.
std::string source_of(const Texts &texts) {
  std::string source(text_prologue());
  for (const auto &[name, text] : texts)
    source += *text;
  source += text_epilogue();
  return source;
}

gpuError_t launch(const GeneratedProgram &generated, const GeneratedOperands &operands, int64_t chunks,
                  gpuStream_t stream) {
  if (chunks == 0) return gpuSuccess;
  return generated.kernel->launch(operands, static_cast<unsigned>(std::min(chunks, kElementBlocks)), 0, stream);
}

/// Loads the kernels of an image into the map.
Status load_into(const RunTimeCompiler &compiler, const std::string &image, const Texts &texts, KernelMap &kernels) {
  std::vector<std::string> names;
  for (const auto &[name, text] : texts)
    names.push_back(name);
  const BetweenLaunches section;
  TUTTI_ASSIGN(const auto loaded, compiler.load(image, names));
  size_t next = 0;
  for (const auto &[name, text] : texts)
    kernels[*text] = loaded[next++];
  return Status();
}

}  // namespace

Result<GenerateKernels> parse_generate_kernels(const std::string &text) {
  if (text == "automatic") return GenerateKernels::automatic;
  if (text == "never") return GenerateKernels::never;
  if (text == "always") return GenerateKernels::always;
  return base::invalid_argument("generated_kernels is ", base::quoted(text),
                                ", expected \"automatic\", \"always\" or \"never\"");
}

Result<const RunTimeCompiler *> KernelGenerator::compiler() {
  std::call_once(once_, [&] {
    auto opened = platform::open_compiler(ordinal_);
    if (opened.ok()) {
      compiler_ = std::move(opened).value();
    } else {
      status_ = opened.status();
      log(kInfo, base::concat("elementwise kernels are interpreted: ", status_.message()));
    }
  });
  TUTTI_TRY(status_);
  return compiler_.get();
}

bool KernelBatch::may_generate() const {
  const GenerateKernels mode = generator_.mode();
  return mode == GenerateKernels::always || (mode == GenerateKernels::automatic && platform::generates_kernels());
}

bool KernelBatch::can_generate() { return may_generate() && generator_.compiler().ok(); }

std::optional<int64_t> KernelBatch::reduced_bytes() {
  if (!can_generate()) return std::nullopt;
  return generator_.mode() == GenerateKernels::always ? 0 : kLeastBytes;
}

bool KernelBatch::is_worth(const ElementProgram &program, int64_t elements) const {
  if (!may_generate() || elements == 0) return false;
  return generator_.mode() == GenerateKernels::always || bytes_moved(program, elements) >= kLeastBytes;
}

GeneratedProgramRef KernelBatch::add(const ElementProgram &program, const ReductionText *reduction) {
  return is_worth(program, program.elements) ? add_text(program_text(program, reduction)) : nullptr;
}

GeneratedProgramRef KernelBatch::add_joined(const ElementProgram &program, int64_t elements) {
  return is_worth(program, elements) ? add_text(joined_program_text(program)) : nullptr;
}

GeneratedProgramRef KernelBatch::add_fused(const FusedProgram &program, const FusedProduct *product) {
  return may_generate() && program.rows * program.columns > 0 ? add_text(fused_text(program, product)) : nullptr;
}

GeneratedProgramRef KernelBatch::add_text(std::optional<KernelText> text) {
  if (!text.has_value()) return nullptr;
  programs_.push_back(std::make_shared<GeneratedProgram>(GeneratedProgram{std::move(*text), nullptr}));
  return programs_.back();
}

Status KernelBatch::compile() {
  if (programs_.empty()) return Status();
  const Result<const RunTimeCompiler *> compiler = generator_.compiler();
  const Status status = compiler.ok() ? find_all(**compiler) : compiler.status();
  if (status.ok()) return Status();
  if (generator_.mode() == GenerateKernels::always) return status.wrap("kernels cannot be compiled at run time");
  if (compiler.ok())
    generator_.log(kWarning, base::concat("elementwise kernels are interpreted because they cannot be compiled: ",
                                          status.to_string()));
  report_ = JsonObject{{"missing", status.message()}};
  return Status();
}

Status KernelBatch::find_all(const RunTimeCompiler &compiler) {
  KernelTable &table = kernel_table();
  const std::lock_guard guard(table.mutex);
  KernelMap &kernels = table.by_signature[compiler.signature()];
  Texts all, missing;
  for (const auto &program : programs_) {
    all.emplace(program->text.name, &program->text.text);
    if (kernels.count(program->text.text) == 0) missing.emplace(program->text.name, &program->text.text);
  }
  bool is_kept = false;
  if (!missing.empty()) {
    const std::string source = source_of(missing);
    const std::string key = base::concat(compiler.signature(), "\nheaders ", hash_of_headers(), "\n", source);
    const Result<std::string> kept = generator_.cache().load(key);
    const Status loaded = kept.ok() ? load_into(compiler, *kept, missing, kernels) : kept.status();
    is_kept = loaded.ok();
    if (!is_kept && loaded.code() != base::Code::not_found)
      generator_.log(kWarning,
                     base::concat("compiled kernels cannot be loaded and are compiled again: ", loaded.to_string()));
    if (!is_kept) {
      TUTTI_ASSIGN(const std::string image, compiler.compile(source));
      TUTTI_TRY(load_into(compiler, image, missing, kernels));
      const Status stored = generator_.cache().store(key, image);
      if (!stored.ok()) generator_.log(kWarning, base::concat("compiled kernels are not cached: ", stored.to_string()));
    }
  }
  for (const auto &program : programs_)
    program->kernel = kernels.find(program->text.text)->second;
  const auto count = static_cast<int64_t>(missing.size());
  report_ = JsonObject{{"compiler", compiler.signature()},
                       {"compiled", is_kept ? 0 : count},
                       {"from_cache", is_kept ? count : 0},
                       {"known", static_cast<int64_t>(all.size()) - count}};
  return Status();
}

bool can_launch(const GeneratedProgramRef &generated, const ElementProgram &program, const ElementPlaces &places) {
  if (generated == nullptr || generated->kernel == nullptr || (places.aligned & ElementPlaces::kOutputBit) == 0)
    return false;
  for (int32_t i = 0; i < program.input_count; ++i) {
    if ((places.aligned >> i & 1) == 0 && program.inputs[i].access != ElementAccess::scalar) return false;
  }
  return true;
}

int64_t chunk_elements(const GeneratedProgram &generated) { return int64_t{kBlockThreads} * generated.text.width; }

gpuError_t launch_generated(const GeneratedProgram &generated, const ElementPlaces &places, gpuStream_t stream) {
  GeneratedOperands operands{};
  operands.places = places;
  const int64_t chunk = chunk_elements(generated);
  return launch(generated, operands, (places.elements + chunk - 1) / chunk, stream);
}

gpuError_t launch_generated(const GeneratedProgram &generated, const FusedPlaces &places, int64_t elements,
                            gpuStream_t stream) {
  GeneratedOperands operands{};
  operands.fused = places;
  return launch(generated, operands, (elements + kBlockThreads - 1) / kBlockThreads, stream);
}

gpuError_t launch_generated_tiles(const GeneratedProgram &generated, const FusedPlaces &places, int64_t rows,
                                  int64_t columns, gpuStream_t stream) {
  GeneratedOperands operands{};
  operands.fused = places;
  const int64_t tiles = ((rows + kTileRows - 1) / kTileRows) * ((columns + kTileColumns - 1) / kTileColumns);
  return launch(generated, operands, tiles, stream);
}

gpuError_t launch_generated(const GeneratedProgram &generated, const Rows<ElementPlaces> &rows, gpuStream_t stream) {
  GeneratedOperands operands{};
  operands.rows = rows;
  return launch(generated, operands, rows.chunks, stream);
}

}  // namespace tutti::impl::backend::gpu

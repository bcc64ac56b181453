// SPDX-License-Identifier: Apache-2.0
//
// Elementwise work as kernels that are compiled at run time. One text has all kernels of an executable: a compiler
// takes some 50 ms to begin and 20 ms for each kernel. Equal programs share a kernel, in an executable and in the
// process; images of texts are kept in the plan cache (kernel_cache.h). What is small stays with the interpreter, and
// so does everything where there is no compiler.
//
//   KernelBatch batch(device.generator);
//   const GeneratedProgramRef generated = batch.add(program);  // while the graph is compiled; null: interpret it
//   TUTTI_TRY(batch.compile());                                // when all are there
//   if (can_launch(generated, program, places)) return launch_generated(*generated, places, stream);
//
// Threads: a KernelGenerator may be used from any thread, a batch by one.
#ifndef TUTTI_BACKEND_GPU_GENERATED_GENERATED_KERNELS_H_
#define TUTTI_BACKEND_GPU_GENERATED_GENERATED_KERNELS_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/gpu/device/fused_product.h"
#include "backend/gpu/device/fused_program.h"
#include "backend/gpu/generated/kernel_cache.h"
#include "backend/gpu/generated/program_text.h"
#include "backend/gpu/generated/run_time_compiler.h"
#include "base/json.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// Which work is compiled; the option "generated_kernels" of a backend.
enum class GenerateKernels : int32_t {
  automatic,  ///< where the platform says so, and only what moves enough bytes
  never,
  always,  ///< whatever its size; what cannot be compiled is an error
};
base::Result<GenerateKernels> parse_generate_kernels(const std::string &text);

/// The compiler of one device, opened when the first kernel is wanted.
class KernelGenerator {
 public:
  /// `folder`: of the plan cache, "" = none.
  KernelGenerator(int32_t ordinal, GenerateKernels mode, std::string folder, const tutti_backend_host *host)
      : ordinal_(ordinal), mode_(mode), cache_(std::move(folder)), host_(host) {}

  GenerateKernels mode() const { return mode_; }
  const KernelCache &cache() const { return cache_; }
  /// UNAVAILABLE says what is missing; the same answer every time.
  base::Result<const RunTimeCompiler *> compiler();
  void log(int32_t severity, const std::string &line) const { host_->log(host_->user, severity, line.c_str()); }

 private:
  const int32_t ordinal_;
  const GenerateKernels mode_;
  const KernelCache cache_;
  const tutti_backend_host *const host_;
  std::once_flag once_;
  base::Status status_;
  std::shared_ptr<const RunTimeCompiler> compiler_;
};

/// A program with its text and, once the batch is compiled, its kernel; null: it is interpreted.
struct GeneratedProgram {
  KernelText text;
  std::shared_ptr<const GeneratedKernel> kernel;
};
using GeneratedProgramRef = std::shared_ptr<const GeneratedProgram>;

/// The kernels of one executable.
class KernelBatch {
 public:
  explicit KernelBatch(KernelGenerator &generator) : generator_(generator) {}

  /// Null where the program stays with the interpreter. Valid after compile().
  GeneratedProgramRef add(const ElementProgram &program, const ReductionText *reduction = nullptr);
  /// For several calls of so many elements together.
  GeneratedProgramRef add_joined(const ElementProgram &program, int64_t elements);
  /// Whatever its size: loops repeat it.
  GeneratedProgramRef add_fused(const FusedProgram &program, const FusedProduct *product = nullptr);
  /// Is there a compiler, and is it to be used?
  bool can_generate();
  /// Bytes from which on a tree that is reduced is worth a kernel; none where there is no compiler.
  std::optional<int64_t> reduced_bytes();
  /// Compiles what has been added. Fails only where kernels are always to be compiled.
  base::Status compile();
  /// {"compiler", "compiled", "from_cache", "known"} or {"missing": why}; null where nothing was added.
  const base::Json &report() const { return report_; }

 private:
  bool may_generate() const;
  bool is_worth(const ElementProgram &program, int64_t elements) const;
  GeneratedProgramRef add_text(std::optional<KernelText> text);
  base::Status find_all(const RunTimeCompiler &compiler);

  KernelGenerator &generator_;
  std::vector<std::shared_ptr<GeneratedProgram>> programs_;
  base::Json report_;
};

/// Is there a kernel for it, and do its operands lie where packs can be read?
bool can_launch(const GeneratedProgramRef &generated, const ElementProgram &program, const ElementPlaces &places);
gpuError_t launch_generated(const GeneratedProgram &generated, const ElementPlaces &places, gpuStream_t stream);
gpuError_t launch_generated(const GeneratedProgram &generated, const FusedPlaces &places, int64_t elements,
                            gpuStream_t stream);
/// With a product: of a program over so many rows and columns.
gpuError_t launch_generated_tiles(const GeneratedProgram &generated, const FusedPlaces &places, int64_t rows,
                                  int64_t columns, gpuStream_t stream);
/// For several calls. None may have an operand where packs cannot be read.
gpuError_t launch_generated(const GeneratedProgram &generated, const Rows<ElementPlaces> &rows, gpuStream_t stream);
/// Elements of a chunk of such rows.
int64_t chunk_elements(const GeneratedProgram &generated);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_GENERATED_KERNELS_H_

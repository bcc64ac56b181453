// SPDX-License-Identifier: Apache-2.0
#include "host_compiler.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdlib>

#include "backend/gpu/generated/generated_headers.h"
#include "base/file.h"
#include "emulated_machine.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// A folder of its own under the system's for temporary files.
class Folder {
 public:
  Folder() {
    const char *const parent = std::getenv("TMPDIR");
    path_ = base::concat(parent != nullptr ? parent : "/tmp", "/tutti-emulated-XXXXXX");
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    if (!path_.empty()) (void)base::remove_tree(base::parent_directory(path_), base::base_name(path_));
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;

  Result<std::string> path() const {
    if (path_.empty()) return base::unavailable("no temporary folder can be made");
    return path_;
  }

 private:
  std::string path_;
};

/// Runs the compiler; its complaints are the error's text.
Status run_compiler(const std::string &folder, const std::string &arguments) {
  const std::string said = folder + "/said";
  const std::string command = base::concat(TUTTI_HOST_COMPILER " ", arguments, " >'", said, "' 2>&1");
  if (std::system(command.c_str()) == 0) {
    TUTTI_ASSIGN(const std::string warnings, base::read_file(said));
    return warnings.empty() ? Status() : base::failed_precondition("the compiler warns: ", warnings.substr(0, 4000));
  }
  const Result<std::string> text = base::read_file(said);
  return base::failed_precondition("the compiler fails: ",
                                   text.ok() ? text->substr(0, 4000) : text.status().to_string());
}

Status write_headers(const std::string &folder) {
  for (const GeneratedHeader &header : generated_headers()) {
    const std::string path = base::concat(folder, "/", header.name);
    TUTTI_TRY(base::make_directories(base::parent_directory(path)));
    TUTTI_TRY(base::write_file_synced(path, header.text));
  }
  return Status();
}

class HostKernel final : public GeneratedKernel {
 public:
  using Function = void (*)(GeneratedOperands);
  explicit HostKernel(Function function) : function_(function) {}

  gpuError_t launch(const GeneratedOperands &operands, unsigned blocks, size_t shared_bytes,
                    gpuStream_t stream) const override {
    return gpu_launch(function_, blocks, kBlockThreads, shared_bytes, stream, operands);
  }

 private:
  Function function_;
};

class HostCompiler final : public RunTimeCompiler {
 public:
  std::string signature() const override { return TUTTI_HOST_COMPILER " " __VERSION__ ", for the emulated GPU"; }

  Result<std::string> compile(const std::string &text) const override {
    const Folder made;
    TUTTI_ASSIGN(const std::string folder, made.path());
    TUTTI_TRY(write_headers(folder));
    TUTTI_TRY(base::write_file_synced(folder + "/kernels.cc", text));
    TUTTI_TRY(run_compiler(
        folder, base::concat("-std=c++20 -O1 -ffp-contract=off " TUTTI_STRICT_KERNELS " -Wall -shared -fPIC -I'",
                             folder, "' '", folder, "/kernels.cc' -o '", folder, "/kernels.so'")));
    return base::read_file(folder + "/kernels.so");
  }

  Result<std::vector<std::shared_ptr<const GeneratedKernel>>> load(const std::string &image,
                                                                   std::span<const std::string> names) const override {
    const Folder made;
    TUTTI_ASSIGN(const std::string folder, made.path());
    TUTTI_TRY(base::write_file_synced(folder + "/kernels.so", image));
    void *const module = dlopen((folder + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) return base::data_loss("kernels cannot be loaded: ", dlerror());
    auto *const machine = static_cast<EmulatedMachine *>(dlsym(module, "tutti_emulated_machine"));
    if (machine == nullptr) return base::data_loss("a module of kernels has no machine");
    *machine = {&threadIdx,
                &blockIdx,
                &blockDim,
                &gridDim,
                __syncthreads,
                tutti_gpu_emulator::exchange,
                tutti_gpu_emulator::dynamic_shared};
    std::vector<std::shared_ptr<const GeneratedKernel>> kernels;
    for (const std::string &name : names) {
      const auto function = reinterpret_cast<HostKernel::Function>(dlsym(module, name.c_str()));
      if (function == nullptr) return base::data_loss("a module of kernels has no ", name);
      kernels.push_back(std::make_shared<HostKernel>(function));
    }
    return kernels;
  }
};

}  // namespace

Result<std::shared_ptr<const RunTimeCompiler>> open_host_compiler() {
  if (std::system(TUTTI_HOST_COMPILER " --version >/dev/null 2>&1") != 0)
    return base::unavailable("there is no C++ compiler " TUTTI_HOST_COMPILER);
  return std::shared_ptr<const RunTimeCompiler>(std::make_shared<HostCompiler>());
}

}  // namespace tutti::impl::backend::gpu

// SPDX-License-Identifier: Apache-2.0
//
// A platform's compiler compiles, without a warning, the kernels that are written for the training steps of well-known
// networks. The texts are those that the emulated GPU keeps in its plan cache; nothing is run.
//
// usage: network_texts_test EMULATED-PLUG-IN ARCHITECTURE
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/step_models.h"
#include "backend/gpu/generated/program_text.h"
#include "backend/gpu/generated/rtc_compiler.h"
#include "base/file.h"
#include "base/temporary_directory.h"
#include "runtime/backend_list.h"
#include "testing.h"

using namespace tutti::impl;
using tensor::DType;
using tutti::testing::TemporaryDirectory;

/// There is no driver to load anything into.
base::Result<std::vector<std::shared_ptr<const backend::gpu::GeneratedKernel>>> backend::gpu::platform::load_kernels(
    const std::string &, std::span<const std::string>) {
  return base::unavailable("kernels are not loaded here");
}

namespace {

std::string plugin;
int compiled_texts = 0;
std::shared_ptr<const backend::gpu::RunTimeCompiler> compiler;

size_t count(const std::string &text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// What the emulated GPU's compiler was given for the training step of a network.
std::string text_of(const char *network) {
  const TemporaryDirectory directory;
  const std::string options =
      base::concat(R"({"generated_kernels": "always", "plan_cache": ")", directory.path(), "\"}");
  const auto opened = assert_ok_value(runtime::open_backend(plugin, options, {}));
  const auto model = assert_ok_value(tutti::testing::make_step_model(network));
  const auto trainer = assert_ok_value(tutti::testing::StepTrainer::create(opened, model, 8));
  for (const std::string &report : trainer.reports())
    print_message("network %s: %zu kernels, of them generated %zu (reductions %zu)\n", network,
                  count(report, "\"kernel\":"), count(report, "\"generated "), count(report, "\"generated red"));
  std::string text;
  for (const std::string &file : assert_ok_value(base::list_directory(directory.path()))) {
    const std::string bytes = assert_ok_value(base::read_file(directory / file));
    const size_t begin = bytes.find(backend::gpu::text_prologue());
    const std::string end = base::concat("\n", backend::gpu::text_epilogue());
    if (begin == std::string::npos) continue;
    const size_t last = bytes.find("\n" + std::string(backend::gpu::text_epilogue()) +
                                       "\x7f"
                                       "ELF",
                                   begin);
    assert_true(last != std::string::npos);
    text += bytes.substr(begin, last + end.size() - begin);
  }
  return text;
}

void check_network(const char *network) {
  const std::string text = text_of(network);
  // Those of the networks before are known in the process.
  const size_t kernels = count(text, "extern \"C\" __global__");
  if (kernels == 0) return;
  ++compiled_texts;
  const auto begin = std::chrono::steady_clock::now();
  const auto image = compiler->compile(text);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!image.ok()) fail_msg("network %s: %s", network, image.status().to_string().c_str());
  assert_true(
      image->starts_with("\x7f"
                         "ELF"));
  print_message("network %s: %zu kernels in %.2f s, %zu bytes\n", network, kernels, seconds.count(), image->size());
}

void the_kernels_of_networks_compile(void **) {
  for (const char *network : {"mlp", "resnet20", "separable", "lstm"})
    check_network(network);
  assert_true(compiled_texts > 1);
}

/// Programs of one dense and one broadcast operand that have all ops in turn.
std::vector<backend::gpu::ElementProgram> programs_of_all_ops(backend::gpu::Arithmetic arithmetic, DType dtype) {
  using namespace backend::gpu;
  std::vector<ElementProgram> programs;
  for (int32_t op = 0; op <= static_cast<int32_t>(ElementOp::select); ++op) {
    if (programs.empty() || programs.back().instruction_count == ElementProgram::kInstructions) {
      ElementProgram program{};
      program.elements = 7 * 24;
      program.arithmetic = arithmetic;
      program.rank = 2;
      program.dims[0] = 7;
      program.dims[1] = 24;
      program.input_count = 3;
      for (int32_t i = 0; i < 3; ++i) {
        program.inputs[i].dtype = dtype;
        program.inputs[i].access = static_cast<ElementAccess>(i);
      }
      program.inputs[2].strides[0] = 1;
      program.output.dtype = dtype;
      programs.push_back(program);
    }
    ElementProgram &program = programs.back();
    const int32_t last = program.input_count + program.instruction_count - 1;
    program.instructions[program.instruction_count++] = {static_cast<ElementOp>(op), last, 0, 1, 0.25};
  }
  return programs;
}

void every_op_and_reduction_compiles(void **) {
  using namespace backend::gpu;
  std::string text(text_prologue());
  const std::pair<Arithmetic, DType> kinds[] = {
      {Arithmetic::f32, DType::f32}, {Arithmetic::i64, DType::i32}, {Arithmetic::u64, DType::u64}};
  for (const auto &[arithmetic, dtype] : kinds) {
    for (const ElementProgram &program : programs_of_all_ops(arithmetic, dtype)) {
      text += program_text(program)->text;
      text += joined_program_text(program)->text;
    }
  }
  ElementProgram tree = programs_of_all_ops(Arithmetic::f32, DType::bf16)[0];
  tree.instruction_count = 2;
  for (const char *op : {"Sum", "Max", "Min"}) {
    for (const int32_t width : {1, 4, 8}) {
      for (const bool is_lines : {true, false}) {
        const ReductionText reduction{op, is_lines, DType::bf16, width};
        text += program_text(tree, &reduction)->text;
      }
    }
  }
  text += text_epilogue();
  const auto image = compiler->compile(text);
  if (!image.ok()) fail_msg("%s", image.status().to_string().c_str());
  assert_int_equal(count(text, "extern \"C\" __global__"), 2 * 3 * 3 + 18);
}

void what_is_wrong_is_said(void **) {
  assert_error_contains(compiler->compile("__global__ void broken() { nothing(); }"), "nothing");
  assert_error_contains(compiler->compile("__global__ void idle() { int unused; }"), "unused");
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(the_kernels_of_networks_compile),
    cmocka_unit_test(every_op_and_reduction_compiles),
    cmocka_unit_test(what_is_wrong_is_said),
};

}  // namespace

int main(int argc, char **argv) {
  if (argc != 3) return EXIT_FAILURE;
  plugin = argv[1];
  auto opened = backend::gpu::platform::open_rtc_compiler(argv[2], true);
  if (!opened.ok()) {
    std::fprintf(stderr, "skipped: %s\n", opened.status().to_string().c_str());
    return 77;
  }
  compiler = std::move(opened).value();
  return cmocka_run_group_tests(kTests, nullptr, nullptr);
}

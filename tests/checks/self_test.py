#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""self_test.py: breaks each repository rule in a small tree and expects the check to say so, and to be silent otherwise."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import abi_baseline
import binding_reach
import documented_names
import environment
import formatting
import gpu_calls
import gpu_names
import headers_alone
import include_floors
import library_shape
import own_names
import package_architectures
import reached_entries
import released_headers
import plugin_shape
import readme_example
import size_budget
import symbol_list
import words

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"


class TreeCase(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def expect(self, problems, *needles):
        """Exactly one problem for each needle, in any order."""
        self.assertEqual(len(problems), len(needles), problems)
        for needle in needles:
            self.assertTrue(any(needle in problem for problem in problems), (needle, problems))


class IncludeFloors(TreeCase):
    def test_clean(self):
        self.write("include/tutti/tensor.h", "#include <tutti/status.h>\nint tutti_tensor_rank(void);\n")
        self.write("lib/base/status.h", "namespace tutti::impl::base {\n}\n")
        self.write("lib/graph/graph.h", '#include <vector>\n#include "base/status.h"\nnamespace tutti::impl::base { class X; }\n')
        self.write("lib/graph/ops/add.cc", '#include "graph/graph.h"\n#include "graph/ops/add.h"\n')
        self.write("lib/graph/ops/add.h", '#include "tensor/shape.h"\n')
        self.write("lib/backend/cuda/a.cc", '#include "backend/gpu/a.h"\nvoid f() { cudaMalloc(0); }\n')
        self.write("lib/backend/plugin.h", "#include <tutti/plugin/backend.h>\n")
        self.write("lib/capi/tensor_c.cc", '#include <tutti/tensor.h>\n#include "tensor/tensor.h"\nint tutti_tensor_rank(void) { return 0; }\n')
        self.write("tests/graph/graph_test.cc", '#include "graph/graph.h"\n#include "testing.h"\n')
        self.expect(include_floors.check(self.root))

    def test_upward(self):
        self.write("lib/base/a.h", '#include "graph/graph.h"\n')
        self.expect(include_floors.check(self.root), "graph/ (floor 2) is not below base/ (floor 0)")

    def test_sideways(self):
        self.write("lib/data/element/a.h", '#include "collective/group.h"\n')
        self.write("lib/backend/hip/a.cc", '#include "backend/reference/a.h"\n')
        self.expect(include_floors.check(self.root), "collective/ (floor 4)", "not backend/reference/")

    def test_subfloors(self):
        self.write("lib/distribute/train/a.h", '#include "distribute/plan/a.h"\n#include "distribute/train/b.h"\n')
        self.write("lib/distribute/plan/a.h", '#include "distribute/input/a.h"\n')
        self.write("lib/distribute/workers/a.h", '#include "distribute/program/a.h"\n')
        self.write("lib/distribute/a.h", "")
        self.expect(include_floors.check(self.root), "distribute/input/ (subfloor 1) is not below distribute/plan/ (subfloor 0)",
                    "distribute/program/ (subfloor 2) is not below", "lies in none of the subfolders")

    def test_subfloors_of_a_folder_below(self):
        self.write("lib/backend/cpu/simd/a.cc", '#include "backend/cpu/lower/a.h"\n')
        self.write("lib/backend/cpu/a.h", "")
        self.write("lib/backend/cpu/lower/a.h", '#include "backend/cpu/simd/b.h"\n#include "backend/backend.h"\n')
        self.expect(include_floors.check(self.root), "backend/cpu/lower/ (subfloor 4) is not below backend/cpu/simd/ (subfloor 0)",
                    "lib/backend/cpu/a.h: lies in none of the subfolders")

    def test_parent_includes_child(self):
        self.write("lib/graph/a.h", '#include "graph/ops/a.h"\n')
        self.expect(include_floors.check(self.root), "not graph/ops/")

    def test_root_of_includes(self):
        self.write("lib/graph/a.h", '#include "b.h"\n')
        self.expect(include_floors.check(self.root), "from the root of lib/")

    def test_no_floor(self):
        self.write("lib/extras/a.h", "")
        self.expect(include_floors.check(self.root), "lies on no floor")

    def test_public_headers(self):
        self.write("lib/base/a.h", "#include <tutti/tensor.h>\n")
        self.write("lib/tool/program/main.cc", '#include "base/status.h"\n')
        self.write("include/tutti/a.h", '#include "tutti/b.h"\n')
        self.expect(include_floors.check(self.root), "only the plug-in tables", "public headers only", "<tutti/...>")

    def test_header_ring(self):
        self.write("lib/graph/a.h", '#include "graph/b.h"\n')
        self.write("lib/graph/b.h", '#include "graph/c.h"\n')
        self.write("lib/graph/c.h", '#include "graph/a.h"\n')
        self.expect(include_floors.check(self.root), "lib/graph/a.h -> lib/graph/b.h -> lib/graph/c.h -> lib/graph/a.h")

    def test_names(self):
        self.write("include/tutti/a.h", "TUTTI_API int32_t tutti_a_get(const tutti_a *a);\n")
        self.write("lib/graph/a.cc", "// tutti_a_get(a)\nint x = tutti_a_get(0);\nint y = cudaMalloc(p);\n")
        self.write("lib/graph/b.cc", "namespace tutti::impl::data {\n}\n")
        self.expect(include_floors.check(self.root), "names tutti_a_get()", "names cudaMalloc()", "opens the namespace of data/")

    def test_tests_keep_to_their_floor(self):
        self.write("tests/graph/a_test.cc", '#include "estimator/estimator.h"\n')
        self.expect(include_floors.check(self.root), "from a floor above")


class SizeBudget(TreeCase):
    def test_functions(self):
        text = """namespace a {
class Shape final : public Base<int> {
 public:
  explicit Shape(int n = 3) : n_{n}, rest_(f("{")) {
    g();
  }
  template <typename F>
    requires(!std::is_same_v<F, Shape> && (sizeof(F) > 1))
  Shape(F &&function)
      : n_(call([](int n) -> int {
          return n;
        })) {}
  int operator()(int n) const { return n; }
  int size() const noexcept { return n_; }
 private:
  int n_ = {};
};
const Rule kRules[] = {{"a", 1}, {"b", 2}};
template <typename T, typename = std::enable_if_t<(sizeof(T) > 2)>>
auto make(T &&value) -> std::vector<T> {
  auto twice = [&](int x) {
    return x;
  };
  return {value};
}
bool operator==(const A &a, const B &b) {
  return '{' == '}';
}
enum class Color : int { red };
extern "C" {
static int c_function(void (*callback)(int), struct thing *t) {
  return 1'000'000;
}
}
}  // namespace a
"""
        found = [(name, lines) for name, _, lines in size_budget.functions_of(text)]
        self.assertEqual(found, [("Shape", 3), ("Shape", 6), ("operator()", 1), ("size", 1), ("make", 7), ("operator==", 3), ("c_function", 3)])

    def test_clean(self):
        self.write("lib/base/a.cc", LICENCE + "int f() {\n  return 1;\n}\n" * 40)
        self.expect(size_budget.check(self.root))

    def test_long_function(self):
        self.write("lib/base/a.cc", "int f() { return 1; } " * 50 + "\nint g() {\n" + "  x();\n" * 130 + "}\n")
        self.expect(size_budget.check(self.root), "g has 132 lines")

    def test_many_long_functions(self):
        self.write("lib/base/a.cc", "int f() { return 1; }\n" * 18 + ("int g() {\n" + "  x();\n" * 70 + "}\n") * 2)
        self.expect(size_budget.check(self.root), "only 18 of 20")

    def test_median_function(self):
        self.write("lib/base/a.cc", ("int g() {\n" + "  x();\n" * 9 + "}\n") * 20)
        self.expect(size_budget.check(self.root), "functions: median 11")

    def test_files(self):
        self.write("lib/base/a.cc", "int x;\n" * 601)
        self.write("lib/base/a.h", "int x;\n" * 451)
        self.write("tests/base/a_test.cc", "int x;\n" * 601)
        self.expect(size_budget.check(self.root), "lib/base/a.cc: 601", "lib/base/a.h: 451", "tests/base/a_test.cc: 601")

    def test_median_files(self):
        for number in range(20):
            self.write(f"lib/base/a{number}.cc", "int x;\n" * 461)
            self.write(f"lib/base/a{number}.h", "int x;\n" * 101)
        self.expect(size_budget.check(self.root), "headers: median 101", "sources: median 461", "sources: only 0 of 20")

    def test_comments(self):
        self.write("include/tutti/a.h", "int x;\n" * 99 + "/* a\n */\n")
        self.expect(size_budget.check(self.root), "public headers: 2% of the lines are comments")

    def test_conditions(self):
        self.write("lib/base/a.h", "#ifndef TUTTI_BASE_A_H_\n#if A\n#elif B\n#endif\n#ifdef __cplusplus\n#endif\n#endif\n")
        self.write("lib/backend/a.h", "#if A\n#endif\n" * 5)
        self.expect(size_budget.check(self.root), "more than one #if", ":2:", ":3:")

    def test_leftovers(self):
        self.write("lib/base/a.cc", "// TODO: later\n// TODO(#12): later\n")
        self.expect(size_budget.check(self.root), "a.cc:1: a leftover mark")

    def test_names(self):
        self.write("lib/base/string_utils.cc", "")
        self.write("lib/common/a.cc", "")
        self.write("lib/base/common_subexpression.cc", "")
        self.expect(size_budget.check(self.root), "string_utils", "'common'")

    def test_interface(self):
        self.write("lib/base/a.h", "class A {\n" + "  virtual int f(int) const = 0;\n" * 13 + "};\nclass B {\n  virtual int f() = 0;\n};\n")
        self.expect(size_budget.check(self.root), "A has 13 pure methods")

    def test_folders(self):
        for i in range(31):
            self.write(f"lib/base/u{i}.cc", "")
            self.write(f"lib/base/u{i}.h", "")
            self.write(f"lib/data/transform/u{i}.cc", "")
        self.expect(size_budget.check(self.root), "lib/base: 31 units, more than 30")


class Words(TreeCase):
    def test_all(self):
        self.write("lib/base/a.cc", LICENCE + 'const char *path = "https://example.org/home/x";\n')
        self.expect(words.check(self.root))
        self.write("lib/base/b.cc", "int x;\n")
        self.write("README.md", "see /home/somebody/tutti\n")
        self.expect(words.check(self.root), "lib/base/b.cc: the first lines lack", "README.md:1")


class SymbolList(TreeCase):
    def test_compare(self):
        good = ["tutti_a", "tutti_b"]
        self.expect(symbol_list.compare(good, good, good))
        self.expect(symbol_list.compare(good, ["tutti_b", "tutti_a"], good), "not sorted")
        self.expect(symbol_list.compare(good + ["_ZSt3foo"], good, good), "without the prefix")
        self.expect(symbol_list.compare(["tutti_a"], good, good), "tutti_b: not exported, listed, declared")
        self.expect(symbol_list.compare(good, ["tutti_a"], good), "tutti_b: exported, not listed, declared")
        self.expect(symbol_list.compare(good, good, ["tutti_a"]), "tutti_b: exported, listed, not declared")

    def test_declared(self):
        self.write("include/tutti/a.h", """#define TUTTI_X(a) tutti_macro(a)
#ifdef __cplusplus
extern "C" {
#endif
typedef int32_t (*tutti_a_function)(void *user);
struct tutti_s { int x; };
/* tutti_in_comment(); */
TUTTI_API int32_t tutti_a_create(
    tutti_a **out, tutti_a_function f, void (*destroy)(void *), tutti_error **err);
TUTTI_API void tutti_a_unref(tutti_a *a);
static inline int32_t tutti_helper(void) { return tutti_a_create(0, 0, 0, 0); }
TUTTI_API const char *tutti_a_get_name(const tutti_a *a) TUTTI_DEPRECATED;
#ifdef __cplusplus
}
#endif
""")
        self.assertEqual(symbol_list.declared_symbols([self.root]), ["tutti_a_create", "tutti_a_get_name", "tutti_a_unref"])


class ReachedEntries(TreeCase):
    def test_all(self):
        self.write("lib/graph/ops/ops.yaml", "- ops: [{name: add}, {name: mul}, {name: mul_gradient, public: false}, {name: sub}]\n")
        self.write("lib/nn/nn.yaml", "- {kind: layer, name: dense}\n")
        self.write("lib/data/transforms.yaml", "- {name: batch}\n- {name: window}\n")
        self.write("lib/capi/options.yaml", "run: [{key: seed}, {key: precision}]\n")
        self.write("tests/conformance/golden/a.json", '[{"op": "sub"}]')
        self.write("tests/capi/a_test.c", 'tutti_add(g, x, y); tutti_layer_dense(g, x, 1, NULL); begin(p, "batch"); seed;\n')
        self.write("tests/checks/unreached_entries.txt", "# a remark\nop:mul elsewhere\n")
        self.expect(reached_entries.check(self.root), "transform:window: no test", "option:run/precision: no test")
        self.write("tests/checks/unreached_entries.txt",
                   "op:mul elsewhere\ntransform:window elsewhere\noption:run/precision\nop:add why\nop:div why\n")
        self.expect(reached_entries.check(self.root), "option:run/precision: no test", "op:add is reached, or there is none",
                    "op:div is reached, or there is none")


    def test_languages(self):
        self.write("lib/nn/nn.yaml", "".join(f"- {{kind: {kind}, name: {name}}}\n" for kind, name in (
            ("loss", "mean_error"), ("layer", "dense"), ("optimizer", "adam_w"), ("parameter", "group"))))
        self.write("tests/capi/a_test.c", "tutti_loss_mean_error(g, x, y, NULL); tutti_layer_dense(g, x, 1, NULL);\n"
                   "tutti_optimizer_adam_w(g, x, NULL); tutti_parameter_group(g, \"*\", NULL);\n")
        self.write("tests/checks/unreached_entries.txt", "")
        self.write("bindings/go/a_test.go", "g.LayerDense(x, 1, nil); g.LossMeanError(x, y, nil); g.OptimizerAdamW(x, nil); g.ParameterGroup(\"*\", nil)\n")
        self.write("bindings/java/src/test/java/org/tutti/A.java", "g.layerDense(x, 1); g.lossMeanErrors(x, y)\n")
        self.expect(reached_entries.check(self.root), "op:loss_mean_error: no test in Java", "op:optimizer_adam_w: no test in Java",
                    "op:parameter_group: no test in Java")
        self.write("bindings/java/src/test/java/org/tutti/A.java", "g.layerDenser(x, 1); g.lossMeanError(x, y); g.optimizerAdamW(x); g.parameterGroup(x)\n")
        self.expect(reached_entries.check(self.root), "op:layer_dense: no test in Java")
        self.write("lib/nn/nn.yaml", "- {kind: function, name: hard_step}\n")
        self.write("tests/capi/a_test.c", "tutti_hard_step(g, x);\n")
        self.write("bindings/go/a_test.go", "g.HardStep(x)\n")
        self.expect(reached_entries.check(self.root), "op:hard_step: no test in Java")

    def test_ops_in_languages(self):
        self.write("lib/graph/ops/ops.yaml", "- group: a\n  ops: [{name: is_odd}, {name: pad}, {name: sum_rows, public: false}, "
                   "{name: scan, regions: [body]}]\n- group: b\n  defaults: {public: false}\n  ops: [{name: hidden}]\n")
        self.write("tests/capi/a_test.c", "tutti_is_odd(g, x); tutti_pad(g, x);\n")
        self.write("tests/checks/unreached_entries.txt", "")
        self.expect(reached_entries.check(self.root))
        self.write("bindings/go/a_test.go", "g.IsOdd(x); g.Pad(x)\n")
        self.write("tests/bindings/csharp/A.cs", "g.IsOdd(x); g.PadImage(x); list.Pad(x)\n")
        self.expect(reached_entries.check(self.root), "op:pad: no test in C#")
        self.write("bindings/java/src/test/java/org/tutti/A.java", "g.isOddly(x); g.pad(x)\n")
        self.expect(reached_entries.check(self.root), "op:pad: no test in C#", "op:is_odd: no test in Java")


class BindingReach(TreeCase):
    def test_all(self):
        self.write("include/tutti/a.h", "int tutti_a_make(void);\nvoid tutti_a_ref(int a);\nint tutti_b(void);\nint tutti_bc(void);\n")
        self.expect(binding_reach.check(self.root))
        self.write("bindings/go/a.go", "x := raw.A_make()\n")
        self.write("bindings/go/a_test.go", "raw.B()\n")
        self.write("bindings/go/internal/raw/raw.go", "raw.B()\n")
        self.write("bindings/go/unreached.txt", "# a remark\n*_ref why not\ntutti_b\n")
        self.expect(binding_reach.check(self.root), "does not reach tutti_b,", "does not reach tutti_bc,")
        self.write("bindings/go/a.go", "x := raw.A_make() + raw.B() + raw.Bc()\n")
        self.expect(binding_reach.check(self.root), "'tutti_b' is reached")
        self.write("bindings/go/unreached.txt", "*_ref why not\n")
        self.write("bindings/java/src/main/java/A.java", "Raw.a_make(); run(Raw::b);\n")
        self.write("bindings/java/src/test/java/ATest.java", "Raw.bc();\n")
        self.write("bindings/java/unreached.txt", "*_ref why not\n")
        self.expect(binding_reach.check(self.root), "bindings/java: does not reach tutti_bc,")

    def test_header_of_cpp(self):
        self.write("include/tutti/a.h", "int tutti_a_make(void);\nint tutti_b(void);\n")
        self.write("include/tutti/cpp/a.hpp", "inline int make() { return tutti_a_make(); }\n")
        self.write("bindings/cpp/unreached.txt", "")
        self.expect(binding_reach.check(self.root), "bindings/cpp: does not reach tutti_b,")
        self.write("bindings/cpp/unreached.txt", "tutti_b why not\n")
        self.expect(binding_reach.check(self.root))

    def test_generated(self):
        self.write("include/tutti/a.h", "int tutti_a_make(void);\nint tutti_b(void);\n")
        self.write("bindings/csharp/unreached.txt", "")
        self.write("bindings/csharp/src/A.cs", "Raw.a_make();\n")
        self.expect(binding_reach.check(self.root), "does not reach tutti_b,")
        writer = "import sys\nif __name__ == '__main__':\n    open(sys.argv[1] + '/B.cs', 'w').write('Raw.b();')\n"
        self.write("bindings/csharp/builders.py", writer)
        self.expect(binding_reach.check(self.root))


class LibraryShape(TreeCase):
    def build(self, *options):
        self.write("a.c", "int a = 1;\n")
        library = os.path.join(self.root, "liba.so")
        subprocess.run(["cc", "-shared", "-fPIC", os.path.join(self.root, "a.c"), "-o", library, *options], check=True)
        return library

    def test_dynamic(self):
        good = self.build("-Wl,-soname,liba.so.0.1", "-Wl,-z,nodelete,-z,now")
        self.expect(library_shape.dynamic_problems(library_shape.readelf("-d", good), "liba.so.0.1"))
        bad = self.build("-Wl,-soname,liba.so.0", "-Wl,-z,lazy", "-Wl,-rpath,/somewhere")
        text = library_shape.readelf("-d", bad) + " 0x1 (NEEDED) Shared library: [libcurl.so.4]\n"
        self.expect(library_shape.dynamic_problems(text, "liba.so.0.1"), "soname", "nodelete", "-z now", "library path", "libcurl")

    def test_initialisers(self):
        self.expect(library_shape.initialiser_problems("0000 t tutti_a\n"))
        self.expect(library_shape.initialiser_problems("00807d0 t _GLOBAL__sub_I_status.cc\n"), "status.cc")

    def test_segments(self):
        self.expect(library_shape.segment_problems(library_shape.readelf("-l", self.build()), 8 << 20))
        rows = "  LOAD           0x000000 0x0000 0x0000 0x1 0x900000 R E 0x1000\n"
        self.expect(library_shape.segment_problems(rows, 8 << 20), "9437184 bytes")


class PluginShape(TreeCase):
    def build(self, text, *options):
        self.write("a.c", text)
        plugin = os.path.join(self.root, "tutti-a.so")
        subprocess.run(["cc", "-shared", "-fPIC", os.path.join(self.root, "a.c"), "-o", plugin, *options], check=True)
        return plugin

    def test_symbols(self):
        entry = "int tutti_backend_entry(int v) { return v; }\n"
        self.expect(plugin_shape.symbol_problems(plugin_shape.symbols(self.build(entry))))
        self.expect(plugin_shape.symbol_problems(plugin_shape.symbols(self.build("int f(void) { return 1; }\n"))), "lacks", "exports f")
        calls = "int cuInit(int v); int cudaFree(int v); __attribute__((weak)) int cudnnCreate(int v);\n"
        bad = self.build(calls + "int tutti_backend_entry(int v) { return cuInit(v) + cudaFree(v) + (cudnnCreate ? 1 : 0); }\n")
        self.expect(plugin_shape.symbol_problems(plugin_shape.symbols(bad)), "cuInit", "cudaFree")
        vendors = ["nvrtcVersion", "hipFree", "hiprtcVersion", "rocblas_create_handle", "miopenCreate", "rcclX", "ncclGroupEnd"]
        rows = [("T", "tutti_backend_entry"), *(("U", name) for name in vendors), ("U", "cube"), ("U", "hiphop")]
        self.expect(plugin_shape.symbol_problems(rows), *vendors)
        # Of a library that may be listed its own names alone.
        self.expect(plugin_shape.symbol_problems(rows, ["libamdhip64"]), *(name for name in vendors if name != "hipFree"))

    def test_needed(self):
        text = " 0x1 (NEEDED) Shared library: [libstdc++.so.6]\n"
        self.expect(plugin_shape.needed_problems(text, []))
        text += " 0x1 (NEEDED) Shared library: [libcuda.so.1]\n 0x1 (NEEDED) Shared library: [libamdhip64.so.5]\n 0x1 (RUNPATH) [/opt]\n"
        self.expect(plugin_shape.needed_problems(text, ["libamdhip64"]), "libcuda.so.1", "library path")


class GpuCalls(TreeCase):
    def test_all(self):
        self.write("lib/backend/cuda/a.cc", """// cudaFree(p);
#define gpuFree cudaFree
cudaError_t gpuMalloc(void **p);
Status f() {
  TUTTI_TRY(status_of(cudaMalloc(&p, 1), "cudaFree(p);"));
  if (gpuFree(p) != gpuSuccess) return g(lt->cublasLtCreate(&h));
  (void)cudaFree(p);
  if (x) (void)cudaFree(p);
  const cudaError_t e = cudaGetLastError();
  auto h = [&] { return launch_copy(a, b); };
  return x ? cudaFree(p) : gpu_launch(k, 1);
}
""")
        self.expect(gpu_calls.check(self.root))
        self.write("lib/backend/cuda/b.cc", """void f() {
  cudaFree(p);
  if (x) gpuFree(p);
  else hipFree(p);
  for (int i = 0; i < g(1); ++i)
    lt->cublasLtDestroy(h);
  launch_copy(
      a, b);
  switch (x) { case 1: table.cudnnDestroy(h); }
}
""")
        self.expect(gpu_calls.check(self.root), "b.cc:2:", "b.cc:3:", "b.cc:4:", "b.cc:6:", "b.cc:7:", "b.cc:9:")

    def test_members_of_tables(self):
        self.write("lib/backend/gpu/rtc.h", "struct Rtc {\n  decltype(&::rtcDestroyProgram) destroy_program = nullptr;\n};\n")
        self.write("lib/backend/gpu/c.cc", """Program::~Program() {
  if (program != nullptr) rtc_.destroy_program(&program);
  table->rtc.destroy_program(&program);
  (void)rtc_.destroy_program(&program);
  TUTTI_TRY(status_of(rtc_, rtc_.destroy_program(&program), "ending"));
  destroy_program(program);
}
""")
        self.expect(gpu_calls.check(self.root), "c.cc:2:", "c.cc:3:")

    def test_ways_to_the_function(self):
        self.write("lib/backend/cuda/e.cc", """void f() {
  ::cudaFree(p);
  lt()->cublasLtDestroy(h);
  handles(0)[i].lt->cublasLtDestroy(h);
  tables[0].cudnnDestroy(h);
  (*table)->cudnnDestroy(h);
  (*table).cudnnDestroy(h);
  if (x) [[unlikely]] gpuFree(p);
  !gpuFree(p);
  else ::cudaFree(p);
  const auto e = ::cudaFree(p);
  return lt()->cublasLtDestroy(h);
  check((*table)->cudnnDestroy(h));
  const bool ok = !tables[0].cudnnDestroy(h);
  (void)(*table).cudnnDestroy(h);
  if (!::cudaFree(p)) g();
  return ::cudaFree(p);
}
""")
        self.expect(gpu_calls.check(self.root), *(f"e.cc:{line}:" for line in range(2, 11)))

    def test_launches(self):
        self.write("lib/backend/cuda/f.cu", """void f() {
  kernel<<<1, 2, 3, stream>>>(p);
  return gpuGetLastError();
}
void g() {
  kernel<<<1, 2>>>(p);
  h();
  kernel<<<1, 2>>>(p);
}
void h() { return gpuGetLastError(); }
""")
        self.expect(gpu_calls.check(self.root), "f.cu:6:", "f.cu:8:")

    def test_ends_of_expressions(self):
        self.write("lib/backend/hip/d.cc", """void f() {
  p != nullptr && cudaFree(p);
  x ? cudaFree(p) : hipFree(q);
  g(), cudaFree(p);
  const bool ok = a && cudaFree(p) == cudaSuccess;
  return a ? cudaFree(p) : cudaFree(q);
  status = x ? cudaFree(p) : cudaFree(q);
  h(p, cudaFree(p));
  const Status all[] = {first, cudaFree(p)};
  (void)(a && cudaFree(p));
}
""")
        self.expect(gpu_calls.check(self.root), "d.cc:2:", "d.cc:3:", "d.cc:3:", "d.cc:4:")

    def test_folders_are_there(self):
        for folder in gpu_calls.FOLDERS[1:]:
            os.makedirs(os.path.join(self.root, folder))
        self.expect(gpu_calls.folder_problems(self.root), gpu_calls.FOLDERS[0])


class PackageArchitectures(TreeCase):
    NINJA = """build a.p/one.cu.o: CUSTOM_COMMAND_DEP ../lib/one.cu | /usr/bin/nvcc
 DEPFILE = x
 COMMAND = nvcc %s -c ../lib/one.cu
build b: phony
 COMMAND = code=sm_70
"""
    FLAGS = " ".join(f"-gencode arch=compute_{one},code=sm_{one}" for one in (80, 86, 89, 90, 100, 120))

    def test_flags(self):
        def problems(flags):
            return package_architectures.flag_problems(package_architectures.commands(self.NINJA % flags))
        self.expect(problems(self.FLAGS + " -gencode arch=compute_120,code=compute_120"))
        self.expect(problems(self.FLAGS), "one.cu.o: code for ['80', '86', '89', '90', '100', '120'], PTX for []")
        self.expect(problems("-gencode arch=compute_90,code=sm_90"), "code for ['90']")
        self.expect(package_architectures.flag_problems([]), "no kernel file")

    def test_content(self):
        elf = "\n".join(f"ELF file {i}: one.{i}.sm_{one}.cubin" for i, one in enumerate((80, 86, 89, 90, 100, 120)))
        ptx = "PTX file    1: one.1.sm_120.ptx\n"
        self.expect(package_architectures.content_problems(elf, ptx, "one"))
        self.expect(package_architectures.content_problems(elf, "", "one"), "PTX for []")
        self.expect(package_architectures.content_problems(elf.replace("sm_86", "sm_87"), ptx, "one"), "'87'")


class GpuNames(TreeCase):
    def test_all(self):
        text = "#define gpuMalloc %sMalloc\ninline constexpr int kBlockThreads = 32;\n#define TUTTI_UNROLL\nT gpu_shuffle(T);\n"
        self.write("lib/backend/cuda/tutti_gpu.h", "#ifndef TUTTI_BACKEND_CUDA_TUTTI_GPU_H_\n" + text % "cuda")
        self.write("lib/backend/hip/tutti_gpu.h", text % "hip" + "// gpuNever\n")
        self.write("tests/backend/gpu/emulator/tutti_gpu.h", "gpuError_t gpuMalloc(void **p);\n" + text.replace("#define gpuMalloc %sMalloc\n", ""))
        self.expect(gpu_names.check(self.root), "cuda/tutti_gpu.h: lacks gpuError_t", "hip/tutti_gpu.h: lacks gpuError_t")
        self.write("lib/backend/cuda/tutti_gpu.h", text % "cuda")
        self.write("tests/backend/gpu/emulator/tutti_gpu.h", text % "emulated")
        self.expect(gpu_names.check(self.root))


class Environment(TreeCase):
    def test_all(self):
        body = 'const char *value = secure_getenv("TUTTI_A");\n  return value == nullptr ? 0 : 1;\n}\n'
        self.write("lib/base/a.cc", "namespace a {\n\nint wish_from_environment() {\n  " + body + "\n}  // namespace a\n")
        self.write("lib/runtime/plugin_loader.cc", "std::string folder() {\n  " + body)
        self.expect(environment.check(self.root))
        self.write("lib/base/b.cc", "int wish_from_environment() { return 1; }\n\nint Other::wish(int a,\n  int b) const {\n  " + body)
        self.expect(environment.check(self.root), "lib/base/b.cc:5: wish reads the environment")


class OwnNames(TreeCase):
    def test_all(self):
        self.write("lib/base/meson.build", "a = static_library(\n  'base',\n  'a.cc',\n  more,\n)\nb = static_library(\n  'other',\n  'c.cc',\n)\n"
                   "more = files(\n  'b.cc',\n)\n")
        own = "namespace {\n\nint %s(%s) {\n  return other(1);\n}\n\n}  // namespace\n"
        self.write("lib/base/a.cc", own % ("size_of", "int a"))
        self.write("lib/base/b.cc", own % ("count_of", "int a"))
        self.write("lib/base/c.cc", own % ("size_of", "int a"))
        self.expect(own_names.check(self.root))
        self.write("lib/base/b.cc", own % ("size_of", "const char *a,\n  int b"))
        self.expect(own_names.check(self.root), "lib/base/a.cc: size_of() is also a function of lib/base/b.cc")


class DocumentedNames(TreeCase):
    def test_all(self):
        self.write("include/tutti/a.h", "int32_t tutti_open(void);\n")
        self.write("build/include/tutti/ops.h", "int32_t tutti_relu(void);\n")
        self.write("README.md", "`tutti_open`, `tutti_relu`, `tutti_wrap.c` and `tutti_source_<name>`\n")
        built = os.path.join(self.root, "build/include")
        self.expect(documented_names.check(self.root, built))
        self.write("lib/README.md", "first\n`tutti_opens`, `tutti_open`\n")
        self.expect(documented_names.check(self.root, built), "lib/README.md:2: tutti_opens")


class HeadersAlone(TreeCase):
    def test_all(self):
        self.write("include/tutti/good.h", "#ifndef GOOD_H\n#define GOOD_H\n#include <stdint.h>\nint32_t tutti_good(void);\n#endif\n")
        folders = [os.path.join(self.root, "include")]
        self.expect(headers_alone.check(folders, ["cc"], ["c++"]))
        self.write("include/tutti/needs.h", "#ifndef N_H\n#define N_H\nint32_t tutti_needs(void);\n#endif\n")
        self.write("include/tutti/unguarded.h", "static const int tutti_unguarded = 1;\n")
        self.expect(headers_alone.check(folders, ["cc"], ["c++"]), "needs.h as c11", "needs.h as c++17", "unguarded.h as c11",
                    "unguarded.h as c++17")


class ReadmeExample(TreeCase):
    def test_all(self):
        self.expect(readme_example.check("text\n```c\nint main(void) { return 0; }\n```\n", [], ["cc"]))
        self.expect(readme_example.check("```c\nint main(void) { return f(); }\n```\n", [], ["cc"]), "f")
        self.expect(readme_example.check("no program", [], ["cc"]), "no C program")


@unittest.skipIf(shutil.which("abidiff") is None, "no abidiff")
class AbiBaseline(TreeCase):
    HEADER = """#define TUTTI_API __attribute__((visibility("default")))
#define TUTTI_MODE_TRAIN ((int)1)
#define TUTTI_VERSION_MINOR 1
enum { TUTTI_A = 1, TUTTI_B = 2 };
typedef struct tutti_s tutti_s;
typedef struct { long long id; } tutti_value;
TUTTI_API int tutti_a(tutti_s *s, float x);
TUTTI_API tutti_value tutti_b(void);
"""
    TABLE = "typedef struct tutti_table {\n  int (*f)(int x);\n} tutti_table;\n"

    def compare(self, header=HEADER, table=TABLE):
        self.write("include/tutti/a.h", header)
        self.write("include/tutti/plugin/b.h", table)
        if not os.path.exists(self.root + "/baseline"):
            abi_baseline.write(self.root + "/baseline", [self.root], ["cc"])
        return (abi_baseline.constant_problems(self.root + "/baseline", [self.root]) +
                abi_baseline.type_problems(self.root + "/baseline", [self.root], ["cc"]))

    def test_all(self):
        self.expect(self.compare())
        self.expect(self.compare(self.HEADER + "#define TUTTI_NEW 1\nTUTTI_API int tutti_c(int a[], void (*f)(int));\n"))
        self.expect(self.compare(self.HEADER.replace("MINOR 1", "MINOR 2")))
        self.expect(self.compare(self.HEADER.replace("float", "double")), "tutti_a")
        self.expect(self.compare(self.HEADER.replace("id;", "id, more;")), "tutti_value")
        self.expect(self.compare(self.HEADER.replace("int tutti_a", "int tutti_d")), "tutti_a")
        self.expect(self.compare(self.HEADER.replace("((int)1)", "((int)2)")), "TUTTI_MODE_TRAIN was ((int)1), is ((int)2)")
        self.expect(self.compare(self.HEADER.replace(", TUTTI_B = 2", "")), "TUTTI_B was 2, is gone")
        self.expect(self.compare(self.HEADER, self.TABLE.replace("int x", "long x")), "tutti_table")


class ReleasedHeaders(TreeCase):
    HEADER = AbiBaseline.HEADER
    TABLE = "typedef struct tutti_t {\n  uint64_t struct_size;\n  /* What it does. */\n  int (*f)(int x);\n} tutti_t;\n"

    def tree(self, folder="", header=HEADER, table=TABLE, abi=1):
        version = f"#define TUTTI_ABI_MAJOR 0\n#define TUTTI_ABI_MINOR {abi}\n"
        self.write(folder + "include/tutti/version.h", version)
        self.write(folder + "include/tutti/a.h", header)
        self.write(folder + "include/tutti/plugin/b.h", "#include <stdint.h>\n" + table)

    def compare(self, version, *args, **kwargs):
        self.write("meson.build", f"project(\n  version: '{version}',\n)\n")
        self.tree("packaging/abi/0.1/")
        self.tree("", *args, **kwargs)
        return released_headers.check(self.root, [self.root], ["cc"])

    def test_before_the_release(self):
        self.expect(self.compare("0.1.0"))
        self.expect(self.compare("0.1.0", self.HEADER.replace(";", "; /* a comment */"), self.TABLE.replace("  ", " ")))
        run = "run packaging/abi/release.sh"
        self.expect(self.compare("0.1.0", self.HEADER + "#define TUTTI_NEW 1\n"), "a.h: differs", run)
        self.write("include/tutti/new.h", "void tutti_new(void);\n")
        self.expect(self.compare("0.1.0"), "new.h: is not frozen", run)
        os.remove(self.root + "/include/tutti/new.h")
        self.write("packaging/abi/0.1/include/tutti/old.hpp", "\n")
        self.expect(self.compare("0.1.0"), "old.hpp: is frozen, and gone", run)

    @unittest.skipIf(not released_headers.has_types(), "no abidiff")
    def test_after_the_release(self):
        longer = self.TABLE.replace("} tutti_t;", "  /* New. */\n  int (*g)(void);\n} tutti_t;")
        for version in ("0.1.1", "0.2.0"):
            self.expect(self.compare(version))
            self.expect(self.compare(version, self.HEADER + "#define TUTTI_NEW 1\nTUTTI_API int tutti_c(int a);\n", longer))
        self.expect(self.compare("0.2.0", self.HEADER, longer.replace("int x", "long x")), "tutti_t")
        self.expect(self.compare("0.2.0", self.HEADER, self.TABLE.replace("  int (*f)", "  int (*g)(void);\n  int (*f)")), "tutti_t")
        self.expect(self.compare("0.2.0", self.HEADER.replace("id;", "id, more;")), "tutti_value")
        self.expect(self.compare("0.2.0", self.HEADER.replace("float", "double")), "tutti_a")
        self.expect(self.compare("0.2.0", self.HEADER.replace("int tutti_a", "int tutti_d")), "tutti_a")
        self.expect(self.compare("0.2.0", self.HEADER.replace("((int)1)", "((int)2)")), "TUTTI_MODE_TRAIN was ((int)1)")
        self.expect(self.compare("0.2.0", abi=2), "remove the folder")


@unittest.skipIf(formatting.formatter() is None, "no clang-format 14")
class Formatting(TreeCase):
    def test_all(self):
        self.write("lib/base/a.cc", "int f(int *x) { return *x; }\n")
        self.expect(formatting.check(self.root, formatting.formatter()))
        self.write("lib/base/c.cc", "// a " + "long " * 30 + "comment\n")
        self.expect(formatting.check(self.root, formatting.formatter()), "c.cc:1: 162 columns")
        self.write("lib/base/b.cc", "int   f( );\n")
        self.assertTrue(formatting.check(self.root, formatting.formatter())[0].startswith("lib/base/b.cc:1"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=0)

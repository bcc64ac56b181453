// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/generated/kernel_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/hash/checksum.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

using base::concat;
using tensor::DType;

namespace {

constexpr const char *kOpNames[] = {
#define TUTTI_ELEMENT_OP_TEXT(name) #name,
    TUTTI_ELEMENT_OPS(TUTTI_ELEMENT_OP_TEXT)
#undef TUTTI_ELEMENT_OP_TEXT
};

std::string hexadecimal(uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(number));
  return text;
}

int32_t operand_count(ElementOp op) { return op < ElementOp::add ? 1 : op == ElementOp::select ? 3 : 2; }

}  // namespace

std::string instruction_text(const ElementInstruction &instruction,
                             const std::function<std::string(int32_t)> &register_text) {
  const int32_t registers[] = {instruction.a, instruction.b, instruction.c};
  std::string text = concat("apply<ElementOp::", kOpNames[static_cast<int32_t>(instruction.op)], ", C>(");
  for (int32_t i = 0; i < 3; ++i)
    text += concat(i < operand_count(instruction.op) ? register_text(registers[i]) : "C(0)", ", ");
  return concat(text, instruction.number == 0 ? "C(0)" : number_text(instruction.number), ")");
}

const char *type_text(Arithmetic arithmetic) {
  constexpr const char *kTypes[] = {"float", "double", "int64_t", "uint64_t"};
  return kTypes[static_cast<int32_t>(arithmetic)];
}

const char *word_text(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::i32:
      return "int32_t";
    case DType::i64:
      return "int64_t";
    case DType::i8:
      return "int8_t";
    case DType::i16:
      return "int16_t";
    case DType::u32:
      return "uint32_t";
    case DType::u64:
      return "uint64_t";
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return "uint16_t";
    case DType::u8:
    case DType::boolean:
    case DType::bytes:
      break;
  }
  return "uint8_t";
}

const char *dtype_text(DType dtype) {
  constexpr const char *kNames[] = {"",           "DType::f32",     "DType::f64", "DType::i32",  "DType::i64",
                                    "DType::u8",  "DType::boolean", "DType::f16", "DType::bf16", "DType::i8",
                                    "DType::i16", "DType::u16",     "DType::u32", "DType::u64",  "DType::bytes"};
  return kNames[static_cast<int32_t>(dtype)];
}

std::string number_text(double number) {
  char text[40];
  std::snprintf(text, sizeof(text), "C(%a)", number);
  return text;
}

KernelText named(const std::string &text) {
  KernelText made;
  made.name = "tutti_" + hexadecimal(base::fnv1a64(text));
  for (size_t at = 0;;) {
    const size_t found = text.find(kName, at);
    made.text += text.substr(at, found - at);
    if (found == std::string::npos) return made;
    made.text += made.name;
    at = found + kName.size();
  }
}

bool can_be_written(const ElementInstruction *instructions, int32_t count) {
  return std::all_of(instructions, instructions + count,
                     [](const ElementInstruction &instruction) { return std::isfinite(instruction.number); });
}

}  // namespace tutti::impl::backend::gpu

// SPDX-License-Identifier: Apache-2.0
#include "data/format/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "data/file/file_system.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Buffer;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

template <typename... Pieces>
Status corrupt_npy(std::string_view name, const Pieces &...pieces) {
  return base::data_loss("corrupt npy file ", base::quoted(name, 400), ": ", base::concat(pieces...));
}

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads the literal of a dictionary with these three keys.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Result<NpyHeader> parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    TUTTI_TRY(expect('{'));
    while (!accept('}')) {
      TUTTI_ASSIGN(const std::string key, string());
      TUTTI_TRY(expect(':'));
      if (key == "descr") {
        TUTTI_ASSIGN(header.descr, string());
        has_descr = true;
      } else if (key == "fortran_order") {
        TUTTI_ASSIGN(header.fortran_order, boolean());
        has_order = true;
      } else if (key == "shape") {
        TUTTI_ASSIGN(header.shape, tuple());
        has_shape = true;
      } else {
        return wrong("a key of an array's header");
      }
      if (!accept(',') && (skip_spaces(), text_.empty() || text_[0] != '}')) return wrong("',' or '}'");
    }
    skip_spaces();
    if (!text_.empty() || !has_descr || !has_order || !has_shape) return wrong("descr, fortran_order and shape");
    return header;
  }

 private:
  void skip_spaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t'))
      text_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_spaces();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  Status expect(char c) { return accept(c) ? Status() : wrong(base::concat("'", c, "'")); }
  Status wrong(std::string_view expected) const {
    return corrupt_npy(name_, "the header: expected ", expected, " before ", base::quoted(text_, 40));
  }
  Result<std::string> string() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"' && !accept('"')) {
      if (!text_.empty() && text_[0] == '[')
        return base::unimplemented("npy file ", base::quoted(name_, 400), " holds records of several fields");
      return wrong("a text");
    }
    const size_t end = text_.find(quote);
    if (end == std::string_view::npos) return wrong("the end of a text");
    std::string text(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return text;
  }
  Result<bool> boolean() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    return wrong("True or False");
  }
  Result<std::vector<int64_t>> tuple() {
    std::vector<int64_t> numbers;
    TUTTI_TRY(expect('('));
    while (!accept(')')) {
      skip_spaces();
      const size_t end = std::min(text_.find_first_not_of("0123456789"), text_.size());
      const std::optional<int64_t> number = base::parse_integer(text_.substr(0, end));
      if (!number || numbers.size() == 64) return wrong("a shape");
      numbers.push_back(*number);
      text_.remove_prefix(end);
      accept('L');  // as Python 2 wrote
      if (!accept(',') && (skip_spaces(), text_.empty() || text_[0] != ')')) return wrong("',' or ')'");
    }
    return numbers;
  }

  std::string_view text_, name_;
};

// What an element is: "<f4" has order '<', kind 'f', 4 bytes.
struct ElementType {
  char order = '|', kind = 0;
  int64_t size = 0;
};

Result<ElementType> parse_descr(const std::string &descr, std::string_view name) {
  ElementType type;
  std::string_view text = descr;
  if (!text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos) {
    type.order = text[0];
    text.remove_prefix(1);
  }
  const std::optional<int64_t> size = base::parse_integer(text.empty() ? text : text.substr(1));
  const int64_t unit = !text.empty() && text[0] == 'U' ? 4 : 1;  // bytes
  if (text.empty() || !size || *size < 0 || *size > INT32_MAX / unit)
    return corrupt_npy(name, "the element type ", base::quoted(descr));
  type.kind = text[0];
  type.size = *size * unit;
  return type;
}

std::optional<DType> dtype_of(const ElementType &type) {
  struct Known {
    char kind;
    int64_t size;
    DType dtype;
  };
  constexpr Known known[] = {{'f', 2, DType::f16}, {'f', 4, DType::f32}, {'f', 8, DType::f64},
                             {'i', 1, DType::i8},  {'i', 2, DType::i16}, {'i', 4, DType::i32},
                             {'i', 8, DType::i64}, {'u', 1, DType::u8},  {'u', 2, DType::u16},
                             {'u', 4, DType::u32}, {'u', 8, DType::u64}, {'b', 1, DType::boolean}};
  for (const Known &one : known) {
    if (one.kind == type.kind && one.size == type.size) return one.dtype;
  }
  if ((type.kind == 'S' || type.kind == 'a' || type.kind == 'U') && type.size > 0) return DType::bytes;
  return std::nullopt;
}

void append_utf8(uint32_t code, std::string &out) {
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr unsigned char kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out.push_back(static_cast<char>(kLead[more] | code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i)
    out.push_back(static_cast<char>(0x80 | (code >> (6 * i) & 0x3f)));
}

// Texts are padded with zeros to the length of the longest.
Result<std::string> text_at(const char *data, const ElementType &type, std::string_view name) {
  if (type.kind != 'U') {
    const std::string_view padded(data, static_cast<size_t>(type.size));
    return std::string(padded.substr(0, padded.find_last_not_of('\0') + 1));
  }
  std::string text;
  size_t end = 0;
  for (int64_t i = 0; i < type.size; i += 4) {
    uint32_t code;
    std::memcpy(&code, data + i, sizeof(code));
    if (type.order == '>') code = __builtin_bswap32(code);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return corrupt_npy(name, "the character ", code);
    append_utf8(code, text);
    if (code != 0) end = text.size();
  }
  text.resize(end);
  return text;
}

// The place of an element in C order, given its place in Fortran order.
int64_t transposed(int64_t position, const Shape &shape) {
  int64_t index = 0, stride = 1;
  for (int32_t axis = shape.rank() - 1; axis >= 0; --axis) {
    int64_t inner = 1;
    for (int32_t before = 0; before < axis; ++before)
      inner *= shape[before];
    index += position / inner % shape[axis] * stride;
    stride *= shape[axis];
  }
  return index;
}

Result<Tensor> make_fixed_texts(const char *data, const ElementType &type, const Shape &shape, bool fortran,
                                std::string_view name) {
  std::vector<std::string> texts(static_cast<size_t>(shape.elements()));
  for (int64_t i = 0; i < shape.elements(); ++i) {
    TUTTI_ASSIGN(texts[static_cast<size_t>(fortran ? transposed(i, shape) : i)],
                 text_at(data + i * type.size, type, name));
  }
  return tensor::make_bytes_tensor(shape, texts);
}

Result<Tensor> copy_numbers(const char *data, DType dtype, const Shape &shape, bool swap, bool fortran) {
  TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape));
  const auto size = static_cast<int64_t>(tensor::size_bytes(dtype));
  char *const target = tensor.mutable_data_as<char>();
  if (!fortran && tensor.size_bytes() > 0) std::memcpy(target, data, static_cast<size_t>(tensor.size_bytes()));
  for (int64_t i = 0; fortran && i < shape.elements(); ++i)
    std::memcpy(target + transposed(i, shape) * size, data + i * size, static_cast<size_t>(size));
  for (int64_t i = 0; swap && i < shape.elements(); ++i)
    std::reverse(target + i * size, target + (i + 1) * size);
  return tensor;
}

Status check_truth_values(const char *data, int64_t count, std::string_view name) {
  const char *const found = std::find_if(data, data + count, [](char c) { return c != 0 && c != 1; });
  if (found == data + count) return Status();
  return corrupt_npy(name, "element ", found - data, " is ", static_cast<unsigned char>(*found), ", expected 0 or 1");
}

// The header's text and where the elements begin.
Result<std::string_view> find_header(std::string_view bytes, std::string_view name) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 10)
    return corrupt_npy(name, "it does not begin with the magic bytes of an npy file");
  const auto major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3) return corrupt_npy(name, "expected version 1, 2 or 3, got ", major);
  const size_t begin = major == 1 ? 10 : 12;
  uint32_t length = 0;
  for (size_t i = begin; i-- > 8;)
    length = length << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
  if (bytes.size() < begin || bytes.size() - begin < length)
    return corrupt_npy(name, "expected ", length, " bytes of header, the file ends before");
  return bytes.substr(begin, length);
}

}  // namespace

Result<Tensor> decode_npy(const Ref<Buffer> &buffer, int64_t offset, int64_t size, std::string_view name) {
  const std::string_view bytes(static_cast<const char *>(buffer->data()) + offset, static_cast<size_t>(size));
  TUTTI_ASSIGN(const std::string_view text, find_header(bytes, name));
  TUTTI_ASSIGN(const NpyHeader header, HeaderParser(text, name).parse());
  TUTTI_ASSIGN(const ElementType type, parse_descr(header.descr, name));
  const std::optional<DType> dtype = dtype_of(type);
  if (!dtype) {
    return base::unimplemented("npy file ", base::quoted(name, 400), ": elements of type ", base::quoted(header.descr),
                               " are not supported");
  }
  const Result<Shape> shape = Shape::make(header.shape);
  if (!shape.ok()) return corrupt_npy(name, shape.status().message());
  const auto begin = static_cast<int64_t>(text.data() + text.size() - bytes.data());
  const int64_t left = size - begin;
  if (shape->elements() > left / type.size || shape->elements() * type.size != left) {
    return corrupt_npy(name, "expected ", shape->elements(), " elements of ", type.size,
                       " bytes after the header, got ", left, " bytes");
  }
  const char *const data = bytes.data() + begin;
  const bool fortran = header.fortran_order && shape->rank() > 1;
  if (*dtype == DType::bytes) return make_fixed_texts(data, type, *shape, fortran, name);
  if (*dtype == DType::boolean) TUTTI_TRY(check_truth_values(data, shape->elements(), name));
  const bool swap = type.order == '>' && type.size > 1;
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(type.size) == 0;
  if (swap || fortran || !is_aligned) return copy_numbers(data, *dtype, *shape, swap, fortran);
  return Tensor::from_buffer(*dtype, *shape, buffer, offset + begin);
}

Result<Tensor> read_npy(const std::string &path, const FileSystems *systems, const Ref<base::CancelToken> &cancel) {
  TUTTI_ASSIGN(const Ref<const ReadableFile> file, open_file(path, systems, cancel));
  TUTTI_ASSIGN(const Ref<Buffer> contents, file->contents());
  return decode_npy(contents, 0, contents->size_bytes(), path);
}

}  // namespace tutti::impl::data

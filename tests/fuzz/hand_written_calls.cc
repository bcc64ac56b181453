// SPDX-License-Identifier: Apache-2.0
// Calls whose arguments depend on each other: see WRITTEN_BY_HAND in generate_calls.py.
#include <cstring>
#include <string>

#include "api_calls.h"

namespace tutti_fuzz {
namespace {

/// What the shape needs when that is little, else a few bytes.
int64_t fitting_size(int32_t dtype, const int64_t *dims, int64_t rank) {
  static const int sizes[] = {0, 4, 8, 4, 8, 1, 1, 2, 2, 1, 2, 2, 4, 8};
  int64_t bytes = dtype > 0 && dtype < 14 ? sizes[dtype] : 1;
  for (int64_t i = 0; dims != nullptr && i < rank; ++i) {
    if (dims[i] < 0 || dims[i] > 8 || bytes > 4096) return 8;
    bytes *= dims[i];
  }
  return bytes <= 4096 ? bytes : 8;
}

/// A shape, and memory of exactly the size that is said.
struct Block {
  explicit Block(Sequence &s) : dtype(s.i32("dtype")), rank(s.count()), dims(s.dims(rank)) {
    const uint8_t how = s.input().byte();
    size = how < 200 ? fitting_size(dtype, dims.get(), rank) : how % 32;
    said = how < 250 ? size : -1;
    memory.reset(new char[static_cast<size_t>(size)]);
    std::memset(memory.get(), how, static_cast<size_t>(size));
    is_null = s.input().byte() < 4;
  }
  const void *data() const { return is_null ? nullptr : memory.get(); }

  int32_t dtype;
  int64_t rank;
  std::unique_ptr<int64_t[]> dims;
  int64_t size = 0, said = 0;
  std::unique_ptr<char[]> memory;
  bool is_null = false;
};

void release_callback(void *user) {
  auto *const registration = static_cast<Registration *>(user);
  registration->memory.reset();
  ++registration->destroyed;
}

/// A DLPack tensor of ours: one allocation, gone when its deleter has run.
struct Lent {
  DLManagedTensorVersioned managed{};
  std::unique_ptr<int64_t[]> dims, strides;
  std::unique_ptr<char[]> memory;
  Registration *registration = nullptr;
};

void delete_lent(DLManagedTensorVersioned *managed) {
  auto *const lent = static_cast<Lent *>(managed->manager_ctx);
  ++lent->registration->destroyed;
  delete lent;
}

/// A file system without files.
int32_t open_nothing(void *, const char *, tutti_cancel *, void **, int64_t *, tutti_error **error) {
  return tutti_error_set(error, TUTTI_NOT_FOUND, "no files here");
}
int32_t read_nothing(void *, void *, int64_t, void *, int64_t, tutti_cancel *, int64_t *, tutti_error **) { return 1; }
void close_nothing(void *, void *) {}
int32_t list_nothing(void *, const char *, tutti_cancel *, tutti_list_fn add, void *listing, tutti_error **) {
  add(listing, "a.txt", 0);
  return TUTTI_OK;
}

/// An Arrow stream that fails at once.
int fail_schema(ArrowArrayStream *, ArrowSchema *) { return 5; }
int fail_next(ArrowArrayStream *, ArrowArray *) { return 5; }
const char *no_text(ArrowArrayStream *) { return nullptr; }
void release_stream(ArrowArrayStream *stream) {
  ++static_cast<Registration *>(stream->private_data)->destroyed;
  stream->release = nullptr;
}

}  // namespace

void call_context_add_file_system(Sequence &s) {
  // One of its own: the default context, which the scope of a strategy may be, keeps what it has been given.
  tutti_context *context = nullptr;
  if (tutti_context_create(nullptr, &context, nullptr) != TUTTI_OK) return;
  const tutti_file_system functions = {sizeof(functions), open_nothing, read_nothing,
                                       close_nothing,     list_nothing, nullptr};
  const char *const scheme = s.text("scheme");
  Registration *const user = s.registration(true);
  Err err(s);
  const int32_t code = tutti_context_add_file_system(context, scheme, s.input().byte() < 6 ? nullptr : &functions, user,
                                                     release_callback, err.get());
  s.check_code("tutti_context_add_file_system", code, err);
  tutti_context_unref(context);
}

void call_pipeline_set_arrow_stream(Sequence &s) {
  tutti_pipeline *const pipeline = s.handle<tutti_pipeline>();
  if (s.input().byte() < 6) return tutti_pipeline_set_arrow_stream(pipeline, nullptr);
  ArrowArrayStream stream = {fail_schema, fail_next, no_text, release_stream, s.registration(true)};
  tutti_pipeline_set_arrow_stream(pipeline, &stream);
}

void call_dataset_to_arrow(Sequence &s) {
  tutti_dataset *const dataset = s.handle<tutti_dataset>();
  const int64_t rows = s.i64("batch_rows");
  ArrowArrayStream stream = {};
  Err err(s);
  const int32_t code = tutti_dataset_to_arrow(dataset, 0, rows, nullptr, &stream, err.get());
  s.check_code("tutti_dataset_to_arrow", code, err);
  if (code != TUTTI_OK) return;
  ArrowSchema schema = {};
  if (stream.get_schema(&stream, &schema) == 0) schema.release(&schema);
  stream.release(&stream);
}

void call_dataset_count_classes(Sequence &s) {
  tutti_dataset *const dataset = s.handle<tutti_dataset>();
  const char *const component = s.text("component");
  int64_t counts[8], needed = 0;
  const int64_t room = s.input().byte() % 10 - 1;
  int64_t *const places = s.input().byte() < 200 ? counts : nullptr;
  Err err(s);
  const int32_t code = tutti_dataset_count_classes(dataset, component, room, s.token(), places,
                                                   s.input().byte() < 200 ? &needed : nullptr, err.get());
  s.check_code("tutti_dataset_count_classes", code, err);
}

void call_cluster_resolver_connect(Sequence &s) {
  tutti_cluster_resolver *const resolver = s.handle<tutti_cluster_resolver>();
  tutti_options *options = nullptr;
  if (tutti_options_create("cluster", &options, nullptr) != TUTTI_OK) return;
  tutti_options_set_i64(options, "connect_timeout_ms", 1);
  Err err(s);
  const int32_t code = tutti_cluster_resolver_connect(resolver, options, err.get());
  s.check_code("tutti_cluster_resolver_connect", code, err);
  tutti_options_unref(options);
}

void call_cancel_set_deadline(Sequence &s) {
  tutti_cancel *const cancel = s.handle<tutti_cancel>();
  Err err(s);
  const int32_t code = tutti_cancel_set_deadline(cancel, s.input().byte() % 100, err.get());
  s.check_code("tutti_cancel_set_deadline", code, err);
}

void call_tensor_from_data(Sequence &s) {
  const Block block(s);
  Out<tutti_tensor> out(s);
  Err err(s);
  const int32_t code =
      tutti_tensor_from_data(block.dtype, block.dims.get(), block.rank, block.data(), block.said, out.get(), err.get());
  s.check_code("tutti_tensor_from_data", code, err);
  out.done("tutti_tensor_from_data", code);
}

void call_tensor_take_memory(Sequence &s) {
  Block block(s);
  Registration *const user = s.registration(true);
  user->memory = std::move(block.memory);
  Out<tutti_tensor> out(s);
  Err err(s);
  const int32_t code =
      tutti_tensor_take_memory(block.dtype, block.dims.get(), block.rank, block.is_null ? nullptr : user->memory.get(),
                               block.said, release_callback, user, out.get(), err.get());
  s.check_code("tutti_tensor_take_memory", code, err);
  out.done("tutti_tensor_take_memory", code);
}

void call_tensor_take_dlpack(Sequence &s) {
  static const DLDataType types[] = {{kDLFloat, 32, 1}, {kDLInt, 32, 1},   {kDLUInt, 8, 1},     {kDLFloat, 16, 1},
                                     {kDLBool, 8, 1},   {kDLFloat, 32, 4}, {kDLComplex, 64, 1}, {kDLInt, 7, 1}};
  auto *const lent = new Lent;
  lent->registration = s.registration(true);
  const auto rank = static_cast<int32_t>(s.input().below(4));
  const DLDataType type = types[s.input().below(std::size(types))];
  int64_t elements = 1;
  lent->dims.reset(new int64_t[static_cast<size_t>(rank)]);
  for (int32_t i = 0; i < rank; ++i)
    elements *= lent->dims[static_cast<size_t>(i)] = static_cast<int64_t>(s.input().below(4));
  const uint8_t how = s.input().byte();
  if (how & 1) {  // strides that stay inside: row-major, or all zero
    lent->strides.reset(new int64_t[static_cast<size_t>(rank)]());
    int64_t stride = 1;
    for (int32_t i = rank - 1; (how & 2) && i >= 0; --i) {
      lent->strides[static_cast<size_t>(i)] = stride;
      stride *= lent->dims[static_cast<size_t>(i)];
    }
  }
  lent->memory.reset(new char[static_cast<size_t>(elements * 16 + 1)]());
  DLManagedTensorVersioned &managed = lent->managed;
  managed.version.major = how & 64 ? 1u + (how & 3) : 1u;
  managed.manager_ctx = lent;
  managed.deleter = delete_lent;
  managed.flags = static_cast<uint64_t>(how >> 7);
  managed.dl_tensor.data = how & 32 && elements == 0 ? nullptr : lent->memory.get();
  managed.dl_tensor.device = {how & 4 && how & 8 ? kDLCUDA : kDLCPU, 0};
  managed.dl_tensor.ndim = how == 255 ? -1 : rank;
  managed.dl_tensor.dtype = type;
  managed.dl_tensor.shape = lent->dims.get();
  managed.dl_tensor.strides = lent->strides.get();
  Out<tutti_tensor> out(s);
  Err err(s);
  const int32_t code = tutti_tensor_take_dlpack(&managed, out.get(), err.get());
  s.check_code("tutti_tensor_take_dlpack", code, err);
  out.done("tutti_tensor_take_dlpack", code);
}

void call_tensor_to_dlpack(Sequence &s) {
  tutti_tensor *const tensor = s.handle<tutti_tensor>();
  DLManagedTensorVersioned *out = nullptr;
  Err err(s);
  const int32_t code = tutti_tensor_to_dlpack(tensor, s.input().byte() < 6 ? nullptr : &out, err.get());
  s.check_code("tutti_tensor_to_dlpack", code, err);
  if ((code != TUTTI_OK) && out != nullptr)
    violation("tutti_tensor_to_dlpack", "an output is not NULL after a failure");
  if (out == nullptr) return;
  if (s.input().byte() < 128) return out->deleter(out);
  tutti_tensor *again = nullptr;  // takes it in every case
  if (tutti_tensor_take_dlpack(out, &again, nullptr) == TUTTI_OK) s.keep(again, 1);
}

void call_tensor_get_mutable_data(Sequence &s) {
  tutti_tensor *const tensor = s.handle<tutti_tensor>();
  void *data = nullptr;
  Err err(s);
  const int32_t code = tutti_tensor_get_mutable_data(tensor, s.input().byte() < 6 ? nullptr : &data, err.get());
  s.check_code("tutti_tensor_get_mutable_data", code, err);
  const int64_t size = tutti_tensor_get_size_bytes(tensor);
  const int32_t dtype = tutti_tensor_get_dtype(tensor);
  if (code == TUTTI_OK && data != nullptr && size > 0 && dtype != TUTTI_DTYPE_BYTES)
    std::memset(data, s.input().byte(), static_cast<size_t>(size));
}

void call_options_set_string(Sequence &s) {
  tutti_options *const options = s.handle<tutti_options>();
  const char *const key = s.text("key");
  const bool is_path = key != nullptr && (std::string(key) == "model_dir" || std::string(key) == "plugin");
  tutti_options_set_string(options, key, is_path ? s.directory() : s.text("value"));
}

void call_pipeline_set_string(Sequence &s) {
  tutti_pipeline *const pipeline = s.handle<tutti_pipeline>();
  const char *const key = s.text("key");
  // A command that is a directory starts nothing.
  const bool is_path = key != nullptr && (std::string(key) == "path" || std::string(key) == "command");
  tutti_pipeline_set_string(pipeline, key, is_path ? s.directory() : s.text("value"));
}

void call_serve_map(Sequence &s) {
  tutti_cancel *const cancel = s.handle<tutti_cancel>();
  Err err(s);
  s.check_code("tutti_serve_map", tutti_serve_map(nullptr, nullptr, cancel, err.get()), err);
}

void call_record_writer_create(Sequence &s) {
  static const char *const compressions[] = {nullptr, "", "none", "gzip", "zlib", "auto"};
  tutti_context *const context = s.handle<tutti_context>();
  const char *const folder = s.directory();
  const std::string path = folder != nullptr && *folder != 0 ? std::string(folder) + ".records" : std::string();
  Out<tutti_record_writer> out(s);
  Err err(s);
  const int32_t code = tutti_record_writer_create(context, folder != nullptr ? path.c_str() : nullptr,
                                                  compressions[s.input().byte() % 6], out.get(), err.get());
  s.check_code("tutti_record_writer_create", code, err);
  out.done("tutti_record_writer_create", code);
}

void call_record_writer_write(Sequence &s) {
  tutti_record_writer *const writer = s.handle<tutti_record_writer>();
  static const char bytes[64] = "record";
  const int64_t size = s.input().byte() % 67 - 1;
  Err err(s);
  const int32_t code = tutti_record_writer_write(writer, size > 64 ? nullptr : bytes, size, err.get());
  s.check_code("tutti_record_writer_write", code, err);
}

void call_options_set_json(Sequence &s) {
  tutti_options *const options = s.handle<tutti_options>();
  tutti_options_set_json(options, s.text("text"));
}

}  // namespace tutti_fuzz

// SPDX-License-Identifier: Apache-2.0
//
// Writers of record files.
#include "capi/record_c.h"

#include <utility>

#include "capi/tensor_c.h"
#include "data/format/encode_example.h"

namespace tutti::impl::capi {

constinit HandleType<RecordWriterObject> record_writer_handles{"record_writer"};

namespace {

/// Calls body(object) for the writer's only user.
template <typename Body>
Status with_writer(tutti_record_writer *writer, Body &&body) {
  TUTTI_ASSIGN(const Ref<RecordWriterObject> object, find(writer, record_writer_handles, "writer"));
  TUTTI_ASSIGN(const SoleUse use, sole_use(object->busy(), "record writer"));
  return body(*object);
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_record_writer_create(tutti_context *context, const char *path, const char *compression,
                                   tutti_record_writer **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    TUTTI_TRY(require(path, "path"));
    TUTTI_ASSIGN(const data::Compression kind,
                 data::parse_compression(compression == nullptr || *compression == 0 ? "none" : compression));
    TUTTI_ASSIGN(data::RecordWriter writer, data::RecordWriter::create(path, kind));
    return emit(base::make_ref<RecordWriterObject>(owner->core(), std::move(writer)), record_writer_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(record_writer, record_writer_handles)

int32_t tutti_record_writer_write(tutti_record_writer *writer, const void *data, int64_t size_bytes,
                                  tutti_error **err) {
  return guard(err, [&] {
    return with_writer(writer, [&](RecordWriterObject &object) -> Status {
      if (size_bytes < 0) return base::invalid_argument("argument 'size_bytes' must be 0 or more, got ", size_bytes);
      if (size_bytes > 0) TUTTI_TRY(require(data, "data"));
      return object.writer().write({static_cast<const char *>(data), static_cast<size_t>(size_bytes)});
    });
  });
}

int32_t tutti_record_writer_add_feature(tutti_record_writer *writer, const char *name, const tutti_tensor *tensor,
                                        tutti_error **err) {
  return guard(err, [&] {
    return with_writer(writer, [&](RecordWriterObject &object) -> Status {
      TUTTI_TRY(require(name, "name"));
      TUTTI_ASSIGN(tensor::Tensor value, find_tensor_of("feature", name, tensor, "tensor"));
      object.features().insert_or_assign(name, std::move(value));
      return Status();
    });
  });
}

int32_t tutti_record_writer_write_example(tutti_record_writer *writer, tutti_error **err) {
  return guard(err, [&] {
    return with_writer(writer, [&](RecordWriterObject &object) -> Status {
      if (!object.lists().empty()) {
        return base::failed_precondition("feature list '", object.lists().begin()->first,
                                         "' was added, which an example cannot contain; expected "
                                         "tutti_record_writer_write_sequence_example");
      }
      const std::map<std::string, tensor::Tensor> features = std::exchange(object.features(), {});
      TUTTI_ASSIGN(const std::string example, data::encode_example(features));
      return object.writer().write(example);
    });
  });
}

int32_t tutti_record_writer_add_feature_list(tutti_record_writer *writer, const char *name, const tutti_tensor *tensor,
                                             const tutti_tensor *lengths, tutti_error **err) {
  return guard(err, [&] {
    return with_writer(writer, [&](RecordWriterObject &object) -> Status {
      TUTTI_TRY(require(name, "name"));
      data::FeatureList list;
      TUTTI_ASSIGN(list.values, find_tensor_of("feature list", name, tensor, "tensor"));
      if (lengths != nullptr) {
        TUTTI_ASSIGN(list.lengths, find_tensor_of("feature list", name, lengths, "lengths"));
      }
      object.lists().insert_or_assign(name, std::move(list));
      return Status();
    });
  });
}

int32_t tutti_record_writer_write_sequence_example(tutti_record_writer *writer, tutti_error **err) {
  return guard(err, [&] {
    return with_writer(writer, [&](RecordWriterObject &object) -> Status {
      const std::map<std::string, tensor::Tensor> context = std::exchange(object.features(), {});
      const std::map<std::string, data::FeatureList> lists = std::exchange(object.lists(), {});
      TUTTI_ASSIGN(const std::string example, data::encode_sequence_example(context, lists));
      return object.writer().write(example);
    });
  });
}

int32_t tutti_record_writer_close(tutti_record_writer *writer, tutti_error **err) {
  return guard(err,
               [&] { return with_writer(writer, [](RecordWriterObject &object) { return object.writer().close(); }); });
}

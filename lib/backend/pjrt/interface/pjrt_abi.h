// SPDX-License-Identifier: Apache-2.0
//
// The part of PJRT's C interface (OpenXLA; major version 0) that this backend calls: order of fields, types, places in
// the table, numbers of enumerators. Every function takes a struct of arguments: its size, a chain of extensions
// (NULL), then inputs and results; it returns an error, or NULL. Fields and functions are only ever appended. The names
// are ours; tests/backend/pjrt compares offsets and places with a packaged pjrt_c_api.h where there is one.
#ifndef TUTTI_BACKEND_PJRT_INTERFACE_PJRT_ABI_H_
#define TUTTI_BACKEND_PJRT_INTERFACE_PJRT_ABI_H_

#include <cstddef>
#include <cstdint>

namespace tutti::impl::backend::pjrt::abi {

struct Error;
struct Event;
struct Client;
struct Device;
struct DeviceDescription;
struct Memory;
struct TopologyDescription;
struct Executable;
struct LoadedExecutable;
struct Buffer;

/// Places of functions in the table.
enum Function : size_t {
  kErrorDestroy = 0,
  kErrorMessage = 1,
  kErrorCode = 2,
  kPluginInitialize = 3,
  kPluginAttributes = 4,
  kEventDestroy = 5,
  kEventIsReady = 6,
  kEventAwait = 8,
  kEventOnReady = 9,
  kClientCreate = 10,
  kClientDestroy = 11,
  kClientPlatformName = 12,
  kClientPlatformVersion = 14,
  kClientAddressableDevices = 16,
  kClientCompile = 20,
  kClientBufferFromHost = 22,
  kDescriptionId = 23,
  kDescriptionKind = 26,
  kDescriptionText = 28,
  kDeviceDescription = 29,
  kDeviceMemoryStats = 34,
  kExecutableDestroy = 40,
  kExecutableCost = 46,
  kLoadedDestroy = 50,
  kLoadedExecutable = 51,
  kLoadedExecute = 55,
  kBufferDestroy = 58,
  kBufferToHost = 70,
  kTopologyCreate = 82,
  kTopologyDestroy = 83,
  kTopologyDevices = 86,
  kCompile = 89,
  kExecutableMemory = 96,
};

/// Of the table, whose length says which functions there are.
struct Table {
  size_t size;
  void *extensions;
  struct {
    size_t size;
    void *extensions;
    int32_t major, minor;
  } version;
  Error *(*functions[1])(void *arguments);
};

/// First fields of every struct of arguments.
struct Head {
  size_t size;
  void *extensions;
};

struct NoArguments : Head {};

struct ErrorMessage : Head {
  const Error *error;
  const char *text;
  size_t length;
};

struct ErrorCode : Head {
  const Error *error;
  int32_t code;  ///< as of absl::StatusCode, which are tutti's
};

/// Of functions that take one object: those that destroy, kEventAwait.
struct OneObject : Head {
  void *object;
};

struct EventIsReady : Head {
  Event *event;
  bool is_ready;
};

struct EventOnReady : Head {
  Event *event;
  void (*callback)(Error *error, void *user);  ///< takes the error
  void *user;
};

enum ValueKind : int32_t { kText = 0, kInteger = 1, kIntegers = 2, kFloat = 3, kBool = 4 };

struct NamedValue : Head {
  const char *name;
  size_t name_length;
  int32_t kind;
  union {
    const char *text;
    int64_t integer;
    const int64_t *integers;
    float number;
    bool truth;
  } value;
  size_t count;  ///< of characters or integers, else 1
};

struct PluginAttributes : Head {
  const NamedValue *values;
  size_t count;
};

/// Makes an error of the plug-in's, for what the host was asked and could not do.
using MakeError = Error *(*)(int32_t code, const char *text, size_t length);

/// What processes tell each other, by key: a plug-in asks the host. It lets a value go by `release`.
struct KeyValueGet : Head {
  const char *key;
  size_t key_length;
  int32_t timeout_ms;
  const MakeError *make_error;
  void *user;
  char *value;
  size_t value_length;
  void (*release)(char *value);
};

struct KeyValueTryGet : Head {
  const char *key;
  size_t key_length;
  const MakeError *make_error;
  void *user;
  char *value;
  size_t value_length;
  void (*release)(char *value);
};

struct KeyValuePut : Head {
  const char *key;
  size_t key_length;
  const char *value;
  size_t value_length;
  const MakeError *make_error;
  void *user;
};

struct ClientCreate : Head {
  const NamedValue *options;
  size_t option_count;
  Error *(*get)(KeyValueGet *);  ///< all null for a process alone
  void *get_user;
  Error *(*put)(KeyValuePut *);
  void *put_user;
  Client *client;
  Error *(*try_get)(KeyValueTryGet *);
  void *try_get_user;
};

/// A text that lives as long as the object.
struct ObjectText : Head {
  void *object;
  const char *text;
  size_t length;
};

struct ClientDevices : Head {
  Client *client;
  Device *const *devices;
  size_t count;
};

struct DescriptionOf : Head {
  Device *device;
  DeviceDescription *description;
};

struct DescriptionId : Head {
  DeviceDescription *description;
  int32_t id;
};

struct MemoryStats : Head {
  Device *device;
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  bool peak_is_set;
  int64_t allocations;
  bool allocations_is_set;
  int64_t largest_allocation;
  bool largest_is_set;
  int64_t bytes_limit;
  bool limit_is_set;
};

struct ProgramCode : Head {
  char *code;
  size_t code_size;
  const char *format;  ///< "mlir"
  size_t format_length;
};

struct ClientCompile : Head {
  Client *client;
  const ProgramCode *program;
  const char *options;  ///< xla.CompileOptionsProto
  size_t options_size;
  LoadedExecutable *executable;
};

enum BufferType : int32_t {
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kBf16 = 13,
};

enum HostSemantics : int32_t { kOnlyDuringCall = 0 };

struct BufferFromHost : Head {
  Client *client;
  const void *data;
  int32_t type;
  const int64_t *dims;
  size_t rank;
  const int64_t *strides;
  size_t stride_count;
  int32_t semantics;
  Device *device;
  Memory *memory;
  void *layout;
  Event *done;
  Buffer *buffer;
};

/// Which axis is the innermost one, the next, ... and no tiles.
struct HostLayout : Head {
  struct : Head {
    const int64_t *minor_to_major;
    size_t rank;
    const int64_t *tile_dims;
    const size_t *tile_ranks;
    size_t tile_count;
  } tiled;
  int32_t kind;  ///< 0: tiled
};

struct BufferToHost : Head {
  Buffer *source;
  HostLayout *layout;
  void *destination;
  size_t bytes;
  Event *event;
};

struct ExecuteOptions : Head {
  void *send_callbacks, *receive_callbacks;
  size_t send_count, receive_count;
  int32_t launch;
  const int64_t *kept_inputs;  ///< inputs that are not to be donated after all
  size_t kept_count;
  void *context;
};

struct Execute : Head {
  LoadedExecutable *executable;
  ExecuteOptions *options;
  Buffer *const *const *arguments;  ///< [device][argument]
  size_t device_count;
  size_t argument_count;
  Buffer **const *results;  ///< [device][result]
  Event **done;             ///< [device]
  Device *device;           ///< NULL: those that it was compiled for
};

struct ExecutableOf : Head {
  LoadedExecutable *loaded;
  Executable *executable;
};

struct CompiledMemory : Head {
  Executable *executable;
  int64_t code, arguments, results, aliased, temporary;
  int64_t host_code, host_arguments, host_results, host_aliased, host_temporary;
  int64_t peak;
};

struct ExecutableCost : Head {
  Executable *executable;
  size_t count;
  const NamedValue *values;
};

struct TopologyCreate : Head {
  const char *name;
  size_t name_length;
  const NamedValue *options;
  size_t option_count;
  TopologyDescription *topology;
};

struct TopologyDevices : Head {
  TopologyDescription *topology;
  DeviceDescription *const *devices;
  size_t count;
};

struct Compile : Head {
  const TopologyDescription *topology;
  const ProgramCode *program;
  const char *options;
  size_t options_size;
  Client *client;
  Executable *executable;
};

}  // namespace tutti::impl::backend::pjrt::abi

#endif  // TUTTI_BACKEND_PJRT_INTERFACE_PJRT_ABI_H_

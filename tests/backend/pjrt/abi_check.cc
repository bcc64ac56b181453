// SPDX-License-Identifier: Apache-2.0
//
// The declarations of lib/backend/pjrt/interface/pjrt_abi.h against those of a packaged pjrt_c_api.h, at compile time.
// tests/pjrt.sh compiles it where the package of the plug-in has that header.
#include <pjrt_c_api.h>

#include <cstddef>

#include "backend/pjrt/interface/pjrt_abi.h"

namespace abi = tutti::impl::backend::pjrt::abi;

#define SAME_FUNCTION(ours, theirs) \
  static_assert(offsetof(abi::Table, functions) + abi::ours * sizeof(void *) == offsetof(PJRT_Api, theirs))
#define SAME_FIELD(ours, field, theirs, their_field) \
  static_assert(offsetof(abi::ours, field) == offsetof(theirs, their_field))

#pragma GCC diagnostic ignored "-Winvalid-offsetof"

SAME_FUNCTION(kErrorDestroy, PJRT_Error_Destroy);
SAME_FUNCTION(kErrorMessage, PJRT_Error_Message);
SAME_FUNCTION(kErrorCode, PJRT_Error_GetCode);
SAME_FUNCTION(kPluginInitialize, PJRT_Plugin_Initialize);
SAME_FUNCTION(kPluginAttributes, PJRT_Plugin_Attributes);
SAME_FUNCTION(kEventDestroy, PJRT_Event_Destroy);
SAME_FUNCTION(kEventIsReady, PJRT_Event_IsReady);
SAME_FUNCTION(kEventAwait, PJRT_Event_Await);
SAME_FUNCTION(kEventOnReady, PJRT_Event_OnReady);
SAME_FUNCTION(kClientCreate, PJRT_Client_Create);
SAME_FUNCTION(kClientDestroy, PJRT_Client_Destroy);
SAME_FUNCTION(kClientPlatformName, PJRT_Client_PlatformName);
SAME_FUNCTION(kClientPlatformVersion, PJRT_Client_PlatformVersion);
SAME_FUNCTION(kClientAddressableDevices, PJRT_Client_AddressableDevices);
SAME_FUNCTION(kClientCompile, PJRT_Client_Compile);
SAME_FUNCTION(kClientBufferFromHost, PJRT_Client_BufferFromHostBuffer);
SAME_FUNCTION(kDescriptionId, PJRT_DeviceDescription_Id);
SAME_FUNCTION(kDescriptionKind, PJRT_DeviceDescription_Kind);
SAME_FUNCTION(kDescriptionText, PJRT_DeviceDescription_ToString);
SAME_FUNCTION(kDeviceDescription, PJRT_Device_GetDescription);
SAME_FUNCTION(kDeviceMemoryStats, PJRT_Device_MemoryStats);
SAME_FUNCTION(kExecutableDestroy, PJRT_Executable_Destroy);
SAME_FUNCTION(kExecutableCost, PJRT_Executable_GetCostAnalysis);
SAME_FUNCTION(kLoadedDestroy, PJRT_LoadedExecutable_Destroy);
SAME_FUNCTION(kLoadedExecutable, PJRT_LoadedExecutable_GetExecutable);
SAME_FUNCTION(kLoadedExecute, PJRT_LoadedExecutable_Execute);
SAME_FUNCTION(kBufferDestroy, PJRT_Buffer_Destroy);
SAME_FUNCTION(kBufferToHost, PJRT_Buffer_ToHostBuffer);
SAME_FUNCTION(kTopologyCreate, PJRT_TopologyDescription_Create);
SAME_FUNCTION(kTopologyDestroy, PJRT_TopologyDescription_Destroy);
SAME_FUNCTION(kTopologyDevices, PJRT_TopologyDescription_GetDeviceDescriptions);
SAME_FUNCTION(kCompile, PJRT_Compile);
SAME_FUNCTION(kExecutableMemory, PJRT_Executable_GetCompiledMemoryStats);

SAME_FIELD(Table, version.major, PJRT_Api, pjrt_api_version.major_version);
SAME_FIELD(ErrorMessage, length, PJRT_Error_Message_Args, message_size);
SAME_FIELD(ErrorCode, code, PJRT_Error_GetCode_Args, code);
SAME_FIELD(OneObject, object, PJRT_Event_Await_Args, event);
SAME_FIELD(EventIsReady, is_ready, PJRT_Event_IsReady_Args, is_ready);
SAME_FIELD(EventOnReady, user, PJRT_Event_OnReady_Args, user_arg);
SAME_FIELD(NamedValue, value, PJRT_NamedValue, int64_value);
SAME_FIELD(NamedValue, count, PJRT_NamedValue, value_size);
SAME_FIELD(PluginAttributes, count, PJRT_Plugin_Attributes_Args, num_attributes);
SAME_FIELD(ClientCreate, client, PJRT_Client_Create_Args, client);
SAME_FIELD(ClientCreate, get, PJRT_Client_Create_Args, kv_get_callback);
SAME_FIELD(ClientCreate, put, PJRT_Client_Create_Args, kv_put_callback);
SAME_FIELD(ClientCreate, try_get_user, PJRT_Client_Create_Args, kv_try_get_user_arg);
SAME_FIELD(KeyValueGet, make_error, PJRT_KeyValueGetCallback_Args, callback_error);
SAME_FIELD(KeyValueGet, release, PJRT_KeyValueGetCallback_Args, value_deleter_callback);
SAME_FIELD(KeyValueTryGet, release, PJRT_KeyValueTryGetCallback_Args, value_deleter_callback);
SAME_FIELD(KeyValuePut, user, PJRT_KeyValuePutCallback_Args, user_arg);
SAME_FIELD(ObjectText, length, PJRT_Client_PlatformName_Args, platform_name_size);
SAME_FIELD(ClientDevices, count, PJRT_Client_AddressableDevices_Args, num_addressable_devices);
SAME_FIELD(DescriptionOf, description, PJRT_Device_GetDescription_Args, device_description);
SAME_FIELD(DescriptionId, id, PJRT_DeviceDescription_Id_Args, id);
SAME_FIELD(MemoryStats, bytes_in_use, PJRT_Device_MemoryStats_Args, bytes_in_use);
SAME_FIELD(MemoryStats, bytes_limit, PJRT_Device_MemoryStats_Args, bytes_limit);
SAME_FIELD(MemoryStats, limit_is_set, PJRT_Device_MemoryStats_Args, bytes_limit_is_set);
SAME_FIELD(ProgramCode, format_length, PJRT_Program, format_size);
SAME_FIELD(ClientCompile, executable, PJRT_Client_Compile_Args, executable);
SAME_FIELD(BufferFromHost, semantics, PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics);
SAME_FIELD(BufferFromHost, buffer, PJRT_Client_BufferFromHostBuffer_Args, buffer);
SAME_FIELD(HostLayout, tiled.minor_to_major, PJRT_Buffer_MemoryLayout, tiled.minor_to_major);
SAME_FIELD(HostLayout, tiled.tile_count, PJRT_Buffer_MemoryLayout, tiled.num_tiles);
SAME_FIELD(HostLayout, kind, PJRT_Buffer_MemoryLayout, type);
SAME_FIELD(BufferToHost, event, PJRT_Buffer_ToHostBuffer_Args, event);
SAME_FIELD(ExecuteOptions, kept_inputs, PJRT_ExecuteOptions, non_donatable_input_indices);
SAME_FIELD(ExecuteOptions, context, PJRT_ExecuteOptions, context);
SAME_FIELD(Execute, device, PJRT_LoadedExecutable_Execute_Args, execute_device);
SAME_FIELD(ExecutableOf, executable, PJRT_LoadedExecutable_GetExecutable_Args, executable);
SAME_FIELD(CompiledMemory, host_temporary, PJRT_Executable_GetCompiledMemoryStats_Args, host_temp_size_in_bytes);
SAME_FIELD(ExecutableCost, values, PJRT_Executable_GetCostAnalysis_Args, properties);
SAME_FIELD(TopologyCreate, topology, PJRT_TopologyDescription_Create_Args, topology);
SAME_FIELD(TopologyDevices, count, PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions);
SAME_FIELD(Compile, executable, PJRT_Compile_Args, executable);

static_assert(int{abi::kS64} == int{PJRT_Buffer_Type_S64} && int{abi::kBf16} == int{PJRT_Buffer_Type_BF16} &&
              int{abi::kPred} == int{PJRT_Buffer_Type_PRED} && int{abi::kU64} == int{PJRT_Buffer_Type_U64});
static_assert(int{abi::kOnlyDuringCall} == int{PJRT_HostBufferSemantics_kImmutableOnlyDuringCall});

int main() { return 0; }

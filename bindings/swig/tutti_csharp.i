/* SPDX-License-Identifier: Apache-2.0
 *
 * C#. Handles are IntPtr, outputs are `out` parameters, lists are arrays, which the runtime keeps in place during the
 * call. Text goes over as UTF-8 in a byte array that a zero byte ends, and comes back as an address that is read at
 * once. Constants are C# constants, so that nothing is called before the library has been found.
 */
%module Raw
%pragma(csharp) moduleclassmodifiers="internal static class"
%pragma(csharp) imclassclassmodifiers="internal static class"
%csconst(1);

%insert(header) "handle_layer.h"
%insert(header) "call_queue.h"
%insert(header) "element_calls.h"
%insert(header) "file_calls.h"
%insert(header) "lent_memory.h"
%insert(header) %{
/* The managed functions, set once before anything else is called. */
static int32_t (*csharp_model_function)(int64_t token, void *graph, int32_t mode, void **err);
static int32_t (*csharp_map_function)(int64_t token, void *graph, void **err);
static int32_t (*csharp_hook_function)(int64_t token, const void *event, void **err);
static void (*csharp_log_function)(int64_t token, int32_t severity, const char *text);

static void tutti_swig_set_upcalls(void *model, void *map, void *hook, void *log) {
  csharp_model_function = (int32_t(*)(int64_t, void *, int32_t, void **))model;
  csharp_map_function = (int32_t(*)(int64_t, void *, void **))map;
  csharp_hook_function = (int32_t(*)(int64_t, const void *, void **))hook;
  csharp_log_function = (void (*)(int64_t, int32_t, const char *))log;
}

static int32_t csharp_model(int64_t token, tutti_graph *graph, int32_t mode, tutti_error **err) {
  void *error = NULL;
  int32_t code = csharp_model_function(token, graph, mode, &error);
  if (error != NULL) *err = error;
  return code;
}

static int32_t csharp_map(int64_t token, tutti_graph *graph, tutti_error **err) {
  void *error = NULL;
  int32_t code = csharp_map_function(token, graph, &error);
  if (error != NULL) *err = error;
  return code;
}

static int32_t csharp_hook(int64_t token, const tutti_hook_event *event, tutti_error **err) {
  void *error = NULL;
  int32_t code = csharp_hook_function(token, event, &error);
  if (error != NULL) *err = error;
  return code;
}

static void csharp_log(int64_t token, int32_t severity, const char *text) { csharp_log_function(token, severity, text); }

static const struct tutti_upcalls language_upcalls = {csharp_model, csharp_map, csharp_hook, csharp_log};
%}

/* Numbers. SWIG's stdint.i makes int64_t a long long, which on Linux is another type behind a pointer. */
%define TUTTI_NUMBER(CTYPE, CSTYPE)
%typemap(ctype) CTYPE "CTYPE"
%typemap(imtype) CTYPE "CSTYPE"
%typemap(cstype) CTYPE "CSTYPE"
%typemap(in) CTYPE %{ $1 = $input; %}
%typemap(out) CTYPE %{ $result = $1; %}
%typemap(csin) CTYPE "$csinput"
%typemap(csout) CTYPE { return $imcall; }
%enddef
TUTTI_NUMBER(int32_t, int)
TUTTI_NUMBER(int64_t, long)
TUTTI_NUMBER(uint8_t, byte)
%typemap(cstype) uint8_t "bool"
%typemap(csin) uint8_t "(byte)($csinput ? 1 : 0)"
%typemap(csout) uint8_t { return $imcall != 0; }

/* A value of a graph is its number. */
%typemap(ctype) tutti_value "int64_t"
%typemap(imtype) tutti_value "long"
%typemap(cstype) tutti_value "long"
%typemap(in) tutti_value %{ $1.id = $input; %}
%typemap(out) tutti_value %{ $result = $1.id; %}
%typemap(csin) tutti_value "$csinput"
%typemap(csout) tutti_value { return $imcall; }

%define TUTTI_ADDRESS(CTYPE)
%typemap(ctype) CTYPE "void *"
%typemap(imtype) CTYPE "global::System.IntPtr"
%typemap(cstype) CTYPE "global::System.IntPtr"
%typemap(in) CTYPE %{ $1 = ($1_ltype)$input; %}
%typemap(out) CTYPE %{ $result = (void *)$1; %}
%typemap(csin) CTYPE "$csinput"
%typemap(csout) CTYPE { return $imcall; }
%enddef
TUTTI_ADDRESS(void *)
TUTTI_ADDRESS(const void *)
TUTTI_ADDRESS(DLManagedTensorVersioned *)
TUTTI_ADDRESS(struct ArrowArrayStream *)
TUTTI_ADDRESS(struct tutti_call_queue *)
TUTTI_ADDRESS(struct tutti_call *)
TUTTI_ADDRESS(const struct tutti_call *)

/* A place that the function fills; NULL before the call, whatever stood there. */
%define TUTTI_OUTPUT(CTYPE)
%typemap(ctype) CTYPE "void **"
%typemap(imtype) CTYPE "out global::System.IntPtr"
%typemap(cstype) CTYPE "out global::System.IntPtr"
%typemap(in) CTYPE %{ $1 = ($1_ltype)$input; *$1 = NULL; %}
%typemap(csin) CTYPE "out $csinput"
%enddef
TUTTI_OUTPUT(void **)
TUTTI_OUTPUT(DLManagedTensorVersioned **)
%typemap(ctype) uint8_t *has_element "uint8_t *"
%typemap(imtype) uint8_t *has_element "out byte"
%typemap(cstype) uint8_t *has_element "out byte"
%typemap(in) uint8_t *has_element %{ $1 = $input; *$1 = 0; %}
%typemap(csin) uint8_t *has_element "out $csinput"
%typemap(ctype) int64_t *needed "int64_t *"
%typemap(imtype) int64_t *needed "out long"
%typemap(cstype) int64_t *needed "out long"
%typemap(in) int64_t *needed %{ $1 = $input; *$1 = 0; %}
%typemap(csin) int64_t *needed "out $csinput"

%define TUTTI_HANDLE(NAME)
TUTTI_ADDRESS(tutti_##NAME *)
TUTTI_ADDRESS(const tutti_##NAME *)
TUTTI_OUTPUT(tutti_##NAME **)
%enddef

/* Lists; their lengths are arguments of their own. */
%define TUTTI_ARRAY(CTYPE, CSTYPE, DIRECTION)
%typemap(ctype) CTYPE "void *"
%typemap(imtype, inattributes="[global::System.Runtime.InteropServices." #DIRECTION "]") CTYPE "CSTYPE[]"
%typemap(cstype) CTYPE "CSTYPE[]"
%typemap(in) CTYPE %{ $1 = ($1_ltype)$input; %}
%typemap(csin) CTYPE "$csinput"
%enddef
TUTTI_ARRAY(const int64_t *, long, In)
TUTTI_ARRAY(int64_t *values, long, Out)
TUTTI_ARRAY(int64_t *counts, long, Out)
TUTTI_ARRAY(const double *, double, In)
TUTTI_ARRAY(const tutti_value *, long, In)
TUTTI_ARRAY(tutti_value *, long, Out)
TUTTI_ARRAY(tutti_tensor *const *, global::System.IntPtr, In)
TUTTI_ARRAY(const char *texts, byte, In)

/* Text. */
%typemap(ctype) const char * "const char *"
%typemap(imtype, out="global::System.IntPtr", inattributes="[global::System.Runtime.InteropServices.In]") const char * "byte[]"
%typemap(cstype) const char * "string"
%typemap(in) const char * %{ $1 = ($1_ltype)$input; %}
%typemap(out) const char * %{ $result = $1; %}
%typemap(csin) const char * "Text.ToC($csinput)"
%typemap(csout) const char * { return Text.FromC($imcall); }

%csconstvalue("long.MinValue") DIM_BATCH;
%include "tutti.i"

void tutti_swig_set_upcalls(void *model, void *map, void *hook, void *log);
void tutti_swig_call_queue_close(struct tutti_call_queue *queue);
void tutti_swig_memory_close(void);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Go. Handles are uintptr, outputs are pointers to Go variables, lists are slices: Go memory without pointers in it, which
 * cgo keeps in place during the call. Text is copied both ways.
 */
%module raw

%insert(header) "handle_layer.h"
%insert(header) "call_queue.h"
%insert(header) "element_calls.h"
%insert(header) "file_calls.h"
%insert(header) "lent_memory.h"
%insert(header) %{
/* The Go functions of exports.go. */
extern int32_t tuttiGoModel(int64_t token, uintptr_t graph, int32_t mode, uintptr_t *err);
extern int32_t tuttiGoMap(int64_t token, uintptr_t graph, uintptr_t *err);
extern int32_t tuttiGoHook(int64_t token, uintptr_t event, uintptr_t *err);
extern void tuttiGoLog(int64_t token, int32_t severity, char *text);

static int32_t go_model(int64_t token, tutti_graph *graph, int32_t mode, tutti_error **err) {
  uintptr_t error = 0;
  int32_t code = tuttiGoModel(token, (uintptr_t)graph, mode, &error);
  if (error != 0) *err = (tutti_error *)error;
  return code;
}

static int32_t go_map(int64_t token, tutti_graph *graph, tutti_error **err) {
  uintptr_t error = 0;
  int32_t code = tuttiGoMap(token, (uintptr_t)graph, &error);
  if (error != 0) *err = (tutti_error *)error;
  return code;
}

static int32_t go_hook(int64_t token, const tutti_hook_event *event, tutti_error **err) {
  uintptr_t error = 0;
  int32_t code = tuttiGoHook(token, (uintptr_t)event, &error);
  if (error != 0) *err = (tutti_error *)error;
  return code;
}

static void go_log(int64_t token, int32_t severity, const char *text) { tuttiGoLog(token, severity, (char *)text); }

static const struct tutti_upcalls language_upcalls = {go_model, go_map, go_hook, go_log};
%}

/* Numbers. SWIG's stdint.i calls int64_t a long long, which on Linux is another type behind a pointer. */
%define TUTTI_NUMBER(C, GO)
%typemap(gotype) C "GO"
%typemap(in) C %{ $1 = (C)$input; %}
%typemap(out) C %{ $result = $1; %}
%typemap(goout) C ""
%enddef
TUTTI_NUMBER(int32_t, int32)
TUTTI_NUMBER(int64_t, int64)
TUTTI_NUMBER(uint8_t, bool)

%define TUTTI_POINTER(C, GO)
%typemap(gotype) C "GO"
%typemap(in) C %{ $1 = ($1_ltype)$input; %}
%enddef
TUTTI_POINTER(uint8_t *, *bool)
TUTTI_POINTER(void **, *uintptr)
TUTTI_POINTER(DLManagedTensorVersioned **, *uintptr)
TUTTI_POINTER(const tutti_value *, *int64)
TUTTI_POINTER(tutti_value *, *int64)
TUTTI_POINTER(int64_t *needed, *int64)

%define TUTTI_ADDRESS(C)
%typemap(gotype) C "uintptr"
%typemap(in) C %{ $1 = ($1_ltype)(uintptr_t)$input; %}
%typemap(out) C %{ $result = ($1_ltype)$1; %}
%typemap(goout) C ""
%enddef
TUTTI_ADDRESS(const void *)
TUTTI_ADDRESS(DLManagedTensorVersioned *)
TUTTI_ADDRESS(struct ArrowArrayStream *)
TUTTI_ADDRESS(struct tutti_call_queue *)
TUTTI_ADDRESS(struct tutti_call *)
TUTTI_ADDRESS(const struct tutti_call *)

%define TUTTI_HANDLE(NAME)
TUTTI_ADDRESS(tutti_##NAME *)
TUTTI_ADDRESS(const tutti_##NAME *)
TUTTI_POINTER(tutti_##NAME **, *uintptr)
%enddef

/* A value of a graph is its number. */
%typemap(gotype) tutti_value "int64"
%typemap(in) tutti_value %{ $1.id = $input; %}
%typemap(out) tutti_value %{ $result = $1.id; %}
%typemap(goout) tutti_value ""

/* Text. A zero byte would end it early, and a path would name another file: it becomes SUBSTITUTE, which no name has.
 * Text that may be left out is NULL when it is empty. */
%insert(header) %{
static char *go_text(const char *bytes, long long size) {
  char *text = malloc((size_t)size + 1);
  if (text == NULL) return NULL;
  for (long long i = 0; i < size; i++)
    text[i] = bytes[i] != 0 ? bytes[i] : '\x1a';
  text[size] = 0;
  return text;
}
%}
%typemap(in) const char * %{ $1 = go_text($input.p, $input.n); %}
%typemap(freearg) const char * %{ free((void *)$1); %}
%define TUTTI_OPTIONAL_TEXT(NAME)
%typemap(in) const char *NAME %{ $1 = $input.n != 0 ? go_text($input.p, $input.n) : NULL; %}
%enddef
TUTTI_OPTIONAL_TEXT(device)
TUTTI_OPTIONAL_TEXT(storage)
TUTTI_OPTIONAL_TEXT(type)

/* Pointer and count. */
%define TUTTI_SLICE(GO, POINTER, COUNT)
%typemap(gotype) (POINTER, COUNT) "[]GO"
%typemap(in) (POINTER, COUNT) %{ $1 = ($1_ltype)$input.array; $2 = (int64_t)$input.len; %}
%enddef
TUTTI_SLICE(int64, const int64_t *dims, int64_t rank)
TUTTI_SLICE(int64, const int64_t *values, int64_t count)
TUTTI_SLICE(int64, int64_t *values, int64_t count)
TUTTI_SLICE(float64, const double *values, int64_t count)
TUTTI_SLICE(int64, tutti_value *more, int64_t more_count)
TUTTI_SLICE(int64, tutti_value *parameters, int64_t count)
TUTTI_SLICE(int64, const tutti_value *results, int64_t count)
TUTTI_SLICE(int64, const tutti_value *wrt, int64_t count)
TUTTI_SLICE(int64, const tutti_value *gradients, int64_t count)
TUTTI_SLICE(byte, const void *data, int64_t size_bytes)
TUTTI_SLICE(byte, const char *texts, int64_t size)
TUTTI_SLICE(uintptr, tutti_tensor *const *components, int64_t count)
TUTTI_SLICE(uintptr, tutti_tensor *const *tensors, int64_t count)

/* A slice whose length is an argument of its own; nil is NULL. */
%typemap(gotype) int64_t *counts "[]int64"
%typemap(in) int64_t *counts %{ $1 = ($1_ltype)$input.array; %}

%include "tutti.i"

/* SPDX-License-Identifier: Apache-2.0
 *
 * Java. Handles are long, outputs are arrays of one element (null = not wanted), lists are arrays. All of them, and
 * text, are copied by the region functions, which never stop the collector; memory that is not copied is lent as direct
 * buffers. The classes are seen inside package org.tutti alone.
 */
%module(jniclassname="RawNative") Raw
%pragma(java) moduleclassmodifiers="final class"
%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) jniclasscode=%{
  static {
    NativeLibrary.load();
  }
%}
%javaconst(1);
%javaconstvalue("Long.MIN_VALUE") DIM_BATCH;

%insert(header) "handle_layer.h"
%insert(header) "call_queue.h"
%insert(header) "element_calls.h"
%insert(header) "file_calls.h"
%insert(header) "lent_memory.h"
%insert(header) "java_upcalls.h"

/* Types that look the same in Java at all levels. */
%define JAVA_TYPE(JNI, JAVA, C...)
%typemap(jni) C "JNI"
%typemap(jtype) C "JAVA"
%typemap(jstype) C "JAVA"
%typemap(javain) C "$javainput"
%typemap(javaout) C { return $jnicall; }
%enddef

/* Numbers. SWIG's stdint.i calls int64_t a long long, which on Linux is another type behind a pointer. */
%define TUTTI_NUMBER(C, JNI, JAVA)
JAVA_TYPE(JNI, JAVA, C)
%typemap(in) C %{ $1 = (C)$input; %}
%typemap(out) C %{ $result = (JNI)$1; %}
%enddef
TUTTI_NUMBER(int32_t, jint, int)
TUTTI_NUMBER(int64_t, jlong, long)
TUTTI_NUMBER(uint8_t, jboolean, boolean)

%define TUTTI_ADDRESS(C)
JAVA_TYPE(jlong, long, C)
%typemap(in) C %{ $1 = ($1_ltype)(uintptr_t)$input; %}
%typemap(out) C %{ $result = (jlong)(uintptr_t)$1; %}
%enddef
TUTTI_ADDRESS(const void *)
TUTTI_ADDRESS(DLManagedTensorVersioned *)
TUTTI_ADDRESS(struct ArrowArrayStream *)
TUTTI_ADDRESS(struct tutti_call_queue *)
TUTTI_ADDRESS(struct tutti_call *)
TUTTI_ADDRESS(const struct tutti_call *)

/* An output: element 0 of an array. */
%define TUTTI_OUTPUT(C, LOCAL, ARRAY, JAVA, SET)
JAVA_TYPE(ARRAY, JAVA, C)
%typemap(in) C (LOCAL local) %{ local = 0; $1 = $input != NULL ? ($1_ltype)(void *)&local : NULL; %}
%typemap(argout) C %{ if ($input != NULL) (*jenv)->SET(jenv, $input, 0, 1, &local$argnum); %}
%enddef
%define TUTTI_POINTER(C)
TUTTI_OUTPUT(C, jlong, jlongArray, long[], SetLongArrayRegion)
%enddef
TUTTI_OUTPUT(uint8_t *, jboolean, jbooleanArray, boolean[], SetBooleanArrayRegion)
TUTTI_POINTER(void **)
TUTTI_POINTER(DLManagedTensorVersioned **)
TUTTI_POINTER(int64_t *needed)

%define TUTTI_HANDLE(NAME)
TUTTI_ADDRESS(tutti_##NAME *)
TUTTI_ADDRESS(const tutti_##NAME *)
TUTTI_POINTER(tutti_##NAME **)
%enddef

/* A value of a graph is its number. */
JAVA_TYPE(jlong, long, tutti_value)
%typemap(in) tutti_value %{ $1.id = $input; %}
%typemap(out) tutti_value %{ $result = $1.id; %}

/* Arrays: a copy that C owns. An array that is null has no elements. */
%insert(header) %{
/* Memory for a copy; NULL, with an exception pending, when there is none. */
static void *java_memory(JNIEnv *env, size_t size) {
  void *memory = malloc(size != 0 ? size : 1);
  if (memory == NULL) {
    jclass error = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
    if (error != NULL) (*env)->ThrowNew(env, error, "no memory for a copy of an array");
  }
  return memory;
}

static int64_t java_length(JNIEnv *env, jarray array) {
  return array != NULL ? (*env)->GetArrayLength(env, array) : 0;
}

static void *java_longs(JNIEnv *env, jlongArray array) {
  jsize count = (jsize)java_length(env, array);
  void *memory = java_memory(env, (size_t)count * sizeof(jlong));
  if (memory != NULL && count != 0) (*env)->GetLongArrayRegion(env, array, 0, count, memory);
  return memory;
}

static void *java_doubles(JNIEnv *env, jdoubleArray array) {
  jsize count = (jsize)java_length(env, array);
  void *memory = java_memory(env, (size_t)count * sizeof(jdouble));
  if (memory != NULL && count != 0) (*env)->GetDoubleArrayRegion(env, array, 0, count, memory);
  return memory;
}

static void *java_chars(JNIEnv *env, jbyteArray array) {
  jsize count = (jsize)java_length(env, array);
  void *memory = java_memory(env, (size_t)count);
  if (memory != NULL && count != 0) (*env)->GetByteArrayRegion(env, array, 0, count, memory);
  return memory;
}
%}
%define TUTTI_ARRAY(ARRAY, JAVA, COPY, POINTER, COUNT)
JAVA_TYPE(ARRAY, JAVA, (POINTER, COUNT))
%typemap(in) (POINTER, COUNT) {
  void *copy = COPY(jenv, $input);
  if (copy == NULL) return $null;
  $1 = ($1_ltype)copy;
  $2 = java_length(jenv, $input);
}
%typemap(freearg) (POINTER, COUNT) %{ free((void *)$1); %}
%typemap(argout) (POINTER, COUNT) ""
%enddef
TUTTI_ARRAY(jlongArray, long[], java_longs, const int64_t *dims, int64_t rank)
TUTTI_ARRAY(jlongArray, long[], java_longs, const int64_t *values, int64_t count)
TUTTI_ARRAY(jlongArray, long[], java_longs, const tutti_value *wrt, int64_t count)
TUTTI_ARRAY(jlongArray, long[], java_longs, const tutti_value *results, int64_t count)
TUTTI_ARRAY(jlongArray, long[], java_longs, const tutti_value *gradients, int64_t count)
TUTTI_ARRAY(jlongArray, long[], java_longs, tutti_tensor *const *components, int64_t count)
TUTTI_ARRAY(jlongArray, long[], java_longs, tutti_tensor *const *tensors, int64_t count)
TUTTI_ARRAY(jdoubleArray, double[], java_doubles, const double *values, int64_t count)
TUTTI_ARRAY(jbyteArray, byte[], java_chars, const char *texts, int64_t size)

/* Arrays that C writes. */
%define TUTTI_ARRAY_OUT(POINTER, COUNT)
TUTTI_ARRAY(jlongArray, long[], java_longs, POINTER, COUNT)
%typemap(argout) (POINTER, COUNT) %{
  if ($input != NULL) (*jenv)->SetLongArrayRegion(jenv, $input, 0, (jsize)$2, (const jlong *)$1);
%}
%enddef
TUTTI_ARRAY_OUT(int64_t *values, int64_t count)
TUTTI_ARRAY_OUT(tutti_value *more, int64_t more_count)
TUTTI_ARRAY_OUT(tutti_value *parameters, int64_t count)

/* Arrays whose count is another array's. */
JAVA_TYPE(jlongArray, long[], const tutti_value *variables, tutti_value *out)
%typemap(in) const tutti_value *variables, tutti_value *out {
  void *copy = java_longs(jenv, $input);
  if (copy == NULL) return $null;
  $1 = ($1_ltype)copy;
}
%typemap(freearg) const tutti_value *variables, tutti_value *out %{ free((void *)$1); %}
%typemap(argout) tutti_value *out %{
  if ($input != NULL) {
    (*jenv)->SetLongArrayRegion(jenv, $input, 0, (*jenv)->GetArrayLength(jenv, $input), (const jlong *)$1);
  }
%}

/* The same; null is NULL. */
JAVA_TYPE(jlongArray, long[], int64_t *counts)
%typemap(in) int64_t *counts {
  $1 = NULL;
  if ($input != NULL) {
    $1 = ($1_ltype)java_longs(jenv, $input);
    if ($1 == NULL) return $null;
  }
}
%typemap(freearg) int64_t *counts %{ free((void *)$1); %}
%typemap(argout) int64_t *counts %{
  if ($input != NULL) {
    (*jenv)->SetLongArrayRegion(jenv, $input, 0, (*jenv)->GetArrayLength(jenv, $input), (const jlong *)$1);
  }
%}

/* Text: UTF-8 in arrays of bytes, which class Text makes and reads; null is NULL. */
%typemap(jni) const char * "jbyteArray"
%typemap(jtype) const char * "byte[]"
%typemap(jstype) const char * "String"
%typemap(javain) const char * "Text.toC($javainput)"
%typemap(javaout) const char * { return Text.fromC($jnicall); }
%typemap(in) const char * {
  $1 = NULL;
  if ($input != NULL) {
    $1 = java_chars(jenv, $input);
    if ($1 == NULL) return $null;
  }
}
%typemap(freearg) const char * %{ free((void *)$1); %}
%typemap(out) const char * %{ $result = java_bytes(jenv, $1); %}

/* Memory of the library's as a direct buffer; memory of a direct buffer for the library. */
%typemap(in, numinputs=0) JNIEnv *env %{ $1 = jenv; %}
JAVA_TYPE(jobject, java.nio.ByteBuffer, jobject)
%typemap(in) jobject %{ $1 = $input; %}
%typemap(out) jobject %{ $result = $1; %}
JAVA_TYPE(jobject, java.nio.ByteBuffer, (const void *data, int64_t size_bytes))
%typemap(in) (const void *data, int64_t size_bytes) %{
  $1 = (*jenv)->GetDirectBufferAddress(jenv, $input);
  $2 = (int64_t)(*jenv)->GetDirectBufferCapacity(jenv, $input);
%}
%insert(header) %{
static jobject tutti_swig_java_buffer(JNIEnv *env, int64_t address, int64_t size_bytes) {
  return (*env)->NewDirectByteBuffer(env, (void *)(uintptr_t)address, size_bytes);
}

/* The array is held while its elements are copied, once; nothing in between enters Java or waits. */
static int32_t tutti_swig_java_tensor(JNIEnv *env, int32_t dtype, const int64_t *dims, int64_t rank, jarray elements,
                                      int64_t size_bytes, tutti_tensor **out, tutti_error **err) {
  void *data = (*env)->GetPrimitiveArrayCritical(env, elements, NULL);
  if (data == NULL) return TUTTI_RESOURCE_EXHAUSTED; /* an OutOfMemoryError is on its way */
  int32_t code = tutti_tensor_from_data(dtype, dims, rank, data, size_bytes, out, err);
  (*env)->ReleasePrimitiveArrayCritical(env, elements, data, JNI_ABORT);
  return code;
}
%}
JAVA_TYPE(jobject, Object, jarray)
%typemap(in) jarray %{ $1 = $input; %}

%include "tutti.i"

jobject tutti_swig_java_buffer(JNIEnv *env, int64_t address, int64_t size_bytes);
int32_t tutti_swig_java_tensor(JNIEnv *env, int32_t dtype, const int64_t *dims, int64_t rank, jarray elements,
                               int64_t size_bytes, tutti_tensor **out, tutti_error **err);

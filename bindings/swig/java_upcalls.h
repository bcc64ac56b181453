/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library's callbacks call in Java: four static methods of org.tutti.Callbacks, found once when the wrapper is
 * loaded, on the class loader that loads it. Header-only C, part of the Java wrapper; behind handle_layer.h.
 *
 * Threads    Callbacks may come on threads of the library. Such a thread is attached as a daemon at its first call and
 *            detached when it ends, so that it neither pays for each call nor keeps the process from ending.
 * Exceptions The methods catch what a program's function throws. Should one throw all the same (no memory, no stack),
 *            the exception ends here and the library gets an error.
 * References A callback's local references are dropped before it returns: a training is one native call, whose frame
 *            would collect those of all its steps.
 */
#ifndef TUTTI_BINDINGS_JAVA_UPCALLS_H_
#define TUTTI_BINDINGS_JAVA_UPCALLS_H_

#include <jni.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static JavaVM *java_machine;
static jclass java_callbacks;
static jmethodID java_model_method, java_map_method, java_hook_method, java_log_method;
static pthread_key_t java_attached;

static void java_detach(void *machine) { (*(JavaVM *)machine)->DetachCurrentThread(machine); }

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *machine, void *reserved) {
  (void)reserved;
  JNIEnv *env = NULL;
  java_machine = machine;
  if ((*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
  if (pthread_key_create(&java_attached, java_detach) != 0) return JNI_ERR;
  jclass callbacks = (*env)->FindClass(env, "org/tutti/Callbacks");
  if (callbacks == NULL) return JNI_ERR;
  java_callbacks = (*env)->NewGlobalRef(env, callbacks);
  (*env)->DeleteLocalRef(env, callbacks);
  if (java_callbacks == NULL) return JNI_ERR;
  java_model_method = (*env)->GetStaticMethodID(env, java_callbacks, "model", "(JJI)J");
  if (java_model_method == NULL) return JNI_ERR;
  java_map_method = (*env)->GetStaticMethodID(env, java_callbacks, "map", "(JJ)J");
  if (java_map_method == NULL) return JNI_ERR;
  java_hook_method = (*env)->GetStaticMethodID(env, java_callbacks, "hook", "(JJ)J");
  if (java_hook_method == NULL) return JNI_ERR;
  java_log_method = (*env)->GetStaticMethodID(env, java_callbacks, "log", "(JI[B)V");
  return java_log_method != NULL ? JNI_VERSION_1_8 : JNI_ERR;
}

/* The calling thread's environment; NULL when Java is at its end and takes no more threads. */
static JNIEnv *java_environment(void) {
  JNIEnv *env = NULL;
  JavaVMAttachArgs arguments = {JNI_VERSION_1_8, (char *)"tutti", NULL};
  if ((*java_machine)->GetEnv(java_machine, (void **)&env, JNI_VERSION_1_8) == JNI_OK) return env;
  if ((*java_machine)->AttachCurrentThreadAsDaemon(java_machine, (void **)&env, &arguments) != JNI_OK) return NULL;
  pthread_setspecific(java_attached, java_machine);
  return env;
}

static int32_t java_failed(tutti_error **err) {
  return tutti_error_set(err, TUTTI_INTERNAL, "Java could not call the function");
}

/* What a method answers: 0, TUTTI_HOOK_STOP, or an error, which is taken. */
static int32_t java_answer(JNIEnv *env, jlong answer, tutti_error **err) {
  if ((*env)->ExceptionCheck(env)) {
    (*env)->ExceptionClear(env);
    return java_failed(err);
  }
  if (answer == TUTTI_OK || answer == TUTTI_HOOK_STOP) return (int32_t)answer;
  tutti_error *error = (tutti_error *)(uintptr_t)answer;
  int32_t code = tutti_error_get_code(error);
  if (err != NULL) {
    *err = error;
  } else {
    tutti_error_unref(error);
  }
  return code;
}

static int32_t java_model(int64_t token, tutti_graph *graph, int32_t mode, tutti_error **err) {
  JNIEnv *env = java_environment();
  if (env == NULL) return java_failed(err);
  jlong answer = (*env)->CallStaticLongMethod(env, java_callbacks, java_model_method, (jlong)token,
                                              (jlong)(uintptr_t)graph, (jint)mode);
  return java_answer(env, answer, err);
}

static int32_t java_map(int64_t token, tutti_graph *graph, tutti_error **err) {
  JNIEnv *env = java_environment();
  if (env == NULL) return java_failed(err);
  jlong answer =
      (*env)->CallStaticLongMethod(env, java_callbacks, java_map_method, (jlong)token, (jlong)(uintptr_t)graph);
  return java_answer(env, answer, err);
}

static int32_t java_hook(int64_t token, const tutti_hook_event *event, tutti_error **err) {
  JNIEnv *env = java_environment();
  if (env == NULL) return java_failed(err);
  jlong answer =
      (*env)->CallStaticLongMethod(env, java_callbacks, java_hook_method, (jlong)token, (jlong)(uintptr_t)event);
  return java_answer(env, answer, err);
}

/* UTF-8 as an array of bytes, which Java decodes: JNI's own text functions know another form of UTF-8. NULL for NULL,
 * and with an exception pending when there is no memory. */
static jbyteArray java_bytes(JNIEnv *env, const char *text) {
  if (text == NULL) return NULL;
  jsize size = (jsize)strlen(text);
  jbyteArray bytes = (*env)->NewByteArray(env, size);
  if (bytes != NULL) (*env)->SetByteArrayRegion(env, bytes, 0, size, (const jbyte *)text);
  return bytes;
}

static void java_log(int64_t token, int32_t severity, const char *text) {
  JNIEnv *env = java_environment();
  if (env == NULL || (*env)->ExceptionCheck(env)) return;
  jbyteArray bytes = java_bytes(env, text);
  if (bytes != NULL) {
    (*env)->CallStaticVoidMethod(env, java_callbacks, java_log_method, (jlong)token, (jint)severity, bytes);
  }
  if ((*env)->ExceptionCheck(env)) (*env)->ExceptionClear(env);
  if (bytes != NULL) (*env)->DeleteLocalRef(env, bytes);
}

static const struct tutti_upcalls language_upcalls = {java_model, java_map, java_hook, java_log};

#endif /* TUTTI_BINDINGS_JAVA_UPCALLS_H_ */

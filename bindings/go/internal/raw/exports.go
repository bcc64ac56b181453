// SPDX-License-Identifier: Apache-2.0

// Package raw is the C interface as SWIG gives it to Go: one function for each C function, handles as uintptr. raw.go
// and tutti_wrap.c are generated (bindings/go/generate.py); only package tutti uses them.
//
// This file holds what the C side calls. Package tutti sets the variables before the first call; none of its functions
// lets a panic out.
package raw

// #cgo pkg-config: tutti
// #cgo CFLAGS: -std=gnu11 -fno-strict-aliasing -Wno-unused-parameter
// #include <stdint.h>
import "C"

import "unsafe"

// Upcalls are the Go functions behind the callbacks of the C interface.
type Upcalls struct {
	Model func(token int64, graph uintptr, mode int32) (code int32, err uintptr)
	Map   func(token int64, graph uintptr) (code int32, err uintptr)
	Hook  func(token int64, event uintptr) (code int32, err uintptr)
	Log   func(token int64, severity int32, text string)
}

// Upcall is set once, by package tutti.
var Upcall Upcalls

//export tuttiGoModel
func tuttiGoModel(token C.int64_t, graph C.uintptr_t, mode C.int32_t, err *C.uintptr_t) C.int32_t {
	code, raised := Upcall.Model(int64(token), uintptr(graph), int32(mode))
	*err = C.uintptr_t(raised)
	return C.int32_t(code)
}

//export tuttiGoMap
func tuttiGoMap(token C.int64_t, graph C.uintptr_t, err *C.uintptr_t) C.int32_t {
	code, raised := Upcall.Map(int64(token), uintptr(graph))
	*err = C.uintptr_t(raised)
	return C.int32_t(code)
}

//export tuttiGoHook
func tuttiGoHook(token C.int64_t, event C.uintptr_t, err *C.uintptr_t) C.int32_t {
	code, raised := Upcall.Hook(int64(token), uintptr(event))
	*err = C.uintptr_t(raised)
	return C.int32_t(code)
}

//export tuttiGoLog
func tuttiGoLog(token C.int64_t, severity C.int32_t, text *C.char) {
	Upcall.Log(int64(token), int32(severity), C.GoString(text))
}

// Bytes is the C memory at an address that the library gave, as a slice; nil when there is none.
func Bytes(address uintptr, size int64) []byte {
	if address == 0 || size == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), size)
}

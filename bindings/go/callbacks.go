// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"runtime/debug"
	"strings"

	"tutti.org/tutti/internal/raw"
)

// What the library calls. A token is a cgo.Handle; the library's C side notes when it is done with one, and reap
// deletes it. So the library never enters Go to free something.

func init() {
	raw.Upcall = raw.Upcalls{Model: callModel, Map: callMap, Hook: callHook, Log: callLog}
}

// mismatch is the error of whatever begins something where the library does not fit this package; else nil.
var mismatch = checkVersion(raw.Abi_version())

func checkVersion(abi int32) error {
	if major, minor := abi>>16, abi&0xffff; major == raw.ABI_MAJOR && minor >= raw.ABI_MINOR {
		return nil
	}
	message := "the library " + raw.Version() + " does not fit this Go package; install one of the same version"
	return &Error{Code: FailedPrecondition, Domain: "tutti", Message: message}
}

func newToken(value any) int64 { return int64(cgo.NewHandle(value)) }

// reap deletes the tokens that the library has released.
func reap() {
	tokens := make([]int64, 64)
	for {
		count := raw.Callback_take_released(tokens)
		for _, token := range tokens[:count] {
			cgo.Handle(token).Delete()
		}
		if count < int64(len(tokens)) {
			return
		}
	}
}

// guarded runs a callback; a panic becomes an error, because C frames cannot be unwound.
func guarded(function func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Place: panicPlace(), Stack: debug.Stack()}
		}
	}()
	return function()
}

// panicPlace is "file:line" of the innermost function of the caller's that is panicking: neither of Go's runtime nor of
// this package. Empty where there is none. For the deferred function that recovers.
func panicPlace() string {
	calls := make([]uintptr, 64)
	frames := runtime.CallersFrames(calls[:runtime.Callers(2, calls)])
	isPanicking := false
	for {
		frame, more := frames.Next()
		if isPanicking && !isOurs(frame) {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
		isPanicking = isPanicking || frame.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}

// isOurs tells whether a frame is of Go's runtime or of this module; its tests are callers of it.
func isOurs(frame runtime.Frame) bool {
	if strings.HasSuffix(frame.File, "_test.go") {
		return false
	}
	for _, prefix := range []string{"runtime.", "tutti.org/tutti.", "tutti.org/tutti/internal/"} {
		if strings.HasPrefix(frame.Function, prefix) {
			return true
		}
	}
	return false
}

// answer is the code and the error that a callback gives to the library.
func answer(err error) (int32, uintptr) {
	if err == nil {
		return 0, 0
	}
	return toC(err)
}

// built is the answer of a callback that builds a graph: its own error, or else the graph's first.
func built(graph uintptr, err error) (int32, uintptr) {
	if err != nil {
		return answer(err)
	}
	var failure uintptr
	code := raw.Graph_check(graph, &failure)
	return code, failure
}

func callModel(token int64, graph uintptr, mode int32) (int32, uintptr) {
	return built(graph, guarded(func() error {
		return cgo.Handle(token).Value().(ModelFunc)(&Graph{graph}, Mode(mode))
	}))
}

func callMap(token int64, graph uintptr) (int32, uintptr) {
	return built(graph, guarded(func() error {
		return cgo.Handle(token).Value().(func(*Graph) error)(&Graph{graph})
	}))
}

func callHook(token int64, event uintptr) (int32, uintptr) {
	stop := false
	err := guarded(func() error {
		err := cgo.Handle(token).Value().(func(*Event) error)(newEvent(event))
		stop = err != nil && errors.Is(err, ErrStop)
		return err
	})
	if stop {
		return hookStop, 0
	}
	return answer(err)
}

func callLog(token int64, severity int32, text string) {
	sink := cgo.Handle(token).Value().(*logSink)
	sink.keep(guarded(func() error {
		sink.write(Severity(severity), text)
		return nil
	}))
}

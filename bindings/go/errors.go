// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"tutti.org/tutti/internal/raw"
)

// Code says what kind of error it is. It is an error itself, so that errors.Is(err, tutti.NotFound) works.
type Code int32

// The canonical codes, as gRPC and Abseil number them.
const (
	Cancelled          Code = raw.CANCELLED
	Unknown            Code = raw.UNKNOWN
	InvalidArgument    Code = raw.INVALID_ARGUMENT
	DeadlineExceeded   Code = raw.DEADLINE_EXCEEDED
	NotFound           Code = raw.NOT_FOUND
	AlreadyExists      Code = raw.ALREADY_EXISTS
	PermissionDenied   Code = raw.PERMISSION_DENIED
	ResourceExhausted  Code = raw.RESOURCE_EXHAUSTED
	FailedPrecondition Code = raw.FAILED_PRECONDITION
	Aborted            Code = raw.ABORTED
	OutOfRange         Code = raw.OUT_OF_RANGE
	Unimplemented      Code = raw.UNIMPLEMENTED
	Internal           Code = raw.INTERNAL
	Unavailable        Code = raw.UNAVAILABLE
	DataLoss           Code = raw.DATA_LOSS
	Unauthenticated    Code = raw.UNAUTHENTICATED
)

// String is the code's name, such as INVALID_ARGUMENT.
func (c Code) String() string { return raw.Code_get_name(int32(c)) }

// Error is the code's name.
func (c Code) Error() string { return c.String() }

// ErrClosed is in the error of a call on an object that was closed.
var ErrClosed = errors.New("the object is closed")

// Detail is one thing that an error tells beside its message, such as {"node", "dense_1/matmul"}.
type Detail struct {
	Key   string // what the value is: "node", "file", "element"
	Value string // in words or digits
}

// Error is an error of the library.
type Error struct {
	Code    Code     // what kind of error it is
	Subcode int64    // a number of the domain, such as an errno; 0 = none
	Domain  string   // who reports: "tutti", "user" for callbacks, or a library
	Message string   // one line, without the causes
	Details []Detail // where it happened, as far as that is known
	Cause   error    // what led to it, or nil: an *Error, or what a callback returned
}

// Error is the whole story on one line: code, message and every cause.
func (e *Error) Error() string {
	text := e.Code.String() + ": " + e.Message
	for _, detail := range e.Details {
		text += " [" + detail.Key + ": " + detail.Value + "]"
	}
	if e.Cause != nil {
		text += "; caused by: " + fmt.Sprint(e.Cause) // which survives a nil pointer
	}
	return text
}

// MarshalJSON is the whole story as JSON, for logs: code, domain, message, and where there are any, subcode, details
// and cause.
func (e *Error) MarshalJSON() ([]byte, error) {
	tree := struct {
		Code    string            `json:"code"`
		Domain  string            `json:"domain"`
		Message string            `json:"message"`
		Subcode int64             `json:"subcode,omitempty"`
		Details map[string]string `json:"details,omitempty"`
		Cause   any               `json:"cause,omitempty"`
	}{Code: e.Code.String(), Domain: e.Domain, Message: e.Message, Subcode: e.Subcode}
	for _, detail := range e.Details {
		if tree.Details == nil {
			tree.Details = make(map[string]string)
		}
		tree.Details[detail.Key] = detail.Value
	}
	switch cause := e.Cause.(type) {
	case nil:
	case *Error:
		tree.Cause = cause
	default: // of a callback
		code, text := describe(cause)
		tree.Cause = &Error{Code: code, Domain: "user", Message: text}
	}
	return json.Marshal(tree)
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is tells whether the target is the error's code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// PanicError is a panic inside a callback, in the error of the call that the callback belonged to.
type PanicError struct {
	Value any    // what was given to panic
	Place string // file:line of the function that panicked, outside of Go's runtime and this package
	Stack []byte // how it came there
}

// Error tells the panic's place and value.
func (e *PanicError) Error() string {
	if e.Place == "" {
		return fmt.Sprint("panic in a callback: ", e.Value)
	}
	return fmt.Sprint("panic in a callback at ", e.Place, ": ", e.Value)
}

// Unwrap is the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Errors of callbacks cross C as an error whose domain is goDomain and a number; the errors themselves wait here. The
// newest are kept, because one may be reported by several calls or by none.
const (
	goDomain   = "go:"
	keptErrors = 1024
)

var raised = struct {
	sync.Mutex
	errors map[int64]error
	last   int64
}{errors: make(map[int64]error)}

func keepError(err error) int64 {
	raised.Lock()
	defer raised.Unlock()
	raised.last++
	raised.errors[raised.last] = err
	delete(raised.errors, raised.last-keptErrors)
	return raised.last
}

func keptError(key int64) error {
	raised.Lock()
	defer raised.Unlock()
	return raised.errors[key]
}

// A feed's error has no domain of its own but a number of 32 bits: its low bits are those of the key, above the codes.
const feedErrors = 1 << 30

func feedNumber(err error) int32 { return int32(feedErrors | keepError(err)%feedErrors) }

func keptFeedError(number int64) error {
	raised.Lock()
	last := raised.last
	raised.Unlock()
	return keptError(last - (last-number%feedErrors)%feedErrors)
}

// original is the Go error that crossed C as this one; nil when it is no such.
func (e *Error) original() error {
	if number := strings.TrimPrefix(e.Domain, goDomain); number != e.Domain {
		key, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil
		}
		e.Domain = "user"
		return keptError(key)
	}
	if e.Domain == "user" && e.Subcode >= feedErrors {
		return keptFeedError(e.Subcode)
	}
	return nil
}

// codeOf is the code under which an error of a callback crosses C.
func codeOf(err error) Code {
	var ours *Error
	if errors.As(err, &ours) && ours.Code > 0 {
		return ours.Code
	}
	var code Code
	if errors.As(err, &code) && code > 0 {
		return code
	}
	return Aborted
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ")

// describe gives a Go error's code and its text on one line. An error whose methods panic, such as a nil pointer of
// some type, must not do so below C frames.
func describe(err error) (code Code, text string) {
	code = Aborted
	if failure := guarded(func() error {
		code, text = codeOf(err), strings.ToValidUTF8(oneLine.Replace(err.Error()), "?")
		return nil
	}); failure != nil {
		text = fmt.Sprintf("an error of type %T, which has no text", err)
	}
	return code, text
}

// toC makes a C error of a Go error; the caller owns it.
func toC(err error) (code int32, handle uintptr) {
	number, text := describe(err)
	var out uintptr
	raw.Error_create(int32(number), goDomain+strconv.FormatInt(keepError(err), 10), text, 0, &out, nil)
	return int32(number), out
}

// fromC makes a Go error of a C error, which it takes.
func fromC(code int32, handle uintptr) error {
	if code == 0 {
		return nil
	}
	if handle == 0 {
		return &Error{Code: Code(code), Domain: "tutti"}
	}
	defer raw.Error_unref(handle)
	return read(handle)
}

// read makes a Go error of a C error that is lent.
func read(handle uintptr) error {
	e := &Error{
		Code:    Code(raw.Error_get_code(handle)),
		Subcode: raw.Error_get_subcode(handle),
		Domain:  raw.Error_get_domain(handle),
		Message: raw.Error_get_message(handle),
	}
	for i := int64(0); i < raw.Error_get_detail_count(handle); i++ {
		key, value := raw.Error_get_detail_key(handle, i), raw.Error_get_detail_value(handle, i)
		e.Details = append(e.Details, Detail{key, value})
	}
	if cause := raw.Error_get_cause(handle); cause != 0 {
		e.Cause = read(cause)
	}
	if e.Code == Unknown && e.Cause != nil {
		e.Code, _ = describe(e.Cause) // a feed's error has our number in place of a code
	}
	if original := e.original(); original != nil {
		return original
	}
	return e
}

func closedError(kind string) error {
	return &Error{Code: FailedPrecondition, Domain: "tutti", Message: "use of a closed " + kind, Cause: ErrClosed}
}

func invalid(format string, values ...any) error {
	return &Error{Code: InvalidArgument, Domain: "tutti", Message: fmt.Sprintf(format, values...)}
}

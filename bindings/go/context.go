// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"sync"
	"sync/atomic"

	"tutti.org/tutti/internal/raw"
)

// Context owns devices, threads, memory budgets and the log sink. Objects of different contexts must not be mixed.
// Where a function takes a *Context, nil means the default one. Its devices are the machine's GPUs, "cuda:0", "cuda:1",
// ..., where a backend for them is installed and can be used, else every core of the processors, "cpu:0", "cpu:1", ...
type Context struct {
	object
	sink atomic.Pointer[logSink]
}

func (c *Context) ref() *handle {
	if c == nil {
		return nil
	}
	return c.handle
}

// Severity is how grave a line of the log is.
type Severity int32

// The severities of the log.
const (
	LogDebug   Severity = raw.LOG_DEBUG
	LogInfo    Severity = raw.LOG_INFO
	LogWarning Severity = raw.LOG_WARNING
	LogError   Severity = raw.LOG_ERROR
)

var severityNames = map[Severity]string{
	LogDebug: "debug", LogInfo: "info", LogWarning: "warning", LogError: "error",
}

// String is the severity's name, such as "warning".
func (s Severity) String() string { return nameOf(severityNames, "Severity", s) }

// NewContext makes a context; nil options are the defaults.
func NewContext(options *ContextOptions) (*Context, error) {
	o, err := newOptions(given(options))
	if err != nil {
		return nil, err
	}
	defer raw.Options_unref(o)
	var out, failure uintptr
	if code := raw.Context_create(o, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return wrapContext(out), nil
}

func wrapContext(number uintptr) *Context {
	return &Context{object: object{newHandle("Context", number, raw.Context_unref)}}
}

// logSink is a function that gets the log, and what went wrong in it.
type logSink struct {
	write func(Severity, string)
	mutex sync.Mutex
	err   error
}

func (s *logSink) keep(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// SetLog sends the log, from a severity on, to a function; nil = nowhere. It is called from any thread, one call at a
// time, and must not call the library. A panic in it is kept for LogError. A nil Context is the default one.
func (c *Context) SetLog(minimum Severity, write func(severity Severity, text string)) error {
	var use uses
	defer use.leave()
	number := use.of(c.ref())
	if use.err != nil {
		return use.err
	}
	defer reap()
	var token int64
	sink := &logSink{write: write}
	if write != nil {
		token = newToken(sink)
	}
	var failure uintptr
	if code := raw.Context_set_log(number, token, int32(minimum), &failure); code != 0 {
		return fromC(code, failure)
	}
	if c != nil {
		c.sink.Store(sink)
	}
	return nil
}

// LogError is the first panic in the function of SetLog, as a *PanicError, or nil. Always nil for the default context.
func (c *Context) LogError() error {
	if c == nil {
		return nil
	}
	sink := c.sink.Load()
	if sink == nil {
		return nil
	}
	sink.mutex.Lock()
	defer sink.mutex.Unlock()
	return sink.err
}

// LoadFileSystem adds the file systems of a shared module, whose paths the sources then read: "http", or the absolute
// path of a module. Settings are a JSON object in the module's own words; "" = its defaults.
func (c *Context) LoadFileSystem(module, settings string) error {
	var use uses
	defer use.leave()
	number := use.of(c.ref())
	if use.err != nil {
		return use.err
	}
	if settings == "" {
		settings = "{}"
	}
	var failure uintptr
	return fromC(raw.Context_load_file_system(number, module, settings, &failure), failure)
}

// StartProfile records what trainings, evaluations and predictions of the context do, from their next step or batch on,
// until StopProfile: each kernel with its time on the device, the steps, and what they wait for. The trace is written
// to a file for Perfetto, or into a directory (one that is there, or a path that ends in "/") whose profiles
// TensorBoard shows; "" = none.
func (c *Context) StartProfile(tracePath string) error {
	var use uses
	defer use.leave()
	number := use.of(c.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	return fromC(raw.Context_start_profile(number, tracePath, &failure), failure)
}

// StopProfile ends the profile and reports how busy devices were, what steps waited for and what layers cost.
func (c *Context) StopProfile() (*Profile, error) {
	var use uses
	defer use.leave()
	number := use.of(c.ref())
	if use.err != nil {
		return nil, use.err
	}
	var failure uintptr
	if text := raw.Context_stop_profile(number, &failure); failure == 0 {
		return decode[Profile](text)
	}
	return nil, fromC(raw.Error_get_code(failure), failure)
}

// Devices are the names of the context's devices, such as "cpu:0".
func (c *Context) Devices() ([]string, error) {
	return c.texts(raw.Context_get_device_name)
}

// DescribeDevices tells what the context's devices are. The first call loads the libraries that their backends make use
// of.
func (c *Context) DescribeDevices() ([]*Device, error) {
	texts, err := c.texts(raw.Context_describe_device)
	if err != nil {
		return nil, err
	}
	var devices []*Device
	for _, text := range texts {
		device, err := decode[Device](text)
		if err != nil {
			return nil, err
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func (c *Context) texts(get func(uintptr, int64) string) ([]string, error) {
	var use uses
	defer use.leave()
	number := use.of(c.ref())
	if use.err != nil {
		return nil, use.err
	}
	var texts []string
	for i := int64(0); i < raw.Context_get_device_count(number); i++ {
		texts = append(texts, get(number, i))
	}
	return texts, nil
}

// Version is the library's version, such as "0.1.0".
func Version() string { return raw.Version() }

// BuildInfo tells how the library was built.
func BuildInfo() (*Build, error) { return decode[Build](raw.Build_info()) }

// HasFeature tells whether the library was built with "backend:cpu", "format:idx", "op:conv2d", ...
func HasFeature(feature string) bool { return raw.Has_feature(feature) }

// WhyUnavailable says why a backend cannot be used here; "" when it can.
func WhyUnavailable(backend string) string { return raw.Why_unavailable(backend) }

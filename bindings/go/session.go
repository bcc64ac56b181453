// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"

	"tutti.org/tutti/internal/raw"
)

// Session is a training, one piece at a time; the estimator's one training until it is finished or closed. It serves
// one goroutine at a time. Closing it without Finish writes nothing more; its steps stay in the estimator.
type Session struct {
	object
	call *call
}

func (s *Session) ref() *handle {
	if s == nil {
		return nil
	}
	return s.handle
}

// OpenSession opens a training. The context, the options and the hooks hold for the whole session.
func (e *Estimator) OpenSession(ctx context.Context, dataset *Dataset, options *TrainOptions,
	hooks ...Hook) (*Session, error) {
	var t training
	defer t.done()
	if err := t.prepare(ctx, e, dataset, options, hooks); err != nil {
		return nil, err
	}
	var out, failure uintptr
	if code := raw.Session_open(t.estimator, t.dataset, t.options, t.hooks, t.call.token, &out, &failure); code != 0 {
		return nil, t.call.result(code, failure)
	}
	session := &Session{call: t.call}
	t.call = nil // the session ends it
	session.handle = newHandle("Session", out, session.drop())
	return session, nil
}

// drop is what ends the session's token together with the session.
func (s *Session) drop() func(uintptr) {
	c := s.call
	return func(number uintptr) {
		raw.Session_unref(number)
		c.end()
	}
}

// Run trains up to `steps` steps; the result's reason is ReasonUnfinished while there is more to do, its loss and
// metrics are of the last step, its examples of all of them.
func (s *Session) Run(steps int64) (*Result, error) {
	var use uses
	defer use.leave()
	number := use.of(s.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	code := raw.Session_run(number, steps, &out, &failure)
	return takeResult(out), s.call.result(code, failure)
}

// SetScalar sets a host scalar of the model; it holds from the next step on.
func (s *Session) SetScalar(name string, value float64) error {
	var use uses
	defer use.leave()
	number := use.of(s.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	code := raw.Session_set_scalar(number, name, value, &failure)
	return fromC(code, failure)
}

// Finish ends the session: it writes the last checkpoint; the result is of the whole session. A session that is closed
// without Finish writes nothing more; its steps stay in the estimator. Finish closes the session, unless it fails.
func (s *Session) Finish() (*Result, error) {
	var use uses
	defer use.leave()
	number := use.of(s.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	if code := raw.Session_close(number, &out, &failure); code != 0 {
		return nil, s.call.result(code, failure)
	}
	s.Close()
	return takeResult(out), nil
}

// SPDX-License-Identifier: Apache-2.0

//go:build !go1.21

package tutti

import (
	"context"
	"sync"
	"time"
)

// watchers are goroutines that wait for the end of contexts: one for each that calls have been made with lately, so
// that a call needs none of its own. context.AfterFunc does without, since Go 1.21.
var watchers = struct {
	sync.Mutex
	of map[<-chan struct{}]*watcher
}{of: map[<-chan struct{}]*watcher{}}

// watcherRest is how long a watcher stays when there are no calls.
const watcherRest = time.Second

type watcher struct {
	calls  map[*call]struct{}
	isUsed bool // since the last look
}

// watch cancels a call when a context ends, until it is told otherwise.
func watch(ctx context.Context, c *call) (unwatch func()) {
	watchers.Lock()
	defer watchers.Unlock()
	done := ctx.Done()
	w := watchers.of[done]
	if w == nil {
		w = &watcher{calls: map[*call]struct{}{}}
		watchers.of[done] = w
		go w.wait(done)
	}
	w.calls[c] = struct{}{}
	w.isUsed = true
	return func() {
		watchers.Lock()
		defer watchers.Unlock()
		delete(w.calls, c)
	}
}

func (w *watcher) wait(done <-chan struct{}) {
	rest := time.NewTicker(watcherRest)
	defer rest.Stop()
	for {
		select {
		case <-done:
			for _, c := range w.leave(done) {
				c.cancel()
			}
			return
		case <-rest.C:
			if w.rests(done) {
				return
			}
		}
	}
}

// leave gives the calls that wait; later ones get another watcher.
func (w *watcher) leave(done <-chan struct{}) (calls []*call) {
	watchers.Lock()
	defer watchers.Unlock()
	delete(watchers.of, done)
	for c := range w.calls {
		calls = append(calls, c)
	}
	return calls
}

// rests leaves when there has been no call since the last look.
func (w *watcher) rests(done <-chan struct{}) bool {
	watchers.Lock()
	defer watchers.Unlock()
	if len(w.calls) > 0 || w.isUsed {
		w.isUsed = false
		return false
	}
	delete(watchers.of, done)
	return true
}

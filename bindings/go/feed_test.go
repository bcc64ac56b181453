// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"runtime"
	"testing"
	"time"
)

// A goroutine has no thread of its own: who takes an element out may push the next, while another takes.
func TestFeedsAreReadAndPushedByChangingThreads(t *testing.T) {
	live(t)
	feed := must[*Feed](t)(NewFeed(nil, 1, FeedComponent{"n", Feature, Int64, nil}))
	dataset := must[*Dataset](t)(NewPipeline(nil).AddFeed(feed).Build())
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, feed, dataset, iterator)
	push := func(n int64) {
		tensor := scalar(n)
		defer tensor.Close()
		if err := feed.Push(background, tensor); err != nil {
			t.Error(n, err)
		}
	}
	take := func(wanted int64) {
		element, err := iterator.Next(background)
		if err != nil || value(element[0]) != wanted {
			t.Error(wanted, err)
		}
		closeAll(element)
	}
	done := make(chan bool)
	func() {
		runtime.LockOSThread() // this thread takes, fills the feed, and waits until another takes
		defer runtime.UnlockOSThread()
		push(0)
		take(0)
		push(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			time.Sleep(20 * time.Millisecond)
			take(1)
			take(2)
			done <- true
		}()
		push(2)
		<-done
	}()
	const last = 300
	pushed := make(chan bool)
	go func() {
		for n := int64(3); n < last; n++ {
			next := make(chan bool)
			go func() { push(n); close(next) }()
			<-next
		}
		pushed <- true
	}()
	for n := int64(3); n < last; n++ {
		go func() { take(n); done <- true }()
		<-done
	}
	<-pushed
}

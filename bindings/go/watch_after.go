// SPDX-License-Identifier: Apache-2.0

//go:build go1.21

package tutti

import "context"

// watch cancels a call when a context ends, until it is told otherwise.
func watch(ctx context.Context, c *call) (unwatch func()) {
	stop := context.AfterFunc(ctx, c.cancel)
	return func() { stop() }
}

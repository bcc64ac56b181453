// SPDX-License-Identifier: Apache-2.0

//go:build race

package tutti

// The race detector's own memory hides that of the test.
const memoryIsMeasurable = false

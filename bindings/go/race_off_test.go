// SPDX-License-Identifier: Apache-2.0

//go:build !race

package tutti

const memoryIsMeasurable = true

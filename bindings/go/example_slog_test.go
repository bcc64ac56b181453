// SPDX-License-Identifier: Apache-2.0

//go:build go1.21

package tutti_test

import (
	"log"
	"log/slog"

	"tutti.org/tutti"
)

func ExampleContext_SetLogger() {
	c := must(tutti.NewContext(&tutti.ContextOptions{Backend: "cpu"}))
	defer c.Close()
	if err := c.SetLogger(slog.Default()); err != nil {
		log.Fatal(err)
	}
	// Output:
}

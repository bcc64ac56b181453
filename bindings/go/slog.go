// SPDX-License-Identifier: Apache-2.0

//go:build go1.21

package tutti

import (
	"context"
	"log/slog"
)

var levels = map[Severity]slog.Level{
	LogDebug: slog.LevelDebug, LogInfo: slog.LevelInfo, LogWarning: slog.LevelWarn, LogError: slog.LevelError,
}

// SetLogger sends the log to a logger, whose handler says from which level on; nil = nowhere. What holds for the
// function of SetLog holds for the handler. Since Go 1.21.
func (c *Context) SetLogger(logger *slog.Logger) error {
	if logger == nil {
		return c.SetLog(LogError, nil)
	}
	return c.SetLog(LogDebug, func(severity Severity, text string) {
		logger.Log(context.Background(), levels[severity], text)
	})
}

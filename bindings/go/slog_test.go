// SPDX-License-Identifier: Apache-2.0

//go:build go1.21

package tutti

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestTheLogGoesToALogger(t *testing.T) {
	live(t)
	c := must[*Context](t)(NewContext(&ContextOptions{LogicalDevices: 1}))
	x, y := toyData()
	p := AddSlices(NewPipeline(c), "x", Feature, x, toyRows, toyColumns)
	dataset := must[*Dataset](t)(AddSlices(p, "y", Label, y).Batch(8, nil).Build())
	estimator := must[*Estimator](t)(NewEstimator(toyModel, &EstimatorOptions{
		Context: c, RunOptions: RunOptions{LogStepCountSteps: I64(1)}}))
	closed(t, c, dataset, estimator)
	var text bytes.Buffer
	level := new(slog.LevelVar)
	if err := c.SetLogger(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level}))); err != nil {
		t.Fatal(err)
	}
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 2}))
	if !strings.Contains(text.String(), "level=INFO msg=") || strings.Contains(text.String(), "level=DEBUG") {
		t.Error(text.String())
	}
	text.Reset()
	level.Set(slog.LevelError) // the handler decides, at any time
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 2}))
	if text.Len() > 0 {
		t.Error(text.String())
	}
	if err := c.SetLogger(nil); err != nil || c.LogError() != nil {
		t.Error(err, c.LogError())
	}
}

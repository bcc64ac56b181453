// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shownModel is toyModel with a summary of each kind.
func shownModel(g *Graph, mode Mode) error {
	if err := toyModel(g, mode); err != nil {
		return err
	}
	x := g.Feature("x")
	g.SummaryScalar("shown/mean of x", g.ReduceMean(x, nil))
	g.SummaryHistogram("shown/x", x)
	g.SummaryImage("shown/images", g.Reshape(x, []int64{DimBatch, 1, toyColumns, 1}), 2)
	g.SummaryText("shown/notes", "*notes*")
	return nil
}

// eventFiles is what is in the event files of a folder.
func eventFiles(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	for _, file := range must[[]string](t)(filepath.Glob(filepath.Join(folder, "events.out.tfevents.*"))) {
		all.Write(must[[]byte](t)(os.ReadFile(file)))
	}
	return all.String()
}

// TestSummaries trains a model with summaries; a hook adds one, and a page for Prometheus has the newest values.
func TestSummaries(t *testing.T) {
	live(t)
	folder, every := t.TempDir(), int64(5)
	dataset := toyDataset(t)
	defer dataset.Close()
	estimator := must[*Estimator](t)(NewEstimator(shownModel, &EstimatorOptions{
		RunOptions: RunOptions{ModelDir: folder, SaveSummarySteps: &every}}))
	defer estimator.Close()
	prometheus := must[*Prometheus](t)(NewPrometheus())
	defer prometheus.Close()
	hooked := OnStep(5, func(e *Event) error {
		writer := e.SummaryWriter()
		defer writer.Close()
		return writer.AddScalar("hooked/twice the loss", 2*e.Loss, e.Step)
	})
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 20}, hooked, prometheus.Hook(1)))
	events := eventFiles(t, folder)
	for _, name := range []string{"shown/mean of x", "shown/x", "shown/images", "hooked/twice the loss", "\x89PNG"} {
		if strings.Count(events, name) < 4 {
			t.Errorf("%q is %d times in the event files", name, strings.Count(events, name))
		}
	}
	if !strings.Contains(events, "*notes*") {
		t.Error("there is no text")
	}
	text := must[string](t)(prometheus.Text())
	for _, line := range []string{"tutti_step 20\n", "tutti_training_running 0\n", `tutti_metric{name="accuracy"} `} {
		if !strings.Contains(text, line) {
			t.Error(text)
		}
	}
	prometheus.Close()
	_, err := estimator.Train(background, dataset, &TrainOptions{Steps: 1}, prometheus.Hook(1))
	if _, closed := prometheus.Text(); !errors.Is(err, InvalidArgument) || closed == nil {
		t.Error(err, closed)
	}
	// Without summaries there is no writer.
	quiet := toyEstimator(t, RunOptions{})
	defer quiet.Close()
	must[*Result](t)(quiet.Train(background, dataset, &TrainOptions{Steps: 1}, OnStep(1, func(e *Event) error {
		if e.SummaryWriter() != nil {
			t.Error("a writer of a run without summaries")
		}
		return nil
	})))
}

func TestSummaryWriter(t *testing.T) {
	live(t)
	folder := filepath.Join(t.TempDir(), "run")
	writer := must[*SummaryWriter](t)(NewSummaryWriter(nil, folder, time.Second))
	points := must[*Tensor](t)(NewTensor([]float32{1, 2, 3, 4, 5, 6}, 3, 2))
	images := must[*Tensor](t)(NewTensor([]uint8{0, 85, 170, 255}, 1, 2, 2, 1))
	labels := must[*Tensor](t)(NewTensor([]bool{true, false, true}, 3))
	scores := must[*Tensor](t)(NewTensor([]float32{0.9, 0.2, 0.4}, 3))
	for _, tensor := range []*Tensor{points, images, labels, scores} {
		defer tensor.Close()
	}
	for name, err := range map[string]error{
		"scalar":     writer.AddScalar("a/curve", math.Inf(1), 1),
		"histogram":  writer.AddHistogram("points", points, 2),
		"image":      writer.AddImage("image", images, 0, 3),
		"text":       writer.AddText("text", "| a |", 4),
		"curve":      writer.AddPRCurve("pr", labels, scores, nil, 0, 5),
		"weighed":    writer.AddPRCurve("pr weighed", labels, scores, scores, 11, 5),
		"embedding":  writer.AddEmbedding("words", points, "a\nb\nc\n"),
		"parameters": writer.AddHyperparameters(map[string]any{"rate": 0.1, "deep": true}, "a/curve"),
		"flush":      writer.Flush(),
	} {
		if err != nil {
			t.Error(name, err)
		}
	}
	if got := must[string](t)(writer.Folder()); got != folder {
		t.Error(got)
	}
	events := eventFiles(t, folder)
	for _, name := range []string{"a/curve", "points", "pr_curves", "pr weighed", "| a |", "hparams", "\x89PNG"} {
		if !strings.Contains(events, name) {
			t.Errorf("%q is not in the event file", name)
		}
	}
	config := string(must[[]byte](t)(os.ReadFile(filepath.Join(folder, "projector_config.pbtxt"))))
	if !strings.Contains(config, `tensor_name: "words"`) {
		t.Error(config)
	}
	if err := writer.AddPRCurve("pr", labels, points, nil, 0, 5); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if err := writer.AddHyperparameters(map[string]any{"none": func() {}}); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	writer.Close()
	if err := writer.AddScalar("a/curve", 1, 2); err == nil {
		t.Error("a closed writer writes")
	}
}

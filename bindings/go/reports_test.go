// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var allOptions = []Options{ContextOptions{}, RunOptions{}, TrainOptions{}, PredictorOptions{}, ClusterOptions{}}

// hasFieldsFor checks that each member of a report's JSON has a field, but for those named.
func hasFieldsFor(t *testing.T, report interface{ JSON() string }, others ...string) {
	t.Helper()
	var tree any
	if err := json.Unmarshal([]byte(report.JSON()), &tree); err != nil {
		t.Fatal(err)
	}
	checkMembers(t, fmt.Sprintf("%T", report), tree, reflect.TypeOf(report), strings.Join(others, " "))
}

func checkMembers(t *testing.T, place string, tree any, kind reflect.Type, others string) {
	t.Helper()
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch tree := tree.(type) {
	case []any:
		for _, element := range tree {
			if kind.Kind() == reflect.Slice {
				checkMembers(t, place, element, kind.Elem(), others)
			}
		}
	case map[string]any:
		if kind.Kind() != reflect.Struct {
			return
		}
		for name, member := range tree {
			field, ok := fieldFor(kind, name)
			if ok {
				checkMembers(t, place+"."+name, member, field.Type, others)
			} else if !strings.Contains(others, name) {
				t.Errorf("%s has no field for %s", place, name)
			}
		}
	}
}

func fieldFor(kind reflect.Type, name string) (reflect.StructField, bool) {
	for _, field := range reflect.VisibleFields(kind) {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == name || tag == "" && strings.EqualFold(field.Name, name) {
			return field, true
		}
	}
	return reflect.StructField{}, false
}

func TestReportsOfDatasets(t *testing.T) {
	live(t)
	dataset := must[*Dataset](t)(toyPipeline().Batch(toyBatch, nil).Prefetch(nil).Build())
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, dataset, iterator)
	spec := must[*DatasetSpec](t)(dataset.Spec())
	hasFieldsFor(t, spec)
	if len(spec.Components) != 2 || spec.BatchSize != toyBatch || spec.Components[1].Role != Label {
		t.Errorf("%+v", spec)
	}
	x := spec.Components[0]
	if x.Name != "x" || x.DType != Float32 || len(x.Dims) != 2 || x.Dims[1].Size != toyColumns ||
		x.Dims[0].Size != -1 || x.Dims[0].Name == "" || !strings.HasPrefix(spec.String(), "x float32[") {
		t.Errorf("%+v", x)
	}
	for i := 0; i < 3; i++ {
		closeAll(must[[]*Tensor](t)(iterator.Next(background)))
	}
	report := must[*InputReport](t)(iterator.Report())
	hasFieldsFor(t, report)
	batch := report.Stages[1]
	if report.Stages[0].Stage != "prefetch" || batch.Stage != "batch" || batch.Elements < 3 || !batch.IsCounted {
		t.Errorf("%+v", report)
	}
	if report.Elapsed <= 0 || report.Elapsed > time.Hour || report.Limit.Stage == "" || report.String() == "" {
		t.Errorf("%+v", report)
	}
	var again map[string]any // a report is written as it was read
	if err := json.Unmarshal(must[[]byte](t)(json.Marshal(report)), &again); err != nil || again["elapsed_ms"] == nil {
		t.Error(again, err)
	}
	dataset.Close()
	if _, err := dataset.Spec(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestReportsOfModels(t *testing.T) {
	live(t)
	c := must[*Context](t)(NewContext(&ContextOptions{LogicalDevices: 2}))
	strategy := must[*Strategy](t)(Mirrored(c))
	x, y := toyData()
	p := AddSlices(NewPipeline(c), "x", Feature, x, toyRows, toyColumns)
	dataset := must[*Dataset](t)(AddSlices(p, "y", Label, y).Repeat(nil).Batch(toyBatch, nil).Build())
	estimator := must[*Estimator](t)(NewEstimator(toyModel, &EstimatorOptions{Context: c, Strategy: strategy}))
	closed(t, c, strategy, dataset, estimator)
	if err := c.StartProfile(""); err != nil {
		t.Fatal(err)
	}
	result := must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 5}))
	profile := must[*Profile](t)(c.StopProfile())
	hasFieldsFor(t, profile)
	if len(profile.Devices) != 2 || len(profile.Replicas) != 2 || profile.Replicas[0].Step <= 0 ||
		profile.Replicas[0].Step > time.Minute || len(profile.Layers) == 0 || profile.String() == "" {
		t.Errorf("%+v", profile)
	}
	hasFieldsFor(t, result.InputReport)
	hasFieldsFor(t, result.StepReport)
	steps := result.StepReport
	if steps.Replicas != 2 || len(steps.Devices) != 2 || steps.StepTime <= 0 || steps.StepTime > time.Minute ||
		!strings.Contains(steps.String(), "on 2 replicas") {
		t.Errorf("%+v", steps)
	}
	estimate := must[*MemoryEstimate](t)(estimator.EstimateMemory(dataset, 0))
	hasFieldsFor(t, estimate)
	if len(estimate.Devices) != 2 || estimate.Devices[0].Total <= 0 || estimate.BatchSize != toyBatch {
		t.Errorf("%+v", estimate)
	}
	predictor := must[*Predictor](t)(estimator.Predictor(nil))
	closed(t, predictor)
	signature := must[*Signature](t)(predictor.Signature())
	hasFieldsFor(t, signature)
	if signature.String() != "takes [x float32[batch 5]]\ngives [class int64[batch]]\n" {
		t.Errorf("%+v", signature)
	}
	plan := must[*Plan](t)(predictor.DescribePlan(background, 8, 1))
	hasFieldsFor(t, plan, "library", "flops", "reads", "writes")
	if plan.Rows != 8 || plan.Step != 5 || len(plan.Kernels) == 0 || plan.Kernels[0].Op == "" || plan.Time <= 0 ||
		plan.Time > time.Minute || len(strings.Split(plan.String(), "\n")) < len(plan.Kernels) {
		t.Errorf("%+v", plan)
	}
}

func TestDescriptions(t *testing.T) {
	build := must[*Build](t)(BuildInfo())
	hasFieldsFor(t, build)
	if build.Version != Version() || len(build.Backends) == 0 {
		t.Errorf("%+v", build)
	}
	for _, device := range must[[]*Device](t)((*Context)(nil).DescribeDevices()) {
		hasFieldsFor(t, device)
		if device.Name == "" || device.Backend == "" || device.String() == "" || device.NUMANode != -1 {
			t.Errorf("%+v", device)
		}
	}
	count := 0
	for _, options := range allOptions {
		for _, key := range must[[]*OptionKey](t)(OptionKeys(options)) {
			hasFieldsFor(t, key)
			if count++; key.Key == "" || key.Type == "" || key.Documentation == "" {
				t.Errorf("%+v", key)
			}
		}
	}
	if count < 40 {
		t.Error("only", count, "options")
	}
	options := RunOptions{Seed: 1<<60 + 1, CollectiveTimeout: time.Second}
	values := must[map[string]OptionValue](t)(ResolvedOptions(options))
	if fmt.Sprint(values["seed"]) != "{1152921504606846977 set}" || values["precision"].Value != "f32" ||
		fmt.Sprint(values["collective_timeout_ms"].Value) != "1000" {
		t.Error(values)
	}
}

func TestReportsOfOtherReleases(t *testing.T) {
	report, err := decode[StepReport](`{"steps": 3, "step_seconds": 0.25, "news": {"from": ["later"]}, "devices": []}`)
	if err != nil || report.Steps != 3 || report.StepTime != 250*time.Millisecond ||
		!strings.Contains(report.JSON(), "later") {
		t.Error(report, err)
	}
	for _, wrong := range []string{"", "{", `{"steps": "three"}`} {
		if report, err := decode[StepReport](wrong); report != nil || !errors.Is(err, Internal) {
			t.Error(report, err)
		}
	}
	signature := must[*Signature](t)(decode[Signature](
		`{"inputs": [], "outputs": ["a", {"name": "b", "dtype": "bf16", "dims": ["batch", 3]}]}`))
	if fmt.Sprint(signature.Outputs) != "[a b bfloat16[batch 3]]" {
		t.Error(signature)
	}
}

func TestThingsPrintShortly(t *testing.T) {
	live(t)
	estimator, dataset := toyEstimator(t, RunOptions{Seed: 1}), toyDataset(t)
	closed(t, estimator, dataset)
	result := must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 2}))
	text := fmt.Sprint(result)
	if !strings.HasPrefix(text, "step 2, loss ") || !strings.Contains(text, ", accuracy ") ||
		!strings.HasSuffix(text, ", max steps") || len(text) > 120 {
		t.Error(text)
	}
	predictor := must[*Predictor](t)(estimator.Predictor(nil))
	test := toyTestset(t)
	batch := must[*Batch](t)(predictor.RunAll(background, test))
	tensor := must[*Tensor](t)(batch.Output("class"))
	closed(t, predictor, test, batch)
	if fmt.Sprint(batch, tensor) != "200 rows of [class] int64[200]" {
		t.Error(batch, tensor)
	}
	tensor.Close()
	shown := fmt.Sprint(tensor, ModeEval, Weight, LogWarning, EventCheckpointSaved, Float16, NotFound)
	if shown != "closed tensor eval weight warning checkpoint saved float16 NOT_FOUND" {
		t.Error(shown)
	}
	shown = fmt.Sprint(ReasonEndOfInput, ReasonUnfinished, Reason(77))
	if shown != "end of input unfinished Reason(77)" {
		t.Error(shown)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	options := ClusterOptions{Worker: 1, JobSecret: "hush"}
	texts := []string{fmt.Sprint(options), fmt.Sprintf("%+v %#v %s", &options, options, options)}
	for _, text := range texts {
		if strings.Contains(text, "hush") || !strings.Contains(text, "Worker:1") ||
			!strings.Contains(text, "(hidden)") {
			t.Error(text)
		}
	}
	if options.JobSecret != "hush" || strings.Contains(fmt.Sprint(ClusterOptions{}), "hidden") {
		t.Error(options.JobSecret)
	}
}

// TestHooksOfTheLibrary trains with progress, which goes to standard error, and with metrics in a file.
func TestHooksOfTheLibrary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.csv")
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	defer dataset.Close()
	defer estimator.Close()
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: 20}, Progress(ProgressLines),
		MetricsFile(path, MetricsCSV, 5)))
	text := string(must[[]byte](t)(os.ReadFile(path)))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if !strings.HasPrefix(lines[0], "event,time,step,epoch,examples_per_second,loss") ||
		strings.Count(text, "\nstep,") != 4 || !strings.HasPrefix(lines[len(lines)-1], "end,") {
		t.Error(text)
	}
	if err := os.WriteFile(path, []byte("something else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := estimator.Train(background, dataset, &TrainOptions{Steps: 1}, MetricsFile(path, MetricsJSONLines, 1))
	if !errors.Is(err, FailedPrecondition) {
		t.Error(err)
	}
	if ProgressBar.String() != "bar" || MetricsJSONLines.String() != "JSON lines" {
		t.Error(ProgressBar, MetricsJSONLines)
	}
}

// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The scenarios that each language does alike: tests/bindings/scenarios.txt says what the lines mean.

// scenario is what the lines so far have set up.
type scenario struct {
	context         *Context
	strategy        *Strategy
	run             RunOptions
	plateau         []string // words of that line; empty = none
	x               []float32
	y               []int32
	rows, columns   int64
	model           ModelFunc
	pipeline        []string
	training        *Dataset
	estimator       *Estimator
	temporaryFolder func() string
	folder          string   // of files; empty before the first
	input           []string // transforms of all data before the batches
	fault           fault
	out             io.Writer
}

func (s *scenario) print(format string, values ...any) {
	fmt.Fprintf(s.out, "= "+format+"\n", values...)
}

func (s *scenario) forgetEstimator() {
	if s.estimator != nil {
		s.estimator.Close()
	}
	if s.training != nil {
		s.training.Close()
	}
	s.estimator, s.training = nil, nil
}

func (s *scenario) forget() {
	s.forgetEstimator()
	if s.strategy != nil {
		s.strategy.Close()
		s.context.Close()
	}
	s.run, s.context, s.strategy, s.folder, s.input, s.fault = RunOptions{}, nil, nil, "", nil, fault{}
	s.plateau = nil
}

// useContext makes a context in place of the former and its strategy.
func (s *scenario) useContext(devices int64) (err error) {
	if s.strategy != nil {
		s.strategy.Close()
		s.context.Close()
		s.strategy = nil
	}
	s.context, err = NewContext(&ContextOptions{Backend: "reference", LogicalDevices: devices})
	return err
}

func (s *scenario) useDevices(count int64) (err error) {
	if err := s.useContext(count); err != nil {
		return err
	}
	s.strategy, err = Mirrored(s.context)
	return err
}

func (s *scenario) setOption(key, value string) {
	number, _ := strconv.ParseInt(value, 10, 64)
	switch key {
	case "seed":
		s.run.Seed = number
	case "determinism":
		s.run.Determinism = Determinism(value)
	case "logical_replicas":
		s.run.LogicalReplicas = number
	case "accumulation_steps":
		s.run.AccumulationSteps = number
	case "all_reduce":
		s.run.AllReduce = AllReduce(value)
	case "params":
		s.run.Params = value
	case "raw_weights":
		s.run.RawWeights = number != 0
	case "keep_outputs":
		s.run.KeepOutputs = number != 0
	case "collective_timeout_ms":
		s.run.CollectiveTimeout = time.Duration(number) * time.Millisecond
	}
}

func (s *scenario) makeData(rows, columns, classes int64, seed uint32) {
	s.rows, s.columns, s.x, s.y = rows, columns, nil, nil
	for i := int64(0); i < rows; i++ {
		s.y = append(s.y, int32(i%classes))
		for j := int64(0); j < columns; j++ {
			seed = seed*1664525 + 1013904223
			value := float32(seed>>8) / (1 << 24)
			if j%classes == i%classes {
				value += 0.5
			}
			s.x = append(s.x, value)
		}
	}
}

func (s *scenario) dataset(transforms ...string) (*Dataset, error) {
	p := NewPipeline(s.context)
	AddSlices(p, "x", Feature, s.x, s.rows, s.columns)
	AddSlices(p, "y", Label, s.y)
	parts := int64(1)
	for i := 0; i < len(transforms); i++ {
		name := transforms[i]
		if name == "repeat" {
			p.Repeat(nil)
			continue
		}
		if name == "shard" { // batches of a part of the data are of a part of the size
			parts = s.strategy.InputPipelineCount()
			p.Shard(parts, s.strategy.InputPipelineID())
			continue
		}
		i++
		count, _ := strconv.ParseInt(transforms[i], 10, 64)
		switch name {
		case "shuffle":
			p.Shuffle(count, nil)
		case "take":
			p.Take(count)
		case "skip":
			p.Skip(count)
		case "batch":
			if count >= parts {
				count /= parts
			}
			p.Batch(count, nil)
		}
	}
	return p.Build()
}

func (s *scenario) needEstimator() (err error) {
	if s.training == nil {
		if s.training, err = s.dataset(s.pipeline...); err != nil {
			return err
		}
	}
	if s.estimator == nil {
		options := EstimatorOptions{Context: s.context, Strategy: s.strategy, RunOptions: s.run}
		s.estimator, err = NewEstimator(s.model, &options)
	}
	return err
}

// trainOptions are of a training of so many steps, or until the end of the data, with what the line "plateau" says.
func (s *scenario) trainOptions(steps int64) *TrainOptions {
	options := &TrainOptions{Steps: steps}
	if len(s.plateau) < 8 {
		return options
	}
	count := func(i int) int64 {
		number, _ := strconv.ParseInt(s.plateau[i], 10, 64)
		return number
	}
	part := func(i int) float64 {
		number, _ := strconv.ParseFloat(s.plateau[i], 64)
		return number
	}
	patience, factor, threshold := count(3), part(5), part(6)
	options.PlateauMetric, options.PlateauHigherIsBetter = s.plateau[0], count(1) != 0
	options.PlateauEverySteps, options.PlateauPatience, options.PlateauCooldown = count(2), &patience, count(4)
	options.PlateauFactor, options.PlateauThreshold, options.PlateauMinimumFactor = &factor, &threshold, part(7)
	return options
}

func (s *scenario) train(steps int64) error {
	if err := s.needEstimator(); err != nil {
		return err
	}
	result, err := s.estimator.Train(background, s.training, s.trainOptions(steps), s.hooks()...)
	if err == nil {
		s.print("step %d loss %.5f", result.Step, result.Loss)
		for _, tensor := range result.Tensors {
			tensor.Close()
		}
	}
	return err
}

func (s *scenario) evaluate(batch string) error {
	if err := s.needEstimator(); err != nil {
		return err
	}
	dataset, err := s.dataset(append(s.input, "batch", batch)...)
	if err != nil {
		return err
	}
	defer dataset.Close()
	result, err := s.estimator.Evaluate(background, dataset, 0)
	if err != nil {
		return err
	}
	s.print("loss %.5f", result.Loss)
	lines := make(map[string]string)
	for name, value := range result.Metrics {
		lines[name] = fmt.Sprintf(" %.5f", value)
	}
	for name, tensor := range result.Tensors {
		values, err := Values[float64](tensor)
		if err != nil {
			return err
		}
		for _, value := range values {
			lines[name] += fmt.Sprintf(" %.5f", value)
		}
		tensor.Close()
	}
	for _, name := range sortedKeys(lines) {
		s.print("%s%s", name, lines[name])
	}
	return nil
}

func sortedKeys[T any](metrics map[string]T) (names []string) {
	for name := range metrics {
		if name != "loss" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

func (s *scenario) predict(rows string) error {
	if err := s.needEstimator(); err != nil {
		return err
	}
	dataset, err := s.dataset(append(append([]string{"take", rows}, s.input...), "batch", "3")...)
	if err != nil {
		return err
	}
	defer dataset.Close()
	predictor, err := s.estimator.Predictor(nil)
	if err != nil {
		return err
	}
	defer predictor.Close()
	batch, err := predictor.RunAll(background, dataset)
	if err != nil {
		return err
	}
	defer batch.Close()
	names := batch.Names()
	sort.Strings(names)
	for _, name := range names {
		if err := s.printRows(batch, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) printRows(batch *Batch, name string) error {
	rows, err := rowTexts(batch, name)
	for _, row := range rows {
		s.print("%s%s", name, row)
	}
	return err
}

// rowTexts are the numbers of each row of an output, a blank before each.
func rowTexts(batch *Batch, name string) (rows []string, err error) {
	if classes, err := Output[int64](batch, name); err == nil {
		for _, class := range classes {
			rows = append(rows, fmt.Sprintf(" %d", class))
		}
		return rows, nil
	}
	values, err := Output[float32](batch, name)
	width := len(values) / int(batch.Rows())
	for i := 0; i < len(values); i += width {
		row := ""
		for _, value := range values[i : i+width] {
			row += fmt.Sprintf(" %.5f", value)
		}
		rows = append(rows, row)
	}
	return rows, err
}

func (s *scenario) variable(name string) error {
	if err := s.needEstimator(); err != nil {
		return err
	}
	tensor, err := s.estimator.ReadVariable(name)
	if err != nil {
		return err
	}
	defer tensor.Close()
	sum := 0.0
	values, err := Values[float32](tensor)
	for _, value := range values {
		sum += float64(value)
	}
	s.print("shape %s sum %.5f", strings.Trim(fmt.Sprint(tensor.Dims()), "[]"), sum)
	return err
}

func (s *scenario) save() error {
	s.run.ModelDir = s.temporaryFolder()
	return s.estimator.Save(background, s.run.ModelDir)
}

func (s *scenario) restore() error {
	s.forgetEstimator()
	err := s.needEstimator()
	if err == nil {
		s.print("step %d", s.estimator.GlobalStep())
	}
	return err
}

func (s *scenario) integer(text string) error {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	tensor, err := NewTensor([]int64{number}, 1)
	if err != nil {
		return err
	}
	defer tensor.Close()
	return View(tensor, func(data []int64) error {
		s.print("%d", data[0])
		return nil
	})
}

func (s *scenario) text(name string) error {
	dataset, err := AddSlices(NewPipeline(s.context), name, Feature, []int64{0}, 1).Build()
	if err != nil {
		return err
	}
	defer dataset.Close()
	s.print("%s", dataset.Components()[0].Name)
	return nil
}

// do does what a line says; it has as many words as it needs.
func (s *scenario) do(words []string) error {
	number := func(i int) int64 {
		value, _ := strconv.ParseInt(words[i], 10, 64)
		return value
	}
	switch words[0] {
	case "scenario":
		s.forget()
		return s.useDevices(1)
	case "devices":
		return s.useDevices(number(1))
	case "data":
		s.makeData(number(1), number(2), number(3), uint32(number(4)))
	case "pipeline":
		s.forgetEstimator()
		s.pipeline = words[1:]
	case "plateau":
		s.plateau = words[1:]
	case "model":
		s.forgetEstimator()
		s.model = scenarioModels[words[1]]
	case "run":
		s.forgetEstimator()
		s.setOption(words[1], words[2])
	case "workers":
		return s.useWorkers(number(2), len(words) > 3)
	case "fault":
		s.fault = fault{number(1), number(2), words[3]}
	case "cluster":
		s.printCluster()
	case "predict_own":
		return s.predictOwn(words[1])
	case "checksum":
		return s.checksum(words[1])
	case "leave":
		return s.leave(number(1), number(2), words[3])
	case "train":
		return s.train(number(1))
	case "loop":
		var sizes []int64
		for i := range words[2:] {
			sizes = append(sizes, number(2+i))
		}
		return s.loop(number(1), sizes)
	case "evaluate":
		return s.evaluate(words[1])
	case "predict":
		return s.predict(words[1])
	case "variable":
		return s.variable(words[1])
	case "save":
		return s.save()
	case "restore":
		return s.restore()
	case "integer":
		return s.integer(words[1])
	case "text":
		return s.text(words[1])
	case "file":
		return s.write(words[1], words[2])
	case "read":
		seed := int64(0)
		if len(words) > 2 {
			seed = number(2)
		}
		return s.read(words[1], seed)
	}
	return nil
}

// printFailure prints the code and the messages of the error and its causes.
func (s *scenario) printFailure(err error) {
	var code *Error
	line := ""
	for one := err; one != nil; one = errors.Unwrap(one) {
		if failure, ok := one.(*Error); ok {
			line += ": " + failure.Message
		} else {
			line += ": " + one.Error()
		}
	}
	if errors.As(err, &code) {
		line = code.Code.String() + line
	}
	s.print("%s", line)
}

// write puts bytes, given by hexadecimal digits, into a file of the scenario's folder.
func (s *scenario) write(name, digits string) error {
	if s.folder == "" {
		s.folder = s.temporaryFolder()
	}
	contents, err := hex.DecodeString(digits)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.folder, name), contents, 0o600)
}

func (s *scenario) read(name string, seed int64) error {
	dataset, err := scenarioPipeline(s.context, name, s.folder)
	if err != nil {
		return err
	}
	defer dataset.Close()
	return readElements(dataset, seed, func(line string) { s.print("%s", line) })
}

// runLines does what the lines say and prints them with their results, but for results that they have.
func (s *scenario) runLines(lines string) {
	for _, line := range strings.SplitAfter(lines, "\n") {
		if strings.HasPrefix(line, "=") {
			continue
		}
		fmt.Fprint(s.out, line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if err := s.do(words); err != nil {
			s.printFailure(err)
		}
	}
}

func TestScenariosAreThoseOfC(t *testing.T) {
	paths := os.Getenv("TUTTI_SCENARIOS")
	if paths == "" {
		t.Skip("TUTTI_SCENARIOS names no file")
	}
	for _, path := range filepath.SplitList(paths) {
		t.Run(filepath.Base(path), func(t *testing.T) { runScenarios(t, path) })
	}
}

func runScenarios(t *testing.T, path string) {
	live(t)
	wanted, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s := &scenario{temporaryFolder: t.TempDir, out: &out}
	defer s.forget()
	s.runLines(string(wanted))
	got, lines := strings.Split(out.String(), "\n"), strings.Split(string(wanted), "\n")
	for i := 0; i < len(got) || i < len(lines); i++ {
		if i >= len(got) || i >= len(lines) || got[i] != lines[i] {
			t.Fatalf("line %d: not\n%s\nbut\n%s", i+1, strings.Join(lines[i:], "\n"), strings.Join(got[i:], "\n"))
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What scenarios of several workers do: tests/bindings/workers.txt says what the lines mean.

// TestMain makes of the program of the tests one that does the scenarios of a file as one of several processes:
// "<program> scenarios FILE".
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "scenarios" {
		os.Exit(runAsWorker(os.Args[2]))
	}
	os.Exit(m.Run())
}

func runAsWorker(path string) int {
	lines, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var folders []string
	defer func() {
		for _, folder := range folders {
			os.RemoveAll(folder)
		}
	}()
	s := &scenario{out: os.Stdout, temporaryFolder: func() string {
		folder, err := os.MkdirTemp("", "tutti-scenario-")
		if err != nil {
			panic(err)
		}
		folders = append(folders, folder)
		return folder
	}}
	s.runLines(string(lines))
	s.forget()
	if left := LiveObjects(""); left > 0 {
		fmt.Fprintln(os.Stderr, left, "objects are left")
		return 3
	}
	return 0
}

// fault is what happens to one worker at a step of its training.
type fault struct {
	worker, step int64
	what         string
}

func (s *scenario) useWorkers(devices int64, ownInput bool) (err error) {
	if err := s.useContext(devices); err != nil {
		return err
	}
	options := ClusterOptions{ConnectTimeout: 30 * time.Second}
	s.input = nil
	if ownInput {
		options.WorkerInput = WorkerInputOwn
		s.input = []string{"shard"}
	}
	s.strategy, err = MultiWorkerFromEnvironment(s.context, &options)
	return err
}

func (s *scenario) printCluster() {
	one := s.strategy
	s.print("worker %d of %d, replicas %d, input %d of %d", one.WorkerIndex(), one.WorkerCount(), one.ReplicaCount(),
		one.InputPipelineID(), one.InputPipelineCount())
}

// hooks are those that make the scenario's fault happen.
func (s *scenario) hooks() []Hook {
	if s.fault.what == "" {
		return nil
	}
	return []Hook{OnStep(1, func(e *Event) error {
		if e.Step != s.fault.step || s.strategy.WorkerIndex() != s.fault.worker {
			return nil
		}
		if s.fault.what == "kill" {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if s.fault.what != "fail" {
			time.Sleep(100 * time.Second)
		}
		return &Error{Code: DataLoss, Message: "the hook is broken"}
	})}
}

// stream predicts the first rows in batches of 3 until there are no more, or `read` gives false.
func (s *scenario) stream(rows string, workerRows WorkerRows, read func(*Batch) (bool, error)) error {
	if err := s.needEstimator(); err != nil {
		return err
	}
	dataset, err := s.dataset("take", rows, "batch", "3")
	if err != nil {
		return err
	}
	defer dataset.Close()
	predictor, err := s.estimator.Predictor(&PredictorOptions{WorkerRows: workerRows})
	if err != nil {
		return err
	}
	defer predictor.Close()
	stream, err := predictor.Stream(dataset)
	if err != nil {
		return err
	}
	defer stream.Close()
	for more := true; more && err == nil; {
		var batch *Batch
		if batch, err = stream.Next(background); err == io.EOF {
			return nil
		} else if err == nil {
			more, err = read(batch)
			batch.Close()
		}
	}
	return err
}

func (s *scenario) predictOwn(rows string) error {
	lines := map[string][]string{} // by output
	err := s.stream(rows, WorkerRowsOwn, func(batch *Batch) (bool, error) {
		for _, name := range batch.Names() {
			texts, err := rowTexts(batch, name)
			if err != nil {
				return false, err
			}
			for i, text := range texts {
				lines[name] = append(lines[name], fmt.Sprintf("%s %d%s", name, batch.FirstRow()+int64(i), text))
			}
		}
		return true, nil
	})
	names := make([]string, 0, len(lines))
	for name := range lines {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		s.print("%s", strings.Join(lines[name], "\n= "))
	}
	return err
}

func (s *scenario) leave(worker, batches int64, rows string) error {
	seen, read := int64(0), int64(0)
	err := s.stream(rows, "", func(batch *Batch) (bool, error) {
		seen, read = seen+batch.Rows(), read+1
		return read != batches || s.strategy.WorkerIndex() != worker, nil
	})
	s.print("rows %d", seen)
	return err
}

func (s *scenario) checksum(name string) error {
	if err := s.needEstimator(); err != nil {
		return err
	}
	tensor, err := s.estimator.ReadVariable(name)
	if err != nil {
		return err
	}
	defer tensor.Close()
	sum := uint64(0)
	values, err := Values[float32](tensor)
	for _, value := range values {
		sum = sum*1000003 + uint64(math.Float32bits(value))
	}
	s.print("bits %016x", sum)
	return err
}

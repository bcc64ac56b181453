// SPDX-License-Identifier: Apache-2.0

package tutti

import "fmt"

// What scenarios of loops of one's own do: tests/bindings/scenarios.txt says what the lines mean.

// loop is a session whose steps are batches of these sizes, of at most `most` rows, that come by a feed.
func (s *scenario) loop(most int64, sizes []int64) error {
	if err := s.needEstimator(); err != nil {
		return err
	}
	feed, err := NewBatchFeed(s.context, 2, most, FeedComponent{"x", Feature, Float32, []int64{s.columns}},
		FeedComponent{"y", Label, Int32, nil})
	if err != nil {
		return err
	}
	defer feed.Close()
	dataset, err := NewPipeline(s.context).AddFeed(feed).Build()
	if err != nil {
		return err
	}
	defer dataset.Close()
	steps := 0
	session, err := s.estimator.OpenSession(background, dataset, s.trainOptions(0),
		Hook{EverySteps: 1, Call: func(event *Event) error {
			if event.Kind != EventStep {
				return nil
			}
			if steps++; steps < len(sizes) {
				return nil
			}
			return s.evaluate(fmt.Sprint(most))
		}})
	if err != nil {
		return err
	}
	defer session.Close()
	first := int64(0)
	for _, size := range sizes {
		if err := s.pushRows(feed, first, size); err != nil {
			return err
		}
		if err := s.step(session); err != nil {
			return err
		}
		first += size
	}
	// While the session is open.
	if err := s.evaluate(fmt.Sprint(most)); err != nil {
		return err
	}
	if err := s.predict("2"); err != nil {
		return err
	}
	if err := s.save(); err != nil {
		return err
	}
	return s.endLoop(feed, session)
}

// pushRows pushes a batch: rows of the data, over again from the first behind the last.
func (s *scenario) pushRows(feed *Feed, first, rows int64) error {
	var x []float32
	var y []int32
	for i := first; i < first+rows; i++ {
		row := i % s.rows
		x = append(x, s.x[row*s.columns:(row+1)*s.columns]...)
		y = append(y, s.y[row])
	}
	features, err := NewTensor(x, rows, s.columns)
	if err != nil {
		return err
	}
	defer features.Close()
	labels, err := NewTensor(y)
	if err != nil {
		return err
	}
	defer labels.Close()
	return feed.Push(background, features, labels)
}

func (s *scenario) step(session *Session) error {
	result, err := session.Run(1)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("step %d examples %d loss %.5f", result.Step, result.Examples, result.Loss)
	for _, name := range sortedKeys(result.Metrics) {
		line += fmt.Sprintf(" %s %.5f", name, result.Metrics[name])
	}
	s.print("%s", line)
	output, err := s.estimator.ReadOutput("y")
	if err != nil {
		return err
	}
	defer output.Close()
	values, err := Values[float32](output)
	for _, value := range values {
		s.print("y %.5f", value)
	}
	return err
}

func (s *scenario) endLoop(feed *Feed, session *Session) error {
	if err := feed.Finish(); err != nil {
		return err
	}
	last, err := session.Run(1)
	if err != nil {
		return err
	}
	whole, err := session.Finish()
	if err != nil {
		return err
	}
	end := "no end"
	if last.Reason == ReasonEndOfInput {
		end = "end of input"
	}
	s.print("%s, examples %d of %d", end, last.Examples, whole.Examples)
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"go/ast"
	"os"
	"reflect"
	"strings"
	"testing"
)

// A number is no value, so that g.Mul(x, 2) is an error of the compiler and not a reference to some other op.
func TestValuesAreNoNumbers(t *testing.T) {
	if kind := reflect.TypeOf(Value{}).Kind(); kind != reflect.Struct {
		t.Error("a Value is a", kind)
	}
	if (Value{}).IsValid() || (Value{-1}).IsValid() || !(Value{1}).IsValid() {
		t.Error("what is valid")
	}
}

// calls are those of a function, by its name in the source, below a node.
func callsOf(node ast.Node, name string) (count int) {
	ast.Inspect(node, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch function := call.Fun.(type) {
		case *ast.Ident:
			if function.Name == name {
				count++
			}
		case *ast.SelectorExpr:
			if owner, ok := function.X.(*ast.Ident); ok && owner.Name+"."+function.Sel.Name == name {
				count++
			}
		}
		return true
	})
	return count
}

// The package panics nowhere, and asks for collections on goroutines of its own only.
func TestNothingPanicsOrCollectsUnasked(t *testing.T) {
	files, positions := sources(t)
	collections, onGoroutines := 0, 0
	for _, file := range files {
		if callsOf(file, "panic") > 0 {
			t.Errorf("%v panics", positions.Position(file.Pos()))
		}
		collections += callsOf(file, "runtime.GC")
		ast.Inspect(file, func(node ast.Node) bool {
			if start, ok := node.(*ast.GoStmt); ok {
				onGoroutines += callsOf(start, "runtime.GC")
			}
			return true
		})
	}
	if collections != onGoroutines || collections == 0 {
		t.Errorf("of %d collections %d are on goroutines", collections, onGoroutines)
	}
}

// What is chosen has one type, wherever it is chosen.
func TestOneTypeForEachChoice(t *testing.T) {
	files, _ := sources(t)
	found := map[string][]string{}
	for _, file := range files {
		for _, thing := range exportedThings(file) {
			for _, choice := range []string{"Activation", "Padding", "Reduction", "Interpolation"} {
				if strings.HasSuffix(thing.name, choice) && file.Scope.Lookup(thing.name) != nil {
					found[choice] = append(found[choice], thing.name)
				}
			}
		}
	}
	for choice, types := range found {
		if len(types) != 1 {
			t.Errorf("%s has the types %v", choice, types)
		}
	}
	if len(found) != 4 {
		t.Error(found)
	}
	dense, convolution := LayerDenseOptions{Activation: ActivationReLU}, LayerConv2DOptions{Padding: PaddingValid}
	convolution.Activation = dense.Activation
	pool := LayerMaxPool2DOptions{Padding: convolution.Padding}
	if pool.Padding != PaddingValid || convolution.Activation != "relu" {
		t.Error(convolution, pool)
	}
}

// Whoever tells of Close tells the same.
func TestCloseHasOneMeaning(t *testing.T) {
	for _, path := range []string{"doc.go", "README.md", "handle.go"} {
		text := string(must[[]byte](t)(os.ReadFile(path)))
		text = strings.Join(strings.Fields(strings.ReplaceAll(text, "//", "")), " ")
		if strings.Contains(text, "finish first") || !strings.Contains(text, "does not wait") {
			t.Error(path, "says otherwise")
		}
	}
}

func TestTrainableVariablesAreAListOfTheirOwn(t *testing.T) {
	live(t)
	dataset := toyDataset(t)
	estimator := must[*Estimator](t)(NewEstimator(func(g *Graph, mode Mode) error {
		x := g.LayerBatchNorm(g.LayerDense(g.Feature("x"), 3, &LayerDenseOptions{WithoutBias: true}), nil)
		if mode != ModePredict {
			g.SetLoss(g.LossSparseSoftmaxCrossEntropy(x, g.Label("y"), nil))
			g.OptimizerSGD(g.ScheduleConstant(0.1), &OptimizerSGDOptions{Momentum: 0.9})
		}
		return nil
	}, nil))
	closed(t, dataset, estimator)
	if names := estimator.TrainableNames(); names != nil {
		t.Error(names)
	}
	if err := estimator.SetTrainable("*/offset", false); err != nil {
		t.Fatal(err)
	}
	if err := estimator.Initialize(background, dataset, ""); err != nil {
		t.Fatal(err)
	}
	if names := strings.Join(estimator.TrainableNames(), " "); names != "dense/kernel batch_norm/scale" {
		t.Error(names)
	}
	if all := estimator.VariableNames(); len(all) < 5 { // running statistics and what is frozen, too
		t.Error(all)
	}
	estimator.Close()
	if names := estimator.TrainableNames(); names != nil {
		t.Error(names)
	}
}

// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    internal static class Regions
    {
        // w x for rows x of three numbers, made of a loop, a choice, a part that is computed again and a function whose
        // gradient is half of what it should be.
        private static void Model(Graph g, Mode mode)
        {
            Value x = g.GetFeature("x"), w = g.Variable("w", DType.Float32, null, "constant", 2);
            Value sum = g.ReduceSum(x, new ReduceSumOptions { Axes = new long[] { 1 } });
            Value first = g.Mul(sum, g.Constant(DType.Float32, 0));
            Scanned loop = g.Scan(new[] { first }, new[] { x }, (states, elements) =>
            {
                Value next = g.Add(states[0], g.Mul(elements[0], w));
                return new Scanned(new[] { next }, new[] { next });
            }, 1);
            Value early = g.Less(g.CompletedSteps, g.Constant(DType.Float32, 1));
            Value[] chosen = g.Cond(early, () => loop.States, () => new[] { g.Neg(loop.States[0]) });
            Value[] again = g.Call(chosen, inputs => new[] { g.Square(inputs[0]) });
            Value half = g.CustomGradient(again, inputs => new[] { g.Mul(inputs[0], g.Constant(DType.Float32, 1)) },
                (inputs, outputs, gradients) => new[] { g.Mul(gradients[0], g.Constant(DType.Float32, 0.5)) })[0];
            g.SetOutput("p", half);
            g.SetOutput("sums", loop.Results[0]);
            if (mode == Mode.Predict)
                return;
            g.SetLoss(g.ReduceMean(half));
            g.OptimizerSgd(g.Constant(DType.Float32, 0.1));
        }

        // Each recurrent layer gives outputs of all positions, and its last states.
        private static void Recurrent(Graph g, Mode mode)
        {
            Value x = g.GetFeature("x");
            Value most = g.ReduceMax(x, new ReduceMaxOptions { Axes = new long[] { 1, 2 } });
            Value lengths = g.Cast(g.Mul(most, g.Constant(DType.Float32, 0)), DType.Int32);
            var (rnn, state) = g.LayerRnn(x, 2, new LayerRnnOptions { Bidirectional = true });
            var (lstm, hidden, cell) = g.LayerLstm(rnn, 3, new LayerLstmOptions { Layers = 2, Lengths = lengths });
            var (gru, last) = g.LayerGru(lstm, 3);
            g.SetOutput("gru", gru);
            g.SetOutput("last", last);
            g.SetOutput("cell", cell);
            Value part = g.Slice(hidden, new long[] { 0, 0, 0 }, new long[] { -1, -1, 2 });
            g.SetOutput("both", g.Concat(new[] { state, part }, new ConcatOptions { Axis = 1 }));
            if (mode == Mode.Predict)
                return;
            g.SetLoss(g.ReduceMean(g.Square(gru)));
            g.OptimizerSgd(g.Constant(DType.Float32, 0.1));
        }

        [Test]
        private static void RecurrentLayers()
        {
            using (var estimator = new Estimator(Recurrent))
            using (Tensor rows = Tensor.From(new float[] { 1, 2, 3, 4, 5, 6, 7, 8 }, 2, 4, 1))
            using (Dataset dataset = new Pipeline().AddSlices("x", Role.Feature, rows).Batch(2).Build())
            {
                estimator.Train(dataset);
                using (Predictor predictor = estimator.MakePredictor())
                using (Batch batch = predictor.RunAll(dataset))
                    foreach (string wanted in new[] { "gru 2 4 3", "last 2 1 3", "cell 2 2 3", "both 2 4 2" })
                    {
                        string name = wanted.Split(' ')[0];
                        using (Tensor output = batch.GetOutput(name))
                            Check.Equal(wanted, name + " " + string.Join(" ", output.Dims));
                    }
            }
        }

        [Test]
        private static void AModelOfRegions()
        {
            var rows = new float[,] { { 1, 2, 3 }, { -1, 0.5f, 1 } };
            using (var estimator = new Estimator(Model))
            using (Dataset dataset = new Pipeline().AddSlices("x", Role.Feature, rows).Repeat().Batch(2).Build())
            {
                double w = 2;
                for (int step = 0; step < 2; step++)
                {
                    // The mean of (6 w)^2 and (w / 2)^2, and half of its gradient.
                    double wanted = (36 + 0.25) / 2 * w * w;
                    double loss = estimator.Train(dataset, new TrainOptions { Steps = 1 }).Loss;
                    Check.True(Math.Abs(loss - wanted) < 1e-4 * wanted, "the loss " + loss + ", not " + wanted);
                    w -= 0.1 * 0.5 * (36 + 0.25) * w;
                    using (Tensor variable = estimator.ReadVariable("w"))
                        Check.True(Math.Abs(variable.ToArray<float>()[0] - w) < 1e-4, "w in step " + step);
                }
            }
        }

        // The loss is w[0] x[0] + w[1] x[1], and the optimizer momentum whose steps become shorter, for variables of
        // one type.
        private static void Ruled(Graph g, Mode mode, DType dtype)
        {
            Value w = g.Variable("w", dtype, new[] { 2L }, "constant", 2);
            Value products = g.Mul(g.Cast(g.GetFeature("x"), dtype), w);
            Value y = g.ReduceSum(products, new ReduceSumOptions { Axes = new long[] { 1 } });
            g.SetOutput("y", y);
            if (mode == Mode.Predict)
                return;
            g.SetLoss(g.Cast(g.ReduceMean(y), DType.Float32));
            var options = new UpdateRuleOptions
            {
                Slots = new[] { new Slot("velocity", 1) },
                WeightDecay = 0.25,
                DType = dtype,
                ClipValue = 8,
                ClipNorm = 5,
                AverageDecay = 0.5,
                AverageRamp = true,
                AverageStart = 1
            };
            g.UpdateRule(g.ScheduleConstant(0.1), u =>
            {
                Value velocity = g.Add(g.Mul(u.Slots[0], g.Constant(dtype, 0.5)), u.Gradient);
                Value decayed = g.Add(velocity, g.Mul(u.WeightDecay, u.Weight));
                Value rate = g.Div(u.LearningRate, g.Cast(u.Count, dtype));
                return new UpdatedVariable(g.Sub(u.Weight, g.Mul(rate, decayed)), velocity);
            }, options);
        }

        private static void IsNear(Estimator estimator, string name, double first, double second)
        {
            using (Tensor variable = estimator.ReadVariable(name))
            {
                double[] got = variable.DType == DType.Float64
                    ? variable.ToArray<double>() : Array.ConvertAll(variable.ToArray<float>(), one => (double)one);
                Check.True(got.Length == 2 && Math.Abs(got[0] - first) < 1e-5 && Math.Abs(got[1] - second) < 1e-5,
                    name + " is " + string.Join(" ", got) + ", not " + first + " " + second);
            }
        }

        [Test]
        private static void ARuleOfUpdate()
        {
            var rows = new float[,] { { 5, 10 }, { 7, 14 } };
            foreach (DType dtype in new[] { DType.Float32, DType.Float64 })
                using (var estimator = new Estimator((g, mode) => Ruled(g, mode, dtype)))
                using (Dataset dataset = new Pipeline().AddSlices("x", Role.Feature, rows).Repeat().Batch(2).Build())
                {
                    estimator.Train(dataset, new TrainOptions { Steps = 2 });
                    // The gradient 6, 12 becomes 6, 8, and then 3, 4. The velocity is 3.5, 4.5 and 4.75, 6.25. The
                    // weight is first 2 - 0.1 (3.5 + 0.5) = 1.6 and 2 - 0.1 (4.5 + 0.5) = 1.5, then
                    // 1.6 - 0.05 (4.75 + 0.4) and 1.5 - 0.05 (6.25 + 0.375). The average is first the weight, and then
                    // has a decay of 2 / 11.
                    IsNear(estimator, "w", 1.3425, 1.16875);
                    IsNear(estimator, "w/velocity", 4.75, 6.25);
                    IsNear(estimator, "w/average", (2 * 1.6 + 9 * 1.3425) / 11, (2 * 1.5 + 9 * 1.16875) / 11);
                }
        }

        // A rule without slots is plain descent: 2 - 0.1 * 6 and 2 - 0.1 * 12.
        [Test]
        private static void ARuleOfUpdateWithoutSlots()
        {
            ModelFunction model = (g, mode) =>
            {
                Value y = g.Mul(g.GetFeature("x"), g.Variable("w", DType.Float32, new[] { 2L }, "constant", 2));
                g.SetOutput("y", y);
                if (mode == Mode.Predict)
                    return;
                g.SetLoss(g.Mul(g.ReduceMean(y), g.Constant(DType.Float32, 2)));
                g.UpdateRule(g.Constant(DType.Float32, 0.1),
                    u => new UpdatedVariable(g.Sub(u.Weight, g.Mul(u.LearningRate, u.Gradient))));
            };
            var rows = new float[,] { { 5, 10 }, { 7, 14 } };
            using (var estimator = new Estimator(model))
            using (Dataset dataset = new Pipeline().AddSlices("x", Role.Feature, rows).Batch(2).Build())
            {
                estimator.Train(dataset);
                IsNear(estimator, "w", 1.4, 0.8);
            }
        }

        // The rule for matrices is used where a variable is one: w - 0.1 * g (wt w) with w = 2 I, where g is 12 in the
        // first row and 24 in the second.
        [Test]
        private static void ARuleOfUpdateForMatrices()
        {
            ModelFunction model = (g, mode) =>
            {
                Value w = g.Variable("w", DType.Float32, new[] { 2L, 2L }, "identity(2)");
                Value y = g.Matmul(g.GetFeature("x"), w);
                g.SetOutput("y", y);
                if (mode == Mode.Predict)
                    return;
                g.SetLoss(g.Mul(g.ReduceMean(y), g.Constant(DType.Float32, 4)));
                Value rate = g.Constant(DType.Float32, 0.1);
                g.UpdateRule(rate, u => new UpdatedVariable(u.Weight));
                g.UpdateRule(rate, u =>
                {
                    Value square = g.Matmul(u.Weight, u.Weight, new MatmulOptions { TransposeA = true });
                    return new UpdatedVariable(g.Sub(u.Weight, g.Mul(u.LearningRate, g.Matmul(u.Gradient, square))));
                }, new UpdateRuleOptions { Matrices = true });
            };
            var rows = new float[,] { { 5, 10 }, { 7, 14 } };
            var wanted = new[] { -2.8, -4.8, -9.6, -7.6 };
            using (var estimator = new Estimator(model))
            using (Dataset dataset = new Pipeline().AddSlices("x", Role.Feature, rows).Batch(2).Build())
            {
                estimator.Train(dataset);
                using (Tensor variable = estimator.ReadVariable("w"))
                {
                    float[] got = variable.ToArray<float>();
                    for (int i = 0; i < wanted.Length; i++)
                        Check.True(Math.Abs(got[i] - wanted[i]) < 1e-5, i + ": " + got[i] + ", not " + wanted[i]);
                }
            }
        }
    }
}

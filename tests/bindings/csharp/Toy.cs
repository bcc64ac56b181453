// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using System.Text;
using System.Threading;

namespace Tutti.Tests
{
    // The toy: 200 rows of 5 numbers in 3 classes, and a network with one hidden layer. bindings/figures/toy.c is the
    // same in C.
    internal static class Toy
    {
        public const int Rows = 200, Columns = 5, BatchSize = 32;

        public static readonly float[,] X = new float[Rows, Columns];
        public static readonly int[] Y = new int[Rows];

        static Toy()
        {
            uint state = 7;
            for (int i = 0; i < Rows; i++)
            {
                Y[i] = i % 3;
                for (int j = 0; j < Columns; j++)
                {
                    state = state * 1664525u + 1013904223u;
                    X[i, j] = (float)(state >> 8) / (1 << 24) + (j == Y[i] ? 0.5f : 0);
                }
            }
        }

        public static Pipeline Pipeline(Context context = null)
        {
            return new Pipeline(context).AddSlices("x", Role.Feature, X).AddSlices("y", Role.Label, Y);
        }

        public static Dataset TrainingSet()
        {
            return Pipeline().Shuffle(Rows).Repeat().Batch(BatchSize).Build();
        }

        public static Dataset TestSet()
        {
            return Pipeline().Batch(BatchSize).Build();
        }

        public static void Model(Graph g, Mode mode)
        {
            var relu = new LayerDenseOptions { Activation = Activation.Relu };
            Value logits = g.LayerDense(g.LayerDense(g.GetFeature("x"), 8, relu), 3);
            g.SetOutput("class", g.Argmax(logits));
            if (mode == Mode.Predict)
                return;
            Value y = g.GetLabel("y");
            g.MetricAccuracy("accuracy", logits, y);
            g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y));
            g.OptimizerAdam(g.ScheduleConstant(0.01));
        }
    }

    internal static class ToyTests
    {
        private static string Digits(double value)
        {
            return value.ToString("R", CultureInfo.InvariantCulture);
        }

        private static IEnumerable<string> FiguresOfC()
        {
            string program = Environment.GetEnvironmentVariable("TUTTI_TOY_FIGURES");
            if (string.IsNullOrEmpty(program))
                throw new SkipException("TUTTI_TOY_FIGURES names no program");
            var start = new ProcessStartInfo(program) { UseShellExecute = false, RedirectStandardOutput = true };
            using (Process process = Process.Start(start))
            {
                string text = process.StandardOutput.ReadToEnd();
                process.WaitForExit();
                Check.Equal(0, process.ExitCode, program);
                return text.Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries)
                    .Select(line => Digits(double.Parse(line, CultureInfo.InvariantCulture)));
            }
        }

        [Test]
        private static void FiguresAreThoseOfC()
        {
            var found = new List<string>();
            using (Strategy all = Strategy.Mirrored())
            using (Dataset train = Toy.TrainingSet(), test = Toy.TestSet())
            using (var estimator = new Estimator(Toy.Model,
                new RunOptions { Seed = 3, Determinism = Determinism.Invariant }, all))
            {
                Hook[] hooks = { Hook.OnStep(1, e => found.Add(Digits(e.Loss))) };
                estimator.Train(train, new TrainOptions { Steps = 20 }, hooks);
                Result evaluated = estimator.Evaluate(test);
                found.Add(Digits(evaluated.Loss));
                found.Add(Digits(evaluated.Metrics["accuracy"]));
                using (Predictor predictor = estimator.MakePredictor())
                using (Batch batch = predictor.RunAll(test))
                    found.AddRange(batch.ToArray<long>("class").Select(value => Digits(value)));
            }
            Check.Same(FiguresOfC(), found, "figures");
            Check.Equal(20 + 2 + Toy.Rows, found.Count, "figures");
        }

        [Test]
        private static void TrainingLearns()
        {
            using (Dataset train = Toy.TrainingSet(), test = Toy.TestSet())
            using (var estimator = new Estimator(Toy.Model, new RunOptions { Seed = 1 }))
            {
                Result result = estimator.TrainAndEvaluateAsync(train, test, 50,
                    new TrainOptions { Steps = 200 }).Result;
                Check.True(result.Metrics["accuracy"] >= 0.8, "accuracy " + result.Metrics["accuracy"]);
                Check.Equal(200L, result.Step);
                Check.Equal(200L, estimator.GlobalStep);
            }
        }

        private static List<double> Losses(Action<Estimator, Dataset, Hook[]> train)
        {
            var losses = new List<double>();
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model,
                new RunOptions { Seed = 5, Determinism = Determinism.Repeatable }))
                train(estimator, dataset, new[] { Hook.OnStep(1, e => losses.Add(e.Loss)) });
            return losses;
        }

        // A learning rate that stays the same is best at the first step.
        [Test]
        private static void ValueThatGetsNoBetterStops()
        {
            var early = new TrainOptions
            {
                EarlyStopping = "learning_rate",
                EarlyStoppingPatienceSteps = 4,
                EarlyStoppingEverySteps = 1
            };
            Losses((e, d, hooks) =>
            {
                Result result = e.Train(d, early, hooks);
                Check.Equal(5L, result.Step);
                Check.Equal(Reason.Stopped, result.Reason);
            });
        }

        [Test]
        private static void SessionIsTheSameTraining()
        {
            var steps = new TrainOptions { Steps = 9 };
            List<double> whole = Losses((e, d, hooks) => e.Train(d, steps, hooks));
            List<double> pieces = Losses((e, d, hooks) =>
            {
                using (Session session = e.OpenSession(d, steps, hooks))
                {
                    while (session.Run(4).Reason == Reason.Unfinished)
                        continue;
                    Result result = session.Finish();
                    Check.Equal(9L, result.Step);
                    Check.Equal(Reason.MaxSteps, result.Reason);
                }
            });
            Check.Equal(9, whole.Count);
            Check.Same(whole, pieces, "losses");
        }

        private static void ScaledMean(Graph g, Mode mode)
        {
            using (g.Scope("size"))
            {
                Value w = g.Variable("w", DType.Float32, new long[] { Toy.Columns }, "ones");
                g.SetLoss(g.ReduceMean(g.Mul(g.GetFeature("x"), w)));
            }
            g.OptimizerSgd(g.HostScalar("rate", 0));
        }

        private static float[] Read(Estimator estimator, string name)
        {
            using (Tensor tensor = estimator.ReadVariable(name))
                return tensor.ToArray<float>();
        }

        [Test]
        private static void HostScalarsAndVariables()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(ScaledMean, new RunOptions { KeepGradients = true }))
            using (Session session = estimator.OpenSession(dataset))
            {
                Check.True(estimator.EstimateMemory(dataset, 7).BatchSize == 7, "an estimate");
                Check.Equal(50L, estimator.FindBatchSize(dataset, 50));
                session.Run(1);
                Check.Same(new float[] { 1, 1, 1, 1, 1 }, Read(estimator, "size/w"), "a rate of 0 changes nothing");
                session.SetScalar("rate", 0.5);
                session.Run(1);
                float[] slopes, values = Read(estimator, "size/w");
                using (Tensor gradient = estimator.ReadGradient("size/w"))
                    slopes = gradient.ToArray<float>();
                for (int i = 0; i < slopes.Length; i++)
                    Check.True(Math.Abs(1 - 0.5 * slopes[i] - values[i]) < 1e-6, "variable " + i);
                using (Tensor zeros = Tensor.Zeros(DType.Float32, Toy.Columns))
                    estimator.WriteVariable("size/w", zeros);
                Check.Same(new float[5], Read(estimator, "size/w"), "written");
                Check.Equal("size/w", estimator.VariableNames[0]);
            }
        }

        // What comes behind two sessions that were ended like this, and a training.
        private static List<string> Story(Dataset train, Dataset test, Action<Session> end)
        {
            var story = new List<string>();
            using (var estimator = new Estimator(Toy.Model,
                new RunOptions { Seed = 4, Determinism = Determinism.Repeatable }))
            {
                for (int piece = 1; piece <= 2; piece++)
                {
                    Session session = estimator.OpenSession(train);
                    session.Run(5);
                    end(session);
                    Check.Equal(5L * piece, estimator.GlobalStep);
                    Result result = estimator.Evaluate(test);
                    story.Add(result.Step + " " + Digits(result.Loss) + " " +
                              string.Join(" ", Read(estimator, "dense_1/bias").Select(value => Digits(value))));
                }
                Result trained = estimator.Train(train, new TrainOptions { Steps = 3 });
                story.Add(trained.Step + " " + Digits(trained.Loss));
            }
            return story;
        }

        // A session that is closed without Finish leaves its steps, as one that finished.
        [Test]
        private static void AClosedSessionLeavesItsSteps()
        {
            using (Dataset train = Toy.TrainingSet(), test = Toy.TestSet())
            {
                List<string> closed = Story(train, test, session => session.Dispose());
                Check.Same(Story(train, test, session => session.Finish()), closed);
                Check.Equal(3, closed.Count);
                Check.True(closed[0] != closed[1], closed[0]);
            }
        }

        [Test]
        private static void FrozenVariablesStay()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                estimator.SetTrainable("dense_1/*", false);
                Check.Equal(0, estimator.TrainableNames.Count, "before the model is built");
                estimator.Train(dataset, new TrainOptions { Steps = 3 });
                Check.Same(new[] { "dense/kernel", "dense/bias" }, estimator.TrainableNames);
                Check.True(estimator.VariableNames.Count > 4, "slots are variables, too");
                Check.Same(new float[3], Read(estimator, "dense_1/bias"), "frozen");
                Check.True(Read(estimator, "dense/bias").Any(value => value != 0), "not frozen");
            }
        }

        // A model that trains with gradients that it clips itself.
        private static void ClippingModel(Graph g, Mode mode)
        {
            Value w = g.Variable("w", DType.Float32, new long[] { Toy.Columns }, "ones");
            Value loss = g.ReduceMean(g.Mul(g.GetFeature("x"), w));
            g.SetLoss(loss);
            Value[] slopes = g.Gradients(loss, new[] { w });
            g.ApplyGradients(new[] { w }, new[] { g.Mul(slopes[0], g.Constant(DType.Float32, 0)) });
            g.OptimizerSgd(g.ScheduleConstant(1));
            Check.Equal(Mode.Train, g.Mode);
            Check.Equal(DType.Float32, w.DType);
            Check.Same(new long[] { Toy.Columns }, w.Dims);
            Check.True(w.IsValid && !default(Value).IsValid, "validity");
            g.Check();
        }

        [Test]
        private static void OwnGradients()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(ClippingModel))
            {
                estimator.Train(dataset, new TrainOptions { Steps = 3 });
                Check.Same(new float[] { 1, 1, 1, 1, 1 }, Read(estimator, "w"), "gradients times 0");
            }
        }

        // One builder of each kind, and outputs, options, lists and choices of every type.
        private static void ManyOps(Graph g, Mode mode)
        {
            Value x = g.Reshape(g.GetFeature("x"), new long[] { -1, Toy.Columns, 1, 1 });
            x = g.LayerConv2d(x, 4, 1, new LayerConv2dOptions
            {
                Padding = Padding.Valid, WithoutBias = true, Activation = Activation.Tanh,
                Stride = 1,
            });
            x = g.LayerBatchNorm(x, new LayerBatchNormOptions { Momentum = 0.5, Epsilon = 0.01, WithoutOffset = true });
            x = g.LayerDropout(g.LayerFlatten(x), 0.1);
            Value logits = g.LayerDense(g.Concat(new[] { x, g.GetFeature("x") }, new ConcatOptions { Axis = 1 }), 3);
            Value constant;
            using (Tensor tensor = Tensor.From(new float[] { 0, 0, 0 }))
                constant = g.ConstantTensor(tensor);
            logits = g.Add(logits, constant);
            g.SetOutput("scores", g.Softmax(logits));
            g.SetOutput("whole", g.Cast(logits, DType.Int64));
            if (mode == Mode.Predict)
                return;
            g.MetricAccuracy("accuracy", logits, g.GetLabel("y"));
            g.AddMetric("mean", g.ReduceMean(logits));
            Value weight = g.GetSampleWeight("none");
            Check.True(!weight.IsValid, "a weight that is not there");
            g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.GetLabel("y")));
            g.SetGradientClipNorm(1);
            g.OptimizerSgd(g.ScheduleCosine(0.1, 100), new OptimizerSgdOptions { Momentum = 0.9, Nesterov = true });
        }

        [Test]
        private static void BuildersByValue()
        {
            using (Dataset train = Toy.TrainingSet(), test = Toy.TestSet())
            using (var estimator = new Estimator(ManyOps))
            {
                Result result = estimator.Train(train, new TrainOptions { Steps = 3 });
                Check.True(result.Loss > 0, "loss " + result.Loss);
                result = estimator.Evaluate(test, 2);
                Check.Same(new[] { "accuracy", "mean" }, result.Metrics.Keys.Where(name => name != "loss"), "metrics");
                using (Predictor predictor = estimator.MakePredictor())
                using (Tensor row = Tensor.From(new float[1, Toy.Columns]))
                using (Batch batch = predictor.RunAsync(new Dictionary<string, Tensor> { { "x", row } }).Result)
                {
                    Check.True(Math.Abs(batch.ToArray<float>("scores").Sum() - 1) < 1e-5, "softmax");
                    Check.Equal(3, batch.ToArray<long>("whole").Length);
                }
            }
        }
    }
}

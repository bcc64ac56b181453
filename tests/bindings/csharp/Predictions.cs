// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti.Tests
{
    internal static class Predictions
    {
        private static void WithTrained(Action<Estimator, Dataset> use)
        {
            using (Dataset train = Toy.TrainingSet(), test = Toy.TestSet())
            using (var estimator = new Estimator(Toy.Model, new RunOptions { Seed = 2 }))
            {
                estimator.Train(train, new TrainOptions { Steps = 30 });
                use(estimator, test);
            }
        }

        // A model function and weights, without a training.
        [Test]
        private static void WeightsAreTakenUp()
        {
            string folder = Path.Combine(Path.GetTempPath(), "tutti-weights-" + Guid.NewGuid());
            WithTrained((estimator, test) =>
            {
                estimator.Save(folder);
                using (Dataset train = Toy.TrainingSet())
                using (var second = new Estimator(Toy.Model, new RunOptions { Seed = 3 }))
                {
                    second.Initialize(train, folder);
                    using (Predictor expected = estimator.MakePredictor(), predictor = second.MakePredictor())
                    using (Batch whole = expected.RunAllAsync(test).Result, batch = predictor.RunAllAsync(test).Result)
                        Check.Same(whole.ToArray<long>("class"), batch.ToArray<long>("class"));
                    Check.Fails(ErrorCode.NotFound, () => second.Initialize(train, folder + "/none"));
                }
            });
            Directory.Delete(folder, true);
        }

        // A saved model as a part of another one says what it did.
        [Test]
        private static void SavedModelIsAPart()
        {
            string folder = Path.Combine(Path.GetTempPath(), "tutti-saved-" + Guid.NewGuid());
            ModelFunction model = (g, mode) =>
            {
                Value x = g.GetFeature("x");
                g.SetOutput("class", g.AddSavedModel(folder));
                g.SetOutput("given", g.AddSavedModel(folder, "class", x, "x"));
                if (mode == Mode.Predict)
                    return;
                g.SetLoss(g.LossSparseSoftmaxCrossEntropy(g.LayerDense(x, 3), g.GetLabel("y")));
                g.OptimizerSgd(g.ScheduleConstant(0.01));
            };
            WithTrained((estimator, test) =>
            {
                estimator.Save(folder);
                using (Dataset train = Toy.TrainingSet())
                using (var second = new Estimator(model))
                {
                    second.Initialize(train);
                    second.ReadVariable("model_1/dense_1/kernel").Dispose();
                    using (Predictor expected = estimator.MakePredictor(), predictor = second.MakePredictor())
                    using (Batch whole = expected.RunAllAsync(test).Result, batch = predictor.RunAllAsync(test).Result)
                    {
                        Check.Same(whole.ToArray<long>("class"), batch.ToArray<long>("class"));
                        Check.Same(whole.ToArray<long>("class"), batch.ToArray<long>("given"));
                    }
                }
            });
            Directory.Delete(folder, true);
        }

        [Test]
        private static void StreamAndRunAreEqual()
        {
            WithTrained((estimator, test) =>
            {
                using (Predictor predictor = estimator.MakePredictor())
                using (Batch whole = predictor.RunAllAsync(test).Result)
                {
                    var streamed = new List<long>();
                    foreach (Batch batch in predictor.Predict(test))
                    {
                        Check.Equal((long)streamed.Count, batch.FirstRow);
                        streamed.AddRange(batch.ToArray<long>("class"));
                        batch.Dispose();
                    }
                    Check.Same(whole.ToArray<long>("class"), streamed);
                    Check.Equal(Toy.Rows, streamed.Count);
                    Check.Equal((long)Toy.Rows, whole.RowCount);
                    Check.Same(new[] { "class" }, whole.Names);
                    TuttiException missing = Check.Fails(ErrorCode.NotFound, () => whole.GetOutput("klass"));
                    Check.True(missing.Message.Contains("the batch has no output 'klass'; known: class"),
                        missing.Message);
                    Check.Fails(ErrorCode.InvalidArgument, () => predictor.Run(new Dictionary<string, Tensor>()));
                    foreach (Batch batch in predictor.Predict(test))
                    {
                        batch.Dispose();
                        break; // closes the stream
                    }
                    using (PredictionStream early = predictor.OpenStream(test))
                        early.Stop();
                }
            });
        }

        [Test(Forgets = true)]
        private static void ManyThreadsAsk()
        {
            WithTrained((estimator, test) =>
            {
                using (Predictor predictor = estimator.MakePredictor())
                {
                    string[] answers = new string[8];
                    var all = new ParallelOptions { MaxDegreeOfParallelism = answers.Length };
                    Parallel.For(0, answers.Length, all, i =>
                    {
                        for (int round = 0; round < 20; round++)
                        {
                            Tensor input = Tensor.From(Toy.X);
                            Batch batch = predictor.Run("x", input);
                            answers[i] = string.Join(",", batch.ToArray<long>("class"));
                            if (round % 2 == 0)
                                continue; // left to the collector
                            batch.Dispose();
                            input.Dispose();
                        }
                    });
                    Check.True(answers.All(answer => answer == answers[0] && answer.Length >= Toy.Rows), answers[0]);
                }
            });
        }

        [Test]
        private static void ClosingLetsRunningCallsFinish()
        {
            WithTrained((estimator, test) =>
            {
                for (int round = 0; round < 20; round++)
                {
                    Predictor predictor = estimator.MakePredictor();
                    Task<int>[] asking = Enumerable.Range(0, 4)
                        .Select(i => Task.Run(() => Answers(predictor, test))).ToArray();
                    predictor.Dispose();
                    Check.True(Task.WaitAll(asking, Program.Deadline), "the calls end");
                    Check.True(asking.All(task => task.Result == Toy.Rows || task.Result == -1),
                        "an answer is whole, or none");
                }
            });
        }

        private static int Answers(Predictor predictor, Dataset test)
        {
            try
            {
                using (Batch batch = predictor.RunAll(test))
                    return batch.ToArray<long>("class").Length;
            }
            catch (ObjectDisposedException)
            {
                return -1;
            }
        }

        [Test]
        private static void Checkpoints()
        {
            Data.WithFolder(folder =>
            {
                string directory = Path.Combine(folder, "modèle");
                var saved = new List<string>();
                using (Dataset train = Toy.TrainingSet())
                {
                    using (var estimator = new Estimator(Toy.Model, new RunOptions { ModelDir = directory }))
                    {
                        estimator.Train(train, new TrainOptions { Steps = 4 }, new[] { new Hook(0, e =>
                        {
                            if (e.Kind == EventKind.CheckpointSaved)
                                saved.Add(e.Checkpoint);
                        }) });
                    }
                    Check.True(saved.Last().EndsWith("modèle/checkpoint-4"), saved.Last());
                    using (var again = new Estimator(Toy.Model, new RunOptions { ModelDir = directory }))
                    {
                        Check.Equal(7L, again.Train(train, new TrainOptions { Steps = 3 }).Step);
                        again.Save(Path.Combine(folder, "other"));
                    }
                }
                using (var predictor = new Predictor(saved.Last()))
                {
                    Check.Equal(4L, predictor.Step);
                    Check.Equal("(x Float32 [-1, 5]) -> (class Int64 [-1])", predictor.Signature.ToString());
                    predictor.Reload(Path.Combine(directory, "checkpoint-7"));
                    Check.Equal(7L, predictor.Step);
                    Check.True(predictor.DescribePlan(8).Kernels.Count > 0, "a plan");
                }
                new Predictor(Path.Combine(folder, "other", "checkpoint-7")).Dispose();
                Check.Fails(ErrorCode.NotFound, () => new Predictor(Path.Combine(folder, "other", "checkpoint-8")));
            });
        }

        [Test]
        private static void DevicesOfSeveralBackends()
        {
            if (!Library.HasFeature("backend:cpu"))
                return;
            using (var context = new Context(new ContextOptions { LogicalDevices = 2, Backend = "cpu,reference" }))
            using (Strategy mixed = Strategy.Mirrored(new[] { "reference:1", "cpu:0" }, context))
            using (Strategy all = Strategy.Mirrored(null, context))
            {
                Check.Same(new[] { "cpu:0", "cpu:1", "reference:0", "reference:1" }, context.Devices);
                Check.Same(new[] { "reference:1", "cpu:0" }, mixed.Devices);
                Check.Same(context.Devices, all.Devices);
                // Workers on them are told that they do not train before they wait for others.
                var cluster = new ClusterOptions { Workers = "a.invalid:1,b.invalid:1", Worker = 1 };
                using (Strategy workers = Strategy.MultiWorker(cluster, context))
                using (var estimator = new Estimator(Toy.Model, null, workers, context))
                using (Dataset dataset = Toy.Pipeline(context).Batch(Toy.BatchSize).Build())
                {
                    Check.Equal(8L, workers.ReplicaCount);
                    Check.Same(context.Devices, workers.Devices);
                    TuttiException refused = Check.Fails(ErrorCode.FailedPrecondition, () => estimator.Train(dataset));
                    Check.True(refused.Message.Contains("cannot train together"), refused.Message);
                }
            }
        }

        [Test]
        private static void CentralStorage()
        {
            string[] some = { "reference:2", "reference:0" }, twice = { "reference:0", "reference:0" };
            using (var context = new Context(new ContextOptions { LogicalDevices = 3, Backend = "reference" }))
            using (Strategy second = Strategy.CentralStorage("reference:1", null, context))
            using (Strategy first = Strategy.CentralStorage(null, some, context))
            using (Strategy all = Strategy.CentralStorage())
            using (Dataset train = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model, null, all))
            {
                Check.Same(new[] { "reference:1", "reference:0", "reference:2" }, second.Devices);
                Check.Same(some, first.Devices);
                Check.Equal(5, estimator.Train(train, new TrainOptions { Steps = 5 }).Step);
                Check.Fails(ErrorCode.NotFound, () => Strategy.CentralStorage("reference:7", some, context));
                Check.Fails(ErrorCode.InvalidArgument, () => Strategy.CentralStorage(null, twice, context));
            }
        }

        [Test]
        private static void ContextsAndStrategies()
        {
            using (var context = new Context(new ContextOptions { LogicalDevices = 3, Backend = "reference" }))
            using (Strategy two = Strategy.Mirrored(new[] { "reference:2", "reference:0" }, context))
            using (Strategy first = Strategy.OneDevice(null, context))
            using (Context scope = two.MakeContext())
            {
                Check.Same(new[] { "reference:0", "reference:1", "reference:2" }, context.Devices);
                Check.Same(new[] { "reference:2", "reference:0" }, two.Devices);
                Check.Equal("1 0", two.InputPipelineCount + " " + two.InputPipelineId);
                Check.Equal(1, first.Devices.Count);
                using (Strategy small = Strategy.Auto(1, context))
                    Check.Same(new[] { "reference:0" }, small.Devices);
                var cluster = new ClusterOptions
                {
                    Workers = "a.invalid:1,b.invalid:1", Worker = 1, Devices = "reference:1",
                    WorkerInput = WorkerInput.Own
                };
                using (Strategy workers = Strategy.MultiWorker(cluster, context))
                {
                    Check.Equal("2 2 1", workers.ReplicaCount + " " + workers.WorkerCount + " " + workers.WorkerIndex);
                    Check.Equal("2 1", workers.InputPipelineCount + " " + workers.InputPipelineId);
                    Check.Same(new[] { "reference:1" }, workers.Devices);
                }
                // The launcher says it, so the options may not.
                Check.Fails(ErrorCode.InvalidArgument, () => Strategy.MultiWorkerFromEnvironment(cluster, context));
                Check.Equal(3, scope.DescribeDevices().Count);
                context.StartProfile();
                Check.Fails(ErrorCode.FailedPrecondition, () => scope.StartProfile());
                Check.Equal(0, scope.StopProfile().Devices.Count);
                Check.Fails(ErrorCode.FailedPrecondition, () => context.StopProfile());
                Check.True(Context.DevicesOf(null).Count > 0, "the default context");
            }
            Check.Equal("seed=" + (1L << 40), new RunOptions { Seed = 1L << 40 }.ToString());
            Check.Equal(17, Library.OptionKeys("train").Count);
            Check.True(Library.HasFeature("backend:reference") && !Library.HasFeature("backend:nothing"), "features");
            Check.True(Library.WhyUnavailable("nothing") != null && Library.WhyUnavailable("reference") == null, "why");
            Check.Equal(Library.Version, Library.BuildInfo.Version);
        }
    }
}

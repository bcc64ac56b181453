// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti.Tests
{
    internal sealed class OwnException : Exception
    {
        public OwnException(string message) : base(message)
        {
        }
    }

    // Its text cannot be had.
    internal sealed class BrokenException : Exception
    {
        public override string Message
        {
            get { throw new InvalidOperationException("no text"); }
        }
    }

    internal static class Failures
    {
        public static readonly Exception[] Ways =
        {
            new OwnException("mine"), new OwnException(""), new OwnException("\uD800 \0 \n größe"),
            new BrokenException(), new NullReferenceException(), new TuttiException(ErrorCode.DataLoss, "ours"),
            new OperationCanceledException("away"),
            new AggregateException(new OwnException("inside")), new OutOfMemoryException("made up"),
        };

        // Each way to fail must be found, as that object, in what the call throws.
        public static void Come(Action<Action> run)
        {
            foreach (Exception way in Ways)
            {
                var error = Check.Throws<TuttiException>(() => run(() => { throw way; }));
                Check.True(Check.Holds(error, way), way.GetType() + " is not in " + error.GetType());
                Check.True(error.Message.Length > 0, "message");
            }
        }

        private static void UseElsewhere(Graph graph)
        {
            bool isValid = true;
            var other = new Thread(() => isValid = graph.GetFeature("x").IsValid);
            other.Start();
            other.Join();
            Check.True(!isValid, "another thread has a feature");
        }

        // What another thread makes of a graph gives nothing, and the caller of the function is told.
        [Test]
        private static void AGraphBelongsToItsThread()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator((graph, mode) => UseElsewhere(graph)))
            {
                Action[] calls =
                {
                    () => Toy.Pipeline().MapGraph(UseElsewhere).Build(), () => estimator.Train(dataset, OneStep),
                };
                foreach (Action call in calls)
                {
                    var error = Check.Throws<TuttiException>(call);
                    Check.Equal(ErrorCode.FailedPrecondition, error.Code);
                    Check.True(error.ToString().Contains("used on another thread"), error.ToString());
                }
            }
        }

        private static readonly TrainOptions OneStep = new TrainOptions { Steps = 1 };

        [Test]
        private static void CodesAndDetails()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                Check.Fails(ErrorCode.InvalidArgument,
                    () => new Estimator(Toy.Model, new RunOptions { KeepCheckpointMax = -1 }));
                Check.Fails(ErrorCode.InvalidArgument,
                    () => new Estimator(Toy.Model, new RunOptions { Determinism = (Determinism)99 }));
                Check.Fails(ErrorCode.NotFound, () => new Pipeline().AddIdx("x", Role.Feature, "no/such.gz").Build());
                Check.Fails(ErrorCode.FailedPrecondition, () => estimator.Evaluate(dataset, 1));
                Check.Fails(ErrorCode.NotFound, () => Strategy.OneDevice("cpu:9999"));
                Check.Throws<ArgumentNullException>(() => estimator.Train(null));
                Check.Throws<ArgumentNullException>(() => new Estimator(null));
                Check.Throws<ArgumentException>(() => estimator.Train(dataset, null, new Hook[] { null }));
                Check.Fails(ErrorCode.InvalidArgument, () => Tensor.From(new float[] { 1, 2, 3 }, 2, 2));
                using (Tensor tensor = Tensor.From(new[] { 1f }))
                    Check.Throws<InvalidCastException>(() => tensor.ToArray<int>());
            }
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator((g, mode) => g.SetLoss(g.LayerDense(g.GetFeature("nothing"), 3))))
            {
                var error = Check.Throws<TuttiException>(() => estimator.Train(dataset, OneStep));
                Check.True(error.ToString().Contains("nothing"), error.ToString());
                Check.True(error.Domain.Length > 0 && error.Details != null && error.Subcode == 0, error.Domain);
                Check.True(error.ToJson().StartsWith("{\"code\":\"NOT_FOUND" +
                    "\",\"domain\":\"tutti\",\"message\":\""), error.ToJson());
                var own = new TuttiException(ErrorCode.Aborted, "a \"b\"\n", new FormatException("why"));
                Check.Equal("{\"code\":\"ABORTED\",\"domain\":\"user\",\"message\":\"a \\\"b\\\"\\u000a\",\"cause\":{" +
                    "\"code\":\"ABORTED\",\"domain\":\"user\",\"message\":\"why\"}}", own.ToJson());
            }
        }

        [Test]
        private static void ModelFunctionThrows()
        {
            using (Dataset dataset = Toy.TrainingSet())
            {
                Come(fail =>
                {
                    using (var estimator = new Estimator((g, mode) => fail()))
                        estimator.Train(dataset, OneStep);
                });
            }
        }

        [Test]
        private static void NullComponentsOfFeeds()
        {
            Check.Throws<ArgumentNullException>(() => new Feed(1, (FeedComponent[])null));
            Check.Throws<ArgumentNullException>(() => new Feed(1, new FeedComponent[] { null }));
        }

        [Test]
        private static void HookThrows()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                var steps = new TrainOptions { Steps = 5 };
                Come(fail => estimator.Train(dataset, steps, new[] { Hook.OnStep(1, e => fail()) }));
                estimator.Train(dataset, OneStep); // it is as good as before
            }
        }

        [Test]
        private static void GraphsOfPipelinesThrow()
        {
            Come(fail => Toy.Pipeline().MapGraph(g => fail()).Build());
            Come(fail => Toy.Pipeline().FilterGraph(g => fail()).Build());
        }

        private static IEnumerable<Tensor[]> Failing(Action fail)
        {
            fail();
            yield break;
        }

        [Test]
        private static void FeedFails()
        {
            Come(fail =>
            {
                using (var feed = new Feed(2, new FeedComponent("x", Role.Feature, DType.Float32)))
                using (Dataset dataset = new Pipeline().AddFeed(feed).Build())
                using (DatasetIterator iterator = dataset.Iterate())
                {
                    Task pushed = feed.PushAllAsync(Failing(fail));
                    try
                    {
                        iterator.Next();
                    }
                    finally
                    {
                        Check.Throws<AggregateException>(() => pushed.Wait(Program.Deadline));
                    }
                }
            });
            var component = new FeedComponent("x", Role.Feature, DType.Float32);
            Exception[] ways = { new OwnException("mine"), new TuttiException(ErrorCode.DataLoss, "ours") };
            foreach (Exception way in ways)
            {
                using (var feed = new Feed(2, component))
                using (Dataset dataset = new Pipeline().AddFeed(feed).Build())
                using (DatasetIterator iterator = dataset.Iterate())
                {
                    feed.Fail(way);
                    ErrorCode code = way is OwnException ? ErrorCode.Aborted : ErrorCode.DataLoss;
                    Check.Fails(code, () => iterator.Next());
                }
            }
            Come(fail =>
            {
                using (Dataset dataset = new Pipeline().AddElements(Failing(fail), 2, component).Build())
                    Data.Rows(dataset);
            });
        }

        [Test]
        private static void LogSinkThrows()
        {
            var mine = new OwnException("mine");
            using (var context = new Context(new ContextOptions { LogicalDevices = 1 }))
            using (Dataset dataset = Toy.Pipeline(context).Batch(8).Build())
            using (var estimator = new Estimator(Toy.Model, new RunOptions { LogStepCountSteps = 1 }, null, context))
            {
                context.SetLog(Severity.Debug, (severity, text) => { throw mine; });
                estimator.Train(dataset, new TrainOptions { Steps = 3 });
                Check.True(ReferenceEquals(mine, context.LogException), "the exception is kept");
                var lines = new List<string>();
                context.SetLog(Severity.Info, (severity, text) =>
                {
                    lock (lines)
                        lines.Add(text);
                });
                estimator.Train(dataset, new TrainOptions { Steps = 3 });
                lock (lines)
                    Check.True(lines.Count > 0 && lines[0].Length > 0 && context.LogException == null, "lines");
                context.SetLog(Severity.Info, null);
            }
        }

        private static void IsClosed(params Action[] calls)
        {
            for (int i = 0; i < calls.Length; i++)
            {
                var error = Check.Throws<ObjectDisposedException>(calls[i]);
                Check.True(error.Message.Contains("closed"), i + ": " + error.Message);
            }
        }

        [Test]
        private static void UseAfterClose()
        {
            Dataset dataset = Toy.TrainingSet();
            var estimator = new Estimator(Toy.Model);
            Strategy strategy = Strategy.Mirrored();
            Tensor tensor = Tensor.From(new[] { 1f });
            var feed = new Feed(1, new FeedComponent("x", Role.Feature, DType.Float32));
            DatasetIterator iterator = dataset.Iterate();
            Session session = estimator.OpenSession(dataset);
            session.Run(1);
            session.Dispose();
            estimator.Train(dataset, OneStep);
            Predictor predictor = estimator.MakePredictor();
            PredictionStream stream = predictor.OpenStream(dataset);
            Batch batch = stream.Next();
            Pipeline pipeline = Toy.Pipeline(), open = Toy.Pipeline();
            var context = new Context();
            var all = new NativeObject[]
            {
                dataset, estimator, strategy, tensor, feed, iterator, session, predictor, stream, batch, pipeline,
                context,
            };
            foreach (NativeObject one in all.Concat(all))
                one.Dispose();
            Check.True(all.All(one => one.IsDisposed), "IsDisposed");
            IsClosed(() => estimator.Train(dataset), () => estimator.Evaluate(dataset), () => dataset.Iterate(),
                () => iterator.Next(), () => strategy.MakeContext(), () => tensor.ToArray<float>(),
                () => tensor.Write<float>(), () => feed.Push(), () => session.Run(1), () => session.Finish(),
                () => predictor.Run("x", null), () => stream.Next(), () => batch.GetOutput("class"),
                () => estimator.GlobalStep.ToString(), () => pipeline.Batch(3).Build(),
                () => new Pipeline().AddSlices("x", Role.Feature, tensor).Build(), () => open.Zip(dataset).Build(),
                () => new Pipeline(context).Build(), () => predictor.Predict(dataset).Count());
        }

        [Test]
        private static void GraphsEndWithTheirFunction()
        {
            Graph kept = null;
            HookEvent happened = null;
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator((g, mode) =>
            {
                kept = g;
                Toy.Model(g, mode);
            }))
            {
                estimator.Train(dataset, OneStep, new[] { new Hook(1, e => happened = e) });
                Check.Throws<ObjectDisposedException>(() => kept.GetFeature("x"));
                Check.True(double.IsNaN(happened.GetMetric("accuracy")) && happened.Checkpoint == null, "an old event");
            }
        }

        [Test]
        private static void CancelledByToken()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            using (var source = new CancellationTokenSource())
            {
                var cancelled = Check.Throws<OperationCanceledException>(() => estimator.Train(dataset, null,
                    new[] { Hook.OnStep(10, e => source.Cancel()) }, source.Token));
                Check.True(cancelled.CancellationToken == source.Token, "the token");
                Check.Equal(ErrorCode.Cancelled, ((TuttiException)cancelled.InnerException).Code);
                Check.Throws<OperationCanceledException>(() => estimator.Train(dataset, OneStep, null, source.Token));
                using (var other = new CancellationTokenSource())
                {
                    Task<Result> training = estimator.TrainAsync(dataset, null,
                        new[] { Hook.OnStep(5, e => Task.Run(() => other.Cancel())) }, other.Token);
                    Check.Throws<AggregateException>(() => training.Wait(Program.Deadline));
                    Check.True(training.IsCanceled, training.Status.ToString());
                }
                using (var late = new CancellationTokenSource(30))
                    Check.Throws<OperationCanceledException>(() => estimator.Train(dataset, null, null, late.Token));
                estimator.Train(dataset, OneStep);
            }
        }

        [Test]
        private static void Stopped()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            using (var stop = new CancellationTokenSource())
            {
                Result result = estimator.Train(dataset, new TrainOptions { Stop = stop.Token },
                    new[] { Hook.OnStep(5, e => stop.Cancel()) });
                Check.Equal(Reason.Stopped, result.Reason);
                Check.True(result.Step >= 5, "step " + result.Step);
                Result more = estimator.Train(dataset, null, new[] { Hook.OnStep(3, e => e.StopTraining()) });
                Check.Equal(Reason.Stopped, more.Reason);
                Check.True(more.Step > result.Step, "step " + more.Step);
            }
        }

        [Test]
        private static void TrainingInsideAHookIsAnError()
        {
            using (Dataset dataset = Toy.TrainingSet())
            using (var estimator = new Estimator(Toy.Model))
            {
                TuttiException inside = null;
                estimator.Train(dataset, OneStep, new[] { Hook.OnStep(1,
                    e => inside = Check.Throws<TuttiException>(() => estimator.Train(dataset, OneStep))) });
                Check.Equal(ErrorCode.FailedPrecondition, inside.Code);
            }
        }

        [Test]
        private static void ClosingAnEstimatorCancelsItsTraining()
        {
            using (Dataset dataset = Toy.TrainingSet())
            {
                var estimator = new Estimator(Toy.Model);
                Check.Throws<ObjectDisposedException>(() => estimator.Train(dataset, null, new[] { Hook.OnStep(3,
                    e => estimator.Dispose()) }));
                estimator = new Estimator(Toy.Model);
                Hook[] hooks = { Hook.OnStep(3, e => Task.Run(() => estimator.Dispose())) };
                Task<Result> training = estimator.TrainAsync(dataset, null, hooks);
                var error = Check.Throws<AggregateException>(() => training.Wait(Program.Deadline));
                Check.True(error.InnerException is ObjectDisposedException, error.ToString());
                Check.True(error.InnerException.InnerException is TuttiException, error.ToString());
                estimator = new Estimator(Toy.Model);
                Session session = null;
                session = estimator.OpenSession(dataset, null, new[] { Hook.OnStep(3, e => session.Dispose()) });
                Check.Throws<ObjectDisposedException>(() => session.Run(1000000));
                estimator.Train(dataset, OneStep);
                estimator.Dispose();
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    // Functions of the program over elements, but for maps.
    internal static class Functions
    {
        private static readonly FeedComponent Number = new FeedComponent("n", Role.Feature, DType.Int64);

        private static long Value(Tensor tensor)
        {
            return tensor.ToArray<long>()[0];
        }

        private static Tensor[] Tensors(long value)
        {
            return new[] { Tensor.Scalar(value) };
        }

        private static void Gives(string wanted, Pipeline pipeline)
        {
            using (Dataset dataset = pipeline.Build())
            {
                Check.Equal(wanted, Data.Rows(dataset));
                Check.Equal(wanted, Data.Rows(dataset), "a second pass");
            }
        }

        [Test]
        private static void Predicates()
        {
            Gives("1 3 5", Data.Numbers(7).Filter(element => Value(element[0]) % 2 == 1));
            Gives("0,1,2", Data.Numbers(7).TakeWhile(element => Value(element[0]) < 3).Batch(3));
        }

        private static (Tensor[], Tensor[]) RunningSum(Tensor[] state, Tensor[] element)
        {
            long sum = Value(state[0]) + Value(element[0]);
            return (Tensors(sum), Tensors(sum));
        }

        [Test]
        private static void Scans()
        {
            using (Tensor zero = Tensor.Scalar(0L))
            using (Dataset two = Data.Numbers(1).AddSlices("square", Role.Feature, new[] { 0L }).Build())
            {
                var sum = new ScanState("sum", zero);
                Gives("0 1 3 6 10", Data.Numbers(5).Scan(RunningSum, sum));
                Gives("0 1 3 6 10", Data.Numbers(5).ScanGraph(g =>
                {
                    Value next = g.Add(g.GetFeature("sum"), g.GetFeature("n"));
                    g.SetOutput("sum", next);
                    g.SetOutput("n", next);
                }, sum));
                Gives("0 1 4 9", Data.Numbers(4).Scan((state, element) =>
                {
                    long n = Value(element[0]);
                    return (state, new[] { Tensor.Scalar(n * n), Tensor.Scalar(n) });
                }, two, sum));
            }
        }

        // A walk that goes on in the middle has the state of that place.
        [Test]
        private static void ScansGoOn()
        {
            using (Tensor zero = Tensor.Scalar(0L))
            using (Dataset dataset = Data.Numbers(6).Scan(RunningSum, new ScanState("sum", zero)).Build())
            using (DatasetIterator iterator = dataset.Iterate(), again = dataset.Iterate())
            {
                for (int i = 0; i < 4; i++)
                    Tensor.DisposeAll(iterator.Next());
                again.Restore(iterator.Save());
                Tensor[] element = again.Next();
                Check.Equal(0L + 1 + 2 + 3 + 4, Value(element[0]));
                Tensor.DisposeAll(element);
            }
        }

        private static Dataset Three(Tensor[] element)
        {
            long first = 10 * Value(element[0]);
            return new Pipeline().AddSlices("n", Role.Feature, new[] { first, first + 1, first + 2 }).Build();
        }

        [Test]
        private static void DatasetsOfElements()
        {
            Gives("0 1 2 10 11 12", Data.Numbers(2).FlatMap(Three));
            Gives("0 1 2 10 11 12", Data.Numbers(2).FlatMap(Three, new FlatMapOptions { ReadAhead = true }));
            var turns = new InterleaveMapOptions { CycleLength = 2, BlockLength = 2, Parallelism = 1 };
            Gives("0 1 10 11 2 12 20 21 22", Data.Numbers(3).InterleaveMap(Three, turns));
            using (Dataset shared = new Pipeline().AddSlices("text", Role.Label, new[] { 1L, 2L }).Build())
            using (Dataset dataset = Data.Numbers(2).FlatMap(e => shared, new FlatMapOptions { Like = shared }).Build())
            {
                Check.Equal("text Label", dataset.Components[0].Name + " " + dataset.Components[0].Role);
                Check.Equal("1 2 1 2", Data.Rows(dataset));
            }
        }

        private static Tensor[] OfPass(long pass, long index)
        {
            return index == 3 ? null : Tensors(10 * pass + index);
        }

        [Test]
        private static void Generators()
        {
            Gives("0 1 2 10 11 12",
                new Pipeline().AddGenerator(OfPass, Number).Repeat(new RepeatOptions { Count = 2 }));
            using (Dataset dataset = new Pipeline().AddGenerator(OfPass, Number).Build())
            using (DatasetIterator iterator = dataset.Iterate(), again = dataset.Iterate())
            {
                Tensor.DisposeAll(iterator.Next());
                again.Restore(iterator.Save());
                Tensor[] element = again.Next();
                Check.Equal(1L, Value(element[0]));
                Tensor.DisposeAll(element);
            }
        }

        private static void Read(Pipeline pipeline)
        {
            using (Dataset dataset = pipeline.Build())
            using (DatasetIterator iterator = dataset.Iterate())
                iterator.Next();
        }

        [Test]
        private static void Throws()
        {
            using (Tensor zero = Tensor.Scalar(0L))
            {
                var sum = new ScanState("sum", zero);
                Failures.Come(fail => Read(Data.Numbers(3).Filter(element =>
                {
                    fail();
                    return true;
                })));
                Failures.Come(fail => Read(Data.Numbers(3).TakeWhile(element =>
                {
                    fail();
                    return true;
                })));
                Failures.Come(fail => Read(Data.Numbers(3).Scan((state, element) =>
                {
                    fail();
                    return (state, element);
                }, sum)));
                Failures.Come(fail => Read(Data.Numbers(3).FlatMap(element =>
                {
                    fail();
                    return null;
                })));
                Failures.Come(fail => Read(Data.Numbers(3).InterleaveMap(element =>
                {
                    fail();
                    return null;
                })));
                Failures.Come(fail => Read(new Pipeline().AddGenerator((pass, index) =>
                {
                    fail();
                    return null;
                }, Number)));
            }
        }

        [Test]
        private static void RefusesWhatItCannotTake()
        {
            using (Tensor zero = Tensor.Scalar(0L))
            {
                var sum = new ScanState("sum", zero);
                Check.Throws<TuttiException>(() => Read(Data.Numbers(3).Scan((s, e) => (s, null), sum)));
                Check.Throws<TuttiException>(() => Read(Data.Numbers(3).Scan((s, e) => (null, e), sum)));
                Check.Throws<TuttiException>(() => Read(Data.Numbers(3).Scan(
                    (s, e) => (new Tensor[0], new[] { s[0], e[0] }), sum)));
                Check.Throws<TuttiException>(() => Read(Data.Numbers(3).Scan(RunningSum)));
            }
            Check.Throws<ArgumentNullException>(
                () => Read(Data.Numbers(3).Scan(RunningSum, new ScanState("sum", null))));
            Check.Throws<ArgumentNullException>(() => Data.Numbers(3).Filter((Func<Tensor[], bool>)null));
            Check.Throws<ArgumentNullException>(() => Data.Numbers(3).Scan(null));
            Check.Throws<ArgumentNullException>(() => Data.Numbers(3).FlatMap((Func<Tensor[], Dataset>)null));
            Check.Throws<ArgumentNullException>(
                () => new Pipeline().AddGenerator((Func<long, long, Tensor[]>)null, Number));
            Check.Throws<TuttiException>(() => Read(Data.Numbers(3).FlatMap(element => null)));
            Check.Throws<TuttiException>(() => Read(Data.Numbers(3).FlatMap(element =>
            {
                Dataset closed = Three(element);
                closed.Dispose();
                return closed;
            })));
            Check.Throws<TuttiException>(
                () => Read(new Pipeline().AddGenerator((pass, index) => new Tensor[0], Number)));
        }
    }
}

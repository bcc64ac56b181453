// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.IO;
using System.IO.Compression;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti.Tests
{
    internal static class Data
    {
        private static void BackAndForth<T>(DType dtype, params T[] values) where T : struct
        {
            using (Tensor tensor = Tensor.From(values))
            {
                Check.Same(values, tensor.ToArray<T>(), typeof(T).Name);
                Check.Equal(dtype, tensor.DType);
                Check.Equal((long)values.Length, tensor.Length);
            }
            using (Tensor scalar = Tensor.Scalar(values[0]))
            {
                Check.Equal(values[0], scalar.ToArray<T>()[0]);
                Check.Equal(0, scalar.Dims.Length);
            }
            using (Tensor matrix = Tensor.From(new[,] { { values[0] }, { values[0] } }))
                Check.Same(new[] { values[0], values[0] }, matrix.ToArray<T>(), typeof(T).Name);
        }

        [Test]
        private static void TensorsOfEveryType()
        {
            BackAndForth(DType.Float32, 1.5f, float.NegativeInfinity);
            BackAndForth(DType.Float64, 1.0 / 3, double.MaxValue);
            BackAndForth(DType.Int32, -1, int.MaxValue);
            BackAndForth(DType.Int64, (1L << 40) + 1, long.MinValue);
            BackAndForth(DType.UInt8, (byte)0, (byte)255);
            BackAndForth(DType.Boolean, true, false, true);
            BackAndForth(DType.Int8, (sbyte)-128, (sbyte)127);
            BackAndForth(DType.Int16, (short)-32768, (short)32767);
            BackAndForth(DType.UInt16, (ushort)65535);
            BackAndForth(DType.UInt32, uint.MaxValue);
            BackAndForth(DType.UInt64, ulong.MaxValue);
            Check.Throws<ArgumentException>(() => Tensor.From(new[] { 'a' }));
            Check.Throws<ArgumentNullException>(() => Tensor.From((float[])null));
        }

        [Test]
        private static void TensorsOfEveryShape()
        {
            using (Tensor empty = Tensor.From(new float[0], 0, 7), grid = Tensor.Zeros(DType.Int64, 2, 3))
            using (Tensor half = Tensor.FromBytes(DType.BFloat16, new byte[] { 0x80, 0x3f }, 1))
            {
                Check.Same(new long[] { 0, 7 }, empty.Dims);
                Check.Equal(0, empty.ToArray<float>().Length);
                using (TensorView<float> nothing = empty.Read<float>())
                    nothing.CopyTo(0, new float[0]);
                using (TensorView<long> view = grid.Write<long>())
                {
                    view.CopyFrom(0, Enumerable.Range(0, 5).Select(i => (long)i << 33).ToArray());
                    view.CopyFrom(5, new[] { 5L << 33 });
                    Check.Throws<ArgumentOutOfRangeException>(() => view.CopyFrom(6, new long[1]));
                    Check.Throws<ArgumentOutOfRangeException>(() => view.CopyTo(-1, new long[1]));
                }
                Check.Same(Enumerable.Range(0, 6).Select(i => (long)i << 33), grid.ToArray<long>());
                IntPtr address = grid.ToDLPack();
                using (Tensor shared = Tensor.FromDLPack(address))
                {
                    grid.Dispose();
                    Check.Equal(5L << 33, shared.ToArray<long>()[5]);
                    Check.Fails(ErrorCode.FailedPrecondition, () => shared.Write<long>());
                }
                Check.Same(new byte[] { 0x80, 0x3f }, half.ToArray<byte>());
                Check.Equal(2L, half.SizeBytes);
            }
        }

        [Test]
        private static void ViewsOutliveTheirTensor()
        {
            Tensor tensor = Tensor.From(new[] { true, false, true });
            TensorView<bool> view = tensor.Read<bool>();
            tensor.Dispose();
            var values = new bool[2];
            view.CopyTo(1, values);
            Check.Same(new[] { false, true }, values);
            Check.Throws<InvalidOperationException>(() => view.CopyFrom(0, values));
            Check.True(view.Address != IntPtr.Zero && !view.IsWritable && view.Length == 3, "view");
            view.Dispose();
            view.Dispose();
            Check.Throws<ObjectDisposedException>(() => view.CopyTo(0, values));
            Check.Throws<ObjectDisposedException>(() => tensor.Read<bool>());
        }

        // 2^31 bytes and more, when there is memory for it: TUTTI_TEST_LARGE=yes needs 3 GB.
        [Test]
        private static void LargeTensors()
        {
            if (Environment.GetEnvironmentVariable("TUTTI_TEST_LARGE") == null)
                throw new SkipException("TUTTI_TEST_LARGE is not set");
            long count = (1L << 31) + 10;
            using (Tensor tensor = Tensor.Zeros(DType.UInt8, count))
            {
                using (TensorView<byte> view = tensor.Write<byte>())
                    view.CopyFrom(count - 2, new byte[] { 7, 9 });
                using (TensorView<byte> view = tensor.Read<byte>())
                {
                    var end = new byte[3];
                    view.CopyTo(count - 3, end);
                    Check.Same(new byte[] { 0, 7, 9 }, end);
                }
                Check.Equal(count, tensor.Length);
                Check.Equal(count, tensor.Dims[0]);
            }
        }

        public static Pipeline Numbers(int count = 10)
        {
            long[] numbers = Enumerable.Range(0, count).Select(i => (long)i).ToArray();
            return new Pipeline().AddSlices("n", Role.Feature, numbers);
        }

        // The first component of each element, such as "0,1 2,3".
        public static string Rows(Dataset dataset)
        {
            var rows = new List<string>();
            foreach (Tensor[] element in dataset.Elements(1))
            {
                rows.Add(string.Join(",", element[0].ToArray<long>()));
                Tensor.DisposeAll(element);
            }
            return string.Join(" ", rows);
        }

        private static void Gives(string wanted, Pipeline pipeline)
        {
            using (Dataset dataset = pipeline.Build())
                Check.Equal(wanted, Rows(dataset));
        }

        [Test]
        private static void Pipelines()
        {
            using (Dataset other = Numbers().Take(2).Build())
            using (Tensor three = Tensor.From(new[] { 0L, 1L, 2L }))
            {
                Gives("0,1,2 0,1,2",
                    new Pipeline().AddTensor("n", Role.Feature, three).Repeat(new RepeatOptions { Count = 2 }));
                Gives("0,1,2,3 4,5,6,7 8,9", Numbers().Batch(4));
                Gives("0,1,2,3 4,5,6,7", Numbers().Batch(4, new BatchOptions { DropRemainder = true }));
                Gives("1 2 1 2", Numbers().Skip(1).Take(2).Repeat(new RepeatOptions { Count = 2 }));
                Gives("", Numbers().Take(2).Repeat(new RepeatOptions { Count = 0 }));
                Gives("0 0 1", Numbers().Take(1).Concatenate(other).Prefetch());
                Gives("2 7", Numbers().Shard(5, 2).Cache());
                Gives("0 1 2", Numbers().Batch(5).Unbatch().Take(3));
                Gives("0 8589934592", new Pipeline().AddDataset(other).MapGraph(
                    g => g.SetOutput("n", g.Mul(g.GetFeature("n"), g.Constant(DType.Int64, 1L << 33)))));
                Gives("4,1", new Pipeline().AddTensor("n", Role.Feature, three).MapGraph(g =>
                {
                    var largest = g.TopK(g.GetFeature("n"), 2);
                    g.SetOutput("n", g.Mul(largest.Values, largest.Indices));
                }));
                Gives("0 1 2", Numbers().FilterGraph(
                    g => g.SetOutput("keep", g.Less(g.GetFeature("n"), g.Constant(DType.Int64, 3)))));
            }
        }

        [Test]
        private static void DatasetsTellAndSplit()
        {
            Dataset head, rest;
            using (Dataset dataset = Numbers(5).Build())
            {
                dataset.Split(2, out head, out rest);
                Check.Equal("n Feature", dataset.Components[0].Name + " " + dataset.Components[0].Role);
                Check.Equal(DType.Int64, dataset.Components[0].DType);
                Check.True(dataset.Lint.Any(line => line.Contains("prefetch")), string.Join(" ", dataset.Lint));
                using (DatasetIterator iterator = dataset.Iterate(), again = dataset.Iterate())
                {
                    Tensor.DisposeAll(iterator.Next());
                    again.Restore(iterator.Save());
                    Tensor[] second = again.Next();
                    Check.Equal(1L, second[0].ToArray<long>()[0]);
                    Tensor.DisposeAll(second);
                    Check.Throws<TuttiException>(() => again.Restore("{"));
                }
            }
            using (head)
            using (rest)
            {
                Check.Equal("0 1", Rows(head));
                Check.Equal("2 3 4", Rows(rest));
                Check.Equal(3L, rest.Cardinality);
            }
            using (Dataset endless = Numbers().Repeat().Build())
                Check.Equal(Dataset.Infinite, endless.Cardinality);
        }

        private static long Take(Tensor[] element)
        {
            long value = element[0].ToArray<long>()[0];
            Tensor.DisposeAll(element);
            return value;
        }

        [Test]
        private static void LoopsOverElements()
        {
            using (Dataset dataset = Numbers(6).Build())
            using (DatasetIterator iterator = dataset.Iterate())
            {
                long before = Library.LiveObjects("iterator");
                IEnumerable<Tensor[]> elements = dataset.Elements();
                for (int pass = 0; pass < 2; pass++) // each loop begins anew
                {
                    Check.Same(new long[] { 0, 1, 2, 3, 4, 5 }, elements.Select(Take));
                    foreach (Tensor[] element in elements)
                    {
                        Check.Equal(0L, Take(element));
                        Check.Equal(before + 1, Library.LiveObjects("iterator"));
                        break;
                    }
                    Check.Equal(before, Library.LiveObjects("iterator"), "a loop that is left");
                    Check.Same(new long[] { 0, 1 }, elements.Take(2).Select(Take));
                    Check.Throws<InvalidOperationException>(() =>
                    {
                        foreach (Tensor[] element in elements)
                            Check.Equal(-1L, Take(element));
                    });
                    Check.Equal(before, Library.LiveObjects("iterator"), "a loop that fails");
                }
                // Over an iterator the next loop goes on.
                Check.Same(new long[] { 0, 1 }, iterator.Elements().Take(2).Select(Take));
                using (var source = new CancellationTokenSource())
                {
                    source.Cancel();
                    Check.Throws<OperationCanceledException>(() => iterator.Elements(source.Token).ToList());
                    Check.Throws<OperationCanceledException>(() => dataset.Elements(0, source.Token).ToList());
                }
                Check.Same(new long[] { 2, 3, 4, 5 }, iterator.Elements().Select(Take));
                Check.Equal(0, iterator.Elements().Count());
                Check.Equal(before, Library.LiveObjects("iterator"));
            }
        }

        // The words of a corpus; with a vocabulary their numbers, 0 for padding and 1 for what is not in it.
        private static Pipeline Words(Tensor vocabulary)
        {
            using (Tensor corpus = Tensor.From(new[] { "The cat sat.", "A dog sat", "", "the cat, the dog!" }))
                return new Pipeline().AddSlices("text", Role.Feature, corpus).MapGraph(g =>
                {
                    Value text = g.BytesTokenize(g.GetFeature("text"),
                        new BytesTokenizeOptions { Punctuation = BytesTokenizePunctuation.Drop });
                    if (vocabulary != null)
                        text = g.Add(g.Lookup(text, new LookupOptions { Vocabulary = g.ConstantTensor(vocabulary) }),
                            g.Constant(DType.Int64, 2));
                    g.SetOutput("text", text);
                });
        }

        [Test]
        private static void AVocabularyIsMadeFromACorpus()
        {
            using (Dataset corpus = Words(null).Build())
            {
                long[] counts;
                using (Tensor all = corpus.CountTexts("text", out counts))
                    Check.Same(new[] { "the", "cat", "dog", "sat", "a" }, all.ToTexts());
                Check.Same(new long[] { 3, 2, 2, 2, 1 }, counts);
                using (Tensor frequent = corpus.CountTexts("text", out counts, leastCount: 2))
                    Check.Same(new[] { "the", "cat", "dog", "sat" }, frequent.ToTexts());
                using (Tensor vocabulary = corpus.CountTexts("text", out counts, mostTexts: 3))
                {
                    Check.Same(new[] { "the", "cat", "dog" }, vocabulary.ToTexts());
                    Check.Same(new long[] { 3, 2, 2 }, counts);
                    Gives("2,3,1,1,4,1 0,0,0,0,2,3,2,4", Words(vocabulary).PaddedBatch(2));
                }
                TuttiException large = Check.Fails(ErrorCode.ResourceExhausted,
                    () => corpus.CountTexts("text", out counts, memoryBytes: 100));
                Check.True(large.Message.Contains("need more than 100 bytes"), large.Message);
                Check.Fails(ErrorCode.InvalidArgument, () => corpus.CountTexts("y", out counts));
                using (var source = new CancellationTokenSource())
                {
                    source.Cancel();
                    Check.Throws<OperationCanceledException>(
                        () => corpus.CountTexts("text", out counts, cancellationToken: source.Token));
                }
            }
        }

        [Test]
        private static void ClassesAreCountedAndWeighed()
        {
            using (Dataset dataset = new Pipeline().AddSlices("y", Role.Label, new long[] { 2, 0, 0, 1, 0, 0 }).Build())
            {
                Check.Same(new long[] { 4, 1, 1 }, dataset.CountClasses("y"));
                long[] counts = dataset.CountClasses("y", 4);
                Check.Same(new long[] { 4, 1, 1, 0 }, counts);
                TuttiException bad = Check.Fails(ErrorCode.OutOfRange, () => dataset.CountClasses("y", 2));
                Check.True(bad.Message.Contains("element 0 is of class 2; expected a class from 0 to 1"), bad.Message);
                Check.Throws<ArgumentOutOfRangeException>(() => dataset.CountClasses("y", -1));
                using (var source = new CancellationTokenSource())
                {
                    source.Cancel();
                    Check.Throws<OperationCanceledException>(() => dataset.CountClasses("y", 3, source.Token));
                }
                using (Dataset endless = new Pipeline().AddDataset(dataset).Repeat().Build())
                    Check.Fails(ErrorCode.InvalidArgument, () => endless.CountClasses("y"));
                using (Dataset none = new Pipeline().AddDataset(dataset).Take(0).Build())
                    Check.Equal(0, none.CountClasses("y").Length);
                using (Dataset weighed = new Pipeline().AddDataset(dataset).ClassWeights("y", counts).Batch(6).Build())
                {
                    Check.Equal(Role.Weight, weighed.Components[1].Role);
                    foreach (Tensor[] batch in weighed.Elements())
                    {
                        Check.Same(new[] { 2, 0.5f, 0.5f, 2, 0.5f, 0.5f }, batch[1].ToArray<float>());
                        Tensor.DisposeAll(batch);
                    }
                }
            }
        }

        [Test]
        private static void Texts()
        {
            var texts = new[] { "one", "", "größe-数-🙂" };
            using (Tensor vector = Tensor.From(texts), numbers = Tensor.From(new long[] { 1 }))
            using (Tensor grid = Tensor.From(new[] { new byte[] { 0, 255 }, new byte[0] }, 2, 1))
            {
                Check.Same(texts, vector.ToTexts());
                Check.Equal(DType.Bytes, vector.DType);
                Check.Same(new long[] { 2, 1 }, grid.Dims);
                Check.Same(new byte[] { 0, 255 }, grid.ToByteArrays()[0]);
                Check.Equal(0, grid.ToByteArrays()[1].Length);
                Check.Throws<TuttiException>(() => numbers.ToTexts());
            }
            Check.Throws<ArgumentNullException>(() => Tensor.From(new string[] { null }));
        }

        [Test]
        private static void RecordsAndLines()
        {
            WithFolder(folder =>
            {
                string path = Path.Combine(folder, "größe.gz"), lines = Path.Combine(folder, "1.txt");
                File.WriteAllText(lines, "head\na\r\nb");
                using (Dataset dataset = new Pipeline().TextLines(new[] { folder + "/*.txt" },
                    new TextLinesOptions { SkipLines = 1 }).Batch(5).Build())
                {
                    foreach (Tensor[] element in dataset.Elements())
                        Check.Same(new[] { "a", "b" }, element[0].ToTexts());
                }
                using (var writer = new RecordWriter(path, "gzip"))
                {
                    for (long i = 0; i < 3; i++)
                    {
                        using (Tensor label = Tensor.Scalar(i), words = Tensor.From(new string[0]))
                            writer.AddFeature("label", label).AddFeature("words", words).WriteExample();
                    }
                    writer.Finish();
                    Check.Throws<TuttiException>(() => writer.Write(new byte[1]));
                }
                long next = 0;
                using (Dataset dataset = new Pipeline().Tfrecord(new[] { path }).ParseExample(
                    new[] { "label: i64", "words: bytes[?]" },
                    new ParseExampleOptions { Labels = new[] { "label" } }).Build())
                {
                    foreach (Tensor[] element in dataset.Elements())
                    {
                        Check.Equal(next++, element[0].ToArray<long>()[0]);
                        Check.Equal(0L, element[1].Length);
                    }
                }
                Check.Equal(3L, next);
                Check.Throws<ArgumentNullException>(() => new Pipeline().Tfrecord(null).Build());
            });
        }

        private static string WriteIdx(string folder, string name)
        {
            string path = Path.Combine(folder, name);
            using (var file = new GZipStream(File.Create(path), CompressionMode.Compress))
                file.Write(new byte[] { 0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9 }, 0, 11);
            return path;
        }

        public static void WithFolder(Action<string> use)
        {
            string folder = Path.Combine(Path.GetTempPath(), "tutti-" + Guid.NewGuid().ToString("N"));
            Directory.CreateDirectory(folder);
            try
            {
                use(folder);
            }
            finally
            {
                Directory.Delete(folder, true);
            }
        }

        [Test]
        private static void TextIsUtf8AndIsNotCut()
        {
            WithFolder(folder =>
            {
                string path = WriteIdx(folder, "größe-数-🙂.gz");
                Gives("7,8,9", new Pipeline().AddIdx("n", Role.Feature, path).Batch(3).MapGraphOnDevice(
                    g => g.SetOutput("n", g.Cast(g.GetFeature("n"), DType.Int64))));
                Check.Fails(ErrorCode.NotFound,
                    () => new Pipeline().AddIdx("n", Role.Feature, path + "\0more").Build());
            });
            var error = Check.Fails(ErrorCode.NotFound,
                () => new Pipeline().AddIdx("n", Role.Feature, "no/such/größe-数-🙂.gz").Build());
            Check.True(error.Message.Contains("größe-数-🙂"), error.Message);
            Check.Fails(ErrorCode.NotFound, () => Strategy.Mirrored(new[] { "cpu:0\0" }));
            Check.True(!Library.HasFeature("backend:reference\0"), "a feature's name is cut");
            using (Dataset named = new Pipeline().AddSlices("größe 数", Role.Feature, new[] { 1f }).Build())
                Check.Equal("größe 数", named.Components[0].Name);
        }

        private static readonly FeedComponent Number = new FeedComponent("n", Role.Feature, DType.Int64);

        // Elements whose end, early or not, is seen.
        private static IEnumerable<Tensor[]> Counting(int count, Action ended)
        {
            try
            {
                for (int i = 0; i < count; i++)
                    yield return new[] { Tensor.Scalar((long)i) };
            }
            finally
            {
                ended();
            }
        }

        [Test]
        private static void FeedFromElements()
        {
            int ended = 0;
            using (var feed = new Feed(2, Number))
            using (Dataset dataset = new Pipeline().AddFeed(feed).Batch(3).Build())
            {
                Task pushed = feed.PushAllAsync(Counting(7, () => ended++));
                Check.Equal("0,1,2 3,4,5 6", Rows(dataset));
                Check.True(pushed.Wait(Program.Deadline), "the push ends");
                Check.Equal(1, ended);
                Check.Equal(0L, feed.Position);
            }
            using (Dataset dataset = new Pipeline()
                .AddElements(Counting(5, () => Interlocked.Increment(ref ended)), 2, Number).Batch(2).Build())
                Check.Equal("0,1 2,3 4", Rows(dataset));
            Check.Eventually(() => Volatile.Read(ref ended) == 2, "the enumerator is closed at its end");
        }

        [Test]
        private static void AbandonedElementsAreClosed()
        {
            int ended = 0;
            Dataset dataset = new Pipeline()
                .AddElements(Counting(1000000, () => Interlocked.Increment(ref ended)), 2, Number).Build();
            foreach (Tensor[] element in dataset.Elements())
            {
                Tensor.DisposeAll(element);
                break;
            }
            Check.Eventually(() => Volatile.Read(ref ended) == 1, "closed when the reader is gone");
            dataset.Dispose();
            using (new Pipeline()
                .AddElements(Counting(1000000, () => Interlocked.Increment(ref ended)), 2, Number).Build())
                Check.Equal(1, Volatile.Read(ref ended), "nobody read");
            Check.Eventually(() => Volatile.Read(ref ended) == 2, "closed with the dataset");
        }

        [Test]
        private static void ClosingAFeedEndsItsPush()
        {
            var feed = new Feed(1, Number);
            using (new Pipeline().AddFeed(feed).Build())
            {
                int pushes = 0;
                Task pushed = feed.PushAllAsync(Endless(() => Interlocked.Increment(ref pushes)));
                Check.Eventually(() => Volatile.Read(ref pushes) >= 2, "the second push waits");
                feed.Dispose();
                var error = Check.Throws<AggregateException>(() => pushed.Wait(Program.Deadline));
                Check.True(error.InnerException is ObjectDisposedException, error.ToString());
            }
            Check.Throws<ObjectDisposedException>(feed.Finish);
        }

        private static IEnumerable<Tensor[]> Endless(Action each)
        {
            while (true)
            {
                each();
                yield return new[] { Tensor.Scalar(1L) };
            }
        }

        [Test]
        private static void PushesAreCancelled()
        {
            using (var feed = new Feed(1, Number))
            using (new Pipeline().AddFeed(feed).Build())
            using (var source = new CancellationTokenSource())
            using (Tensor one = Tensor.Scalar(1L))
            {
                feed.Push(one);
                source.CancelAfter(20);
                Check.Throws<OperationCanceledException>(() => feed.Push(new[] { one }, source.Token));
                Check.Throws<ArgumentNullException>(() => feed.Push(null, default(CancellationToken)));
                Check.Throws<ArgumentNullException>(() => feed.Push((Tensor)null));
                Check.Throws<TuttiException>(() => feed.Push(one, one));
            }
        }

        [Test]
        private static void AnIteratorServesOneThread()
        {
            using (var feed = new Feed(1, Number))
            using (Dataset dataset = new Pipeline().AddFeed(feed).Build())
            using (DatasetIterator iterator = dataset.Iterate())
            {
                Task<Tensor[]> first = Task.Run(() => NextWhenFree(iterator));
                Check.Eventually(() => IsBusy(iterator), "a second thread is told");
                feed.Finish();
                Check.True(first.Wait(Program.Deadline) && first.Result == null, "the first reaches the end");
            }
            using (var feed = new Feed(1, Number))
            using (Dataset dataset = new Pipeline().AddFeed(feed).Build())
            {
                DatasetIterator iterator = dataset.Iterate();
                Task<Tensor[]> waiting = Task.Run(() => NextWhenFree(iterator));
                Check.Eventually(() => IsBusy(iterator), "it waits");
                iterator.Dispose();
                var error = Check.Throws<AggregateException>(() => waiting.Wait(Program.Deadline));
                Check.True(error.InnerException is ObjectDisposedException, error.ToString());
            }
        }

        // The next element, however often the other thread is asking whether the iterator is busy.
        private static Tensor[] NextWhenFree(DatasetIterator iterator)
        {
            Tensor[] element = null;
            Check.Eventually(() =>
            {
                try
                {
                    element = iterator.Next();
                    return true;
                }
                catch (TuttiException e) when (e.Code == ErrorCode.FailedPrecondition)
                {
                    return false;
                }
            }, "the iterator is always busy");
            return element;
        }

        private static bool IsBusy(DatasetIterator iterator)
        {
            try
            {
                iterator.Save();
                return false;
            }
            catch (TuttiException e)
            {
                return e.Code == ErrorCode.FailedPrecondition;
            }
        }
    }
}

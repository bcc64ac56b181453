// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Tutti.Tests
{
    // Tensors over arrays and other memory that the program has.
    internal static class Borrowing
    {
        private static void BackAndForth<T>(params T[] values) where T : struct
        {
            var matrix = new T[2, values.Length];
            for (int i = 0; i < values.Length; i++)
                matrix[1, i] = values[i];
            using (Tensor vector = Tensor.Wrap(values), grid = Tensor.Wrap(matrix))
            using (Tensor row = Tensor.Wrap(values, 1, values.Length))
            {
                Check.Same(values, vector.ToArray<T>(), typeof(T).Name);
                Check.Same(values, grid.ToArray<T>().Skip(values.Length), typeof(T).Name);
                Check.Same(new long[] { 2, values.Length }, grid.Dims);
                Check.Same(new long[] { 1, values.Length }, row.Dims);
            }
        }

        [Test]
        private static void ArraysOfEveryType()
        {
            BackAndForth(1.5f, float.NegativeInfinity);
            BackAndForth(1.0 / 3, double.MaxValue);
            BackAndForth(-1, int.MaxValue);
            BackAndForth((1L << 40) + 1, long.MinValue);
            BackAndForth<byte>(0, 255);
            BackAndForth<sbyte>(-128, 127);
            BackAndForth<short>(-32768, 32767);
            BackAndForth<ushort>(65535);
            BackAndForth(uint.MaxValue);
            BackAndForth(ulong.MaxValue);
            using (Tensor half = Tensor.WrapBytes(DType.BFloat16, new byte[] { 0x80, 0x3f }, 1))
            using (Tensor truths = Tensor.WrapBytes(DType.Boolean, new byte[] { 1, 0 }, 2))
            using (Tensor empty = Tensor.Wrap(new float[0], 0, 7))
            {
                Check.Same(new byte[] { 0x80, 0x3f }, half.ToArray<byte>());
                Check.Same(new[] { true, false }, truths.ToArray<bool>());
                Check.Same(new long[] { 0, 7 }, empty.Dims);
            }
            try
            {
                BackAndForth(true, false);
            }
            catch (ArgumentException e)
            {
                Check.True(e.Message.Contains("Boolean[] in place"), e.Message);
            }
            Check.Throws<ArgumentNullException>(() => Tensor.Wrap((float[])null));
            Check.Throws<ArgumentException>(() => Tensor.Wrap(new[] { 'a' }));
        }

        [Test]
        private static void MemoryIsBorrowedUntilItsLastUserIsGone()
        {
            IntPtr memory = Marshal.AllocHGlobal(24);
            int released = 0;
            Marshal.Copy(new long[] { 0, 2, 3 }, 0, memory, 3);
            Tensor tensor = Tensor.WrapMemory(DType.Int64, memory, 24, () => Interlocked.Increment(ref released), 3);
            Marshal.WriteInt64(memory, 1); // shows, for nothing has been copied
            Check.Same(new long[] { 1, 2, 3 }, tensor.ToArray<long>());
            Dataset dataset = new Pipeline().AddSlices("n", Role.Feature, tensor).Build();
            tensor.Dispose();
            DatasetIterator iterator = dataset.Iterate();
            dataset.Dispose();
            Tensor element = iterator.Next()[0];
            iterator.Dispose();
            using (TensorView<long> view = element.Read<long>())
            {
                element.Dispose(); // the view is the last user
                Check.Equal(memory, view.Address, "no copy");
                Marshal.WriteInt64(memory, 7);
                var values = new long[1];
                view.CopyTo(0, values);
                Check.Equal(7L, values[0]);
                Check.Equal(0, released);
            }
            Check.Eventually(() => Volatile.Read(ref released) == 1, "the release");
            Marshal.FreeHGlobal(memory);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static Tensor OverForgottenArray(List<WeakReference> arrays)
        {
            var array = new long[] { 1, 2, 3 };
            arrays.Add(new WeakReference(array));
            Tensor tensor = Tensor.Wrap(array);
            array[0] = 7; // shows, for nothing has been copied
            return tensor;
        }

        [Test]
        private static void TheTensorHoldsTheArray()
        {
            var arrays = new List<WeakReference>();
            var tensors = new List<Tensor>();
            for (int i = 0; i < 100; i++)
                tensors.Add(OverForgottenArray(arrays));
            for (int i = 0; i < 5; i++)
                GC.Collect();
            Check.True(arrays.All(array => array.IsAlive), "arrays are held");
            Check.True(tensors.All(tensor => tensor.ToArray<long>().SequenceEqual(new long[] { 7, 2, 3 })), "values");
            Tensor.DisposeAll(tensors);
            // The collector reads stacks with caution: a few arrays may seem to be held.
            Check.Eventually(() =>
            {
                GC.Collect();
                return arrays.Count(array => array.IsAlive) < 10;
            }, "arrays are let go");
        }

        // Threads of the library read ahead, and are the last that let go.
        [Test]
        private static void MemoryComesBackFromThreadsOfTheLibrary()
        {
            const int Many = 100;
            int released = 0;
            for (int i = 0; i < Many; i++)
            {
                IntPtr memory = Marshal.AllocHGlobal(8000);
                Action release = () =>
                {
                    Tensor.Scalar(1).Dispose(); // the library may be called
                    Marshal.FreeHGlobal(memory);
                    Interlocked.Increment(ref released);
                };
                using (Tensor tensor = Tensor.WrapMemory(DType.UInt64, memory, 8000, release, 1000))
                using (Dataset dataset = new Pipeline().AddSlices("n", Role.Feature, tensor).Batch(7).Repeat()
                    .Prefetch().Build())
                using (DatasetIterator iterator = dataset.Iterate())
                    Tensor.DisposeAll(iterator.Next());
            }
            Check.Eventually(() => Volatile.Read(ref released) == Many, "all come back");
        }

        [Test]
        private static void MemoryThatCannotBeBorrowed()
        {
            IntPtr memory = Marshal.AllocHGlobal(64);
            int released = 0;
            Action<string, IntPtr, long, long> refused = (reason, address, size, dim) =>
            {
                TuttiException error = Check.Fails(ErrorCode.InvalidArgument, () => Tensor.WrapMemory(DType.Int64,
                    address, size, () => Interlocked.Increment(ref released), dim));
                Check.True(error.Message.Contains(reason), error.Message);
            };
            refused("needs 56 bytes, got 64", memory, 64, 7);
            refused("not aligned to 8 bytes", memory + 4, 8, 1);
            refused("-8", memory, 64, -8);
            refused("data", IntPtr.Zero, 8, 1);
            Check.Eventually(() => Volatile.Read(ref released) == 4, "released on failure, too");
            Check.Fails(ErrorCode.InvalidArgument, () => Tensor.Wrap(new long[6], 4));
            Marshal.FreeHGlobal(memory);
        }

        // The most memory that the process has held since `restart`, where that can be said.
        private static long PeakBytes(bool restart)
        {
            if (!File.Exists("/proc/self/status"))
                throw new SkipException("/proc is not there");
            try
            {
                if (restart)
                    File.WriteAllText("/proc/self/clear_refs", "5");
            }
            catch (SystemException)
            {
                // else it is the peak since the beginning
            }
            string line = File.ReadAllLines("/proc/self/status").FirstOrDefault(l => l.StartsWith("VmHWM:"));
            if (line == null)
                throw new SkipException("/proc tells no peak");
            return long.Parse(new string(line.Where(char.IsDigit).ToArray())) << 10;
        }

        [Test]
        private static void BorrowedDataTakeNoMemoryOfTheirOwn()
        {
            const int Rows = 64 << 10; // of 1024 numbers, 256 MB
            const long Size = Rows * 4096L;
            var data = new float[Rows * 1024];
            for (int i = 0; i < data.Length; i += 1024)
                data[i] = 1;
            long before = PeakBytes(true);
            double sum = 0;
            var numbers = new float[1];
            using (Tensor tensor = Tensor.Wrap(data, Rows, 1024))
            using (Dataset dataset = new Pipeline().AddSlices("x", Role.Feature, tensor).Batch(64).Prefetch().Build())
            using (DatasetIterator iterator = dataset.Iterate())
            {
                for (Tensor[] element = iterator.Next(); element != null; element = iterator.Next())
                {
                    using (element[0])
                    using (TensorView<float> view = element[0].Read<float>())
                    {
                        for (long i = 0; i < view.Length; i += 1024)
                        {
                            view.CopyTo(i, numbers);
                            sum += numbers[0];
                        }
                    }
                }
            }
            Check.Equal((double)Rows, sum);
            long grown = PeakBytes(false) - before;
            Check.True(grown < Size / 10 + (48 << 20), "reading " + Size + " bytes took " + grown + " more");
        }
    }
}

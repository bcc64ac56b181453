// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace Tutti.Tests
{
    // The structs of the Arrow C data and stream interfaces, made and read here from their specification alone.
    internal static unsafe class Arrow
    {
        private struct Schema
        {
            public IntPtr Format, Name, Metadata;
            public long Flags, ChildCount;
            public IntPtr* Children;
            public IntPtr Dictionary, Release, Data;
        }

        private struct Array
        {
            public long Length, NullCount, Offset, BufferCount, ChildCount;
            public IntPtr* Buffers, Children;
            public IntPtr Dictionary, Release, Data;
        }

        private struct Stream
        {
            public IntPtr GetSchema, GetNext, GetLastError, Release, Data;
        }

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int Get(IntPtr stream, IntPtr target);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate IntPtr GetText(IntPtr stream);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void Free(IntPtr target);

        private static void Call(IntPtr release, void* target)
        {
            ((Free)Marshal.GetDelegateForFunctionPointer(release, typeof(Free)))((IntPtr)target);
        }

        // A stream of record batches with the one column "n" of 64-bit integers, of memory that it counts.
        private sealed class Producer
        {
            private readonly List<long[]> batches; // the ones to come
            private readonly Get getSchema, getNext;
            private readonly GetText getLastError;
            private readonly Free releaseStream, releaseSchema, releaseArray;
            private readonly IntPtr error = Marshal.StringToHGlobalAnsi("the producer is at lunch");
            private readonly int failure;
            public int Live; // structs that were given and not released

            public Producer(int failure, params long[][] batches)
            {
                this.batches = new List<long[]>(batches);
                this.failure = failure;
                getSchema = (stream, target) => Give(WriteSchema, target);
                getNext = (stream, target) => this.batches.Count == 0 ? End(target) : Give(WriteArray, target);
                getLastError = stream => error;
                releaseStream = target => Released(ref ((Stream*)target)->Release);
                releaseSchema = target => Released(ref ((Schema*)target)->Release);
                releaseArray = target => Released(ref ((Array*)target)->Release);
            }

            public void Write(Stream* stream)
            {
                stream->GetSchema = Marshal.GetFunctionPointerForDelegate(getSchema);
                stream->GetNext = Marshal.GetFunctionPointerForDelegate(getNext);
                stream->GetLastError = Marshal.GetFunctionPointerForDelegate(getLastError);
                stream->Release = Marshal.GetFunctionPointerForDelegate(releaseStream);
                Live++;
            }

            private static int Give(Action<IntPtr> write, IntPtr target)
            {
                write(target);
                return 0;
            }

            // The end of the stream is an array without release; a producer that fails does so there.
            private int End(IntPtr target)
            {
                *(Array*)target = default(Array);
                return failure;
            }

            private void Released(ref IntPtr release)
            {
                release = IntPtr.Zero;
                Live--;
            }

            private static IntPtr Memory(int size)
            {
                IntPtr memory = Marshal.AllocHGlobal(size);
                for (int i = 0; i < size; i++)
                    Marshal.WriteByte(memory, i, 0);
                return memory;
            }

            // The memory is left to the end of the process: what counts here is that each struct is released.
            private void WriteSchema(IntPtr target)
            {
                var column = (Schema*)Memory(sizeof(Schema));
                column->Format = Marshal.StringToHGlobalAnsi("l");
                column->Name = Marshal.StringToHGlobalAnsi("n");
                column->Release = Marshal.GetFunctionPointerForDelegate(releaseSchema);
                *(Schema*)target = default(Schema);
                ((Schema*)target)->Format = Marshal.StringToHGlobalAnsi("+s");
                ((Schema*)target)->ChildCount = 1;
                ((Schema*)target)->Children = (IntPtr*)Memory(sizeof(IntPtr));
                ((Schema*)target)->Children[0] = (IntPtr)column;
                ((Schema*)target)->Release = Marshal.GetFunctionPointerForDelegate(releaseSchema);
                Live++; // children are released with their parent, which has one function for both
            }

            private void WriteArray(IntPtr target)
            {
                long[] values = batches[0];
                batches.RemoveAt(0);
                var column = (Array*)Memory(sizeof(Array));
                column->Length = values.Length;
                column->BufferCount = 2;
                column->Buffers = (IntPtr*)Memory(2 * sizeof(IntPtr));
                column->Buffers[1] = Memory(values.Length * sizeof(long));
                Marshal.Copy(values, 0, column->Buffers[1], values.Length);
                column->Release = Marshal.GetFunctionPointerForDelegate(releaseArray);
                *(Array*)target = default(Array);
                ((Array*)target)->Length = values.Length;
                ((Array*)target)->BufferCount = 1;
                ((Array*)target)->Buffers = (IntPtr*)Memory(sizeof(IntPtr));
                ((Array*)target)->ChildCount = 1;
                ((Array*)target)->Children = (IntPtr*)Memory(sizeof(IntPtr));
                ((Array*)target)->Children[0] = (IntPtr)column;
                ((Array*)target)->Release = Marshal.GetFunctionPointerForDelegate(releaseArray);
                Live++;
            }
        }

        [Test]
        private static void StreamsGoIn()
        {
            var producer = new Producer(0, new long[] { 5, 6 }, new long[] { 7 }, new long[0], new[] { long.MinValue });
            Stream stream;
            producer.Write(&stream);
            Pipeline pipeline = new Pipeline().SetArrowStream((IntPtr)(&stream)).Arrow();
            Check.Equal(IntPtr.Zero, stream.Release);
            using (Dataset dataset = pipeline.Batch(3).Build())
            {
                Check.Equal("5,6,7 " + long.MinValue, Data.Rows(dataset));
                Check.Equal("5,6,7 " + long.MinValue, Data.Rows(dataset), "a second pass");
            }
            Check.Eventually(() => producer.Live == 0, producer.Live + " structs are not released");
            GC.KeepAlive(producer);
        }

        [Test]
        private static void StreamsFail()
        {
            var producer = new Producer(5, new long[] { 1 }); // EIO
            Stream stream;
            producer.Write(&stream);
            IntPtr address = (IntPtr)(&stream);
            var error = Check.Throws<TuttiException>(() => new Pipeline().SetArrowStream(address).Arrow().Build());
            Check.True(error.ToString().Contains("the producer is at lunch"), error.ToString());
            Check.Equal(0, producer.Live);
            Check.Throws<TuttiException>(() => new Pipeline().SetArrowStream(address).Arrow().Build());
            Check.Throws<TuttiException>(() => new Pipeline().SetArrowStream(IntPtr.Zero).Arrow().Build());
            producer.Write(&stream);
            using (new Pipeline().SetArrowStream(address))
                Check.Equal(IntPtr.Zero, stream.Release);
            Check.Equal(0, producer.Live); // nobody has read it
            GC.KeepAlive(producer);
        }

        // What a record batch of the stream holds in its column "n".
        private static long[] Read(Array* batch)
        {
            var column = (Array*)batch->Children[0];
            var values = new long[column->Length];
            for (long i = 0; i < values.Length; i++)
                values[i] = ((long*)column->Buffers[1])[column->Offset + i];
            Check.Equal(batch->Length, column->Length);
            return values;
        }

        private static string ReadAll(Stream* stream)
        {
            var getSchema = (Get)Marshal.GetDelegateForFunctionPointer(stream->GetSchema, typeof(Get));
            var getNext = (Get)Marshal.GetDelegateForFunctionPointer(stream->GetNext, typeof(Get));
            Schema schema;
            Check.Equal(0, getSchema((IntPtr)stream, (IntPtr)(&schema)));
            var column = (Schema*)schema.Children[0];
            Check.Equal("+s l n", Marshal.PtrToStringAnsi(schema.Format) + " " +
                Marshal.PtrToStringAnsi(column->Format) + " " + Marshal.PtrToStringAnsi(column->Name));
            Call(schema.Release, &schema);
            var batches = new List<string>();
            Array batch;
            for (Check.Equal(0, getNext((IntPtr)stream, (IntPtr)(&batch))); batch.Release != IntPtr.Zero;
                 Check.Equal(0, getNext((IntPtr)stream, (IntPtr)(&batch))))
            {
                batches.Add(string.Join(",", Read(&batch)));
                Call(batch.Release, &batch);
            }
            Call(stream->Release, stream);
            return string.Join(" ", batches);
        }

        [Test]
        private static void StreamsGoOut()
        {
            Stream stream;
            IntPtr address = (IntPtr)(&stream);
            using (Dataset rows = Data.Numbers(5).Build(), batches = Data.Numbers(5).Batch(3).Build())
            {
                rows.ToArrow(address, 2);
                Check.Equal("0,1 2,3 4", ReadAll(&stream));
                batches.ToArrow(address, 100);
                Check.Equal("0,1,2 3,4", ReadAll(&stream));
                Check.Fails(ErrorCode.InvalidArgument, () => rows.ToArrow(address, 0));
                rows.ToArrow(address, 2);
            }
            Check.Equal("0,1 2,3 4", ReadAll(&stream)); // it outlives the dataset's object
        }

        [Test]
        private static void StreamsGoOutAndIn()
        {
            Stream stream;
            IntPtr address = (IntPtr)(&stream);
            using (Dataset dataset = Data.Numbers(5).Build())
            {
                dataset.ToArrow(address, 2);
                using (Dataset again = new Pipeline().SetArrowStream(address).Arrow().Build())
                    Check.Equal("0 1 2 3 4", Data.Rows(again));
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace Tutti
{
    /// <summary>The type of a tensor's elements.</summary>
    public enum DType
    {
        /// <summary>float.</summary>
        Float32 = Raw.DTYPE_F32,
        /// <summary>double.</summary>
        Float64 = Raw.DTYPE_F64,
        /// <summary>int.</summary>
        Int32 = Raw.DTYPE_I32,
        /// <summary>long.</summary>
        Int64 = Raw.DTYPE_I64,
        /// <summary>byte.</summary>
        UInt8 = Raw.DTYPE_U8,
        /// <summary>bool.</summary>
        Boolean = Raw.DTYPE_BOOL,
        /// <summary>Half precision; read and written as bytes.</summary>
        Float16 = Raw.DTYPE_F16,
        /// <summary>The upper half of a float; read and written as bytes.</summary>
        BFloat16 = Raw.DTYPE_BF16,
        /// <summary>sbyte.</summary>
        Int8 = Raw.DTYPE_I8,
        /// <summary>short.</summary>
        Int16 = Raw.DTYPE_I16,
        /// <summary>ushort.</summary>
        UInt16 = Raw.DTYPE_U16,
        /// <summary>uint.</summary>
        UInt32 = Raw.DTYPE_U32,
        /// <summary>ulong.</summary>
        UInt64 = Raw.DTYPE_U64,
        /// <summary>Byte strings.</summary>
        Bytes = Raw.DTYPE_BYTES,
    }

    /// <summary>A dense, row-major array in memory of the library's. Several threads may read one; a writer must be
    /// alone.</summary>
    public sealed class Tensor : NativeObject
    {
        private static readonly Kind TensorKind = new Kind("Tensor", Raw.tensor_unref);

        // Takes the reference.
        internal Tensor(IntPtr number) : base(new Handle(TensorKind, number, Raw.tensor_get_size_bytes(number)))
        {
        }

        // Takes the reference to a tensor over managed memory, which the collector sees.
        private Tensor(IntPtr number, long unseenBytes) : base(new Handle(TensorKind, number, unseenBytes))
        {
        }

        // A tensor that the library lends.
        internal static Tensor Shared(IntPtr number)
        {
            Raw.tensor_ref(number);
            return new Tensor(number);
        }

        /// <summary>Makes a tensor with a copy of the elements; without dimensions it is a vector.</summary>
        public static Tensor From<T>(T[] data, params long[] dims) where T : struct
        {
            if (data == null)
                throw new ArgumentNullException("data");
            return FromArray<T>(data, dims == null || dims.Length == 0 ? new long[] { data.Length } : dims);
        }

        /// <summary>Makes a matrix with a copy of the elements.</summary>
        public static Tensor From<T>(T[,] data) where T : struct
        {
            if (data == null)
                throw new ArgumentNullException("data");
            return FromArray<T>(data, new long[] { data.GetLength(0), data.GetLength(1) });
        }

        /// <summary>Makes a tensor of type Bytes with copies of the elements; without dimensions it is a
        /// vector.</summary>
        public static Tensor From(byte[][] data, params long[] dims)
        {
            if (data == null || Array.IndexOf(data, null) >= 0)
                throw new ArgumentNullException("data");
            long end = 8L * (data.Length + 1);
            foreach (byte[] one in data)
                end += one.Length;
            // First where each element begins and the last ends, counted from the beginning, then the elements.
            var memory = new byte[end];
            end = 8L * (data.Length + 1);
            for (int i = 0; i < data.Length; i++)
            {
                Buffer.BlockCopy(BitConverter.GetBytes(end), 0, memory, 8 * i, 8);
                Array.Copy(data[i], 0, memory, end, data[i].Length);
                end += data[i].Length;
            }
            Buffer.BlockCopy(BitConverter.GetBytes(end), 0, memory, 8 * data.Length, 8);
            return FromBytes(DType.Bytes, memory, dims == null || dims.Length == 0 ? new long[] { data.Length } : dims);
        }

        /// <summary>Makes a tensor of type Bytes, the texts in UTF-8; without dimensions it is a vector.</summary>
        public static Tensor From(string[] texts, params long[] dims)
        {
            if (texts == null || Array.IndexOf(texts, null) >= 0)
                throw new ArgumentNullException("texts");
            return From(Array.ConvertAll(texts, text => System.Text.Encoding.UTF8.GetBytes(text)), dims);
        }

        /// <summary>A copy of the elements of a tensor of type Bytes, row-major.</summary>
        public byte[][] ToByteArrays()
        {
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this);
                var found = (DType)Raw.tensor_get_dtype(number);
                if (found != DType.Bytes)
                    throw TuttiException.Ours(ErrorCode.InvalidArgument, "the tensor's elements are " + found);
                var values = new byte[Raw.tensor_get_element_count(number)][];
                for (int i = 0; i < values.Length; i++)
                {
                    values[i] = new byte[Raw.tensor_get_element_size(number, i)];
                    if (values[i].Length > 0)
                        Marshal.Copy(Raw.tensor_get_element_data(number, i), values[i], 0, values[i].Length);
                }
                return values;
            }
        }

        /// <summary>A copy of the elements of a tensor of type Bytes, read as UTF-8.</summary>
        public string[] ToTexts()
        {
            return Array.ConvertAll(ToByteArrays(), bytes => System.Text.Encoding.UTF8.GetString(bytes));
        }

        /// <summary>Makes a tensor of rank 0.</summary>
        public static Tensor Scalar<T>(T value) where T : struct
        {
            return FromArray<T>(new[] { value }, new long[0]);
        }

        /// <summary>Makes a tensor of any type with a copy of its memory; without dimensions it is a scalar.</summary>
        public static Tensor FromBytes(DType dtype, byte[] data, params long[] dims)
        {
            if (data == null)
                throw new ArgumentNullException("data");
            using (var pin = new Pin(data))
                return FromMemory(dtype, pin.Address, data.Length, dims);
        }

        /// <summary>Makes a tensor of any type with a copy of memory at an address.</summary>
        public static Tensor FromMemory(DType dtype, IntPtr address, long sizeBytes, params long[] dims)
        {
            Library.Load();
            IntPtr number, failure;
            dims = dims ?? new long[0];
            Errors.Check(Raw.tensor_from_data((int)dtype, dims, dims.Length, address, sizeBytes, out number,
                out failure), failure);
            return new Tensor(number);
        }

#if NETCOREAPP
        /// <summary>Makes a tensor with a copy of the elements; without dimensions it is a vector.</summary>
        public static unsafe Tensor From<T>(ReadOnlySpan<T> data, params long[] dims) where T : struct
        {
            ReadOnlySpan<byte> bytes = MemoryMarshal.AsBytes(data);
            fixed (byte* address = &MemoryMarshal.GetReference(bytes))
            {
                return FromMemory(ElementType.Of<T>(), (IntPtr)address, bytes.Length,
                    dims.Length == 0 ? new long[] { data.Length } : dims);
            }
        }
#endif

        /// <summary>Makes a tensor over the elements of an array, which are not copied; without dimensions it is a
        /// vector.</summary>
        /// <remarks>The array is kept in place until the tensor and all that was made of it (datasets, iterators, their
        /// elements) are closed; it may be forgotten before. What is written into it meanwhile shows, so that nothing
        /// should be while anybody reads. Where the runtime keeps no array of <c>bool</c> in place, there is an
        /// <see cref="ArgumentException"/>.</remarks>
        public static Tensor Wrap<T>(T[] data, params long[] dims) where T : struct
        {
            if (data == null)
                throw new ArgumentNullException("data");
            return WrapArray<T>(data, dims == null || dims.Length == 0 ? new long[] { data.Length } : dims);
        }

        /// <summary>Makes a matrix over the elements of an array, as <see cref="Wrap{T}(T[], long[])"/>.</summary>
        public static Tensor Wrap<T>(T[,] data) where T : struct
        {
            if (data == null)
                throw new ArgumentNullException("data");
            return WrapArray<T>(data, new long[] { data.GetLength(0), data.GetLength(1) });
        }

        /// <summary>Makes a tensor of any type over its memory in an array, as <see cref="Wrap{T}(T[], long[])"/>;
        /// without dimensions it is a scalar. Memory of type Bytes is checked here alone, and must not
        /// change.</summary>
        public static Tensor WrapBytes(DType dtype, byte[] data, params long[] dims)
        {
            if (data == null)
                throw new ArgumentNullException("data");
            IntPtr address;
            Action release = LentMemory.Pin(data, out address);
            return new Tensor(LentMemory.Take(dtype, address, data.Length, release, dims), 0);
        }

        /// <summary>Makes a tensor of any type over memory at an address, without a copy (a file that is mapped, memory
        /// of a C library); without dimensions it is a scalar. Elements must lie at multiples of their
        /// size.</summary>
        /// <remarks>The memory must stay where it is until <paramref name="release"/> is called: once, on a thread of
        /// the package, when the tensor and all that was made of it are closed, and also when this function fails; null
        /// for memory that outlives them. It must not throw. What is written there meanwhile shows, so that nothing
        /// should be while anybody reads.</remarks>
        public static Tensor WrapMemory(DType dtype, IntPtr address, long sizeBytes, Action release,
            params long[] dims)
        {
            return new Tensor(LentMemory.Take(dtype, address, sizeBytes, release ?? (() => { }), dims));
        }

#if NETCOREAPP
        /// <summary>Makes a tensor over memory that is pinned until the tensor and all that was made of it are closed,
        /// as <see cref="Wrap{T}(T[], long[])"/>; without dimensions it is a vector.</summary>
        public static unsafe Tensor Wrap<T>(ReadOnlyMemory<T> data, params long[] dims) where T : struct
        {
            DType dtype = ElementType.Of<T>();
            System.Buffers.MemoryHandle handle = data.Pin();
            long size = (long)data.Length * ElementType.SizeOf<T>();
            return new Tensor(LentMemory.Take(dtype, (IntPtr)handle.Pointer, size, () => handle.Dispose(),
                dims.Length == 0 ? new long[] { data.Length } : dims), 0);
        }

        /// <summary>Makes a tensor over memory, as <see cref="Wrap{T}(ReadOnlyMemory{T}, long[])"/>.</summary>
        public static Tensor Wrap<T>(Memory<T> data, params long[] dims) where T : struct
        {
            return Wrap((ReadOnlyMemory<T>)data, dims);
        }
#endif

        /// <summary>Makes a tensor filled with zeros. <see cref="Write{T}"/> fills it without a copy.</summary>
        public static Tensor Zeros(DType dtype, params long[] dims)
        {
            Library.Load();
            IntPtr number, failure;
            dims = dims ?? new long[0];
            Errors.Check(Raw.tensor_create((int)dtype, dims, dims.Length, out number, out failure), failure);
            return new Tensor(number);
        }

        /// <summary>Takes the DLManagedTensorVersioned at an address, in every case: its deleter runs when the tensor
        /// is closed, or at once on failure.</summary>
        public static Tensor FromDLPack(IntPtr address)
        {
            Library.Load();
            IntPtr number, failure;
            Errors.Check(Raw.tensor_take_dlpack(address, out number, out failure), failure);
            return new Tensor(number);
        }

        /// <summary>Gives the address of a DLManagedTensorVersioned over the tensor's memory. The caller must call its
        /// deleter.</summary>
        public IntPtr ToDLPack()
        {
            using (var use = new Uses())
            {
                IntPtr address, failure;
                Errors.Check(Raw.tensor_to_dlpack(use.Of(this), out address, out failure), failure);
                return address;
            }
        }

        /// <summary>The type of the elements.</summary>
        public DType DType
        {
            get
            {
                using (var use = new Uses())
                    return (DType)Raw.tensor_get_dtype(use.Of(this));
            }
        }

        /// <summary>The sizes of the dimensions; empty for a scalar.</summary>
        public long[] Dims
        {
            get
            {
                using (var use = new Uses())
                {
                    IntPtr number = use.Of(this);
                    var dims = new long[Raw.tensor_get_rank(number)];
                    for (int axis = 0; axis < dims.Length; axis++)
                        dims[axis] = Raw.tensor_get_dim(number, axis);
                    return dims;
                }
            }
        }

        internal override string Describe()
        {
            return " " + DType + " " + TensorSpec.Shown(Dims);
        }

        /// <summary>The number of elements.</summary>
        public long Length
        {
            get
            {
                using (var use = new Uses())
                    return Raw.tensor_get_element_count(use.Of(this));
            }
        }

        /// <summary>The number of bytes.</summary>
        public long SizeBytes
        {
            get
            {
                using (var use = new Uses())
                    return Raw.tensor_get_size_bytes(use.Of(this));
            }
        }

        /// <summary>Lends the elements, without a copy, until the view is closed. <c>byte</c> reads any type.</summary>
        public TensorView<T> Read<T>() where T : struct
        {
            return new TensorView<T>(this, false);
        }

        /// <summary>Lends the elements for writing, without a copy, until the view is closed. <c>byte</c> writes any
        /// type.</summary>
        public TensorView<T> Write<T>() where T : struct
        {
            return new TensorView<T>(this, true);
        }

        /// <summary>A copy of the elements, row-major.</summary>
        public T[] ToArray<T>() where T : struct
        {
            using (TensorView<T> view = Read<T>())
            {
                var values = new T[view.Length];
                view.CopyTo(0, values);
                return values;
            }
        }

        /// <summary>Closes every tensor of a list that is not null.</summary>
        public static void DisposeAll(IEnumerable<Tensor> tensors)
        {
            foreach (Tensor tensor in tensors ?? new Tensor[0])
            {
                if (tensor != null)
                    tensor.Dispose();
            }
        }

        private static Tensor WrapArray<T>(Array data, long[] dims) where T : struct
        {
            DType dtype = ElementType.Of<T>();
            IntPtr address;
            Action release = LentMemory.Pin(data, out address);
            long size = data.LongLength * ElementType.SizeOf<T>();
            return new Tensor(LentMemory.Take(dtype, address, size, release, dims), 0);
        }

        private static Tensor FromArray<T>(Array data, long[] dims) where T : struct
        {
            DType dtype = ElementType.Of<T>();
            using (var pin = new Pin(data))
                return FromMemory(dtype, pin.Address, data.LongLength * ElementType.SizeOf<T>(), dims);
        }
    }

    // The managed types that a tensor's elements can have.
    internal static class ElementType
    {
        private static readonly Dictionary<Type, DType> DTypes = new Dictionary<Type, DType>
        {
            { typeof(float), DType.Float32 }, { typeof(double), DType.Float64 }, { typeof(int), DType.Int32 },
            { typeof(long), DType.Int64 }, { typeof(byte), DType.UInt8 }, { typeof(bool), DType.Boolean },
            { typeof(sbyte), DType.Int8 }, { typeof(short), DType.Int16 }, { typeof(ushort), DType.UInt16 },
            { typeof(uint), DType.UInt32 }, { typeof(ulong), DType.UInt64 },
        };

        public static DType Of<T>()
        {
            DType dtype;
            if (!DTypes.TryGetValue(typeof(T), out dtype))
                throw new ArgumentException("a tensor has no elements of type " + typeof(T));
            return dtype;
        }

        public static int SizeOf<T>()
        {
            return typeof(T) == typeof(bool) ? 1 : Marshal.SizeOf(typeof(T));
        }
    }

    // Keeps an array of numbers where it is. Truth values cannot be pinned everywhere: a copy stands for them.
    internal sealed class Pin : IDisposable
    {
        private readonly bool[] truths;
        private readonly byte[] copy;
        private GCHandle handle;

        public Pin(Array data)
        {
            if (Buffer.ByteLength(data) == 0)
                return;
            if (data is bool[] || data is bool[,])
            {
                truths = data as bool[];
                copy = new byte[data.Length];
                Buffer.BlockCopy(data, 0, copy, 0, copy.Length);
                data = copy;
            }
            handle = GCHandle.Alloc(data, GCHandleType.Pinned);
        }

        // Of the first element; 0 for an empty array.
        public IntPtr Address
        {
            get { return handle.IsAllocated ? handle.AddrOfPinnedObject() : IntPtr.Zero; }
        }

        // Brings what was written to the address into the array.
        public void CopyBack()
        {
            if (truths != null)
                Buffer.BlockCopy(copy, 0, truths, 0, copy.Length);
        }

        public void Dispose()
        {
            if (handle.IsAllocated)
                handle.Free();
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti
{
    /// <summary>The elements of a tensor, lent without a copy until the view is closed; the tensor may be closed
    /// meanwhile. Serves one thread.</summary>
    public sealed unsafe class TensorView<T> : IDisposable where T : struct
    {
        private readonly Handle handle;
        private readonly int elementSize = ElementType.SizeOf<T>();
        private readonly IntPtr address;
        private readonly long length;
        private bool closed;

        internal TensorView(Tensor tensor, bool writable)
        {
            DType wanted = ElementType.Of<T>();
            IsWritable = writable;
            IntPtr number = tensor.Handle.Enter();
            handle = tensor.Handle;
            try
            {
                var found = (DType)Raw.tensor_get_dtype(number);
                if (found != wanted && typeof(T) != typeof(byte))
                    throw new InvalidCastException("the tensor's elements are " + found + ", not " + wanted);
                IntPtr failure;
                if (writable)
                    Errors.Check(Raw.tensor_get_mutable_data(number, out address, out failure), failure);
                else
                    address = Raw.tensor_get_data(number);
                length = Raw.tensor_get_size_bytes(number) / elementSize;
            }
            catch (Exception)
            {
                Dispose();
                throw;
            }
        }

        /// <summary>Gives the tensor back when the view was forgotten.</summary>
        ~TensorView()
        {
            Close();
        }

        /// <summary>Whether the elements may be written.</summary>
        public bool IsWritable { get; private set; }

        /// <summary>The number of elements.</summary>
        public long Length
        {
            get { return length; }
        }

        /// <summary>Where the elements lie; 0 when there are none.</summary>
        public IntPtr Address
        {
            get
            {
                if (closed)
                    throw new ObjectDisposedException("TensorView");
                return address;
            }
        }

        /// <summary>An element. A view for reading cannot be written.</summary>
        public T this[long index]
        {
            get { return ElementAccess<T>.Read(AddressOf(index, 1)); }
            set
            {
                RequireWritable();
                ElementAccess<T>.Write(AddressOf(index, 1), value);
            }
        }

#if NETCOREAPP
        /// <summary>The elements; for more than 2^31 use <see cref="Slice"/>.</summary>
        public ReadOnlySpan<T> Span
        {
            get { return Slice(0, checked((int)length)); }
        }

        /// <summary>The elements for writing.</summary>
        public Span<T> WritableSpan
        {
            get
            {
                RequireWritable();
                return new Span<T>((void*)Address, checked((int)length));
            }
        }

        /// <summary>Some of the elements.</summary>
        public ReadOnlySpan<T> Slice(long start, int count)
        {
            return new ReadOnlySpan<T>((void*)AddressOf(start, count), count);
        }
#endif

        /// <summary>Copies as many elements as the array has, from an index on.</summary>
        public void CopyTo(long start, T[] target)
        {
            if (target == null)
                throw new ArgumentNullException("target");
            IntPtr source = AddressOf(start, target.Length);
            long size = (long)target.Length * elementSize;
            using (var pin = new Pin(target))
            {
                if (size > 0)
                    Buffer.MemoryCopy((void*)source, (void*)pin.Address, size, size);
                pin.CopyBack();
            }
        }

        /// <summary>Writes all elements of the array, from an index on.</summary>
        public void CopyFrom(long start, T[] source)
        {
            if (source == null)
                throw new ArgumentNullException("source");
            RequireWritable();
            IntPtr target = AddressOf(start, source.Length);
            long size = (long)source.Length * elementSize;
            using (var pin = new Pin(source))
            {
                if (size > 0)
                    Buffer.MemoryCopy((void*)pin.Address, (void*)target, size, size);
            }
        }

        /// <summary>Gives the tensor back.</summary>
        public void Dispose()
        {
            Close();
            GC.SuppressFinalize(this);
        }

        private void Close()
        {
            if (closed || handle == null)
                return;
            closed = true;
            handle.Leave();
        }

        private void RequireWritable()
        {
            if (!IsWritable)
                throw new InvalidOperationException("the view is for reading; Write lends one for writing");
        }

        private IntPtr AddressOf(long start, long count)
        {
            if (start < 0 || count < 0 || start > length - count)
                throw new ArgumentOutOfRangeException("start");
            return (IntPtr)((byte*)Address + start * elementSize);
        }
    }

    // Reads and writes an element at an address: T is known when the program runs.
    internal static unsafe class ElementAccess<T> where T : struct
    {
        public static readonly Func<IntPtr, T> Read = (Func<IntPtr, T>)(object)Reader();
        public static readonly Action<IntPtr, T> Write = (Action<IntPtr, T>)(object)Writer();

        private static Delegate Reader()
        {
            switch (ElementType.Of<T>())
            {
                case DType.Float32:
                    return (Func<IntPtr, float>)(address => *(float*)address);
                case DType.Float64:
                    return (Func<IntPtr, double>)(address => *(double*)address);
                case DType.Int32:
                    return (Func<IntPtr, int>)(address => *(int*)address);
                case DType.Int64:
                    return (Func<IntPtr, long>)(address => *(long*)address);
                case DType.UInt8:
                    return (Func<IntPtr, byte>)(address => *(byte*)address);
                case DType.Boolean:
                    return (Func<IntPtr, bool>)(address => *(byte*)address != 0);
                case DType.Int8:
                    return (Func<IntPtr, sbyte>)(address => *(sbyte*)address);
                case DType.Int16:
                    return (Func<IntPtr, short>)(address => *(short*)address);
                case DType.UInt16:
                    return (Func<IntPtr, ushort>)(address => *(ushort*)address);
                case DType.UInt32:
                    return (Func<IntPtr, uint>)(address => *(uint*)address);
                default:
                    return (Func<IntPtr, ulong>)(address => *(ulong*)address);
            }
        }

        private static Delegate Writer()
        {
            switch (ElementType.Of<T>())
            {
                case DType.Float32:
                    return (Action<IntPtr, float>)((address, value) => *(float*)address = value);
                case DType.Float64:
                    return (Action<IntPtr, double>)((address, value) => *(double*)address = value);
                case DType.Int32:
                    return (Action<IntPtr, int>)((address, value) => *(int*)address = value);
                case DType.Int64:
                    return (Action<IntPtr, long>)((address, value) => *(long*)address = value);
                case DType.UInt8:
                    return (Action<IntPtr, byte>)((address, value) => *(byte*)address = value);
                case DType.Boolean:
                    return (Action<IntPtr, bool>)((address, value) => *(byte*)address = (byte)(value ? 1 : 0));
                case DType.Int8:
                    return (Action<IntPtr, sbyte>)((address, value) => *(sbyte*)address = value);
                case DType.Int16:
                    return (Action<IntPtr, short>)((address, value) => *(short*)address = value);
                case DType.UInt16:
                    return (Action<IntPtr, ushort>)((address, value) => *(ushort*)address = value);
                case DType.UInt32:
                    return (Action<IntPtr, uint>)((address, value) => *(uint*)address = value);
                default:
                    return (Action<IntPtr, ulong>)((address, value) => *(ulong*)address = value);
            }
        }
    }
}

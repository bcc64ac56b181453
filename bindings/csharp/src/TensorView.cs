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

#if NET
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
}

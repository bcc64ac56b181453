// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

namespace Tutti
{
    // What kind of object a handle owns: how its reference is dropped, and what that may bring about.
    internal sealed class Kind
    {
        public readonly string Name;
        public readonly Action<IntPtr> Unref;

        // The end of such an object may take its time, or may release callbacks.
        public readonly bool IsSlow;

        public Kind(string name, Action<IntPtr> unref, bool isSlow = false)
        {
            Name = name;
            Unref = unref;
            IsSlow = isSlow;
        }
    }

    // One reference of the library's. A call enters it and leaves it, so that closing never takes it away from a call:
    // the last one out drops the reference. The collector closes what was forgotten; it never waits.
    internal sealed class Handle : SafeHandle
    {
        private const long Overhead = 1024; // about what a small object costs the library
        private readonly Kind kind;
        private readonly long size;
        private readonly object gate = new object();
        private List<Call> waiting; // guarded by gate
        private volatile bool closing; // changed under gate
        private bool collected;

        public Handle(Kind kind, IntPtr number, long size = 0) : base(IntPtr.Zero, true)
        {
            this.kind = kind;
            this.size = size + Overhead;
            SetHandle(number);
            Weight.Add(this.size);
        }

        public override bool IsInvalid
        {
            get { return handle == IntPtr.Zero; }
        }

        public string KindName
        {
            get { return kind.Name; }
        }

        public bool IsClosing
        {
            get { return closing; }
        }

        // A handle that was closed lets nobody in, also while others have yet to leave.
        public IntPtr Enter()
        {
            bool entered = false;
            try
            {
                if (!closing)
                    DangerousAddRef(ref entered);
            }
            catch (ObjectDisposedException)
            {
            }
            if (!entered)
                throw new ObjectDisposedException(kind.Name, "use of a closed " + kind.Name);
            return handle;
        }

        public void Leave()
        {
            DangerousRelease();
        }

        // Closes the handle and cancels the calls that are registered with it.
        public void Close(bool cancelCalls)
        {
            Call[] ending = null;
            lock (gate)
            {
                closing = true;
                if (cancelCalls && waiting != null)
                    ending = waiting.ToArray();
            }
            foreach (Call call in ending ?? new Call[0])
                call.Cancel();
            Dispose();
        }

        // A call, inside of the handle, that ends when the handle is closed.
        public void Register(Call call)
        {
            lock (gate)
            {
                waiting = waiting ?? new List<Call>();
                waiting.Add(call);
                if (!closing)
                    return;
            }
            call.Cancel();
        }

        public void Unregister(Call call)
        {
            lock (gate)
                waiting.Remove(call);
        }

        protected override void Dispose(bool disposing)
        {
            collected = collected || !disposing;
            base.Dispose(disposing);
        }

        protected override bool ReleaseHandle()
        {
            if (collected && Environment.HasShutdownStarted)
                return true;
            if (collected && kind.IsSlow)
                ThreadPool.UnsafeQueueUserWorkItem(self => ((Handle)self).Drop(), this);
            else
                Drop();
            return true;
        }

        private void Drop()
        {
            kind.Unref(handle);
            Weight.Remove(size);
            if (kind.IsSlow)
                Callbacks.Reap();
        }
    }

    // The handles that one call has entered.
    internal sealed class Uses : IDisposable
    {
        private Handle first;
        private List<Handle> more;

        public Uses()
        {
            Library.Load();
        }

        // The number of an object's handle, entered until Dispose; none for null.
        public IntPtr Of(NativeObject owner)
        {
            return owner == null ? IntPtr.Zero : Of(owner.Handle);
        }

        public IntPtr Of(Handle handle)
        {
            IntPtr number = handle.Enter();
            if (first == null)
            {
                first = handle;
                return number;
            }
            more = more ?? new List<Handle>();
            more.Add(handle);
            return number;
        }

        public IntPtr Need(NativeObject owner, string name)
        {
            if (owner == null)
                throw new ArgumentNullException(name);
            return Of(owner.Handle);
        }

        public IntPtr[] NeedAll(IReadOnlyCollection<Tensor> tensors, string name)
        {
            if (tensors == null)
                throw new ArgumentNullException(name);
            var numbers = new IntPtr[tensors.Count];
            int i = 0;
            foreach (Tensor tensor in tensors)
                numbers[i++] = Need(tensor, name);
            return numbers;
        }

        public void Dispose()
        {
            if (first != null)
                first.Leave();
            first = null;
            if (more == null)
                return;
            foreach (Handle handle in more)
                handle.Leave();
            more = null;
        }
    }

    /// <summary>What all objects of the library have in common. Closing means the same of each: it does not wait, and
    /// may be done at any time, from any thread, and twice. Calls of the object that train or wait end within one step;
    /// those that compute finish; what was made of it, and what it was made of, lives on. Later calls throw
    /// <see cref="ObjectDisposedException"/>, as those do that were ended. What is forgotten the collector
    /// closes.</summary>
    public abstract class NativeObject : IDisposable
    {
        internal readonly Handle Handle;

        internal NativeObject(Handle handle)
        {
            Handle = handle;
        }

        /// <summary>Whether the object was closed.</summary>
        public bool IsDisposed
        {
            get { return Handle.IsClosed; }
        }

        /// <summary>Closes the object.</summary>
        public void Dispose()
        {
            Handle.Close(true);
        }

        /// <summary>What kind of object it is and what tells it from others, on one line.</summary>
        public override string ToString()
        {
            try
            {
                return Handle.IsClosing ? Handle.KindName + " (closed)" : Handle.KindName + Describe();
            }
            catch (ObjectDisposedException)
            {
                return Handle.KindName + " (closed)"; // meanwhile
            }
        }

        // What follows the kind.
        internal virtual string Describe()
        {
            return "";
        }
    }

    // C memory that the collector does not see must not pile up behind small managed objects. Mono does
    // not heed memory pressure: there is a collection after so many bytes made and not closed.
    internal static class Weight
    {
        private const long Limit = 64 << 20;
        private static long unseen, unseenAtCollection;

        public static void Add(long size)
        {
            GC.AddMemoryPressure(size);
            long now = Interlocked.Add(ref unseen, size);
            if (!Leaving.IsMono)
                return;
            long before = Interlocked.Read(ref unseenAtCollection);
            if (now < before)
                Interlocked.CompareExchange(ref unseenAtCollection, now, before);
            else if (now - before > Limit && Interlocked.CompareExchange(ref unseenAtCollection, now, before) == before)
                Collect();
        }

        public static void Remove(long size)
        {
            Interlocked.Add(ref unseen, -size);
            GC.RemoveMemoryPressure(size);
        }

        private static void Collect()
        {
            GC.Collect();
            // The finalizers go on while they close something; they must not be waited for, whatever they do.
            long before = Interlocked.Read(ref unseen);
            for (int i = 0, idle = 0; i < 200 && idle < 5; i++)
            {
                Thread.Sleep(1);
                long now = Interlocked.Read(ref unseen);
                idle = now < before ? 0 : idle + 1;
                before = now;
            }
        }
    }
}

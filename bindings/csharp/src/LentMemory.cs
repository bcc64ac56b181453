// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

namespace Tutti
{
    // Memory that tensors borrow: how to give back what stands behind each token. While there is any, a thread waits in
    // C for what the library is done with, for the library never enters the runtime to free something.
    internal static class LentMemory
    {
        private static readonly object Gate = new object();
        private static readonly Dictionary<long, Action> Releases = new Dictionary<long, Action>(); // guarded by Gate
        private static long last;  // guarded by Gate
        private static bool waits; // guarded by Gate

        // A tensor over memory that stays where it is until `release`, which is called in every case.
        public static IntPtr Take(DType dtype, IntPtr address, long sizeBytes, Action release, long[] dims)
        {
            Library.Load();
            IntPtr number, failure;
            dims = dims ?? new long[0];
            Errors.Check(Raw.tensor_take_memory(Lend(release), (int)dtype, dims, dims.Length, address, sizeBytes,
                out number, out failure), failure);
            return number;
        }

        // Keeps an array where it is; the release lets it go.
        public static Action Pin(Array data, out IntPtr address)
        {
            GCHandle handle;
            try
            {
                handle = GCHandle.Alloc(data, GCHandleType.Pinned);
            }
            catch (ArgumentException e)
            {
                throw new ArgumentException("this runtime cannot keep " + data.GetType()
                    + " in place; wrap an array of bytes, or copy this one by From", e);
            }
            address = handle.AddrOfPinnedObject();
            return () => handle.Free();
        }

        private static long Lend(Action release)
        {
            long token;
            bool starts;
            lock (Gate)
            {
                token = ++last;
                Releases[token] = release;
                starts = !waits;
                waits = true;
            }
            if (starts)
                new Thread(Wait) { IsBackground = true, Name = "tutti memory" }.Start();
            return token;
        }

        private static void Wait()
        {
            var waiter = new object();
            Leaving.Add(waiter, Raw.memory_close);
            for (bool more = true; more;)
            {
                long token = Raw.memory_take_returned();
                if (token == 0)
                    break; // the process ends, and its memory with it
                Action release;
                lock (Gate)
                {
                    release = Releases[token];
                    Releases.Remove(token);
                    more = waits = Releases.Count > 0;
                }
                release();
            }
            Leaving.Remove(waiter);
        }
    }
}

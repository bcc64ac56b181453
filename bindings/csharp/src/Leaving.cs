// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Concurrent;
#if !NET
using System.Threading;
#endif

namespace Tutti
{
    // The end of the process. Mono waits for all threads, also for those in the background, and cannot end one that
    // waits in C: so the calls that run are cancelled, and the threads of maps told to end. CoreCLR waits for none.
    internal static class Leaving
    {
        public static readonly bool IsMono = Type.GetType("Mono.Runtime") != null;

        private static readonly ConcurrentDictionary<object, Action> Waiting =
            new ConcurrentDictionary<object, Action>();
        private static volatile bool leaving;

        public static void Install()
        {
            if (IsMono)
                AppDomain.CurrentDomain.ProcessExit += (sender, arguments) => Leave();
        }

        // `release` lets go what waits in C; it may be called on any thread until Remove.
        public static void Add(object waiter, Action release)
        {
            if (!IsMono)
                return;
            Waiting[waiter] = release;
            if (leaving)
                release();
        }

        public static void Remove(object waiter)
        {
            Action release;
            if (IsMono)
                Waiting.TryRemove(waiter, out release);
        }

        // Ends a thread whose call failed because of the end of the process: nobody is there for the exception.
        public static void EndThread()
        {
#if !NET
            if (leaving)
                Thread.CurrentThread.Abort();
#endif
        }

        private static void Leave()
        {
            leaving = true;
            foreach (Action release in Waiting.Values)
                release();
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Concurrent;
using System.Diagnostics;
using System.Threading;

namespace Tutti
{
    // The end of the process. Mono aborts all threads then and waits for them, but one that waits in C hears nothing,
    // and in a callback the C frames below would be cut off. So before that the calls that run are cancelled, maps told
    // to end, and both waited for; their threads go no further. CoreCLR leaves threads alone.
    internal static class Leaving
    {
        public static readonly bool IsMono = Type.GetType("Mono.Runtime") != null;

        private static readonly TimeSpan Longest = TimeSpan.FromSeconds(30);
        private static readonly ConcurrentDictionary<object, Action> Waiting =
            new ConcurrentDictionary<object, Action>();
        private static volatile bool leaving;

        [ThreadStatic]
        private static int callbacks; // of this thread, one inside the other

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
            if (leaving)
                Park();
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

        // Behind a call that failed because of the end of the process: nobody is there for the exception.
        public static void End(object waiter)
        {
            if (!leaving)
                return;
            Remove(waiter);
            Park();
        }

        public static void EnterCallback()
        {
            callbacks++;
        }

        public static void LeaveCallback()
        {
            callbacks--;
        }

        // The thread goes no further, unless there are C frames below, which must come to their end.
        private static void Park()
        {
            if (callbacks == 0)
                Thread.Sleep(Timeout.Infinite);
        }

        private static void Leave()
        {
            leaving = true;
            foreach (Action release in Waiting.Values)
                release();
            Stopwatch clock = Stopwatch.StartNew();
            while (callbacks == 0 && !Waiting.IsEmpty && clock.Elapsed < Longest)
                Thread.Sleep(1);
        }
    }
}

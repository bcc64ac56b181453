// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;

namespace Tutti
{
    // What a function of data gets of the call that it runs for. The library tells that the call shall end when it is
    // asked, and a timer asks while such functions run.
    internal sealed class FunctionToken : IDisposable
    {
        private const int PeriodMilliseconds = 10;
        private static readonly HashSet<FunctionToken> Running = new HashSet<FunctionToken>(); // guarded by itself
        private static readonly Timer Clock = new Timer(Ask, null, Timeout.Infinite, Timeout.Infinite);
        private static bool ticks; // guarded by Running

        private readonly IntPtr number;
        private readonly CancellationTokenSource source;

        // The number is good until Dispose; 0 = nothing ends the call.
        public FunctionToken(IntPtr number)
        {
            if (number == IntPtr.Zero)
                return;
            this.number = number;
            source = new CancellationTokenSource();
            lock (Running)
            {
                Running.Add(this);
                if (!ticks)
                    Clock.Change(PeriodMilliseconds, PeriodMilliseconds);
                ticks = true;
            }
        }

        public CancellationToken Token
        {
            get { return source == null ? CancellationToken.None : source.Token; }
        }

        public void Dispose()
        {
            if (source == null)
                return;
            lock (Running)
                Running.Remove(this);
            source.Dispose();
        }

        private static void Ask(object unused)
        {
            FunctionToken[] ending;
            lock (Running)
            {
                ending = Running.Where(one => Raw.cancel_get_state(one.number) == Raw.CANCEL_CANCEL).ToArray();
                foreach (FunctionToken one in ending)
                    Running.Remove(one);
                ticks = Running.Count > 0;
                if (!ticks)
                    Clock.Change(Timeout.Infinite, Timeout.Infinite);
            }
            foreach (FunctionToken one in ending)
                one.Cancel();
        }

        private void Cancel()
        {
            try
            {
                source.Cancel();
            }
            catch (ObjectDisposedException)
            {
                return; // the function has returned
            }
        }
    }
}

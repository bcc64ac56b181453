// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti
{
    // One call that can wait: its token of the library's, and who may ask that.
    internal sealed class Call : IDisposable
    {
        private static readonly Kind TokenKind = new Kind("Call", Raw.cancel_unref);
        private static readonly Action<object> AskCancel = call => ((Call)call).Request(Raw.CANCEL_CANCEL);
        private static readonly Action<object> AskStop = call => ((Call)call).Request(Raw.CANCEL_STOP);

        private readonly CancellationToken cancellation;
        private readonly Handle owner;
        private readonly Handle token; // null = nothing can end the call
        private CancellationTokenRegistration cancelling, stopping;

        // `owner`, when not null, ends the call when it is closed; it must be entered.
        public Call(CancellationToken cancellation, Handle owner = null,
            CancellationToken stop = default(CancellationToken))
        {
            cancellation.ThrowIfCancellationRequested();
            this.cancellation = cancellation;
            this.owner = owner;
            if (owner == null && !cancellation.CanBeCanceled && !stop.CanBeCanceled && !Leaving.IsMono)
                return;
            IntPtr number, failure;
            Errors.Check(Raw.cancel_create(out number, out failure), failure);
            token = new Handle(TokenKind, number);
            cancelling = cancellation.Register(AskCancel, this, false);
            stopping = stop.Register(AskStop, this, false);
            if (owner != null)
                owner.Register(this);
            Leaving.Add(this, Cancel);
        }

        // The C token; 0 = nothing can end the call.
        public IntPtr Token
        {
            get { return token == null ? IntPtr.Zero : token.DangerousGetHandle(); }
        }

        public void Cancel()
        {
            Request(Raw.CANCEL_CANCEL);
        }

        // Throws what the C function's answer means.
        public void Check(int code, IntPtr failure)
        {
            if (code == Raw.OK)
                return;
            Leaving.End(this);
            TuttiException error = Errors.FromC(code, failure);
            if (error.Code == ErrorCode.Cancelled && cancellation.IsCancellationRequested)
                throw new OperationCanceledException(error.Message, error, cancellation);
            if (error.Code == ErrorCode.Cancelled && owner != null && owner.IsClosing)
                throw new ObjectDisposedException("the " + owner.KindName + " was closed during the call", error);
            throw error;
        }

        public void Dispose()
        {
            if (token == null)
                return;
            Leaving.Remove(this);
            cancelling.Dispose();
            stopping.Dispose();
            if (owner != null)
                owner.Unregister(this);
            token.Dispose();
        }

        // Runs a call that soon ends on a thread of the pool.
        public static Task<T> OnPool<T>(Func<T> function, CancellationToken cancellation)
        {
            return Task.Run(function, cancellation);
        }

        public static Task OnPool(Action function, CancellationToken cancellation)
        {
            return Task.Run(function, cancellation);
        }

        // Runs a call that may take hours, or wait, on a thread of its own: the pool has no thread to lose.
        public static Task<T> OnThread<T>(Func<T> function, CancellationToken cancellation)
        {
            return Task.Factory.StartNew(function, cancellation,
                TaskCreationOptions.LongRunning | TaskCreationOptions.DenyChildAttach, TaskScheduler.Default);
        }

        private void Request(int strength)
        {
            IntPtr failure;
            try
            {
                IntPtr number = token.Enter();
                Raw.cancel_request(number, strength, out failure);
                token.Leave();
            }
            catch (ObjectDisposedException)
            {
                return; // the call has ended
            }
            Raw.error_unref(failure);
        }
    }
}

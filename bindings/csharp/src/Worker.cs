// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;

namespace Tutti
{
    /// <summary>What a worker program calls, of which <see cref="Pipeline.MapProcess"/> starts several
    /// processes.</summary>
    public static class Worker
    {
        /// <summary>Maps elements from standard input by a function of the program until there are no more, and writes
        /// what it gives to standard output; for the main function of a program, once. Both are taken over: from the
        /// call on the program reads nothing from standard input, and what it prints goes to standard error. The
        /// function gets one element at a time and gives the components that the pipeline was told. An exception of it
        /// is the error of its element.</summary>
        public static void ServeMap(Func<Tensor[], Tensor[]> function,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            if (function == null)
                throw new ArgumentNullException("function");
            ServeMap(queue => ElementCall.Begin(queue, one => one.Outputs = function(one.Element)), cancellationToken);
        }

        /// <summary>The same with a function that gets the token of its element, which is cancelled when this call
        /// is.</summary>
        public static void ServeMap(Func<Tensor[], CancellationToken, Tensor[]> function,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            if (function == null)
                throw new ArgumentNullException("function");
            ServeMap(queue => ElementCall.BeginWithToken(queue,
                one => one.Outputs = function(one.Element, one.Token)), cancellationToken);
        }

        private static void ServeMap(Action<IntPtr> serve, CancellationToken cancellationToken)
        {
            Library.Load();
            using (var call = new Call(cancellationToken))
            {
                IntPtr queue = Raw.call_queue_create(), failure;
                serve(queue);
                call.Check(Raw.serve_map(queue, call.Token, out failure), failure);
            }
        }
    }
}

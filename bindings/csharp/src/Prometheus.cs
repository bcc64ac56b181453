// SPDX-License-Identifier: Apache-2.0
using System;
using System.Text;

namespace Tutti
{
    /// <summary>Keeps the newest values of trainings for monitoring by Prometheus (<see cref="Hook.KeepFor"/>): a
    /// program gives <see cref="GetText"/> to whoever asks for it, for example at /metrics, with the content type
    /// "text/plain; version=0.0.4".</summary>
    public sealed class Prometheus : NativeObject
    {
        private static readonly Kind PrometheusKind = new Kind("Prometheus", Raw.prometheus_unref);

        /// <summary>Has no values yet.</summary>
        public Prometheus() : base(new Handle(PrometheusKind, Create()))
        {
        }

        private static IntPtr Create()
        {
            using (new Uses())
            {
                IntPtr number, failure;
                Errors.Check(Raw.prometheus_create(out number, out failure), failure);
                return number;
            }
        }

        /// <summary>The newest values in Prometheus' text format. Safe on any thread at any time, also while a training
        /// runs.</summary>
        public string GetText()
        {
            IntPtr number, failure;
            using (var use = new Uses())
                Errors.Check(Raw.prometheus_read(use.Of(this), out number, out failure), failure);
            using (var tensor = new Tensor(number))
                return Encoding.UTF8.GetString(tensor.ToArray<byte>());
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
using System.Collections.Generic;

namespace Tutti
{
    /// <summary>What the body of a loop gives, and what the loop gives; see <see cref="Graph.Scan"/>.</summary>
    public sealed class Scanned
    {
        /// <summary>The next, or last, states, and elements of what is stacked, or all of it.</summary>
        public Scanned(IReadOnlyList<Value> states, IReadOnlyList<Value> results)
        {
            States = states;
            Results = results;
        }

        /// <summary>The next, or last, states.</summary>
        public IReadOnlyList<Value> States { get; }

        /// <summary>Elements of what is stacked, or all of it.</summary>
        public IReadOnlyList<Value> Results { get; }
    }
}

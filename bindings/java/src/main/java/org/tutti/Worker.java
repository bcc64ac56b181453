// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import org.tutti.ElementCalls.Given;

/** What a worker program calls, of which {@link Pipeline#mapProcess} starts several processes. */
public final class Worker {
    private Worker() {}

    /** Maps elements from standard input by a function of Java until there are no more, and writes what it gives to
     * standard output; for the main function of a program, once. Both are taken over: from the call on the program
     * reads nothing from standard input, and what it prints goes to standard error. The function gets one element at a
     * time and gives the components that the pipeline was told. What it throws is the error of its element.
     *
     * @param function the function
     */
    public static void serveMap(MapFunction function) {
        if (function == null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the function is null");
        }
        try (Call call = Call.begin()) {
            long queue = Raw.call_queue_create();
            ElementCalls.start(queue, (state, element, pass, index) -> Given.tensors(function.map(element)));
            long[] failure = new long[1];
            call.check(Raw.serve_map(queue, call.token(), failure), failure);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.Arrays;

/** The threads of a function of the program over elements. */
final class ElementCalls extends CallThreads {
    /** What a call gives: the tensors of the new state and of the outputs, an answer, a dataset. */
    static final class Given {
        private Tensor[] state = {};
        private Tensor[] outputs = {};
        private boolean answer;
        private @Nullable Dataset dataset;

        static Given tensors(Tensor @Nullable [] outputs) {
            return step(new Tensor[0], outputs);
        }

        static Given step(Tensor[] state, Tensor @Nullable [] outputs) {
            Given given = new Given();
            given.state = orNone(state);
            given.outputs = orNone(outputs);
            given.answer = outputs != null;
            return given;
        }

        static Given answer(boolean answer) {
            Given given = new Given();
            given.answer = answer;
            return given;
        }

        static Given dataset(Dataset dataset) {
            Given given = new Given();
            given.dataset = dataset;
            return given;
        }

        private static Tensor[] orNone(Tensor @Nullable [] tensors) {
            return tensors == null ? new Tensor[0] : tensors;
        }

        private Tensor[] all() {
            Tensor[] all = Arrays.copyOf(state, state.length + outputs.length);
            System.arraycopy(outputs, 0, all, state.length, outputs.length);
            return all;
        }
    }

    /** A function of the program in the form of all of them. */
    interface Function {
        /** The tensors are closed behind it. Pass and index are those of a generator. */
        Given call(Tensor[] state, Tensor[] element, long pass, long index) throws Exception;
    }

    private final Function function;

    private ElementCalls(long queue, Function function) {
        super(queue);
        this.function = function;
    }

    /** Takes the reference of the queue. */
    static void start(long queue, Function function) {
        if (queue == 0) {
            throw TuttiException.ofTutti(Code.RESOURCE_EXHAUSTED, "no memory for a function");
        }
        new ElementCalls(queue, function).start();
    }

    /** Computes a call, and finishes it in every case. */
    @Override
    void serve(long call) {
        Tensor[] state = {};
        Tensor[] element = {};
        Given given = new Given();
        Throwable error = null;
        try {
            standBy();
            long states = Raw.element_call_get_state_count(call);
            state = tensors(call, 0, states);
            element = tensors(call, states, Raw.element_call_get_count(call));
            long index = Raw.element_call_get_index(call);
            given = function.call(state, element, Raw.element_call_get_pass(call), index);
            if (given.state.length != state.length) {
                throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the function gives a state of "
                    + given.state.length + " tensors, not of " + state.length);
            }
        } catch (Throwable thrown) {
            error = thrown;
        }
        finish(call, new Tensor[][] {state, element}, given, error);
    }

    private static Tensor[] tensors(long call, long begin, long end) {
        Tensor[] tensors = new Tensor[(int) (end - begin)];
        for (int i = 0; i < tensors.length; i++) {
            tensors[i] = Tensor.share(Raw.element_call_get_tensor(call, begin + i));
        }
        return tensors;
    }

    private void finish(long call, Tensor[][] inputs, Given given, @Nullable Throwable thrown) {
        Throwable error = thrown;
        Tensor[] outputs = given.all();
        try (Use use = new Use()) {
            long[] numbers = {};
            long dataset = 0;
            try {
                numbers = use.of((NativeObject[]) outputs);
                dataset = use.of(given.dataset);
            } catch (TuttiException closed) {
                error = error == null ? closed : error;
            }
            for (Tensor[] tensors : inputs) {
                Tensor.closeAll(tensors); // those in use end when this use does
            }
            Tensor.closeAll(outputs);
            int code = error == null ? Raw.OK : ThrownErrors.codeOf(error).number();
            long failure = error == null ? 0 : ThrownErrors.toC(error);
            Raw.element_call_finish(queue, call, numbers, given.answer, dataset, code, failure);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** What a predictor takes and gives.
 *
 * @param inputs the model's features
 * @param outputs what it gives for each row
 * @param json the library's text
 */
public record Signature(List<TensorSpec> inputs, List<TensorSpec> outputs, String json) {
    static Signature of(String text) {
        Json json = Json.parse("signature", text);
        return new Signature(json.list("inputs", TensorSpec::of), json.list("outputs", TensorSpec::of), text);
    }

    @Override
    public String toString() {
        return inputs + " -> " + outputs;
    }
}

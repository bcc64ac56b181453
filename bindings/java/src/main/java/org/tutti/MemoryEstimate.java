// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** What a training will take of the devices' memory. What drivers and libraries take for themselves is not counted.
 *
 * @param batchSize rows of a batch
 * @param devices each device
 * @param totalBytes what all take together
 * @param fits whether that is there
 * @param json the library's text
 */
public record MemoryEstimate(long batchSize, List<Device> devices, long totalBytes, boolean fits, String json) {
    /** What one device will hold, in bytes.
     *
     * @param device its name
     * @param weights the variables
     * @param slots what the optimizer keeps for them
     * @param gradients their gradients
     * @param workspace what lies between input and results
     * @param input rows on their way into a step
     * @param outputs what keepOutputs keeps
     * @param total the sum of these
     * @param memory the name of its memory; devices with equal ones share it
     * @param available what is free there now
     */
    public record Device(String device, long weights, long slots, long gradients, long workspace, long input,
        long outputs, long total, String memory, long available) {
        static Device of(Json json) {
            return new Device(json.text("device"), json.integer("weights"), json.integer("slots"),
                json.integer("gradients"), json.integer("workspace"), json.integer("input"), json.integer("outputs"),
                json.integer("total"), json.text("memory"), json.integer("available"));
        }
    }

    static MemoryEstimate of(String text) {
        Json json = Json.parse("memory estimate", text);
        return new MemoryEstimate(json.integer("batch_size"), json.list("devices", Device::of), json.integer("total"),
            json.truth("fits"), text);
    }

    @Override
    public String toString() {
        return totalBytes + " bytes for batches of " + batchSize + (fits ? ", which fit" : ", which do not fit");
    }
}

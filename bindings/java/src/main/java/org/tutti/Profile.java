// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** What steps, evaluations and predictions did between {@link Context#startProfile} and {@link Context#stopProfile}.
 * Times of steps are means.
 *
 * @param seconds from the first to the last recorded step
 * @param steps how many were recorded
 * @param devices how busy each device was
 * @param replicas what each replica waited for
 * @param layers what each layer cost, the dearest first
 * @param forgotten events that did not fit into memory
 * @param text all that as a table for people
 * @param json the library's text
 */
public record Profile(double seconds, long steps, List<Device> devices, List<Replica> replicas, List<Layer> layers,
    long forgotten, String text, String json) {
    /** How busy a device was.
     *
     * @param device its name
     * @param utilisation the share of the time in which it computed
     * @param idle the rest
     * @param kernels how many ran
     */
    public record Device(String device, double utilisation, double idle, long kernels) {
        static Device of(Json json) {
            return new Device(json.text("device"), json.number("utilisation"), json.number("idle"),
                json.integer("kernels"));
        }
    }

    /** A step of a replica, in milliseconds.
     *
     * @param replica its name
     * @param steps how many it made
     * @param stepMs all of a step
     * @param computeMs computing
     * @param inputMs waiting for input
     * @param communicationMs communication
     * @param hostMs what is left
     */
    public record Replica(String replica, long steps, double stepMs, double computeMs, double inputMs,
        double communicationMs, double hostMs) {
        static Replica of(Json json) {
            return new Replica(json.text("replica"), json.integer("steps"), json.number("step_ms"),
                json.number("compute_ms"), json.number("input_ms"), json.number("communication_ms"),
                json.number("host_ms"));
        }
    }

    /** What a layer costs in a step, in milliseconds.
     *
     * @param layer its name
     * @param forwardMs what the model computes
     * @param backwardMs gradients
     * @param updateMs the optimizer
     * @param share of all layers
     */
    public record Layer(String layer, double forwardMs, double backwardMs, double updateMs, double share) {
        static Layer of(Json json) {
            return new Layer(json.text("layer"), json.number("forward_ms"), json.number("backward_ms"),
                json.number("update_ms"), json.number("share"));
        }
    }

    static Profile of(String text) {
        Json json = Json.parse("profile", text);
        return new Profile(json.number("seconds"), json.integer("steps"), json.list("devices", Device::of),
            json.list("replicas", Replica::of), json.list("layers", Layer::of), json.integer("forgotten"),
            json.text("text"), text);
    }

    /** The table. */
    @Override
    public String toString() {
        return text;
    }
}

// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;
import java.util.NoSuchElementException;

/** What the elements of a dataset are.
 *
 * @param components the tensors of each element
 * @param batchSize how many rows a batch has; 0 where elements are single examples
 * @param json the library's text
 */
public record DatasetSpec(List<Component> components, long batchSize, String json) {
    /** One tensor of each element.
     *
     * @param role what it is for
     * @param tensor its name, type and shape
     */
    public record Component(Role role, TensorSpec tensor) {
        /** Its name.
         *
         * @return the name
         */
        public String name() {
            return tensor.name();
        }

        @Override
        public String toString() {
            return role + " " + tensor;
        }
    }

    static DatasetSpec of(String text) {
        Json json = Json.parse("dataset spec", text);
        return new DatasetSpec(json.list("components", DatasetSpec::component), json.integer("batch_size"), text);
    }

    private static Component component(Json json) {
        return new Component(Role.of(json.text("role")), TensorSpec.of(json));
    }

    /** A component by name.
     *
     * @param name its name
     * @return the component
     * @throws NoSuchElementException when there is none of the name
     */
    public Component component(String name) {
        return components.stream().filter(component -> component.name().equals(name)).findFirst().orElseThrow();
    }

    @Override
    public String toString() {
        return components.toString();
    }
}

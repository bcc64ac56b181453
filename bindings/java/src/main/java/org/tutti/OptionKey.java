// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** An option of a schema, for programs that show or read options by name.
 *
 * @param key its name
 * @param type what its values are
 * @param defaultValue what holds when it is not set, as text
 * @param documentation what it means
 * @param json the library's text, which has bounds and choices
 */
public record OptionKey(String key, String type, String defaultValue, String documentation, String json) {
    static OptionKey of(String text) {
        Json json = Json.parse("option", text);
        return new OptionKey(json.text("key"), json.text("type"), json.get("default").shown(),
            json.text("documentation"), text);
    }

    @Override
    public String toString() {
        return key + " (" + type + ")";
    }
}

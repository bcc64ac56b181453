// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** One of the texts that an attribute or option may be. */
interface Choice {
    String text();
}

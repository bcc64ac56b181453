// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** What a function that makes a dataset gets.
 *
 * @param params the run option params
 * @param inputPipelineId which input this process reads, from 0 on, for {@link Pipeline#shard}
 * @param inputPipelineCount how many inputs the run reads, 1 unless workers have input of their own
 */
public record InputContext(String params, long inputPipelineId, long inputPipelineCount) {
}

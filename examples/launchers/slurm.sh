#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Two nodes under Slurm, one worker on each.
#
#   MODEL_DIR=/shared/workers sbatch slurm.sh
#
# The batch script runs on the first node only; srun starts a worker on every node and tells each which one it is. The
# workers meet on the first node at port 8888; two jobs that share a node need different ones: MASTER_PORT=9001.
#SBATCH --job-name=tutti-workers
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
# A job whose node is lost comes back into the queue, and goes on from the last checkpoint.
#SBATCH --requeue
set -eu

# A worker that ends badly ends the others, too.
exec srun --kill-on-bad-exit=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" "${PROGRAM:-workers}" "$MODEL_DIR"

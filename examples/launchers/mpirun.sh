#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One worker on each of the machines of a host file, by Open MPI's mpirun. Nothing of MPI is used but that it starts
# programs and numbers them.
#
#   MODEL_DIR=/shared/workers mpirun.sh hosts.txt          # hosts.txt: a name on each line
#
# The machine of rank 0 is the first of the file: that is where the workers meet.
set -eu

hosts=$1
MASTER_ADDR=$(awk '!/^#/ && NF {print $1; exit}' "$hosts")
count=$(awk '!/^#/ && NF {n++} END {print n + 0}' "$hosts")
export MASTER_ADDR MASTER_PORT="${MASTER_PORT:-8888}"

# -x passes a variable on to the other machines; binding to nothing leaves each worker all cores of its own.
exec mpirun --hostfile "$hosts" -np "$count" --map-by ppr:1:node --bind-to none \
  -x MASTER_ADDR -x MASTER_PORT ${TUTTI_JOB_SECRET:+-x TUTTI_JOB_SECRET} "${PROGRAM:-workers}" "$MODEL_DIR"

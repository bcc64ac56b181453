#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One worker on each of several machines, by torchrun, which starts programs that are not Python's, too. Called on every
# machine, with its number:
#
#   MODEL_DIR=/shared/workers torchrun.sh NODES THIS_NODE FIRST_HOST       # torchrun.sh 2 0 node0; on node1: 2 1 node0
#
# torchrun listens at MASTER_PORT of FIRST_HOST itself; the workers meet at the port behind it.
set -eu

exec torchrun --no-python --nnodes "$1" --node-rank "$2" --nproc-per-node 1 --master-addr "$3" \
  --master-port "${MASTER_PORT:-29500}" "${PROGRAM:-workers}" "$MODEL_DIR"

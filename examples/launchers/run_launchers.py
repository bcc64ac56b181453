#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the job files of this folder as a test: run_launchers.py WORKERS

Called by the name of a launcher (srun, mpirun, torchrun), by which it is found in the test's PATH, it stands in for that: it
starts the program on this machine, with the environment that the launcher's manual tells of. Nodes are addresses of the
loopback. What the training operator makes of kubernetes.yaml is made here.
"""
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = ('127.0.0.1', '127.0.0.2')
LAUNCHERS = ('TF_CONFIG', 'RANK', 'WORLD_SIZE', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID', 'MASTER_ADDR', 'MASTER_PORT')


def free_port():
    """With one behind it that is free, too; the system gives neither to anybody before a worker has it."""
    with open('/proc/sys/net/ipv4/ip_local_port_range', encoding='ascii') as given:
        end = int(given.read().split()[0])
    while True:
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(('127.0.0.1', random.randrange(10000, end - 1) if end > 10001 else 0))
                second.bind(('127.0.0.1', first.getsockname()[1] + 1))
                return first.getsockname()[1]
            except (OSError, OverflowError):
                pass


def start_all(environments, command):
    """A process for each; the first exit status that is not 0."""
    started = [subprocess.Popen(command, env={**os.environ, **more}) for more in environments]
    return max(abs(process.wait()) for process in started)


# ---- stand-ins ----

def srun(words):
    assert '--kill-on-bad-exit=1' in words, words
    command = [word for word in words if not word.startswith('--')]
    nodes = int(os.environ['SLURM_JOB_NUM_NODES'])
    return start_all([{'SLURM_PROCID': str(rank), 'SLURM_NTASKS': str(nodes), 'SLURM_STEP_NODELIST': f'127.0.0.[1-{nodes}]',
                       'SLURM_STEP_TASKS_PER_NODE': f'1(x{nodes})'} for rank in range(nodes)], command)


def mpirun(words):
    passed_on = [words[i + 1] for i, word in enumerate(words) if word == '-x']
    values = dict(zip(words, words[1:]))
    count = int(values['-np'])
    with open(values['--hostfile'], encoding='utf-8') as file:
        assert count == len(file.read().split()), 'not one worker for each host'
    # Other machines see of the environment what is passed on.
    for name in ('MASTER_ADDR', 'MASTER_PORT'):
        if name not in passed_on:
            del os.environ[name]
    return start_all([{'OMPI_COMM_WORLD_RANK': str(rank), 'OMPI_COMM_WORLD_SIZE': str(count), 'OMPI_COMM_WORLD_LOCAL_SIZE': '1'}
                      for rank in range(count)], words[-2:])


def torchrun(words):
    values = dict(zip(words, words[1:]))
    assert '--no-python' in words and values['--nproc-per-node'] == '1', words
    with socket.socket() as agent:
        agent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if values['--node-rank'] == '0':
            agent.bind((values['--master-addr'], int(values['--master-port'])))
            agent.listen()
        return start_all([{'RANK': values['--node-rank'], 'WORLD_SIZE': values['--nnodes'], 'LOCAL_RANK': '0',
                           'MASTER_ADDR': values['--master-addr'], 'MASTER_PORT': values['--master-port'],
                           'TORCHELASTIC_USE_AGENT_STORE': 'True'}], words[-2:])


# ---- the test ----

def check(name, results, model_dir):
    """Of each process the exit status and what it said; one says that all went well."""
    for status, text in results:
        if status != 0:
            sys.exit(f'{name}: exit status {status}\n{text}')
    said = ''.join(text for _, text in results)
    done = re.findall(r'^workers (\d+), replicas \d+, step (\d+), accuracy (\d\.\d+), predictions (\d+)$', said, re.M)
    if len(done) != 1 or done[0][0] != '2' or done[0][3] != '4096' or float(done[0][2]) < 0.9:
        sys.exit(f'{name}: unexpected words\n{said}')
    if not os.path.isdir(os.path.join(model_dir, f'checkpoint-{done[0][1]}')):
        sys.exit(f'{name}: no checkpoint of the last step')
    print(f'{name}: {said.strip()}')


def run(commands):
    """Commands with their own environments, at the same time."""
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
               for command, environment in commands]
    texts = [process.communicate(timeout=100)[0] for process in started]
    return [(process.returncode, text) for process, text in zip(started, texts)]


def kubernetes_jobs(program, model_dir, environment):
    """What the operator makes of the file: a pod for each worker, with the addresses of all."""
    with open(os.path.join(HERE, 'kubernetes.yaml'), encoding='utf-8') as file:
        job = yaml.safe_load(file)
    assert job['kind'] == 'TFJob' and job['apiVersion'] == 'kubeflow.org/v1'
    replicas = job['spec']['tfReplicaSpecs']
    assert set(replicas) == {'Worker'}
    pod = replicas['Worker']['template']['spec']
    container = next(container for container in pod['containers'] if container['name'] == 'tensorflow')
    ports = {port['name']: port['containerPort'] for port in container['ports']}
    assert 'tfjob-port' in ports
    mounts = {mount['mountPath'] for mount in container['volumeMounts']}
    assert {mount['name'] for mount in container['volumeMounts']} == {volume['name'] for volume in pod['volumes']}
    count = replicas['Worker']['replicas']
    assert container['command'][0] == 'workers' and os.path.dirname(container['command'][1]) in mounts
    # In the cluster <job>-worker-<i>.<namespace>.svc:<port>; each name is an address of its own.
    addresses = [f'{NODES[i]}:{free_port()}' for i in range(count)]
    return [([program, model_dir],
             {**environment, 'TF_CONFIG': json.dumps({'cluster': {'worker': addresses}, 'environment': 'cloud',
                                                      'task': {'type': 'worker', 'index': i}})}) for i in range(count)]


def slurm_job(environment):
    with open(os.path.join(HERE, 'slurm.sh'), encoding='utf-8') as file:
        directives = dict(re.findall(r'^#SBATCH --([a-z-]+)=(\S+)$', file.read(), re.M))
    assert directives['ntasks-per-node'] == '1'
    return [([os.path.join(HERE, 'slurm.sh')], {**environment, 'SLURM_JOB_NUM_NODES': directives['nodes'],
                                                'SLURM_CPUS_PER_TASK': directives['cpus-per-task']})]


def test(program):
    with tempfile.TemporaryDirectory() as folder:
        for name in ('srun', 'mpirun', 'torchrun'):
            os.symlink(os.path.abspath(__file__), os.path.join(folder, name))
        hosts = os.path.join(folder, 'hosts.txt')
        with open(hosts, 'w', encoding='utf-8') as file:
            file.write('\n'.join(NODES) + '\n')
        jobs = {
            'kubernetes.yaml': kubernetes_jobs,
            'slurm.sh': lambda _, __, environment: slurm_job(environment),
            'mpirun.sh': lambda _, __, environment: [([os.path.join(HERE, 'mpirun.sh'), hosts], environment)],
            'torchrun.sh': lambda _, __, environment: [([os.path.join(HERE, 'torchrun.sh'), '2', node, NODES[0]], environment)
                                                       for node in '01'],
        }
        for name, commands in jobs.items():
            model_dir = os.path.join(folder, 'model-of-' + name)
            environment = {key: value for key, value in os.environ.items() if key not in LAUNCHERS}
            environment.update(PATH=folder + ':' + os.environ['PATH'], PROGRAM=program, MODEL_DIR=model_dir,
                               MASTER_PORT=str(free_port()))
            check(name, run(commands(program, model_dir, environment)), model_dir)


if __name__ == '__main__':
    stand_in = {'srun': srun, 'mpirun': mpirun, 'torchrun': torchrun}.get(os.path.basename(sys.argv[0]))
    sys.exit(stand_in(sys.argv[1:]) if stand_in else test(os.path.abspath(sys.argv[1])))

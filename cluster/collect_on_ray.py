#!/usr/bin/env python3
"""`tiepoint collect` on a Ray cluster: parts of the work are tasks of actors that each own a GPU, or some cores.

    collect_on_ray.py IMAGES… --output database.db --work DIR [--parts N] [--gpus | --cores N] [-- options of `collect scan`]

IMAGES and DIR lie on a file system that every machine sees under the same path. Nothing travels through Ray but the
numbers of parts and a few lines of JSON: what is done is a file in the work folder. A part that was done twice wrote the
same bytes twice, so a task whose actor or machine dies is simply run again, and a run that is killed goes on where it was.

Needs `ray` (2.60) and the command `tiepoint` on every machine. A cluster is found by `--address` or RAY_ADDRESS; without
either this machine is one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

import ray


if __name__ != "__main__":
    # The code of this module travels with the tasks, so that workers need not find the file.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


class CommandFailed(RuntimeError):
    """The command ended with an error; its message says what was wrong."""


def tiepoint(command, *arguments, device="cpu", threads=None):
    """Run the command and return the last object that it printed.

    Parameters
    ----------
    command : str
        Path of the program.
    arguments : str
        A subcommand with its arguments.
    device : str
        What `--device` takes.
    threads : int, optional
        What `--threads` takes; all cores if not given.

    Returns
    -------
    dict
        What `--json` printed last.

    Raises
    ------
    CommandFailed
        When the command cannot be started or ends with an error.
    """
    line = [command, *arguments, "--device", device, "--json"]
    if threads is not None:
        line += ["--threads", str(threads)]
    try:
        run = subprocess.run(line, capture_output=True, text=True)
    except OSError as error:
        raise CommandFailed(f"{command}: {error}") from error
    if run.returncode < 0:
        # Ended by a signal, so from outside: the next try may succeed.
        raise ConnectionError(f"{' '.join(line)} was ended by signal {-run.returncode}")
    if run.returncode != 0:
        raise CommandFailed(f"{' '.join(line)}: {run.stderr.strip()}")
    return json.loads(run.stdout.splitlines()[-1])


@ray.remote(max_restarts=-1, max_task_retries=-1)
class Worker:
    """Owns what Ray gave it: one GPU, or some cores.

    It is restarted wherever there is room when it dies, and its task is run again.
    """

    def __init__(self, command, cores):
        self.command = command
        gpus = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
        # Ray shows a worker its own GPUs alone, so that the first is the one that it owns.
        self.device = "cuda:0" if gpus else "cpu"
        self.threads = max(1, cores)

    def run(self, stage, work, part, parts):
        """Does one part of a stage and returns what the command printed."""
        return tiepoint(self.command, "collect", stage, "--work", work, "--shard", f"{part}/{parts}",
                        device=self.device, threads=self.threads)


def run_stage(workers, stage, work, parts):
    """Runs all parts of a stage, each on the next worker that is free.

    Parameters
    ----------
    workers : list of Worker handles
    stage : {'features', 'pairs', 'match'}
    work : str
        The work folder.
    parts : int
        In how many parts the work is cut; several a worker, so that none waits long for the last.

    Returns
    -------
    list of dict
        What each part printed, by its number.
    """
    results, waiting, todo = [None] * parts, {}, iter(range(parts))

    def give(worker):
        part = next(todo, None)
        if part is not None:
            waiting[worker.run.remote(stage, work, part, parts)] = (part, worker)

    for worker in workers:
        give(worker)
    while waiting:
        [done], _ = ray.wait(list(waiting))
        part, worker = waiting.pop(done)
        try:
            results[part] = ray.get(done)
        except ray.exceptions.RayTaskError as error:
            if not isinstance(error.cause, ConnectionError):
                raise
            # The command was killed but its actor was not: run the part again.
            waiting[worker.run.remote(stage, work, part, parts)] = (part, worker)
            continue
        print(f"{stage}: {sum(r is not None for r in results)} of {parts} parts", file=sys.stderr)
        give(worker)
    return results


def collect(images, output, work, *, parts=None, gpus=None, cores=1, command=None, options=(), max_unreadable=None):
    """All stages, on the cluster that `ray.init` has connected to.

    Parameters
    ----------
    images : sequence of str
        Folders of photographs, and photographs.
    output : str
        COLMAP's database.
    work : str
        The work folder.
    parts : int, optional
        In how many parts each stage is cut; eight for each worker if not given.
    gpus : bool, optional
        Whether a worker owns a GPU; if not given, whether the cluster has any.
    cores : int
        Cores that a worker owns. With GPUs they decode pictures and write.
    command : str, optional
        Path of `tiepoint`, the same on every machine; the one on the path if not given.
    options : sequence of str
        Options of `tiepoint collect scan`.
    max_unreadable : int, optional
        The most photographs that may be left out; all that cannot be read are named.

    Returns
    -------
    dict
        What `tiepoint collect export` printed.
    """
    found = shutil.which(command or "tiepoint")
    if found is None:
        raise CommandFailed(f"{command or 'tiepoint'} is no program on this machine; name the command by --command")
    command, work, output = map(os.path.abspath, (found, work, output))
    resources = ray.cluster_resources()
    if gpus is None:
        gpus = resources.get("GPU", 0) >= 1
    count = int(min(resources.get("GPU", 0) if gpus else resources["CPU"] // cores, resources["CPU"] // cores))
    if count < 1:
        wanted = f"{cores} cores" + (" and a GPU" if gpus else "")
        raise CommandFailed(f"the cluster has {resources}: a worker needs {wanted}")
    kind = Worker.options(num_cpus=cores, num_gpus=1 if gpus else 0)
    workers = [kind.remote(command, cores) for _ in range(count)]
    parts = parts or 8 * count
    try:
        tiepoint(command, "collect", "scan", *images, "--work", work, *options)
        left_out = [image for part in run_stage(workers, "features", work, parts) for image in part["unreadable"]]
        for image in left_out:
            print(f"{image['image']} is left out: {image['reason']}", file=sys.stderr)
        if max_unreadable is not None and len(left_out) > max_unreadable:
            raise CommandFailed(f"{len(left_out)} photographs cannot be read, and {max_unreadable} may be left out")
        run_stage(workers, "pairs", work, parts)
        # The part that finishes last writes the choice; this writes it if that part was killed before.
        tiepoint(command, "collect", "pairs", "--work", work)
        run_stage(workers, "match", work, parts)
        # The transitive closure: pairs with a common verified partner are known once all tiles of the first round are
        # done.
        run_stage(workers, "match", work, parts)
        return tiepoint(command, "collect", "export", "--work", work, "--output", output)
    finally:
        for worker in workers:
            ray.kill(worker)


def main():
    """The command line."""
    own, options = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, options = own[:at], own[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", nargs="+", metavar="IMAGES", help="folders of photographs, and photographs")
    parser.add_argument("--output", required=True, metavar="DB", help="the database, for COLMAP")
    parser.add_argument("--work", required=True, metavar="DIR", help="the work folder, seen by every machine")
    parser.add_argument("--parts", type=int, metavar="N", help="cut each stage into N parts [8 for each worker]")
    parser.add_argument("--cores", type=int, default=1, metavar="N", help="cores that a worker owns [1]")
    parser.add_argument("--gpus", action=argparse.BooleanOptionalAction, help="a GPU for each worker [if there are any]")
    parser.add_argument("--command", metavar="FILE", help="tiepoint, where it is not on the path")
    parser.add_argument("--max-unreadable", type=int, metavar="N", help="end where more than N photographs cannot be read")
    parser.add_argument("--address", metavar="HOST:PORT", help="the cluster; otherwise RAY_ADDRESS, or this machine")
    arguments = parser.parse_args(own)
    ray.init(address=arguments.address, log_to_driver=False)
    try:
        result = collect(arguments.images, arguments.output, arguments.work, parts=arguments.parts, gpus=arguments.gpus,
                         cores=arguments.cores, command=arguments.command, options=options,
                         max_unreadable=arguments.max_unreadable)
    except (CommandFailed, ray.exceptions.RayTaskError) as error:
        cause = getattr(error, "cause", None) or error
        print(f"collect_on_ray.py: {cause}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())

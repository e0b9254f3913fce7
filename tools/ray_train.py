#!/usr/bin/env python3
"""Trains on processes that Ray starts, and starts them again from the last checkpoint where one of them is lost.
usage: ray_train.py [--processes N] [--gpus] [--restarts R] [--out FOLDER] -- PROGRAM [ARGUMENTS...]

PROGRAM has --out_dir, --json and --resume, as mnist, gpt, gpt2 and mesh_gpt do. Its processes are on one machine, of whose
CPUs they take as many: a worker of Ray Train has tools/launch.sh start them. With --gpus each is a worker of its own, which
has a GPU of any machine, and finds the others by torchrun's variables. The machines share the file system in which FOLDER
is. There the program leaves its files, log.txt has what it prints, and run.json its results, which are reported to Ray
together with the folder as a checkpoint. Needs the package ray[train]."""
import argparse
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

LAUNCH = pathlib.Path(__file__).resolve().parent / "launch.sh"
PR_SET_PDEATHSIG = 1


def parse_arguments():
    usage, _, description = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(usage=usage.partition("usage: ")[2], description=description)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--gpus", action="store_true")
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/ray"))
    parser.add_argument("program", nargs="+")
    return parser.parse_args()


def torchrun_variables():
    """Of this worker, which sees no GPU but its own. All workers call it together."""
    import ray
    from ray.train.collective import broadcast_from_rank_zero

    with socket.socket() as any_port:
        any_port.bind(("", 0))
        here = {"MASTER_ADDR": ray.util.get_node_ip_address(), "MASTER_PORT": str(any_port.getsockname()[1])}
    context = ray.train.get_context()
    own = {"RANK": context.get_world_rank(), "WORLD_SIZE": context.get_world_size(), "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1}
    return broadcast_from_rank_zero(here) | {name: str(value) for name, value in own.items()}


def end_with_worker():
    """In the child: a worker that is killed leaves no processes behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def train(config):
    """In each worker, also after those of an earlier attempt are lost."""
    import ray.train

    folder, is_first = pathlib.Path(config["folder"]), ray.train.get_context().get_world_rank() == 0
    call = [*config["command"], "--out_dir", folder / "run", "--json", folder / "run.json", "--resume"]
    variables = torchrun_variables() if config["gpus"] else {}
    launch = [] if config["gpus"] else [LAUNCH, "-n", str(config["processes"])]
    with open(folder / "log.txt", "a") as log:
        subprocess.run([*launch, *call], check=True, cwd=config["cwd"], env={**os.environ, **variables}, stdout=log,
                       stderr=subprocess.STDOUT, preexec_fn=end_with_worker)
    metrics = json.loads((folder / "run.json").read_text()) if is_first else {}
    checkpoint = ray.train.Checkpoint.from_directory(folder / "run") if is_first else None
    ray.train.report(metrics, checkpoint=checkpoint, checkpoint_upload_mode=ray.train.CheckpointUploadMode.NO_UPLOAD)


def main():
    arguments = parse_arguments()
    import ray
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    folder = arguments.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    ray.init(include_dashboard=False, log_to_driver=False)
    config = {"command": [str(pathlib.Path(arguments.program[0]).resolve()), *arguments.program[1:]], "folder": str(folder),
              "cwd": os.getcwd(), "processes": arguments.processes, "gpus": arguments.gpus}
    workers = ScalingConfig(num_workers=arguments.processes, use_gpu=True) if arguments.gpus else ScalingConfig(
        num_workers=1, resources_per_worker={"CPU": arguments.processes})
    run = RunConfig(name=folder.name, storage_path=str(folder.parent), failure_config=FailureConfig(max_failures=arguments.restarts))
    try:
        result = DataParallelTrainer(train, train_loop_config=config, scaling_config=workers, run_config=run).fit()
    except ray.train.TrainingFailedError as error:
        sys.exit(f"the run has failed; {folder}/log.txt says why: {error}")
    print(json.dumps(result.metrics))
    print("checkpoint:", result.checkpoint.path)


main()

#!/usr/bin/env python3
"""Tries options of a program out: Ray Tune starts a run of it for each combination of their values.
usage: ray_tune.py [--processes N] [--metric NAME] [--out FOLDER] --vary OPTION=VALUE,VALUE... -- PROGRAM [ARGUMENTS...]

PROGRAM writes a file by --json, as mnist, gpt and mesh_gpt do, in which the metric (val_loss, if no other is named) is
the smaller the better. A run has N processes and as many of Ray's CPUs, and those of one machine: tools/launch.sh starts
them. Several --vary make a grid. Prints a line for each run, and the best one last. Needs the package ray[tune]."""
import argparse
import itertools
import json
import pathlib
import subprocess
import sys

LAUNCH = pathlib.Path(__file__).resolve().parent / "launch.sh"


def parse_arguments():
    usage, _, description = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(usage=usage.partition("usage: ")[2], description=description)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--metric", default="val_loss")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/ray"))
    parser.add_argument("--vary", action="append", required=True, type=lambda text: text.partition("=")[::2])
    parser.add_argument("program", nargs="+")
    return parser.parse_args()


def run(config, command, processes, metric):
    """One trial, in a folder of its own: on whatever machine Ray chooses."""
    from ray import tune

    folder = pathlib.Path(tune.get_context().get_trial_dir()).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    options = [text for name, value in config.items() for text in (f"--{name}", value)]
    call = [LAUNCH, "-n", str(processes), *command, *options, "--out_dir", folder / "run", "--json", folder / "run.json"]
    with open(folder / "log.txt", "w") as log:
        subprocess.run(call, check=True, stdout=log, stderr=subprocess.STDOUT)
    tune.report({metric: json.loads((folder / "run.json").read_text())[metric]})


def main():
    arguments = parse_arguments()
    import ray
    from ray import tune

    ray.init(include_dashboard=False, log_to_driver=False)
    grid = {name: tune.grid_search(values.split(",")) for name, values in arguments.vary}
    command = [str(pathlib.Path(arguments.program[0]).resolve()), *arguments.program[1:]]
    trial = tune.with_parameters(run, command=command, processes=arguments.processes, metric=arguments.metric)
    results = tune.Tuner(
        tune.with_resources(trial, {"cpu": arguments.processes}),
        param_space=grid,
        tune_config=tune.TuneConfig(metric=arguments.metric, mode="min"),
        run_config=tune.RunConfig(storage_path=str(arguments.out.resolve()), verbose=0),
    ).fit()
    for result in results:
        value = "failed" if result.error else result.metrics[arguments.metric]
        print(*itertools.chain.from_iterable(result.config.items()), arguments.metric, value, result.path)
    if results.num_errors:
        sys.exit(f"{results.num_errors} of {len(results)} runs have failed; their folders have a log.txt")
    print("best:", *itertools.chain.from_iterable(results.get_best_result().config.items()))


main()

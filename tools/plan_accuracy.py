#!/usr/bin/env python3
"""Compares what ./rush plan predicts of meshes of this machine's processes with what mesh_gpt then takes: memory and time of a
step. usage: plan_accuracy.py BIN [--processes 2 4] [--device cuda] [--model OPTIONS...]"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MESHES = {
    2: ['--dp 2', '--fsdp 2', '--tp 2', '--tp 2 --sequence_parallel', '--cp 2', '--pp 2 --micro_batches 4',
        '--pp 2 --schedule gpipe --micro_batches 4', '--pp 2 --schedule interleaved --stages_per_process 2 --micro_batches 4'],
    4: ['--dp 4', '--fsdp 4', '--dp 2 --fsdp 2', '--tp 4', '--tp 2 --fsdp 2 --sequence_parallel', '--cp 4', '--cp 2 --tp 2',
        '--pp 4 --micro_batches 4', '--pp 2 --fsdp 2 --micro_batches 4'],
    8: ['--dp 8', '--fsdp 8', '--tp 8 --sequence_parallel', '--cp 8', '--fsdp 4 --tp 2 --sequence_parallel',
        '--pp 2 --fsdp 2 --tp 2 --sequence_parallel --micro_batches 4', '--pp 4 --dp 2 --micro_batches 4'],
}


def say(*command):
    """Runs a command; its output is shown where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'{" ".join(map(str, command))} failed:\n{done.stdout}{done.stderr}')


def launched(args, processes, program, *options):
    say(ROOT / 'tools/launch.sh', '-n', processes, args.bin / program, *options, *args.model, '--device', args.device)


def compare(args, processes, mesh, folder):
    """Rates and steps are measured in turn; of some such rounds that with the median error counts, since the machine's speed
    changes."""
    rounds = []
    for _ in range(args.rounds):
        launched(args, processes, 'plan', 'mesh_gpt', '--measure', folder / 'rates.json')
        launched(args, processes, 'mesh_gpt', *mesh.split(), '--data', folder / 'text', '--max_iters', args.steps,
                 '--log_interval', 1, '--checkpoint_interval', 10**6, '--eval_iters', 0, '--out_dir', folder / 'out',
                 '--json', folder / 'run.json')
        say(args.bin / 'plan', 'mesh_gpt', *mesh.split(), *args.model, '--rates', folder / 'rates.json', '--vocab_size', 64,
            '--device', args.device, '--json', folder / 'plan.json')
        rounds.append((json.loads((folder / 'plan.json').read_text())[0], json.loads((folder / 'run.json').read_text())))
    rounds.sort(key=lambda round: round[0]['step_seconds'] / round[1]['step_seconds'])
    predicted, measured = rounds[len(rounds) // 2]
    peaks = predicted['peak_bytes'], predicted['dry_run_bytes'], measured['peak_bytes']
    seconds = predicted['step_seconds'], measured['step_seconds']
    error = lambda a, b: f'{100 * (a / b - 1):+.0f}%'
    print(f'| `{mesh}` | {peaks[0] / 2**20:.1f} | {peaks[1] / 2**20:.1f} | {peaks[2] / 2**20:.1f} | {error(peaks[0], peaks[2])} | '
          f'{1e3 * seconds[0]:.0f} | {1e3 * seconds[1]:.0f} | {error(*seconds)} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('bin', type=pathlib.Path)
    parser.add_argument('--processes', type=int, nargs='*', default=[2, 4], choices=sorted(MESHES))
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--steps', type=int, default=8, help='of a run, of which the median counts')
    parser.add_argument('--model', nargs=argparse.REMAINDER, help='options of mesh_gpt; the last', default=['--n_embd', '256', '--block_size', '128'])
    args = parser.parse_args()
    print('| mesh | MiB by formulas | by a dry run | measured | error | ms predicted | measured | error |\n' + '|---' * 8 + '|')
    with tempfile.TemporaryDirectory() as folder:
        text = ''.join(f'line {i} of 4000, {i * i}\n' for i in range(4000))
        (pathlib.Path(folder) / 'text').write_text(text)
        for processes in args.processes:
            for mesh in MESHES[processes]:
                compare(args, processes, mesh, pathlib.Path(folder))


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""draw.py PROGRAM FOLDER [--check]: runs PROGRAM, rush_diagrams, and draws what it tells into FOLDER; with --check it fails where
a picture in FOLDER is not what it would draw. Graphviz lays out the graphs; where it is missing, their words are checked alone."""
import collections
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from picture import MARGIN, WIDTH, Picture


def shape(numbers):
    """As Rushlight and Python write it."""
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"


# ---- dispatch

def stops(facts, call, title):
    names, call = facts["keys"], facts[call]
    says = [f"{stop['op']} goes to {names[stop['served']]}, registered in {stop['file']}" for stop in call["stops"]]
    picture = Picture(f"{title}: {call['code']}", f"The call {call['code']} stops at: {'; '.join(says)}.")
    columns = sorted({key for stop in call["stops"] for key in stop["keys"] + stop["kernels"]}, reverse=True)
    wide = 57
    left = WIDTH - MARGIN - wide * len(columns)
    picture.text(MARGIN, picture.y + 13, call["code"], "code", "bold")
    for i, key in enumerate(columns):
        picture.text(left + wide * (i + 0.5), picture.y + 13, names[key], "code", "small", "middle")
    picture.y += 26
    for stop in call["stops"]:
        x = MARGIN + 10 * stop["depth"]
        if stop["depth"]:
            picture.path(f"M{x - 6} {picture.y - 6}V{picture.y + 9}h4")
        picture.text(x, picture.y + 13, stop["op"], "code", "small")
        for i, key in enumerate(columns):
            look = ((["blue"], "runs") if key == stop["served"] else (["grey"], "carried") if key in stop["keys"] else
                    (["empty", "dashed"], "") if key in stop["kernels"] else None)
            if look:
                picture.box(left + wide * i + 2, picture.y, wide - 4, 18, *look[0], label=look[1])
        picture.text(x, picture.y + 32, stop["file"], "faint", "small")
        picture.y += 46
    for line in ["runs: the highest key that the call carries and the operator", "has a kernel for. carried: the call carries the key, too.",
                 "Dashed: there is a kernel, but the call does not carry the key."]:
        picture.line_of_text(line, "small", "faint", height=15)
    return picture


def dispatch_keys(facts):
    names, rows = facts["keys"], facts["carried"]
    says = [f"{row['code']}: {', '.join(names[key] for key in row['keys'])}" for row in rows]
    order = ", ".join(names[:0:-1])
    picture = Picture("The dispatch keys in their order", f"The keys, highest first: {order}. Keys that calls carry: {'; '.join(says)}.")
    left, wide = 150, 38
    for i in range(len(rows)):
        picture.text(left + wide * (i + 0.5), picture.y + 13, i + 1, "bold", "middle")
    picture.y += 22
    for key in range(len(names) - 1, 0, -1):
        picture.text(MARGIN, picture.y + 14, names[key], "code")
        for i, row in enumerate(rows):
            carried = key in row["keys"]
            picture.box(left + wide * i + 2, picture.y, wide - 4, 18, *(["blue"] if carried else ["empty", "dashed"]),
                        label="\N{CHECK MARK}" if carried else "")
        picture.y += 22
    picture.y += 6
    for i, row in enumerate(rows):
        picture.line_of_text(f"{i + 1}  {row['code']}")
    return picture


# ---- tensors

def views(facts):
    def described(view):
        return f"sizes {shape(view['sizes'])}, strides {shape(view['strides'])}, offset {view['offset']}"

    says = [f"{view['code']} has {described(view)} and shows {view['positions']}" for view in facts]
    picture = Picture("Views of one storage", f"Elements of the storage that each view shows, in its order: {'; '.join(says)}.")
    count = 1 + max(position for view in facts for position in view["positions"])
    wide = (WIDTH - 2 * MARGIN) / count
    for view in facts:
        picture.line_of_text(view["code"], "code", "bold")
        picture.line_of_text(described(view), "small", height=19)
        for position in range(count):
            x, order = MARGIN + wide * position, [i for i, p in enumerate(view["positions"]) if p == position]
            picture.box(x, picture.y, wide, 20, *(["blue"] if order else ["empty", "dashed"]), label=position)
            picture.text(x + wide / 2, picture.y + 33, ",".join(map(str, order)), "small", "faint", "middle")
        picture.y += 46
    for line in ["Boxes: the elements of the storage, by their numbers.", "Below: which elements of the view they are."]:
        picture.line_of_text(line, "small", "faint", height=15)
    return picture


def iterator(facts):
    operands, runs = facts["operands"], facts["runs"]
    says = [f"{o['name']}, {o['dtype']} {shape(o['sizes'])} with strides {shape(o['strides'])}, "
            f"has in the loop {o['loop_dtype']} and strides of {shape(o['loop_strides'])} bytes" for o in operands]
    loop = f"The loop: shape {shape(facts['shape'])}, innermost first; {len(runs)} runs of {runs[0]['n']}"
    picture = Picture("What the iterator makes of counts + weights", f"{'; '.join(says)}. {loop}.")
    for operand in operands:
        picture.line_of_text(f"{operand['name']}: {operand['dtype']} {shape(operand['sizes'])}, strides {shape(operand['strides'])}",
                             "code", "small", height=16)
        picture.line_of_text(f"in the loop {operand['loop_dtype']}, strides {shape(operand['loop_strides'])} bytes", "code", "small",
                             "faint", indent=14, height=21)
    picture.line_of_text(loop, height=24)
    wide, left = 29, 30
    group = (WIDTH - MARGIN - left + 8) / len(operands)
    for i, operand in enumerate(operands):
        picture.text(left + group * i, picture.y + 11, operand["name"], "code", "small", "bold")
    picture.y += 18
    for number, run in enumerate(runs):
        picture.text(MARGIN, picture.y + 14, number + 1, "small", "faint")
        for i, operand in enumerate(run["operands"]):
            for element in range(run["n"]):
                picture.box(left + group * i + wide * element, picture.y, wide, 20, ["green", "blue", "orange"][i],
                            label=operand["begin"] + element * operand["stride"])
        picture.y += 25
    for line in ["A row is one run of the kernel's loop. Boxes: at which byte of", "each operand the kernel reads or writes an element."]:
        picture.line_of_text(line, "small", "faint", height=15)
    return picture


# ---- memory

def segments(frames):
    def word(block):
        return {"used": block["name"], "waits": f"{block['name']} waits", "free": "free"}[block["state"]]

    says = ["; ".join(", ".join(f"{word(block)} {block['kib']}" for block in segment["blocks"]) for segment in frame["segments"])
            for frame in frames]
    picture = Picture("Segments of the caching allocator, step by step",
                      "Blocks of each segment, in KiB, after each step: " +
                      " ".join(f"{frame['step']}: {said or 'no segment'}." for frame, said in zip(frames, says)))
    scale = (WIDTH - 2 * MARGIN) / max(segment["kib"] for frame in frames for segment in frame["segments"])
    for number, frame in enumerate(frames):
        picture.line_of_text(f"{number + 1}. {frame['step']}", height=19)
        for segment in frame["segments"] or [{"blocks": []}]:
            x = MARGIN
            for block in segment["blocks"]:
                wide, label = block["kib"] * scale, f"{word(block)} {block['kib']}"
                look = {"used": ["blue"], "waits": ["orange"], "free": ["empty", "dashed"]}[block["state"]]
                fits = 7 * len(label) < wide
                picture.box(x, picture.y, wide, 20, *look, label=label if fits else block["name"] or block["kib"])
                x += wide
            if not segment["blocks"]:
                picture.text(MARGIN, picture.y + 14, "no segment", "small", "faint")
            picture.y += 24
        picture.y += 8
    picture.line_of_text("In KiB. Blue: in use. Orange: freed, but another stream uses it.", "small", "faint", height=15)
    return picture


# ---- streams

def schedule(lines):
    """As early as events permit, a kernel taking one unit of time: (stream, start, line, kernel) of kernels, and (event, stream,
    time) of recordings and waits."""
    now, kernels, recordings, waits = collections.Counter(), [], {}, []
    for number, line in enumerate(lines, 1):
        for given in sorted(line["given"], key=lambda given: "waits" in given):  # a wait comes after its recording
            stream = given["stream"]
            if "kernel" in given:
                kernels.append((stream, now[stream], number, given["kernel"]))
                now[stream] += 1
            elif "records" in given:
                recordings[given["records"]] = (stream, now[stream])
            else:
                now[stream] = max(now[stream], recordings[given["waits"]][1])
                waits.append((given["waits"], stream, now[stream]))
    return kernels, recordings, waits


def streams(facts):
    names, lines = facts["streams"], facts["lines"]
    kernels, recordings, waits = schedule(lines)
    says = [f"{names[stream]}: " + ", ".join(f"{kernel} of line {line} at {start}" for at, start, line, kernel in kernels if at == stream)
            for stream in range(len(names))]
    says += [f"{names[stream]} waits for what {names[recordings[event][0]]} has done by {recordings[event][1]}" for event, stream, _ in waits]
    program = "; ".join(f"{number} on {names[line['on']]}: {line['code']}" for number, line in enumerate(lines, 1))
    picture = Picture("The timeline of three streams", f"The program: {program}. When what it gives can run: {'; '.join(says)}.")
    for number, line in enumerate(lines, 1):
        picture.text(WIDTH - MARGIN - 46, picture.y + 13, names[line["on"]], "small", "faint")
        picture.line_of_text(f"{number:2}  {line['code']}", "code", "small", height=16)
    picture.y += 10
    wide, gap, high = 100, (WIDTH - 2 * MARGIN - 300) / 2, 36
    left = [MARGIN + (wide + gap) * stream for stream in range(len(names))]
    for stream, name in enumerate(names):
        picture.text(left[stream] + wide / 2, picture.y + 11, name, "bold", "middle")
    top = picture.y + 30

    def between(time):
        return top + high * time - 6

    for event, stream, time in waits:
        source, recorded = recordings[event]
        to_right = source < stream
        begin, leave, turn = (left[source], left[source] + wide, gap / 2) if to_right else (left[source] + wide, left[source], -gap / 2)
        end = left[stream] if to_right else left[stream] + wide
        picture.path(f"M{begin:g} {between(recorded):g}H{leave + turn:g}V{between(time):g}H{end - 5 * (1 if to_right else -1):g}")
        picture.arrow_head(end, between(time), to_right)
    for stream, start, line, kernel in kernels:
        picture.box(left[stream], top + high * start, wide, 24, "blue" if kernel != "copy_" else "green", label=f"{line} {kernel}")
    picture.y = top + high * max(start + 1 for _, start, _, _ in kernels) + 4
    for text in ["Boxes: what runs, by its line, as early as events permit; what is", "side by side may run at the same time. A line across a stream:",
                 "an event is recorded there; its arrow: another stream waits."]:
        picture.line_of_text(text, "small", "faint", height=15)
    return picture


def captured(facts):
    def described(block):
        between = "; then " if block["pool"] else ", also "
        return between.join(tensor.replace(" of shape", "") for tensor in block["tensors"])

    columns = sorted(range(len(facts["blocks"])), key=lambda i: not facts["blocks"][i]["pool"])
    letters = {block: chr(ord("a") + place) for place, block in enumerate(columns)}
    pool = sum(block["pool"] for block in facts["blocks"])

    def touched(given):
        marks = {}
        for access in given["accesses"]:
            marks[access["block"]] = "w" if access["writes"] or marks.get(access["block"]) == "w" else "r"
        return marks

    says = []
    for given in facts["given"]:
        marks = touched(given)
        parts = [f"{verb} {', '.join(letters[b] for b in sorted(marks, key=letters.get) if marks[b] == mark)}"
                 for verb, mark in (("reads", "r"), ("writes", "w")) if mark in marks.values()]
        says.append(f"{given['op']}{'' if given['node'] else ', before the graph,'} {' and '.join(parts)}")
    blocks = "; ".join(f"{letters[b]} {described(facts['blocks'][b])}" for b in columns)
    picture = Picture("A replay of a captured step", f"What the stream is given: {'; '.join(says)}. The graph's own memory is "
                      f"{letters[columns[0]]} to {letters[columns[pool - 1]]}. Blocks: {blocks}.")
    left = 204
    wide = (WIDTH - MARGIN - left) / len(columns)
    picture.text(left + wide * pool / 2, picture.y + 11, "the graph's pool", "small", "faint", "middle")
    picture.text(left + wide * (pool + len(columns)) / 2, picture.y + 11, "others' memory", "small", "faint", "middle")
    picture.y += 16
    for place, block in enumerate(columns):
        picture.text(left + wide * (place + 0.5), picture.y + 12, letters[block], "code", "small", "bold", "middle")
    picture.y += 18
    for given in facts["given"]:
        picture.box(MARGIN, picture.y, left - MARGIN - 6, 20, *(["blue"] if given["node"] else ["empty", "dashed"]))
        picture.text(MARGIN + 4, picture.y + 14, given["op"], "code", "small")
        marks = touched(given)
        for place, block in enumerate(columns):
            look = {"r": ["green"], "w": ["orange"], None: ["empty", "dashed"]}[marks.get(block)]
            picture.box(left + wide * place + 1, picture.y, wide - 2, 20, *look, label=marks.get(block, ""))
        picture.y += 24
    picture.y += 4
    for block in columns:
        picture.line_of_text(f"{letters[block]}  {described(facts['blocks'][block])}", "code", "small", height=15)
    picture.y += 4
    for text in ["Blue: nodes of the graph. Dashed: what a replay is preceded by.", "r, w: the block is read, or written. A block of the pool serves",
                 "several tensors in turn. SGD keeps its count of steps (int64) and", "its numbers, such as lr (float64), on the device."]:
        picture.line_of_text(text, "small", "faint", height=15)
    return picture


# ---- training

def step(events):
    calls = sorted((event for event in events if event["ph"] == "X"), key=lambda event: (event["ts"], -event["dur"]))
    depths, open_until = [], []
    for call in calls:
        while open_until and open_until[-1] <= call["ts"]:
            open_until.pop()
        depths.append(len(open_until))
        open_until.append(call["ts"] + call["dur"])
    row_at = {call["ts"]: row for row, call in enumerate(calls)}
    starts = {event["id"]: row_at[event["ts"]] for event in events if event["ph"] == "s"}
    arrows = [(starts[event["id"]], row_at[event["ts"]]) for event in events if event["ph"] == "f" and event["id"] in starts]
    says = [f"{'within ' * depth}{call['name']}" for call, depth in zip(calls, depths)]
    leads = [f"{calls[a]['name']} made the node {calls[b]['name']}" for a, b in arrows]
    picture = Picture("A training step in the order of its calls", f"Calls: {'; '.join(says)}. {'; '.join(leads)}.")
    top, high, right = picture.y, 24, 300
    for row, (call, depth) in enumerate(zip(calls, depths)):
        x, y = MARGIN + 14 * depth, top + high * row
        look = "orange" if call["cat"] == "user_annotation" else "blue" if "::" in call["name"] else "green"
        picture.box(x, y, right - x, 20, look)
        picture.text(x + 6, y + 14, call["name"], "code", "small")
    for number, (a, b) in enumerate(arrows):
        turn, y, end = right + 30 + 24 * number, top + high * a + 10, top + high * b + 10
        picture.path(f"M{right} {y}H{turn}V{end}H{right + 5}")
        picture.arrow_head(right, end)
    picture.y = top + high * len(calls) + 4
    for line in ["Orange: record_function. Blue: operators. Green: nodes of the", "graph; an arrow leads to each from the call that made it."]:
        picture.line_of_text(line, "small", "faint", height=15)
    return picture


def graph(dot, title, gradients=()):
    """`gradients` are added to the boxes of the nodes that they were given to."""
    for given in gradients:
        values = ", ".join(f"{value:g}" for value in given["values"])
        label = rf'(label="{re.escape(given["node"])}(?=["\\]).*?)"'
        dot = re.sub(label, lambda found: rf'{found[1]}\ngiven: [{values}]"', dot, count=1)
    dot = dot.replace("shape=ellipse, style=filled", 'shape=box, style="filled,rounded"')  # narrower
    labels = {name: label.replace(r"\n", ", ") for name, label in re.findall(r'(\w+) \[label="(.*?)"', dot)}
    called = {name: label if label.startswith("leaf") else label.split(",")[0] for name, label in labels.items()}
    edges = [f"{called[a]} leads to {called[b]}" for a, b in re.findall(r"(\w+) -> (\w+)", dot)]
    picture = Picture(title, f"Boxes: {'; '.join(labels.values())}. Edges: {'; '.join(edges)}.")
    if shutil.which("dot"):
        svg = subprocess.run(["dot", "-Tsvg", "-Nfontsize=11", "-Nmargin=0.08,0.04", "-Nheight=0.3", "-Gnodesep=0.12", "-Granksep=0.3",
                              "-Gbgcolor=transparent"], input=dot, capture_output=True, text=True, check=True).stdout
        width, height = map(float, re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"', svg).groups())
        drawn = re.search(r'<g id="graph0".*</g>', svg, re.S)[0]
        drawn = re.sub(r"<!--.*?-->\n|<title>.*?</title>\n", "", drawn)
        picture.width = max(WIDTH, width + 2 * MARGIN)
        picture.elements.append(f'<g transform="translate({(picture.width - width) / 2:g} {MARGIN})">\n{drawn}\n</g>')
        picture.y = MARGIN + height
    return picture


def pictures(facts):
    """By file name; of those that end with _graph, Graphviz decides where things are."""
    dispatch = facts["dispatch"]
    return {
        "dispatch_keys": dispatch_keys(dispatch),
        "dispatch_add": stops(dispatch, "add", "The stops of an addition"),
        "dispatch_view": stops(dispatch, "view", "The stops of a view"),
        "dispatch_autocast": stops(dispatch, "autocast", "The stops of a product under autocast"),
        "views": views(facts["views"]),
        "iterator": iterator(facts["iterator"]),
        "segments": segments(facts["segments"]),
        "step": step(facts["step"]),
        "streams": streams(facts["streams"]),
        "captured": captured(facts["captured"]),
        "squares_graph": graph(facts["graph"]["squares"], "The graph of (y * y).sum(), y = w * x", facts["graph"]["gradients"]),
        "net_graph": graph(facts["graph"]["net"], "The graph of a small net's loss"),
    }


def words(svg):
    """What a picture says, wherever it says it."""
    return re.findall(r"<(?:text|desc)\b[^>]*>([^<]*)" if shutil.which("dot") else r"<desc\b[^>]*>([^<]*)", svg)


def stale(name, svg, file):
    there = file.read_text() if file.exists() else ""
    return words(svg) != words(there) if name.endswith("_graph") else svg != there


def main():
    program, folder, check = sys.argv[1], Path(sys.argv[2]), "--check" in sys.argv
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([program, scratch], check=True)
        drawn = pictures(json.loads(Path(scratch, "facts.json").read_text()))
    files = {name: folder / f"{name}.svg" for name in drawn}
    if check:
        problems = [f"{files[name]} no longer shows what the library does; ./rush diagrams draws it again" for name, picture in drawn.items()
                    if stale(name, picture.svg(), files[name])]
        problems += [f"{file} is no diagram's file" for file in sorted(set(folder.glob("*.svg")) - set(files.values()))]
        sys.exit("\n".join(problems) or None)
    if not shutil.which("dot"):
        sys.exit("draw.py: the graphs need Graphviz's dot")
    folder.mkdir(exist_ok=True)
    for name, picture in drawn.items():
        files[name].write_text(picture.svg())


main()

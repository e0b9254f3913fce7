#!/usr/bin/env python3
"""draw.py PROGRAM FOLDER [--check]: runs PROGRAM, rush_diagrams, and draws what it tells into FOLDER; with --check it fails where
a picture in FOLDER is not what it would draw. Graphviz lays out the graphs; where it is missing, their words are checked alone."""
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

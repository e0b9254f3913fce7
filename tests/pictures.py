#!/usr/bin/env python3
"""pictures.py FOLDER: runs the programs in it that make pictures, at small sizes, and checks what they make: SVG with an
XML parser, pages with an HTML parser, PNG byte by byte. All that is drawn must lie within its picture, no text over
another; where rsvg-convert is installed the SVG is drawn, and must show as many colours as it has kinds of things. Where
Chromium is installed it opens the pages, which must need nothing from elsewhere and fit a phone."""
import base64
import html as html_text
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
VOID = {"meta", "img", "br", "link", "input", "hr"}
LETTER = 0.62  # of a letter's size is its width on average, in a sans serif font; a bit generous


def check(condition, *what):
    if not condition:
        sys.exit("pictures: " + " ".join(str(each) for each in what))


# ---- PNG

def unfilter(kind, row, above, step):
    for i in range(len(row)):
        left, up = (row[i - step] if i >= step else 0), above[i]
        corner = above[i - step] if i >= step else 0
        if kind == 4:  # Paeth's predictor
            guess = left + up - corner
            predicted = min((left, up, corner), key=lambda each: abs(guess - each))
        else:
            predicted = (0, left, up, (left + up) // 2)[kind]
        row[i] = (row[i] + predicted) & 255
    return row


def pixels_of(png, name):
    """The rows of an image of 8 bits a channel, as tuples of channels."""
    check(png[:8] == b"\x89PNG\r\n\x1a\n", name, "is no PNG")
    chunks, at = [], 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        data = png[at + 8:at + 8 + size]
        check(len(data) == size and struct.unpack(">I", png[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + data),
              name, "has a damaged chunk", kind)
        chunks.append((kind, data))
        at += 12 + size
    check(chunks[0][0] == b"IHDR" and chunks[-1] == (b"IEND", b""), name, "has no header or no end")
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    check(depth == 8 and colour in (0, 2, 6) and rest == [0, 0, 0], name, "is of another kind:", depth, colour, rest)
    step = {0: 1, 2: 3, 6: 4}[colour]
    raw = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    check(width > 0 and len(raw) == (width * step + 1) * height, name, "has another size than its header says")
    rows, above = [], bytes(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        above = unfilter(raw[start], bytearray(raw[start + 1:start + 1 + width * step]), above, step)
        rows.append([tuple(above[i:i + step]) for i in range(0, width * step, step)])
    return rows


# ---- SVG

def numbers(text):
    values = [float(each) for each in NUMBER.findall(text)]
    check(not re.search(r"nan|inf", text, re.I) and all(map(math.isfinite, values)), "not finite:", text)
    return values


def points_of(element):
    """The corners of what an element draws."""
    value = lambda name: numbers(element.get(name, "0"))[0]
    tag = element.tag.removeprefix(SVG)
    if tag == "circle":
        x, y, r = value("cx"), value("cy"), value("r")
        check(r > 0, "a circle without a radius")
        return [(x - r, y - r), (x + r, y + r)]
    if tag == "line":
        return [(value("x1"), value("y1")), (value("x2"), value("y2"))]
    if tag == "rect" and "%" not in element.get("width"):
        return [(value("x"), value("y")), (value("x") + value("width"), value("y") + value("height"))]
    if tag in ("polyline", "path"):
        flat = numbers(element.get("points") or element.get("d"))
        check(len(flat) >= 2 and len(flat) % 2 == 0, tag, "without points")
        return list(zip(flat[::2], flat[1::2]))
    return []


def box_of_text(element, size):
    size = float(element.get("font-size", size))
    x, y = numbers(element.get("x"))[0], numbers(element.get("y"))[0]
    width = LETTER * size * len(element.text)
    left = x - {"start": 0, "middle": width / 2, "end": width}[element.get("text-anchor", "start")]
    return left, y - 0.8 * size, left + width, y + 0.25 * size


def check_drawing(svg, name, letter_size, clipped=False):
    left, top, width, height = numbers(svg.get("viewBox"))
    check(width > 0 and height > 0, name, "has an empty viewBox")
    slack = 0.1  # coordinates are rounded
    inside = lambda x, y: left - slack <= x <= left + width + slack and top - slack <= y <= top + height + slack
    boxes, drawn = [], 0
    for element in svg:
        if element.tag == SVG + "svg":
            has_box = element.get("viewBox") is not None
            drawn += check_drawing(element if has_box else element[0], name, letter_size, has_box)
            continue
        if element.tag == SVG + "text":
            box = box_of_text(element, letter_size)
            check(inside(*box[:2]) and inside(*box[2:]), name, "cuts the text", repr(element.text), box)
            for other, text in boxes:
                apart = box[2] <= other[0] or other[2] <= box[0] or box[3] <= other[1] or other[3] <= box[1]
                check(apart, name, "has", repr(element.text), "over", repr(text))
            boxes.append((box, element.text))
        points = points_of(element)
        drawn += bool(points)
        if not clipped:
            check(all(inside(*each) for each in points), name, "draws outside:", ElementTree.tostring(element)[:200])
    return drawn


def letter_size_of(style, name):
    found = re.search(r"\.chart text \{[^}]*font-size: (\d+)px", style)
    check(found, name, "does not say how large its letters are")
    return float(found.group(1))


def check_svg(text, style, name, least_drawn):
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        sys.exit(f"pictures: {name} is no XML: {error}")
    check(root.tag == SVG + "svg", name, "is no SVG")
    drawn = check_drawing(root, name, letter_size_of(style, name))
    check(drawn >= least_drawn, name, "draws only", drawn, "things")


def colours_of(svg, name):
    """How many clear colours rsvg-convert shows; None where it is not installed."""
    if not shutil.which("rsvg-convert"):
        return None
    done = subprocess.run(["rsvg-convert", "--width", "600", "--format", "png"], input=svg.encode(), capture_output=True)
    check(done.returncode == 0, name, "cannot be drawn:", done.stderr.decode())
    counts = {}
    for row in pixels_of(done.stdout, name):
        for pixel in row:
            if max(pixel[:3]) - min(pixel[:3]) > 60 and pixel[-1] == 255:
                counts[pixel] = counts.get(pixel, 0) + 1
    return sum(count >= 20 for count in counts.values())


# ---- HTML

class Page(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.images, self.rows, self.headings, self.style, self.text = [], [], [], [], "", ""

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        check(len(names) == len(set(names)), "an attribute twice in", tag)
        if tag == "img":
            self.images.append(dict(attributes)["src"])
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass  # of SVG, which the XML parser reads

    def handle_endtag(self, tag):
        check(self.open and self.open.pop() == tag, f"</{tag}> closes what is not open")

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.text += data
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


def check_page(path, charts, sections):
    """A report with these charts, by their titles with how many colours they show, and sections, by their headings."""
    html = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(html)
    page.close()
    check(not page.open, path, "leaves open:", page.open)
    check("{{" not in page.text, path, "has a placeholder left")
    check(page.headings[1:] == ["Training", *sections, "Settings", "Machine"], path, "has the sections", page.headings)
    for text in ("seed", "out_dir", "processor", "threads"):
        check(text in page.text, path, "does not say", text)
    drawn = re.findall(r"<svg class=\"chart\".*?\n</svg>\n(?=</div>)", html, re.S)
    titles = [re.search('aria-label="(.*?)"', chart)[1] for chart in drawn]
    check(titles == list(charts), path, "has the charts", titles)
    for chart, colours in zip(drawn, charts.values()):
        chart = chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        check_svg(chart, page.style, str(path), 10)
        # The page's colours are CSS variables, which rsvg-convert does not know.
        for name, colour in {"first": "#c2610c", "second": "#0f7c86", "third": "#6d4bb0"}.items():
            chart = chart.replace(f"var(--{name})", colour)
        shown = colours_of(chart.replace("<polyline", '<polyline fill="none"'), str(path))
        check(shown in (None, colours), path, titles, "shows", shown, "colours")
    for uri in page.images:
        check(uri.startswith("data:image/"), path, "loads", uri[:40])
    check_in_browser(path, html)
    return page


def check_in_browser(path, html):
    """Opens the page as wide as on a phone, within another that says how wide it came out."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        return
    around = path.with_name("around.html")
    around.write_text(f"""<iframe style="width:390px" srcdoc="{html_text.escape(html)}"></iframe><script>
        onload = () => {{ document.title = "as wide as " + frames[0].document.documentElement.scrollWidth; }};</script>""")
    done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={path.parent}/.browser",
                           "--enable-logging=stderr", "--dump-dom", f"file://{around}"], capture_output=True, text=True)
    width = re.search(r"<title>as wide as (\d+)", done.stdout)
    check(width and int(width[1]) <= 390, path, "does not fit 390 pixels:", width and width[1], done.stderr[-300:])
    check("CONSOLE" not in done.stderr, path, "complains:", done.stderr)


def check_digits(page):
    check(len(page.images) >= 40, "the demo's report shows", len(page.images), "digits")
    check(len(page.rows) == 11 and set(page.rows) == {12}, "the demo's report has a crooked table:", page.rows)
    for uri in page.images:
        rows = pixels_of(base64.b64decode(uri.partition(",")[2], validate=True), "report.html")
        check(len(rows) == 28 and len(rows[0]) == 28, "the demo's report shows an image that is no digit")


# ---- the programs

def run(folder, scratch, program, *arguments):
    done = subprocess.run([folder / program, *arguments, "--out_dir", scratch / program], cwd=scratch, text=True, errors="replace",
                          env={**os.environ, "RUSH_DATA": str(scratch), "RUSH_ROOT": str(scratch)}, capture_output=True)
    check(done.returncode == 0, program, "failed:", done.stderr)
    return scratch / program


def check_transformers(folder, scratch, of_each_step):
    (scratch / "text").write_text("to be or not to be <b>&\n" * 100)
    small = ["--data", "text", "--n_layer", "1", "--n_head", "2", "--n_embd", "16", "--block_size", "16", "--max_iters", "40",
             "--eval_interval", "10", "--eval_iters", "2", "--max_new_tokens", "50"]
    gpt = run(folder, scratch, "gpt", *small)
    check_page(gpt / "report.html", {"loss": 3, **of_each_step}, ["What it writes"])
    if not (folder / "gpt2").exists():
        return
    # GPT-2's spelling of the 256 bytes, and one pair.
    plain = [byte for byte in range(256) if 32 < byte < 127 or 160 < byte != 173]
    hidden = [byte for byte in range(256) if byte not in plain]
    spelling = {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(hidden)}
    (scratch / "encoder.json").write_text(json.dumps({**spelling, "<|endoftext|>": 256, "to": 257}))
    (scratch / "vocab.bpe").write_text("t o\n")
    gpt2 = run(folder, scratch, "gpt2", *small, "--vocab", "encoder.json", "--merges", "vocab.bpe")
    check_page(gpt2 / "report.html", {"loss": 3, "gradient norm": 1, **of_each_step}, ["What it writes"])


def check_png(path, width, height):
    rows = pixels_of(path.read_bytes(), path.name)
    check(len(rows) >= height and len(rows[0]) >= width, path.name, "is small:", len(rows[0]), "x", len(rows))
    check(len({pixel for row in rows for pixel in row}) > 20, path.name, "is blank")
    for row in rows[0], rows[-1], [row[0] for row in rows], [row[-1] for row in rows]:
        check(set(row) == {(255,)}, path.name, "draws up to its edge")


def main():
    folder = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        classes = 5
        gcn = run(folder, scratch, "gcn", "--nodes", "200", "--num_classes", str(classes), "--epochs", "12")
        picture = (gcn / "embedding.svg").read_text(encoding="utf-8")
        check_svg(picture, picture, "embedding.svg", 200)
        check("var(" not in picture, "embedding.svg uses CSS variables, which few viewers know")
        colours = colours_of(picture, "embedding.svg")
        check(colours is None or colours >= classes + 1, "embedding.svg shows", colours, "colours")
        of_each_step = {"learning rate": 1, "samples a second": 1, "memory (GiB)": 1}
        check_page(gcn / "report.html", {"loss": 1, "accuracy": 1, **of_each_step}, ["What it learned"])
        mnist = run(folder, scratch, "mnist", "--digits", "480", "--batch_size", "16", "--epochs", "2")
        sections = ["Test digits", "The worst mistakes", "What is taken for what"]
        check_digits(check_page(mnist / "report.html", {"loss": 2, "accuracy": 2, **of_each_step}, sections))
        sounds = run(folder, scratch, "spectrogram", "--max_iters", "8", "--sounds", "1")
        check_png(sounds / "sounds.png", 300, 700)
        check_page(sounds / "report.html", {"loss": 1, **of_each_step}, ["Sounds"])
        shapes = run(folder, scratch, "submanifold", "--max_iters", "8", "--shapes", "1", "--test_shapes", "3")
        check_png(shapes / "shapes.png", 300, 500)
        check_page(shapes / "report.html", {"loss": 1, **of_each_step}, ["Shapes"])
        resnet = run(folder, scratch, "resnet", "--image_size", "32", "--batch_size", "2", "--max_iters", "8")
        check_page(resnet / "report.html", {"loss": 1, **of_each_step}, [])
        check_transformers(folder, scratch, of_each_step)


main()

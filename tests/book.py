#!/usr/bin/env python3
"""book.py ROOT [SITE]: builds the book as `./rush docs` does, or takes the one in SITE, and checks it: every page of docs/ is in the
navigation, every page can be reached from the front page, every link and anchor leads somewhere, and nothing that a page
needs comes from a remote host. Where Chromium is installed it opens the chapters from the file system, at the widths of a
screen and of a phone, in light and dark: no error on the console, no scrolling sideways on the phone, text that stands out
from its background, and a search that finds."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from html import unescape
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(sys.argv[1]).resolve()
LEAST_CONTRAST = 4.5  # WCAG 2, level AA
SAMPLES = ["source/core/tensor.h.html", "source/core/dispatch/op.h.html", "source/core/index.html", "api/core/tensor.h.html",
           "api/core/ops/pointwise/binary.h.html", "api/nn/module.h.html", "api/optim/sgd.h.html"]


def fail(problems):
    if problems:
        sys.exit("\n".join(f"book: {problem}" for problem in problems[:40]) + f"\n{len(problems)} problems")


def build(site):
    python = ROOT / "build/book/bin/python"
    if not (ROOT / "build/book/requirements.txt").exists() or not shutil.which("doxygen"):
        if shutil.which("doxygen"):
            done = subprocess.run([sys.executable, ROOT / "tools/book/api.py", ROOT], capture_output=True, text=True)
            if done.returncode:
                fail((done.stdout + done.stderr).splitlines())
        print("skipped: no MkDocs or no Doxygen; ./rush docs sets them up")
        sys.exit()
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([python, "-m", "mkdocs", "build", "-f", ROOT / "tools/book/mkdocs.yml", "-d", site],
                          env=environment, capture_output=True, text=True)
    if done.returncode:
        fail([line for line in (done.stdout + done.stderr).splitlines() if line and not line.startswith("INFO")])


# ---- links

def navigation():
    return set(re.findall(r"^ +- ([\w/]+\.md)$", (ROOT / "tools/book/mkdocs.yml").read_text(), re.M))


def check_links(site):
    problems = [f"docs/{page} is not in the navigation" for page in
                sorted(each.relative_to(ROOT / "docs").as_posix() for each in (ROOT / "docs").rglob("*.md"))
                if page not in navigation()]
    pages = {file: file.read_text(encoding="utf-8") for file in site.rglob("*.html") if file.name != "404.html"}
    anchors = {file: set(map(unescape, re.findall(r'\s(?:id|name)="([^"]*)"', text))) for file, text in pages.items()}
    leads_to = {}
    for file, text in pages.items():
        name = file.relative_to(site)
        leads_to[file] = set()
        for tag, attribute, target in re.findall(r"<(\w+)\b[^>]*?\s(href|src)=\"?([^\s\">]+)", text):
            target = unescape(target)
            if re.match(r"(\w+:)?//", target):
                if tag != "a":
                    problems.append(f"{name} needs {target}")
                continue
            if re.match(r"data:|mailto:|javascript:", target):
                continue
            path, _, anchor = target.partition("#")
            goal = (file.parent / unquote(path)).resolve() if path else file
            if not goal.is_file():
                problems.append(f"{name}: {attribute} leads to {target}, which is not there")
            elif anchor and unquote(anchor) not in anchors.get(goal, ()) and not anchor.startswith("__"):
                problems.append(f"{name}: {goal.relative_to(site)} has no #{anchor}")
            elif tag == "a":
                leads_to[file].add(goal)
    for file in site.rglob("*.css"):
        problems += [f"{file.relative_to(site)} needs {remote}"
                     for remote in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')\s]+)", file.read_text())]
    reached, new = set(), {site / "index.html"}
    while new:
        reached |= new
        new = set().union(*(leads_to.get(each, set()) for each in new)) - reached
    problems += [f"no link leads to {file.relative_to(site)}" for file in sorted(pages.keys() - reached)]
    fail(problems)
    return len(pages)


# ---- Chromium, by the DevTools protocol over two pipes

class Browser:
    def __init__(self, program, folder):
        commands, self.write = os.pipe()
        read, answers = os.pipe()
        self.read = os.fdopen(read, "rb")
        arguments = [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/browser",
                     "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", *arguments],
                                        pass_fds=(commands, answers), stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.number, self.session, self.rest, self.events = 0, None, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log":
            self.call(f"{domain}.enable")
        # Or the first page's scheme would be kept for all.
        self.call("Page.addScriptToEvaluateOnNewDocument", source="if (location.protocol == 'file:') localStorage.clear()")

    def message(self):
        while b"\0" not in self.rest:
            more = self.read.read1(1 << 16)
            if not more:
                sys.exit("book: Chromium ended")
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"book: {method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, file, width, scheme):
        """Returns what the page complains of while it loads."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=file.as_uri())
        until = time.monotonic() + 60
        while self.evaluate("document.readyState + location.href") != "complete" + file.as_uri():
            if time.monotonic() > until:
                sys.exit(f"book: {file} does not load")
            time.sleep(0.02)
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
        return self.complaints()

    def complaints(self):
        said = []
        for event in self.events:
            what = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                said.append(what["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            if event["method"] == "Runtime.consoleAPICalled" and what["type"] in ("error", "assert"):
                said.append(json.dumps(what["args"])[:200])
            if event["method"] == "Log.entryAdded" and what["entry"]["level"] == "error":
                said.append(what["entry"]["text"])
        return said

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            sys.exit(f"book: {expression[:80]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def close(self):
        self.call("Browser.close")
        self.process.wait(timeout=30)


# The text with the least contrast to what lies behind it, with its contrast.
FAINTEST = """(() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const over = (top, below) => [0, 1, 2].map(i => top[3] * top[i] + (1 - top[3]) * below[i]).concat(1);
  const behind = element => {
    if (!element) return [255, 255, 255, 1];
    const colour = parse(getComputedStyle(element).backgroundColor);
    return colour[3] == 1 ? colour : over(colour, behind(element.parentElement));
  };
  const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                       return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  let faintest = [99, ""];
  const walk = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  for (let count = 0; walk.nextNode() && count < 3000; ++count) {
    const element = walk.currentNode.parentElement, style = getComputedStyle(element);
    const hidden = !element.getClientRects().length || style.opacity < 1 || element.closest(".headerlink, button, nav");
    if (hidden || !walk.currentNode.data.trim()) continue;
    const ground = behind(element), a = light(over(parse(style.color), ground)), b = light(ground);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < faintest[0]) faintest = [contrast, element.className + ": " + walk.currentNode.data.trim().slice(0, 60)];
  }
  return faintest;
})()"""

SEARCH = """(async () => {
  document.querySelector("#__search").click();
  const field = document.querySelector("[data-md-component=search-query]");
  field.focus();
  field.value = "broadcast";
  field.dispatchEvent(new Event("input", {bubbles: true}));
  field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
  for (let i = 0; i < 100; ++i) {
    const found = document.querySelectorAll(".md-search-result__item").length;
    if (found) return found;
    await new Promise(done => setTimeout(done, 100));
  }
  return 0;
})()"""


def check_in_browser(site, folder):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        print("Chromium is not installed: no page was looked at")
        return
    browser, problems = Browser(chromium, folder), []
    pages = sorted(page.removesuffix(".md") + ".html" for page in navigation()) + SAMPLES
    for page in pages:
        for width in 1280, 390:
            for scheme in "light", "dark":
                where = f"{page} at {width} pixels, {scheme}"
                problems += [f"{where}: {said}" for said in browser.open(site / page, width, scheme)]
                wide = browser.evaluate("document.documentElement.scrollWidth")
                if wide > width:
                    problems.append(f"{where} is {wide} pixels wide")
                contrast, text = browser.evaluate(FAINTEST)
                if contrast < LEAST_CONTRAST:
                    problems.append(f"{where}: a contrast of {contrast:.2f} in {text}")
    problems += browser.open(site / "index.html", 1280, "light")
    if not browser.evaluate(SEARCH):
        problems.append("the search finds nothing")
    problems += browser.complaints()
    browser.close()
    fail(problems)


with tempfile.TemporaryDirectory() as scratch:
    if len(sys.argv) > 2:
        built = Path(sys.argv[2]).resolve()
    else:
        built = Path(scratch).resolve() / "site"
        build(built)
    count = check_links(built)
    check_in_browser(built, scratch)
    print(f"{count} pages")

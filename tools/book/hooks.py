"""What MkDocs does not do by itself: README.md is the front page and CONTRIBUTING.md a chapter, every file of the source tree
has a page with its text, and the names of files, folders and notes in the chapters lead there."""
import re
from pathlib import Path

import api
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, InclusionLevel
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parents[2]
ASSETS = Path(__file__).with_name("assets")
TOP = ("CMakeLists.txt", "LICENSE", "rush", "rushlight.cpp", "rushlight.h")
PAGES_OF_THE_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md"}
TREE = ("core", "autograd", "backends", "nn", "optim", "examples", "tests", "benchmarks", "compat", "cmake", "tools", "docs/labs")
LANGUAGES = {".h": "cpp", ".cpp": "cpp", ".cu": "cuda", ".cuh": "cuda", ".inc": "cpp", ".py": "python", ".sh": "bash",
             ".cmake": "cmake", ".txt": "cmake"}
# Words of docs/glossary.md that mean nothing else: their first use in a chapter leads there.
TERMS = ("below autograd", "capturable", "composed step", "fallback", "functor", "front", "fragment", "room", "twiddle")
NOTE = re.compile(r"^\s*// Note \[([^\]]+)\]$", re.M)

log = get_plugin_logger("api")
sources = {}  # the name of a file or folder in the tree: its page
notes = {}    # the title of a note: (file, line)


def read(file):
    return file.read_text(encoding="utf-8", errors="replace")


def files_of_the_tree():
    yield from (ROOT / name for name in TOP)
    for folder in TREE:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.is_file() and file.suffix in LANGUAGES:
                yield file


def page_of_file(name, text):
    language = LANGUAGES.get(Path(name).suffix, "bash" if name == "rush" else "text")
    folder = str(Path(name).parent)
    above = f"In [{folder}]({'index.md' if folder in sources else ''})\n\n" if folder in sources else ""
    fence = "~" * 12
    settings = "---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n"
    return f"{settings}# {name}\n\n{above}{fence} {{.{language} linenums=1}}\n{text.rstrip()}\n{fence}\n"


def page_of_folder(title, name, inside, folders):
    rows = "".join(f"- [{each}]({each}{'/index.md' if f'{name}{each}' in folders else '.md'})\n" for each in sorted(inside))
    return f"---\nsearch:\n  exclude: true\n---\n# {title}\n\n{rows}"


def add_source_pages(files, config):
    sources.clear()
    sources.update(PAGES_OF_THE_ROOT)
    notes.clear()
    folders, texts = {}, {}
    for file in files_of_the_tree():
        name = file.relative_to(ROOT).as_posix()
        texts[name] = read(file)
        for above, below in zip(Path(name).parents, [Path(name), *Path(name).parents]):
            if above != Path("."):
                folders.setdefault(above.as_posix(), set()).add(below.name)
        if file.suffix in LANGUAGES:
            for found in NOTE.finditer(texts[name]):
                notes[found[1]] = (name, texts[name].count("\n", 0, found.start(1)) + 1)
    for name in folders:
        sources[name] = f"source/{name}/index.md"
    for name in texts:
        sources[name] = f"source/{name}.md"
    pages = {**{name: page_of_folder(f"{name}/", f"{name}/", inside, folders) for name, inside in folders.items()},
             **{name: page_of_file(name, text) for name, text in texts.items()}}
    for name, text in pages.items():
        files.append(File.generated(config, sources[name], content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    top = {*TOP, *(name for name in folders if "/" not in name)}
    files.append(File.generated(config, "source/index.md", content=page_of_folder("The source tree", "", top, folders)))


def on_files(files, config):
    for file in list(files):
        if not file.is_documentation_page():
            if Path(file.src_uri).suffix in LANGUAGES:
                files.remove(file)
    for name, page in PAGES_OF_THE_ROOT.items():
        files.append(File.generated(config, page, content=re.sub(r"\]\(docs/", "](", read(ROOT / name))))
    for asset in ASSETS.iterdir():
        files.append(File.generated(config, f"assets/{asset.name}", abs_src_path=str(asset)))
    add_source_pages(files, config)
    pages, missing = api.pages(ROOT)
    for each in missing:  # a warning ends the build
        log.warning("%s has no comment", each)
    for name, text in pages.items():
        inclusion = InclusionLevel.UNDEFINED if name == "index.md" else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, f"api/{name}", content=text, inclusion=inclusion))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links out of docs/ become links to pages of the source tree; MkDocs says which of them lead nowhere."""
    if page.file.src_uri.startswith(("source/", "api/")):
        return markdown
    depth = page.file.src_uri.count("/")

    def title(found):
        """A chapter's title in place of its file's name."""
        file = (ROOT / "docs" / page.file.src_uri).parent / found[1]
        return f"[“{re.match('# (.*)', read(file))[1]}”]({found[1]}" if file.is_file() else found[0]

    def lead(found):
        target = found[1] if page.file.src_uri in PAGES_OF_THE_ROOT.values() else found[1].removeprefix("../" * (depth + 1))
        return f"]({'../' * depth}{sources[target]})" if target in sources else found[0]

    markdown = re.sub(r"\[(?:docs/)?[\w/.]+\.md\]\(([\w/.]+\.md)", title, markdown)
    for name, chapter in PAGES_OF_THE_ROOT.items():
        markdown = markdown.replace(f"]({'../' * (depth + 1)}{name}", f"]({'../' * depth}{chapter}")
    markdown = markdown.replace("<details>", '<details markdown="1">')  # GitHub reads Markdown there unasked
    return re.sub(r"\]\(((?:\.\./)*[\w./-]+)\)", lead, markdown)


def link(page, name, line=None, files=None):
    url = get_relative_url(files.get_file_from_path(sources[name]).url, page.url)
    return url if line is None else f"{url}#L-0-{line}"


def link_names(html, page, files):
    """The names of files and folders that stand in <code>, and the titles of notes."""
    def file_link(found):
        name = found[1].rstrip("/")
        if name not in sources or not re.search(r"[/.]", found[1]):
            return found[0]
        return f'<a href="{link(page, name, files=files)}">{found[0]}</a>'

    def note_link(found):
        title = " ".join(found[1].split())
        if title not in notes:
            return found[0]
        return f'<a href="{link(page, *notes[title], files=files)}">{found[0]}</a>'

    html = re.sub(r"<code>([\w./-]+)</code>(?!</a>)", file_link, html)
    return re.sub(r"\[([^\]<>]+)\](?!</a>)", note_link, html)


def link_terms(parts, page, files):
    """The first use of each term outside of links; `parts` has what may be changed at even places."""
    url = get_relative_url(files.get_file_from_path("glossary.md").url, page.url)
    for term in TERMS:
        for i in range(0, len(parts), 2):
            use = rf"(?<![\w`-])(?<!in )({term}s?)(?![\w-])(?![^<>]*>)(?! door)(?![^<]*</(?:a|code|th)>)"
            parts[i], count = re.subn(use, rf'<a href="{url}#{term.replace(" ", "-")}">\1</a>', parts[i], count=1)
            if count:
                break


def tell_diagrams(html):
    """Below each diagram its description, which says in words all that it shows."""
    def told(found):
        words = re.search("<desc.*?>(.*?)</desc>", read(ROOT / "docs/diagrams" / found[1]))[1]
        return f"{found[0]}<details><summary>In words</summary><p>{words}</p></details>"
    return re.sub(r'<p><img [^>]*src="[\w./]*diagrams/(\w+\.svg)"[^>]*></p>', told, html)


def on_page_content(html, page, config, files):
    if page.file.src_uri.startswith("source/"):
        def include_link(found):
            name = found[1]
            return f'<a href="{link(page, name, files=files)}">{found[0]}</a>' if name in sources else found[0]
        return re.sub(r'<span class="cpf">&quot;([\w./-]+)&quot;</span>', include_link, html)
    # Not in blocks of code and headings.
    parts = re.split(r"(<pre.*?</pre>|<h\d.*?</h\d>)", tell_diagrams(html), flags=re.S)
    parts = [part if i % 2 else link_names(part, page, files) for i, part in enumerate(parts)]
    if page.file.src_uri == "glossary.md":
        return re.sub(r"<tr>\s*<td>([^<]+)</td>", anchor_terms, "".join(parts))
    if not page.file.src_uri.startswith("api/"):
        link_terms(parts, page, files)
    return "".join(parts)


def anchor_terms(row):
    anchors = "".join(f'<a id="{term.replace(" ", "-")}"></a>' for term in row[1].split(", ") if term in TERMS)
    return row[0].replace("<td>", f"<td>{anchors}", 1)

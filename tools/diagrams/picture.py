"""An SVG of boxes and text, drawn for a page's column: readable in light and dark, and on a phone."""
from xml.sax.saxutils import escape

WIDTH, MARGIN = 400, 12  # a phone shows it unscaled, nearly
STYLE = """
svg{--paper:#fff;--ink:#211c18;--faint:#5a524b;--line:#857b72;--blue:#d5e4fb;--orange:#fbdfc4;--green:#d3ecd7;--grey:#efebe7;
font:13px system-ui,sans-serif}
@media(prefers-color-scheme:dark){svg{--paper:#1e2129;--ink:#ece8e4;--faint:#b9b1a9;--line:#8d8680;--blue:#2b4370;
--orange:#6b4120;--green:#24532f;--grey:#30343e}}
text{fill:var(--ink)}.faint{fill:var(--faint)}.code{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;
font-size:12px}.small{font-size:11px}.bold{font-weight:600}.middle{text-anchor:middle}
rect,path,polygon{stroke:var(--line)}.paper{fill:var(--paper);stroke:none}.blue{fill:var(--blue)}
.orange{fill:var(--orange)}.green{fill:var(--green)}.grey{fill:var(--grey)}.empty,path{fill:none}.dashed{stroke-dasharray:3 2}
.tip{fill:var(--line)}.node polygon{fill:var(--grey)}.node path{fill:var(--blue)}.node [fill=palegreen]{fill:var(--green)}
.node [fill=salmon]{fill:var(--orange)}.edge polygon{fill:var(--line)}
"""


class Picture:
    """`says` is the picture in words, for who does not see it. `y` is where the next row goes."""

    def __init__(self, title, says):
        self.title, self.says, self.elements, self.y = title, says, [], MARGIN
        self.width = WIDTH

    def text(self, x, y, text, *classes):
        look = f' class="{" ".join(classes)}"' if classes else ""
        self.elements.append(f'<text x="{x:g}" y="{y:g}"{look}>{escape(str(text))}</text>')

    def line_of_text(self, text, *classes, indent=0, height=18):
        self.text(MARGIN + indent, self.y + 13, text, *classes)
        self.y += height

    def box(self, x, y, width, height, *classes, label=""):
        self.elements.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" '
                             f'class="{" ".join(classes)}"/>')
        if label != "":
            self.text(x + width / 2, y + height / 2 + 4, label, "code", "small", "middle")

    def path(self, points, *classes):
        self.elements.append(f'<path d="{points}" class="{" ".join(classes)}"/>')

    def arrow_head(self, x, y, to_right=False):
        """It points to the left, or to the right."""
        self.elements.append(f'<path d="M{x:g} {y:g}l{-7 if to_right else 7} -3.5v7z" class="tip"/>')

    def svg(self):
        width, height = self.width, self.y + MARGIN
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
                f'role="img" aria-labelledby="title says">\n<title id="title">{escape(self.title)}</title>\n'
                f'<desc id="says">{escape(self.says)}</desc>\n<style>{STYLE}</style>\n'
                f'<rect class="paper" width="{width:g}" height="{height:g}" rx="6"/>\n' + "\n".join(self.elements) + "\n</svg>\n")

"""The report: each table and figure with the paper's numbers beside those obtained here, as one HTML page and as Markdown."""

import html as entities
from pathlib import Path

from papers import plots, results
from papers.sheets import shown, significant

TITLE = "The experiments of three papers, repeated"
STYLE = Path(__file__).with_name("style.css")
# What the words and signs of the tables mean.
LEGEND = ("“Not at hand” is what the text at hand lacks or nobody measured. ± is a standard deviation, ± with (90 %) half of that interval of the mean, "
          "(a–b) the smallest and largest of the runs. Plots: circles are the paper's, triangles were obtained here.")
CLAIMS = "What the text says, and what its tables give"
CLAIM = ["Section", "Claim", "Stated", "Computed", "Follows", "From"]
FOLLOWS = {"yes": "yes", "near": "nearly", "no": "no"}
STATES = {"description": "nothing to measure"}
SOURCES = {"table": "numbers as printed", "text": "as far as the text says", "derived": "computed from printed numbers"}


class Item:
    """An entry of a paper and its result."""

    def __init__(self, entry, result):
        self.entry, self.id, self.result = entry, entry.id, result
        self.state = STATES.get(result.outcome, result.outcome) if result else "not run"
        self.sheet = result.sheet if result else None
        self.caption = "Here (a quick run)" if result and result.said.get("quick") else "Here"
        self.measured = f"Measured: {entry.measures}. {capital(self.place())}."
        self.notes = [*(result.notes if result else []), entry.notes, self.time()]
        self.remarks = [f"Doubtful: {what}." for what in entry.doubtful] + [f"Not at hand: {entry.missing}."] * bool(entry.missing)
        self.remarks += [f"Does not follow: {what}" for what in entry.slips]

    def place(self):
        """Page, section and origin of the paper's numbers."""
        entry = self.entry
        places = [f"{word} {value}" for word, value in [("page", entry.page), ("section", entry.section)] if value]
        return ", ".join([*places, SOURCES[entry.source]])

    def reason(self):
        """Why there are no numbers."""
        if not self.result or not self.result.reason:
            return None
        lacks = "it lacks " if self.state == "refused" else ""
        return f"{capital(self.state)}: {lacks}{self.result.reason}"

    def time(self):
        """When it began, and how long it took, if something was done."""
        said = self.result.said if self.result else {}
        if "began" not in said:
            return ""
        began = said["began"].split(".")[0].removesuffix("Z").replace("T", " ")
        return f"Began {began} UTC, took {significant(max(said['seconds'], 1e-3))} s."

    def plot(self, is_alone=False):
        return plots.svg(self.id, self.entry.sheet, self.sheet, is_alone)


class Report:
    def __init__(self, papers, folder):
        self.papers = [(paper, [Item(entry, results.found(papers, entry, folder)) for entry in paper.entries]) for paper in papers]
        self.items = [item for _, items in self.papers for item in items]
        lines = [environment_line(item.result.said["environment"]) for item in self.items if item.result and "environment" in item.result.said]
        self.environments = list(dict.fromkeys(lines))

    def files(self):
        """Contents by name: the pages and the plots."""
        found = {f"{item.id}.svg": item.plot(is_alone=True) for item in self.items}
        return {"index.html": html(self), "index.md": markdown(self), **{name: plot for name, plot in found.items() if plot}}


def environment_line(said):
    """A line on a machine."""
    others = "; ".join(f"{name}: {version}" for name, version in said["peers"].items()) or "none"
    load = f"; load average {said['load_average']} before" if said.get("load_average") else ""
    return (f"andrew {said['version']}, Linux {said['kernel']}, {said['cores']} × {said['processor']}, {said['memory_bytes'] / (1 << 30):.1f} GiB of "
            f"memory; other programs: {others}{load}")


def columns(sheet):
    """The columns of a sheet as a reader sees them: name, whether cells are numbers, which stand to the right, and the cells, each a value with its
    spread."""
    for at, name in enumerate(sheet.columns):
        if not sheet.is_spread(name):
            words, unit = name.replace("_", " "), sheet.units[at]
            title = words if unit in ["", words] else f"{words}, {unit}"
            yield title, any(isinstance(row[at], float) for row in sheet.rows), [cell(sheet, name, row) for row in sheet.rows]


def cell(sheet, name, row):
    value, deviation, half, low, high = [sheet.cell(row, f"{name}{end}") for end in ["", "_sd", "_ci90", "_min", "_max"]]
    if isinstance(deviation, float):
        return f"{shown(value)} ± {shown(deviation)}"
    if isinstance(half, float):
        return f"{shown(value)} ± {shown(half)} (90 %)"
    return f"{shown(value)} ({shown(low)}–{shown(high)})" if isinstance(low, float) and isinstance(high, float) else shown(value)


def claim_cells(claim):
    return [claim["section"], claim["says"], significant(claim["stated"]), significant(claim["computed"]), FOLLOWS[claim["follows"]], claim["from"]]


def escaped(text):
    """Text with the characters escaped that HTML gives a meaning."""
    return entities.escape(text, quote=False).replace('"', "&quot;")


def capital(text):
    return text[:1].upper() + text[1:]


def markdown(report):
    parts = [f"# {TITLE}\n", *(f"{line}\n" for line in report.environments), f"{LEGEND}\n"]
    for paper, items in report.papers:
        parts += [f"- {paper.citation}", *(f"  - [{item.entry.title}](#{item.id}): {item.state}" for item in items)]
    for paper, items in report.papers:
        parts += [f"\n## {paper.citation}", *(line for item in items for line in markdown_section(item)), f"\n### {CLAIMS}\n"]
        parts += markdown_table(CLAIM, [at in [2, 3] for at in range(6)], map(claim_cells, paper.claims))
    return "\n".join(parts) + "\n"


def markdown_section(item):
    yield from [f'\n<a id="{item.id}"></a>', f"\n### {item.entry.title} (`{item.id}`): {item.state}\n", f"{item.measured}\n"]
    yield from markdown_sheet("Paper", item.entry.sheet)
    if item.sheet:
        yield from markdown_sheet(item.caption, item.sheet)
    # The notes of a run stand before the plot, those of the paper behind it.
    ran, own = (item.notes[:-2], item.notes[-2:])
    yield from (f"{note}\n" for note in ran)
    if item.plot():
        yield f"![Plot of {item.id}]({item.id}.svg)\n"
    if item.reason():
        yield f"{item.reason()}\n"
    yield from (f"{note}\n" for note in own if note)
    yield from (f"- {remark}" for remark in item.remarks)


def markdown_sheet(caption, sheet):
    names, are_numbers, cells = zip(*columns(sheet))
    yield f"{caption}:\n"
    yield from markdown_table(names, are_numbers, zip(*cells))
    yield ""


def markdown_table(names, are_numbers, rows):
    line = lambda cells: "".join("| {} ".format(one.replace("|", "\\|").replace("\n", " ")) for one in cells) + "|"
    return [line(names), line(["---:" if is_number else "---" for is_number in are_numbers]), *map(line, rows)]


def html(report):
    parts = ['<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">', '<meta name="viewport" content="width=device-width, initial-scale=1">',
             f"<title>{TITLE}</title>\n<style>{STYLE.read_text()}</style></head><body>\n<header><h1>{TITLE}</h1>",
             *(paragraph("meta", line) for line in [*report.environments, LEGEND]), '</header>\n<nav aria-label="Tables and figures">']
    for paper, items in report.papers:
        parts += [f'<h2><a href="#{paper.id}">{paper.id}</a></h2>\n<ul class="contents">']
        parts += [f'<li><a href="#{item.id}">{escaped(item.entry.title)}</a> {state(item)}</li>' for item in items] + ["</ul>"]
    parts.append("</nav>\n<main>")
    for paper, items in report.papers:
        parts += [f'<h2 id="{paper.id}">{escaped(paper.citation)}</h2>', *(line for item in items for line in html_section(item))]
        parts += [f"<section><h3>{CLAIMS}</h3>", *html_claims(paper), "</section>"]
    return "\n".join(parts) + "\n</main></body></html>\n"


def html_section(item):
    yield f'<section id="{item.id}"><h3>{escaped(item.entry.title)} <code>{item.id}</code> {state(item)}</h3>'
    yield from [paragraph("", item.measured), '<div class="tables">', *html_sheet(item.id, "Paper", item.entry.sheet)]
    if item.sheet:
        yield from html_sheet(item.id, item.caption, item.sheet)
    yield "</div>"
    if plot := item.plot():
        named = plot.replace("<svg ", f'<svg role="img" aria-label="Plot of {item.id}" ', 1)
        yield f'<figure class="plot">{scroll_box(item.id, "plot")}{named}</div></figure>'
    if item.reason():
        yield paragraph("reason", item.reason())
    yield from (paragraph("note", note) for note in item.notes if note)
    yield from (paragraph("remark", remark) for remark in item.remarks)
    yield "</section>"


def state(item):
    return f'<span class="state {item.state.replace(" ", "-")}">{item.state}</span>'


def scroll_box(name, what):
    """Beginning of a box that scrolls if the window is narrower than its content, by keyboard too."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{name}: {escaped(what)}">'


def html_sheet(name, caption, sheet):
    names, are_numbers, cells = zip(*columns(sheet))
    # A row is named by its first cell.
    yield from html_table(scroll_box(name, caption), f"<caption>{escaped(caption)}</caption>", names, are_numbers, zip(*cells), named_by=0)


def html_claims(paper):
    yield from html_table(scroll_box(paper.id, "claims"), "", CLAIM, [at in [2, 3] for at in range(6)], map(claim_cells, paper.claims), named_by=1)


def html_table(box, caption, names, are_numbers, rows, named_by):
    classes = [' class="n"' if is_number else "" for is_number in are_numbers]
    heads = "".join(f'<th scope="col"{one}>{escaped(name)}</th>' for one, name in zip(classes, names))
    yield f"{box}<table>{caption}<thead><tr>{heads}</tr></thead><tbody>"
    for row in rows:
        cells = ["<i>not at hand</i>" if one == "not at hand" else escaped(one) for one in row]
        yield "<tr>" + "".join(f'<th scope="row"{kind}>{one}</th>' if at == named_by else f"<td{kind}>{one}</td>"
                               for at, (kind, one) in enumerate(zip(classes, cells))) + "</tr>"
    yield "</tbody></table></div>"


def paragraph(kind, text):
    return f'<p class="{kind}">{escaped(text)}</p>' if kind else f"<p>{escaped(text)}</p>"

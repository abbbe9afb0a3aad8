"""Hooks of mkdocs for the site: anchors as on GitHub, notebooks as pages, and a check of all links."""

import json
import logging
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.redblue")  # a warning fails a build with --strict
made = tempfile.TemporaryDirectory()  # pages made from notebooks


def slug(heading, separator):
    """The anchor that GitHub gives a heading, so that links work in both places."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slug
    return config


def shown(output):
    """One output of a cell as Markdown, from its richest form."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    forms = {form: "".join(content) for form, content in data.items()}
    if "image/svg+xml" in forms:
        return re.sub(r"(?s)^.*?(?=<svg)", "", forms["image/svg+xml"]).replace("\n\n", "\n")
    if "image/png" in forms:
        return f'<img alt="figure" src="data:image/png;base64,{forms["image/png"].strip()}">'
    if "text/html" in forms:
        return re.sub(r"(?s)<style.*?</style>|\n\s*(?=\n)", "", forms["text/html"])
    return f"```text\n{forms['text/plain'].rstrip()}\n```"


def page_of(notebook):
    parts = []
    for cell in json.loads(notebook.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [shown(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts) + "\n"


def on_files(files, config):
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        page = Path(made.name) / notebook.src_uri.replace(".ipynb", ".md")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(page_of(Path(notebook.abs_src_path)))
        files.append(File(page.relative_to(made.name).as_posix(), made.name, config["site_dir"],
                          config["use_directory_urls"]))
    return files


def on_page_markdown(markdown, **_):
    return re.sub(r"(\]\([^)\s:]*)\.ipynb\)", r"\1.md)", markdown)


class Links(HTMLParser):
    """The links of a page, and the anchors that it has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)


def on_post_build(config):
    site = Path(config["site_dir"])
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists() or (parts.fragment and target in pages
                                       and unquote(parts.fragment) not in pages[target].anchors):
                log.warning("%s: dead link %s", path.relative_to(site), link)

"""Tests that the texts about the package are true: examples, the page, type stubs, notebooks, and the built package."""

import ast
import doctest
import email
import importlib.util
import inspect
import json
import os
import pathlib
import pydoc
import re
import subprocess
import sys
import tarfile
import types

import numpy
import pytest

import redblue
from conftest import copy_of_sources

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text()
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def functions(of=redblue, names=redblue.__all__):
    """Yields the functions of all subcommands, including nested ones, with their dotted names."""
    for name in names:
        member = getattr(of, name)
        if isinstance(member, types.ModuleType):
            for path, function in functions(member, member.__all__):
                yield f"{name}.{path}", function
        elif inspect.isfunction(member):
            yield name, member


def test_examples():
    """The examples in docstrings print the stated output."""
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    tests = [test for test in finder.find(redblue) if test.examples]
    for name, function in functions():
        if "." not in name:
            tests += [test for test in finder.find(function, name, module=redblue) if test.examples]
    names = {test.name for test in tests}
    assert {"redblue", "count", "run", "plan", "redblue.Mask", "redblue.FastMemoryTooSmall"} <= names
    for test in tests:
        test.globs = {"redblue": redblue, "numpy": __import__("numpy")}
        runner.run(test)
    assert runner.summarize().failed == 0


def test_help_has_every_option():
    """help() of a function names each of its keywords, which are the options of the command's --help."""
    for name, function in functions():
        if name in ("kernels", "attention", "gradients", "compare", "cost", "blocks"):  # no subcommands
            continue
        helped = redblue._redblue.call([*name.rstrip("_").split("."), "--help"], {}, {}, False, None, None).data
        flags = set(re.findall(r"^  (?:-\w,)?(--[A-Za-z][A-Za-z0-9-]*)", helped, re.M)) - {"--help", "--version"}
        keywords = [each.name for each in inspect.signature(function).parameters.values()
                    if each.kind is each.KEYWORD_ONLY and each.name != "progress"]
        assert {"--" + keyword.rstrip("_").replace("_", "-") for keyword in keywords} == flags, name
        assert all(re.search(rf"^{keyword}( \(|:)", function.__doc__, re.M) for keyword in keywords), name


def test_names():
    """dir() shows the public names, and help() of a group shows its functions."""
    assert {name for name in dir(redblue) if not name.startswith("__")} == set(redblue.__all__)
    shown = pydoc.plain(pydoc.render_doc(redblue.pebble))
    assert "solve(problem, *, " in shown and "find the fewest words that win a game" in shown


def test_kernels_as_a_table():
    """The list of kernels is shown as the command's table, and has the rows of its CSV."""
    kernels = redblue.kernels()
    assert repr(kernels) == repr(redblue.list_()) and repr(kernels).startswith("kernel ")
    assert list(kernels.to_pandas()["name"]) == [kernel.name for kernel in kernels]


def test_stubs_are_those_of_the_module():
    """__init__.pyi has exactly the public names, the members of classes and the parameters of functions."""
    package = pathlib.Path(redblue.__file__).parent
    assert (package / "py.typed").exists()
    tree = ast.parse((package / "__init__.pyi").read_text())

    def declared(body, of):
        found = {}
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found[of + node.name] = node.args
            elif isinstance(node, ast.ClassDef):
                found[of + node.name] = None
                found |= declared(node.body, of + node.name + ".")
            elif isinstance(node, ast.AnnAssign):
                found[of + node.target.id] = None
        return found

    stubs = declared(tree.body, "")
    documents = {node.name for node in tree.body if isinstance(node, ast.ClassDef)
                 and {base.id for base in node.bases if isinstance(base, ast.Name)} & {"Record", "Result"}}
    documents -= set(redblue.__all__)
    private = {name for name in stubs if name[0] == "_" and name != "__version__"}
    assert {name for name in stubs if "." not in name} - documents - private == {*redblue.__all__, "__version__"}
    for name, function in functions():
        args, kinds = stubs[name], inspect.Parameter
        parameters = inspect.signature(function).parameters.values()

        def of_kind(kind):
            return [each.name for each in parameters if each.kind is kind]

        assert [arg.arg for arg in args.args] == of_kind(kinds.POSITIONAL_OR_KEYWORD), name
        assert [arg.arg for arg in args.kwonlyargs] == of_kind(kinds.KEYWORD_ONLY), name
        assert [arg.arg for arg in (args.vararg,) if arg] == of_kind(kinds.VAR_POSITIONAL), name
        assert [arg.arg for arg in (args.kwarg,) if arg] == of_kind(kinds.VAR_KEYWORD), name
        assert [kinds.empty if default is None else ast.literal_eval(default) for default in args.kw_defaults] == [
            each.default for each in parameters if each.kind is kinds.KEYWORD_ONLY and name != "kernels"], name
    for name, args in stubs.items():
        if args is not None and name[0].isupper():
            owner, method = name.split(".")
            member = inspect.getattr_static(getattr(redblue, owner), method)
            own = inspect.signature(member.fget if isinstance(member, property) else member)
            its = [*args.args, *([args.vararg] if args.vararg else []), *args.kwonlyargs, *([args.kwarg] if args.kwarg else [])]
            assert [arg.arg for arg in its] == list(own.parameters), name
    for name in ("Comparison", "Cost", "Machine", "Mask", "Record", "Result"):
        public = {member for member in vars(getattr(redblue, name)) if not member.startswith("_")}
        assert public <= {stub.split(".")[1] for stub in stubs if stub.startswith(name + ".")}


def test_types_of_results():
    """The members of results have the types that the stubs say, down to the last, and no function returns Any."""
    tree = ast.parse((pathlib.Path(redblue.__file__).parent / "__init__.pyi").read_text())
    classes = {node.name: {each.target.id: each.annotation for each in node.body if isinstance(each, ast.AnnAssign)}
               for node in tree.body if isinstance(node, ast.ClassDef)}
    simple = {"int": int, "float": (int, float), "str": str, "bool": bool}
    checked = []

    def is_of(value, type_):
        if isinstance(type_, ast.BinOp):
            return is_of(value, type_.left) or is_of(value, type_.right)
        if isinstance(type_, ast.Constant):
            return value is None
        if isinstance(type_, ast.Subscript):
            if type_.value.id == "list":
                return isinstance(value, list) and all(is_of(item, type_.slice) for item in value)
            return isinstance(value, dict) and all(is_of(item, type_.slice.elts[1]) for item in value.values())
        if type_.id in simple:
            return isinstance(value, simple[type_.id])
        members = classes[type_.id]
        checked.extend(set(value or ()) & set(members))
        return isinstance(value, dict) and all(name not in members or is_of(item, members[name])
                                               for name, item in value.items())

    results = {"RunResult": [redblue.count("gradients/auto", n=64, d=8, M="4K", mask="causal", heads=2),
                             redblue.run("attention/rows", n=20, d=4, M="1K", verify=True)],
               "PlanResult": [redblue.plan(problem="backward", n=64, d=8, M="1K")],
               "BoundsResult": [redblue.bounds(problem="attention", n=64, d=8, M="1K")],
               "CurveResult": [redblue.curve(problem="attention", n=64, d=8)], "InfoResult": [redblue.info()],
               "ListResult": [redblue.list_()]}
    for name, each in results.items():
        for result in each:
            document = result.to_dict()
            assert is_of(document, ast.Name(name)), name
            assert set(document) - {"as"} <= set(classes[name])
    assert len(checked) > 300
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in redblue.__all__:
            assert not isinstance(node.returns, ast.Name) or node.returns.id != "Any", node.name


def test_ten_lines_of_the_page(tmp_path):
    """The first example of the page prints exactly the output below it, and draws a picture."""
    code = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.S)
    assert len([line for line in code[1].splitlines() if line]) == 10
    ended = subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True,
                           env={**os.environ, "MPLBACKEND": "Agg"})
    assert (ended.returncode, ended.stdout) == (0, code[2]), ended.stderr
    assert "<svg" in (tmp_path / "words.svg").read_text()


def test_page():
    """Runs the other examples of the page, one after the other."""
    text = "\n".join(re.findall(r"```python\n(>>>.*?)```", PAGE, re.S))
    test = doctest.DocTestParser().get_doctest(text, {}, "docs/python.md", None, 0)
    assert len(test.examples) > 8
    assert doctest.DocTestRunner().run(test).failed == 0


def outputs(notebook):
    """Returns the outputs of each cell: texts as they are, and of a picture only that there is one."""
    def shown(output):
        data = output.get("data", {"text/plain": output.get("text")})
        return {form: True if form.startswith("image/") or "image/png" in data else "".join(content)
                for form, content in data.items()}

    cells = json.loads(notebook.read_text())["cells"]
    return [[shown(output) for output in cell["outputs"]] for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=[notebook.stem for notebook in NOTEBOOKS])
def test_notebook(notebook, tmp_path):
    """The notebook runs from the first cell to the last, and prints the outputs that it is stored with.

    All its texts are exact: counts, plans and exit codes, no times or facts about a machine.
    """
    search = os.path.dirname(os.environ["REDBLUE_COMMAND"]) + os.pathsep + os.environ["PATH"]
    (tmp_path / "kernels" / "here").mkdir(parents=True)
    # The kernel is this interpreter, not one that is installed for the user.
    (tmp_path / "kernels" / "here" / "kernel.json").write_text(
        '{"argv": ["%s", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "language": "python",'
        ' "display_name": "here"}' % sys.executable)
    ended = subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute",
                            "--ExecutePreprocessor.kernel_name=here", "--ExecutePreprocessor.timeout=300",
                            "--output-dir", tmp_path, notebook], capture_output=True, text=True,
                           env={**os.environ, "PATH": search, "JUPYTER_PATH": str(tmp_path), "MPLBACKEND": "module://matplotlib_inline.backend_inline",
                                "IPYTHONDIR": str(tmp_path / "ipython"), "JUPYTER_RUNTIME_DIR": str(tmp_path)})
    assert ended.returncode == 0, ended.stderr
    assert outputs(tmp_path / notebook.name) == outputs(notebook)


def test_notebooks_are_there():
    """The page links each notebook, and each is stored with its outputs, so that it can be read as it is."""
    assert len(NOTEBOOKS) == 3
    for notebook in NOTEBOOKS:
        assert f"(notebooks/{notebook.name})" in PAGE
        assert sum(map(len, outputs(notebook))) >= 3


def test_no_member_of_a_document_is_hidden(tmp_path, monkeypatch):
    """Members of the JSON are attributes, so the class must not use their names."""
    monkeypatch.chdir(tmp_path)
    results = [redblue.count("forward/small", n=4, d=2, M=24), redblue.plan(problem="backward", n=4, d=2, M=24),
               redblue.bounds(problem="backward", n=4, d=2, M=24), redblue.pebble.run("forward/small", n=4, d=2, M=24),
               redblue.run("forward/small", n=4, d=2, M=24, verify=True), redblue.curve(problem="backward", n=9, d=2)]
    for result in results:
        for name, value in result.to_dict().items():
            assert name not in vars(result)
            assert not hasattr(redblue.Result, name), name


def test_texts_hold_any_byte_but_nul():
    """File names that are not UTF-8 reach the command. A NUL would cut a text, so it is refused."""
    with pytest.raises(redblue.Error, match="No such file"):
        redblue.run("attention/auto", Q=pathlib.Path(os.fsdecode(b"no\xff.npy")), K="k.npy", V="v.npy", M=99)
    for call in (lambda: redblue.count("backward/small\0", n=8, d=8, M=99),
                 lambda: redblue.count("backward/small", n="8\0", d=8, M=99),
                 lambda: redblue.Mask("causal\0").pairs(3)):
        with pytest.raises(redblue.UsageError, match="NUL"):
            call()


def test_words_that_may_be_several():
    """An argument that the command takes several times is variadic in Python."""
    parts = inspect.signature(redblue.merge).parameters["parts"]
    assert parts.kind is inspect.Parameter.VAR_POSITIONAL


def test_types_of_an_example(tmp_path):
    """mypy --strict takes the example, and finds each call with a wrong type."""
    wrong = ["redblue.Machine(8).read(3)", "redblue.Machine(8).new('s', 1, kind='sum')", "redblue.blocks('8', 2)",
             "redblue.count('a', n=1).total.io.reads", "redblue.Mask(3)", "redblue.attention(None, 3)"]
    (tmp_path / "example.py").write_text((ROOT / "tests" / "python" / "typed_example.py").read_text())
    (tmp_path / "wrong.py").write_text("import redblue\n" + "\n".join(wrong) + "\n")
    ended = subprocess.run([sys.executable, "-m", "mypy", "--strict", "example.py", "wrong.py"], cwd=tmp_path,
                           capture_output=True, text=True,
                           env={**os.environ, "MYPYPATH": str(pathlib.Path(redblue.__file__).parents[1])})
    found = re.findall(r"^(\w+\.py):(\d+): error", ended.stdout, re.M)
    assert set(found) == {("wrong.py", str(2 + k)) for k in range(len(wrong))}, ended.stdout + ended.stderr


def test_example_of_types_runs():
    """The example computes what its types say."""
    example = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location(
        "typed_example", ROOT / "tests" / "python" / "typed_example.py"))
    spec.loader.exec_module(example)
    A = numpy.arange(20, dtype=numpy.float32).reshape(4, 5)
    B = numpy.empty((5, 4), numpy.float32)
    assert example.transpose(A, B, 3).total.io == 40 and (B == A.T).all()
    assert example.least("backward/small") == 5 and "phase" in example.text()
    assert example.words(1024) > 0 and example.intensity() > 0 and "/" in example.best("causal")
    assert [each.dtype for each in example.attend(*numpy.ones((3, 8, 4), numpy.float32))] == [numpy.float32] * 2


def test_the_module_is_the_command(tmp_path):
    """`python -m redblue` has the output, the messages and the exit codes of the command."""
    def both(*words):
        return [subprocess.run([*program, *words], cwd=tmp_path, capture_output=True)
                for program in ((os.environ["REDBLUE_COMMAND"],), (sys.executable, "-m", "redblue"))]

    for words in (["count", "backward/small", "--n", "64", "--d", "8", "--M", "512"], ["list", "--format", "json"],
                  ["count", "backward/small", "--n", "64KB"], ["--help"], [],
                  ["run", "forward/small", "--n", "8", "--d", "2", "--M", "24", "--seed", "3", "--out", "O=-"]):
        command, module = both(*words)
        assert (module.returncode, module.stdout) == (command.returncode, command.stdout), words
        assert module.stderr == command.stderr or words[:1] == ["run"], words  # a run says its seconds


def test_html():
    """Notebooks show bars of phases, pictures of masks and texts of nests, with all text escaped."""
    counted = redblue.count("backward/small", n=64, d=8, M=512)
    shown = counted._repr_html_()
    rows = re.findall(r"<tr><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td>", shown)
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (phase.path, f"{phase.reads:,}", f"{phase.writes:,}") for phase in counted.phases] + [
        ("total", f"{counted.total.reads:,}", f"{counted.total.writes:,}")]
    most = max(phase.reads + phase.writes for phase in counted.phases)
    widths = [float(width) for width in re.findall(r"width:([0-9.]+)px", shown)]
    assert widths == [round(120 * words / most, 1) for phase in counted.phases for words in (phase.reads, phase.writes)]
    assert redblue.plan(problem="attention", n=64, d=8, M=512)._repr_html_() is None  # its text is shown
    picture = redblue.Mask("causal & window:3,0")._repr_html_()
    drawn = numpy.zeros((48, 48), bool)
    for x, y, width in re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)"', picture):
        drawn[int(y), int(x):int(x) + int(width)] = True
    assert (drawn == redblue.Mask("causal & window:3,0").pairs(48)).all() and "causal &amp; window:3,0" in picture
    assert redblue.Mask("documents:none.npy")._repr_html_() == redblue.html.text("Mask('documents:none.npy')")
    nest = redblue.Nest("kernel a\nmatrix A[n,d] -> B[n,d]\nwhen n < d\n  read A[n,d]\notherwise\n  read A[n,d]\n"
                        "new B[n,d]\nwrite B[n,d]")
    assert "when n &lt; d" in nest._repr_html_()
    assert "total" in counted._ipython_key_completions_() and "total" in dir(counted)


def test_source_distribution(tmp_path):
    """It has all that a build needs, its licence and its readme, and says so in its metadata; it makes itself again."""
    def sdist(folder, target, form="tar"):  # a form without compression is quicker
        subprocess.run([sys.executable, "setup.py", "-q", "sdist", "--formats", form, "--dist-dir", target], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL)
        archive = next(target.glob("*.tar*"))
        with tarfile.open(archive) as opened:
            return {name.partition("/")[2] for name in opened.getnames()}, archive

    tree = copy_of_sources(tmp_path / "tree")
    names, archive = sdist(tree / "tools" / "python", tmp_path / "first", "gztar")
    subprocess.run(["tar", "-xf", archive, "-C", archive.parent], check=True)
    folder = next(each for each in archive.parent.iterdir() if each.is_dir())
    assert {"CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml", "setup.py", "memsim/machine.hpp",
            "tools/python/module.cpp", "tools/python/redblue/__init__.py", "tools/setup", "docs/schemas/run.schema.json"} <= names
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    metadata = email.message_from_string((folder / "PKG-INFO").read_text())
    assert metadata["Name"] == "redblue" and metadata["Version"] == redblue.__version__
    assert metadata["License-File"] == "LICENSE" and "arxiv.org" in metadata["Project-URL"]
    assert "License :: OSI Approved :: MIT License" in metadata.get_all("Classifier")
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text().strip()
    again, _ = sdist(folder, tmp_path / "second")
    assert again == names
    within, _ = sdist(folder / "tools" / "python", tmp_path / "third")  # its output is in the tree
    assert not any(folder.name in name for name in within)


def test_names_of_nests():
    """A nest has the name that it is given, or that of its text. Another text or a kernel of redblue keeps its own."""
    def text(name, extra=""):
        return f"kernel {name}\nmatrix A[n,d] -> B[n,d]\nfor I in n by Br\n  read A[I,d]\n{extra}  write A[I,d] as B"

    def counted(nest):
        return redblue.count(nest, n=8, d=2, M=99)

    one, again, other = redblue.Nest(text("moved")), redblue.Nest(text("moved")), redblue.Nest(
        text("moved", "  drop A\n  read A[I,d]\n"))
    assert (one.name, again.name, other.name) == ("moved", "moved", "moved 2")
    assert [counted(nest).total.reads for nest in (one, again, other)] == [16, 16, 32]
    assert counted(other).kernel == "moved 2" and repr(counted(other)).startswith("moved 2 n=8")
    assert redblue.Nest(text("moved"), "two words").name == "two words" == str(redblue.Nest(text("moved"), name="two words"))
    for name, shown in (("attention/rows", "nest attention/rows"), ("attention/auto", "nest attention/auto"), ("a.nest", "a.nest 2")):
        nest = redblue.Nest(text(name))
        assert nest.name == shown == counted(nest).kernel and counted(nest).total.io == 32
    assert redblue.count("attention/rows", n=8, d=2, M=99).phases[0].path != "nest"
    again = redblue.Nest(redblue.plan(loops="attention/rows", n=64, d=8, M="1K", format="nest"), "mine")
    assert redblue.count(again, n=64, d=8, M="1K").total.io == redblue.count("attention/rows", n=64, d=8, M="1K", objective="words").total.io
    plan = redblue.plan(problem="attention", n=64, d=8, M="1K", nest=again)
    assert {"mine", "attention/rows"} <= {plan.plan.kernel} | {other.kernel for other in plan.runners_up}
    assert redblue.count(nest=again, n=64, d=8, M="1K").kernel == "mine"


def test_every_file_of_the_package_is_installed():
    """CMake lists each Python file of the package."""
    listed = re.search(r"set\(files ([^)]*)\)", (ROOT / "tools" / "python" / "CMakeLists.txt").read_text())[1].split()
    assert sorted(listed) == sorted(path.name for path in (ROOT / "tools" / "python" / "redblue").iterdir()
                                    if path.suffix in (".py", ".typed"))

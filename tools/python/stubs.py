"""Writes the type stubs of a built package: stubs.py CLASSES SCHEMAS PACKAGE. Of CLASSES, which people write; of a
function for each subcommand, whose options the module knows; and of its results, of which SCHEMAS has the members."""

import importlib.util
import json
import keyword
import pathlib
import sys
import types


def load(package):
    """The package in that directory, and no other that is installed."""
    spec = importlib.util.spec_from_file_location("redblue", package / "__init__.py",
                                                  submodule_search_locations=[str(package)])
    module = importlib.util.module_from_spec(spec)
    sys.modules["redblue"] = module
    spec.loader.exec_module(module)
    return module


# The schema of what a function returns. With other options some return another document, whose members are Any.
RESULTS = {"bounds": "bounds", "calibrate": "calibrate", "check": "compare", "count": "run", "curve": "curve",
           "diff": "compare", "history": "history", "info": "info", "list_": "list", "measure": "measure", "plan": "plan",
           "record": "recording", "replay": "replay", "run": "run", "sweep": "sweep", "table1": "table1", "tune": "tune",
           "pebble.run": "pebbling", "pebble.solve": "optima", "store.info": "store"}


class Schemas:
    """Makes a class of each object in the schemas that it is asked for."""

    SIMPLE = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}

    def __init__(self, directory):
        self.directory, self.files, self.classes = pathlib.Path(directory), {}, {}

    def file(self, name):
        if name not in self.files:
            self.files[name] = json.loads((self.directory / f"{name}.schema.json").read_text())
        return self.files[name]

    def result(self, kind):
        name = kind.capitalize() + "Result"
        self.add(name, self.file(kind), kind, "Result")
        return name

    def add(self, name, schema, kind, base="Record"):
        if name in self.classes:
            return
        self.classes[name] = ""  # objects may hold themselves
        lines = [f"    {member}: {self.type(each, kind, name + camel(member))}"
                 for member, each in schema["properties"].items() if member.isidentifier() and not keyword.iskeyword(member)]
        self.classes[name] = f"class {name}({base}):\n" + "\n".join(lines or ["    pass"]) + "\n"

    def type(self, schema, kind, name):
        if "$ref" in schema:
            file, _, path = schema["$ref"].partition("#/definitions/")
            kind = file.removesuffix(".schema.json") or kind
            return self.type(self.file(kind)["definitions"][path], kind, kind.capitalize() + camel(path))
        if "enum" in schema or "const" in schema:
            return " | ".join(sorted({"None" if value is None else type(value).__name__
                                      for value in schema.get("enum", [schema.get("const")])}))
        if choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf", [])[:1]:
            return " | ".join(dict.fromkeys(self.type(each, kind, name) for each in choices))
        kinds = schema.get("type", "object" if "properties" in schema else [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        return " | ".join(self.one(each, schema, kind, name) for each in kinds) or "Any"

    def one(self, which, schema, kind, name):
        if which == "array":
            return f"list[{self.type(schema.get('items', {}), kind, name)}]"
        if which != "object":
            return self.SIMPLE[which]
        if "properties" not in schema:
            values = schema.get("additionalProperties")
            return f"Mapping[str, {self.type(values, kind, name) if isinstance(values, dict) else 'Any'}]"
        self.add(name, schema, kind)
        return name


def camel(text):
    return "".join(part.capitalize() for part in text.replace("-", "_").split("_"))


def parameter(each):
    if each.name == "progress":
        return "progress: bool | Callable[[str], object] | None = None"
    if each.name == "mask":
        return "mask: str | Mask | numpy.typing.ArrayLike | None = None"
    if each.kind is each.VAR_POSITIONAL:
        return f"*{each.name}: Text"
    if each.kind is each.VAR_KEYWORD:
        return f"**{each.name}: Operand"
    if isinstance(each.default, bool):
        return f"{each.name}: bool = False"
    return f"{each.name}: Text" if each.default is each.empty else f"{each.name}: Text | None = None"


def stub(name, function, schemas, path=""):
    indent = "    " if path else ""
    if isinstance(function, types.ModuleType):
        members = "".join(stub(each, getattr(function, each), schemas, f"{name}.") for each in function.__all__)
        return f"{indent}class {name}:\n{members}"
    parameters, before = [], None
    for each in function.__signature__.parameters.values():
        if each.kind is each.KEYWORD_ONLY and before not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            parameters.append("*")
        parameters.append(parameter(each))
        before = each.kind
    static = f"{indent}@staticmethod\n" if indent else ""

    def defined(parameters, returns, before=""):
        return f"{before}{static}{indent}def {name}({', '.join(parameters)}) -> {returns}: ...\n"

    kind = RESULTS.get(path + name)
    if kind is None:
        return defined(parameters, "Result | str | None")
    returns = schemas.result(kind) + (" | None" if any(each.startswith("out:") for each in parameters) and path + name != "run"
                                      else "")
    chosen = next((each for each in parameters if each.startswith("format:")), None)
    if chosen is None:
        return defined(parameters, returns)
    overload = f"{indent}@overload\n"  # with a format, the text
    return (defined([each.replace(chosen, "format: str") for each in parameters], "str", overload)
            + defined([each.replace(chosen, "format: None = None") for each in parameters], returns, overload))


def main(classes, directory, package):
    module = load(pathlib.Path(package))
    schemas = Schemas(directory)
    text, functions = pathlib.Path(classes).read_text(), ""
    for name in module.__all__:
        member = getattr(module, name)
        if not isinstance(member, type) and f"\ndef {name}(" not in text:
            functions += "\n" + stub(name, member, schemas)
    (pathlib.Path(package) / "__init__.pyi").write_text("\n".join([text, *schemas.classes.values()]) + functions)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Writes the type stubs of a built package: stubs.py CLASSES PACKAGE. Of CLASSES, which people write, and of a
function for each subcommand, whose options the module knows."""

import importlib.util
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


def parameter(each):
    if each.kind is each.VAR_POSITIONAL:
        return f"*{each.name}: Text"
    if each.kind is each.VAR_KEYWORD:
        return f"**{each.name}: Operand"
    if isinstance(each.default, bool):
        return f"{each.name}: bool = False"
    return f"{each.name}: Text" if each.default is each.empty else f"{each.name}: Text | None = None"


def stub(name, function, indent=""):
    if isinstance(function, types.ModuleType):
        members = "".join(stub(*member, indent + "    ") for member in ((each, getattr(function, each)) for each in function.__all__))
        return f"{indent}class {name}:\n{members}"
    parameters, before = [], None
    for each in function.__signature__.parameters.values():
        if each.kind is each.KEYWORD_ONLY and before not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            parameters.append("*")
        parameters.append(parameter(each))
        before = each.kind
    static = f"{indent}@staticmethod\n" if indent else ""
    return f"{static}{indent}def {name}({', '.join(parameters)}) -> Any: ...\n"


def main(classes, package):
    module = load(pathlib.Path(package))
    text = pathlib.Path(classes).read_text()
    for name in module.__all__:
        member = getattr(module, name)
        if not isinstance(member, type) and f"def {name}(" not in text:
            text += "\n" + stub(name, member)
    (pathlib.Path(package) / "__init__.pyi").write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])

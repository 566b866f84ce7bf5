"""What is checked when a contract is written down; every message says what to do."""

import difflib
import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trivet.properties._arguments import Scalar, Tensor
from trivet.properties._dtypes import DTYPES
from trivet.properties._integer_domains import Integers
from trivet.properties._law import RESERVED, STANDARD_LAWS
from trivet.properties._sizes import Choice, Dim, as_dim

if TYPE_CHECKING:
    from trivet.properties._contract import Contract

_MOST_EXPECTED = 2


def listed(names: Iterable[str]) -> str:
    """Names for a message, in order, or "none"."""
    return ", ".join(names) or "none"


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def fields(contract: "Contract") -> None:
    """The types of the eight fields."""
    if not callable(contract.kernel):
        raise ValueError(f"kernel={contract.kernel!r}: expected the host function people call")
    if callable(contract.oracles) or not isinstance(contract.oracles, Sequence):
        raise ValueError(f"oracles={contract.oracles!r}: expected a list, [oracle]")
    if not contract.oracles or not all(callable(each) for each in contract.oracles):
        raise ValueError(f"oracles={contract.oracles!r}: expected at least one function")
    for field, value in (("dims", contract.dims), ("args", contract.args)):
        if not isinstance(value, Mapping):
            raise ValueError(f"{field}={value!r}: expected a dict by name")
    if not contract.args:
        raise ValueError("args={}: a kernel without arguments has nothing to vary")
    for name, arg in contract.args.items():
        if not isinstance(arg, Tensor | Scalar | Choice):
            raise ValueError(f"argument {name}: {arg!r} is no Tensor, Scalar or Choice")
    if contract.backward not in (None, "autograd") and not callable(contract.backward):
        raise ValueError(
            f"backward={contract.backward!r}: expected a host function, 'autograd' or None"
        )
    _check_raises(contract)


def _check_raises(contract: "Contract") -> None:
    for entry in contract.raises:
        kind = entry[0] if isinstance(entry, tuple) and len(entry) == 3 else None
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise ValueError(f"raises: {entry!r} is no (exception type, part of its message, case)")
        case = entry[2]
        if not callable(case) and not isinstance(case, Mapping):
            raise ValueError(
                f"raises: the case {case!r} is neither a dict of arguments to replace nor a "
                "function that returns one"
            )
        unknown = [n for n in case if n not in contract.args] if isinstance(case, Mapping) else []
        if unknown:
            raise ValueError(
                f"raises: the case replaces {unknown[0]!r}, which is no argument; "
                f"arguments: {listed(contract.args)}"
            )


def forms(dims: Mapping[str, object], args: Mapping[str, object]) -> dict[str, Dim]:
    """The dims as size forms, each using only those before it."""
    found: dict[str, Dim] = {}
    for name, dim in dims.items():
        _check_name("dim", name)
        if name in args:
            raise ValueError(f"{name!r} is both a dim and an argument: rename one of them")
        if name in RESERVED:
            raise ValueError(f"dim {name!r}: laws reserve that name; rename it")
        try:
            found[name] = form = as_dim(dim)
        except ValueError as error:
            raise ValueError(f"dim {name}: {error}") from None
        for used in sorted(form.names - (found.keys() - {name})):
            where = "comes later" if used in dims and used != name else "is no dim"
            raise ValueError(
                f"dim {name}: {form} uses {used!r}, which {where}; a dim may use the earlier "
                f"ones: {listed(n for n in found if n != name)}"
            )
    return found


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{what} {name!r}: expected a Python name")


def arguments(contract: "Contract") -> None:
    """The arguments against the dims, one another and the kernel's signature."""
    known = set(contract.forms)
    for name, arg in contract.args.items():
        _check_name("argument", name)
        buffer = isinstance(arg, Tensor) and arg.role != "in" and name == "out"
        if name in RESERVED and not buffer:
            raise ValueError(
                f"argument {name!r}: laws reserve that name (only a buffer may be called 'out', "
                "with role='out' or 'inout'); rename it"
            )
        if isinstance(arg, Scalar):
            for end in arg.ends:
                _check_names(f"argument {name}", str(end), end.names, known)
            known |= {name} if arg.kind is int else set()
        elif isinstance(arg, Choice) and arg.whole:
            known.add(name)
    for name, tensor in contract.tensors().items():
        _check_tensor(contract, name, tensor, known)
    for name, output in (contract.outputs or {}).items():
        if not isinstance(output, Tensor):
            raise ValueError(f"output {name}: {output!r} is no Tensor")
        _check_shape(f"output {name}", output, known)
        _check_reference(contract, f"output {name}", output.dtypes)
    _check_signature(contract)


def _check_names(owner: str, text: str, used: Iterable[str], known: Iterable[str]) -> None:
    for name in sorted(set(used) - set(known)):
        raise ValueError(
            f"{owner}: {text!r} uses {name!r}, which is no dim or int argument; "
            f"known: {listed(sorted(known))}{_suggestion(name, known)}"
        )


def _check_shape(owner: str, tensor: Tensor, known: Iterable[str]) -> None:
    for terms in tensor.shapes:
        for term in terms:
            _check_names(owner, " ".join(map(str, terms)), term.names, known)


def _check_tensor(contract: "Contract", name: str, tensor: Tensor, known: Iterable[str]) -> None:
    owner = f"argument {name}"
    _check_shape(owner, tensor, known)
    _check_reference(contract, owner, tensor.dtypes)
    if tensor.domain is not None:
        _check_names(owner, "its domain", tensor.domain.names, known)
        _check_range(contract, owner, tensor)
    if isinstance(tensor.layouts, str):
        _check_layout(contract, owner, tensor)
    for other in tensor.alias if isinstance(tensor.alias, tuple) else ():
        if other not in contract.tensors() or other == name:
            raise ValueError(
                f"{owner}: alias={tensor.alias!r} names {other!r}, which is no other tensor "
                f"argument; tensors: {listed(contract.tensors())}"
            )


def _check_reference(contract: "Contract", owner: str, dtypes: tuple[str, ...] | str) -> None:
    if not isinstance(dtypes, str):
        return
    other = contract.tensors().get(dtypes)
    if other is None or isinstance(other.dtypes, str):
        raise ValueError(
            f"{owner}: dtypes={dtypes!r} is neither a dtype nor an argument that states its own; "
            f"dtypes: {listed(DTYPES)}"
        )


def _check_range(contract: "Contract", owner: str, tensor: Tensor) -> None:
    domain = tensor.domain
    if domain is not None and not domain.names and not domain.structured:
        for dtype in tensor.dtypes if isinstance(tensor.dtypes, tuple) else ():
            text = domain.obstacle((1,), {}, DTYPES[dtype])
            if text is not None:
                raise ValueError(f"{owner}: {text}: widen its domain or change its dtypes")
    if not isinstance(domain, Integers) or domain.sentinel is None:
        return
    mark = domain.sentinel.constant
    for dtype in tensor.dtypes if isinstance(tensor.dtypes, tuple) else ():
        kind = DTYPES[dtype]
        if mark is not None and not kind.lowest <= mark <= kind.highest:
            raise ValueError(f"{owner}: the sentinel {mark} does not fit in {dtype}")


def _check_layout(contract: "Contract", owner: str, tensor: Tensor) -> None:
    other = contract.tensors().get(str(tensor.layouts))
    if other is None or other is tensor or isinstance(other.layouts, str):
        raise ValueError(
            f"{owner}: layouts={tensor.layouts!r} names no other tensor argument with layouts of "
            f"its own; use DENSE, UNIT_LAST, ANY or one of: {listed(contract.tensors())}"
        )
    if {len(terms) for terms in other.shapes} != {len(terms) for terms in tensor.shapes}:
        raise ValueError(
            f"{owner}: layouts={tensor.layouts!r} means the same strides, but {tensor.shape!r} "
            f"and {other.shape!r} differ in their number of dims"
        )


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has a parameter of this name (not ``**kwargs``)."""
    parameters = _parameters(function)
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return parameters is not None and name in parameters and parameters[name].kind in by_name


def _check_signature(contract: "Contract") -> None:
    parameters = _parameters(contract.kernel)
    if parameters is None:
        return
    title = getattr(contract.kernel, "__name__", repr(contract.kernel))
    spelled = f"{title}({', '.join(parameters)})"
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    for name in contract.args:
        if not anything and not takes(contract.kernel, name):
            raise ValueError(
                f"argument {name}: the kernel is {spelled} and takes no {name!r}"
                f"{_suggestion(name, parameters)}"
            )
    given = {*contract.args, *contract.forms}
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    for name, parameter in parameters.items():
        required = parameter.default is parameter.empty and parameter.kind not in variadic
        if required and name not in given:
            raise ValueError(
                f"the kernel is {spelled}, and the contract says nothing of {name!r}: "
                "add it to args (or to dims, if it is a size)"
            )


def law(
    contract: "Contract", function: Callable[..., Any], dtypes: Sequence[str] | None
) -> tuple[str, ...]:
    """The names a law needs; a ValueError where one is unknown or the law's name is taken."""
    name = function.__name__
    if name in STANDARD_LAWS or name in {each.name for each in contract.laws}:
        raise ValueError(f"law {name}: there is a law of that name already; rename it")
    for dtype in dtypes or ():
        if dtype not in contract.dtypes():
            raise ValueError(
                f"law {name}: dtypes={tuple(dtypes or ())!r} is not among the contract's: "
                f"{listed(contract.dtypes())}"
            )
    return _needs(function, f"law {name}", {*contract.forms, *contract.args, *RESERVED})


def assumption(contract: "Contract", function: Callable[..., Any]) -> None:
    """A ValueError where an assumption needs anything but dims and arguments."""
    name = function.__name__
    if name in contract.assumptions:
        raise ValueError(f"assume {name}: there is an assumption of that name; rename it")
    _needs(function, f"assume {name}", {*contract.forms, *contract.args})


def _needs(function: Callable[..., Any], owner: str, known: Iterable[str]) -> tuple[str, ...]:
    needs = tuple(inspect.signature(function).parameters)
    for name in needs:
        if name not in known:
            raise ValueError(
                f"{owner}: needs {name!r}, which is none of {listed(sorted(known))}"
                f"{_suggestion(name, known)}"
            )
    return needs


def known_law(contract: "Contract", name: str, owner: str) -> None:
    """A ValueError where no law has this name."""
    known = [*STANDARD_LAWS, *(each.name for each in contract.laws)]
    if name not in known:
        raise ValueError(f"{owner}({name!r}): no law has that name{_suggestion(name, known)}")


def expectations(contract: "Contract", expects: Sequence[str]) -> tuple[str, ...]:
    """The laws a fault expects red, one or two of those that exist."""
    names = (expects,) if isinstance(expects, str) else tuple(expects)
    if not 1 <= len(names) <= _MOST_EXPECTED:
        raise ValueError(f"fault(expects={expects!r}): name one or two laws that turn red")
    for name in names:
        known_law(contract, name, "fault: expects")
    return names

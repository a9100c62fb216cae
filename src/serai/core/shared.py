"""States of many arrays, passed by reference: inside kernels a named tuple becomes one pointer to its fields.

numba passes a tuple of arrays as seven words for each array. A state of fifty arrays is then a call with 350 arguments,
at every one of some hundred functions: most of the time that compiling took went there. `shared(state)` writes the
fields down once, at the start of a kernel; from there on functions pass a pointer. Fields are read and written as
before: `state.copies[c].rank = 3`.

What differs from arrays outside:

* An index counts from the front. There is no -1 for the last entry, so nothing has to ask for it: an eighth of the
  time of a run. With NUMBA_BOUNDSCHECK=1 an index out of range raises, -1 too.
* Whole numbers are read as 64 bits, however narrow they lie in memory, so that a function is compiled once and not for
  each mix of widths.
* The optimizer is told that what is written to one field of a record, or to an array of one type, changes no other.
"""

import hashlib
import operator
from typing import Any, TypeVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin, lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import register_model

_State = TypeVar("_State")
_POINTER = ir.IntType(8).as_pointer()


def shared(state: _State) -> _State:
    """The state itself; compiled, a pointer to its fields."""
    return state


# ---- types


class Shared(types.Type):
    """A named tuple: a pointer to its fields."""

    def __init__(self, state: types.BaseNamedTuple) -> None:
        self.state = state
        self.forms = tuple(_form(field) for field in state.types)
        super().__init__(name=f"Shared({_short(state)})")

    @property
    def key(self) -> types.BaseNamedTuple:
        return self.state


class View(types.Type):
    """An array: a pointer to its first entry, and its lengths."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(name=f"View({_short(dtype)}, {ndim})")

    @property
    def key(self) -> tuple[Any, int]:
        return self.dtype, self.ndim


class Row(types.Type):
    """An entry of an array of records: a pointer to it."""

    def __init__(self, record: types.Record) -> None:
        self.record = record
        super().__init__(name=f"Row({_short(record)})")

    @property
    def key(self) -> types.Record:
        return self.record


def _short(type_: Any) -> str:
    """A short name: names of functions are made of those of their arguments' types, and a record's is long."""
    text = str(type_)
    return text if len(text) < 20 else hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _form(field: Any) -> Any:
    """How a field of a state is kept."""
    if isinstance(field, types.BaseNamedTuple):
        return Shared(field)
    if isinstance(field, types.Array):
        if field.layout != "C":
            raise TypeError(f"shared: {field} is not contiguous")
        return View(field.dtype, field.ndim)
    return field


def _read_as(dtype: Any) -> Any:
    """What an entry of an array, or a field of a record, is read as."""
    if isinstance(dtype, types.Record):
        return Row(dtype)
    return types.int64 if isinstance(dtype, types.Integer) else dtype


@register_model(Shared)
@register_model(Row)
class _PointerModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _POINTER)


@register_model(View)
class _ViewModel(models.StructModel):
    def __init__(self, manager: Any, type_: View) -> None:
        members = [("data", types.voidptr), ("shape", types.UniTuple(types.intp, type_.ndim))]
        super().__init__(manager, type_, members)


# ---- a state


@infer_global(shared)
class _SharedTyping(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        (state,) = args
        return signature(Shared(state), state) if isinstance(state, types.BaseNamedTuple) else None


@lower_builtin(shared, types.BaseNamedTuple)
def _write_down(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    place = cgutils.alloca_once(builder, _layout(context, sig.return_type))
    _fill(context, builder, sig.return_type, place, args[0])
    # What is written down here is never written again, and reads may be told so (`_get_field`); but this function
    # itself writes it first. An empty instruction hides that what it returns points to what was written.
    hide = ir.InlineAsm(ir.FunctionType(_POINTER, [_POINTER]), "", "=r,0,~{memory}", side_effect=True)
    return builder.call(hide, [builder.bitcast(place, _POINTER)])


def _layout(context: Any, form: Any) -> Any:
    """A form as it lies in memory."""
    if isinstance(form, Shared):
        return ir.LiteralStructType([_layout(context, field) for field in form.forms])
    return context.get_value_type(form) if isinstance(form, View) else context.get_data_type(form)


def _fill(context: Any, builder: Any, type_: Shared, place: Any, state: Any) -> None:
    """Write the fields of a state."""
    for i, (field, form) in enumerate(zip(type_.state.types, type_.forms, strict=True)):
        value, to = builder.extract_value(state, i), cgutils.gep_inbounds(builder, place, 0, i)
        if isinstance(form, Shared):
            _fill(context, builder, form, to, value)
        elif isinstance(form, View):
            array = context.make_array(field)(context, builder, value)
            builder.store(_view(context, builder, form, array.data, array.shape), to)
        else:
            builder.store(context.data_model_manager[form].as_data(builder, value), to)


def _view(context: Any, builder: Any, type_: View, data: Any, shape: Any) -> Any:
    """A view of what is at `data`."""
    view = cgutils.create_struct_proxy(type_)(context, builder)
    view.data, view.shape = builder.bitcast(data, _POINTER), shape
    return view._getvalue()


@infer_getattr
class _FieldTyping(AttributeTemplate):
    key = Shared

    def generic_resolve(self, type_: Shared, name: str) -> Any:
        return type_.forms[type_.state.fields.index(name)] if name in type_.state.fields else None


@lower_getattr_generic(Shared)
def _get_field(context: Any, builder: Any, type_: Shared, pointer: Any, name: str) -> Any:
    i = type_.state.fields.index(name)
    form = type_.forms[i]
    state = builder.bitcast(pointer, _layout(context, type_).as_pointer())
    place = cgutils.gep_inbounds(builder, state, 0, i)
    if isinstance(form, Shared):
        return builder.bitcast(place, _POINTER)
    if isinstance(form, View):
        lengths = [_read_for_good(builder, cgutils.gep_inbounds(builder, place, 0, 1, n)) for n in range(form.ndim)]
        data = _read_for_good(builder, cgutils.gep_inbounds(builder, place, 0, 0))
        return _view(context, builder, form, data, cgutils.pack_array(builder, lengths))
    return context.data_model_manager[form].from_data(builder, _read_for_good(builder, place))


def _read_for_good(builder: Any, place: Any) -> Any:
    """Read what nobody will write again: the optimizer need not read it twice."""
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


# ---- entries of arrays


@infer_global(len)
class _LengthTyping(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.intp, *args) if isinstance(args[0], View) else None


@lower_builtin(len, View)
def _length(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.extract_value(cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0]).shape, 0)


@infer_global(operator.getitem)
class _GetTyping(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        view, index = args
        depth = _depth(view, index)
        if not depth:
            return None
        entry = _read_as(view.dtype) if depth == view.ndim else View(view.dtype, view.ndim - depth)
        return signature(entry, view, index)


@infer_global(operator.setitem)
class _SetTyping(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        view, index, _ = args
        if not isinstance(view, View) or _depth(view, index) != view.ndim:
            return None
        return signature(types.none, view, index, _read_as(view.dtype))


def _depth(view: Any, index: Any) -> int:
    """How many axes an index goes into; 0 if it is no index of a view."""
    indices = index.types if isinstance(index, types.BaseTuple) else (index,)
    fits = isinstance(view, View) and len(indices) <= view.ndim
    return len(indices) if fits and all(isinstance(i, types.Integer) for i in indices) else 0


@lower_builtin(operator.getitem, View, types.Integer)
@lower_builtin(operator.getitem, View, types.BaseTuple)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    entry, lengths = _entry(context, builder, sig, args)
    if lengths:
        return _view(context, builder, sig.return_type, entry, cgutils.pack_array(builder, lengths))
    return _load(context, builder, entry, sig.args[0].dtype, "")


@lower_builtin(operator.setitem, View, types.Integer, types.Any)
@lower_builtin(operator.setitem, View, types.BaseTuple, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    entry, _ = _entry(context, builder, sig, args)
    _store(context, builder, entry, sig.args[0].dtype, "", args[2])
    return context.get_dummy_value()


def _entry(context: Any, builder: Any, sig: Any, args: Any) -> tuple[Any, list[Any]]:
    """Where the entry at an index is (of a part: its first entry), and the lengths of that part."""
    type_, index_type = sig.args[:2]
    view = cgutils.create_struct_proxy(type_)(context, builder, args[0])
    lengths = cgutils.unpack_tuple(builder, view.shape, type_.ndim)
    if isinstance(index_type, types.BaseTuple):
        index = list(zip(cgutils.unpack_tuple(builder, args[1]), index_type.types, strict=True))
    else:
        index = [(args[1], index_type)]
    place = context.get_constant(types.intp, 0)
    for axis, length in enumerate(lengths):
        place = builder.mul(place, length)
        if axis < len(index):
            at = context.cast(builder, *index[axis], types.intp)
            if context.enable_boundscheck:
                cgutils.do_boundscheck(context, builder, at, length, axis)
            place = builder.add(place, at)
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(type_.dtype)))
    return builder.gep(view.data, [builder.mul(place, size)], inbounds=True), lengths[len(index) :]


# ---- fields of records


@infer_getattr
class _RowTyping(AttributeTemplate):
    key = Row

    def generic_resolve(self, type_: Row, name: str) -> Any:
        return _read_as(type_.record.typeof(name)) if name in type_.record.fields else None


@lower_getattr_generic(Row)
def _get_of_record(context: Any, builder: Any, type_: Row, pointer: Any, name: str) -> Any:
    place = cgutils.pointer_add(builder, pointer, type_.record.offset(name))
    return _load(context, builder, place, type_.record.typeof(name), f"{type_.name}.{name}")


@lower_setattr_generic(Row)
def _set_in_record(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    record = sig.args[0].record
    place = cgutils.pointer_add(builder, args[0], record.offset(name))
    _store(context, builder, place, record.typeof(name), f"{sig.args[0].name}.{name}", args[1])


# ---- memory


def _load(context: Any, builder: Any, pointer: Any, dtype: Any, kind: str) -> Any:
    """Read an entry or a field; a record is not read, but pointed to."""
    if isinstance(dtype, types.Record):
        return pointer
    value = builder.load(builder.bitcast(pointer, context.get_data_type(dtype).as_pointer()))
    _mark(builder, value, kind or str(dtype))
    value = context.data_model_manager[dtype].from_data(builder, value)
    return context.cast(builder, value, dtype, _read_as(dtype))


def _store(context: Any, builder: Any, pointer: Any, dtype: Any, kind: str, value: Any) -> None:
    """Write an entry or a field."""
    to = builder.bitcast(pointer, context.get_data_type(dtype).as_pointer())
    if isinstance(dtype, types.Record):
        builder.store(builder.load(builder.bitcast(value, to.type)), to)
        return
    value = context.cast(builder, value, _read_as(dtype), dtype)
    _mark(builder, builder.store(context.data_model_manager[dtype].as_data(builder, value), to), kind or str(dtype))


def _mark(builder: Any, access: Any, kind: str) -> None:
    """Tell the optimizer what is read or written here: accesses of another kind are not to the same place."""
    module = builder.module
    zero = ir.Constant(ir.IntType(64), 0)
    kind_node = module.add_metadata([kind, module.add_metadata(["serai"]), zero])
    access.set_metadata("tbaa", module.add_metadata([kind_node, kind_node, zero]))

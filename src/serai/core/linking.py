"""Functions that are always inlined are optimized once, with the kernel they end up in, not at each call on the way.

numba treats everything it compiles as if it were to be called by itself: it links in what the function calls,
optimizes the whole and makes machine code of it. A step is inlined into its caller, and that into its own: six calls
down, a step is optimized seven times, and of seven pieces of machine code only one is ever run. So what consists of
always-inlined functions is linked and no more; the kernel is optimized with all of it (docs/adr/0005).
"""

from typing import Any

from numba.core import codegen

_set_environment = codegen.JITCPUCodegen.set_env


class _Library(codegen.JITCodeLibrary):
    """A compiled function and what it calls; only linked if it is never called but by inlining."""

    _only_linked = False

    def finalize(self) -> None:
        self._only_linked = _is_always_inlined(self._final_module)  # of its own: what it calls is not linked in yet
        super().finalize()

    def _optimize_final_module(self) -> None:
        if not self._only_linked:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self._only_linked:
            self._finalize_dynamic_globals()
            self._finalized = True
        else:
            super()._finalize_final_module()


def _is_always_inlined(module: Any) -> bool:
    """Whether a module defines functions, and all of them are to be inlined wherever they are called."""
    own = [function for function in module.functions if not function.is_declaration]
    return bool(own) and all(any(b"alwaysinline" in text for text in function.attributes) for function in own)


def _set_environment_if_there(self: Any, name: str, environment: Any) -> None:
    """Without machine code there is no place for it, and none is needed: kernels from the disk have none either."""
    if self._engine.get_global_value_address(name):
        _set_environment(self, name, environment)


def link_inlined_functions_only() -> None:
    """Have numba do so from now on."""
    codegen.JITCPUCodegen._library_class = _Library
    codegen.JITCPUCodegen.set_env = _set_environment_if_there

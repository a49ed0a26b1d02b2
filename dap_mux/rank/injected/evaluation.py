"""Answer an `evaluate` without a frame with its value, where an older debugpy prints it instead.

Up to some release debugpy writes the value to the program's stdout, and answers "". Private
interfaces of debugpy, so whoever calls this must expect any exception.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any


def answer_without_frame() -> None:
    """From now on values are answered; nothing to do where debugpy does so by itself."""
    requests: Any = import_module("_pydevd_bundle.pydevd_comm")
    values: Any = import_module("_pydevd_bundle.pydevd_vars")
    by_itself = "exec_result" in requests.internal_evaluate_expression_json.__code__.co_varnames
    if by_itself or hasattr(values.evaluate_expression, "dap_mux_usual"):
        return
    evaluate, respond = values.evaluate_expression, requests._evaluate_response  # noqa: SLF001
    last = threading.local()

    def evaluate_and_keep(py_db: Any, frame: Any, expression: str, is_exec: bool) -> Any:
        last.value = None
        if not is_exec or frame is not getattr(requests, "_global_frame", None):
            return evaluate(py_db, frame, expression, is_exec)
        try:
            values.compile_as_eval(expression)
        except Exception:  # noqa: BLE001  (a statement)
            return evaluate(py_db, frame, expression, is_exec)
        value = evaluate(py_db, frame, expression, False)
        if isinstance(value, requests.ExceptionOnEvaluate):
            raise value.result.with_traceback(value.tb)
        last.value = value
        return None

    def respond_with_value(py_db: Any, request: Any, result: Any, *rest: Any, **named: Any) -> Any:
        value, last.value = getattr(last, "value", None), None
        if result == "" and value is not None:
            result = f"{value}"
        return respond(py_db, request, result, *rest, **named)

    evaluate_and_keep.dap_mux_usual = evaluate  # type: ignore[attr-defined]
    values.evaluate_expression = evaluate_and_keep
    requests._evaluate_response = respond_with_value  # noqa: SLF001

"""What is said while kernels are compiled, and when nothing is."""

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from numba.core.event import Event, EventStatus

from riskset.cli.terminal import hush_compiling
from riskset.kernels import _compiling
from riskset.kernels._compiling import TEXT, CompilingNotice
from riskset.kernels._jit import NOTICE


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(_compiling, "time", made)
    return made


def compiling(module: str = "riskset.kernels.matrix_cpu") -> tuple[Event, Event]:
    data = {"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))}
    return tuple(  # type: ignore[return-value]
        Event("numba:compile", status, data) for status in (EventStatus.START, EventStatus.END)
    )


@pytest.fixture
def said(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What is said during compilations of so many seconds each."""

    def run(*seconds: float, terminal: bool = True, module: str = "riskset.kernels.x") -> str:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
        notice = CompilingNotice()
        for each in seconds:
            start, end = compiling(module)
            notice.on_start(start)
            clock.now += each
            notice.on_end(end)
            clock.now += 100.0  # work between does not count
        return capsys.readouterr().err

    return run


def test_it_is_said_once_after_a_second(said: Callable[..., str]) -> None:
    assert said(0.9) == ""
    assert said(1.1) == TEXT + "\n"
    assert said(0.4, 0.4, 0.4, 5.0, 5.0) == TEXT + "\n"


def test_it_is_not_said_where_nobody_reads_or_others_compile(said: Callable[..., str]) -> None:
    assert said(5.0, terminal=False) == ""
    assert said(5.0, module="other.package") == ""
    assert said(*[0.01] * 50) == ""


def test_a_compilation_inside_another_counts_once(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    notice, (start, end) = CompilingNotice(), compiling()
    notice.on_start(start)
    notice.on_start(start)
    clock.now += 0.6
    notice.on_end(end)
    notice.on_end(end)
    assert capsys.readouterr().err == ""


def test_quiet_commands_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NOTICE, "is_wanted", True)
    hush_compiling(is_quiet=False)
    assert NOTICE.is_wanted
    hush_compiling(is_quiet=True)
    assert not NOTICE.is_wanted

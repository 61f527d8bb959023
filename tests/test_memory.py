"""How much memory the embedded database may use by default: half of what this process may use."""

from riskset import _runtime
from riskset.data import database
from riskset.data.database import Database


def test_half_of_the_memory_of_the_machine_or_the_container(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(_runtime, "MEMORY_LIMITS", (str(limit),))
    whole = _runtime.available_memory()
    limit.write_text("max\n")
    assert _runtime.available_memory() == whole > 1 << 28
    limit.write_text("536870912\n")
    assert _runtime.available_memory() == 536870912
    with Database() as one, one.apart() as other:
        for each in (one, other):
            assert each.row("SELECT current_setting('memory_limit')") == ("256.0 MiB",)
    with Database("1GB") as one:
        assert one.row("SELECT current_setting('memory_limit')") == ("953.6 MiB",)


def test_where_the_system_does_not_say(monkeypatch):
    monkeypatch.setattr(database, "available_memory", lambda: None)
    assert database.default_memory() == "2GB"

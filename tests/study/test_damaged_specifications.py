"""A damaged specification is read, or refused with its name; nothing else happens."""

import pytest

import riskset as rs
from mutations import flipped
from study.test_specification import TEXT as PLAIN

TEXT = (
    PLAIN.replace("data:", "data: &data")
    .replace("defaults:", "defaults: &defaults")
    .replace("crude:", "crude: {<<: *defaults}")
)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 500,
        "{a: " * 500 + "}" * 500,
        TEXT + "x: &x {<<: *x}\n",
        TEXT + "x: &x [*x]\n",
        TEXT + "subgroups: &s\n  a: *s\n",
        TEXT.replace("match: {ratio: 2}", "&m match: &n {<<: *n}"),
        TEXT.replace("data: &data\n", "data: &data\n  <<: *data\n"),
        TEXT + "".join(f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 9) if i else 1}]\n"
                       for i in range(30)),  # 9 ** 30 values if aliases were written out
        "\x00",
        "title: \x07",
        "? [a, b]\n: c",
        "- 1",
        "'",
        "%YAML 9.9\n---\n",
        "!!python/object:os.system {}",
        "2015-06-31",
    ],
)  # fmt: skip
def test_text_that_is_not_a_specification(text, tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(rs.InputError, match=r"study\.yaml"):
        rs.study.Study.read(path)


def test_the_line_of_an_endless_section_is_named(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("title: x\na: &a\n  b: *a\n")
    with pytest.raises(rs.InputError, match=r"study.yaml, line 2: .*\n.*anchor"):
        rs.study.Study.read(path)


def test_damaged_bytes(tmp_path):
    path = tmp_path / "study.yaml"
    content = TEXT.encode()
    n_refused = 0
    for what, damaged in flipped(content, 300, seed=7):
        path.write_bytes(damaged)
        try:
            rs.study.Study.read(path)
        except rs.InputError:
            n_refused += 1
        except Exception as error:
            pytest.fail(
                f"{what}: {type(error).__name__}: {error}\n{damaged.decode(errors='replace')}"
            )
    assert n_refused > 100

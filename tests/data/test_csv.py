"""CSV files: types, categories, missing values, and what is wrong with them."""

import re
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

from data.tables import write_text
from riskset._errors import InputError
from riskset.data.readers import read_dataset


def test_types_of_a_csv_file(tmp_path: Path) -> None:
    path = write_text(
        tmp_path / "t.csv",
        "\ufeffpid,time,event,yes,flag,code,text,quoted,number\r\n"
        '007,1,0,Yes,TRUE,01,"a, b",1,1e3\r\n'
        "7,2,1,No,false,02,c,2,-2.5\r\n"
        '9,3,1,Yes,False,01,"say ""x""","3",0\r\n',
    )
    data = read_dataset(path, id="pid")
    assert data.row_keys is not None
    assert list(data.row_keys) == ["007", "7", "9"]
    assert data.design.names == (
        "yes=No", "yes=Yes", "flag", "code=01", "code=02", "text=a, b", "text=c",
        'text=say "x"', "quoted", "number",
    )  # fmt: skip
    assert_array_equal(
        data.design.to_dense(),
        [
            [0, 1, 1, 1, 0, 1, 0, 0, 1, 1000],
            [1, 0, 0, 0, 1, 0, 1, 0, 2, -2.5],
            [0, 1, 0, 1, 0, 0, 0, 1, 3, 0],
        ],
    )


@pytest.mark.parametrize("odd", ["low", "None", ".", "?", "-", '"1,000"', "<5"])
def test_one_odd_value_far_down_does_not_make_categories(tmp_path: Path, odd: str) -> None:
    rows = "".join(f"{i},1,{i % 5}\n" for i in range(30_000))
    path = write_text(tmp_path / "t.csv", f"time,event,x\n{rows}1,1,{odd}\n")
    value = re.escape(repr(odd.strip('"')))
    with pytest.raises(
        InputError, match=rf"'x' of t.csv is text, .*: {value} \(first: data row 30001, .*\n.*code"
    ):
        read_dataset(path)


def test_odd_ways_to_write_a_number_in_a_csv_file(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", "time,event,x\n1,1,+2\n2,0,.5\n3,1,1e3\n4,0, 7\n")
    assert_array_equal(read_dataset(path).design.to_dense()[:, 0], [2, 0.5, 1000, 7])


def test_decimal_commas_are_no_categories(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", "time;event;x\n1;1;1,5\n2;0;2,5\n3;1;2,75\n")
    with pytest.raises(InputError, match=r"'x' of t.csv is text, .*'1,5', '2,5', '2,75'"):
        read_dataset(path)


CATEGORIES = {
    "answers": ["yes", "no", "yes"],
    "a question mark": ["A", "B", "1?"],
    "leading zeros": ["01", "2", "10"],
    "roman": ["I", "II", "III"],
    "none": ["none", "1", "some"],
}


@pytest.mark.parametrize("levels", CATEGORIES.values(), ids=CATEGORIES)
def test_categories_of_a_csv_file(tmp_path: Path, levels: list[str]) -> None:
    rows = "".join(f"{k},1,{level}\n" for k, level in enumerate(levels, start=1))
    data = read_dataset(write_text(tmp_path / "t.csv", "time,event,x\n" + rows))
    assert data.design.names == tuple(f"x={level}" for level in sorted(set(levels)))


MISSING = ["", "NA", "na", "N/A", "n/a", "#N/A", "NaN", "NAN", "NULL", "null", "NA ", " n/a", " "]


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("present", ["5", "five", "true"])
def test_missing_values_of_a_csv_file(tmp_path: Path, missing: str, present: str) -> None:
    path = write_text(tmp_path / "t.csv", f"pid,time,event,x\n11,1,0,{present}\n12,2,1,{missing}\n")
    with pytest.raises(
        InputError,
        match=r"column 'x' of t.csv must .*1 of 2 rows has one \(first: data row 2, pid 12\)"
        r".*\n.*empty field, NA, .* are missing values; drop or impute",
    ):
        read_dataset(path, id="pid")


@pytest.mark.parametrize("missing", MISSING)
def test_missing_values_in_the_columns_of_the_outcome(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "t.csv"
    for row in (f"12,{missing},1,3", f"{missing},1,1,3"):
        write_text(path, f"pid,time,event,x\n11,1,0,5\n{row}\n")
        with pytest.raises(InputError, match="of t.csv must not have missing values"):
            read_dataset(path, id="pid").outcome()


CSV_COMPLAINTS = {
    "short line": ("a,time,event\n1,2,0\n1,2\n", ["line 3 of t.csv has 2 fields", "3 columns"]),
    "long line": ("a,time,event\n1,2,0\n1,2,0,9\n", ["line 3 of t.csv has 4 fields"]),
    "no name": ('"",time,event\n1,2,0\n', ["column 1 of t.csv has no name", "row.names"]),
    "two of a name": ("a,time,a,event\n1,2,3,0\n", ["t.csv has two columns called 'a'"]),
    "same but for case": ("a,time,A,event\n1,2,3,0\n", ["t.csv has columns 'a' and 'A'", "case"]),
    "no time": ("a,event\n1,0\n", ["column of t.csv holds the end of follow-up", "'a', 'event'"]),
    "header only": ("a,time,event\n", ["t.csv has no rows"]),
    "infinite": ("a,time,event\n1,2,0\n-Inf,2,1\n", ["'a' of t.csv", "data row 2", "-inf"]),
    "negative time": ("a,time,event\n1,2,0\n1,-2,1\n", ["'time' of t.csv", "data row 2", "-2"]),
    "event 2": ("a,time,event\n1,2,0\n1,2,2\n", ["'event' of t.csv", "data row 2", "2", "`cause`"]),
    "no events": ("a,time,event\n1,2,0\n", ["'event' of t.csv has no events"]),
    "text": (
        "a,time,event\n1,x,0\n1,2,1\n",
        ["'time' of t.csv must be numeric", "1 of 2 rows holds text", "data row 1, value 'x'"],
    ),
    "dates": ("a,time,event\n2020-01-31,1,0\n", ["'a' of t.csv", "date", "count the days"]),
}


@pytest.mark.parametrize(("text", "words"), CSV_COMPLAINTS.values(), ids=CSV_COMPLAINTS)
def test_complaints_about_a_csv_file(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_dataset(write_text(tmp_path / "t.csv", text)).outcome()
    for word in words:
        assert word in str(caught.value)


def test_the_whole_file_decides_on_a_type(tmp_path: Path) -> None:
    """One number with decimals among thousands of whole ones."""
    whole = "".join(f"{i},{i % 2},{i % 7}\n" for i in range(1, 3001))
    path = write_text(tmp_path / "t.csv", f"time,event,x\n{whole}1,1,0.5\n{whole}")
    values = read_dataset(path).design.to_dense()[:, 0]
    assert values[3000] == 0.5
    assert_array_equal(values[:3000], [i % 7 for i in range(1, 3001)])


def test_codes_are_no_dates(tmp_path: Path) -> None:
    path = write_text(
        tmp_path / "t.csv", "time,event,x\n1,1,10-11-12\n2,0,01-02-03\n3,1,10-11-12\n"
    )
    assert read_dataset(path).design.names == ("x=01-02-03", "x=10-11-12")


def test_numbers_as_only_databases_write_them_are_text(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", "time,event,x\n1,1,0x1F\n2,0,0x20\n3,1,0x1F\n")
    assert read_dataset(path).design.names == ("x=0x1F", "x=0x20")


def test_names_of_columns_between_blanks(tmp_path: Path) -> None:
    path = write_text(tmp_path / "t.csv", "time, event ,c1\n1,1,5\n2,0,6\n")
    assert read_dataset(path, event="event").design.names == ("c1",)

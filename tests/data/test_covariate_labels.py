"""Tables of labels: how they are read, what they refuse, and where labels and references appear."""

import numpy as np
import pyarrow as pa
import pytest

import riskset as rs
from riskset import InputError
from riskset.data.covariate_labels import CovariateLabels

FRAME = pa.table(
    {
        "time": [5, 8, 2, 9, 4, 7],
        "event": [1, 0, 1, 1, 1, 0],
        "age": [61.0, 70.0, 55.0, 40.0, 66.0, 58.0],
        "cat1": ["CHF", "ARF", "COPD", "ARF", "CHF", "COPD"],
        "female": [0, 1, 0, 1, 1, 0],
    }
)
LABELS = """name,label,group,unit,reference
age,Age,Demographics,years,
cat1,Primary disease,Disease,,COPD
female,Female sex,Demographics,,
cat1=CHF,Heart failure,,,
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(LABELS)
    return path


def test_a_file_gives_labels_groups_units_and_the_reference(file) -> None:
    data = rs.Dataset.from_frame(FRAME, covariate_labels=file)
    names = data.design.names
    assert names == ("age", "cat1=COPD", "cat1=ARF", "cat1=CHF", "female")
    assert data.labels.texts(names) == (
        "Age, years",
        "Primary disease: COPD",
        "Primary disease: ARF",
        "Primary disease: Heart failure",
        "Female sex",
    )
    assert data.labels.entry("cat1=ARF").group == "Disease"


def test_summary_shows_labels_and_a_saved_fit_keeps_them(file, tmp_path) -> None:
    model = rs.Cox(rs.L2(1.0)).fit(rs.Dataset.from_frame(FRAME, covariate_labels=file))
    frame = model.summary()
    assert frame.loc["age", "label"] == "Age, years"
    model.save(tmp_path / "fit.json")
    again = rs.load(tmp_path / "fit.json").summary()
    assert again["label"].tolist() == frame["label"].tolist()


def test_a_fit_without_labels_has_no_column_of_them() -> None:
    assert "label" not in rs.Cox(rs.L2(1.0)).fit(rs.Dataset.from_frame(FRAME)).summary()


def test_a_frame_and_a_mapping_give_labels_as_a_file_does(file) -> None:
    frame = pa.table({"name": ["age"], "label": ["Age"], "unit": ["years"]})
    for source in (frame, frame.to_pandas(), {"age": "Age, years"}):
        data = rs.Dataset.from_frame(FRAME, covariate_labels=source)
        assert data.labels.text("age") == "Age, years"


def test_ids_of_a_long_table_and_covariate_ref_of_ohdsi() -> None:
    outcomes = pa.table({"rowId": [7, 8, 9], "time": [5, 8, 2], "y": [1, 0, 1]})
    entries = pa.table({"rowId": [7, 9, 9], "covariateId": [2**53, 2**53, 2**53 + 1]})
    ref = pa.table(
        {
            "covariateId": [2**53, 2**53 + 1, 12],
            "covariateName": ["diabetes", "gout", "nobody has it"],
            "analysisId": [1, 2, 3],
        }
    )
    data = rs.Dataset.from_long(outcomes, entries, covariate_labels=ref)
    assert data.labels.texts(data.design.names) == ("diabetes", "gout")
    (note,) = data.notes
    assert note.code == "unknown_labels"
    assert "1 label for covariates that nobody has (first: '12')" in note.message


def test_cohort_functions_use_labels_as_names_and_names_as_keys(file) -> None:
    data = rs.Dataset.from_frame(FRAME, covariate_labels=file)
    people = rs.cohort.Population([1, 0, 1, 0, 1, 0])
    found = rs.cohort.balance(data, people)
    assert found.names[3] == "Primary disease: Heart failure"
    assert found.keys[3] == "cat1=CHF"
    assert found.factors == (found.names[1:4],)


def test_equal_labels_get_their_keys() -> None:
    labels = CovariateLabels.read({"a": "x", "b": "x", "c": "y"})
    design = rs.Design.from_columns({n: np.array([0.0, 1.0]) for n in "abc"})
    assert labels.labelled(design).names == ("x [a]", "x [b]", "y")


def test_levels_may_contain_the_sign_of_equality() -> None:
    labels = CovariateLabels.read({"dose": "Dose", "a=b": "Odd"})
    assert labels.text("dose=x=1") == "Dose: x=1"
    assert labels.text("a=b=c") == "Odd: c"
    assert labels.text("dose=(missing)") == "Dose: missing"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,label\nagee,Age\n", r"labels.csv, data row 1, has a label for 'agee', which is not"),
        ("name,label\nagee,Age\n", r"did you mean 'age'\? Correct the name, or delete the row"),
        ("name,label\nage,A\nage,B\n", r"two rows for 'age': data row 1 and data row 2"),
        ("name,label\n,A\nage,B\n", r"labels.csv has no name in data row 1"),
        ("name,lable\nage,A\n", r"a column 'lable', whose meaning is not known"),
        ("label,unit\nA,B\n", r"no column `name`"),
        ("name,id,label\nage,age,B\n", r"two columns of names: 'name' and 'id'"),
        (
            "name,label,reference\nage,Age,\ncat1,Disease,XXX\n",
            r"data row 2, gives 'cat1' the reference level 'XXX', which column 'cat1' does not",
        ),
        ("name,reference\ncat1=CHF,ARF\n", r"gives 'cat1=CHF' the .* it is itself a level"),
        ("name,reference\nage,61\n", r"gives 'age' the reference level '61', but it holds numbers"),
    ],
)
def test_mistakes_name_file_row_and_value(tmp_path, text, words) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        rs.Dataset.from_frame(FRAME, covariate_labels=path)


def test_contradicting_references_are_refused(file) -> None:
    with pytest.raises(InputError, match=r"data row 2, gives column 'cat1' the reference level"):
        rs.Dataset.from_frame(FRAME, covariate_labels=file, reference={"cat1": "ARF"})
    same = rs.Dataset.from_frame(FRAME, covariate_labels=file, reference={"cat1": "COPD"})
    assert same.design.names[1] == "cat1=COPD"

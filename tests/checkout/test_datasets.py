"""What `experiments.datasets` promises: finding, checking and reading the paper's data files."""

from __future__ import annotations

import dataclasses
import hashlib
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from experiments import datasets

from places import SHARED

THURSDAY = "Thursday-01-03-2018_processed.csv"

# name: (rows, features, true outliers; None for classes)
EXPECTED: dict[str, tuple[int, int, int | None]] = {
    "PageBlock": (5473, 10, 560),
    "Pendigits": (6870, 16, 156),
    "Shuttle": (49097, 9, 3511),
    "Pima": (768, 8, 268),
    "Mammography": (11183, 6, 260),
    "Satimage-2": (5803, 36, 71),
    "Satellite": (6435, 36, 2036),
    "SpamBase": (4207, 57, 1679),
    "Cover": (286048, 10, 2747),
    "WineQuality": (4898, 11, None),
}

WINE = b'"fixed acidity";"pH";"quality"\n7;3;6\n6.3;3.3;5\n8.1;3.26;9\n'


class QuietHandler(SimpleHTTPRequestHandler):
    """A file server that keeps its log out of the test output."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the user's folders, cache or proxy."""
    monkeypatch.delenv("STAIR_DATA", raising=False)
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The folder that downloads go to."""
    return tmp_path / "cache" / "stair" / "datasets"


@pytest.fixture
def small_wine(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Pin WineQuality to a file of three rows, so that the tests need no real data."""
    spec = dataclasses.replace(
        datasets._SPECS["WineQuality"], sha256=hashlib.sha256(WINE).hexdigest()
    )
    monkeypatch.setitem(datasets._SPECS, "WineQuality", spec)
    return WINE


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that a real local web server publishes as the home of the files."""
    folder = tmp_path / "published"
    folder.mkdir()
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(datasets, "BASE_URL", f"http://127.0.0.1:{server.server_port}/")
        try:
            yield folder
        finally:
            server.shutdown()
            thread.join()


def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any attempt to download fail the test."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a download was attempted")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


def files_below(folder: Path) -> list[Path]:
    """All files in the folder and its sub folders, hidden ones too."""
    return [path for path in folder.rglob("*") if path.is_file()]


def write_thursday(folder: Path, text: str) -> None:
    """Put a small file in the place of the large one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / THURSDAY).write_text(text, encoding="utf-8")


# --- the real files ---------------------------------------------------------------------------


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the real data files are not in {SHARED}")
@pytest.mark.parametrize("name", datasets.names())
def test_real_files_have_the_known_shapes(name: str) -> None:
    """Each published file loads with its known numbers of rows, features and outliers."""
    if name == "Thursday-01-03":
        if not (SHARED / THURSDAY).is_file():
            pytest.skip(f"{THURSDAY} is not in {SHARED}")
        data = datasets.load(name, SHARED)
        assert set(np.unique(data.y)) == {0, 1}
        return
    rows, features, outliers = EXPECTED[name]
    data = datasets.load(name, SHARED)
    assert data.name == name
    assert data.X.shape == (rows, features)
    assert data.X.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert data.y.shape == (rows,)
    assert data.y.dtype == np.int64
    assert len(set(data.feature_names)) == features
    assert (SHARED / data.source).is_file()
    if outliers is None:
        assert data.is_multiclass
        assert np.unique(data.y).tolist() == [3, 4, 5, 6, 7, 8, 9]
        assert data.feature_names[0] == "fixed acidity"
    else:
        assert not data.is_multiclass
        assert data.n_outliers == outliers
        assert data.feature_names[0] == ("att1" if data.source.endswith(".arff") else "x1")
        assert not {"id", "outlier"} & set(data.feature_names)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the real data files are not in {SHARED}")
def test_pinned_sums_are_the_published_ones() -> None:
    """The sums in the module are those of the SHA256SUMS file beside the data, one for one."""
    lines = (SHARED / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    published = {name: digest for digest, name in (line.split() for line in lines)}
    pinned = {spec.filename: spec.sha256 for spec in datasets._SPECS.values() if spec.sha256}
    assert pinned == published


# --- names ------------------------------------------------------------------------------------


def test_there_are_eleven_names() -> None:
    """All eleven data sets of the paper are listed, each once."""
    assert set(datasets.names()) == {*EXPECTED, "Thursday-01-03"}
    assert len(datasets.names()) == 11


@pytest.mark.parametrize(
    "spelling", ["WineQuality", "winequality", "WINE QUALITY", "wine_quality", "Wine-Quality"]
)
def test_spelling_of_a_name_is_forgiven(spelling: str, small_wine: bytes, tmp_path: Path) -> None:
    """Case, spaces, hyphens and underscores do not matter, and the canonical name comes back."""
    (tmp_path / "winequality-white.csv").write_bytes(small_wine)
    assert datasets.load(spelling, tmp_path).name == "WineQuality"


def test_unknown_name_gets_the_nearest_and_the_list() -> None:
    """A misspelt name is answered with what was probably meant and with all that there is."""
    with pytest.raises(ValueError, match=r"'pimma' \(did you mean Pima\?\)") as caught:
        datasets.load("pimma")
    assert all(name in str(caught.value) for name in datasets.names())


def test_unknown_name_like_nothing_gets_the_list() -> None:
    """A name that resembles no data set gets the list without a far-fetched guess."""
    with pytest.raises(ValueError, match="Unknown data set 'qqq'; choose one of PageBlock"):
        datasets.load("qqq")


# --- folders ----------------------------------------------------------------------------------


def test_missing_file_in_data_dir_is_an_error_and_no_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that the user names is never filled: the error says which file belongs there."""
    no_network(monkeypatch)
    with pytest.raises(datasets.DataNotFound, match="the folder named by data_dir") as caught:
        datasets.load("Pima", tmp_path)
    assert isinstance(caught.value, FileNotFoundError)
    assert "Pima_withoutdupl_norm_35.arff" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert files_below(tmp_path) == []


def test_missing_file_in_stair_data_is_an_error_and_no_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STAIR_DATA follows the rule of data_dir, and the error says that it named the folder."""
    no_network(monkeypatch)
    monkeypatch.setenv("STAIR_DATA", str(tmp_path))
    with pytest.raises(datasets.DataNotFound, match="the folder named by STAIR_DATA"):
        datasets.load("Pima")


def test_data_dir_goes_before_stair_data_goes_before_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the three places the most explicit one wins, and only that one is looked at."""
    for value, folder in enumerate((tmp_path / "argument", tmp_path / "variable", cache)):
        write_thursday(folder, f"a,Label\n{value},0\n")
    assert datasets.load("Thursday-01-03").X[0, 0] == 2
    monkeypatch.setenv("STAIR_DATA", str(tmp_path / "variable"))
    assert datasets.load("Thursday-01-03").X[0, 0] == 1
    assert datasets.load("Thursday-01-03", str(tmp_path / "argument")).X[0, 0] == 0


def test_wrong_checksum_on_disk(tmp_path: Path, small_wine: bytes) -> None:
    """A changed file is refused with both sums and the address of the right file."""
    changed = small_wine + b"1;1;5\n"
    (tmp_path / "winequality-white.csv").write_bytes(changed)
    with pytest.raises(datasets.DataCorrupted) as caught:
        datasets.load("WineQuality", tmp_path)
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert hashlib.sha256(small_wine).hexdigest() in message
    assert hashlib.sha256(changed).hexdigest() in message
    assert f"replace it with the file from {datasets.BASE_URL}winequality-white.csv" in message


def test_wrong_checksum_in_the_cache(
    cache: Path, small_wine: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed file in the cache is refused too, with the way to get it anew."""
    no_network(monkeypatch)
    cache.mkdir(parents=True)
    (cache / "winequality-white.csv").write_bytes(small_wine[:-1])
    with pytest.raises(datasets.DataCorrupted, match="delete it and it will be downloaded again"):
        datasets.load("WineQuality")


@pytest.mark.skipif(sys.platform == "win32", reason="XDG folders are not a Windows thing")
@pytest.mark.parametrize("value", [None, "", "relative/folder"])
def test_cache_falls_back_to_the_home_folder(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a usable XDG_CACHE_HOME the cache is ~/.cache, never the working directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    if value is None:
        monkeypatch.delenv("XDG_CACHE_HOME")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert datasets._cache_dir() == tmp_path / ".cache" / "stair" / "datasets"


def test_cache_on_windows_is_local_app_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows the cache lies where the system keeps local application data."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert datasets._cache_dir() == tmp_path / "local" / "stair" / "datasets"


# --- download ---------------------------------------------------------------------------------


def test_missing_file_is_downloaded_once(
    published: Path, cache: Path, small_wine: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache is filled on first use with just the file, and the second use needs no network."""
    (published / "winequality-white.csv").write_bytes(small_wine)
    data = datasets.load("WineQuality")
    assert data.X.tolist() == [[7, 3], [6.3, 3.3], [8.1, 3.26]]
    assert data.y.tolist() == [6, 5, 9]
    assert data.feature_names == ("fixed acidity", "pH")
    assert files_below(cache) == [cache / "winequality-white.csv"]
    no_network(monkeypatch)
    assert datasets.load("WineQuality").y.tolist() == [6, 5, 9]


def test_corrupted_download_leaves_nothing_behind(
    published: Path, tmp_path: Path, small_wine: bytes
) -> None:
    """A download with another sum is named as such and is not kept, not even in part."""
    (published / "winequality-white.csv").write_bytes(small_wine[:-3])
    with pytest.raises(datasets.DataCorrupted, match="was thrown away") as caught:
        datasets.load("WineQuality")
    assert hashlib.sha256(small_wine).hexdigest() in str(caught.value)
    assert hashlib.sha256(small_wine[:-3]).hexdigest() in str(caught.value)
    assert files_below(tmp_path / "cache") == []


def test_file_gone_from_its_home(published: Path, tmp_path: Path) -> None:
    """A file that the server does not have is an error with the server's answer."""
    assert files_below(published) == []
    with pytest.raises(datasets.DataNotFound, match=r"404.*pass that folder as data_dir= or set"):
        datasets.load("Pima")
    assert files_below(tmp_path / "cache") == []


def test_unreachable_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without network one sentence says what was fetched, why it failed and what to do."""
    with socket.socket() as taken:  # bound but not listening: nobody else can answer on this port
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(datasets, "BASE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}/")
        with pytest.raises(datasets.DataNotFound) as caught:
            datasets.load("Pima")
    message = str(caught.value)
    assert f"{datasets.BASE_URL}Pima_withoutdupl_norm_35.arff" in message
    assert "refused" in message
    assert "urlopen error" not in message
    assert "pass that folder as data_dir= or set STAIR_DATA to it." in message
    assert files_below(tmp_path / "cache") == []


def test_connection_lost_halfway(
    published: Path, tmp_path: Path, small_wine: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transfer that breaks off is a network failure, told as one, and leaves nothing behind."""

    def half_an_answer(handler: QuietHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(small_wine)))
        handler.end_headers()
        handler.wfile.write(small_wine[:10])

    monkeypatch.setattr(QuietHandler, "do_GET", half_an_answer)
    assert published.is_dir()
    with pytest.raises(datasets.DataNotFound, match=r"Could not download winequality-white\.csv"):
        datasets.load("WineQuality")
    assert files_below(tmp_path / "cache") == []


def test_failed_move_leaves_nothing_behind(
    published: Path, tmp_path: Path, small_wine: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the checked file cannot be moved into place, its temporary copy goes as well."""

    def full_disk(_self: Path, _target: Path) -> Path:
        raise OSError("no space left")

    (published / "winequality-white.csv").write_bytes(small_wine)
    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(datasets.DataNotFound, match=r"could not be kept in .*no space left"):
        datasets.load("WineQuality")
    assert files_below(tmp_path / "cache") == []


# --- Thursday-01-03 ---------------------------------------------------------------------------


@pytest.mark.parametrize("with_data_dir", [True, False])
def test_thursday_is_never_downloaded(
    with_data_dir: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The large file has no public home to pin: the error says where it comes from."""
    no_network(monkeypatch)
    with pytest.raises(datasets.DataNotFound, match="CSE-CIC-IDS2018, Thursday 1 March 2018") as e:
        datasets.load("Thursday-01-03", tmp_path if with_data_dir else None)
    assert THURSDAY in str(e.value)
    assert "pass that folder as data_dir= or set STAIR_DATA to it" in str(e.value)


def test_thursday_labels_may_be_words_or_numbers(tmp_path: Path) -> None:
    """0 and Benign in any case are inliers, everything else is an outlier."""
    labels = ["0", "Benign", "BENIGN", "0.0", '"benign"', "1", "Infilteration", "2.0", " benign "]
    rows = [f"{i},{i}.5,{label}" for i, label in enumerate(labels)]
    write_thursday(tmp_path, "\ufeffDst Port,Flow Duration,Label\r\n" + "\r\n".join(rows) + "\r\n")
    data = datasets.load("thursday 01 03", tmp_path)
    assert data.y.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 0]
    assert data.n_outliers == 3
    assert not data.is_multiclass
    assert data.feature_names == ("Dst Port", "Flow Duration")
    assert data.X.tolist() == [[i, i + 0.5] for i in range(9)]
    assert data.source == THURSDAY


def test_thursday_with_one_row(tmp_path: Path) -> None:
    """A single row is a table too."""
    write_thursday(tmp_path, "a,b,Label\n1,2,1\n")
    assert datasets.load("Thursday-01-03", tmp_path).X.shape == (1, 2)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no header"),
        ("Label\n0\n", "no header"),
        ("a,b,Label\n", "no rows"),
        ("a,b,Label\n1,tcp,0\n", "not a table of numbers"),
        ("a,b,Label\n1,2,0\n1,2\n", "not a table of numbers"),
        ("a,b,Label\n1,2,0,0\n", "3 names in its header but 4 columns"),
        ("a,b,Label\n1,2,\n", "not a table of numbers"),
        ("a,b,Label\n1,NaN,0\n2,3,1\n", r"missing or infinite values in the column\(s\) b\."),
        ("a,b,Label\nInfinity,1,0\n2,3,1\n", r"missing or infinite values in the column\(s\) a\."),
    ],
)
def test_thursday_malformed(tmp_path: Path, text: str, complaint: str) -> None:
    """A file that is not such a table is refused with its path and what is wrong with it."""
    write_thursday(tmp_path, text)
    with pytest.raises(datasets.DataCorrupted, match=complaint) as caught:
        datasets.load("Thursday-01-03", tmp_path)
    assert str(tmp_path / THURSDAY) in str(caught.value)


# --- Dataset ----------------------------------------------------------------------------------


def test_dataset_is_frozen_and_prints_short(tmp_path: Path) -> None:
    """A data set cannot be swapped under its users, and printing it does not flood the screen."""
    write_thursday(tmp_path, "a,b,Label\n1,2,1\n")
    data = datasets.load("Thursday-01-03", tmp_path)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"  # type: ignore[misc]
    assert repr(data) == f"Dataset(name='Thursday-01-03', source='{THURSDAY}')"


def test_classes_have_no_number_of_outliers(tmp_path: Path, small_wine: bytes) -> None:
    """Asking multi-class data for its outliers is an error and not a made-up number."""
    (tmp_path / "winequality-white.csv").write_bytes(small_wine)
    data = datasets.load("WineQuality", tmp_path)
    assert data.is_multiclass
    with pytest.raises(ValueError, match="WineQuality has classes as labels"):
        _ = data.n_outliers


# --- lof_labels -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_outliers", [1, 7, 40, 119])
def test_lof_labels_exactly_as_many_as_asked(n_outliers: int) -> None:
    """Without ties just as many rows are labelled as outliers as were asked for."""
    X = np.random.default_rng(0).normal(size=(120, 3))
    labels = datasets.lof_labels(X, n_outliers, n_neighbors=20)
    assert labels.dtype == np.int64
    assert labels.shape == (120,)
    assert set(np.unique(labels)) == {0, 1}
    assert labels.sum() == n_outliers


def test_lof_labels_follow_the_scores() -> None:
    """The labelled rows are those with the highest local outlier factor."""
    from sklearn.neighbors import LocalOutlierFactor

    X = np.random.default_rng(1).normal(size=(200, 2))
    scores = -LocalOutlierFactor(n_neighbors=80).fit(X).negative_outlier_factor_
    labels = datasets.lof_labels(X, 15)
    assert scores[labels == 1].min() > scores[labels == 0].max()


def test_lof_labels_find_a_planted_outlier() -> None:
    """A row far away from all the others is the first to be labelled."""
    X = np.random.default_rng(2).normal(size=(100, 2))
    X[42] = (50.0, 50.0)
    assert np.flatnonzero(datasets.lof_labels(X, 1, n_neighbors=10)).tolist() == [42]


def test_lof_labels_with_ties_are_never_too_many() -> None:
    """Rows that share the threshold score stay inliers, so ties give fewer and never more."""
    X = np.random.default_rng(5).normal(size=(60, 2))
    X[10] = X[20] = (50.0, 50.0)  # equal rows have equal scores
    assert np.flatnonzero(datasets.lof_labels(X, 2, n_neighbors=10)).tolist() == [10, 20]
    assert datasets.lof_labels(X, 1, n_neighbors=10).sum() == 0


@pytest.mark.parametrize("n_outliers", [-1, 0, 30, 31])
def test_lof_labels_refuse_an_impossible_count(n_outliers: int) -> None:
    """No outliers, or nothing but outliers, is no labelling, and the error names the range."""
    X = np.random.default_rng(3).normal(size=(30, 2))
    with pytest.raises(ValueError, match=rf"less than the number of rows \(30\).*{n_outliers}\."):
        datasets.lof_labels(X, n_outliers, n_neighbors=5)


@pytest.mark.parametrize("n_neighbors", [0, 30, 80])
def test_lof_labels_refuse_too_many_neighbors(n_neighbors: int) -> None:
    """More neighbours than there are other rows is an error and not a silent cut."""
    X = np.random.default_rng(4).normal(size=(30, 2))
    with pytest.raises(ValueError, match=rf"n_neighbors must be .* it is {n_neighbors}\."):
        datasets.lof_labels(X, 3, n_neighbors=n_neighbors)


def test_lof_labels_refuse_a_flat_array() -> None:
    """One column must be given as a column, because a flat array could be a row as well."""
    with pytest.raises(ValueError, match="rows and columns"):
        datasets.lof_labels(np.arange(10.0), 2, n_neighbors=3)

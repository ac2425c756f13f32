"""The eleven data sets of the paper "Interpretable Outlier Summarization".

The files are not part of the package: they belong to their publishers and some are large. This
module finds them in a folder that the user names or in a per-user cache, which it fills from their
public home on first use. Every file is checked against a pinned SHA-256 sum before a single number
of it is used, so that a result never rests on a damaged or silently changed file.

scipy and scikit-learn are imported by the functions that use them, because they are slow to load.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import http.client
import io
import operator
import os
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from experiments import traffic

__all__ = [
    "BASE_URL",
    "DataCorrupted",
    "DataNotFound",
    "Dataset",
    "load",
    "load_traffic",
    "lof_labels",
    "names",
]

BASE_URL = "https://github.com/baodaBBji/anonymous-Tech-Report/raw/main/data/"
"""The public home of the files, as the paper's authors published them beside their code."""

_TIMEOUT_SECONDS = 30.0

_Parsed = tuple[NDArray[np.float64], NDArray[np.int64], tuple[str, ...]]


class DataNotFound(FileNotFoundError):  # noqa: N818 - reads as a sentence
    """A data file is neither on disk nor obtainable; the message says what to do about it."""


class DataCorrupted(ValueError):  # noqa: N818 - reads as a sentence
    """A data file is there but is not what it should be, so nothing of it is used."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """One data set with its true labels.

    Two data sets compare by identity: comparing arrays element by element has no single truth
    value, and nobody should pay for it by accident.
    """

    name: str
    """The canonical name, as `names()` lists it."""
    X: NDArray[np.float64] = field(repr=False)
    """The features, one row for each object."""
    y: NDArray[np.int64] = field(repr=False)
    """The true labels: 1 = outlier and 0 = inlier, or the class for multi-class data."""
    feature_names: tuple[str, ...] = field(repr=False)
    """One name for each column of X: from the file, or x1, x2, ... if the file has none."""
    source: str
    """The name of the file that the data came from."""

    @property
    def is_multiclass(self) -> bool:
        """Whether the labels are classes and not just inlier (0) or outlier (1)."""
        return bool(np.any((self.y != 0) & (self.y != 1)))

    @property
    def n_outliers(self) -> int:
        """How many rows are true outliers.

        Classes have no outlier count, and a number made up for them would be wrong in silence, so
        multi-class data raises ValueError.
        """
        if self.is_multiclass:
            raise ValueError(
                f"{self.name} has classes as labels and not inliers and outliers, "
                "so it has no number of outliers."
            )
        return int(np.count_nonzero(self.y))


@dataclass(frozen=True)
class _Spec:
    """What is known about one data set before its file is opened."""

    name: str
    filename: str
    sha256: str | None
    """The pinned sum, or None for a file that is not published where it could be pinned."""


_SPECS: dict[str, _Spec] = {
    spec.name: spec
    for spec in (
        _Spec(
            "PageBlock",
            "PageBlocks_norm_10.arff",
            "83d86b260b36bb631246eb83806f6ec656a6f28c7aa4e49a8ed3ab436a5a6c59",
        ),
        _Spec(
            "Pendigits",
            "pendigits.mat",
            "7bc32ac83b3d583443acea8b1342a54aaa59eaedb9996af405322f473f3c22bc",
        ),
        _Spec(
            "Shuttle",
            "shuttle.mat",
            "b6e396c92354d5dcf5036901e36dc58e2913f2d1a5e138c35a2bedf9c69db899",
        ),
        _Spec(
            "Pima",
            "Pima_withoutdupl_norm_35.arff",
            "f80fc94f318ebe7427af36b7c79b9c7a0705639124a49a1d704273454a35b742",
        ),
        _Spec(
            "Mammography",
            "mammography.mat",
            "271ebb568314a856666d3504b4882e21b0ea6e1ba9e648ad256d572a36df597e",
        ),
        _Spec(
            "Satimage-2",
            "satimage-2.mat",
            "95c37a07cea2cb201f6900d14f521510e10b6b2f0074c06ac46d3157440ec67b",
        ),
        _Spec(
            "Satellite",
            "satellite.mat",
            "6feac3112b9c14e1c3e60afc437f2f3d29dc1000119c9f950c628078778d6aa0",
        ),
        _Spec(
            "SpamBase",
            "SpamBase_withoutdupl_norm_40.arff",
            "6a55b86858a2c3ab193fbcb3cf3bc01e386a85e0bbc0759c44fefb35ba0c008e",
        ),
        _Spec(
            "Cover",
            "cover.mat",
            "39acf6da4d31f08c2c28dc047249d8cd8ccd9d6fc299d9b5a08874ac92290c98",
        ),
        _Spec("Thursday-01-03", "Thursday-01-03-2018_processed.csv", None),
        _Spec(
            "WineQuality",
            "winequality-white.csv",
            "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836",
        ),
    )
}


def names() -> tuple[str, ...]:
    """The canonical names of the data sets, always in the same order."""
    return tuple(_SPECS)


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Load one data set by name; case, spaces, hyphens and underscores do not matter.

    The file is looked for in `data_dir` if given, else in the folder that the environment variable
    STAIR_DATA names, else in a per-user cache. Only the cache is ever written to: a folder that the
    user named is taken as it is, so a missing file there is an error and not a download.

    Raises ValueError for an unknown name, DataNotFound if the file cannot be had and DataCorrupted
    if it is not the file it should be.
    """
    spec = _spec(name)
    path, in_cache = _locate(spec, data_dir)
    X, y, feature_names = _read(spec, path, in_cache)
    return Dataset(spec.name, X, y, feature_names, spec.filename)


def load_traffic(path: str | os.PathLike[str]) -> Dataset:
    """Thursday-01-03 from a file: the public CSV of CSE-CIC-IDS2018, or the authors' own of it."""
    spec, file = _SPECS["Thursday-01-03"], Path(path).expanduser()
    if not file.is_file():
        raise DataNotFound(f"There is no file {file} to read the data set {spec.name} from.")
    X, y, feature_names = _read(spec, file, in_cache=False)
    return Dataset(spec.name, X, y, feature_names, file.name)


def lof_labels(
    X: ArrayLike, n_outliers: int, n_neighbors: int = 80, n_jobs: int | None = None
) -> NDArray[np.int64]:
    """Label the rows of X by the paper's protocol: 1 for the outliers that LOF finds, else 0.

    The paper explains what a detector reports and not the ground truth, so its labels come from
    the local outlier factor. The score at position `n_outliers` in descending order (counted from
    0) is the threshold, and a row is an outlier if its score is strictly above it. Without ties at
    the threshold exactly `n_outliers` rows are labelled; with ties there are fewer, never more.
    """
    data = np.asarray(X, dtype=np.float64)
    if data.ndim != 2:
        raise ValueError(f"X must have rows and columns, but it has {data.ndim} dimension(s).")
    n_rows = len(data)
    position = operator.index(n_outliers)
    if not 1 <= position < n_rows:
        raise ValueError(
            f"n_outliers must be at least 1 and less than the number of rows ({n_rows}), "
            f"but it is {position}."
        )
    if not 1 <= n_neighbors < n_rows:
        raise ValueError(
            f"n_neighbors must be at least 1 and less than the number of rows ({n_rows}), "
            f"but it is {n_neighbors}."
        )

    from sklearn.neighbors import LocalOutlierFactor

    detector = LocalOutlierFactor(n_neighbors=n_neighbors, n_jobs=n_jobs).fit(data)
    scores: NDArray[np.float64] = -detector.negative_outlier_factor_
    threshold = np.sort(scores)[::-1][position]
    labels: NDArray[np.int64] = (scores > threshold).astype(np.int64)
    return labels


def _key(name: str) -> str:
    """The form in which names are compared, so that "page block" finds PageBlock."""
    return "".join(c for c in name.casefold() if c not in " -_")


def _spec(name: str) -> _Spec:
    """The data set of that name, or an error that helps with a misspelt one."""
    by_key = {_key(spec.name): spec for spec in _SPECS.values()}
    key = _key(name)
    if key in by_key:
        return by_key[key]
    near = [by_key[match].name for match in difflib.get_close_matches(key, by_key)]
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise ValueError(f"Unknown data set {name!r}{hint}; choose one of {', '.join(names())}.")


def _cache_dir() -> Path:
    """The per-user folder for downloads, where the platform expects such files.

    A relative XDG_CACHE_HOME is ignored, as the XDG specification asks: the cache would otherwise
    move with the working directory.
    """
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    base = Path(os.environ.get(variable, ""))
    if not base.is_absolute():
        try:
            home = Path.home()
        except RuntimeError as error:
            raise DataNotFound(
                "There is no home folder to keep downloaded data in; "
                "pass data_dir= or set STAIR_DATA to the folder that holds the files."
            ) from error
        base = home / "AppData" / "Local" if sys.platform == "win32" else home / ".cache"
    return base / "stair" / "datasets"


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> tuple[Path, str]:
    """Where files are looked for, and what names the folder; nothing does for the cache."""
    environment = os.environ.get("STAIR_DATA")
    if data_dir is not None:
        return Path(data_dir).expanduser(), "data_dir"
    if environment:
        return Path(environment).expanduser(), "STAIR_DATA"
    return _cache_dir(), ""


def _locate(spec: _Spec, data_dir: str | os.PathLike[str] | None) -> tuple[Path, bool]:
    """The path of the file, which exists, and whether it lies in the cache."""
    folder, named_by = data_folder(data_dir)
    path = folder / spec.filename
    if path.is_file():
        return path, not named_by
    if spec.sha256 is None and (folder / traffic.FILENAME).is_file():
        return folder / traffic.FILENAME, not named_by
    if spec.sha256 is None:
        raise DataNotFound(
            f"{spec.filename} (data set {spec.name}) was expected in {folder} and is not "
            f"downloaded for you: get {traffic.FILENAME} of CSE-CIC-IDS2018, Thursday 1 March 2018 "
            "(https://www.unb.ca/cic/datasets/ids-2018.html), or make a CSV file of it with a "
            "header, numbers only and the label as the last column, put it into a folder and pass "
            "that folder as data_dir= or set STAIR_DATA to it."
        )
    if named_by:
        raise DataNotFound(
            f"{spec.filename} (data set {spec.name}) was expected in {folder}, the folder named "
            f"by {named_by}, but is not there; it is published at {BASE_URL}{spec.filename}."
        )
    _download(spec, path, spec.sha256)
    return path, True


def _download(spec: _Spec, path: Path, expected: str) -> None:
    """Fetch the file of `spec` to `path`, or leave nothing behind.

    The largest file has three megabytes, so the whole body is held in memory and checked before
    anything is written; the move into place is atomic, so no other process sees half a file.
    """
    url = BASE_URL + spec.filename
    remedy = "put the file into a folder and pass that folder as data_dir= or set STAIR_DATA to it"
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
            body: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:
        reason: object = error
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        elif isinstance(error, urllib.error.URLError):
            reason = error.reason  # without the "<urlopen error ...>" around it
        raise DataNotFound(
            f"Could not download {spec.filename} (data set {spec.name}) from {url}: "
            f"{reason}; {remedy}."
        ) from error
    got = hashlib.sha256(body).hexdigest()
    if got != expected:
        raise DataCorrupted(
            f"The download of {spec.filename} (data set {spec.name}) from {url} is not the "
            f"expected file and was thrown away (SHA-256 expected {expected}, got {got}); "
            f"try again, or {remedy}."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(path, body)
    except OSError as error:
        raise DataNotFound(
            f"{spec.filename} (data set {spec.name}) was downloaded but could not be kept in "
            f"{path.parent}: {error}; make that folder writable, or {remedy}."
        ) from error


def _write_atomically(path: Path, body: bytes) -> None:
    """Put `body` at `path` all at once; an interruption leaves no file, not half a file."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _read(spec: _Spec, path: Path, in_cache: bool) -> _Parsed:
    """Check the file and parse it.

    The bytes that were checked are the bytes that are parsed, so the file cannot change between.
    """
    if spec.sha256 is None:
        if traffic.is_public(path):
            try:
                return traffic.read_public(path)
            except ValueError as error:
                raise DataCorrupted(f"{path} is not a day of CSE-CIC-IDS2018: {error}") from error
        # utf-8-sig: spreadsheets put a byte order mark before the first column's name.
        with path.open(encoding="utf-8-sig", newline="") as text:
            return _parse_csv(text, ",", _traffic_label, path)
    body = path.read_bytes()
    got = hashlib.sha256(body).hexdigest()
    if got != spec.sha256:
        remedy = (
            "delete it and it will be downloaded again"
            if in_cache
            else f"replace it with the file from {BASE_URL}{spec.filename}"
        )
        raise DataCorrupted(
            f"{path} is not the expected file of data set {spec.name} "
            f"(SHA-256 expected {spec.sha256}, got {got}); {remedy}."
        )
    if path.suffix == ".mat":
        return _parse_mat(body)
    if path.suffix == ".arff":
        return _parse_arff(body)
    return _parse_csv(io.StringIO(body.decode("utf-8")), ";", float, path)


def _parse_mat(body: bytes) -> _Parsed:
    """An ODDS file: a MATLAB file with the features X and the labels y."""
    from scipy.io import loadmat

    content = loadmat(io.BytesIO(body))
    X = np.ascontiguousarray(content["X"], dtype=np.float64)
    y = content["y"].ravel().astype(np.int64)
    return X, y, tuple(f"x{i}" for i in range(1, X.shape[1] + 1))


def _parse_arff(body: bytes) -> _Parsed:
    """A DAMI file: the column `outlier` is the label; `id` only numbers the rows, so it goes."""
    from scipy.io import arff

    rows, meta = arff.loadarff(io.StringIO(body.decode("utf-8")))
    features = tuple(str(column) for column in meta.names() if column not in ("id", "outlier"))
    X = np.column_stack([rows[column] for column in features]).astype(np.float64)
    return X, (rows["outlier"] == b"yes").astype(np.int64), features


def _parse_csv(text: TextIO, delimiter: str, label: Callable[[str], float], path: Path) -> _Parsed:
    """A CSV file with a header, numbers and the label as the last column.

    Missing and infinite values are refused here, where the file can still be named, because no
    detector or tree further on can use them.
    """
    header = next(csv.reader([text.readline()], delimiter=delimiter), [])
    if len(header) < 2:
        raise DataCorrupted(
            f"{path} has no header with at least one feature and, as the last column, the label."
        )
    try:
        with warnings.catch_warnings():
            # numpy warns about a table without rows; that is an error below.
            warnings.filterwarnings("ignore", message=".*input contained no data")
            table: NDArray[np.float64] = np.loadtxt(
                text,
                dtype=np.float64,
                comments=None,
                delimiter=delimiter,
                converters={len(header) - 1: label},
                ndmin=2,
                encoding="utf-8",
                quotechar='"',
            )
    except ValueError as error:
        raise DataCorrupted(
            f"{path} is not a table of numbers with the label as the last column: {error}"
        ) from error
    if table.size == 0:
        raise DataCorrupted(f"{path} has a header but no rows.")
    if table.shape[1] != len(header):
        raise DataCorrupted(
            f"{path} has {len(header)} names in its header but {table.shape[1]} columns."
        )
    # A column `id` only numbers the rows, so it goes.
    kept = [i for i, column in enumerate(header[:-1]) if column.strip().casefold() != "id"]
    feature_names = tuple(header[i].strip() for i in kept)
    X = np.ascontiguousarray(table[:, kept])
    bad = np.flatnonzero(~np.all(np.isfinite(X), axis=0))
    if bad.size:
        columns = ", ".join(feature_names[i] for i in bad)
        raise DataCorrupted(f"{path} has missing or infinite values in the column(s) {columns}.")
    return X, table[:, -1].astype(np.int64), feature_names


def _traffic_label(text: str) -> float:
    """0 for benign traffic, 1 for any attack, whether the label is a number or a word.

    An empty label is refused: it is a gap in the file and not a kind of attack.
    """
    label = text.strip().casefold()
    if not label:
        raise ValueError("the label is empty")
    if label == "benign":
        return 0.0
    try:
        return 0.0 if float(label) == 0 else 1.0
    except ValueError:
        return 1.0

"""Where rows come from, and how their times are read."""

from __future__ import annotations

from dataclasses import dataclass

from stair.data.zones import zone_named


@dataclass(frozen=True, eq=False)
class Source:
    """A table with what there is to say about it.

    Parameters
    ----------
    data : DataFrame, Arrow table, array, dict of columns or path
        The rows, as `summarize` takes them.
    table, query : str, optional
        Of a database file, what to read.
    name : str, optional
        What to call the data in the output; the file's name by default.
    time_parts : bool
        Whether the hour and the weekday of a time are attributes of their own, where they change.
    time_zone : str, optional
        The zone of these hours and weekdays, such as "Europe/Berlin" or "+02:00", for times that
        have a zone; by default it is the zone of the data. Times without one are as written.
    """

    data: object
    table: str | None = None
    query: str | None = None
    name: str | None = None
    time_parts: bool = True
    time_zone: str | None = None

    def __post_init__(self) -> None:
        if self.time_zone is not None:
            object.__setattr__(self, "time_zone", zone_named(self.time_zone))

    @classmethod
    def of(cls, data: object) -> Source:
        """What is given as data: a source, or a table of which nothing more is said."""
        return data if isinstance(data, Source) else cls(data)

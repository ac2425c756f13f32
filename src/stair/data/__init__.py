"""Tables in and files out: one plain form for whatever a person hands over.

Everything that is read becomes a `Frame`: named numpy columns of five kinds only, so that the
rest of the package never asks where a table came from. Files are data and nothing else: no
reader here can run code that a file brings along, and a file that cannot be read in full is
refused in one sentence, because half a table gives wrong rules without anybody noticing.

pandas, pyarrow, duckdb and openpyxl are optional. They are imported where they are used.
"""

from stair.data.arrays import named
from stair.data.copying import write_with
from stair.data.frame import Frame
from stair.data.many import below, column_names, is_many, read
from stair.data.objects import from_object
from stair.data.reading import is_text_file
from stair.data.values import codes_of
from stair.data.writing import atomic_write, write_table, written_as

__all__ = [
    "Frame",
    "atomic_write",
    "below",
    "codes_of",
    "column_names",
    "from_object",
    "is_many",
    "is_text_file",
    "named",
    "read",
    "write_table",
    "write_with",
    "written_as",
]

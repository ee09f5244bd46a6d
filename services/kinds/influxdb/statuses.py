"""The field that switches tasks, checks, endpoints and rules on and off."""

from services.kinds.format.field_table import Field
from services.kinds.format.shapes import Fold, Text

STATUS = Field("status", Text("active", ("active", "inactive"), Fold.LOWER), "active, or inactive to keep it off.")

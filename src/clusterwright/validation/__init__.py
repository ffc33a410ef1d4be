"""Score the estimate against published runs: errors, the choice it would make, the effects it foresees."""

from clusterwright.validation.scoreboard import Scoreboard, read_tables, validate
from clusterwright.validation.shipped import validate_shipped

__all__ = ["Scoreboard", "read_tables", "validate", "validate_shipped"]

"""The base of every noun: a frozen value that is validated whole and refuses unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Noun(BaseModel):
    """A frozen, fully validated value; unknown keys are errors, NaN and infinity are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

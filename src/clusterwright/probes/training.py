"""Training logs -> the pace of the steps, in whatever unit the framework prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.probes.patterns import groups, pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP, STEPS = "training.step_time_s", "training.steps_per_s"
TOKENS, SAMPLES = "training.tokens_per_s_per_accelerator", "training.samples_per_s"
NUMBER = r"(?P<value>\d[\d.,]*) ?(?P<unit>[KM])?"
PACES = (
    (STEP, b"elapsed time per iteration", rf"elapsed time per iteration \(ms\): *{NUMBER}", 1e-3),
    (STEP, b"elapsed_time_per_iteration_ms", rf"elapsed_time_per_iteration_ms: *{NUMBER}", 1e-3),
    (STEP, b"train_step_timing", rf"train_step_timing in s *[=:] *{NUMBER}", 1.0),
    (STEP, b"completed step:", rf"completed step: \d+, seconds: {NUMBER}", 1.0),
    (STEP, b"s/it", rf"^\s*\d+%\|.*\| \d+/\d+ \[[\d:]+<[\d:]+, +{NUMBER}s/it", 1.0),
    (STEPS, b"it/s", rf"^\s*\d+%\|.*\| \d+/\d+ \[[\d:]+<[\d:]+, +{NUMBER}it/s", 1.0),
    (TOKENS, b"tps:", rf"\bstep: *\d+ .*\btps: *{NUMBER}", 1.0),
    (TOKENS, b"tokens_per_sec_per_gpu", rf"tokens_per_sec_per_gpu: *{NUMBER}", 1.0),
    (TOKENS, b"tokens/s/device", rf"Tokens/s/device: *{NUMBER}", 1.0),
    (SAMPLES, b"samplespersec", r"CurrSamplesPerSec=(?P<value>[\d.]+)", 1.0),
)
"""Megatron, nanotron, NeMo, MaxText, Hugging Face's Trainer, torchtitan and DeepSpeed, by their own words."""
WORDS = tuple(word.decode() for _, word, _, _ in PACES)
COLOUR = r"\x1b\[[\d;]*m"
UNITS = {"K": 1e3, "M": 1e6, "": 1.0}


def paces(raw: bytes, lower: bytes) -> Iterator[tuple[str, float]]:
    """What a line says of the pace, each with the name of its reading.

    Args:
        raw: The line.
        lower: The same in lower case.

    Yields:
        The name, which ends with the unit, and the value.

    >>> line = b" iteration 10/ 500 | elapsed time per iteration (ms): 7400.1 | lm loss: 2.1"
    >>> list(paces(line, line.lower()))
    [('training.step_time_s', 7.4001)]
    >>> line = b"step: 10  loss:  8.1234  memory: 60.12GiB(75.96%)  tps: 5,762  mfu: 30.3%"
    >>> list(paces(line, line.lower()))
    [('training.tokens_per_s_per_accelerator', 5762.0)]
    """
    for name, word, text, scale in PACES:
        if word in lower:
            plain = pattern(COLOUR).sub(b"", raw) if b"\x1b" in raw else raw
            if (match := pattern(text).search(plain)) is not None:
                found = groups(match)
                number = found["value"].strip(",.").replace(",", "")
                if number.count(".") <= 1:
                    yield name, float(number) * UNITS[found.get("unit", "").upper()] * scale

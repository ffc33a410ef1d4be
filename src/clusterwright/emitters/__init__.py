"""Plan to files: one target a file in ``targets``, what they share beside them, one door."""

from clusterwright.emitters.bundle import Bundle, Unsupported
from clusterwright.emitters.door import emit, targets

__all__ = ["Bundle", "Unsupported", "emit", "targets"]

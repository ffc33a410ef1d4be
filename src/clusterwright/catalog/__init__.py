"""The catalogue: facts on disk, each with unit and source."""

from clusterwright.catalog.load import Catalogue, Source, load

__all__ = ["Catalogue", "Source", "load"]

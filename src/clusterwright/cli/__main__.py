"""``python -m clusterwright.cli``."""

from clusterwright.cli import main

main()

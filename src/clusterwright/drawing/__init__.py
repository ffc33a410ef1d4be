"""drawing: see the house page of the documentation."""

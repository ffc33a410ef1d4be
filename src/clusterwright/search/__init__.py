"""search: see the house page of the documentation."""

"""Build the notebooks and pages of the course from its texts, and run its claims in full."""

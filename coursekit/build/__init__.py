"""From the texts of the course to its notebooks and pages, and the full runs of its claims."""

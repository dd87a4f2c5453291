"""Mistakes that people make, and what the errors must say about them."""

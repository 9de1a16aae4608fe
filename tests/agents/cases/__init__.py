"""Importing this package fills the list of cases."""
from cases import shared  # noqa: F401

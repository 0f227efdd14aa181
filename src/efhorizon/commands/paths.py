"""How commands find a table: the names that they share, from where they are defined."""

from efhorizon.tables import TABLES, table_path

__all__ = ["TABLES", "table_path"]

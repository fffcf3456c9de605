"""States of members, in SQL."""

CURRENT = "status NOT IN ('superseded', 'deleting')"
"""Members that clients see."""

SEARCHED = "status IN ('completed', 'superseded')"
"""Members whose passages a search may show."""

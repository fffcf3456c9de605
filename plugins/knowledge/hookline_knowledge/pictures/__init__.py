"""Pictures in collections, found by text and by other pictures."""

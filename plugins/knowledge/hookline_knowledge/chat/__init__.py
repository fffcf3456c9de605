"""Answers from documents: which collections, which question, which passages, and how it is told."""

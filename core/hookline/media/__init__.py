"""Images made into text and vectors, for whichever plugin needs it. Heavy libraries load lazily."""

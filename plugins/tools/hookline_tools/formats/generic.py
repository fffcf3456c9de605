"""Our own way, for models whose chat template has no place for tools.

Such models were not taught when to stop calling, so an answer of theirs has one call at most. Where
they must call, small ones get lost in a text or a list that repeats without end, so what they have
written becomes a little less likely.
"""

from dataclasses import replace

from hookline_tools.formats.hermes import HERMES

GENERIC = replace(HERMES, name="generic", marks=(), native=False, parallel=False)

INSTRUCTION = """\
You can call functions. Here they are, one a line, with the JSON schema of their arguments:
{tools}

To call a function, write its name and its arguments as JSON, like this:
{example}
You get what it returned between <tool_response> and </tool_response>. {when}"""

MAY = "Call a function only where it helps; otherwise answer in plain text."
MUST = "Now call a function."

FREQUENCY_PENALTY = 0.8
"""Where a call must come and the request sets no penalty of its own. Measured on 31 schemas of
MaskBench with SmolLM2 135M and 500 tokens: with it 3 of 62 calls were cut, without it 16 of 56.
"""

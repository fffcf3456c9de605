"""Our own way, for models whose chat template has no place for tools.

Such models were not taught when to stop calling, so an answer of theirs has one call at most.
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

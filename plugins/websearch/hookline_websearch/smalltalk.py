"""Messages that no search can help with, told apart without a model."""

from __future__ import annotations

import re

LONGEST = 60
"""Characters above which a message is more than a greeting or a sum."""

_WORDS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_OPENERS = """
hello hi hey hiya yo greetings howdy good thanks thank thx ty cheers bye goodbye how how's what's
you're hallo guten servus moin danke vielen tschüss wie bonjour bonsoir salut merci au ça hola
buenos buenas gracias muchas adiós qué ciao buongiorno buonasera grazie olá oi bom boa obrigado
obrigada hej tack hallå hei takk hoi dank cześć dziękuję ahoj díky merhaba teşekkürler привет
спасибо здравствуйте пока 你好 谢谢 您好 再见 こんにちは ありがとう 안녕하세요
감사합니다 مرحبا شكرا नमस्ते धन्यवाद
"""
_REST = """
ok okay cool great nice perfect there morning afternoon evening night day are you doing today is
it going up sup so very much many a lot see later please welcome everyone all again morgen tag abend
dank schön geht's geht es dir beaucoup revoir va días tardes noches tal mille dia tarde noite je
wel
"""
_ASKING = re.compile(
    r"^(?:(?:please |can you |could you )*"
    r"(?:what(?:'s| is| does| are)?|how much (?:is|are|does)|calculate|compute|evaluate|solve"
    r"|was (?:ist|macht|sind)|wie ?viel (?:ist|sind|macht)|berechne"
    r"|combien (?:font|fait)|cuánto (?:es|son)|quanto (?:fa|é))\b)[\s:]*",
    re.IGNORECASE,
)
_OPERATOR_WORDS = re.compile(
    r"\b(?:plus|minus|times|multiplied by|divided by|mod(?:ulo)?|to the power of"
    r"|mal|geteilt durch|hoch|fois|divisé par)\b|(?:%|percent|per cent) of\b",
    re.IGNORECASE,
)
_ROOTS = re.compile(r"\b(?:sqrt|(?:the )?square root of)\b", re.IGNORECASE)
_ENDINGS = re.compile(r"(?:\s*\b(?:make|equals?)\b|[?!.=\s])+$", re.IGNORECASE)
_SUM = re.compile(r"[\d\s.,()+\-−–*×x·/÷:^%√]+", re.IGNORECASE)
_OPERATION = re.compile(r"[\d)]\s*(?:[+*×x·÷^%]|[-−–/])\s*[\d(√]|√\s*[\d(]", re.IGNORECASE)
_MAYBE_A_NAME = re.compile(r"\d{1,2}/\d{1,2}(?:/\d{2,4})?|\d{3,}[-–]\d{2,}|[\d-]*-[\d-]*-[\d-]*")


def needs_no_search(text: str) -> str | None:
    """Why nothing has to be looked up, as a sentence; None where a model must judge.

    Knows greetings and thanks in some languages, and plain arithmetic.
    """
    short = " ".join(text.replace("’", "'").split())
    if not short or len(short) > LONGEST:
        return None
    if is_greeting(short):
        return "A greeting needs no search."
    if is_sum(short):
        return "A sum needs no search."
    return None


def is_greeting(text: str) -> bool:
    """Whether a text is made of words of greeting, thanks and parting, and begins like one."""
    words = [word.lower() for word in _WORDS.findall(text)]
    if not words or any(sign.isdigit() for sign in text):
        return False
    openers = _OPENERS.split()
    return words[0] in openers and set(words) <= {*openers, *_REST.split()}


def is_sum(text: str) -> bool:
    """Whether a text asks for the result of an arithmetic expression, and nothing else.

    What may be a date, a number to call or a name, such as 9/11 or 1914-1918, is none.
    """
    expression = _ENDINGS.sub("", _ASKING.sub("", text))
    expression = _OPERATOR_WORDS.sub(" + ", _ROOTS.sub("√", expression))
    if _MAYBE_A_NAME.fullmatch(expression) and "=" not in text:
        return False
    return bool(_SUM.fullmatch(expression) and _OPERATION.search(expression))

"""From a client's schema to one that the compiler gets right, or to a refusal with its place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jsonschema_rs
import llguidance

from hookline_structured import canonical
from hookline_structured.dialect import Document, Schema, read
from hookline_structured.finite import finite
from hookline_structured.options import json_source
from hookline_structured.refusal import Place, Refused
from hookline_structured.rewrite import Inexpressible, Rewriter

NO_VALUE = "no value can fit this schema"


@dataclass(frozen=True, slots=True)
class Analysis:
    """``promise`` is what answers are validated against, ``grammar`` what they are made from."""

    promise: Schema
    grammar: Schema


def analyse(schema: Any) -> Analysis:
    """Raises Refused."""
    analysis, document = express(schema)
    confirm(document)
    return analysis


def express(schema: Any) -> tuple[Analysis, Document]:
    """The schema in forms that can be used, and as a document. Raises Refused."""
    _check(schema)
    document = read(schema)
    promise = document.whole()
    _check_promise(promise)
    try:
        return Analysis(promise, _grammar(document)), document
    except Inexpressible as reason:
        return Analysis(promise, _other_form(document, reason)), document


def confirm(document: Document) -> None:
    """Raises Refused where it is proved that no value fits. May take very long."""
    if not canonical.satisfiable(document):
        raise Refused((), NO_VALUE)


def _check(schema: Any) -> None:
    """The rules of the schema's own draft, or, where it names none, of any."""
    if not isinstance(schema, dict | bool):
        raise Refused((), "a schema must be an object or a boolean")
    if isinstance(schema, bool):
        return
    named = isinstance(schema.get("$schema"), str)
    drafts = [schema] if named else [schema, _as(schema, "07"), _as(schema, "04")]
    errors = [error for draft in drafts if (error := _meta_error(draft)) is not None]
    if len(errors) == len(drafts):
        raise Refused(tuple(errors[0].instance_path), errors[0].message[:300])


def _as(schema: Any, draft: str) -> Any:
    return {**schema, "$schema": f"http://json-schema.org/draft-{draft}/schema#"}


def _meta_error(schema: Any) -> jsonschema_rs.ValidationError | None:
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as error:
        return error
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise Refused(("$schema",), f"the draft is not known: {error}") from error
    return None


def _check_promise(promise: Schema) -> None:
    try:
        canonical.validator(promise)
    except jsonschema_rs.ValidationError as error:
        raise Refused(tuple(error.instance_path), error.message[:300]) from error
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise Refused((), str(error)[:300]) from error


def _other_form(document: Document, reason: Inexpressible) -> Schema:
    """The canonical form, where it can be expressed; else the reason why the schema cannot."""
    confirm(document)
    try:
        return _grammar(canonical.equivalent(document))
    except (Refused, jsonschema_rs.canonical.CanonicalizationError) as error:
        raise Refused(reason.place, reason.reason) from error


def _grammar(document: Document) -> Schema:
    rewriter = Rewriter(
        document.definitions,
        partial(canonical.disjoint, definitions=document.definitions),
        partial(canonical.fits, definitions=document.definitions),
    )
    rewritten = finite(
        Document(
            rewriter.rewrite(document.root, ()),
            {
                name: rewriter.rewrite(schema, document.places[name])
                for name, schema in document.definitions.items()
            },
            document.places,
        )
    )
    if rewritten.root is False:
        raise Refused((), NO_VALUE)
    _try(rewritten)
    return rewritten.whole()


def _try(document: Document) -> None:
    """Compiles without a vocabulary, to hear what the compiler thinks."""
    if (error := complaint(document.whole())) is not None:
        raise Inexpressible(_blame(document), error)


def complaint(schema: Schema) -> str | None:
    """What the compiler says against a rewritten schema; None when it takes it."""
    if isinstance(schema, bool):
        return None if schema else NO_VALUE
    return complaint_about(json_source(schema, compact=True))


def complaint_about(source: str) -> str | None:
    """What the compiler says against a grammar, warnings too; None when it takes it."""
    failed, messages = llguidance.LLMatcher.validate_grammar_with_warnings(source)
    if not failed and not messages:
        return None
    return messages[0].strip().splitlines()[0][:300] if messages else "it cannot be compiled"


def _blame(document: Document) -> Place:
    """The deepest part of the schema that cannot be compiled even alone."""
    starts: list[tuple[Place, Schema]] = [((), document.root)]
    starts += [(document.places[n], s) for n, s in document.definitions.items()]
    for start, schema in reversed(starts):
        place = _descend(document, schema, start)
        if place is not None:
            return place
    return ()


def _descend(document: Document, schema: Schema, place: Place) -> Place | None:
    if isinstance(schema, bool) or complaint(document.whole(schema)) is None:
        return None
    for step, part in _parts(schema):
        found = _descend(document, part, (*place, *step))
        if found is not None:
            return found
    return place


def _parts(schema: dict[str, Any]) -> list[tuple[Place, Schema]]:
    parts: list[tuple[Place, Schema]] = []
    for key, value in schema.items():
        if key in ("items", "additionalProperties"):
            parts.append(((key,), value))
        elif key in ("properties", "patternProperties"):
            parts += [((key, name), part) for name, part in value.items()]
        elif key in ("prefixItems", "allOf", "anyOf"):
            parts += [((key, index), part) for index, part in enumerate(value)]
    return parts

"""What a plugin says about itself: which versions it fits, what it needs, where it wants to stand.

All of it is plain attributes of the plugin's class. `hookline.outline` reads them from the source
before anything of the plugin runs; `About.of` reads them from the class itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from hookline.hookspecs import API_VERSION

EVERY_HOOK = "*"
"""The key of a wish for a place that holds for all hooks."""

Wishes = Mapping[str, frozenset[str]]
"""Names of other plugins by hook, or for `EVERY_HOOK`."""


@dataclass(frozen=True, slots=True)
class About:
    """A plugin's words about itself.

    ``api`` is a range of versions of the hook API, as in ``">=1.0,<2"``. ``requires`` are services
    that others provide, or plugins by name; ``provides`` are services of its own besides those that
    its hooks are. ``extras`` name the extras of its distribution that it cannot do without.
    ``before`` and ``after`` are the plugins that it would like to be called before and after.
    """

    api: str = ""
    requires: frozenset[str] = frozenset()
    provides: frozenset[str] = frozenset()
    extras: frozenset[str] = frozenset()
    before: Wishes = field(default_factory=dict)
    after: Wishes = field(default_factory=dict)
    essential: bool = False

    @classmethod
    def of(cls, thing: object) -> About:
        """What a class or an instance says. Raises ValueError with one line for what is wrong."""
        return cls.read(lambda name, default: getattr(thing, name, default))

    @classmethod
    def read(cls, get: Callable[[str, Any], Any]) -> About:
        """What ``get(attribute, default)`` says. Raises ValueError like `of`."""
        return cls(
            api=_version_range(get("api", "")),
            requires=_names("requires", get("requires", ())),
            provides=_names("provides", get("provides", ())),
            extras=_names("extras", get("extras", ())),
            before=_wishes("before", get("before", ())),
            after=_wishes("after", get("after", ())),
            essential=bool(get("essential", False)),
        )

    def problem(self, dist: str | None) -> str | None:
        """Why the plugin cannot work here, in one line that says what to do, or None.

        ``dist`` is the distribution that it comes from.
        """
        if self.api and not SpecifierSet(self.api).contains(API_VERSION):
            return (
                f"is made for version {self.api} of the hook API, and this is {API_VERSION}; "
                f"install another version of {dist or 'it'}, or of hookline"
            )
        missing = [*missing_for(dist, self.extras)] if dist and self.extras else []
        if missing:
            extras = ",".join(sorted(self.extras))
            wanted = ", ".join(f"'{requirement}'" for requirement in missing)
            return f"needs {wanted}; install it with: pip install '{dist}[{extras}]'"
        return None


def missing_for(dist: str, extras: Collection[str] = ()) -> Iterator[str]:
    """What a distribution requires, with these extras, and what is not installed.

    Only what is missing, not what has another version: that may work.
    """
    try:
        lines = distribution(dist).requires or []
    except PackageNotFoundError:
        return
    for requirement in map(Requirement, lines):
        if _applies(requirement, extras) and not is_installed(requirement.name):
            name = requirement.name
            if canonicalize_name(name) != canonicalize_name(dist):  # an extra made of extras
                yield f"{name}{requirement.specifier}"


def is_installed(dist: str) -> bool:
    """Whether there is a distribution of that name."""
    try:
        distribution(dist)
    except PackageNotFoundError:
        return False
    return True


def _applies(requirement: Requirement, extras: Collection[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def _version_range(value: Any) -> str:
    try:
        SpecifierSet(value)
        return str(value)
    except (InvalidSpecifier, TypeError, AttributeError):
        raise ValueError(f"'api' must be a range such as '>=1.0,<2', not {value!r}") from None


def _names(attribute: str, value: Any) -> frozenset[str]:
    # a text is a collection of its letters, which nobody means
    if isinstance(value, str) or not isinstance(value, Collection):
        raise ValueError(f"'{attribute}' must be a set of names, not {value!r}")
    if not all(isinstance(name, str) for name in value):
        raise ValueError(f"'{attribute}' must be a set of names, not {value!r}")
    return frozenset(value)


def _wishes(attribute: str, value: Any) -> Wishes:
    if isinstance(value, Mapping):
        return {str(hook): _names(attribute, names) for hook, names in value.items()}
    names = _names(attribute, value)
    return {EVERY_HOOK: names} if names else {}

"""Finding, making and checking plugins: one clear line for each thing that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import BaseModel

from hookline import Caller, hookimpl, hookspec
from hookline.config import Settings
from hookline.discovery import load_plugins
from hookline.errors import ConfigError, PluginError
from hookline.kernel import Kernel
from hookline.plugin import Plugin
from hookline.survey import survey

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package with one plugin on the path, as pip would."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, code: str, *, distribution: str | None = None) -> None:
        module = f"plugin_{abs(hash((name, distribution, str(tmp_path))))}"
        dist = distribution or f"hookline-{name}"
        (tmp_path / f"{module}.py").write_text(dedent(code))
        info = tmp_path / f"{dist.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.2\n")
        points = f"[hookline.plugins]\n{name} = {module}:Plugin\n"
        (info / "entry_points.txt").write_text(points)

    return write


def loaded(*names: str, **settings: Any) -> dict[str, Plugin]:
    return load_plugins(Settings(plugins=list(names), **settings)).found


def reason(plugin: Plugin) -> str:
    assert plugin.state == "failed"
    assert plugin.reason is not None
    assert "\n" not in plugin.reason
    return plugin.reason


FINE = "class Plugin:\n    pass\n"


def test_an_installed_plugin_is_found_and_made(install: Install) -> None:
    install("weather", FINE)
    plugin = loaded("weather")["weather"]
    assert (plugin.state, plugin.version, plugin.distribution) == (
        "active",
        "1.2",
        "hookline-weather",
    )


def test_an_installed_plugin_that_is_not_in_the_config_is_off(install: Install) -> None:
    install("weather", "raise SystemExit")
    assert loaded()["weather"].state == "off"


def test_left_out_plugins_are_the_built_in_ones(install: Install) -> None:
    install("weather", FINE)
    install("builtin", FINE, distribution="hookline")
    found = load_plugins(Settings()).found
    assert found["builtin"].state == "active"
    assert found["weather"].state == "off"


def test_an_unknown_name_stops_the_start_with_a_suggestion(install: Install) -> None:
    install("weather", FINE)
    with pytest.raises(ConfigError, match=r"'wether'.*'weather'"):
        loaded("wether")
    with pytest.raises(ConfigError, match=r"'wether'.*'weather'"):
        loaded("weather", plugin={"wether": {}})


def test_a_name_twice_is_an_error(install: Install) -> None:
    install("weather", FINE)
    with pytest.raises(ConfigError, match="twice"):
        loaded("weather", "weather")


def test_two_packages_of_one_name_put_each_other_out_of_service(install: Install) -> None:
    install("weather", FINE)
    install("weather", FINE, distribution="other-weather")
    found = loaded("weather")
    assert "hookline-weather and other-weather" in reason(found["weather"])


def test_a_missing_dependency_says_what_to_install(install: Install) -> None:
    install("weather", "import meteorology_that_is_missing")
    install("vision", "import imaging_that_is_missing", distribution="hookline")
    found = loaded("weather", "vision")
    assert "meteorology_that_is_missing" in reason(found["weather"])
    assert "hookline-weather" in reason(found["weather"])
    assert "pip install 'hookline[vision]'" in reason(found["vision"])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("class Plugin:\n    def __init__(self):\n        raise OSError('disk full')", "disk full"),
        ("class Plugin(:", "SyntaxError"),
        ("Weather = 1", "Plugin"),
        ("raise RuntimeError('two\\nlines')", "two lines"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(install: Install, code: str, words: str) -> None:
    install("weather", code)
    install("fine", FINE)
    found = loaded("weather", "fine")
    assert words in reason(found["weather"])
    assert found["fine"].state == "active"


SETTINGS = """
    from pydantic import BaseModel

    class WeatherSettings(BaseModel):
        city: str = "Oslo"

    class Plugin:
        settings_model = WeatherSettings

        def __init__(self, settings):
            self.settings = settings
"""


def test_settings_are_the_plugin_s_own_model(install: Install) -> None:
    install("weather", SETTINGS)
    found = loaded("weather", plugin={"weather": {"city": "Bergen"}})
    assert found["weather"].settings is not None
    assert found["weather"].settings.model_dump() == {"city": "Bergen"}


def test_wrong_settings_are_one_line_with_a_suggestion(install: Install) -> None:
    install("weather", SETTINGS)
    words = reason(loaded("weather", plugin={"weather": {"citty": "Bergen"}})["weather"])
    assert "citty" in words
    assert "city" in words.replace("citty", "")


def test_settings_for_a_plugin_that_takes_none(install: Install) -> None:
    install("weather", FINE)
    assert "takes none" in reason(loaded("weather", plugin={"weather": {"a": 1}})["weather"])


class Misspelt:
    @hookimpl
    async def transfrom(self, exchange: Any) -> None: ...


class WrongColour:
    @hookimpl
    def transform(self, exchange: Any) -> None: ...


class WrongColourToo:
    @hookimpl
    async def opening_fields(self, exchange: Any) -> None: ...


class WrongArgument:
    @hookimpl
    async def transform(self, exchnge: Any) -> None: ...


class Wrapper:
    @hookimpl(wrapper=True)
    def opening_fields(self, exchange: Any) -> Any:
        return (yield)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Misspelt, "'transfrom'; did you mean 'transform'"),
        (WrongColour, "'transform' must be written with 'async def'"),
        (WrongColourToo, "'opening_fields' must be written with 'def'"),
        (WrongArgument, "takes 'exchnge', but the hook offers only exchange"),
        (Wrapper, "wrapper"),
    ],
)
def test_what_the_contract_does_not_know_is_refused(kind: type, words: str) -> None:
    found = load_plugins(Settings(plugins=[]), extra={"it": kind()}).found
    assert words in reason(found["it"])


class Fields(BaseModel):
    weather: bool = False


class WithFields:
    request_fields = Fields


def test_of_two_that_claim_a_request_field_the_later_is_out_of_service() -> None:
    extra = {"one": WithFields(), "two": WithFields()}
    found = load_plugins(Settings(plugins=[]), extra=extra).found
    assert found["one"].state == "active"
    assert "'weather' is taken by the plugin 'one'" in reason(found["two"])
    alone = load_plugins(Settings(plugins=[]), extra={"one": WithFields()}, reserved=["weather"])
    assert "'weather' is taken by the core" in reason(alone.found["one"])


class NeedsConstraint:
    requires = frozenset({"constraint"})

    @hookimpl
    async def create_embedder(self, name: str) -> None: ...


class NeedsEmbedder:
    requires = frozenset({"embedder"})


class Constrains:
    @hookimpl
    async def create_constraint(self, spec: Any) -> None: ...


def test_what_a_plugin_requires_must_be_there() -> None:
    found = load_plugins(
        Settings(plugins=[]), extra={"last": NeedsEmbedder(), "first": NeedsConstraint()}
    ).found
    assert "'constraint'" in reason(found["first"])
    assert "'embedder'" in reason(found["last"])
    met = {"last": NeedsEmbedder(), "first": NeedsConstraint(), "base": Constrains()}
    found = load_plugins(Settings(plugins=[]), extra=met).found
    assert {found[name].state for name in met} == {"active"}


def test_an_essential_plugin_that_fails_stops_the_start(install: Install) -> None:
    install("guard", "import something_that_is_missing")
    with pytest.raises(PluginError, match=r"guard.*something_that_is_missing"):
        loaded("guard", essential=["guard"])
    install(
        "strict", "class Plugin:\n    essential = True\n    def __init__(self):\n        1 / 0\n"
    )
    with pytest.raises(PluginError, match="strict"):
        loaded("strict")


def test_an_essential_plugin_that_is_not_in_use_stops_the_start(install: Install) -> None:
    install("weather", FINE)
    with pytest.raises(ConfigError, match=r"'essential'.*'wether'.*'weather'"):
        loaded("weather", essential=["wether"])
    with pytest.raises(ConfigError, match=r"'essential'.*'weather'"):
        loaded(essential=["weather"])


def test_a_star_stands_for_the_built_in_plugins_that_are_not_named(install: Install) -> None:
    install("weather", FINE)
    install("one-builtin", FINE, distribution="hookline")
    found = loaded("weather", "*")
    active = [name for name, plugin in found.items() if plugin.state == "active"]
    assert active[0] == "weather"
    assert "one-builtin" in active
    named = loaded("one-builtin", "weather", "*")
    assert list(named)[:2] == ["one-builtin", "weather"]


def test_a_request_field_needs_a_default() -> None:
    class Needy(BaseModel):
        weather: bool

    class Plugin:
        request_fields = Needy

    found = load_plugins(Settings(plugins=[]), extra={"it": Plugin()}).found
    assert "'weather' has no default" in reason(found["it"])


def test_a_plugin_without_hooks_is_asked_about_them(caplog: pytest.LogCaptureFixture) -> None:
    class Unmarked:
        async def transform(self, exchange: Any) -> None: ...

    load_plugins(Settings(plugins=[]), extra={"it": Unmarked()})
    assert "it has no hooks" in caplog.text


def test_a_plugin_may_be_given_as_a_class() -> None:
    class Authenticates:
        @hookimpl
        async def authenticate(self, address: str) -> Caller | None:
            return None

    found = load_plugins(Settings(plugins=[]), extra={"it": Authenticates}).found
    assert found["it"].hooks == ("authenticate",)


# Hooks that plugins add


class Colours:
    @hookspec
    def colour_of(self, thing: str) -> str | None:
        """What colour a thing has."""


class AddsAHook:
    hookspecs = Colours


class Grass:
    @hookimpl
    def colour_of(self, thing: str) -> str | None:
        return "green" if thing == "grass" else None


class Optional:
    @hookimpl(optionalhook=True)
    def colour_of(self) -> str | None:
        return "blue"


def test_a_plugin_answers_the_hook_of_another() -> None:
    extra = {"grass": Grass(), "optional": Optional(), "colours": AddsAHook()}
    plugins = load_plugins(Settings(plugins=[]), extra=extra)
    assert plugins.answers("colour_of", thing="grass") == ["green", "blue"]
    assert plugins.answers("colour_of", thing="sky") == ["blue"]


def test_a_hook_that_nobody_adds_puts_only_those_out_of_service_that_need_it() -> None:
    extra = {"grass": Grass(), "optional": Optional()}
    found = load_plugins(Settings(plugins=[]), extra=extra).found
    assert "no hook 'colour_of'" in reason(found["grass"])
    assert (found["optional"].state, found["optional"].hooks) == ("active", ())


def test_the_hook_of_another_is_checked_like_any() -> None:
    class Wrong:
        @hookimpl
        def colour_of(self, things: str) -> None: ...

    found = load_plugins(Settings(plugins=[]), extra={"c": AddsAHook(), "wrong": Wrong()}).found
    assert "'things'" in reason(found["wrong"])
    assert "thing" in reason(found["wrong"])


def test_a_hook_is_added_once_and_is_no_coroutine() -> None:
    class Taken:
        @hookspec
        def transform(self) -> None: ...

    class Later:
        @hookspec
        async def colour_of(self) -> None: ...

    class Takes(AddsAHook):
        hookspecs = Taken  # type: ignore[assignment]

    class Waits(AddsAHook):
        hookspecs = Later  # type: ignore[assignment]

    extra = {"first": AddsAHook(), "again": AddsAHook(), "takes": Takes(), "waits": Waits()}
    found = load_plugins(Settings(plugins=[]), extra=extra).found
    assert found["first"].state == "active"
    assert "'colour_of', which exists" in reason(found["again"])
    assert "'transform', which exists" in reason(found["takes"])
    alone = load_plugins(Settings(plugins=[]), extra={"waits": Waits()}).found
    assert "must be written with 'def'" in reason(alone["waits"])


def test_a_hook_without_a_collector_of_all_answers_is_refused() -> None:
    class First:
        @hookspec(firstresult=True)
        def colour_of(self) -> None: ...

    class Adds(AddsAHook):
        hookspecs = First  # type: ignore[assignment]

    found = load_plugins(Settings(plugins=[]), extra={"adds": Adds()}).found
    assert "'colour_of' with firstresult, but every plugin is asked" in reason(found["adds"])


def test_what_goes_away_is_told_with_the_plugin_that_uses_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Old:
        @hookspec(warn_on_impl=DeprecationWarning("write hue_of"))
        def colour_of(self) -> None: ...

        @hookspec(warn_on_impl_args={"place": DeprecationWarning("it is always here")})
        def hue_of(self, thing: str, place: str) -> None: ...

    class Adds(AddsAHook):
        hookspecs = Old  # type: ignore[assignment]

    class Uses:
        @hookimpl
        def colour_of(self) -> None: ...

        @hookimpl
        def hue_of(self, place: str) -> None: ...

    class UsesLess:
        @hookimpl
        def hue_of(self, thing: str) -> None: ...

    extra = {"adds": Adds(), "uses": Uses(), "less": UsesLess()}
    found = load_plugins(Settings(plugins=[]), extra=extra).found
    assert found["uses"].state == "active"
    assert "plugin uses: 'colour_of' will go away: write hue_of" in caplog.text
    assert "plugin uses: 'place' of 'hue_of' will go away: it is always here" in caplog.text
    assert "plugin less: 'place'" not in caplog.text


def test_where_an_order_is_wished_by_the_mark_it_says_how_to() -> None:
    class First:
        @hookimpl(tryfirst=True)
        async def admit(self) -> None: ...

    found = load_plugins(Settings(plugins=[]), extra={"first": First()}).found
    assert "say 'before' or 'after' in the class" in reason(found["first"])


def test_a_plugin_may_require_another_by_name_or_what_it_says_it_provides() -> None:
    class Provides:
        provides = frozenset({"weather"})

        @hookimpl
        async def admit(self) -> None: ...

    class Needs:
        requires = frozenset({"weather", "sky"})

        @hookimpl
        async def admit(self) -> None: ...

    found = load_plugins(Settings(plugins=[]), extra={"sky": Provides(), "needs": Needs()}).found
    assert found["needs"].state == "active"
    found = load_plugins(Settings(plugins=[]), extra={"rain": Provides(), "needs": Needs()}).found
    assert "needs a plugin that provides 'sky'" in reason(found["needs"])


def test_a_plugin_for_another_api_is_not_even_imported(install: Install) -> None:
    install("future", "import what_there_will_be\nclass Plugin:\n    api = '>=7'\n")
    assert "made for version >=7 of the hook API" in reason(loaded("future")["future"])


def test_an_essential_plugin_is_known_before_it_is_imported(install: Install) -> None:
    install("guard", "class Plugin:\n    essential = True\nraise RuntimeError('no')\n")
    with pytest.raises(PluginError, match=r"'guard'.*RuntimeError"):
        loaded("guard")


def test_what_a_plugin_says_of_itself_must_be_sound(install: Install) -> None:
    install("odd", "class Plugin:\n    requires = 'constraint'\n")
    assert "'requires' must be a set of names, not 'constraint'" in reason(loaded("odd")["odd"])


@pytest.mark.parametrize("names", [["format"], ["tools", "format"]], ids=["off", "failed"])
def test_whose_hook_it_is_that_nobody_adds_is_told(install: Install, names: list[str]) -> None:
    code = "from hookline import hookimpl\nclass Plugin:\n    @hookimpl\n"
    install("format", f"{code}    def tool_formats(self): ...\n")
    words = reason(loaded(*names)["format"])
    assert words == "has the hook 'tool_formats' of the plugin 'tools', which is not at work"
    assert survey(Settings(plugins=names)).plugins["format"].plugin.reason == words


def test_an_essential_class_of_the_program_that_cannot_be_made_stops_the_start() -> None:
    class Guard:
        essential = True

        def __init__(self) -> None:
            raise OSError("no key")

    with pytest.raises(PluginError, match=r"essential plugin .guard..*no key"):
        load_plugins(Settings(plugins=[]), extra={"guard": Guard})


def test_a_plugin_may_be_called_like_a_part_of_the_server(install: Install, tmp_path: Path) -> None:
    for name in ("auth", "quota", "prompt", "engines"):
        install(name, FINE)
    settings = Settings(plugins=["auth", "quota", "prompt", "engines"], data_dir=tmp_path / "data")
    found = Kernel(settings).plugins.found
    assert [found[name].core for name in settings.plugins or ()] == [False] * 4
    assert sum(plugin.core for plugin in found.values()) == 4


def test_a_plugin_of_the_program_with_the_name_of_one_that_is_on(install: Install) -> None:
    install("weather", FINE)
    with pytest.raises(PluginError, match=r"brings a plugin 'weather'.*put '-weather' into"):
        load_plugins(Settings(plugins=["weather"]), extra={"weather": object()})
    assert load_plugins(Settings(plugins=["-weather"]), extra={"weather": object()})

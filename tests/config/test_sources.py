"""Which source wins, and where the file, its paths and its mistakes are found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline.config import LoadedSettings, find_config, load_settings, resolve_model
from hookline.config.template import toml_value
from hookline.errors import ConfigError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory and an empty configuration folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(
    text: str | None = None, flags: Mapping[str, Any] | None = None, **environ: str
) -> LoadedSettings:
    if text is not None:
        Path("hookline.toml").write_text(text)
    return load_settings(None, flags or {}, environ)


def problems(
    text: str | None = None, flags: Mapping[str, Any] | None = None, **environ: str
) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load(text, flags, **environ)
    return str(error.value).splitlines()


# Which wins


def test_defaults_without_any_source() -> None:
    loaded = load()
    assert loaded.file is None
    assert loaded.settings.server.port == 1234
    assert str(loaded.origins.of(("server", "port"))) == "default"


def test_flags_win_over_environment_over_file() -> None:
    text = '[server]\nport = 1\nhost = "file"\nmax_queue = 7\n'
    environ = {"HOOKLINE_SERVER__PORT": "2", "HOOKLINE_SERVER__HOST": "env"}
    loaded = load(text, {"server.port": 3, "server.host": None}, **environ)
    server = loaded.settings.server
    assert (server.port, server.host, server.max_queue) == (3, "env", 7)
    names = [str(loaded.origins.of(("server", name))) for name in ("port", "host", "max_queue")]
    assert names == ["--port", "HOOKLINE_SERVER__HOST", "hookline.toml:4"]
    assert loaded.settings.origins is loaded.origins


def test_tables_are_joined_across_sources() -> None:
    settings = load("[plugin.w]\na = 1\n", HOOKLINE_PLUGIN__W__B="two").settings
    assert settings.plugin == {"w": {"a": 1, "b": "two"}}


@pytest.mark.parametrize("text", ["a, b", '["a", "b"]'])
def test_lists_in_variables_are_json_or_comma_lists(text: str) -> None:
    settings = load(HOOKLINE_PLUGINS=text, HOOKLINE_CORS__ALLOW_ORIGINS=text).settings
    assert settings.plugins == ["a", "b"]
    assert settings.cors.allow_origins == ["a", "b"]


def test_a_variable_may_hold_a_whole_table() -> None:
    loaded = load(HOOKLINE_SERVER='{"port": 5}', HOOKLINE_MODELS__BIG__CONTEXT="99")
    assert loaded.settings.server.port == 5
    assert loaded.settings.models["big"].context == 99
    assert str(loaded.origins.of(("server", "port"))) == "HOOKLINE_SERVER"
    assert str(loaded.origins.of(("server", "host"))) == "default"


def test_settings_made_in_code_take_nothing_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOOKLINE_SERVER__PORT", "5")
    assert type(load().settings)().server.port == 1234


# The file


def test_the_file_is_found_in_order(here: Path) -> None:
    assert find_config(None, {}) is None
    user = here / "config" / "hookline" / "hookline.toml"
    user.parent.mkdir(parents=True)
    user.touch()
    assert find_config(None, {}) == user
    Path("hookline.toml").touch()
    assert find_config(None, {}) == Path("hookline.toml")
    Path("named.toml").touch()
    assert find_config(None, {"HOOKLINE_CONFIG": "named.toml"}) == Path("named.toml")
    Path("flag.toml").touch()
    named = find_config(Path("flag.toml"), {"HOOKLINE_CONFIG": "named.toml"})
    assert named == Path("flag.toml")


def test_a_named_file_must_exist() -> None:
    with pytest.raises(ConfigError, match=r"^no\.toml, named by --config, is no file"):
        load_settings(Path("no.toml"), {}, {})
    with pytest.raises(ConfigError, match=r"^no\.toml, named by HOOKLINE_CONFIG, is no file"):
        load_settings(None, {}, {"HOOKLINE_CONFIG": "no.toml"})


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a = \n", "hookline.toml:1:5: "),
        ("[server]\nport = 1\nport == 2\n", "hookline.toml:3:7: "),
        ("a = '''\nb", "hookline.toml:2:2: "),
    ],
)
def test_syntax_errors_are_one_line_with_a_place(text: str, where: str) -> None:
    (line,) = problems(text)
    assert line.startswith(where)


def test_a_file_that_is_not_utf8_is_refused() -> None:
    Path("hookline.toml").write_bytes(b'data_dir = "\xff"')
    assert problems() == ["hookline.toml: byte 12 is not UTF-8, which TOML must be"]


def test_a_byte_order_mark_does_no_harm() -> None:
    Path("hookline.toml").write_bytes(b"\xef\xbb\xbf[server]\nport = 5\n")
    assert load().settings.server.port == 5


# Paths


def test_paths_are_relative_to_the_file(here: Path) -> None:
    (here / "etc").mkdir()
    file = here / "etc" / "h.toml"
    file.write_text(
        'data_dir = "data"\n[model]\nsource = "./m.gguf"\nchat_template = "../t.jinja"\n'
        '[models.big]\nsource = "big.gguf"\nmmproj = "~/p.gguf"\n'
    )
    settings = load_settings(Path("etc/h.toml"), {}, {}).settings
    assert settings.data_dir == here / "etc" / "data"
    assert settings.model.source == str(here / "etc" / "m.gguf")
    assert settings.model.chat_template == here / "t.jinja"
    assert settings.models["big"].source == str(here / "etc" / "big.gguf")
    assert settings.models["big"].mmproj == here / "home" / "p.gguf"


def test_paths_of_variables_and_flags_are_relative_to_the_working_directory(here: Path) -> None:
    (here / "etc").mkdir()
    (here / "etc" / "h.toml").touch()
    flags = {"model.source": "m.gguf"}
    settings = load_settings(here / "etc" / "h.toml", flags, {"HOOKLINE_DATA_DIR": "d"}).settings
    assert settings.data_dir == here / "d"
    assert settings.model.source == str(here / "m.gguf")


@pytest.mark.parametrize("source", ["smollm2-135m", "owner/repo", "owner/repo:m.gguf", "big"])
def test_sources_that_are_no_paths_stay(source: str, here: Path) -> None:
    (here / "smollm2-135m").mkdir()
    (here / "big").mkdir()
    settings = load('[models.big]\nsource = "owner/big"\n', {"model.source": source}).settings
    assert settings.model.source == source


def test_a_source_that_exists_is_a_path(here: Path) -> None:
    (here / "folder").mkdir()
    settings = load('[model]\nsource = "folder"\n').settings
    assert settings.model.source == str(here / "folder")
    assert resolve_model(settings)[0] == "folder"


# Mistakes


def test_all_mistakes_are_told_at_once_each_with_place_and_suggestion() -> None:
    text = (
        "prot = 1\n[server]\nprot = 5\nport = 99999\n[modell]\nx = 1\n"
        '[models.big]\ncontxt = 5\n[quota]\ndaily_prompts = "many"\n'
    )
    lines = problems(
        text,
        {"server.port": "abc"},
        HOOKLINE_SERVER_HOST="x",
        HOOKLINE_CORS__ALLOW_ORIGIN="x",
        HOOKLINE_AUTH="{",
    )
    assert lines == [
        "HOOKLINE_SERVER_HOST: there is no such setting; did you mean HOOKLINE_SERVER__HOST?",
        "hookline.toml:1: prot: there is no such setting; did you mean [server] port?",
        "hookline.toml:3: [server] prot: there is no such setting; did you mean port?",
        "hookline.toml:5: modell: there is no such setting; did you mean [model]?",
        "hookline.toml:8: [models.big] contxt: there is no such setting; did you mean context?",
        "HOOKLINE_CORS__ALLOW_ORIGIN: there is no such setting; "
        "did you mean HOOKLINE_CORS__ALLOW_ORIGINS?",
        "--port: must be a whole number, not 'abc'",
        "HOOKLINE_AUTH: must be a table",
        "hookline.toml:10: [quota] daily_prompts: must be a whole number, not 'many'",
    ]


def test_a_range_is_told_with_the_value() -> None:
    assert problems("[server]\nport = 70000\n") == [
        "hookline.toml:2: [server] port: must be less than or equal to 65535, not 70000"
    ]


def test_an_item_of_a_list_is_named() -> None:
    (line,) = problems('plugins = [\n  "a",\n  5,\n]\n')
    assert line == "hookline.toml:1: plugins[1]: must be a text, not 5"


def test_an_unknown_variable_alone_is_refused() -> None:
    assert problems(HOOKLINE_SERVR__PORT="5") == [
        "HOOKLINE_SERVR__PORT: there is no such setting; did you mean HOOKLINE_SERVER__PORT?"
    ]


def test_variables_that_are_no_settings_are_left_alone() -> None:
    assert load(HOOKLINE_KEY="hl-x").settings.origins.values == {}


# Whatever is written

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(
    ["server", "port", "model", "source", "models", "plugin", "plugins", "cors", "allow_origins"]
) | st.from_regex(r"[a-z_]{0,6}", fullmatch=True)
SCALARS = (
    TEXTS
    | st.sampled_from(["~", "~nobody/x", "../x.gguf", "a/b:c", "\0", "[", "{", '["a"]', "5"])
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.booleans()
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
VARIABLES = st.lists(NAMES, min_size=1, max_size=4).map(
    lambda parts: "HOOKLINE_" + "__".join(parts).upper()
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(NAMES, TREES, max_size=4),
    st.dictionaries(VARIABLES, SCALARS.map(str), max_size=4),
)
def test_anything_is_read_or_refused_with_places(
    tree: dict[str, Any], environ: dict[str, str]
) -> None:
    text = "".join(f"{toml_value(name)} = {toml_value(value)}\n" for name, value in tree.items())
    Path("hookline.toml").write_text(text, encoding="utf-8", newline="\n")
    try:
        loaded = load_settings(None, {}, environ)
    except ConfigError as error:
        places = ("hookline.toml:", "HOOKLINE_")
        assert all(line.startswith(places) for line in str(error).splitlines())
    else:
        for key in loaded.origins.values:
            assert str(loaded.origins.of(key)).startswith(("hookline.toml:", "HOOKLINE_"))

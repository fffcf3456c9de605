"""Finding model files, with the real hub client against a small hub on loopback."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from hookline import models
from hookline.errors import StartError
from hookline.hub import Hub, HubUnreachable
from hookline.model_files import Format, chosen, group_files, named, projector
from hookline.models import (
    EITHER,
    SAFETENSORS,
    embedded_model,
    find_model,
    local_models,
    pull_model,
)

COMMIT = "a" * 40


@dataclass
class FakeHub:
    """What the hub answers: files by repository (those of a branch under ``repo@branch``), or a
    refusal by repository."""

    repos: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    lists_all: bool = False
    fetched: list[str] = field(default_factory=list)
    asked: int = 0

    def answer(self, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        self.asked += 1
        path = path.partition("?")[0].removeprefix("/")
        repo = "/".join(path.removeprefix("api/models/").split("/")[:2])
        if repo in self.refusals and not (self.lists_all and path.startswith("api/")):
            status, code = self.refusals[repo]
            return status, {"X-Error-Code": code} if code else {}, b"{}"
        if repo not in self.repos:
            return 401, {"X-Error-Code": "RepoNotFound"}, b"{}"
        if path.startswith("api/"):
            return self._info(repo, path.partition("/revision/")[2])
        revision, _, name = path.removeprefix(f"{repo}/resolve/").partition("/")
        return self._file(method, repo, "" if revision in ("main", COMMIT) else revision, name)

    def _info(self, repo: str, branch: str) -> tuple[int, dict[str, str], bytes]:
        content = self.repos.get(_at(repo, branch))
        if content is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        siblings = [{"rfilename": name, "size": len(data)} for name, data in content.items()]
        info = {"id": repo, "sha": _commit(branch), "siblings": siblings}
        return 200, {"Content-Type": "application/json"}, json.dumps(info).encode()

    def _file(
        self, method: str, repo: str, branch: str, name: str
    ) -> tuple[int, dict[str, str], bytes]:
        content = self.repos[_at(repo, branch)].get(name)
        commit = {"X-Repo-Commit": _commit(branch)}
        if content is None:
            return 404, {"X-Error-Code": "EntryNotFound", **commit}, b""
        if method == "GET":
            self.fetched.append(name)
        etag = hashlib.sha256(content).hexdigest()
        return 200, {**commit, "ETag": f'"{etag}"'}, content


def _at(repo: str, branch: str) -> str:
    return f"{repo}@{branch}" if branch else repo


def _commit(branch: str) -> str:
    return "b" * 40 if branch else COMMIT


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _reply(self, method: str) -> None:
            status, headers, body = hub.answer(method, self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if method == "GET":
                self.wfile.write(body)

        def do_GET(self) -> None:
            self._reply("GET")

        def do_HEAD(self) -> None:
            self._reply("HEAD")

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    return Handler


@dataclass
class Served:
    """A hub that answers on loopback until it is closed, and the client's view of it."""

    fake: FakeHub
    server: ThreadingHTTPServer
    hub: Hub

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    fake = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served = Served(
        fake, server, Hub(f"http://127.0.0.1:{server.server_port}", tmp_path / "hub-cache")
    )
    yield served
    served.close()
    thread.join()


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())


# The embedded model


def test_the_default_model_is_found_in_its_package(tmp_path: Path) -> None:
    found = find_model("smollm2-135m", tmp_path)
    assert (found.id, found.origin) == ("smollm2-135m", "embedded")
    with found.path.open("rb") as file:
        assert file.read(4) == b"GGUF"


def test_without_its_package_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(models, "distribution", missing)
    with pytest.raises(StartError, match=r"pip install 'hookline\[llamacpp\]'"):
        embedded_model()
    assert local_models(tmp_path, Hub(cache_dir=tmp_path)) == []


# Files and folders


def test_a_file_is_a_model_with_the_projector_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "Some-1.5B.gguf", "other.gguf", "mmproj-some-f16.gguf")
    found = find_model(str(tmp_path / "Some-1.5B.gguf"), tmp_path)
    assert found.id == "Some-1.5B"
    assert found.path == tmp_path / "Some-1.5B.gguf"
    assert found.mmproj == tmp_path / "mmproj-some-f16.gguf"
    assert find_model(str(tmp_path / "other.gguf"), tmp_path).mmproj is None


def test_a_folder_holds_exactly_one_model(tmp_path: Path) -> None:
    write(tmp_path, "m/a.gguf", "m/mmproj.gguf", "m/README.md")
    found = find_model(str(tmp_path / "m"), tmp_path)
    assert (found.id, found.path) == ("m", tmp_path / "m" / "a.gguf")
    write(tmp_path, "m/b.gguf")
    with pytest.raises(StartError, match=r"several models; name one of: a\.gguf, b\.gguf$"):
        find_model(str(tmp_path / "m"), tmp_path)


def test_a_split_model_is_its_first_file_and_must_be_whole(tmp_path: Path) -> None:
    write(tmp_path, "m/big-00002-of-00002.gguf", "m/big-00001-of-00002.gguf")
    first = tmp_path / "m" / "big-00001-of-00002.gguf"
    assert find_model(str(tmp_path / "m"), tmp_path).path == first
    second = find_model(str(tmp_path / "m" / "big-00002-of-00002.gguf"), tmp_path)
    assert (second.id, second.path) == ("big", first)
    first.unlink()
    with pytest.raises(StartError, match="part of a split model of which files are missing"):
        find_model(str(tmp_path / "m"), tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nothing.gguf", "There is no model at nothing.gguf"),
        ("./README.md", "README.md is no .gguf file"),
        ("./mmproj.gguf", "mmproj.gguf is an image projector; name the model it belongs to"),
        ("./empty", "empty holds no .gguf file"),
        ("./exl", "needs an ExLlama engine"),
        ("nothing", "There is no model 'nothing'"),
        ("a/b/c", "'a/b/c' is no repository of the hub"),
    ],
)
def test_what_is_no_model_is_told(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "README.md", "mmproj.gguf", "empty/x.txt", "exl/model.safetensors")
    with pytest.raises(StartError) as error:
        find_model(name, tmp_path, Hub(cache_dir=tmp_path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_model_of_the_data_folder_goes_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, "models/mine.gguf", "models/whole/x.gguf")
    assert find_model("mine", tmp_path).path == tmp_path / "models" / "mine.gguf"
    assert find_model("whole", tmp_path).path == tmp_path / "models" / "whole" / "x.gguf"


# Which of several


def pick(*names: str, wanted: str = "", sizes: dict[str, int] | None = None) -> str:
    return chosen("o/r", group_files(names), wanted, sizes or {})[0]


@pytest.mark.parametrize(
    ("names", "wanted", "expected"),
    [
        (["m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-Q2_K.gguf"], "", "m-Q4_K_M.gguf"),
        (["m-Q8_0.gguf", "m-Q5_K_M.gguf"], "", "m-Q5_K_M.gguf"),
        (["m-BF16.gguf", "m-F16.gguf"], "", "m-BF16.gguf"),
        (["m-Q2_K.gguf", "mmproj-F16.gguf"], "", "m-Q2_K.gguf"),
        (["m-Q8_0.gguf", "m-Q4_K_M.gguf"], "q8_0", "m-Q8_0.gguf"),
        (["m-Q4_K_M.gguf", "m-Q4_K.gguf"], "Q4_K", "m-Q4_K.gguf"),
        (["m-bf16.gguf", "m-f16.gguf"], "F16", "m-f16.gguf"),
        (["sub/m-Q8_0.gguf", "m.gguf"], "M-q8_0.GGUF", "sub/m-Q8_0.gguf"),
        (["Q8_0/m-00001-of-00002.gguf", "Q8_0/m-00002-of-00002.gguf", "a.gguf"], "Q8_0", None),
    ],
)
def test_the_documented_choice(names: list[str], wanted: str, expected: str | None) -> None:
    assert pick(*names, wanted=wanted) == (expected or names[0])


def test_without_a_known_quantization_the_smallest_is_taken() -> None:
    assert pick("a.gguf", "b.gguf", sizes={"a.gguf": 9, "b.gguf": 5}) == "b.gguf"


def test_a_file_that_is_not_there_lists_what_is() -> None:
    with pytest.raises(StartError, match=r"o/r has no 'Q5_0'\. It has: a\.gguf, b\.gguf"):
        pick("a.gguf", "b.gguf", wanted="Q5_0")


def test_of_several_projectors_the_one_in_half_precision() -> None:
    assert projector(["mmproj-BF16.gguf", "mmproj-F16.gguf", "m.gguf"]) == "mmproj-F16.gguf"
    assert projector(["mmproj-Q8_0.gguf"]) == "mmproj-Q8_0.gguf"
    assert projector(["m.gguf"]) is None
    assert named({}, "any") is None


@pytest.mark.parametrize(
    ("model", "mmproj"),
    [
        ("gemma-3-4b-it-Q4_K_M.gguf", "mmproj-gemma-3-4b-it-f16.gguf"),
        ("Qwen2-VL-7B-Instruct-Q8_0.gguf", "Qwen2-VL-7B-mmproj-Q8_0.gguf"),
        ("other.gguf", "mmproj-model-f16.gguf"),
    ],
)
def test_of_the_projectors_of_several_models_the_one_that_bears_the_name(
    model: str, mmproj: str
) -> None:
    beside = ("mmproj-gemma-3-4b-it-f16.gguf", "Qwen2-VL-7B-mmproj-Q8_0.gguf")
    assert projector([*beside, "mmproj-model-f16.gguf"], model) == mmproj
    assert projector(beside, "other.gguf") is None


# The hub


def test_a_model_is_pulled_with_projector_and_all_its_files(served: Served) -> None:
    shards = [f"Q8_0/m-Q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    files = {name: name.encode() for name in [*shards, "m-Q4_K_M.gguf", "mmproj-f16.gguf"]}
    served.fake.repos["owner/repo"] = files
    found = pull_model("owner/repo:q8_0", served.hub)
    assert (found.id, found.origin) == ("owner/repo:q8_0", "hub")
    assert found.path.read_bytes() == shards[0].encode()
    assert all((found.path.parent / Path(shard).name).is_file() for shard in shards)
    assert found.mmproj is not None and found.mmproj.read_bytes() == b"mmproj-f16.gguf"
    assert sorted(served.fake.fetched) == sorted([*shards, "mmproj-f16.gguf"])


def test_what_is_in_the_cache_needs_no_hub(served: Served, tmp_path: Path) -> None:
    served.fake.repos["owner/repo"] = {"m-Q4_K_M.gguf": b"four", "m-Q8_0.gguf": b"eight"}
    pulled = find_model("owner/repo:Q8_0", tmp_path, served.hub)
    asked = served.fake.asked
    assert find_model("owner/repo:m-q8_0.gguf", tmp_path, served.hub).path == pulled.path
    assert served.fake.asked == asked
    assert find_model("owner/repo", tmp_path, served.hub).path.read_bytes() == b"four"
    served.close()
    assert find_model("owner/repo:Q8_0", tmp_path, served.hub) == pulled
    assert pull_model("owner/repo:Q8_0", served.hub) == pulled


def test_without_the_hub_the_cache_answers_for_a_repository(served: Served, tmp_path: Path) -> None:
    served.fake.repos["owner/repo"] = {"m-Q8_0.gguf": b"eight"}
    pulled = find_model("owner/repo", tmp_path, served.hub)
    served.close()
    assert find_model("owner/repo", tmp_path, served.hub).path == pulled.path
    with pytest.raises(HubUnreachable, match=r"^the hub at http://127.* cannot be reached"):
        find_model("owner/other", tmp_path, served.hub)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (404, "RepoNotFound", "owner/repo is not on the hub, or is private"),
        (401, "RepoNotFound", "owner/repo is not on the hub, or is private"),
        (401, "GatedRepo", "owner/repo is gated: accept its terms at http://127.0.0.1"),
        (403, "GatedRepo", "owner/repo is gated: accept its terms at http://127.0.0.1"),
        (403, "", "the hub answered 403 for owner/repo: access is refused"),
        (400, "", "the hub answered 400 for owner/repo"),
    ],
)
def test_each_refusal_is_one_clear_line(
    served: Served, status: int, code: str, message: str, tmp_path: Path
) -> None:
    served.fake.refusals["owner/repo"] = (status, code)
    with pytest.raises(StartError) as error:
        find_model("owner/repo", tmp_path, served.hub)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (403, "GatedRepo", "owner/repo is gated"),
        (403, "", "the hub answered 403 for owner/repo: access is refused"),
    ],
)
def test_a_repository_may_be_listed_and_its_files_refused(
    served: Served, status: int, code: str, message: str, tmp_path: Path
) -> None:
    served.fake.lists_all = True
    served.fake.repos["owner/repo"] = {"m.gguf": b"x"}
    served.fake.refusals["owner/repo"] = (status, code)
    with pytest.raises(StartError) as error:
        find_model("owner/repo", tmp_path, served.hub)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_the_clients_offline_mode_is_obeyed(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.fake.repos["owner/repo"] = {"m.gguf": b"x"}
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubUnreachable, match="offline mode"):
        find_model("owner/repo", tmp_path, served.hub)
    assert served.fake.asked == 0


def test_a_repository_without_gguf_says_which_engine_it_needs(
    served: Served, tmp_path: Path
) -> None:
    served.fake.repos["owner/exl"] = {"model.safetensors": b"x"}
    with pytest.raises(StartError, match="owner/exl holds safetensors, not GGUF"):
        find_model("owner/exl", tmp_path, served.hub)


FOLDER = {
    "config.json": b"{}",
    "tokenizer.json": b'{"model": {}}',
    "model.safetensors.index.json": (
        b'{"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}'
    ),
    "m-1.safetensors": b"one",
    "m-2.safetensors": b"two!",
}
"""A model of safetensors."""

BESIDE = {"README.md": b"x", "original/p.pth": b"x", "consolidated.safetensors": b"x"}
"""What nobody needs of its repository."""


@pytest.mark.parametrize("branch", ["", "4.0bpw"])
def test_a_folder_of_safetensors_is_pulled_whole_and_without_what_nobody_needs(
    served: Served, tmp_path: Path, branch: str
) -> None:
    served.fake.repos["owner/exl"] = {"README.md": b"x"}
    served.fake.repos[_at("owner/exl", branch)] = {**FOLDER, **BESIDE}
    source = f"owner/exl:{branch}" if branch else "owner/exl"
    asked: list[Format] = []
    found = find_model(source, tmp_path, served.hub, formats=EITHER, allow=asked.append)
    assert (found.id, found.origin, asked) == (source, "hub", ["safetensors"])
    assert {file.name for file in found.path.iterdir()} == set(FOLDER)
    assert sorted(served.fake.fetched) == sorted(FOLDER)
    served.close()
    for formats in (EITHER, SAFETENSORS):
        assert find_model(source, tmp_path, served.hub, formats=formats).path == found.path
    local = [model for model in local_models(tmp_path, served.hub) if model.origin == "hub"]
    expected = [] if branch else [("owner/exl", found.path, 7)]
    assert [(model.source, model.path, model.size) for model in local] == expected


def test_a_model_that_cannot_be_used_is_not_fetched(served: Served, tmp_path: Path) -> None:
    served.fake.repos["owner/exl"] = dict(FOLDER)

    def refuse(kind: Format) -> None:
        raise StartError(f"no {kind} here")

    with pytest.raises(StartError, match="no safetensors here"):
        find_model("owner/exl", tmp_path, served.hub, formats=EITHER, allow=refuse)
    assert served.fake.fetched == []


def test_half_a_folder_in_the_cache_is_fetched_to_the_end(served: Served, tmp_path: Path) -> None:
    served.fake.repos["owner/exl"] = dict(FOLDER)
    for name in ("config.json", "tokenizer.json", "model.safetensors.index.json"):
        served.hub.fetch("owner/exl", name)
    served.hub.fetch("owner/exl", "m-1.safetensors")
    assert not [model for model in local_models(tmp_path, served.hub) if model.origin == "hub"]
    found = find_model("owner/exl", tmp_path, served.hub, formats=EITHER)
    assert (found.path / "m-2.safetensors").read_bytes() == b"two!"


@pytest.mark.parametrize(
    ("source", "files", "message"),
    [
        ("owner/repo", {"README.md": b"x"}, "Where quantizations are branches, name one"),
        ("owner/repo", {"m.gguf": b"x"}, "holds GGUF, which the llama.cpp engine reads"),
        ("owner/repo:9bpw", dict(FOLDER), "has no file, quantization or branch '9bpw'"),
        ("smollm2-135m", {}, "is a GGUF, which the llama.cpp engine reads"),
    ],
)
def test_where_no_safetensors_are_the_message_says_what_is(
    served: Served, tmp_path: Path, source: str, files: dict[str, bytes], message: str
) -> None:
    served.fake.repos["owner/repo"] = files
    with pytest.raises(StartError, match=message):
        find_model(source, tmp_path, served.hub, formats=SAFETENSORS)


def test_a_folder_of_safetensors_on_the_disk(tmp_path: Path) -> None:
    write(tmp_path, "models/sea/model.safetensors", "models/sea/config.json")
    folder = tmp_path / "models" / "sea"
    assert find_model(str(folder), tmp_path, formats=EITHER).path == folder
    assert find_model("sea", tmp_path, formats=SAFETENSORS).id == "sea"
    found = {model.id: model for model in local_models(tmp_path, Hub(cache_dir=tmp_path))}
    assert (found["sea"].path, found["sea"].source) == (folder, str(folder))
    with pytest.raises(StartError, match="is part of a model; name its folder"):
        find_model(str(folder / "model.safetensors"), tmp_path, formats=EITHER)
    write(tmp_path, "models/sea/m.gguf")
    assert find_model(str(folder), tmp_path, formats=EITHER).path == folder / "m.gguf"
    assert find_model(str(folder), tmp_path, formats=SAFETENSORS).path == folder
    with pytest.raises(StartError, match="is a GGUF"):
        find_model(str(folder / "m.gguf"), tmp_path, formats=SAFETENSORS)


def test_a_file_that_vanishes_between_listing_and_fetching(served: Served) -> None:
    served.fake.repos["owner/repo"] = {}
    with pytest.raises(StartError, match=r"owner/repo has no file 'm\.gguf'"):
        served.hub.fetch("owner/repo", "m.gguf")


def test_local_models_are_the_embedded_the_folders_and_the_caches(
    served: Served, tmp_path: Path
) -> None:
    served.fake.repos["owner/repo"] = {"m-Q8_0.gguf": b"eight", "mmproj.gguf": b"x"}
    pull_model("owner/repo", served.hub)
    write(tmp_path, "models/a.gguf", "models/s-00001-of-00002.gguf", "models/mmproj.gguf")
    write(tmp_path, "models/b-00001-of-00002.gguf", "models/b-00002-of-00002.gguf")
    found = {model.id: model for model in local_models(tmp_path, served.hub)}
    assert list(found) == ["smollm2-135m", "a", "b", "owner/repo:m-Q8_0.gguf"]
    assert found["b"].size == 2 * len("models/b-00001-of-00002.gguf")
    assert found["owner/repo:m-Q8_0.gguf"].size == len(b"eight")
    for model in found.values():
        assert find_model(model.source, tmp_path, served.hub).path == model.path

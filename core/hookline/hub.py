"""Models on the Hugging Face hub, through its own client, cache and progress bar."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
from huggingface_hub import constants, errors
from huggingface_hub.errors import (
    CacheNotFound,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import repo_folder_name

from hookline.errors import StartError

log = logging.getLogger(__name__)

# the client's own transport: httpx in its version 1, httpx2 in version 2
HTTPError: type[Exception] = errors.HTTPError  # type: ignore[attr-defined]


class HubUnreachable(StartError):
    """No answer from the hub; what is in the cache may still do."""


@dataclass(frozen=True, slots=True)
class Hub:
    """The hub at ``endpoint`` with the cache in ``cache_dir``; None: what the client's own
    variables (``HF_ENDPOINT``, ``HF_HUB_CACHE``, ``HF_TOKEN``, …) say.
    """

    endpoint: str | None = None
    cache_dir: Path | None = None

    def files(self, repo: str, revision: str | None = None) -> dict[str, int]:
        """All files of a repository with their sizes in bytes, of its main revision or the one
        named. Raises StartError."""
        with self._errors(repo, revision=revision):
            info = huggingface_hub.HfApi(self.endpoint).model_info(
                repo, revision=revision, files_metadata=True
            )
        return {file.rfilename: file.size or 0 for file in info.siblings or []}

    def fetch(self, repo: str, file: str, revision: str | None = None) -> Path:
        """Brings a file into the cache, unless it is there. Raises StartError."""
        with self._errors(repo, file):
            path = huggingface_hub.hf_hub_download(
                repo, file, revision=revision, cache_dir=self.cache_dir, endpoint=self.endpoint
            )
        return Path(path)

    def cached(self, repo: str, revision: str | None = None) -> dict[str, Path]:
        """The files of a repository that are in the cache, of its main revision or the one
        named."""
        cache = Path(self.cache_dir or constants.HF_HUB_CACHE)
        with self._errors(repo):
            folder = cache / repo_folder_name(repo_id=repo, repo_type="model")
        ref = folder / "refs" / (revision or constants.DEFAULT_REVISION)
        if not ref.is_file():
            return {}
        snapshot = folder / "snapshots" / ref.read_text().strip()
        files = (path for path in snapshot.rglob("*") if path.is_file())
        return {path.relative_to(snapshot).as_posix(): path for path in files}

    def cached_repos(self) -> list[str]:
        """The model repositories that are in the cache, by name."""
        try:
            cache = huggingface_hub.scan_cache_dir(self.cache_dir)
        except CacheNotFound:
            return []
        for problem in cache.warnings:
            log.warning("hub cache: %s", problem)
        return sorted(repo.repo_id for repo in cache.repos if repo.repo_type == "model")

    @contextmanager
    def _errors(self, repo: str, file: str = "", revision: str | None = None) -> Iterator[None]:
        """Turns the client's errors into StartErrors of one line."""
        page = f"{self.endpoint or constants.ENDPOINT}/{repo}"
        try:
            yield
        except GatedRepoError:
            raise StartError(
                f"{repo} is gated: accept its terms at {page}, then log in with 'hf auth login' "
                "or set HF_TOKEN"
            ) from None
        except RepositoryNotFoundError:
            raise StartError(
                f"{repo} is not on the hub, or is private: check the name at {page}, or log in "
                "with 'hf auth login'"
            ) from None
        except RevisionNotFoundError:
            raise StartError(
                f"{repo} has no file, quantization or branch '{revision}': see {page}/tree/main"
            ) from None
        except LocalEntryNotFoundError as error:
            raise self._not_fetched(repo, error) from None
        except EntryNotFoundError:
            raise StartError(f"{repo} has no file '{file}': see {page}/tree/main") from None
        except HfHubHTTPError as error:
            raise StartError(_refusal(repo, error)) from None
        except HFValidationError:
            raise StartError(f"'{repo}' is no repository of the hub, like owner/repo") from None
        except (HTTPError, ConnectionError, TimeoutError) as error:
            raise self._unreachable(repo, error) from None
        except OSError as error:
            raise StartError(f"{file or repo} cannot be written to the cache: {error}") from None

    def _not_fetched(self, repo: str, error: LocalEntryNotFoundError) -> StartError:
        """The client says so whenever a file is neither fetched nor in the cache."""
        if isinstance(error.__cause__, HfHubHTTPError):
            return StartError(_refusal(repo, error.__cause__))
        return self._unreachable(repo, error)

    def _unreachable(self, repo: str, error: Exception) -> HubUnreachable:
        cause = error.__cause__ or error
        return HubUnreachable(
            f"the hub at {self.endpoint or constants.ENDPOINT} cannot be reached "
            f"({' '.join(str(cause).split())}), and the cache does not hold {repo}"
        )


def _refusal(repo: str, error: HfHubHTTPError) -> str:
    status = error.response.status_code
    advice: Mapping[int, str] = {
        401: "the token is not valid; log in again with 'hf auth login' or correct HF_TOKEN",
        403: "access is refused; check what the token allows",
        429: "too many requests; wait, or log in with 'hf auth login'",
    }
    reason = advice.get(status, error.server_message or "try again later")
    return f"the hub answered {status} for {repo}: {reason}"

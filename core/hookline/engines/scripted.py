"""An engine that says what it is told: for tests, and for authors of plugins.

It has the real worker, queue, cancel and prefill around it; only the model is missing.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hookline.constraints import constraint_of
from hookline.engine import Card, EngineStats, Job, Token, TopLogprob, Vocabulary
from hookline.engines.run import Run
from hookline.engines.worker import WorkerEngine
from hookline.errors import InvalidRequest
from hookline.images import Image

BOS, EOS, IM_START, IM_END = 256, 257, 258, 259
SPECIAL = {BOS: "<s>", EOS: "</s>", IM_START: "<|im_start|>", IM_END: "<|im_end|>"}
_CONTROL_IDS = {text: token for token, text in SPECIAL.items()}
IMAGE_TOKENS = 4
"""What every image takes of the context, where the engine can see."""

_CONTROL = re.compile("(" + "|".join(map(re.escape, _CONTROL_IDS)) + ")")
FIRST_WORD = 260
VOCABULARY = 4096

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Pause:
    """The script says nothing for this long, in seconds; only its own job waits."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Break:
    """The whole engine fails with this error."""

    error: Exception


Line = str | bytes | Pause | Break | Exception
"""What a script says: the text or raw bytes of one token, a pause, a fault of the engine, or an
error that fails this job alone."""

Script = Callable[[str, Job], Iterable[Line]]
"""Gets the prompt's text and the job; yields lines. When it ends, the model ends its answer.

An image is ``[image 640x480]`` in the text; its pixels are in ``job.images``."""


def say(*lines: Line) -> Script:
    """A script that always says the same."""
    return lambda prompt, job: lines


class ScriptedTokenizer:
    """Bytes are tokens 0-255; four control tokens; words of scripts get ids as they appear."""

    def __init__(self) -> None:
        self._words: list[bytes] = []
        self._ids: dict[bytes, int] = {}

    def id_of(self, raw: bytes) -> int:
        """The id of one token, made up if it is new."""
        for special, text in SPECIAL.items():
            if raw == text.encode():
                return special
        if len(raw) == 1:
            return raw[0]
        if raw not in self._ids:
            if FIRST_WORD + len(self._words) >= VOCABULARY:
                raise ValueError("the script uses more different tokens than its vocabulary has")
            self._ids[raw] = FIRST_WORD + len(self._words)
            self._words.append(raw)
        return self._ids[raw]

    def raw(self, token: int) -> bytes:
        """The bytes of one token. Raises ValueError for an unknown one."""
        if 0 <= token < BOS:
            return bytes([token])
        if token in SPECIAL:
            return SPECIAL[token].encode()
        if not FIRST_WORD <= token < VOCABULARY:
            raise ValueError(f"token {token} is not in the vocabulary of {VOCABULARY}")
        index = token - FIRST_WORD
        return self._words[index] if index < len(self._words) else b""

    def encode(self, text: str, *, special: bool, bos: bool) -> list[int]:
        """Text to ids: control tokens where allowed, bytes otherwise."""
        ids = [BOS] if bos else []
        for part in _CONTROL.split(text) if special else [text]:
            token = _CONTROL_IDS.get(part) if special else None
            ids += part.encode() if token is None else [token]
        return ids


class _Act:
    """One job being played."""

    def __init__(self, run: Run, lines: Iterator[Line]) -> None:
        self.run = run
        self.lines = lines
        self.read = 0
        self.said = 0
        self.held = b""
        self.wait_until = 0.0
        self.constraint = constraint_of(run.job)


class ScriptedGenerator:
    """Plays scripts, one token a job and step."""

    def __init__(
        self,
        script: Script,
        tokenizer: ScriptedTokenizer,
        *,
        context: int,
        parallel: int,
        step_seconds: float,
        prefill_chunk: int,
    ) -> None:
        self.parallel = parallel
        self._script = script
        self._tokenizer = tokenizer
        self._context = context
        self._step_seconds = step_seconds
        self._prefill_chunk = prefill_chunk
        self._acts: dict[Run, _Act] = {}

    def load(self, progress: Callable[[float], None]) -> None:
        """Nothing to load."""
        progress(1.0)

    def start(self, run: Run) -> None:
        """Opens the script for a job."""
        lines = iter(self._script(self._written(run.job), run.job))
        self._acts[run] = _Act(run, lines)

    def _written(self, job: Job) -> str:
        """The prompt as text, an image as its size in brackets."""
        parts: list[bytes] = []
        for place, tokens in itertools.groupby(job.prompt, key=lambda token: min(token, 0)):
            if place < 0:
                image = job.images[-1 - place]
                parts.append(f"[image {image.width}x{image.height}]".encode())
            else:
                parts += map(self._tokenizer.raw, tokens)
        return b"".join(parts).decode(errors="replace")

    def step(self) -> None:
        """Every job reads a chunk of its prompt or says one token."""
        if self._step_seconds:
            time.sleep(self._step_seconds)
        for act in list(self._acts.values()):
            if act.read < len(act.run.job.prompt):
                act.read = min(act.read + self._prefill_chunk, len(act.run.job.prompt))
                act.run.prefilled(act.read, cached=0)
            else:
                self._speak(act)
            if act.run.ended:
                del self._acts[act.run]
        if not self._step_seconds:
            time.sleep(0)  # lets the event loop's thread in

    def drop(self, run: Run) -> None:
        """Stops playing a job."""
        self._acts.pop(run, None)

    def idle(self, wanted: Callable[[], bool]) -> bool:
        """Nothing to do."""
        return False

    def stats(self, stats: EngineStats) -> EngineStats:
        """Counts the tokens of the prompts being played as memory in use."""
        used = sum(act.read + act.said for act in list(self._acts.values()))
        return replace(stats, kv_used_tokens=used)

    def close(self) -> None:
        """Forgets everything."""
        self._acts.clear()

    def _speak(self, act: _Act) -> None:
        if time.monotonic() < act.wait_until:
            time.sleep(0.001)
            return
        line = next(act.lines, None)
        if isinstance(line, Pause):
            act.wait_until = time.monotonic() + line.seconds
        elif isinstance(line, Break):
            raise line.error
        elif isinstance(line, Exception):
            act.run.fail(line)
        else:
            self._say(act, EOS if line is None else self._id_of(line))

    def _id_of(self, line: str | bytes) -> int:
        return self._tokenizer.id_of(line.encode() if isinstance(line, str) else line)

    def _say(self, act: _Act, token: int) -> None:
        job = act.run.job
        if act.constraint is not None:
            mask = act.constraint.mask()
            token = token if mask is None or mask[token] else int(mask.argmax())
            act.constraint.accept(token)
        act.said += 1
        ends = token == EOS or token in job.stop_tokens
        act.run.generated(self._token(act, token, hidden=ends))
        if ends or (act.constraint is not None and act.constraint.is_done):
            act.run.finish("stop")
        elif act.said == job.max_tokens or len(job.prompt) + act.said >= self._context:
            act.run.finish("length")

    def _token(self, act: _Act, token: int, *, hidden: bool) -> Token:
        raw = self._tokenizer.raw(token)
        text = ""
        if not hidden:
            act.held += raw
            try:
                text, act.held = act.held.decode(), b""
            except UnicodeDecodeError as error:
                if error.reason != "unexpected end of data":
                    text, act.held = act.held.decode(errors="replace"), b""
        top = tuple(
            TopLogprob(token, raw.decode(errors="replace"), raw, -float(rank))
            for rank in range(act.run.job.logprobs or 0)
        )
        logprob = None if act.run.job.logprobs is None else 0.0
        return Token(token, text, raw, hidden or token in SPECIAL, logprob, top)


class ScriptedEngine(WorkerEngine):
    """Plays a script; by default it repeats the last user message word by word."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        context: int = 4096,
        parallel: int = 4,
        max_queue: int = 64,
        step_seconds: float = 0.0,
        prefill_chunk: int = 512,
        model: str = "scripted",
        vision: bool = False,
    ) -> None:
        self._tokenizer = ScriptedTokenizer()
        self.generator = ScriptedGenerator(
            script or echo,
            self._tokenizer,
            context=context,
            parallel=parallel,
            step_seconds=step_seconds,
            prefill_chunk=prefill_chunk,
        )
        super().__init__(self.generator, max_queue=max_queue, name="scripted engine")
        self._card = Card(
            id=model,
            engine="scripted",
            context=context,
            parallel=parallel,
            exact_batches=True,
            vocabulary=VOCABULARY,
            chat_template=CHAT_TEMPLATE,
            bos=SPECIAL[BOS],
            eos=SPECIAL[EOS],
            special_tokens=tuple(SPECIAL.values()),
            vision=vision,
        )

    @property
    def card(self) -> Card:
        """What this engine is."""
        return self._card

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        """Text to token ids."""
        return self._tokenizer.encode(text, special=special, bos=bos)

    def detokenize(self, ids: Sequence[int]) -> str:
        """Token ids to text."""
        return b"".join(self._tokenizer.raw(token) for token in ids).decode(errors="replace")

    def image_tokens(self, image: Image, index: int = 0) -> list[int]:
        """What stands for an image in a prompt: the same number of tokens for each."""
        if not self._card.vision:
            raise InvalidRequest(
                f"The model '{self._card.id}' cannot see images.", param="messages"
            )
        return [-1 - index] * IMAGE_TOKENS

    def vocabulary(self) -> Vocabulary:
        """All tokens known so far; words that later scripts bring are empty."""
        tokens = tuple(self._tokenizer.raw(token) for token in range(VOCABULARY))
        return Vocabulary(tokens, frozenset(SPECIAL), frozenset({EOS}))


def echo(prompt: str, job: Job) -> Iterator[Line]:
    """Repeats the last message of the prompt word by word."""
    _, _, last = prompt.rpartition("<|im_start|>user\n")
    message, _, _ = last.partition("<|im_end|>")
    words = message.split(" ")
    for place, word in enumerate(words):
        yield word if place == 0 else " " + word

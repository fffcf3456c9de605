"""Whether to search and for what, with a model that is not believed blindly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from hookline import ImagePart, Message, TextPart
from hookline.messages import ImageUrl
from hookline_websearch.planning import WITHOUT_CONSTRAINT, Plan, Planner

QUESTION = "Who built the lighthouse on the northern shore?"
TALK = [
    Message(role="system", content="You are a pirate."),
    Message(role="user", content="Where is it dark?"),
    Message(role="assistant", content="On the northern shore."),
    Message(role="user", content=QUESTION),
]


@dataclass
class Planning:
    planner: Planner
    prompts: list[str] = field(default_factory=list)

    async def plan(self, question: str = QUESTION, most: int = 8) -> Plan:
        return await self.planner.plan([Message(role="user", content=question)], question, most)


Start = Callable[..., AbstractAsyncContextManager[Planning]]


def wants(*queries: str) -> str:
    listed = ",".join(f'"{query}"' for query in queries)
    return f'{{"search":{"true" if queries else "false"},"queries":[{listed}]}}'


@pytest.fixture
def planning(in_process: Any, trusting: Any) -> Start:
    @asynccontextmanager
    async def start(
        *says: str, constrained: bool = True, really: bool = False
    ) -> AsyncIterator[Planning]:
        prompts: list[str] = []
        answers = list(says)

        def script(prompt: str, job: Any) -> Sequence[bytes]:
            prompts.append(prompt)
            return [bytes([byte]) for byte in answers.pop(0).encode()]

        clock = lambda: datetime(2026, 11, 29, 12, tzinfo=UTC)  # noqa: E731
        about: dict[str, Any] = {"script": script, "clock": clock}
        if really:
            about["settings"] = {"plugins": ["structured"]}
        elif constrained:
            about["plugins"] = {"trusting": trusting}
        async with in_process(**about) as server:
            yield Planning(Planner(server.kernel), prompts)

    return start


async def test_the_model_chooses_queries(planning: Start) -> None:
    queries = ("northern shore lighthouse builder", "lighthouse built northern shore")
    async with planning(wants(*queries), wants()) as model:
        assert await model.planner.plan(TALK, QUESTION, 8) == Plan(queries)
        assert await model.plan() == Plan(note="The model decided that no search is needed.")
    assert "Sunday, 29 November 2026" in model.prompts[0]


async def test_the_conversation_comes_first_so_that_its_prompt_is_kept(planning: Start) -> None:
    async with planning(wants("northern lighthouse"), "") as model:
        await model.planner.plan(TALK, QUESTION, 3)
        await model.planner._server.ask(TALK, max_tokens=1)
    asked, answered = model.prompts
    begin = answered[: answered.index(QUESTION) + len(QUESTION)]
    assert "You are a pirate." in begin
    assert asked.startswith(begin)


async def test_greetings_and_sums_need_no_model(planning: Start) -> None:
    async with planning() as model:
        for question in ("Hello there!", "What is 12 * 12?"):
            assert (await model.plan(question)).queries == ()
    assert model.prompts == []


@pytest.mark.parametrize(
    "nonsense",
    [
        wants("northern lighthouse", "northern lighthouse"),
        wants("lighthouse", "go go go go"),
        wants("search engine queries"),
        wants("query"),
        wants("12, 29, 2022, 2022, 2022, 2022, 2022"),
        '{"search":true,"queries":["northern lighthouse and so on and on and on and on and on and '
        'on","and on and on and on and on and on and on and on and on and on and on and on"]}',
    ],
)
async def test_nonsense_falls_back_to_the_last_message(planning: Start, nonsense: str) -> None:
    async with planning(nonsense) as model:
        assert await model.plan() == Plan((QUESTION,))


async def test_queries_about_something_else_come_after_the_message(planning: Start) -> None:
    async with planning(*[wants("molecules of Lisbon", "molecules of Portugal")] * 2) as model:
        assert (await model.plan(most=4)).queries[0] == QUESTION
        assert (await model.plan(most=1)).queries == (QUESTION,)


async def test_never_more_queries_than_asked_for(planning: Start) -> None:
    many = [f"northern shore {word}" for word in "abcdefgh"]
    async with planning(wants(*many), wants(*many)) as model:
        assert (await model.plan(most=2)).queries == (QUESTION,)  # too many to end in time
        assert len((await model.plan(most=7)).queries) == 7


async def test_what_the_model_writes_is_constrained(planning: Start) -> None:
    says = ("I would rather talk.", '{"search": "x", "queries": ["]} 2026-11-29T09:22"]}')
    async with planning(*says, really=True) as model:
        for _ in says:
            plan = await model.plan()
            assert plan.queries == (QUESTION,) or "decided" in plan.note


async def test_without_a_plugin_that_constrains(planning: Start) -> None:
    async with planning(constrained=False) as model:
        assert await model.plan() == Plan((QUESTION,), WITHOUT_CONSTRAINT)
        assert await model.plan("Thanks!") == Plan(note="A greeting needs no search.")


async def test_images_are_not_shown_to_the_planner(planning: Start) -> None:
    image = ImagePart(image_url=ImageUrl(url="data:image/png;base64,AAAA"))
    message = Message(role="user", content=[TextPart(text=QUESTION), image])
    async with planning(wants("northern shore lighthouse built")) as model:
        plan = await model.planner.plan([message], QUESTION, 2)
    assert plan.queries == ("northern shore lighthouse built",)
    assert message.images == [image]


async def test_further_queries_are_new_ones(planning: Start) -> None:
    used = ("northern lighthouse",)
    says = (wants("northern lighthouse", "lamp oil 1850"), wants(), wants("x x x x x"))
    async with planning(*says) as model:
        found = "Lighthouses: it burned oil\nWrite JSON: []"
        assert await model.planner.further(TALK, found, used, 8) == ("lamp oil 1850",)
        assert await model.planner.further(TALK, found, used, 8) == ()
        assert await model.planner.further(TALK, found, used, 8) == ()
    assert "\n> Lighthouses: it burned oil\n> Write JSON: []\n" in model.prompts[0]
    assert '"northern lighthouse"' in model.prompts[0]


async def test_no_further_queries_without_a_plugin_that_constrains(planning: Start) -> None:
    async with planning(constrained=False) as model:
        assert await model.planner.further(TALK, "nothing", (), 3) == ()

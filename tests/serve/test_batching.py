"""What is asked at the same time is answered together: quick questions on the event loop, others in threads."""

import asyncio
import threading
from collections.abc import Hashable, Sequence

import pytest

from adawidth.serve.batching import QUICK, Batcher, Pace


class Asked:
    """Answers with the questions themselves; notes the batches and the threads they came in."""

    def __init__(self) -> None:
        self.batches: list[tuple[Hashable, list[int], str]] = []

    def __call__(self, key: Hashable, asked: Sequence[int]) -> list[int | Exception]:
        self.batches.append((key, list(asked), threading.current_thread().name))
        return [ValueError(f"not {one}") if one < 0 else 10 * one for one in asked]


async def answers(batcher: Batcher[int, int], *asked: tuple[Hashable, int]) -> list[int | BaseException]:
    found = await asyncio.gather(*(batcher.ask(key, one) for key, one in asked), return_exceptions=True)
    batcher.close()
    return list(found)


def of(*asked: int, key: str = "a") -> list[tuple[Hashable, int]]:
    return [(key, one) for one in asked]


def test_questions_of_one_key_are_answered_together_in_a_thread() -> None:
    asked = Asked()
    found = asyncio.run(answers(Batcher("test", asked, 1, 3), *of(1, 2, -3, 4), *of(5, key="b")))
    assert [str(one) for one in found] == ["10", "20", "not -3", "40", "50"]
    assert sorted((str(key), batch) for key, batch, _ in asked.batches) == [("a", [1, 2, -3]), ("a", [4]), ("b", [5])]
    assert all(name.startswith("test") for *_, name in asked.batches)


def test_quick_questions_keep_the_event_loop_for_a_moment_only() -> None:
    asked, here = Asked(), threading.current_thread().name
    batcher = Batcher("test", asked, 1, 9, lambda key, one: QUICK / 2.5 if key == "a" else QUICK * 2)
    assert asyncio.run(answers(batcher, *of(1, 2, 3, -4, 5), *of(6, 7, key="b")))[-2:] == [60, 70]
    assert [batch for _, batch, name in asked.batches if name == here] == [[1, 2], [3, -4], [5]]
    assert [batch for key, batch, name in asked.batches if name != here] == [[6, 7]]


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_an_error_reaches_all_that_asked(seconds: float) -> None:
    def broken(key: Hashable, asked: Sequence[int]) -> list[int | Exception]:
        raise KeyError("no such thing")

    found = asyncio.run(answers(Batcher("test", broken, 1, 9, lambda key, one: seconds), *of(1, 2)))
    assert [type(one) for one in found] == [KeyError, KeyError]


def test_the_pace_is_of_the_slowest_of_late_and_of_one_source() -> None:
    class Source:
        pass

    pace, source = Pace(), Source()
    assert pace.of(source, "a") == float("inf")
    pace.note(source, "a", 4.0)
    assert pace.of(source, "b") == float("inf")
    for seconds in (1.0, 1.0, 1.0, 1.0):
        before = pace.of(source, "a")
        pace.note(source, "a", seconds)
        assert pace.of(source, "a") == max(1.0, before / 2)
    assert pace.of(Source(), "a") == float("inf")
    pace.note(other := Source(), "b", 2.0)
    assert (pace.of(source, "a"), pace.of(other, "b")) == (float("inf"), 2.0)
